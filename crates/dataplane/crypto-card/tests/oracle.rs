//! The card against a slow and obvious reading of models.md section 1, on random scenarios.

mod support;

use forebay_crypto::Processor;
use forebay_crypto_card::CardConfig;
use forebay_time::Duration;
use proptest::prelude::*;
use support::{Bench, toy_bus};

/// Where a job is. Everything else (lengths of queues, free places) is counted out of the list of jobs.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Refused,
    Ringing,
    Queue,
    /// Its fetch is requested or in progress.
    Inward,
    Ahead,
    Computing,
    /// In the unit, done.
    Stuck,
    WriteBuffer,
    /// Its write-back is requested or in progress.
    Outward,
    Gone(u64),
}
use Place::*;

struct Job {
    card: usize,
    bytes: u64,
    time: u64,
    place: Place,
}

enum Event {
    Rung(usize),
    Computed(usize),
    OffBus(usize),
}

struct Oracle<'a> {
    cards: &'a [CardConfig],
    jobs: Vec<Job>,
    now: u64,
    /// In the order of scheduling; the first of the earliest is next.
    events: Vec<(u64, Event)>,
    /// In the order of asking; the first has the bus.
    bus: Vec<usize>,
}

impl Oracle<'_> {
    fn run_to(&mut self, to: u64) {
        while let Some(next) = (0..self.events.len()).min_by_key(|&index| self.events[index].0)
            && self.events[next].0 <= to
        {
            let (at, event) = self.events.remove(next);
            self.now = at;
            let (Event::Rung(job) | Event::Computed(job) | Event::OffBus(job)) = event;
            self.jobs[job].place = match event {
                Event::Rung(_) => Queue,
                Event::Computed(_) => Stuck,
                Event::OffBus(_) if self.jobs[job].place == Inward => Ahead,
                Event::OffBus(_) => Gone(at),
            };
            self.act(self.jobs[job].card);
            if let Event::OffBus(_) = event {
                self.bus.remove(0);
                self.first_on_bus();
            }
        }
        self.now = to;
    }

    fn submit(&mut self, card: usize, lens: &[usize]) {
        let config = &self.cards[card];
        let queued = self.count(card, &[Ringing, Queue]);
        let fits = queued < config.queue || (queued == 0 && self.fetch_allowed(card));
        let blocks: u64 = lens.iter().map(|&len| (len as u64).div_ceil(16)).sum();
        self.jobs.push(Job {
            card,
            bytes: lens.iter().map(|&len| len as u64).sum(),
            time: config.init.0 + blocks * config.block.0,
            place: if fits { Ringing } else { Refused },
        });
        if fits {
            self.events.push((self.now + config.doorbell.0, Event::Rung(self.jobs.len() - 1)));
        }
        self.run_to(self.now);
    }

    fn act(&mut self, card: usize) {
        let config = &self.cards[card];
        let written = self.count(card, &[WriteBuffer, Outward]);
        if config.write_buffer > 0
            && written < config.write_buffer
            && let Some(job) = self.first(card, Stuck)
        {
            self.jobs[job].place = WriteBuffer;
        }
        if self.unit_free(card)
            && let Some(job) = self.first(card, Ahead)
        {
            self.jobs[job].place = Computing;
            self.events.push((self.now + self.jobs[job].time, Event::Computed(job)));
        }
        if self.fetch_allowed(card)
            && let Some(job) = self.first(card, Queue)
        {
            self.jobs[job].place = Inward;
            self.ask(job);
        }
        if self.count(card, &[Outward]) == 0 {
            let from = if config.write_buffer > 0 { WriteBuffer } else { Stuck };
            if let Some(job) = self.first(card, from) {
                self.jobs[job].place = Outward;
                self.ask(job);
            }
        }
    }

    /// Without a write buffer the job that is written back still blocks the unit.
    fn unit_free(&self, card: usize) -> bool {
        let outward = if self.cards[card].write_buffer == 0 { Outward } else { Stuck };
        self.count(card, &[Computing, Stuck, outward]) == 0
    }

    fn fetch_allowed(&self, card: usize) -> bool {
        self.count(card, &[Inward]) == 0
            && (self.unit_free(card) || self.count(card, &[Ahead]) < self.cards[card].prefetch)
    }

    fn ask(&mut self, job: usize) {
        self.bus.push(job);
        if self.bus.len() == 1 {
            self.first_on_bus();
        }
    }

    fn first_on_bus(&mut self) {
        if let Some(&job) = self.bus.first() {
            // 10 ps for the address and for each 4 bytes.
            let end = self.now + 10 * (1 + self.jobs[job].bytes.div_ceil(4));
            self.events.push((end, Event::OffBus(job)));
        }
    }

    fn count(&self, card: usize, places: &[Place]) -> usize {
        self.jobs.iter().filter(|job| job.card == card && places.contains(&job.place)).count()
    }

    fn first(&self, card: usize, place: Place) -> Option<usize> {
        self.jobs.iter().position(|job| job.card == card && job.place == place)
    }
}

#[derive(Clone, Debug)]
struct Submission {
    at: u64,
    card: usize,
    lens: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Scenario {
    cards: Vec<CardConfig>,
    submissions: Vec<Submission>,
    /// When, and which card.
    polls: Vec<(u64, usize)>,
}

/// Round figures, so that many things fall on one instant.
fn tens(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![(0..=most / 10).prop_map(|n| 10 * n), 0..=most]
}

fn config() -> impl Strategy<Value = CardConfig> {
    (tens(100), tens(100), tens(30), 0..6usize, 0..3usize, 0..3usize).prop_map(
        |(init, block, doorbell, queue, write_buffer, prefetch)| CardConfig {
            init: Duration(init),
            block: Duration(block),
            doorbell: Duration(doorbell),
            queue,
            write_buffer,
            prefetch,
            ..CardConfig::paper_230_mbit()
        },
    )
}

fn scenario() -> impl Strategy<Value = Scenario> {
    (prop::collection::vec(config(), 1..=3), 200..8_000u64).prop_flat_map(|(cards, span)| {
        let number = 0..cards.len();
        let lens = prop::collection::vec(0..80usize, 1..4);
        let submission =
            (tens(span), number.clone(), lens).prop_map(|(at, card, lens)| Submission { at, card, lens });
        let submissions = prop::collection::vec(submission, 0..40).prop_map(|mut list| {
            list.sort_by_key(|submission| submission.at);
            list
        });
        let polls = prop::collection::vec((tens(span + 1_000), number), 0..60).prop_map(|mut list| {
            list.sort();
            list
        });
        (Just(cards), submissions, polls).prop_map(|(cards, submissions, polls)| Scenario {
            cards,
            submissions,
            polls,
        })
    })
}

/// What each card delivers, by the oracle: the number of the submission, once a packet, and when.
fn expected(scenario: &Scenario) -> Vec<Vec<(u64, u64)>> {
    let mut oracle =
        Oracle { cards: &scenario.cards, jobs: Vec::new(), now: 0, events: Vec::new(), bus: Vec::new() };
    for Submission { at, card, lens } in &scenario.submissions {
        oracle.run_to(*at);
        oracle.submit(*card, lens);
    }
    oracle.run_to(u64::MAX);
    let mut lists = vec![Vec::new(); scenario.cards.len()];
    for (number, job) in oracle.jobs.iter().enumerate() {
        let packets = scenario.submissions[number].lens.len();
        match job.place {
            Gone(at) => lists[job.card].extend((0..packets).map(|packet| (token(number, packet), at))),
            place => assert_eq!(place, Refused),
        }
    }
    lists
}

fn token(submission: usize, packet: usize) -> u64 {
    submission as u64 * 1_000 + packet as u64
}

/// What the cards deliver when polled at `polls`, and what `next_due` said after each poll, as
/// (card, packets delivered before, when).
type Outcome = (Vec<Vec<(u64, u64)>>, Vec<(usize, usize, Option<u64>)>);

fn actual(scenario: &Scenario, polls: &[(u64, usize)]) -> Outcome {
    let mut bench = Bench::new(toy_bus(), &scenario.cards);
    let (mut polls, mut due) = (polls.iter().copied().peekable(), Vec::new());
    let mut poll = |bench: &mut Bench, at: u64, card: usize| {
        bench.collect(at, card);
        let next = bench.cards[card].next_due().map(|time| time.0);
        assert!(next.is_none_or(|next| next > at), "due at {next:?} and not there at {at}");
        due.push((card, bench.delivered[card].len(), next));
    };
    for (number, Submission { at, card, lens }) in scenario.submissions.iter().enumerate() {
        while let Some((at, card)) = polls.next_if(|poll| poll.0 < *at) {
            poll(&mut bench, at, card);
        }
        bench.submit(*at, *card, lens, token(number, 0));
    }
    polls.for_each(|(at, card)| poll(&mut bench, at, card));
    (bench.finish(), due)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn deliveries_are_those_of_the_oracle_however_the_cards_are_polled(scenario in scenario()) {
        let expected = expected(&scenario);
        let (coarse, _) = actual(&scenario, &[]);
        prop_assert_eq!(&coarse, &expected);
        let (fine, due) = actual(&scenario, &scenario.polls);
        prop_assert_eq!(&fine, &expected);
        for (card, before, due) in due {
            if let (Some(due), Some((_, at))) = (due, expected[card].get(before)) {
                prop_assert!(due <= *at, "card {} said {} and delivered at {}", card, due, at);
            }
        }
    }
}
