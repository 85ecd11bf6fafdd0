//! What the tests share: a host with figures to do by hand, and packets given one by one.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::Path;
use std::sync::Arc;

use forebay_sim::{Columns, Options, Outcome, Scenario, Source, Trace, run};

/// A bus on which 4 bytes take 10 ps and so does the address phase.
pub const BUS: &str = "bus = { clock = \"100 GHz\", width = 4, address_cycles = 1 }\n";

/// A packet: when it arrives (ps), its bytes, its SA.
pub type Packet = (u64, u32, u32);

/// A scenario of the given processors and settings for the given packets; no overhead.
pub fn scenario(text: &str, packets: &[Packet]) -> Scenario {
    scenario_with(text, packets, &[])
}

/// The same with keys set.
pub fn scenario_with(text: &str, packets: &[Packet], sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let text = format!(
        "model = \"host\"\ntraffic = {{ source = \"fixed\", value = 1, rate = 1, overhead = 0 }}\n{BUS}{text}"
    );
    let mut scenario = Scenario::parse(&text, "test", &sets, Path::new("")).unwrap_or_else(|errors| {
        panic!(
            "{:?}",
            errors.findings().iter().map(|one| (one.to_string(), one.problem().help())).collect::<Vec<_>>()
        )
    });
    set_packets(&mut scenario, packets);
    scenario
}

/// Puts other packets into a scenario.
pub fn set_packets(scenario: &mut Scenario, packets: &[Packet]) {
    let trace = Trace {
        sizes: packets.iter().map(|packet| packet.1).collect(),
        times: packets.iter().map(|packet| packet.0).collect(),
        sas: packets.iter().map(|packet| packet.2).collect(),
        ..Trace::default()
    };
    scenario.traffic.source = Source::Trace(Arc::new(trace));
    scenario.traffic.arrivals = forebay_sim::Arrivals::Stamps;
    scenario.traffic.packets = None;
}

/// A run with its packets.
pub fn run_columns(scenario: &Scenario) -> (Outcome, Columns) {
    let mut outcome = run(scenario, Options { columns: true, ..Options::default() }).unwrap();
    let columns = outcome.columns.take().unwrap();
    (outcome, columns)
}
