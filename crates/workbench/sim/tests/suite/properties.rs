//! Properties of every run: no packet is lost or processed twice, no processor is idle while it has work, each
//! processor keeps the order, a bus carries one transfer at a time, and a run is a function of scenario and seed.

use std::path::Path;

use forebay_sim::{Bound, Columns, Options, Outcome, Scenario, highest_rate, run};
use forebay_time::Duration;
use proptest::prelude::*;

fn scenario() -> impl Strategy<Value = String> {
    let traffic = prop_oneof![
        Just("source = \"paper\""),
        Just("source = \"imix\""),
        Just("source = \"exponential\"\nmean = 471\nmin = 20\nmax = 7065"),
        Just("source = \"fixed\"\nvalue = 24"),
        Just("source = \"histogram\"\nbins = [[40, 3], [41, 1500, 1]]"),
    ];
    let arrivals = prop_oneof![
        Just("arrivals = \"back-to-back\""),
        Just("arrivals = \"poisson\""),
        Just("arrivals = \"on-off\"\non = \"100 us\"\noff = \"50 us\""),
    ];
    let card = (1..5u32, 0..3u32, 0..3u32, prop_oneof![Just(1), Just(50), Just(1_000)]);
    let scheduler = (1..31u32, prop::option::of(0..100u32), any::<bool>());
    let batches = prop::option::of((2..65u32, 1..20u32, any::<bool>(), 0..5u32));
    (traffic, arrivals, 1..2_000u64, card, scheduler, 0..1_000u64, 1..200u32, batches).prop_map(
        |(
            traffic,
            arrivals,
            mbit,
            (count, write_buffer, prefetch, queue),
            (window, timeout, aware),
            seed,
            sas,
            batches,
        )| {
            let timeout = timeout.map(|us| format!("timeout = \"{us} us\"\n")).unwrap_or_default();
            let (aware, batches, real) = match batches {
                None => (aware, String::new(), String::new()),
                Some((burst, lanes, each, wake)) => {
                    let answers = if each { "each" } else { "batch" };
                    let real = format!(
                        "submit = \"2 us\"\nwake = \"{wake} us\"\nlanes = {lanes}\nanswers = \"{answers}\"\n"
                    );
                    (false, format!("burst = {burst}\n"), real)
                }
            };
            format!(
                "model = \"host\"\nseed = {seed}\n[traffic]\n{traffic}\n{arrivals}\nrate = \"{mbit} Mbit/s\"\n\
                 packets = 2_000\nsas = {sas}\n\
                 [[processor]]\nkind = \"cpu\"\ninit_ratio = 3\nblock_ratio = 2\nqueue = {queue}\n\
                 [[processor]]\nkind = \"accelerator\"\ninit = \"1 us\"\ncount = {count}\nqueue = {queue}\n\
                 write_buffer = {write_buffer}\nprefetch = {prefetch}\n{real}\
                 [scheduler]\nwindow = {window}\n{timeout}{batches}prefetch_aware = {aware}\n"
            )
        },
    )
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "random", &[], Path::new("")).unwrap_or_else(|errors| {
        panic!("{:?}", errors.findings().iter().map(|one| (one.to_string(), one.line())).collect::<Vec<_>>())
    })
}

fn columns(scenario: &Scenario) -> (Outcome, Columns) {
    let options = Options { columns: true, timeline: Some(usize::MAX), ..Options::default() };
    let mut outcome = run(scenario, options).unwrap();
    let columns = outcome.columns.take().unwrap();
    (outcome, columns)
}

/// The slices of each track of the time line, in its own JSON.
fn slices(outcome: &Outcome) -> Vec<Vec<(u64, u64)>> {
    let mut text = Vec::new();
    outcome.timeline.as_ref().unwrap().write(&mut text).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).expect("the time line is JSON");
    let ps = |value: &serde_json::Value| (value.as_f64().unwrap() * 1e6).round() as u64;
    let mut tracks = Vec::new();
    for event in json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X") {
        let track = event["tid"].as_u64().unwrap() as usize;
        tracks.resize(tracks.len().max(track + 1), Vec::new());
        let begin = ps(&event["ts"]);
        tracks[track].push((begin, begin + ps(&event["dur"])));
    }
    tracks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_keep_the_laws(text in scenario()) {
        let scenario = parse(&text);
        let (outcome, columns) = columns(&scenario);
        let figures = &outcome.figures;

        // Conservation.
        prop_assert_eq!(figures.packets, 2_000);
        prop_assert_eq!(figures.processors.iter().map(|one| one.packets).sum::<u64>(), 2_000);
        let bytes: u64 = columns.bytes.iter().map(|&bytes| u64::from(bytes)).sum();
        prop_assert_eq!(figures.processors.iter().map(|one| one.bytes).sum::<u64>(), bytes);
        for at in 0..2_000 {
            prop_assert!(columns.arrived[at] <= columns.chosen[at] && columns.chosen[at] < columns.completed[at]);
        }

        // Each processor completes in the order in which it was given jobs, a job's packets at once.
        for processor in 0..scenario.processors.len() {
            let mut jobs: Vec<(u64, u64)> = (0..2_000)
                .filter(|&at| columns.processor[at] as usize == processor)
                .map(|at| (columns.chosen[at], columns.completed[at]))
                .collect();
            jobs.sort_unstable();
            prop_assert!(jobs.is_sorted_by_key(|job| job.1));
        }

        // No unit and no bus does two things at once; what they did is what the figures say.
        let tracks = slices(&outcome);
        for track in &tracks {
            for pair in track.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0 + 1, "{:?}", pair);
            }
        }
        for (one, track) in figures.processors.iter().zip(&tracks) {
            let busy: u64 = track.iter().map(|slice| slice.1 - slice.0).sum();
            prop_assert!((one.load - busy as f64 / 1e12 / figures.elapsed_s).abs() < 1e-6);
            prop_assert!(one.load <= 1.0);
        }

        // The CPU rests only while no packet has been given to it that it has not done.
        let mut given: Vec<(u64, u64)> = (0..2_000)
            .filter(|&at| columns.processor[at] == 0)
            .map(|at| (columns.chosen[at], columns.completed[at]))
            .collect();
        given.sort_unstable();
        for pair in tracks[0].windows(2).filter(|pair| pair[0].1 + 1 < pair[1].0) {
            let (rest, end) = (pair[0].1 + 1, pair[1].0 - 1);
            let waits = given.iter().any(|&(chosen, completed)| chosen < end && completed > rest && chosen < rest);
            // A job that was chosen may have to wait for room in the queue, and then the CPU is not at rest.
            prop_assert!(!waits, "the CPU rests from {} to {}", rest, end);
        }

        // The same again.
        let again = run(&scenario, Options::default()).unwrap();
        prop_assert_eq!(&again.figures, figures);
        // Without exact quantiles all else is the same.
        let rough = run(&scenario, Options { exact: Some(false), ..Options::default() }).unwrap().figures;
        prop_assert_eq!(rough.total_latency.mean_s, figures.total_latency.mean_s);
        prop_assert!((rough.total_latency.p99_s / figures.total_latency.p99_s - 1.0).abs() < 0.002);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_running_core_that_polls_keeps_the_laws(
        mbit in 1..20_000u64,
        workers in 1..8u32,
        (window, burst, sas, input) in (1..5u32, 1..65u32, 1..20u32, prop::option::of(100..300u32)),
        wake in 0..10u32,
        seed in 0..1_000u64,
    ) {
        let input = input.map(|packets| format!("input = {packets}\n")).unwrap_or_default();
        let scenario = parse(&format!(
            "model = \"host\"\nseed = {seed}\n[traffic]\nsource = \"imix\"\narrivals = \"poisson\"\n\
             rate = \"{mbit} Mbit/s\"\npackets = 2_000\nsas = {sas}\n\
             [[processor]]\nkind = \"cpu\"\ninit = \"200 ns\"\nblock = \"5 ns\"\nmove = \"300 ns\"\n\
             [[processor]]\nkind = \"cpu\"\nname = \"worker\"\ncount = {workers}\ninit = \"200 ns\"\n\
             block = \"5 ns\"\nlanes = 4\nwake = \"{wake} us\"\nfeed = \"100 ns\"\nfeed_block = \"1 ns\"\n\
             [scheduler]\nwindow = {window}\ntimeout = \"5 us\"\nburst = {burst}\npoll = true\n{input}"
        ));
        let (outcome, columns) = columns(&scenario);
        let figures = &outcome.figures;
        prop_assert_eq!(figures.packets + figures.lost, 2_000);
        let core = figures.running_core.as_ref().unwrap();
        prop_assert!(core.load <= 1.0 + 1e-9 && core.packets_per_poll <= f64::from(burst));
        prop_assert!(core.release_latency.mean_s >= figures.total_latency.mean_s);
        let held = core.release_latency.mean_s - figures.total_latency.mean_s;
        prop_assert!((held - core.reorder_hold.mean_s).abs() < 1e-12);
        // The core moves every packet that it takes.
        prop_assert!(core.moving * figures.elapsed_s >= figures.packets as f64 * 300e-9 * 0.999_999);
        for at in (0..2_000).filter(|&at| columns.processor[at] != u16::MAX) {
            prop_assert!(columns.arrived[at] + 300_000 <= columns.chosen[at]);
            prop_assert!(columns.chosen[at] <= columns.completed[at]);
        }
        prop_assert_eq!(&run(&scenario, Options::default()).unwrap().figures, figures);
    }
}

const HOST: &str = "model = \"host\"\n[traffic]\nsource = \"paper\"\nrate = \"200 Mbit/s\"\npackets = 20_000\n\
[[processor]]\nkind = \"cpu\"\ninit = \"3 us\"\nblock = \"920 ns\"\n\
[[processor]]\nkind = \"accelerator\"\ninit = \"1 us\"\ncount = 2\n";

#[test]
fn a_limited_input_loses_what_does_not_fit() {
    let text = HOST.replace("200 Mbit", "1 Gbit") + "queue = 10\n[scheduler]\ninput = 100\n";
    let (outcome, columns) = columns(&parse(&text));
    let lost = columns.processor.iter().filter(|&&processor| processor == u16::MAX).count() as u64;
    assert!(outcome.figures.lost > 5_000);
    assert_eq!((outcome.figures.lost, outcome.figures.packets), (lost, 20_000 - lost));
    let free = run(
        &parse(&HOST.replace("200 Mbit", "1 Gbit").replace("count = 2", "count = 2\nqueue = 10")),
        Options::default(),
    );
    assert_eq!(free.unwrap().figures.lost, 0);
}

#[test]
fn the_highest_rate_without_loss_is_found() {
    let scenario = parse(&(HOST.to_owned() + "queue = 50\n[scheduler]\ninput = 1000\n"));
    let bound = Bound { loss: 0.0, latency: None };
    // About 505 Mbit/s; the input and queues take in 1150 of the 20000 packets, which is no rate that is carried.
    let mut go_on = |_, _, _| std::ops::ControlFlow::Continue(());
    let found = highest_rate(&scenario, bound, (1_000_000, 2_000_000_000), 200, &mut go_on).unwrap().unwrap();
    assert!((480_000_000..515_000_000).contains(&found.rate), "{}", found.rate);
    assert!(found.outcome.figures.throughput_bps >= 0.99 * found.rate as f64, "{found:?}");
    let above = found.rate / 100 * 103;
    let above = run(&scenario.with_rate(forebay_sim::Rate::per_second(above)), Options::default()).unwrap();
    assert!(above.figures.throughput_bps < 1.01 * found.rate as f64, "{}", above.figures.throughput_bps);
    // What queues absorb in a short run is not carried, be the bound one of loss or of latency.
    let mut short = scenario.clone();
    short.traffic.packets = Some(500);
    for bound in [bound, Bound { loss: 0.0, latency: Some(Duration::from_secs(1.0)) }] {
        let found =
            highest_rate(&short, bound, (1_000_000, 2_000_000_000), 200, &mut go_on).unwrap().unwrap();
        let figures = &found.outcome.figures;
        assert!(figures.lost == 0 && figures.throughput_bps >= 0.99 * found.rate as f64, "{figures:?}");
        assert!(found.tried.iter().any(|one| !one.carried && one.loss == 0.0), "queues absorb some rate");
    }
    let quick = Bound { loss: 0.0, latency: Some(Duration::from_micros(200)) };
    let slower =
        highest_rate(&scenario, quick, (1_000_000, 2_000_000_000), 200, &mut go_on).unwrap().unwrap();
    assert!(slower.rate <= found.rate && slower.outcome.figures.total_latency.p99_s <= 200e-6);
    let never = Bound { loss: 0.0, latency: Some(Duration::from_nanos(1)) };
    assert!(highest_rate(&scenario, never, (1_000_000, 2_000_000_000), 200, &mut go_on).unwrap().is_none());
}

#[test]
fn a_run_can_be_broken_off() {
    let scenario = parse(&HOST.replace("20_000", "1_000_000"));
    let mut told = Vec::new();
    let mut progress = |done, all| {
        told.push((done, all));
        if told.len() < 2 { std::ops::ControlFlow::Continue(()) } else { std::ops::ControlFlow::Break(()) }
    };
    let options = Options { progress: Some(&mut progress), ..Options::default() };
    assert_eq!(run(&scenario, options).unwrap_err(), forebay_sim::RunError::Cancelled);
    assert!(told.len() == 2 && told[0].0 < told[1].0 && told[0].1 == 1_000_000);
}

#[test]
fn a_warm_up_counts_nowhere() {
    let whole = run(&parse(HOST), Options::default()).unwrap().figures;
    let warm =
        run(&parse(&HOST.replace("rate", "warm_up = 5_000\nrate")), Options::default()).unwrap().figures;
    assert_eq!((whole.packets, warm.packets), (20_000, 15_000));
    assert!(warm.elapsed_s < whole.elapsed_s);
    assert!((warm.throughput_bps / whole.throughput_bps - 1.0).abs() < 0.05);
    assert!(warm.processors.iter().all(|one| one.load <= 1.0));
}

#[test]
fn a_run_beyond_the_end_of_time_says_so() {
    for slow in [
        "rate = \"1 bit/s\"",
        "rate = \"1 Gbit/s\"\n[[processor]]\nname = \"slow\"\nkind = \"cpu\"\nblock = 1e6\nqueue = 1",
    ] {
        let policy = if slow.contains("slow") {
            "[scheduler]\npolicy = \"single\"\nprocessor = \"slow\"\n"
        } else {
            ""
        };
        let text = HOST
            .replace("rate = \"200 Mbit/s\"\npackets = 20_000", &format!("packets = 20_000\n{slow}"))
            + policy;
        assert_eq!(run(&parse(&text), Options::default()).unwrap_err(), forebay_sim::RunError::TooLong);
    }
}
