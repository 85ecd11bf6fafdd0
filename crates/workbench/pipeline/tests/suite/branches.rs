//! Branches and feedback: by hand, by Jackson's closed form, and what must hold of every network.

use forebay_models::closed;
use forebay_pipeline::scenario::Scenario;
use forebay_pipeline::*;
use forebay_time::{Duration, Time};
use proptest::prelude::*;

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn stage(name: &str, time: Law, next: &[(usize, f64)]) -> Stage {
    let next = next.iter().map(|&(stage, share)| Branch { stage, share }).collect();
    Stage { next: Some(next), ..Stage::new(name, time, 100_000) }
}

fn trace(times_us: &[u64], stages: Vec<Stage>) -> Pipeline {
    let arrival = |&t: &u64| Arrival { at: Time::ZERO + us(t), bytes: 100 };
    let arrivals = Arrivals::Trace(times_us.iter().map(arrival).collect());
    Pipeline { duration: None, arrivals, stages, ..Pipeline::default() }
}

#[test]
fn a_network_of_sure_ways_by_hand() {
    // a (10) goes to c (5), c to b (20), and b leaves: a packet at 0 and one at 12.
    let constant = |time| Law::Constant(us(time));
    let stages = vec![
        stage("a", constant(10), &[(2, 1.0)]),
        stage("b", constant(20), &[]),
        stage("c", constant(5), &[(1, 1.0)]),
    ];
    // Out at 35; a 12-22, c 22-27, b 35-55.
    let outcome = simulate(&trace(&[0, 12], stages)).unwrap();
    assert_eq!((outcome.processed, outcome.elapsed_s), (2, 55e-6));
    assert!((outcome.delay.mean_s - 39e-6).abs() < 1e-12, "{outcome:?}");
}

#[test]
fn a_stage_that_packets_come_back_to() {
    // Half of what leaves the stage comes back to its queue: a packet is served twice in the mean.
    let pipeline = trace(&[0; 4_000], vec![stage("again", Law::Constant(us(3)), &[(0, 0.5)])]);
    let outcome = simulate(&pipeline).unwrap();
    assert_eq!((outcome.processed, outcome.lost), (4_000, 0));
    let served = outcome.stages[0].processed;
    // A sum of geometric numbers: mean 8,000, variance 4,000 * 2.
    assert!((served as f64 - 8_000.0).abs() < 4.0 * 8_000f64.sqrt(), "{served}");
    // One unit is never idle before all have left.
    assert!((outcome.elapsed_s - served as f64 * 3e-6).abs() < 1e-12);
    // With one place, who comes back finds the place that it has left.
    let one = Stage { buffer: 1, ..pipeline.stages[0].clone() };
    let outcome = simulate(&Pipeline { stages: vec![one], ..pipeline }).unwrap();
    assert_eq!((outcome.processed, outcome.lost), (1, 3_999));
}

#[test]
fn ways_are_drawn_from_a_stream_of_their_own() {
    let law = Law::Exponential(us(30));
    let chain = |next: Option<Vec<Branch>>| Pipeline {
        arrivals: Arrivals::Exponential(us(50)),
        stages: vec![Stage { next, ..Stage::new("a", law.clone(), 9) }, Stage::new("b", law.clone(), 9)],
        ..Pipeline::default()
    };
    let plain = simulate(&chain(None)).unwrap();
    // A way that is sure is not drawn.
    let sure = simulate(&chain(Some(vec![Branch { stage: 1, share: 1.0 }]))).unwrap();
    assert_eq!(sure, plain);
    // Drawing ways changes nothing before them.
    let split = simulate(&chain(Some(vec![Branch { stage: 1, share: 0.5 }]))).unwrap();
    assert_eq!((split.generated, &split.stages[0]), (plain.generated, &plain.stages[0]));
    assert!(split.stages[1].processed * 10 < plain.stages[1].processed * 6);
}

/// Time in us, units and ways of a stage.
type One<'a> = (u64, u32, &'a [(usize, f64)]);
/// The gap between packets in us, and the stages.
type Net<'a> = (u64, &'a [One<'a>]);

const NETS: &[Net<'_>] = &[
    // A stage and itself.
    (100, &[(40, 1, &[(0, 0.4)])]),
    // A split that joins again.
    (50, &[(30, 1, &[(1, 0.3), (2, 0.7)]), (100, 1, &[(3, 1.0)]), (120, 3, &[(3, 1.0)]), (35, 1, &[])]),
    // Back to the beginning and to the middle, and exits on the way.
    (90, &[(30, 1, &[(1, 0.8)]), (90, 2, &[(0, 0.25), (2, 0.5)]), (60, 1, &[(2, 0.2), (1, 0.3)])]),
];

#[test]
fn an_open_network_is_jacksons() {
    for (number, &(gap, stages)) in NETS.iter().enumerate() {
        let one = |(at, &(time, units, next)): (usize, &One<'_>)| Stage {
            units,
            ..stage(&format!("s{at}"), Law::Exponential(us(time)), next)
        };
        let pipeline = Pipeline {
            arrivals: Arrivals::Exponential(us(gap)),
            duration: Some(Duration::from_millis(1_600)),
            warm_up: Duration::from_millis(100),
            stages: stages.iter().enumerate().map(one).collect(),
            ..Pipeline::default()
        };
        let network = unlimited(&pipeline).unwrap();
        let (visits, queues) = (network.visits().unwrap(), closed::stations(&network).unwrap());
        let outcomes = replicate(&pipeline, 20, 2).unwrap();
        let near = |what: &str, figure: &dyn Fn(&Outcome) -> f64, exact: f64| {
            let found = interval(&outcomes, 0.9999, figure);
            assert!(found.contains(exact), "network {number}, {what}: {found:?}, exactly {exact}");
            assert!(found.half_width < 0.1 * exact, "network {number}, {what}: {found:?}");
        };
        let delay: f64 = visits.iter().zip(&queues).map(|(visits, queue)| visits * queue.mean_delay_s).sum();
        near("delay", &|one| one.delay.mean_s, delay);
        for (at, queue) in queues.iter().enumerate() {
            near("inside", &|one| one.stages[at].mean_occupancy, queue.mean_occupancy);
            near("busy", &|one| one.stages[at].utilisation, queue.utilisation);
            near(
                "passes",
                &|one| one.stages[at].processed as f64 / one.elapsed_s,
                visits[at] * 1e6 / gap as f64,
            );
        }
    }
}

const FILE: &str = "model = \"pipeline\"\nservice = \"exponential\"\n[arrivals]\nmean = \"100 us\"\n[[stage]]\n\
name = \"parse\"\ntime = \"20 us\"\nbuffer = 50\nnext = [{ stage = \"crypto\", share = 0.7 }, { stage = \"send\", share = 0.2 }]\n\
[[stage]]\nname = \"crypto\"\ntime = \"40 us\"\nbuffer = 50\n[[stage]]\nname = \"check\"\ntime = \"10 us\"\nbuffer = 50\n\
next = [{ stage = \"crypto\", share = 0.1 }, { stage = \"send\", share = 0.9 }]\n\
[[stage]]\nname = \"send\"\ntime = \"15 us\"\nbuffer = 50\n";

fn parse(text: &str) -> Result<Scenario, Vec<(Option<usize>, String, String)>> {
    let read = Scenario::parse(text, "net.toml", &[], ".".as_ref());
    read.map_err(|errors| {
        let all = errors.findings().iter();
        all.map(|one| (one.line(), one.to_string(), one.problem().help())).collect()
    })
}

#[test]
fn a_file_with_shares() {
    let scenario = parse(FILE).unwrap();
    let ways = |at: usize| scenario.pipeline.stages[at].next.clone().unwrap();
    assert_eq!(ways(0), [Branch { stage: 1, share: 0.7 }, Branch { stage: 3, share: 0.2 }]);
    // Without `next`: the next one of the file; the last leads out.
    assert_eq!((ways(1), ways(3)), (vec![Branch { stage: 2, share: 1.0 }], vec![]));
    let again = parse(&scenario.resolved_toml()).unwrap();
    assert_eq!((&again.pipeline, &again.resolved), (&scenario.pipeline, &scenario.resolved));
    // A tenth leaves after the first stage; crypto is passed 0.7 / 0.9 times.
    let visits = scenario.pipeline.visits();
    [1.0, 0.7 / 0.9, 0.7 / 0.9, 0.9].iter().zip(&visits).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
    let closed = ClosedForm::new(&scenario).unwrap();
    assert!((closed.mean_delay_s - 94.202e-6).abs() < 1e-9, "{}", closed.mean_delay_s);
    let why = scenario.objection(&solve(&scenario.pipeline, &Default::default()).unwrap_err());
    assert_eq!(why.findings()[0].line(), Some(5));
    assert!(why.findings()[0].problem().help().contains("--unlimited"), "{why:?}");
}

#[test]
fn what_makes_no_sense_has_its_line() {
    let wrong = |from: &str, to: &str, line: usize, what: &str| {
        assert!(FILE.contains(from));
        let found = parse(&FILE.replace(from, to)).unwrap_err();
        assert_eq!(found.len(), 1, "{to}: {found:?}");
        assert!(found[0].0 == Some(line) && found[0].1.contains(what), "{to}: {found:?}");
    };
    wrong("share = 0.2", "share = 0.4", 9, "sum to 1.1");
    wrong("share = 0.2", "share = 0", 9, "`share` is 0");
    wrong("share = 0.2", "share = 1.2", 9, "`share` is 1.2");
    wrong(", share = 0.2", "", 9, "has no `share`");
    wrong("stage = \"send\", share = 0.2", "stage = \"sent\", share = 0.2", 9, "unknown stage `sent`");
    wrong("stage = \"send\", share = 0.2", "stage = \"crypto\", share = 0.2", 9, "leads to `crypto` twice");
    wrong("{ stage = \"send\", share = 0.2 }", "\"send\"", 9, "`next` is a string");
    wrong("stage = \"send\", share = 0.2", "stage = \"send\", share = 0.2, to = 1", 9, "unknown key `to`");
    wrong(
        "stage = \"crypto\", share = 0.7",
        "stage = \"parse\", share = 0.7",
        11,
        "no packet comes to `crypto`",
    );
    wrong(
        "buffer = 50\n[[stage]]\nname = \"check\"",
        "buffer = 50\nnext = \"crypto\"\n[[stage]]\nname = \"check\"",
        16,
        "no packet comes to `check`",
    );
    let round = "{ stage = \"crypto\", share = 0.1 }, { stage = \"send\", share = 0.9 }";
    wrong(round, "{ stage = \"crypto\", share = 1 }", 10, "packets that come to `crypto` never leave");
    wrong("service =", "overflow = \"block\"\nservice =", 19, "packets come back to `crypto`");
}

#[test]
fn servers_and_batches_that_ways_lead_through() {
    let server = "[[server]]\nname = \"core\"\ndiscipline = \"busy-waiting\"\n[[stage]]\nname = \"parse\"";
    let on = |stages: &[&str]| {
        let mut text = FILE.replacen("[[stage]]\nname = \"parse\"", server, 1);
        for name in stages {
            text = text
                .replace(&format!("name = \"{name}\"\n"), &format!("name = \"{name}\"\nserver = \"core\"\n"));
        }
        parse(&text)
    };
    let found = on(&["parse", "crypto"]).unwrap_err();
    assert!(found[0].1.contains("holds the busy-waiting `core` from `parse`"), "{found:?}");
    let found = on(&["crypto", "check", "send"]).unwrap_err();
    assert!(found[0].1.contains("amid the stages"), "{found:?}");
    // From its last stage a packet may go anywhere, and back to its first.
    assert!(on(&["crypto", "check"]).is_ok());
    let forward =
        FILE.replace("{ stage = \"crypto\", share = 0.1 }, ", "").replace("share = 0.9", "share = 1");
    let blocks = forward.replace("service =", "overflow = \"block-after-service\"\nservice =");
    assert!(parse(&blocks).is_ok());
    let batch = blocks.replacen("buffer = 50", "buffer = 50\nbatch = 2", 1);
    assert!(parse(&batch).unwrap_err()[0].1.contains("batches of `parse` go several ways"));
}

/// A network in which every stage has an exit or a later stage; forwards only where stages wait for room.
fn network() -> impl Strategy<Value = Pipeline> {
    let overflow = prop::sample::select(vec![Overflow::Drop, Overflow::Block, Overflow::BlockAfterService]);
    let one = (0..60u64, 1..5u32, 1..4u32, prop::collection::vec((0..6usize, 1..10u32), 0..4));
    let times = prop::collection::vec(0..2_000u64, 1..60);
    (times, prop::collection::vec(one, 1..6), overflow, any::<u64>()).prop_map(
        |(mut times, all, overflow, seed)| {
            times.sort_unstable();
            let count = all.len();
            let stages = all.into_iter().enumerate().map(|(at, (time, buffer, units, ways))| {
                let mut next: Vec<(usize, f64)> = Vec::new();
                // To the next one always, so that every stage is come to; an eighth leaves.
                ways.into_iter().chain([(at + 1, 5)]).for_each(|(to, weight)| {
                    let may = to < count && (overflow == Overflow::Drop || to > at);
                    if may && next.iter().all(|(known, _)| *known != to) {
                        next.push((to, f64::from(weight)));
                    }
                });
                let sum: f64 = next.iter().map(|(_, weight)| weight).sum();
                next.iter_mut().for_each(|(_, weight)| *weight *= 0.875 / sum);
                Stage { buffer, units, ..stage(&format!("s{at}"), Law::Exponential(us(time)), &next) }
            });
            Pipeline { seed, overflow, ..trace(&times, stages.collect()) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn packets_are_conserved_and_all_leave(pipeline in network()) {
        let outcome = simulate(&pipeline).unwrap();
        prop_assert_eq!(outcome.in_flight, 0);
        prop_assert_eq!(outcome.generated, outcome.processed + outcome.lost);
        if pipeline.overflow != Overflow::Drop {
            prop_assert!(outcome.stages[1..].iter().all(|stage| stage.lost == 0));
        }
        for (stage, description) in outcome.stages.iter().zip(&pipeline.stages) {
            prop_assert!(stage.utilisation <= 1.0 + 1e-9);
            prop_assert!(stage.max_queue < description.buffer.max(2));
            prop_assert!(stage.blocked <= stage.mean_occupancy + 1e-9);
        }
        // Little: all that is inside, and the delays of all that were.
        if outcome.lost == 0 {
            let inside: f64 = outcome.stages.iter().map(|stage| stage.mean_occupancy).sum();
            let delays = outcome.delay.mean_s * outcome.processed as f64 / outcome.elapsed_s.max(1e-12);
            prop_assert!((inside - delays).abs() <= 1e-6 * inside.max(1e-9), "{} {}", inside, delays);
        }
    }
}
