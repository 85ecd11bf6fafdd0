//! Breakdowns: by hand, by the formula of M/M/1 with breakdowns, and by a chain of two units that is built here.

use forebay_pipeline::scenario::Scenario;
use forebay_pipeline::*;
use forebay_time::{Duration, Time};

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Up for 25 us, under repair for 10, and so on.
fn constant() -> Option<Breakdowns> {
    Some(Breakdowns { up: Law::Constant(us(25)), repair: Law::Constant(us(10)) })
}

fn stage(name: &str, time_us: u64) -> Stage {
    Stage::new(name, Law::Constant(us(time_us)), 99)
}

fn trace(times_us: &[u64], stages: Vec<Stage>) -> Pipeline {
    let arrival = |&t: &u64| Arrival { at: Time::ZERO + us(t), bytes: 100 };
    let arrivals = Arrivals::Trace(times_us.iter().map(arrival).collect());
    Pipeline { duration: None, arrivals, stages, ..Pipeline::default() }
}

fn near(found: f64, exact: f64) {
    assert!((found - exact).abs() < 1e-9 * exact.abs().max(1.0), "{found} is not {exact}");
}

#[test]
fn work_goes_on_where_it_stopped() {
    let pipeline = trace(&[0, 30], vec![Stage { breakdowns: constant(), ..stage("a", 20) }]);
    // 0-20; comes at 30 while the unit is down from 25 to 35; 35-55; the run ends there.
    let outcome = simulate(&pipeline).unwrap();
    near(outcome.delay.mean_s * 1e6, 22.5);
    near(outcome.elapsed_s * 1e6, 55.0);
    assert_eq!((outcome.stages[0].breakdowns, outcome.stages[0].max_queue), (Some(1), 0));
    near(outcome.stages[0].down.unwrap(), 10.0 / 55.0);
    near(outcome.stages[0].utilisation, 40.0 / 55.0);
    // 0-20; 20-25, 35-50; the next 50-60, 70-80: the unit was down from 60 to 70.
    let outcome = simulate(&Pipeline { arrivals: trace(&[0, 1, 2], vec![]).arrivals, ..pipeline }).unwrap();
    near(outcome.elapsed_s * 1e6, 80.0);
    assert_eq!(outcome.stages[0].breakdowns, Some(2));
}

#[test]
fn a_free_unit_takes_what_another_left() {
    // Both units break down at 25. The first that is repaired, both at 35, goes on.
    let units = Stage { units: 2, breakdowns: constant(), ..stage("a", 30) };
    let outcome = simulate(&trace(&[0, 1, 2], vec![units])).unwrap();
    // First 0-25, 35-40; second 1-25, 35-41; third 40-60, 70-80: both are down from 60 to 70.
    near(outcome.elapsed_s * 1e6, 80.0);
    near(outcome.delay.mean_s * 1e6, (40.0 + 40.0 + 78.0) / 3.0);
    // Two breakdowns of each, 10 us each.
    near(outcome.stages[0].down.unwrap(), 40.0 / 160.0);
    assert_eq!(outcome.stages[0].breakdowns, Some(4));
}

#[test]
fn a_server_breaks_down_for_all_of_its_stages() {
    let server = |discipline| Pipeline {
        servers: vec![Server {
            name: "core".into(),
            cores: 1,
            discipline,
            breakdowns: constant(),
            power: None,
        }],
        ..trace(&[0], vec![stage("a", 20).on(0), stage("own", 10), stage("b", 20).on(0)])
    };
    // a 0-20, own 20-30, b 35-55.
    let outcome = simulate(&server(Discipline::busy_waiting())).unwrap();
    near(outcome.elapsed_s * 1e6, 55.0);
    let core = &outcome.servers[0];
    near(core.down.unwrap(), 10.0 / 55.0);
    // Waiting for `own` from 20 to 25: then it is down.
    near(core.waiting, 5.0 / 55.0);
    assert_eq!((core.breakdowns, outcome.stages[1].down), (Some(1), None));
    // The core has forgotten what it was at: no change of stage is paid.
    let outcome = simulate(&server(Discipline::interrupt_driven(us(100), us(3)))).unwrap();
    near(outcome.elapsed_s * 1e6, 55.0);
    assert_eq!(outcome.servers[0].switches, 0);
}

fn text(more: &str) -> String {
    format!(
        "model = \"pipeline\"\nservice = \"exponential\"\nduration = \"3.2 s\"\nwarm_up = \"200 ms\"\n[arrivals]\nmean = \"100 us\"\n\
         [[stage]]\nname = \"a\"\ntime = \"40 us\"\nbuffer = 100000\nmtbf = \"2 ms\"\nmttr = \"600 us\"\n{more}"
    )
}

fn parse(text: &str) -> Result<Scenario, Vec<(Option<usize>, String)>> {
    let read = Scenario::parse(text, "down.toml", &[], ".".as_ref());
    read.map_err(|errors| errors.findings().iter().map(|one| (one.line(), one.to_string())).collect())
}

#[test]
fn one_unit_is_that_of_the_formula() {
    for more in ["", "breakdowns = \"constant\"\n", "distribution = \"gamma\"\na = 3\n"] {
        let mut scenario = parse(&text(more)).unwrap();
        let again = parse(&scenario.resolved_toml()).unwrap();
        assert_eq!((&again.pipeline, &again.resolved), (&scenario.pipeline, &scenario.resolved));
        if let Some(one) = &mut scenario.pipeline.stages[0].breakdowns {
            // The formula is of exponential times between breakdowns.
            one.up = Law::Exponential(one.up.mean(0));
        }
        let exact = ClosedForm::new(&scenario).unwrap().stages[0].general.unwrap();
        let outcomes = replicate(&scenario.pipeline, 20, 2).unwrap();
        let near = |what: &str, figure: &dyn Fn(&Outcome) -> f64, exact: f64| {
            let found = interval(&outcomes, 0.9999, figure);
            assert!(found.contains(exact), "{more}{what}: {found:?}, exactly {exact}");
            assert!(found.half_width < 0.15 * exact, "{more}{what}: {found:?}");
        };
        near("delay", &|one| one.delay.mean_s, exact.mean_delay_s);
        near("inside", &|one| one.stages[0].mean_occupancy, exact.mean_occupancy);
        near("waiting", &|one| one.stages[0].mean_queue, exact.mean_queue);
        near("busy", &|one| one.stages[0].utilisation, exact.utilisation);
        near("down", &|one| one.stages[0].down.unwrap(), 0.6 / 2.6);
    }
}

/// Mean number inside of M/M/2 whose units break down and are repaired each by itself, with room for so many.
fn two_units(arrivals: f64, service: f64, fails: f64, repairs: f64, room: usize) -> f64 {
    let state = |inside: usize, up: usize| 3 * inside + up;
    let fastest = arrivals + 2.0 * (service + fails + repairs);
    let mut shares = vec![1.0 / (3 * (room + 1)) as f64; 3 * (room + 1)];
    for _ in 0..200_000 {
        let mut next = shares.clone();
        let mut change = 0.0;
        for inside in 0..=room {
            for up in 0..3 {
                let mut go = |rate: f64, to: usize| {
                    let moved = shares[state(inside, up)] * rate / fastest;
                    next[state(inside, up)] -= moved;
                    next[to] += moved;
                };
                if inside < room {
                    go(arrivals, state(inside + 1, up));
                }
                if inside > 0 && up > 0 {
                    go(service * inside.min(up) as f64, state(inside - 1, up));
                }
                if up > 0 {
                    go(fails * up as f64, state(inside, up - 1));
                }
                if up < 2 {
                    go(repairs * (2 - up) as f64, state(inside, up + 1));
                }
            }
        }
        for (old, new) in shares.iter_mut().zip(next) {
            change += (*old - new).abs();
            *old = new;
        }
        if change < 1e-12 {
            break;
        }
    }
    shares.iter().enumerate().map(|(state, share)| (state / 3) as f64 * share).sum()
}

#[test]
fn two_units_are_those_of_their_chain() {
    let more = "units = 2\n";
    let file =
        text(more).replace("time = \"40 us\"", "time = \"120 us\"").replace("buffer = 100000", "buffer = 30");
    let scenario = parse(&file).unwrap();
    let exact = two_units(1e4, 1e6 / 120.0, 500.0, 1e6 / 600.0, 30);
    let found =
        interval(&replicate(&scenario.pipeline, 20, 2).unwrap(), 0.9999, |one| one.stages[0].mean_occupancy);
    assert!(found.contains(exact) && found.half_width < 0.1 * exact, "{found:?}, exactly {exact}");
    let why = scenario.objection(&ClosedForm::new(&scenario).map(|_| ()).unwrap_err());
    assert!(why.findings()[0].to_string().contains("units that break down"), "{why:?}");
}

#[test]
fn what_has_no_solution_and_what_is_wrong() {
    let scenario = parse(&text("")).unwrap();
    assert!(solve(&scenario.pipeline, &Default::default()).unwrap_err().to_string().contains("break down"));
    let wrong = |from: &str, to: &str, line: usize, what: &str| {
        let found = parse(&text("").replace(from, to)).unwrap_err();
        assert_eq!(found.len(), 1, "{to}: {found:?}");
        assert!(found[0].0 == Some(line) && found[0].1.contains(what), "{to}: {found:?}");
    };
    wrong("mttr = \"600 us\"\n", "", 7, "has no `mttr`");
    wrong("mtbf = \"2 ms\"\n", "", 7, "has no `mtbf`");
    wrong("mtbf = \"2 ms\"", "mtbf = 0", 11, "`mtbf` is 0");
    wrong("mttr =", "breakdowns = \"gamma\"\nmttr =", 12, "unknown breakdowns `gamma`");
    let shared = "name = \"a\"\nserver = \"core\"";
    let server = "[[server]]\nname = \"core\"\ndiscipline = \"busy-waiting\"\n[[stage]]";
    let file = text("").replace("name = \"a\"", shared).replace("[[stage]]", server);
    let found = parse(&file).unwrap_err();
    assert!(found.len() == 2 && found[0].1.contains("no units of its own that break down"), "{found:?}");
}
