//! The order in which the packets of each SA leave, against one that is counted packet by packet.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_sim::{Columns, Figures, Options, Scenario, run};

const HOST: &str = r#"
model = "host"
[traffic]
source = "paper"
rate = "1 Gbit/s"
packets = 20_000
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
queue = 200
[[processor]]
name = "card"
kind = "accelerator"
init = "1 us"
block = "440 ns"
count = 2
queue = 200
"#;

fn ran(sets: &[&str]) -> (Figures, Columns) {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let scenario = Scenario::parse(HOST, "host.toml", &sets, Path::new("")).unwrap_or_else(|errors| {
        panic!("{:?}", errors.findings().iter().map(|one| one.to_string()).collect::<Vec<_>>())
    });
    let outcome = run(&scenario, Options { columns: true, ..Options::default() }).unwrap();
    (outcome.figures, outcome.columns.unwrap())
}

/// By SA the times of completion in picoseconds, in the order of arrival.
fn completions(columns: &Columns) -> BTreeMap<u32, Vec<u64>> {
    let mut sas = BTreeMap::<u32, Vec<u64>>::new();
    for (sa, completed) in columns.sa.iter().zip(&columns.completed) {
        sas.entry(*sa).or_default().push(*completed);
    }
    sas
}

/// Late packets, those that are 64 or more behind, and the farthest.
fn counted(columns: &Columns) -> (u64, u64, u32) {
    let (mut late, mut beyond, mut farthest) = (0, 0, 0);
    for times in completions(columns).values() {
        let mut leaving: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
        leaving.sort_unstable();
        let mut highest = 0;
        for (_, number) in leaving {
            let behind = highest as usize - number.min(highest as usize);
            late += u64::from(behind > 0);
            beyond += u64::from(behind >= 64);
            farthest = farthest.max(behind as u32);
            highest = highest.max(number as u32);
        }
    }
    (late, beyond, farthest)
}

#[test]
fn late_packets_are_those_that_leave_after_a_later_one_of_their_sa() {
    for sets in [
        &[] as &[&str],
        &["traffic.sas=7"],
        &["traffic.sas=100", "scheduler.window=10"],
        &["scheduler.policy=round-robin", "traffic.sas=3"],
        &["traffic.rate=200 Mbit/s"],
        &["scheduler.burst=32", "traffic.sas=2"],
    ] {
        let (figures, columns) = ran(sets);
        let (late, beyond, farthest) = counted(&columns);
        let order = &figures.order;
        assert_eq!((order.late, order.distance_max), (late, farthest), "{sets:?}");
        assert_eq!(order.late_share, late as f64 / figures.packets as f64, "{sets:?}");
        assert_eq!(order.beyond_64_share, beyond as f64 / figures.packets as f64, "{sets:?}");
        assert!(order.hold.is_none() && order.release_latency.is_none());
    }
}

#[test]
fn overload_with_one_sa_loses_packets_to_a_window_of_64_and_more_sas_do_not() {
    let (one, _) = ran(&[]);
    assert!(one.order.beyond_64_share > 0.3 && one.order.distance_max > 150, "{:?}", one.order);
    let (many, _) = ran(&["traffic.sas=100"]);
    assert!(many.order.beyond_64_share == 0.0 && many.order.late > 0, "{:?}", many.order);
    let (single, _) = ran(&["scheduler.policy=single"]);
    assert_eq!(single.order.late, 0);
}

#[test]
fn kept_order_holds_packets_until_those_before_them_are_done() {
    for sas in ["traffic.sas=1", "traffic.sas=9"] {
        let (plain, columns) = ran(&[sas]);
        let (kept, same) = ran(&[sas, "scheduler.keep_order=true"]);
        // What processors do is the same.
        assert_eq!(columns.completed, same.completed);
        assert_eq!((kept.order.late, kept.order.distance_max), (0, 0));
        assert!(plain.order.late > 0);
        let mut held = 0.0;
        for times in completions(&columns).values() {
            let mut latest = 0;
            for time in times {
                latest = latest.max(*time);
                held += (latest - time) as f64 * 1e-12;
            }
        }
        let hold = kept.order.hold.unwrap().mean_s;
        assert!((hold - held / kept.packets as f64).abs() < 1e-12, "{hold}");
        let release = kept.order.release_latency.unwrap().mean_s;
        assert!((release - hold - kept.total_latency.mean_s).abs() < 1e-9);
    }
}

#[test]
fn packets_that_a_full_input_turns_away_have_no_number() {
    // One processor keeps the order, whatever is lost.
    let (figures, _) = ran(&["scheduler.policy=single", "scheduler.input=10", "scheduler.keep_order=true"]);
    assert!(figures.lost > 1_000 && figures.order.late == 0);
    assert_eq!(figures.order.hold.unwrap().mean_s, 0.0);
}

#[test]
fn a_running_core_keeps_the_order_and_refuses_the_key() {
    let polls: &[&str] = &["scheduler.poll=true", "processor.cpu.move=300 ns", "traffic.packets=2000"];
    let (figures, _) = ran(polls);
    assert_eq!(figures.order.late, 0);
    let sets: Vec<String> =
        polls.iter().chain(&["scheduler.keep_order=true"]).map(|set| set.to_string()).collect();
    let errors = Scenario::parse(HOST, "host.toml", &sets, Path::new("")).unwrap_err();
    assert!(
        errors
            .findings()
            .iter()
            .any(|one| one.to_string().contains("`keep_order` means nothing with `poll`"))
    );
}

#[test]
fn cores_without_order_let_bursts_overtake() {
    let cores = |ordered: &str| {
        let text = HOST.split("[[processor]]").next().unwrap().to_owned()
            + "[[processor]]\nname = \"core\"\nkind = \"cpu\"\ncount = 3\ninit = \"1 us\"\nblock = \"300 ns\"\n[cores]\nburst = 8\n";
        let sets = vec![format!("cores.ordered={ordered}")];
        let scenario = Scenario::parse(&text, "cores.toml", &sets, Path::new("")).unwrap_or_else(|errors| {
            panic!("{:?}", errors.findings().iter().map(|one| one.to_string()).collect::<Vec<_>>())
        });
        run(&scenario, Options::default()).unwrap().figures.order
    };
    assert_eq!(cores("true").late, 0);
    let free = cores("false");
    assert!(free.late > 0, "{free:?}");
}
