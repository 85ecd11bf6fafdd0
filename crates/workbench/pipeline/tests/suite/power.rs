//! The power of units and cores, by hand.

use std::path::Path;

use forebay_pipeline::scenario::Scenario;
use forebay_pipeline::{Outcome, Replications, simulate};

/// Packets every 100 us that need 40 us each at `first`, and 20 us each of a core before and behind 30 us at `other`.
const FILE: &str = r#"
model = "pipeline"
duration = "100 ms"
[arrivals]
mean = "100 us"
distribution = "constant"
[[server]]
name = "core"
discipline = "busy-waiting"
[[stage]]
name = "first"
time = "20 us"
buffer = 9
server = "core"
[[stage]]
name = "other"
time = "30 us"
buffer = 9
[[stage]]
name = "last"
time = "20 us"
buffer = 9
server = "core"
"#;

fn of(sets: &[&str]) -> (Outcome, Vec<String>) {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse(FILE, "p.toml", &sets, Path::new("")).unwrap();
    (simulate(&scenario.simulated()).unwrap(), scenario.notes)
}

fn near(found: Option<f64>, expected: f64) {
    let found = found.expect("a power is given");
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, by hand {expected}");
}

#[test]
fn units_and_cores_take_power_while_they_work_or_are_held_and_less_at_other_times() {
    let (none, _) = of(&[]);
    assert_eq!((none.energy_per_packet_j, none.average_power_w), (None, None));

    // 30 of 100 us at 10 W, the rest at 2 W.
    let unit = ["stage.other.active_power=10 W", "stage.other.idle_power=2 W"];
    let (one, notes) = of(&unit);
    near(one.average_power_w, 4.4);
    near(one.energy_per_packet_j, 4.4e-4);
    assert!(notes.iter().any(|note| note.contains("the energy is without `core`")), "{notes:?}");

    // A busy-waiting core is held for 70 of 100 us, an interrupt-driven one works for 40.
    let core = ["server.core.active_power=5 W", "server.core.idle_power=1 W"];
    let (held, notes) = of(&[&unit[..], &core].concat());
    near(held.average_power_w, 4.4 + 3.8);
    assert!(!notes.iter().any(|note| note.contains("the energy is without")), "{notes:?}");
    let turns = ["server.core.discipline=interrupt-driven", "server.core.run_length=1 ms"];
    let (free, _) = of(&[&unit[..], &core, &turns].concat());
    near(free.average_power_w, 4.4 + 2.6);

    // Of two units each is active for half of that share; without `idle_power` nothing is taken else.
    let (two, _) = of(&["stage.other.units=2", "stage.other.active_power=10 W"]);
    near(two.average_power_w, 3.0);
    // Without `active_power` the power is the same all the time.
    let (flat, _) = of(&["stage.other.idle_power=3 W"]);
    near(flat.average_power_w, 3.0);
}

#[test]
fn a_stage_on_a_server_has_no_power_of_its_own() {
    let sets = ["stage.first.active_power=1 W".to_owned()];
    let errors = Scenario::parse(FILE, "p.toml", &sets, Path::new("")).unwrap_err();
    assert!(errors.findings()[0].to_string().contains("no units of its own that take power"));
}

/// A run that processed nothing has no energy per packet, which is not an energy of 0.
#[test]
fn the_mean_energy_per_packet_is_of_runs_that_all_have_one() {
    let (one, _) = of(&["stage.other.active_power=10 W"]);
    let none = Outcome { energy_per_packet_j: None, ..one.clone() };
    let mean = |outcomes: &[Outcome]| Replications::new(outcomes).expect("two runs").energy_per_packet_j;
    assert!(mean(&[one.clone(), one.clone()]).is_some());
    assert!(mean(&[one.clone(), none.clone()]).is_none() && mean(&[none, one]).is_none());
}
