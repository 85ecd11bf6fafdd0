//! Limits with closed forms, what must hold of every run, and the inline card.

use forebay_models::card::Card;
use forebay_models::{closed, solve};
use forebay_pipeline::*;
use forebay_time::{Duration, Time};
use proptest::prelude::*;

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn single(gap_us: u64, stage: Stage) -> Pipeline {
    Pipeline {
        arrivals: Arrivals::Exponential(us(gap_us)),
        duration: Some(Duration::from_millis(2_200)),
        warm_up: Duration::from_millis(200),
        stages: vec![stage],
        ..Pipeline::default()
    }
}

#[test]
fn one_queue() {
    let stage = |law, buffer| Stage::new("only", law, buffer);
    let exponential = |mean| Law::Exponential(us(mean));
    let holds = |pipeline: &Pipeline, figure: fn(&Outcome) -> f64, exact: f64| {
        let found = interval(&replicate(pipeline, 20, 2).unwrap(), 0.999, figure);
        assert!(found.contains(exact), "{found:?}, exactly {exact}");
    };
    let delay = |o: &Outcome| o.delay.mean_s;
    let mm1 = closed::mm1(1e4, 2e4).unwrap();
    holds(&single(100, stage(exponential(50), 10_000)), delay, mm1.mean_delay_s);
    holds(&single(100, stage(exponential(50), 10_000)), |o| o.stages[0].mean_queue, mm1.mean_queue);
    let mm1k = closed::mm1k(1e4, 1e4, 5);
    holds(&single(100, stage(exponential(100), 5)), |o| o.loss_probability, mm1k.loss_probability);
    let mmc = closed::mmc(1e4, 1e6 / 240.0, 3).unwrap();
    holds(&single(100, Stage { units: 3, ..stage(exponential(240), 10_000) }), delay, mmc.mean_delay_s);
    // Pollaczek and Khinchine: wait = rho E[S] (1 + cv^2) / (2 (1 - rho)); cv^2 is 0, 1/4, and of the
    // two values 20 and 80 with mean 50, 9/25.
    let queue = |cv2: f64| 50e-6 + 0.5 * 50e-6 * (1.0 + cv2) / (2.0 * 0.5);
    holds(&single(100, stage(Law::Constant(us(50)), 10_000)), delay, queue(0.0));
    holds(&single(100, stage(Law::Erlang { mean: us(50), phases: 4 }, 10_000)), delay, queue(0.25));
    holds(&single(100, stage(Law::Empirical(vec![us(20), us(80)]), 10_000)), delay, queue(0.36));
}

#[test]
fn the_card_carries_its_limit() {
    let payload = 8_942.0;
    let card = Card::grip(9_000.0 - payload);
    let limit = card.limit(payload).payload_bps;
    let outcome = simulate(&Pipeline::card(&card, payload as u32, 2e9, 64)).unwrap();
    let carried = outcome.throughput_pps * payload * 8.0;
    assert!((carried / limit - 1.0).abs() < 0.002, "{carried} {limit}");
    // What it can carry, it carries without loss.
    let outcome = simulate(&Pipeline::card(&card, payload as u32, 890e6, 64)).unwrap();
    assert_eq!(outcome.lost, 0);
    let expected = card.carried(payload, 890e6).utilisation;
    for (stage, expected) in outcome.stages.iter().zip(expected) {
        assert!((stage.utilisation - expected).abs() < 1e-3, "{stage:?} {expected}");
    }
}

#[test]
fn a_run_can_be_repeated_and_threads_change_nothing() {
    let core = Discipline::interrupt_driven(us(40), us(2));
    let mut pipeline = Pipeline::ixp425(us(75), core);
    pipeline.stages[2].time = Law::Erlang { mean: us(12), phases: 3 };
    assert_eq!(simulate(&pipeline).unwrap(), simulate(&pipeline).unwrap());
    assert_eq!(replicate(&pipeline, 5, 1).unwrap(), replicate(&pipeline, 5, 3).unwrap());
    let other = simulate(&Pipeline { seed: 2, ..pipeline.clone() }).unwrap();
    assert_ne!(other.fingerprint, simulate(&pipeline).unwrap().fingerprint);
    // A stage put in between draws times of its own and leaves the others theirs.
    let generated = |p: &Pipeline| simulate(p).unwrap().generated;
    let before = generated(&pipeline);
    pipeline.stages.insert(1, Stage::new("new", Law::Exponential(us(1)), 9));
    assert_eq!(generated(&pipeline), before);
}

#[test]
fn the_event_stream_is_what_it_was() {
    // A changed fingerprint needs a reason in its commit.
    let core = Discipline::interrupt_driven(us(100), us(1));
    let outcome = simulate(&Pipeline::ixp425(us(80), core).markov()).unwrap();
    assert_eq!(outcome.fingerprint, "7b59f34c6a0709e1");
}

#[test]
fn descriptions_and_outcomes_as_json() {
    let pipeline = Pipeline::ixp425(us(70), Discipline::busy_waiting());
    let text = serde_json::to_string(&pipeline).unwrap();
    assert!(text.contains(r#""time":{"constant":0.0000273}"#), "{text}");
    assert_eq!(serde_json::from_str::<Pipeline>(&text).unwrap(), pipeline);
    let outcome = serde_json::to_value(simulate(&pipeline).unwrap()).unwrap();
    for key in ["generated", "processed", "lost", "stages", "servers", "delay"] {
        assert!(outcome.get(key).is_some(), "{key}");
    }
    let solution = solve(&network(&Pipeline::default_stage()).unwrap(), &Default::default()).unwrap();
    let solution = serde_json::to_value(solution).unwrap();
    for key in ["states", "throughput_pps", "loss_probability", "stages", "servers", "residual"] {
        assert!(solution.get(key).is_some(), "{key}");
    }
}

trait One {
    fn default_stage() -> Pipeline;
}

impl One for Pipeline {
    fn default_stage() -> Pipeline {
        single(100, Stage::new("only", Law::Exponential(us(50)), 3))
    }
}

#[test]
fn nonsense_is_refused() {
    let good = || Pipeline::ixp425(us(70), Discipline::busy_waiting());
    let bad = |change: fn(&mut Pipeline)| {
        let mut pipeline = good();
        change(&mut pipeline);
        simulate(&pipeline).unwrap_err().0
    };
    assert!(bad(|p| p.stages.clear()).contains("no stages"));
    assert!(bad(|p| p.stages[3].buffer = 0).contains("ip"));
    assert!(bad(|p| p.stages[3].server = Some(7)).contains("no such server"));
    assert!(bad(|p| p.duration = None).contains("duration"));
    assert!(bad(|p| p.arrivals = Arrivals::Exponential(Duration::ZERO)).contains("zero"));
    assert!(bad(|p| p.stages[0].time = Law::Empirical(vec![])).contains("empty"));
    assert!(
        bad(|p| p.servers[0].discipline = Discipline::interrupt_driven(Duration::ZERO, Duration::ZERO))
            .contains("run")
    );
    assert!(bad(|p| p.warm_up = Duration::from_millis(500)).contains("warm"));
}

fn law() -> impl Strategy<Value = Law> {
    let time = (0..100u64).prop_map(us);
    prop_oneof![
        time.clone().prop_map(Law::Constant),
        time.clone().prop_map(Law::Exponential),
        (time.clone(), 1..5u32).prop_map(|(mean, phases)| Law::Erlang { mean, phases }),
        prop::collection::vec(time, 1..4).prop_map(Law::Empirical),
        (1e7..1e10f64, 0..100u32)
            .prop_map(|(bits_per_s, overhead_bytes)| Law::Rate { bits_per_s, overhead_bytes }),
    ]
}

fn server() -> impl Strategy<Value = Server> {
    let grants = [Grant::FirstAsked, Grant::RoundRobin, Grant::Priority, Grant::PreemptivePriority];
    let run_length =
        prop_oneof![(1..100u64).prop_map(us).prop_map(Law::Constant), Just(Law::Exponential(us(20)))];
    let turns = (run_length, law(), any::<bool>(), prop::sample::select(grants.to_vec()));
    let discipline = prop_oneof![
        (1..4u32, law())
            .prop_map(|(contexts, switch_delay)| Discipline::BusyWaiting { contexts, switch_delay }),
        turns.prop_map(|(run_length, switch_delay, slice, grant)| Discipline::InterruptDriven {
            run_length,
            switch_delay,
            run_ends: if slice { RunEnds::Slice } else { RunEnds::Packet },
            grant
        }),
    ];
    (1..3u32, discipline).prop_map(|(cores, discipline)| Server {
        name: "core".into(),
        cores,
        discipline,
        breakdowns: None,
        power: None,
    })
}

fn pipeline() -> impl Strategy<Value = Pipeline> {
    let stage = (law(), 1..6u32, any::<bool>(), 1..4u32, 1..4u32, 0..3u32).prop_map(
        |(time, buffer, shared, units, batch, priority)| Stage {
            units: if shared { 1 } else { units },
            server: shared.then_some(0),
            batch,
            priority,
            ..Stage::new("s", time, buffer)
        },
    );
    let arrivals = prop::collection::vec((0..3_000u64, 40..1500u32), 1..80).prop_map(|mut packets| {
        packets.sort_unstable();
        Arrivals::Trace(
            packets.into_iter().map(|(t, bytes)| Arrival { at: Time::ZERO + us(t), bytes }).collect(),
        )
    });
    (arrivals, server(), prop::collection::vec(stage, 1..6), any::<bool>(), any::<u64>()).prop_map(
        |(arrivals, server, mut stages, block, seed)| {
            if matches!(server.discipline, Discipline::BusyWaiting { .. }) {
                stages.iter_mut().for_each(|stage| stage.batch = 1);
            }
            let overflow = if block { Overflow::Block } else { Overflow::Drop };
            Pipeline {
                seed,
                duration: None,
                arrivals,
                overflow,
                servers: vec![server],
                stages,
                ..Pipeline::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packets_are_conserved_and_all_leave(pipeline in pipeline()) {
        let whole = simulate(&pipeline).unwrap();
        prop_assert_eq!(whole.in_flight, 0);
        prop_assert_eq!(whole.generated, whole.processed + whole.lost);
        if pipeline.overflow == Overflow::Block {
            prop_assert!(whole.stages[1..].iter().all(|stage| stage.lost == 0));
        }
        let mut enter = whole.generated;
        for (stage, description) in whole.stages.iter().zip(&pipeline.stages) {
            prop_assert!(stage.utilisation <= 1.0 + 1e-9);
            prop_assert!(stage.max_queue < description.buffer.max(2));
            prop_assert!(stage.mean_queue <= stage.mean_occupancy + 1e-9);
            enter -= stage.lost;
            prop_assert_eq!(stage.processed, enter);
        }
        for server in &whole.servers {
            prop_assert!(server.utilisation + server.switching + server.waiting <= 1.0 + 1e-9);
        }
        // Little: mean occupancy over the run, and delays of all that were in it.
        let inside: f64 = whole.stages.iter().map(|stage| stage.mean_occupancy).sum();
        if whole.lost == 0 {
            let delays = whole.delay.mean_s * whole.processed as f64 / whole.elapsed_s;
            prop_assert!((inside - delays).abs() <= 1e-6 * inside.max(1e-9), "{} {}", inside, delays);
        }
        // Cut short, what has not left is in flight.
        let cut = Pipeline { duration: Some(us(1_500)), ..pipeline };
        let part = simulate(&cut).unwrap();
        prop_assert_eq!(part.generated, part.processed + part.lost + part.in_flight);
    }
}
