//! The order of what is drawn: chains of sizes, runs of SAs, gaps from a table.

use std::path::Path;

use forebay_sim::{Arrival, Rate, Scenario, Stream};

const CHAINED: &str = r#"
model = "host"
[traffic]
source = "histogram"
bins = [[40, 1], [1000, 1100, 1]]
transitions = [[9, 1], [2, 8]]
packets = 50_000
overhead = 0
sas = 10
sa_run_length = 4
gaps = [["1 us", "3 us", 1], ["1 ms", 1e-3, 1]]
gap_transitions = [[99, 1], [1, 0]]
[[processor]]
name = "card"
kind = "accelerator"
"#;

fn read(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Scenario::parse(text, "scenario.toml", &sets, Path::new("")).unwrap_or_else(|errors| {
        panic!("{:?}", errors.findings().iter().map(|one| one.to_string()).collect::<Vec<_>>())
    })
}

/// Message and hint of the one thing that is wrong.
fn wrong(sets: &[&str]) -> (String, String) {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let errors = Scenario::parse(CHAINED, "scenario.toml", &sets, Path::new("")).unwrap_err();
    let [finding] = errors.findings() else { panic!("{:?}", errors.findings()) };
    (finding.to_string(), finding.problem().help())
}

fn packets(scenario: &Scenario) -> Vec<Arrival> {
    Stream::new(&scenario.traffic, 1).collect()
}

/// How many successive packets differ.
fn changes<T: PartialEq>(list: impl Iterator<Item = T> + Clone) -> usize {
    list.clone().zip(list.skip(1)).filter(|(a, b)| a != b).count()
}

#[test]
fn sizes_sas_and_gaps_come_in_their_orders() {
    let list = packets(&read(CHAINED, &[]));
    let count = list.len() as f64;
    let small = list.iter().filter(|packet| packet.bytes == 40).count() as f64;
    // In the long run 2/3 are small, and 2/3 x 1/10 + 1/3 x 2/10 of the packets begin a run.
    assert!((small / count - 2.0 / 3.0).abs() < 0.01, "{small}");
    let runs = changes(list.iter().map(|packet| packet.bytes == 40)) as f64;
    assert!((runs / count - 2.0 / 15.0).abs() < 0.01, "{runs}");
    assert!(list.iter().all(|packet| packet.bytes == 40 || (1_000..=1_100).contains(&packet.bytes)));
    // An SA ends after a quarter of the packets, and nine of ten draws are of another SA.
    let sas = changes(list.iter().map(|packet| packet.sa)) as f64;
    assert!((sas / count - 0.225).abs() < 0.01, "{sas}");
    let gaps: Vec<u64> = list.windows(2).map(|two| two[1].at.0 - two[0].at.0).collect();
    let long = gaps.iter().filter(|&&gap| gap == 1_000_000_000).count() as f64;
    assert!((long / count - 1.0 / 101.0).abs() < 0.002, "{long}");
    assert!(gaps.iter().all(|&gap| gap == 1_000_000_000 || (1_000_000..=3_000_000).contains(&gap)));
    assert!(gaps.windows(2).all(|two| two[0] < 1_000_000_000 || two[1] < 1_000_000_000));
}

#[test]
fn a_chain_of_each_sa_is_the_chain_of_that_sa_s_packets() {
    let list = packets(&read(CHAINED, &["traffic.transitions_per=sa"]));
    for sa in 0..10 {
        let own: Vec<bool> = list.iter().filter(|one| one.sa == sa).map(|one| one.bytes == 40).collect();
        let share = changes(own.iter()) as f64 / own.len() as f64;
        assert!((share - 2.0 / 15.0).abs() < 0.02, "{share}");
    }
    // Of all packets more differ from the one before.
    assert!(changes(list.iter().map(|one| one.bytes == 40)) as f64 > 0.15 * list.len() as f64);
}

#[test]
fn gaps_are_scaled_to_a_rate() {
    for (set, bits_per_s) in [("traffic.rate=100 Mbit/s", 1e8), ("traffic.packet_rate=20 kpacket/s", 6.13e7)]
    {
        let list = packets(&read(CHAINED, &[set]));
        let bits = 8.0 * list.iter().map(|packet| f64::from(packet.bytes)).sum::<f64>();
        let rate = bits / (list.last().unwrap().at.0 as f64 * 1e-12);
        assert!((rate / bits_per_s - 1.0).abs() < 0.12, "{set}: {rate}");
    }
    let tried = read(CHAINED, &[]).with_rate(Rate::per_second(200_000_000));
    let fast = packets(&tried);
    let bits = 8.0 * fast.iter().map(|packet| f64::from(packet.bytes)).sum::<f64>();
    assert!((bits / (fast.last().unwrap().at.0 as f64 * 1e-12) / 2e8 - 1.0).abs() < 0.12);
}

#[test]
fn the_resolved_scenario_gives_the_same_run() {
    let first = read(CHAINED, &["traffic.rate=100 Mbit/s", "traffic.packets=2000"]);
    let again = read(&first.resolved_toml(), &[]);
    assert_eq!(again.resolved, first.resolved);
    assert_eq!(packets(&again), packets(&first));
}

#[test]
fn what_is_wrong_with_an_order_is_said() {
    let rows = wrong(&["traffic.transitions=[[1, 1]]"]);
    assert_eq!(rows.0, "`transitions` has 1 rows");
    assert!(rows.1.contains("a row of 2 weights for each of the 2 bins in `bins`"));
    assert!(wrong(&["traffic.transitions=[[1, 1], [0, 0]]"]).0.contains("no weight above 0"));
    assert!(wrong(&["traffic.transitions=[[1, 1], [1]]"]).0.contains("has 1 weights"));
    assert!(wrong(&["traffic.run_length=4"]).0.contains("both `run_length` and `transitions`"));
    assert!(
        wrong(&["traffic.gaps=[[\"2 us\", \"1 us\", 1]]", "traffic.gap_transitions=[[1]]"])
            .0
            .contains("below the shortest")
    );
    assert!(wrong(&["traffic.gaps=[[0, 0, 1]]", "traffic.gap_transitions=[[1]]"]).0.contains("one instant"));
    assert!(wrong(&["traffic.sa_run_length=0.5"]).0.contains("below 1"));
}
