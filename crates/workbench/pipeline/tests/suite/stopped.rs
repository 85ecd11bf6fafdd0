//! Runs and searches that are stopped before their end.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_models as models;
use forebay_pipeline::scenario::Scenario;
use forebay_pipeline::size::{By, smallest_buffers, smallest_buffers_with};
use forebay_pipeline::*;
use forebay_time::Duration;

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn queue() -> Pipeline {
    Pipeline {
        arrivals: Arrivals::Exponential(us(10)),
        duration: Some(Duration::from_millis(4_000)),
        warm_up: Duration::from_millis(100),
        stages: vec![
            Stage::new("first", Law::Exponential(us(7)), 5),
            Stage::new("second", Law::Exponential(us(8)), 5),
        ],
        ..Pipeline::default()
    }
}

/// Lets so many reports pass.
fn after(reports: u64) -> impl Fn(Duration) -> ControlFlow<()> + Sync {
    let seen = AtomicU64::new(0);
    move |_| match seen.fetch_add(1, Ordering::Relaxed) < reports {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

#[test]
fn a_run_that_is_stopped_is_one_of_that_duration() {
    let pipeline = queue();
    let cut = simulate_with(&pipeline, &after(5)).unwrap().expect("it was warm");
    let seconds = cut.interrupted_after_s.expect("it was stopped");
    assert!(seconds > 0.1 && seconds < 4.0, "{seconds}");
    let whole = simulate(&Pipeline { duration: Some(Duration::from_secs(seconds)), ..pipeline }).unwrap();
    assert_eq!(Outcome { interrupted_after_s: None, ..cut }, whole);
}

#[test]
fn a_run_that_is_stopped_while_it_warms_up_has_no_figures() {
    let pipeline = Pipeline { warm_up: Duration::from_millis(3_900), ..queue() };
    assert_eq!(simulate_with(&pipeline, &after(2)).unwrap(), None);
}

#[test]
fn of_several_runs_those_that_are_complete_remain() {
    let all = replicate(&queue(), 6, 1).unwrap();
    for threads in [1, 3] {
        // A run makes some twenty reports.
        let some = replicate_with(&queue(), 6, threads, &after(70)).unwrap();
        let complete = some.outcomes.len();
        assert!(some.stopped && complete < 6, "{complete}");
        // Of several threads the one with the first run may be the last.
        assert!(complete > 0 || threads > 1);
        assert_eq!(some.outcomes, all[..some.outcomes.len()]);
    }
    // Runs that are shorter than the time between two reports are stopped between them.
    let short = Pipeline { duration: Some(Duration::from_millis(101)), ..queue() };
    assert_eq!(replicate_with(&short, 1_000_000, 1, &after(9)).unwrap().outcomes.len(), 5);
    let whole = replicate_with(&queue(), 6, 2, &after(u64::MAX)).unwrap();
    assert_eq!((whole.outcomes, whole.stopped), (all, false));
}

#[test]
fn a_search_for_buffers_that_is_stopped_has_the_smallest_until_then() {
    let by = By::Chain(models::Options::default());
    let pipeline = Pipeline { overflow: Overflow::Block, ..queue() };
    let whole = smallest_buffers(&pipeline, 1e-2, 60, by).unwrap().unwrap();
    assert!(whole.complete);
    let at = |designs: usize| {
        let watch =
            move |tried| if tried > designs { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        smallest_buffers_with(&pipeline, 1e-2, 60, by, &watch)
    };
    assert_eq!(at(3).unwrap_err(), models::Error::Cancelled);
    let some = at(whole.tried - 2).unwrap().unwrap();
    assert!(!some.complete && some.loss.most <= 1e-2, "{some:?}");
    assert!(some.buffers.iter().sum::<u32>() >= whole.buffers.iter().sum());
}

const FILE: &str = "model = \"pipeline\"\n[arrivals]\nmean = \"100 us\"\n[[server]]\nname = \"core\"\n\
                    discipline = \"interrupt-driven\"\nrun_length = \"100 us\"\n[[stage]]\nname = \"a\"\n\
                    server = \"core\"\ntime = \"20 us\"\nbuffer = 9\n";

#[test]
fn keys_that_another_one_disables_are_noted() {
    let noted = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let notes = Scenario::parse(FILE, "p.toml", &sets, Path::new("")).unwrap().notes;
        notes.into_iter().filter(|note| note.contains("no effect")).collect::<Vec<_>>()
    };
    assert_eq!(noted(&[]), [""; 0]);
    let waits = "server.core.discipline=busy-waiting";
    assert_eq!(noted(&[waits]), ["`run_length` of [server] has no effect with `discipline = busy-waiting`"]);
    assert_eq!(noted(&[waits, "server.core.run_length=", "server.core.contexts=2"]), [""; 0]);
    assert_eq!(noted(&["server.core.contexts=2"]).len(), 1);
    assert_eq!(noted(&["stage.a.priority=2"]).len(), 1);
    assert_eq!(noted(&["stage.a.priority=2", "server.core.grant=priority"]), [""; 0]);
    assert_eq!(noted(&["packet_bytes=100"]), ["`packet_bytes` has no effect: no stage has a `rate`"]);
    assert_eq!(noted(&["packet_bytes=100", "stage.a.time=", "stage.a.rate=1 Gbit/s"]), [""; 0]);
}

#[test]
fn what_no_packet_has_is_no_number() {
    // Four packets come and none is done.
    let stages = vec![Stage::new("only", Law::Constant(us(1_000)), 2)];
    let pipeline = Pipeline {
        arrivals: Arrivals::Constant(us(100)),
        duration: Some(us(350)),
        stages,
        ..Pipeline::default()
    };
    let outcome = simulate(&pipeline).unwrap();
    assert_eq!((outcome.generated, outcome.processed, outcome.lost), (4, 0, 2));
    assert!(outcome.delay.mean_s.is_nan() && outcome.delay.p99_s.is_nan() && outcome.loss_probability == 0.5);
    assert!(outcome.warning().unwrap().contains("no packet left"));
    let document = serde_json::to_value(&outcome).unwrap();
    assert!(document["delay"]["p99_s"].is_null() && document["delay"]["max_s"].is_null(), "{document}");
    let none = Pipeline { warm_up: us(340), batches: 10, ..pipeline };
    let outcome = simulate(&none).unwrap();
    assert!(outcome.generated == 0 && outcome.loss_probability.is_nan(), "{outcome:?}");
    let means = outcome.batch_means.unwrap();
    assert!(means.loss_probability.mean.is_nan() && means.delay_mean_s.half_width.is_nan(), "{means:?}");
}

#[test]
fn a_run_without_a_packet_says_so() {
    let none =
        simulate(&Pipeline { arrivals: Arrivals::Exponential(Duration::from_secs(1e6)), ..queue() }).unwrap();
    assert!(none.warning().unwrap().contains("no packet came"));
    assert_eq!(simulate(&queue()).unwrap().warning(), None);
}
