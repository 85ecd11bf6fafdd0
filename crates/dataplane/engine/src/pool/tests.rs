//! What is learnt of processors, by hand.

use forebay_crypto::{Capabilities, Direction, Job, SaKeys, SessionError};
use forebay_scheduler::{Config, Kind};
use forebay_time::Time;

use super::*;

/// A processor that nobody gives a job.
struct Unused(Capabilities);

impl Processor for Unused {
    fn name(&self) -> &str {
        "unused"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn open_session(&mut self, _: SessionId, _: &SaKeys, _: Direction) -> Result<(), SessionError> {
        Ok(())
    }

    fn close_session(&mut self, _: SessionId) {}

    fn submit(&mut self, _: Time, _: &mut Vec<Job>) {}

    fn poll(&mut self, _: Time, _: &mut Vec<Job>) {}
}

fn cost(init: u64, lanes: u32) -> Cost {
    Cost { init: Duration(init), lanes, ..Cost::default() }
}

/// The running core and others, with one kind of job that all of them do.
fn pool(costs: &[Cost]) -> (Pool, Scheduler) {
    let setup = |&cost: &Cost| {
        let unused = Unused(Capabilities { suites: vec![], best_burst: 1, queue: 100 });
        ProcessorSetup::new(Box::new(unused), Kind::Cpu, cost)
    };
    let (mut pool, configs) = Pool::new(costs.iter().map(setup).collect(), 64);
    assert!(configs.iter().all(|config| config.queue == 100 && config.suites == 0));
    let mut scheduler = Scheduler::new(Config::new(configs)).expect("no fault");
    pool.add_kind(0, &vec![true; costs.len()], None, &mut scheduler);
    (pool, scheduler)
}

fn works(jobs: usize) -> impl Iterator<Item = Work> + Clone {
    (0..jobs).map(|_| Work::packet(64))
}

#[test]
fn the_others_are_all_but_the_running_core() {
    let (mut pool, _) = pool(&[cost(10, 1); 3]);
    assert_eq!((pool.len(), pool.others()), (3, 1..3));
    assert!(!pool.others_hold_any());
    pool.core().submissions.push_back(7);
    assert!(!pool.others_hold_any());
    pool.get_mut(2).submissions.push_back(8);
    assert!(pool.others_hold_any());
    assert_eq!(pool.iter().filter(|one| one.submissions.is_empty()).count(), 1);
}

#[test]
fn checks_cost_the_core_a_fiftieth_of_what_the_answers_cost_the_other() {
    let every = |core, other| pool(&[core, other]).0.get(1).check_every(64, 0);
    assert_eq!(every(cost(1_000, 1), cost(1_000, 1)), 64);
    // A check takes the core as long as 16 of the other's jobs: 12 times as seldom, which is four fifths of 16.
    assert_eq!(every(cost(16_000, 16), cost(1_000, 1)), 64 * 12);
    // 32 jobs in two groups of 2,000 are 125 each, an eighth of a check.
    assert_eq!(every(cost(1_000, 1), cost(2_000, 16)), 64 * 6);
    assert_eq!(every(cost(1_000, 1), cost(500_000, 1)), 64);
    assert_eq!(every(cost(1_000_000, 1), cost(1, 1)), 64 * 64);
    assert_eq!(every(cost(1_000_000, 1), cost(0, 1)), 64 * 64, "no division by what costs nothing");
}

/// All of the first 128 submissions are measured, then one in 16; costs are told after 64 jobs.
#[test]
fn costs_are_those_measured() {
    let (mut pool, mut scheduler) = pool(&[cost(1_000, 1), cost(1_000, 1)]);
    pool.add_kind(1, &[true, true], Some(0), &mut scheduler);
    let told = |pool: &Pool| pool.get(1).costs[0].init;
    for submission in 0..63 {
        pool.learn(1, 0, works(1), Duration(3_000), &mut scheduler);
        assert_eq!(told(&pool), Duration(1_000), "{submission}");
    }
    pool.learn(1, 0, works(1), Duration(3_000), &mut scheduler);
    assert!(told(&pool) > Duration(1_000), "{:?}", told(&pool));
    assert_eq!(pool.get(1).measured, 0);
    (64..128).for_each(|_| pool.learn(1, 0, works(1), Duration(3_000), &mut scheduler));
    assert_eq!((pool.get(1).measured, pool.get(1).submitted), (0, 128));
    (128..160).for_each(|_| pool.learn(1, 0, works(2), Duration(6_000), &mut scheduler));
    assert_eq!(pool.get(1).measured, 4, "two of those 32 submissions, of two jobs each");
    assert_eq!((pool.get(0).measured, pool.cost(0, 0)), (0, Some(cost(1_000, 1))));
    assert!(pool.cost(1, 0).is_some_and(|cost| cost.init > Duration(1_000)));
    assert_eq!((pool.cost(2, 0), pool.cost(1, 2)), (None, None));
    // A new kind that is like one begins with what is known of that.
    let known = pool.get(1).costs[0];
    pool.add_kind(2, &[true, true], Some(0), &mut scheduler);
    assert_eq!((pool.get(1).costs[2], pool.cost(1, 2)), (known, Some(known)));
}

#[test]
fn what_handing_over_costs_the_core() {
    let (mut pool, mut scheduler) = pool(&[cost(1_000, 1), cost(1_000, 1)]);
    assert_eq!(pool.get(1).feed(), Cost::default());
    pool.set_dispatching(Duration(40), &mut scheduler);
    assert_eq!(pool.get(1).feed().init, Duration(40));
    assert_eq!(pool.get(0).feed().init, Duration::ZERO, "the core hands nothing to itself");
    (0..128).for_each(|_| pool.learn_feed(1, works(1), Duration(500), &mut scheduler));
    let feed = pool.get(1).feed.cost();
    let measured = feed.of_batch(works(1)).0;
    assert!((400..=600).contains(&measured), "{measured}");
    // One in 16 of the later ones.
    (128..143).for_each(|_| pool.learn_feed(1, works(1), Duration(1_000_000), &mut scheduler));
    assert_eq!((pool.get(1).feed.cost(), pool.get(1).fed), (feed, 143));
}

#[test]
fn what_taking_back_costs_is_a_mean_over_jobs() {
    let (mut pool, _) = pool(&[cost(1_000, 1), cost(1_000, 1)]);
    let mut collect = |jobs, took| {
        pool.learn_collect(1, jobs, Duration(took));
        pool.get(1).collect.0
    };
    assert_eq!(collect(10, 1_000), 100);
    // Jobs count alike: 30 of 20 and 10 of 100.
    assert_eq!(collect(30, 600), 40);
    // Eight times the mean at most: 10 of 320 each.
    assert_eq!(collect(10, 1_000_000), (1_600 + 3_200) / 50);
    // Beyond 16,384 jobs half is forgotten, of both.
    assert_eq!(collect(16_334, 16_334 * 96), 96);
    assert_eq!(pool.get(1).collected.0, 16_384);
    pool.learn_collect(1, 2, Duration(192));
    assert_eq!(pool.get(1).collected, (8_193, Duration(16_386 * 96 / 2)));
    assert_eq!(pool.get(1).feed().init, Duration(96));
}
