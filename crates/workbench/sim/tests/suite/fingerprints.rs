//! Fingerprints: a hash of every packet's processor and times in each of these scenarios. A changed one
//! means that some run changed: the commit that changes `fingerprints.txt` says why.
//!
//!     BLESS=1 cargo test -p forebay-sim --test suite fingerprints

use std::fmt::Write;
use std::path::Path;

use forebay_sim::{Options, Scenario, run};
use sha2::{Digest, Sha256};

const HOST: &str = "model = \"host\"\n[traffic]\nsource = \"paper\"\nrate = \"1 Gbit/s\"\npackets = 20_000\nsas = 100\n\
[[processor]]\nname = \"cpu\"\nkind = \"cpu\"\ninit = \"3 us\"\nblock = \"920 ns\"\n\
[[processor]]\nname = \"card\"\nkind = \"accelerator\"\ninit = \"1 us\"\nblock = \"440 ns\"\ncount = 2\n";

const CASES: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("one card", &["processor.card.count=1"]),
    ("four cards", &["processor.card.count=4"]),
    ("alpha 10, beta 17.6 us", &["processor.cpu.alpha=10", "processor.cpu.beta=17.6 us"]),
    ("queues of 50", &["processor.card.queue=50", "processor.cpu.queue=50"]),
    ("write buffer", &["processor.card.write_buffer=1"]),
    ("prefetch", &["processor.card.prefetch=1"]),
    (
        "both, aware",
        &["processor.card.write_buffer=1", "processor.card.prefetch=1", "scheduler.prefetch_aware=true"],
    ),
    ("window 30", &["scheduler.window=30"]),
    (
        "window 10, timeout, max_bytes",
        &["scheduler.window=10", "scheduler.timeout=20 us", "scheduler.max_bytes=1500"],
    ),
    ("single", &["scheduler.policy=single"]),
    ("round robin", &["scheduler.policy=round-robin"]),
    ("shortest queue", &["scheduler.policy=shortest-queue"]),
    ("size threshold", &["scheduler.policy=size-threshold"]),
    ("poisson at 200 Mbit/s", &["traffic.arrivals=poisson", "traffic.rate=200 Mbit/s"]),
    ("on-off", &["traffic.arrivals=on-off", "traffic.on=1 ms", "traffic.off=1 ms"]),
    ("imix", &["traffic.source=imix"]),
    (
        "exponential",
        &["traffic.source=exponential", "traffic.mean=471", "traffic.min=20", "traffic.max=7065"],
    ),
    ("serial bus", &["bus={ bandwidth = 8e9, transfer_overhead = 5e-7, full_duplex = true }"]),
    ("predicted transfers", &["scheduler.predict_transfer=true"]),
    ("limited input", &["scheduler.input=100", "processor.card.queue=10"]),
    ("seed 2", &["seed=2"]),
];

fn fingerprint(sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let scenario = Scenario::parse(HOST, "host", &sets, Path::new("")).unwrap_or_else(|errors| {
        panic!("{sets:?}: {:?}", errors.findings().iter().map(ToString::to_string).collect::<Vec<_>>())
    });
    let columns = run(&scenario, Options { columns: true, ..Options::default() }).unwrap().columns.unwrap();
    let mut hash = Sha256::new();
    for at in 0..columns.bytes.len() {
        for number in [columns.bytes[at].into(), columns.sa[at].into(), u64::from(columns.processor[at])] {
            hash.update(number.to_le_bytes());
        }
        for time in [columns.arrived[at], columns.chosen[at], columns.completed[at]] {
            hash.update(time.to_le_bytes());
        }
    }
    hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_scenario_has_its_fingerprint() {
    let found = CASES.iter().fold(String::new(), |mut text, (name, sets)| {
        writeln!(text, "{}  {name}", fingerprint(sets)).unwrap();
        text
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap());
}
