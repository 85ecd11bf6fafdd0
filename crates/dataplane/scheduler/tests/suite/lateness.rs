//! What is learnt of processors whose jobs are done later than predicted.

use forebay_scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Scheduler};
use forebay_time::{Duration, Time};

const ALPHA: f64 = 1.0;
const CORE: usize = 0;
const CARD: usize = 1;

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// 12 us a job on the core, 5 us on the card.
fn scheduler() -> Scheduler {
    let cost = |init| Cost { init: us(init), ..Cost::default() };
    Scheduler::new(Config::new(vec![ProcessorConfig::cpu(cost(12)), ProcessorConfig::accelerator(cost(5))]))
        .unwrap()
}

/// Where a job goes that comes when nothing else is there; it is done when it should be.
fn place(scheduler: &mut Scheduler, now: Time) -> usize {
    scheduler.push(now, Item { id: 1, sa: 1, class: 0, suite: 0, bytes: 100 }).unwrap();
    let Decision::Dispatch { processor, prediction, .. } = scheduler.next(now) else { panic!() };
    assert_eq!(prediction.wait + prediction.service, us(if processor == CORE { 12 } else { 5 }));
    scheduler.complete(processor, 1, now);
    processor
}

#[test]
fn a_late_processor_is_left_alone_and_tried_again() {
    let mut s = scheduler();
    let mut now = Time::ZERO;
    assert_eq!(place(&mut s, now), CARD);
    // 7 us of lateness is what it may have before the core is sooner.
    while s.lateness(CARD) < us(7) {
        s.report_late(CARD, us(4_000));
    }
    assert_eq!(place(&mut s, now), CORE);
    assert_eq!(s.lateness(CORE), Duration::ZERO);

    (0..100).for_each(|_| s.report_late(CARD, us(4_000)));
    let learnt = s.lateness(CARD);
    assert!(learnt > us(3_900) && learnt <= us(4_000), "{learnt:?}");
    while place(&mut s, now) == CORE {
        now = now + us(1_000);
        s.fade_lateness(now);
        assert!(now < Time::ZERO + Duration::from_millis(2_000), "it is never tried again");
    }
    assert!(now > Time::ZERO + Duration::from_millis(500), "tried every {now:?}");
}

#[test]
fn one_that_owes_an_answer_is_expected_to_be_as_late_again() {
    let mut s = scheduler();
    let now = Time::ZERO + us(1_000);
    s.report_overdue(CARD, us(6));
    assert_eq!(place(&mut s, now), CARD);
    s.report_overdue(CARD, us(8));
    assert_eq!(place(&mut s, now), CORE);
    // It has answered: what is learnt counts again, and that is little.
    s.report_late(CARD, us(14));
    assert_eq!(place(&mut s, now), CARD);
}

#[test]
fn it_is_added_to_beta_and_both_come_before_the_factor() {
    let mut s = scheduler();
    let now = Time::ZERO;
    (0..1_000).for_each(|_| s.report_late(CARD, us(3)));
    assert_eq!(place(&mut s, now), CARD);
    s.set_bias(CARD, ALPHA, us(5)).unwrap();
    assert_eq!(place(&mut s, now), CORE);
    s.set_bias(CARD, ALPHA, Duration::ZERO).unwrap();
    assert_eq!(place(&mut s, now), CARD);
    s.set_bias(CARD, 1.6, Duration::ZERO).unwrap();
    assert_eq!(place(&mut s, now), CORE);
}

#[test]
fn where_nobody_reports_nothing_changes() {
    let mut s = scheduler();
    s.fade_lateness(Time::ZERO + us(1_000_000));
    assert_eq!((s.lateness(CORE), s.lateness(CARD)), (Duration::ZERO, Duration::ZERO));
    assert_eq!(place(&mut s, Time::ZERO + us(1_000_000)), CARD);
}
