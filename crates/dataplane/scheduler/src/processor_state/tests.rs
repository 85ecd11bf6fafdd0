//! The state of a processor, by hand; `tests/suite/processor_state.rs` holds its waiting time against a log.

use super::*;

fn processor(change: impl FnOnce(&mut ProcessorConfig)) -> ProcessorState {
    let mut config = ProcessorConfig::cpu(Cost::default());
    change(&mut config);
    ProcessorState::new(0, &config, false).expect("no fault")
}

/// A job counts as far as its time has come, and what was left at the last question counts with the next.
#[test]
fn crypto_time_is_that_of_the_jobs_taken_as_far_as_it_has_passed() {
    let mut state = processor(|_| {});
    [100, 50].into_iter().for_each(|cost| state.place(Time::ZERO, Duration(cost)));
    assert_eq!(state.crypto_time(Time(10)), Duration::ZERO, "nothing is taken");
    state.take(Time(20));
    assert_eq!(state.crypto_time(Time(50)), Duration(30));
    assert_eq!(state.crypto_time(Time(60)), Duration(10));
    assert_eq!(state.crypto_time(Time(130)), Duration(60));
    assert_eq!(state.crypto_time(Time(140)), Duration::ZERO);
    state.finish_one();
    state.take(Time(140));
    assert_eq!(state.crypto_time(Time(200)), Duration(50));
}

#[test]
fn what_feeding_and_waking_cost_by_hand() {
    let cost = |n: u64| Cost {
        init: Duration(n),
        packet: Duration(2 * n),
        block: Duration(3 * n),
        submit: Duration(50 * n),
        wake: Duration(70 * n),
        lanes: 1,
    };
    let mut state = processor(|config| config.feed = cost(10));
    let work = Work { packets: 4, blocks: 9, bytes: 100 };
    let opening = 500 + 700;
    assert_eq!(state.feed_time(3, &work), Duration(opening + 3 * 10 + 4 * 20 + 9 * 30));
    assert_eq!(state.feed_terms(2.5), (opening as f64, 30.0 + 75.0));
    // A batch is open, and it has something to do.
    state.place(Time::ZERO, Duration(1));
    assert_eq!(state.feed_time(3, &work), Duration(3 * 10 + 4 * 20 + 9 * 30));
    assert_eq!(state.feed_terms(0.0), (0.0, 30.0));
    state.submit();
    assert_eq!(state.feed_terms(0.0), (500.0, 30.0));
    // Idle again.
    state.take(Time::ZERO);
    state.finish_one();
    assert_eq!(state.feed_terms(0.0), (opening as f64, 30.0));
}

#[test]
fn what_is_added_to_finishing_times() {
    let mut state = processor(|config| (config.alpha, config.beta) = (2.0, Duration(100)));
    assert_eq!(state.biased(Duration(7)), Duration(214));
    state.learn_late(Duration(1_600));
    assert_eq!((state.lateness(), state.added()), (Duration(100), Duration(200)));
    state.see_overdue(Duration(30));
    assert_eq!(state.added(), Duration(200), "it is later than that as a rule");
    state.see_overdue(Duration(400));
    assert_eq!(state.added(), Duration(500));
    state.set_bias(0, 1.0, Duration(10)).expect("no fault");
    assert_eq!((state.added(), state.biased(Duration(7))), (Duration(110), Duration(117)));
    state.fade_lateness(1, Duration::ZERO);
    assert_eq!(state.added(), Duration(10 + 93));
}

#[test]
fn a_removed_processor_learns_suites_for_when_it_is_back() {
    let mut state = processor(|config| config.suites = 1);
    state.add_suite(3);
    assert_eq!(state.open_for, 0b1001);
    state.close();
    state.add_suite(1);
    assert!(!state.is_open());
    state.reopen();
    assert_eq!(state.open_for, 0b1011);
    state.add_suite(2);
    assert_eq!(state.open_for, 0b1111);
}
