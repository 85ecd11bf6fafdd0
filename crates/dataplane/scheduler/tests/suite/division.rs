//! How a burst is divided, against the rule at the head of `burst.rs` word by word: who computes how many of its jobs,
//! when they are expected to be done, and whether the host keeps it.

use forebay_scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Progress, Scheduler, Transfer, Work};
use forebay_time::{Duration, Time};
use proptest::prelude::*;

const NOW: Time = Time(1_000_000_000);
/// A division is to save a thousandth at least.
const SAVED: f64 = 0.999;

/// A processor, and how things stand there when the burst comes.
#[derive(Clone, Debug)]
struct Drawn {
    cost: Cost,
    feed: Cost,
    /// Alpha in quarters.
    quarters: u64,
    beta: u64,
    accelerator: bool,
    bus: Option<Transfer>,
    /// Bytes of a job that it has not done yet.
    earlier: Option<u32>,
    submitted: bool,
}

fn cost(most: u64) -> impl Strategy<Value = Cost> {
    let lanes = prop::sample::select(vec![0u32, 1, 1, 2, 4, 8]);
    let times = (0..most, 0..most / 4, 0..most / 16, 0..most * 4, 0..most * 8, any::<[bool; 2]>(), lanes);
    times.prop_map(|(init, packet, block, submit, wake, has, lanes)| Cost {
        init: Duration(init + 10),
        packet: Duration(packet),
        block: Duration(block),
        submit: Duration(if has[0] { submit } else { 0 }),
        wake: Duration(if has[1] { wake } else { 0 }),
        lanes,
    })
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let bus = (1u64..1_000, 1u32..9).prop_map(|(mhz, width)| Transfer {
        clock: mhz * 1_000_000_000,
        width,
        address_cycles: 1,
    });
    let bus = prop::option::weighted(0.3, bus);
    let bias = (prop::sample::select(vec![4u64, 4, 5, 8, 11]), prop::sample::select(vec![0u64, 0, 9_000]));
    let earlier = prop::option::weighted(0.3, 1u32..1_500);
    (cost(20_000), cost(4_000), bias, any::<[bool; 2]>(), bus, earlier).prop_map(
        |(cost, feed, (quarters, beta), [accelerator, submitted], bus, earlier)| Drawn {
            cost,
            feed: Cost { lanes: 1, ..feed },
            quarters,
            beta,
            accelerator,
            bus,
            earlier,
            submitted,
        },
    )
}

/// Sizes of a burst's packets, all the same or each another.
fn sizes() -> impl Strategy<Value = Vec<u32>> {
    let alike = (1usize..33, 20u32..1_500).prop_map(|(jobs, bytes)| vec![bytes; jobs]);
    prop_oneof![alike, prop::collection::vec(20u32..1_500, 1..33)]
}

fn work(sizes: &[u32]) -> Work {
    let mut work = Work::default();
    sizes.iter().for_each(|&bytes| work.add_packet(bytes));
    work
}

/// What a processor can do of the burst by some time, in picoseconds.
#[derive(Clone, Copy)]
struct Offer {
    processor: usize,
    alpha: f64,
    before: f64,
    group: f64,
    lanes: usize,
    feed_batch: f64,
    feed_job: f64,
}

/// The processors as the rule sees them.
struct Situation {
    drawn: Vec<Drawn>,
    host: Option<usize>,
    /// For each, whether the next job opens a batch.
    opens: Vec<bool>,
    /// How long the host is still busy with moving packets and feeding others.
    busy: u64,
}

impl Situation {
    /// The scheduler with the earlier jobs, each of a suite that only its processor has.
    fn scheduler(drawn: Vec<Drawn>, host: Option<usize>) -> (Scheduler, Situation) {
        let processors = drawn.iter().enumerate().map(|(at, one)| ProcessorConfig {
            alpha: one.quarters as f64 / 4.0,
            beta: Duration(one.beta),
            feed: one.feed,
            transfer: one.bus,
            suites: 1 | 2 << at,
            progress: Progress::InOrder,
            ..if one.accelerator {
                ProcessorConfig::accelerator(one.cost)
            } else {
                ProcessorConfig::cpu(one.cost)
            }
        });
        let config = Config { batch: 64, host, ..Config::new(processors.collect()) };
        let mut s = Scheduler::new(config).unwrap();
        let mut opens = Vec::new();
        for (at, one) in drawn.iter().enumerate() {
            if let Some(bytes) = one.earlier {
                s.push(NOW, Item { id: 99, sa: 1, class: 0, suite: at as u8 + 1, bytes }).unwrap();
                assert!(matches!(s.next(NOW), Decision::Dispatch { processor, .. } if processor == at));
                // The host takes jobs only if it has none.
                if host == Some(at) {
                    s.complete(at, 1, NOW);
                }
            }
            if one.submitted {
                s.submitted(at);
            }
            opens.push(one.submitted || one.earlier.is_none());
        }
        s.moved(NOW);
        (s, Situation { drawn, host, opens, busy: 0 })
    }

    /// What opens a batch, and what wakes the processor, where that is so now.
    fn opening(&self, s: &Scheduler, at: usize, cost: &Cost) -> (u64, u64) {
        let submit = if self.opens[at] { cost.submit.0 } else { 0 };
        (submit, if s.unfinished(at) == 0 { cost.wake.0 } else { 0 })
    }

    fn wait(&self, s: &Scheduler, at: usize) -> u64 {
        s.wait(at, NOW).0 + if self.host == Some(at) { self.busy } else { 0 }
    }

    /// How long the jobs take on a processor from their hand-over.
    fn service(&self, s: &Scheduler, at: usize, jobs: &[u32]) -> u64 {
        let one = &self.drawn[at];
        let (submit, wake) = self.opening(s, at, &one.cost);
        let computed =
            Cost { submit: Duration::ZERO, ..one.cost }.of_batch(jobs.iter().map(|&n| Work::packet(n)));
        computed.0 + submit + wake + self.moved(at, work(jobs).bytes)
    }

    fn moved(&self, at: usize, bytes: u64) -> u64 {
        self.drawn[at].bus.map_or(0, |bus| 2 * bus.of(bytes).0)
    }

    /// What handing jobs over costs the host.
    fn feeding(&self, s: &Scheduler, at: usize, jobs: &[u32]) -> u64 {
        let feed = &self.drawn[at].feed;
        let (submit, wake) = self.opening(s, at, feed);
        let all = work(jobs);
        submit
            + wake
            + feed.init.0 * jobs.len() as u64
            + feed.packet.0 * u64::from(all.packets)
            + feed.block.0 * u64::from(all.blocks)
    }

    /// What each offers for a burst of equal jobs, the host last.
    fn offers(&self, s: &Scheduler, jobs: usize, all: &Work) -> Vec<Offer> {
        let each = 1.0 / jobs as f64;
        let (blocks, packets) = (f64::from(all.blocks) * each, f64::from(all.packets) * each);
        let bytes = (all.bytes as f64 * each * jobs as f64) as u64;
        let mut order: Vec<usize> = (0..self.drawn.len()).collect();
        order.sort_by_key(|&at| self.host == Some(at));
        let offer = |processor: usize| {
            let Drawn { cost, feed, quarters, beta, .. } = &self.drawn[processor];
            let (submit, wake) = self.opening(s, processor, cost);
            let (feed_submit, feed_wake) = self.opening(s, processor, feed);
            let begin = self.wait(s, processor) + submit + wake + self.moved(processor, bytes);
            let group = cost.init.0 as f64
                + cost.block.0 as f64 * blocks
                + cost.packet.0 as f64 * packets * f64::from(cost.lanes.max(1));
            Offer {
                processor,
                alpha: *quarters as f64 / 4.0,
                before: begin as f64 + *beta as f64,
                group,
                lanes: cost.lanes.max(1) as usize,
                feed_batch: (feed_submit + feed_wake) as f64,
                feed_job: (feed.init + feed.packet).0 as f64 + feed.block.0 as f64 * blocks,
            }
        };
        order.into_iter().map(offer).collect()
    }

    fn host_of<'o>(&self, offers: &'o [Offer]) -> Option<&'o Offer> {
        offers.iter().find(|offer| self.host == Some(offer.processor))
    }

    /// Who would be done with all of it first, and when; while others compute, the host is done when they are fed.
    fn alone(&self, offers: &[Offer], jobs: usize) -> (usize, f64) {
        let host = self.host_of(offers);
        let ends = offers.iter().rev().map(|offer| {
            let end = offer.alpha * (offer.before + jobs.div_ceil(offer.lanes) as f64 * offer.group);
            let fed = host.filter(|host| host.processor != offer.processor).map_or(0.0, |host| {
                host.alpha * (host.before + offer.feed_batch + jobs as f64 * offer.feed_job)
            });
            (offer.processor, end.max(fed))
        });
        ends.min_by(|one, other| one.1.total_cmp(&other.1)).expect("there are processors")
    }

    /// How many of the jobs each can do by `end`, if that is all of them.
    fn by(&self, offers: &[Offer], jobs: usize, end: f64) -> Option<Vec<usize>> {
        let host = self.host_of(offers);
        let (mut left, mut feeding, mut shares) = (jobs, 0.0, vec![0; offers.len()]);
        for offer in offers {
            let is_host = self.host == Some(offer.processor);
            let worth_it = host.is_none_or(|host| offer.feed_job < host.group / host.lanes as f64);
            let time = end / offer.alpha - offer.before - if is_host { feeding } else { 0.0 };
            let groups = if is_host || worth_it { (time / offer.group).max(0.0) as usize } else { 0 };
            let share = (groups * offer.lanes).min(left);
            left -= share;
            if share > 0 && !is_host {
                feeding += offer.feed_batch + share as f64 * offer.feed_job;
            }
            shares[offer.processor] = share;
        }
        let in_time = host.is_none_or(|host| end / host.alpha >= host.before + feeding);
        (left == 0 && in_time).then_some(shares)
    }

    /// The division with the least end, and that end.
    fn least(&self, offers: &[Offer], jobs: usize, alone: f64) -> Option<(Vec<usize>, f64)> {
        let (mut low, mut high) = (0.0, alone * SAVED);
        let mut best = self.by(offers, jobs, high).filter(|_| offers.len() > 1)?;
        for _ in 0..12 {
            let middle = 0.5 * (low + high);
            match self.by(offers, jobs, middle) {
                Some(division) => (best, high) = (division, middle),
                None => low = middle,
            }
        }
        Some((best, high))
    }

    /// How many jobs each is to get.
    fn division(&self, offers: &[Offer], jobs: usize) -> Vec<usize> {
        let (processor, alone) = self.alone(offers, jobs);
        match self.least(offers, jobs, alone) {
            Some((best, end)) => {
                let relieved = self.host.and_then(|_| self.by(offers, jobs, (end * 1.05).min(alone)));
                relieved.unwrap_or(best)
            }
            None => (0..offers.len()).map(|one| if one == processor { jobs } else { 0 }).collect(),
        }
    }

    /// Who is done with one job first.
    fn best_for_one(&self, s: &Scheduler, bytes: u32) -> usize {
        let rank = |&at: &usize| {
            let one = &self.drawn[at];
            let service = self.service(s, at, &[bytes]);
            let finish = ((self.wait(s, at) + service + one.beta) * one.quarters + 2) / 4;
            (finish, !one.accelerator, service, at)
        };
        (0..self.drawn.len()).min_by_key(rank).expect("there are processors")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_burst_is_divided_as_the_rule_says(
        drawn in prop::collection::vec(drawn(), 1..5),
        host in prop::option::of(0usize..4),
        moving in prop::sample::select(vec![0u64, 500, 3_000]),
        sizes in sizes(),
    ) {
        let (mut s, mut now) = Situation::scheduler(drawn.clone(), host.filter(|&host| host < drawn.len()));
        s.set_moving(Duration(moving));
        for (id, &bytes) in sizes.iter().enumerate() {
            s.push(NOW, Item { id: id as u64, sa: 1, class: 0, suite: 0, bytes }).unwrap();
        }
        now.busy = moving * sizes.len() as u64;
        let expected = now.division(&now.offers(&s, sizes.len(), &work(&sizes)), sizes.len());
        // The host's share goes last.
        let mut order: Vec<usize> = (0..drawn.len()).filter(|&one| expected[one] > 0).collect();
        order.sort_by_key(|&one| now.host == Some(one));
        let mut left = &sizes[..];
        for planned in order {
            let mut share = (planned, expected[planned]);
            if left.len() == 1 {
                share.0 = now.best_for_one(&s, left[0]);
            }
            let (jobs, rest) = left.split_at(share.1);
            let wait = now.wait(&s, share.0);
            let service = now.service(&s, share.0, jobs);
            let feeding = if now.host == Some(share.0) { 0 } else { now.feeding(&s, share.0, jobs) };
            let Decision::Dispatch { processor, job, prediction, .. } = s.next(NOW) else { panic!("{share:?}") };
            prop_assert_eq!((processor, job.items().len()), share, "all: {:?}", &expected);
            prop_assert_eq!(job.head.work, work(jobs));
            prop_assert_eq!((prediction.wait.0, prediction.service.0), (wait, service));
            now.busy += feeding;
            now.opens[processor] = false;
            left = rest;
        }
        prop_assert!(left.is_empty());
        prop_assert_eq!(s.next(NOW), Decision::Idle);
    }

    #[test]
    fn a_host_keeps_the_bursts_that_the_rule_gives_to_it_alone(
        drawn in prop::collection::vec(drawn(), 1..4),
        host in 0usize..3,
        moving in prop::sample::select(vec![0u64, 500, 3_000]),
        sizes in sizes(),
    ) {
        let host = host % drawn.len();
        let (mut s, mut now) = Situation::scheduler(drawn, Some(host));
        s.set_moving(Duration(moving));
        let (jobs, all) = (sizes.len(), work(&sizes));
        now.busy = moving * jobs as u64;
        let offers = now.offers(&s, jobs, &all);
        let (first, kept) = now.alone(&offers, jobs);
        let divided = offers.len() > 1 && now.by(&offers, jobs, kept * SAVED).is_some();
        prop_assert_eq!(s.keeps(NOW, 0, jobs, &all), first == host && !divided);
    }
}
