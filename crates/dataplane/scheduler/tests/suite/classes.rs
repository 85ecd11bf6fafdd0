//! Service classes: by hand, and against the rule word by word over plain lists.

use forebay_scheduler::{ClassConfig, Config, Cost, Decision, Item, ProcessorConfig, Scheduler, Service};
use forebay_time::{Duration, Time};
use proptest::prelude::*;

const STRICT: Service = Service::Strict;

fn weighted(weight: u32) -> Service {
    Service::Weighted { weight }
}

/// Processor i has suite i and nothing else, so that a job's place is known beforehand.
fn processors(count: usize, queue: usize) -> Vec<ProcessorConfig> {
    let cost = Cost { init: Duration(10), ..Cost::default() };
    let one =
        |suite: usize| ProcessorConfig { suites: 1 << suite, queue, ..ProcessorConfig::accelerator(cost) };
    (0..count).map(one).collect()
}

fn scheduler(processors: Vec<ProcessorConfig>, classes: Vec<ClassConfig>) -> Scheduler {
    Scheduler::new(Config { classes, ..Config::new(processors) }).unwrap()
}

/// An SA of its own for each class and suite.
fn item(id: u64, class: u8, suite: u8, bytes: u32) -> Item {
    Item { id, sa: u32::from(class) * 64 + u32::from(suite), class, suite, bytes }
}

/// Places all that can leave now; the first ids of the jobs, and how it ended.
fn drain(s: &mut Scheduler, now: u64) -> (Vec<u64>, Decision<'static>) {
    let mut ids = vec![];
    loop {
        match s.next(Time(now)) {
            Decision::Dispatch { job, .. } => ids.extend(job.items()),
            Decision::Blocked { processor } => return (ids, Decision::Blocked { processor }),
            Decision::Wait { until } => return (ids, Decision::Wait { until }),
            Decision::Idle => return (ids, Decision::Idle),
            Decision::Nowhere { .. } => panic!("every suite has a processor"),
        }
    }
}

#[test]
fn strict_classes_go_by_number_and_weighted_ones_share_what_they_leave() {
    let classes = [STRICT, STRICT, weighted(1), weighted(2)].map(ClassConfig::new);
    let mut s = scheduler(processors(1, 100), classes.to_vec());
    for id in 0..16 {
        s.push(Time(0), item(id, 3 - (id % 4) as u8, 0, 1_000)).unwrap();
    }
    // Class 0 has 3 7 11 15, class 1 2 6 .., class 2 1 5 .., class 3 0 4 ...; of 2 and 3, whose rounds are
    // 1500 and 3000 bytes: two, three, then 2 has 1000 left of its second round.
    assert_eq!(drain(&mut s, 0).0, [3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 0, 4, 8, 9, 12, 13]);
    // A class beyond the last counts as the last.
    s.push(Time(0), item(16, 200, 0, 1_000)).unwrap();
    assert_eq!(s.class_len(3), 1);
}

#[test]
fn a_blocked_class_holds_back_itself_and_no_other() {
    let mut s = scheduler(processors(2, 1), [STRICT, STRICT].map(ClassConfig::new).to_vec());
    for (id, class, suite) in [(0, 1, 0), (1, 1, 0), (2, 1, 1)] {
        s.push(Time(0), item(id, class, suite, 100)).unwrap();
    }
    assert_eq!(drain(&mut s, 0), (vec![0], Decision::Blocked { processor: 0 }));
    // 1 is blocked and 2 behind it; the urgent one's queue has room.
    s.push(Time(1), item(3, 0, 1, 100)).unwrap();
    assert_eq!(drain(&mut s, 1), (vec![3], Decision::Blocked { processor: 0 }));
    // Both wait for the same queue: the urgent one is first, although it came later.
    s.push(Time(2), item(4, 0, 0, 100)).unwrap();
    assert_eq!(drain(&mut s, 2), (vec![], Decision::Blocked { processor: 0 }));
    s.taken(0, Time(3));
    assert_eq!(drain(&mut s, 3), (vec![4], Decision::Blocked { processor: 0 }));
    s.taken(0, Time(4));
    assert_eq!(drain(&mut s, 4), (vec![1], Decision::Blocked { processor: 1 }));
}

#[test]
fn each_class_has_its_own_window_timeout_and_input() {
    let bulk = ClassConfig { window: 4, timeout: Some(Duration(50)), input: 4, ..ClassConfig::new(STRICT) };
    let urgent = ClassConfig { input: 2, queue: usize::MAX, ..ClassConfig::new(STRICT) };
    let mut s = scheduler(processors(1, 1), vec![urgent, bulk]);
    assert_eq!((s.classes(), s.input_room(), s.class_room(0), s.class_room(1)), (2, 2, 2, 4));
    for id in 0..3 {
        s.push(Time(id), item(id, 1, 0, 100)).unwrap();
    }
    // Bulk is still bundled; the urgent packet does not wait for that.
    s.push(Time(10), item(3, 0, 0, 100)).unwrap();
    assert_eq!(drain(&mut s, 10), (vec![3], Decision::Wait { until: Time(50) }));
    // One class is blocked and another waits: both are to be known.
    s.push(Time(20), item(4, 0, 0, 100)).unwrap();
    assert_eq!(drain(&mut s, 20), (vec![], Decision::Blocked { processor: 0 }));
    assert_eq!(s.due(), Time(50));
    // Bulk fills its own input only.
    s.push(Time(20), item(5, 1, 0, 100)).unwrap();
    assert_eq!(s.push(Time(20), item(6, 1, 0, 100)), Err(item(6, 1, 0, 100)));
    assert_eq!(s.push(Time(20), item(7, 0, 0, 100)), Ok(()));
    assert_eq!((s.input_room(), s.class_room(0), s.class_len(1), s.input_len()), (0, 1, 4, 5));
    assert_eq!(s.due(), Time::MAX, "bulk's window is full");
}

#[test]
fn of_classes_that_place_nothing_a_blocked_one_is_said_first_then_the_one_that_is_due_first() {
    let class =
        |timeout| ClassConfig { window: 4, timeout: Some(Duration(timeout)), ..ClassConfig::new(STRICT) };
    for timeouts in [[50, 20], [20, 50], [20, 20]] {
        let mut s = scheduler(processors(1, 1), timeouts.map(class).to_vec());
        [0, 1].into_iter().for_each(|id| s.push(Time(0), item(id, id as u8, 0, 100)).unwrap());
        assert_eq!(drain(&mut s, 0), (vec![], Decision::Wait { until: Time(20) }), "{timeouts:?}");
    }
    for waiting in 0..2u8 {
        let mut classes = vec![ClassConfig::new(STRICT); 2];
        classes[usize::from(waiting)] = class(50);
        let mut s = scheduler(processors(1, 1), classes);
        for (id, class) in [(0, 1 - waiting), (1, 1 - waiting), (2, waiting)] {
            s.push(Time(0), item(id, class, 0, 100)).unwrap();
        }
        assert_eq!(drain(&mut s, 0), (vec![0], Decision::Blocked { processor: 0 }), "class {waiting} waits");
    }
}

#[test]
fn bulk_leaves_places_of_the_queues_to_the_urgent() {
    let bulk = ClassConfig { queue: 2, ..ClassConfig::new(STRICT) };
    let mut s = scheduler(processors(1, 4), vec![ClassConfig::new(STRICT), bulk]);
    for id in 0..4 {
        s.push(Time(0), item(id, 1, 0, 100)).unwrap();
    }
    assert_eq!(drain(&mut s, 0), (vec![0, 1], Decision::Blocked { processor: 0 }));
    for id in 4..7 {
        s.push(Time(0), item(id, 0, 0, 100)).unwrap();
    }
    // However much bulk there is, an urgent job finds two of it ahead at most.
    assert_eq!(drain(&mut s, 0), (vec![4, 5], Decision::Blocked { processor: 0 }));
}

#[test]
fn classes_that_cannot_work_are_refused_with_their_number() {
    let said = |classes: Vec<ClassConfig>| {
        Scheduler::new(Config { classes, ..Config::new(processors(1, 1)) }).unwrap_err().to_string()
    };
    let good = ClassConfig::new(weighted(1));
    assert_eq!(
        said(vec![good, ClassConfig { window: 0, ..good }]),
        "class 1: the window is 0 packets; 1 is none"
    );
    assert_eq!(
        said(vec![ClassConfig { window: 8, input: 7, ..good }]),
        "class 0: an input of 7 packets never fills a window of 8"
    );
    assert_eq!(said(vec![ClassConfig::new(weighted(0))]), "class 0: the weight is 0; it is at least 1");
    assert_eq!(
        said(vec![ClassConfig { queue: 0, ..good }]),
        "class 0: it may use no place of a queue; it needs at least 1"
    );
    assert_eq!(
        said(vec![good, ClassConfig::new(STRICT)]),
        "class 1: it is strict but stands behind a weighted one; strict classes come first"
    );
    assert_eq!(said(vec![good; 257]), "257 classes; there may be 256");
}

/// A card with a queue of eight that takes 100 for each job, and bulk and more of it in the input all
/// the time; the class that left in each of the card's turns, and the longest that one of class 0 took.
fn overload(classes: Vec<ClassConfig>, urgent_every: u64, turns: u64) -> (Vec<u8>, u64) {
    let cost = Cost { init: Duration(100), ..Cost::default() };
    let card = ProcessorConfig { queue: 8, ..ProcessorConfig::accelerator(cost) };
    let count = classes.len() as u8;
    let mut s = scheduler(vec![card], classes);
    let (mut queue, mut served, mut longest) = (std::collections::VecDeque::new(), vec![], 0);
    for turn in 0..turns {
        let now = turn * 100;
        if turn % urgent_every == 0 {
            let _ = s.push(Time(now), item(now, 0, 0, 1_000));
        }
        for class in 1..count {
            while s.class_room(class) > 0 {
                s.push(Time(now), item(now, class, 0, 1_000)).unwrap();
            }
        }
        loop {
            while let Decision::Dispatch { job, .. } = s.next(Time(now)) {
                queue.push_back((job.head.class, job.items()[0]));
            }
            if s.unfinished(0) > s.waiting(0) {
                break;
            }
            s.taken(0, Time(now));
        }
        let (class, came) = queue.pop_front().unwrap();
        s.finished(0);
        served.push(class);
        if class == 0 {
            longest = longest.max(now + 100 - came);
        }
    }
    (served, longest)
}

#[test]
fn an_urgent_packet_waits_for_what_bulk_may_have_in_a_queue_and_no_more() {
    let bulk = |queue| ClassConfig { input: 50, queue, ..ClassConfig::new(STRICT) };
    let urgent = ClassConfig::new(STRICT);
    // It finds the queue full of bulk, or with two of it and one being worked at, and takes one turn itself.
    let (_, longest) = overload(vec![urgent, bulk(usize::MAX)], 10, 1_000);
    assert!((800..=1_000).contains(&longest), "{longest}");
    let (served, longest) = overload(vec![urgent, bulk(2)], 10, 1_000);
    assert!(longest <= 400, "{longest}");
    assert!(served.iter().filter(|&&class| class == 0).count() >= 99);
}

#[test]
fn weighted_classes_share_an_overloaded_processor_and_none_starves() {
    let class = |weight| ClassConfig { input: 50, ..ClassConfig::new(weighted(weight)) };
    let (served, _) = overload(vec![class(1), class(1), class(2), class(4)], 1, 7_000);
    let count = |class: u8| served.iter().filter(|&&one| one == class).count();
    // Class 0 has one packet for each turn, more than its eighth.
    for (class, share) in [(1, 875), (2, 1_750), (3, 3_500)] {
        assert!(count(class).abs_diff(share) <= 20, "{class}: {}", count(class));
    }
    assert_eq!(count(0) + count(1) + count(2) + count(3), 7_000);
    // With strict classes, the last one does starve: that is what strict means.
    let strict = ClassConfig { input: 50, ..ClassConfig::new(STRICT) };
    let (served, _) = overload(vec![strict; 3], 2, 1_000);
    assert!(served.iter().all(|&class| class < 2));
}

/// The rule word by word. A class: its packets, the job it has formed, and what it may use of a queue.
struct Class {
    config: ClassConfig,
    input: Vec<(Item, u64)>,
    hand: Option<Vec<Item>>,
    credit: i64,
}

struct Oracle {
    classes: Vec<Class>,
    /// Weighted classes, the next one first.
    line: Vec<usize>,
    /// Jobs waiting by processor, which is the suite.
    waiting: Vec<usize>,
    queue: usize,
    ended: Vec<bool>,
}

impl Oracle {
    fn is_ready(&self, class: usize, now: u64) -> bool {
        let Class { config, input, hand, .. } = &self.classes[class];
        let Some((_, arrived)) = input.first() else { return hand.is_some() };
        let due = config.timeout.is_some_and(|timeout| now >= arrived + timeout.0);
        hand.is_some() || input.len() >= config.window || due || self.ended[class]
    }

    /// Forms the class's job if it is ready; whether it has one that its queue takes.
    fn is_free(&mut self, class: usize, now: u64) -> bool {
        if !self.is_ready(class, now) {
            return false;
        }
        let Class { config, input, hand, .. } = &mut self.classes[class];
        let job = hand.get_or_insert_with(|| {
            let (first, _) = input[0];
            let window: Vec<Item> = input.iter().take(config.window).map(|packet| packet.0).collect();
            let job: Vec<Item> = window.into_iter().filter(|packet| packet.sa == first.sa).collect();
            input.retain(|packet| !job.contains(&packet.0));
            job
        });
        self.waiting[usize::from(job[0].suite)] < self.queue.min(config.queue)
    }

    /// The class and the ids of the next job.
    fn next(&mut self, now: u64) -> Option<(usize, Vec<u64>)> {
        let strict = self.classes.iter().filter(|class| class.config.service == STRICT).count();
        let mut chosen = (0..strict).find(|&class| self.is_free(class, now));
        let mut place = 0;
        while chosen.is_none() && place < self.line.len() {
            let class = self.line[place];
            let Service::Weighted { weight } = self.classes[class].config.service else { unreachable!() };
            if !self.is_ready(class, now) {
                self.classes[class].credit = self.classes[class].credit.min(0);
                place += 1;
            } else if self.classes[class].credit <= 0 {
                self.classes[class].credit += i64::from(weight) * 1_500;
                let class = self.line.remove(place);
                self.line.push(class);
            } else if self.is_free(class, now) {
                chosen = Some(class);
            } else {
                place += 1;
            }
        }
        let class = chosen?;
        let job = self.classes[class].hand.take().unwrap();
        self.classes[class].credit -= job.iter().map(|packet| i64::from(packet.bytes)).sum::<i64>();
        self.waiting[usize::from(job[0].suite)] += 1;
        Some((class, job.iter().map(|packet| packet.id).collect()))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { class: u8, suite: u8, bytes: u32 },
    Pass(u64),
    Take(u8),
    Next(usize),
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        9 => (0u8..5, 0u8..3, 1u32..3_000).prop_map(|(class, suite, bytes)| Step::Push { class, suite, bytes }),
        2 => (0u64..40).prop_map(Step::Pass),
        4 => (0u8..3).prop_map(Step::Take),
        5 => (1usize..5).prop_map(Step::Next),
        1 => Just(Step::End),
    ]
}

fn class(service: Service) -> impl Strategy<Value = ClassConfig> {
    let timeout = prop::option::of((0u64..80).prop_map(Duration));
    (1usize..5, timeout, 0usize..12, 1usize..4).prop_map(move |(window, timeout, beyond, queue)| {
        let (input, queue) = (window + beyond, if queue == 3 { usize::MAX } else { queue });
        ClassConfig { window, timeout, input, queue, ..ClassConfig::new(service) }
    })
}

fn classes() -> impl Strategy<Value = Vec<ClassConfig>> {
    let strict = prop::collection::vec(class(STRICT), 0..3);
    let shared = prop::collection::vec((1u32..4).prop_flat_map(|weight| class(weighted(weight))), 0..4);
    let both = (strict, shared).prop_map(|(strict, shared)| [strict, shared].concat());
    both.prop_filter("at least one", |classes| !classes.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_rule_word_by_word(
        configs in classes(),
        queue in 1usize..4,
        steps in prop::collection::vec(step(), 0..250),
    ) {
        let count = configs.len();
        let mut s = scheduler(processors(3, queue), configs.clone());
        let mut oracle = Oracle {
            classes: configs.iter().map(|&config| Class { config, input: vec![], hand: None, credit: 0 }).collect(),
            line: (0..count).filter(|&class| configs[class].service != STRICT).collect(),
            waiting: vec![0; 3],
            queue,
            ended: vec![false; count],
        };
        let (mut now, mut pushed, mut left) = (0, vec![], vec![]);
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { class, suite, bytes } => {
                    let item = item(id as u64, class, suite, bytes);
                    let last = usize::from(class).min(count - 1);
                    let has_room = oracle.classes[last].input.len() < configs[last].input;
                    prop_assert_eq!(s.push(Time(now), item).is_ok(), has_room);
                    if has_room {
                        oracle.classes[last].input.push((item, now));
                        oracle.ended[last] = false;
                        pushed.push((last, item));
                    }
                }
                Step::Pass(time) => now += time,
                Step::Take(processor) => {
                    let processor = usize::from(processor);
                    if oracle.waiting[processor] > 0 {
                        oracle.waiting[processor] -= 1;
                        s.taken(processor, Time(now));
                        s.finished(processor);
                    }
                }
                Step::End => {
                    s.end_of_input();
                    oracle.ended.fill(true);
                }
                Step::Next(times) => for _ in 0..times {
                    let expected = oracle.next(now);
                    let found = match s.next(Time(now)) {
                        Decision::Dispatch { job, .. } => Some(job.items().to_vec()),
                        Decision::Wait { until } => { prop_assert!(until > Time(now)); None }
                        _ => None,
                    };
                    prop_assert_eq!(&found, &expected.as_ref().map(|(_, ids)| ids.clone()));
                    if let Some((class, ids)) = expected {
                        left.extend(ids.into_iter().map(|id| (class, id)));
                    }
                    prop_assert_eq!(s.input_len(), oracle.classes.iter().map(|c| c.input.len()).sum::<usize>());
                },
            }
        }
        // The rest leaves too: each packet once, and in order within its SA and class.
        s.end_of_input();
        let class_of = |id| pushed.iter().find(|(_, item)| item.id == id).unwrap().0;
        loop {
            match s.next(Time(now)) {
                Decision::Dispatch { job, .. } => left.extend(job.items().iter().map(|&id| (class_of(id), id))),
                Decision::Blocked { .. } => for processor in 0..3 {
                    s.complete(processor, s.unfinished(processor), Time(now));
                },
                _ => break,
            }
        }
        let sa = |id: u64| pushed.iter().find(|(_, item)| item.id == id).unwrap().1.sa;
        let mut expected: Vec<_> = pushed.iter().map(|(class, item)| (*class, item.id)).collect();
        expected.sort_by_key(|&(class, id)| (class, sa(id), id));
        left.sort_by_key(|&(class, id)| (class, sa(id)));
        prop_assert_eq!(left, expected);
    }

    #[test]
    fn one_class_given_by_hand_is_what_a_configuration_without_classes_has(
        window in 1usize..6,
        timeout in prop::option::of((0u64..60).prop_map(Duration)),
        max_bytes in prop::option::of(0u64..700),
        beyond in 0usize..20,
        service in prop_oneof![Just(STRICT), Just(weighted(3))],
        steps in prop::collection::vec((0u8..6, 0u8..3, 0u32..300), 0..200),
    ) {
        let input = window + beyond;
        let plain = Config { window, timeout, max_bytes, input, ..Config::new(processors(3, 2)) };
        let class = ClassConfig { window, timeout, max_bytes, input, ..ClassConfig::new(service) };
        let mut classed = scheduler(processors(3, 2), vec![class]);
        let mut plain = Scheduler::new(plain).unwrap();
        for (id, (what, suite, bytes)) in (0u64..).zip(steps) {
            let now = Time(id * 7);
            match what {
                0..4 => prop_assert_eq!(
                    plain.push(now, item(id, what, suite, bytes)),
                    classed.push(now, item(id, what, suite, bytes))
                ),
                4 => for s in [&mut plain, &mut classed] {
                    let processor = usize::from(suite);
                    s.complete(processor, s.unfinished(processor), now);
                },
                _ => {}
            }
            loop {
                let (one, other) = (plain.next(now), classed.next(now));
                prop_assert_eq!(&one, &other);
                if !matches!(one, Decision::Dispatch { .. }) {
                    break;
                }
            }
        }
    }
}
