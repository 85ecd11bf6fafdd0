//! How many packets a second a run simulates, on one core.
//!
//!     cargo run --release -p forebay-sim --example speed [PACKETS]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use forebay_sim::{Options, Scenario, Source, Stream, Trace, run};

const HOST: &str = r#"
model = "host"
[traffic]
source = "paper"
rate = "1 Gbit/s"
sas = 100
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
[[processor]]
name = "card"
kind = "accelerator"
count = 2
init = "1 us"
block = "440 ns"
"#;

fn main() {
    let packets = std::env::args().nth(1).unwrap_or_else(|| "1_000_000".to_owned());
    let only = std::env::args().nth(2);
    for (what, sets) in [
        ("papers, 2 cards", &[][..]),
        ("200 Mbit/s", &["traffic.rate=2e8"]),
        (
            "4 cards, buffers",
            &["processor.card.count=4", "processor.card.write_buffer=1", "processor.card.prefetch=1"],
        ),
        ("W = 30", &["scheduler.window=30"]),
        ("2 cards, no exact quantiles", &["traffic.warm_up=0"]),
        (
            "trace, 2 cards",
            &["traffic.source=exponential", "traffic.mean=471", "traffic.min=20", "traffic.max=7065"],
        ),
    ] {
        if only.as_ref().is_some_and(|only| !what.contains(only)) {
            continue;
        }
        let mut sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        sets.push(format!("traffic.packets={packets}"));
        let mut scenario = Scenario::parse(HOST, "host", &sets, Path::new("")).unwrap();
        if what.starts_with("trace") {
            // As in the comparison with SystemC: sizes from a file, no SAs.
            let sizes = Stream::new(&scenario.traffic, 1).map(|packet| packet.bytes - 40).collect();
            scenario.traffic.source = Source::Trace(Arc::new(Trace { sizes, ..Trace::default() }));
            scenario.traffic.sas.clear();
        }
        let exact = (what != "2 cards, no exact quantiles").then_some(true).or(Some(false));
        let best = (0..5).map(|_| {
            #[allow(clippy::disallowed_methods, reason = "measuring is this program's purpose")]
            let begin = Instant::now();
            let outcome = run(&scenario, Options { exact, ..Options::default() }).unwrap();
            (begin.elapsed().as_secs_f64(), outcome)
        });
        let (seconds, outcome) = best.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let rate = outcome.figures.packets as f64 / seconds;
        println!(
            "{what:30} {:6.2} M packets/s  {:.1} Mbit/s",
            rate / 1e6,
            outcome.figures.throughput_bps / 1e6
        );
    }
}
