//! Intervals from one run, and time series.

use forebay_models::closed;
use forebay_pipeline::scenario::Scenario;
use forebay_pipeline::*;
use forebay_time::{Duration, Time};

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// M/M/1 with this load, 100 us between packets.
fn mm1(load_percent: u64, seconds: u64, batches: u32) -> Pipeline {
    Pipeline {
        arrivals: Arrivals::Exponential(us(100)),
        duration: Some(us(seconds * 1_000_000 + 100_000)),
        warm_up: us(100_000),
        batches,
        stages: vec![Stage::new("only", Law::Exponential(us(load_percent)), 1_000_000)],
        ..Pipeline::default()
    }
}

#[test]
fn intervals_of_one_run_hold_the_mean_as_often_as_they_say() {
    let exact = closed::mm1(1e4, 2e4).unwrap();
    let runs = replicate(&mm1(50, 2, 20), 200, 2).unwrap();
    let held = |of: &dyn Fn(&BatchMeans) -> (BatchMean, f64)| {
        let holds = |one: &&Outcome| {
            let (found, exact) = of(one.batch_means.as_ref().unwrap());
            (found.mean - exact).abs() <= found.half_width
        };
        runs.iter().filter(holds).count()
    };
    // 190 of 200, with a standard deviation of 3.1.
    let delay = held(&|all| (all.delay_mean_s, exact.mean_delay_s));
    let throughput = held(&|all| (all.throughput_pps, 1e4));
    assert!((178..=199).contains(&delay) && (178..=199).contains(&throughput), "{delay} {throughput}");
    for one in &runs {
        let batches = one.batch_means.as_ref().unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
        // The means are those of the run.
        assert!(near(batches.delay_mean_s.mean, one.delay.mean_s), "{batches:?}");
        assert!(near(batches.throughput_pps.mean, one.throughput_pps), "{batches:?}");
        assert_eq!(batches.loss_probability.half_width, 3.0 / one.generated as f64);
        assert!(near(batches.length_s, 0.1) && batches.batches == 20);
    }
    // Three figures, each by chance at most 1 of 100 times.
    let warned = runs.iter().filter(|one| one.warning().is_some()).count();
    assert!(warned < 20, "{warned}");
    // Nothing else of a run is changed by it.
    let plain = simulate(&mm1(50, 2, 0)).unwrap();
    assert_eq!(plain, Outcome { batch_means: None, ..runs[0].clone() });
}

#[test]
fn batches_that_are_too_short_are_said_to_be() {
    // At a load of 95 % a queue lasts for hundreds of packets; a batch of 20 has what the last one had.
    let one = simulate(&mm1(95, 2, 1_000)).unwrap();
    let batches = one.batch_means.as_ref().unwrap();
    assert!(!batches.independent && batches.delay_mean_s.lag_1 > 0.5, "{batches:?}");
    let warning = one.warning().unwrap();
    assert!(warning.contains("correlated (delay by 0.") && warning.contains("raise `duration`"), "{warning}");
}

#[test]
fn a_loss_ratio_by_batches_is_a_ratio_of_sums() {
    let full = Pipeline { stages: vec![Stage::new("only", Law::Exponential(us(100)), 5)], ..mm1(100, 2, 20) };
    let one = simulate(&full).unwrap();
    let found = one.batch_means.unwrap().loss_probability;
    let exact = closed::mm1k(1e4, 1e4, 5).loss_probability;
    assert!((found.mean - one.loss_probability).abs() < 1e-15 && found.half_width < 0.1 * exact);
    assert!((found.mean - exact).abs() < 2.0 * found.half_width, "{found:?}, exactly {exact}");
}

#[test]
fn a_time_series_by_hand() {
    // Served in 30 us, with room for two: at 0, 10, 20 (lost) and 65. The first leaves at 30, the second at 60, the last at 95.
    let arrival = |t: u64| Arrival { at: Time::ZERO + us(t), bytes: 1 };
    let pipeline = Pipeline {
        duration: None,
        arrivals: Arrivals::Trace([0, 10, 20, 65].map(arrival).to_vec()),
        stages: vec![Stage::new("one, two", Law::Constant(us(30)), 2)],
        series: Some(us(20)),
        ..Pipeline::default()
    };
    let near = |found: &[f64], exact: &[f64]| {
        assert_eq!(found.len(), exact.len());
        found.iter().zip(exact).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{found:?}"));
    };
    let series = simulate(&pipeline).unwrap().series.unwrap();
    near(&series.end_s, &[20e-6, 40e-6, 60e-6, 80e-6, 95e-6]);
    // What happens at a mark belongs to the interval that begins with it.
    assert_eq!((&series.generated[..], &series.processed[..]), (&[2, 1, 0, 1, 0][..], &[0, 1, 0, 1, 1][..]));
    assert_eq!((&series.lost[..], &series.stages[0].lost[..]), (&[0, 1, 0, 0, 0][..], &[0, 1, 0, 0, 0][..]));
    near(&series.stages[0].mean_occupancy, &[1.5, 1.5, 1.0, 0.75, 1.0]);
    assert_eq!(series.stages[0].inside, [2, 1, 1, 1, 0]);
    assert_eq!(series.delay_mean_s[0], None);
    near(&[series.delay_mean_s[1].unwrap(), series.delay_mean_s[4].unwrap()], &[30e-6, 30e-6]);
    let csv = series.csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(
        lines[0].ends_with(",\"one, two.mean_occupancy\",\"one, two.inside\",\"one, two.lost\""),
        "{csv}"
    );
    assert_eq!((lines.len(), lines[1]), (6, "0.00002,2,0,0,,1.5,2,0"));
    // With a warm-up and an end, the intervals begin when it is warm.
    let cut = Pipeline { duration: Some(us(75)), warm_up: us(25), ..pipeline };
    let series = simulate(&cut).unwrap().series.unwrap();
    near(&series.end_s, &[45e-6, 65e-6, 75e-6]);
    near(&series.stages[0].mean_occupancy, &[1.25, 0.75, 1.0]);
}

#[test]
fn keys_of_batches_and_series() {
    let text = |more: &str| {
        format!(
            "model = \"pipeline\"\n{more}\n[arrivals]\nmean = \"70 us\"\n[[stage]]\nname = \"a\"\ntime = \"5 us\"\nbuffer = 9\n"
        )
    };
    let read = |more: &str| Scenario::parse(&text(more), "a.toml", &[], ".".as_ref());
    let scenario = read("batches = 20\nseries = \"10 ms\"").unwrap();
    assert_eq!((scenario.pipeline.batches, scenario.pipeline.series), (20, Some(us(10_000))));
    let again = Scenario::parse(&scenario.resolved_toml(), "b.toml", &[], ".".as_ref()).unwrap();
    assert_eq!((again.pipeline, again.resolved), (scenario.pipeline, scenario.resolved));
    let wrong = |more: &str, what: &str| {
        let found = read(more).unwrap_err();
        let one = &found.findings()[0];
        assert!(one.line() == Some(2) && one.to_string().contains(what), "{one}");
    };
    wrong("batches = 5", "`batches` is 5");
    wrong("series = 0", "`series` is 0");
    wrong("series = \"1 us\"", "500000 intervals of 1.00 us are too many");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "size,time\n1,0\n").unwrap();
    let trace = text("batches = 20").replace("mean = \"70 us\"", "path = \"t.csv\"");
    let found = Scenario::parse(&trace, "a.toml", &[], folder.path()).unwrap_err();
    assert!(found.findings()[0].to_string().contains("ends with its trace"), "{found}");
}
