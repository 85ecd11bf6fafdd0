//! Laws of service times: from files, and a queue of each by Pollaczek and Khinchine.

use forebay_models::closed;
use forebay_pipeline::scenario::Scenario;
use forebay_pipeline::{ClosedForm, interval, replicate};

fn file(law: &str) -> String {
    format!(
        "model = \"pipeline\"\nduration = \"2.2 s\"\nwarm_up = \"200 ms\"\n[arrivals]\nmean = \"100 us\"\n[[stage]]\n\
         name = \"only\"\nbuffer = 100000\n{}\n",
        law.replace("; ", "\n")
    )
}

fn read(law: &str) -> Result<Scenario, Vec<(Option<usize>, String)>> {
    let read = Scenario::parse(&file(law), "law.toml", &[], ".".as_ref());
    read.map_err(|errors| errors.findings().iter().map(|one| (one.line(), one.to_string())).collect())
}

/// Laws with their means in us and squared coefficients of variation.
const LAWS: &[(&str, f64, f64)] = &[
    ("distribution = \"uniform\"; loc = \"20 us\"; scale = \"60 us\"", 50.0, 0.12),
    ("distribution = \"uniform\"; time = \"50 us\"", 50.0, 1.0 / 3.0),
    ("distribution = \"gamma\"; a = 0.5; time = \"50 us\"", 50.0, 2.0),
    ("distribution = \"gamma\"; a = 4; scale = \"10 us\"; loc = \"10 us\"", 50.0, 400.0 / 2_500.0),
    ("distribution = \"lognorm\"; s = 0.8; time = \"50 us\"", 50.0, 0.896_480_879_304_951_5),
    ("distribution = \"weibull_min\"; c = 2; time = \"50 us\"", 50.0, 0.273_239_544_735_162_7),
    ("distribution = \"triang\"; c = 0.5; scale = \"100 us\"", 50.0, 1.0 / 6.0),
    ("distribution = \"pareto\"; b = 6; time = \"50 us\"", 50.0, 1.0 / 24.0),
    ("times = [\"20 us\", \"170 us\"]; shares = [0.8, 0.2]", 50.0, 3.88),
];

#[test]
fn a_queue_of_each_is_that_of_pollaczek_and_khinchine() {
    for &(law, mean, scv) in LAWS {
        let scenario = read(law).unwrap();
        let time = &scenario.pipeline.stages[0].time;
        assert!((time.mean(0).as_secs() * 1e6 - mean).abs() < 1e-5, "{law}: {:?}", time.mean(0));
        assert!(
            (time.variance(0) * 1e12 / (mean * mean) / scv - 1.0).abs() < 1e-6,
            "{law}: {}",
            time.variance(0)
        );
        let exact = closed::mg1(1e4, 1e-6 * mean, 1e-12 * scv * mean * mean).unwrap();
        let solved = ClosedForm::new(&scenario).unwrap();
        let general = solved.stages[0].general.unwrap();
        assert!((general.mean_delay_s / exact.mean_delay_s - 1.0).abs() < 1e-6, "{law}: {general:?}");
        assert_eq!(solved.general_delay_s, Some(general.mean_delay_s));
        let outcomes = replicate(&scenario.simulated(), 12, 2).unwrap();
        let delay = interval(&outcomes, 0.9999, |one| one.delay.mean_s);
        assert!(delay.contains(exact.mean_delay_s), "{law}: {delay:?}, exactly {}", exact.mean_delay_s);
        assert!(delay.half_width < 0.1 * delay.mean, "{law}: {delay:?}");
        let again = Scenario::parse(&scenario.resolved_toml(), "again.toml", &[], ".".as_ref()).unwrap();
        assert_eq!((&again.pipeline, &again.resolved), (&scenario.pipeline, &scenario.resolved));
    }
}

#[test]
fn what_has_no_closed_form_by_its_law() {
    // Infinite variance; several units.
    let pareto = read("distribution = \"pareto\"; b = 1.9; time = \"50 us\"").unwrap();
    let units = read("distribution = \"gamma\"; a = 2; time = \"50 us\"; units = 2").unwrap();
    for scenario in [pareto, units] {
        let solved = ClosedForm::new(&scenario).unwrap();
        assert!(solved.general_delay_s.is_none() && solved.stages[0].general.is_none());
        assert!(solved.warnings[0].contains("taken as exponential"), "{:?}", solved.warnings);
    }
    // Behind a stage that is not exponential packets are no Poisson stream.
    let two = file("distribution = \"gamma\"; a = 2; time = \"50 us\"")
        + "[[stage]]\nname = \"next\"\ntime = \"20 us\"\nbuffer = 9\n";
    let scenario = Scenario::parse(&two, "two.toml", &[], ".".as_ref()).unwrap();
    let warnings = ClosedForm::new(&scenario).unwrap().warnings;
    assert!(
        warnings.last().unwrap().contains("come to `next` are taken as a Poisson stream"),
        "{warnings:?}"
    );
}

#[test]
fn wrong_laws_have_their_lines() {
    let wrong = |law: &str, line: usize, what: &str| {
        let found = read(law).unwrap_err();
        assert_eq!(found.len(), 1, "{law}: {found:?}");
        assert!(found[0].0 == Some(line) && found[0].1.contains(what), "{law}: {found:?}");
    };
    wrong("distribution = \"gamma\"; time = \"5 us\"", 6, "has no `a`");
    wrong("distribution = \"gama\"; time = \"5 us\"", 9, "unknown distribution `gama`");
    wrong("distribution = \"gamma\"; a = 0; time = \"5 us\"", 10, "`a` is 0");
    wrong("distribution = \"gamma\"; a = 2; s = 2; time = \"5 us\"", 11, "`s` means nothing");
    wrong(
        "distribution = \"lognorm\"; s = 2; time = \"5 us\"; scale = \"5 us\"",
        12,
        "both `time` and `scale`",
    );
    wrong("distribution = \"lognorm\"; s = 2", 6, "has no `time`");
    wrong("distribution = \"lognorm\"; s = 40; time = \"5 us\"", 10, "mean of its time is too large");
    wrong("distribution = \"pareto\"; b = 1; time = \"5 us\"", 10, "no mean unless `b` is above 1");
    wrong("distribution = \"triang\"; c = 1.5; time = \"5 us\"", 10, "top of a triangle");
    wrong("distribution = \"uniform\"; time = \"5 us\"; loc = \"5 us\"", 10, "not above `loc`");
    wrong("times = [\"5 us\", \"9 us\"]; shares = [0.9, 0.2]", 10, "do not sum to 1");
    wrong("times = [\"5 us\", \"9 us\"]; shares = [1]", 10, "not as many shares as times");
    wrong("shares = [1]", 6, "has no `times`");
    wrong("time = \"5 us\"; loc = \"1 us\"", 10, "`loc` means nothing for distribution `constant`");
}
