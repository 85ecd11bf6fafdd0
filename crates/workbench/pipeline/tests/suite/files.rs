//! Pipelines whose packets come from files, and stages in an order of their own.

use std::path::Path;

use forebay_pipeline::scenario::{CardScenario, Rules, Scenario};
use forebay_pipeline::size::{By, smallest_buffers};
use forebay_pipeline::{Arrivals, interval, replicate, simulate};
use forebay_time::Duration;

/// A trace read in a folder of its own.
fn read(csv: &str, arrivals: &str, more: &[&str]) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace.csv"), csv).unwrap();
    let text = format!(
        "model = \"pipeline\"\n[arrivals]\npath = \"trace.csv\"\n{arrivals}\n[[stage]]\nname = \"line\"\n\
         rate = \"1 Gbit/s\"\noverhead_bytes = 25\nbuffer = 2\n"
    );
    let sets: Vec<String> = more.iter().map(|set| set.to_string()).collect();
    Scenario::parse(&text, "trace.toml", &sets, folder.path()).unwrap_or_else(|errors| {
        panic!("{:?}", errors.findings().iter().map(|one| one.to_string()).collect::<Vec<_>>())
    })
}

fn times(scenario: &Scenario) -> Vec<(u64, u32)> {
    let Arrivals::Trace(trace) = &scenario.pipeline.arrivals else { panic!("no trace") };
    trace.iter().map(|packet| (packet.at.0 / 1_000, packet.bytes)).collect()
}

#[test]
fn a_csv_file_by_its_own_times_back_to_back_and_evenly() {
    // Out of order, the first at 3 s: times count from the earliest.
    let csv = "size,time\n100,3.000001\n1000,3\n475,3.00001\n";
    let own = read(csv, "", &[]);
    assert_eq!(times(&own), [(0, 1000), (1_000, 100), (10_000, 475)]);
    assert!(own.notes[0].contains("not in the order of its times"), "{:?}", own.notes);
    // 1025 bytes are 8.2 us at 1 Gbit/s, and the last 500 bytes 4: it begins at 10 us and ends at 14.
    let outcome = simulate(&own.simulated()).unwrap();
    assert_eq!((outcome.processed, outcome.lost, outcome.elapsed_s), (3, 0, 14e-6));
    assert!((outcome.stages[0].utilisation - 13.2 / 14.0).abs() < 1e-9, "{outcome:?}");
    // Back to back at 100 Mbit/s: 8 us for 100 bytes, 80 for 1000.
    assert_eq!(times(&read(csv, "rate = \"100 Mbit/s\"", &[])), [(0, 100), (8_000, 1000), (88_000, 475)]);
    assert_eq!(
        times(&read("size\n40\n41\n42\n", "packet_rate = \"1 Mpacket/s\"\npackets = 2", &[])),
        [(0, 40), (1_000, 41)]
    );
    // Three at once: one in service, one waiting, one lost.
    let outcome = simulate(&read("size,time\n9,0\n9,0\n9,0\n", "", &[]).simulated()).unwrap();
    assert_eq!((outcome.processed, outcome.lost), (2, 1));
    // A duration cuts the run short; without one it goes on until the last packet has left.
    let cut = read(csv, "", &["duration=5 us"]);
    assert_eq!(simulate(&cut.simulated()).unwrap().in_flight, 2);
    assert_eq!((own.rules, own.pipeline.duration), (Rules::Described, None));
}

#[test]
fn a_capture() {
    // pcap, raw IP, microseconds: two IPv4 headers that say 40 and 60 bytes, 5 us apart.
    let mut pcap = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        pcap.extend(word.to_le_bytes());
    }
    pcap[4..8].copy_from_slice(&[2, 0, 4, 0]);
    for (micros, len) in [(7u32, 40u16), (12, 60)] {
        let mut packet = vec![0u8; usize::from(len)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        for word in [1, micros, u32::from(len), u32::from(len)] {
            pcap.extend(word.to_le_bytes());
        }
        pcap.extend(packet);
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.pcap"), pcap).unwrap();
    let text = "model = \"pipeline\"\narrivals = { path = \"two.pcap\" }\n[[stage]]\nname = \"a\"\ntime = \"1 us\"\nbuffer = 2\n";
    let scenario = Scenario::parse(text, "a.toml", &[], folder.path()).unwrap();
    assert_eq!(times(&scenario), [(0, 40), (5_000, 60)]);
}

#[test]
fn what_is_resolved_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "size\n40\n1500\n").unwrap();
    let text = "model = \"pipeline\"\n[arrivals]\npath = \"t.csv\"\nrate = 1e6\npackets = 9\n[[stage]]\nname = \"a\"\ntime = 1e-6\nbuffer = 2\n";
    let first = Scenario::parse(text, "a.toml", &[], folder.path()).unwrap();
    let again = Scenario::parse(&first.resolved_toml(), "b.toml", &[], folder.path()).unwrap();
    assert_eq!((again.pipeline, again.resolved), (first.pipeline, first.resolved));
}

#[test]
fn stages_follow_next() {
    let stage = |name: &str, more: &str| {
        format!("[[stage]]\nname = \"{name}\"\ntime = \"1 us\"\nbuffer = 3\n{more}\n")
    };
    let order = |stages: &[(&str, &str)]| {
        let all: String = stages.iter().map(|(name, more)| stage(name, more)).collect();
        let text = format!("model = \"pipeline\"\narrivals = {{ mean = \"9 us\" }}\n{all}");
        let scenario = Scenario::parse(&text, "order.toml", &[], Path::new(".")).unwrap();
        let names: Vec<String> = scenario.pipeline.stages.iter().map(|stage| stage.name.clone()).collect();
        // What is resolved stands in order.
        let again = Scenario::parse(&scenario.resolved_toml(), "again.toml", &[], Path::new(".")).unwrap();
        assert_eq!(again.pipeline, scenario.pipeline);
        names.join(" ")
    };
    assert_eq!(order(&[("a", ""), ("b", ""), ("c", "")]), "a b c");
    assert_eq!(order(&[("a", "next = \"c\""), ("b", ""), ("c", "next = \"b\"")]), "a c b");
    assert_eq!(order(&[("b", ""), ("a", "next = \"b\"")]), "a b");
    assert_eq!(order(&[("c", ""), ("a", "next = \"b\""), ("b", "next = \"c\"")]), "a b c");
}

#[test]
fn a_card_of_which_packets_come_by_chance() {
    let card = |arrivals: &str| {
        let text = format!(
            "model = \"inline-card\"\npayload = 1000\noffered = \"500 Mbit/s\"\ndistribution = \"{arrivals}\"\n\
             buffer = 3\nduration = \"200 ms\"\n[[resource]]\nname = \"line\"\nrate = \"1 Gbit/s\"\n"
        );
        let card = CardScenario::parse(&text, "card.toml", &[]).unwrap();
        assert_eq!(
            CardScenario::parse(&card.resolved_toml(), "again.toml", &[]).unwrap().pipeline,
            card.pipeline
        );
        card.pipeline
    };
    assert_eq!(simulate(&card("constant")).unwrap().lost, 0);
    // M/D/1/3 at a load of a half.
    let found = interval(&replicate(&card("exponential"), 20, 2).unwrap(), 0.999, |one| one.loss_probability);
    let exact = md1k(0.5, 3);
    assert!(found.contains(exact), "{found:?} {exact}");
    // Evenly, one place is enough; by chance it is not.
    let by = By::Simulation { runs: 3, threads: 2 };
    assert_eq!(smallest_buffers(&card("constant"), 0.01, 99, by).unwrap().unwrap().buffers, [1]);
    assert!(smallest_buffers(&card("exponential"), 0.01, 99, by).unwrap().unwrap().buffers[0] > 3);
    assert_eq!(card("exponential").arrivals, Arrivals::Exponential(Duration::from_micros(16)));
}

/// Loss of M/D/1/K: from the chain of packets left behind at departures.
fn md1k(load: f64, room: usize) -> f64 {
    let arrive = |n: usize| (-load).exp() * load.powi(n as i32) / (1..=n).product::<usize>() as f64;
    let mut left = vec![1.0];
    for n in 0..room - 1 {
        let from = |i: usize| if i == 0 { arrive(n) } else { arrive(n + 1 - i) };
        let sum: f64 = left[0] * from(0) + (1..=n).map(|i| left[i] * from(i)).sum::<f64>();
        left.push((left[n] - sum) / arrive(0));
    }
    let total: f64 = left.iter().sum();
    1.0 - 1.0 / (left[0] / total + load)
}

#[test]
fn a_timeout_of_services_that_wait_for_nothing_is_noted() {
    let notes = |keys: &str| {
        let text = format!(
            "model = \"pipeline\"\narrivals = {{ mean = \"9 us\" }}\n[[stage]]\nname = \"a\"\ntime = \"1 us\"\nbuffer = 9\n\
             batch = 4\n{keys}\n"
        );
        let scenario = Scenario::parse(&text, "batch.toml", &[], Path::new(".")).unwrap();
        let again = Scenario::parse(&scenario.resolved_toml(), "again.toml", &[], Path::new(".")).unwrap();
        assert_eq!(again.pipeline, scenario.pipeline);
        scenario.notes
    };
    let timeout = "batch_timeout = \"1 ms\"";
    assert_eq!(notes(""), [""; 0]);
    assert_eq!(notes(&format!("batch_min = 2\n{timeout}")), [""; 0]);
    let noted = "`batch_timeout` of `a` has no effect with `batch_min = 1`";
    assert_eq!(notes(&format!("batch_min = 1\n{timeout}")), [noted]);
}
