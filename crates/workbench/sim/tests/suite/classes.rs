//! Service classes: schedules worked out by hand, what must hold for all, and what is said of wrong ones.
//!
//! The CPU has t_init 100 and t_block 200 ps: 16 bytes in 300 ps, 1500 bytes in 18900.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use forebay_sim::{Arrivals, Columns, Options, Outcome, Scenario, Source, Trace, run};
use proptest::prelude::*;

const CPU: &str = "[[processor]]\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"200 ps\"\n";
const TRAFFIC: &str = "model = \"host\"\n[traffic]\nsource = \"fixed\"\nvalue = 1\nrate = \"1 Gbit/s\"\noverhead = 0\npackets = 1\n";

/// When a packet arrives (ps), its bytes, its class.
type Packet = (u64, u32, u8);

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "s.toml", &[], Path::new("")).unwrap_or_else(|errors| {
        panic!("{:?}", errors.findings().iter().map(|one| (one.to_string(), one.line())).collect::<Vec<_>>())
    })
}

/// Line, message and hint of everything wrong.
fn wrong(text: &str) -> Vec<(usize, String, String)> {
    let errors = Scenario::parse(text, "s.toml", &[], Path::new("")).unwrap_err();
    let one = |one: &forebay_sim::Finding| (one.line().unwrap(), one.to_string(), one.problem().help());
    errors.findings().iter().map(one).collect()
}

/// A scenario of processors and classes for the given packets, all of one SA.
fn scenario(text: &str, packets: &[Packet]) -> Scenario {
    let shares = text.replace("[[class]]", "[[class]]\nshare = 1");
    let mut scenario = parse(&format!("{TRAFFIC}{shares}"));
    scenario.traffic.source = Source::Trace(Arc::new(Trace {
        times: packets.iter().map(|packet| packet.0).collect(),
        sizes: packets.iter().map(|packet| packet.1).collect(),
        classes: packets.iter().map(|packet| packet.2).collect(),
        ..Trace::default()
    }));
    scenario.traffic.arrivals = Arrivals::Stamps;
    scenario.traffic.classes.clear();
    scenario.traffic.packets = None;
    scenario
}

fn columns(scenario: &Scenario) -> (Outcome, Columns) {
    let mut outcome = run(scenario, Options { columns: true, ..Options::default() }).unwrap();
    let columns = outcome.columns.take().unwrap();
    (outcome, columns)
}

/// Chosen and completed, by packet.
fn times(scenario: &Scenario) -> Vec<(u64, u64)> {
    let columns = columns(scenario).1;
    columns.chosen.into_iter().zip(columns.completed).collect()
}

#[test]
fn a_strict_class_goes_before_what_waits_for_the_same_queue() {
    // Of three bulk packets at 0 one is computed, one fills the queue, one waits for it; so does the urgent one
    // from 10 on. The queue has room at 300, when the second begins: the urgent one takes it, though it came last.
    let text = format!("{CPU}queue = 1\n[[class]]\nname = \"urgent\"\n[[class]]\nname = \"bulk\"\n");
    let packets = [(0, 16, 1), (0, 16, 1), (0, 16, 1), (10, 16, 0)];
    let scenario = scenario(&text, &packets);
    assert_eq!(times(&scenario), [(0, 300), (0, 600), (0, 1_200), (10, 900)]);
    let figures = columns(&scenario).0.figures;
    let [urgent, bulk] = &figures.classes[..] else { panic!("two classes") };
    assert_eq!((urgent.name.as_str(), urgent.packets, bulk.packets, bulk.lost), ("urgent", 1, 3, 0));
    assert_eq!((urgent.total_latency.mean_s, urgent.processing_latency.mean_s), (890e-12, 890e-12));
    assert_eq!((bulk.total_latency.mean_s, bulk.total_latency.p50_s), (2_100e-12 / 3.0, 600e-12));
    assert_eq!(figures.total_latency.mean_s, (890.0 + 2_100.0) * 1e-12 / 4.0);
}

#[test]
fn weighted_classes_take_turns_by_their_bytes() {
    // A quantum is 1500 bytes for each unit of weight: one packet of class 0, two of class 1. When the queue is full
    // at 0, two of class 0 have left; the third has its credit and its turn. Then two of class 1 (37800, 56700),
    // one of class 0 (75600), and what is left.
    let text = format!(
        "{CPU}queue = 1\n[[class]]\nservice = \"weighted\"\n[[class]]\nservice = \"weighted\"\nweight = 2\n"
    );
    let packets = [0, 0, 0, 1, 1, 1, 0].map(|class| (0, 1_500, class));
    let completed: Vec<u64> = times(&scenario(&text, &packets)).into_iter().map(|(_, done)| done).collect();
    assert_eq!(completed, [1, 2, 3, 4, 5, 7, 6].map(|turn| turn * 18_900));
}

#[test]
fn a_window_runs_out_while_another_class_waits_for_a_queue() {
    // Bulk may use one place of two. The urgent window waits for a second packet until 60, then its packet is
    // placed into the free place, although bulk is blocked all the time.
    let text = format!(
        "{CPU}queue = 2\n[[class]]\nwindow = 2\ntimeout = \"50 ps\"\n[[class]]\nname = \"bulk\"\nqueue = 1\n"
    );
    let packets = [(0, 16, 1), (0, 16, 1), (0, 16, 1), (10, 16, 0)];
    // There is a later packet: at the end of the input no window waits.
    let packets = [&packets[..], &[(5_000, 16, 1)]].concat();
    assert_eq!(
        times(&scenario(&text, &packets)),
        [(0, 300), (0, 600), (0, 1_200), (60, 900), (5_000, 5_300)]
    );
}

#[test]
fn a_class_loses_what_its_own_input_does_not_take() {
    let text = format!("{CPU}queue = 1\n[[class]]\n[[class]]\nname = \"bulk\"\ninput = 1\n");
    // One computed, one queued, one in hand, one in the input: two of six bulk packets are lost, no urgent one.
    let packets = [1, 1, 1, 1, 1, 1, 0, 0].map(|class| (0, 16, class));
    let figures = columns(&scenario(&text, &packets)).0.figures;
    assert_eq!((figures.lost, figures.packets), (2, 6));
    assert_eq!(
        figures.classes.iter().map(|class| (class.packets, class.lost)).collect::<Vec<_>>(),
        [(2, 0), (4, 2)]
    );
}

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let gap = prop_oneof![Just(0), 0u64..300, 0u64..2_000];
    prop::collection::vec((gap, 1u32..400, 0u8..4), 1..120).prop_map(|packets| {
        let mut now = 0;
        packets
            .into_iter()
            .map(|(gap, bytes, class)| {
                now += gap;
                (now, bytes, class)
            })
            .collect()
    })
}

fn processors() -> impl Strategy<Value = String> {
    (1usize..4, 1usize..3, 0usize..2, 0usize..2).prop_map(|(queue, cards, buffer, prefetch)| {
        format!(
            "[bus]\nclock = \"100 GHz\"\n{CPU}queue = {queue}\n[[processor]]\nkind = \"accelerator\"\ncount = {cards}\ninit = \"40 ps\"\n\
             block = \"60 ps\"\nqueue = {queue}\nwrite_buffer = {buffer}\nprefetch = {prefetch}\n"
        )
    })
}

fn window() -> impl Strategy<Value = String> {
    (1usize..4, prop::option::of(0u64..900)).prop_map(|(window, timeout)| {
        let timeout = timeout.map_or(String::new(), |timeout| format!("timeout = \"{timeout} ps\"\n"));
        format!("window = {window}\n{timeout}")
    })
}

fn classes() -> impl Strategy<Value = String> {
    let class = |service: &'static str| {
        let limits = (prop::option::of(3usize..9), prop::option::of(1usize..3));
        (window(), limits, 1u32..4).prop_map(move |(window, (input, queue), weight)| {
            let weight = if service == "weighted" { format!("weight = {weight}\n") } else { String::new() };
            let input = input.map_or(String::new(), |input| format!("input = {input}\n"));
            let queue = queue.map_or(String::new(), |queue| format!("queue = {queue}\n"));
            format!("[[class]]\nservice = \"{service}\"\n{weight}{window}{input}{queue}")
        })
    };
    let strict = prop::collection::vec(class("strict"), 0..3);
    let weighted = prop::collection::vec(class("weighted"), 0..3);
    (strict, weighted)
        .prop_map(|(strict, weighted)| [strict, weighted].concat().concat())
        .prop_filter("one at least", |classes| !classes.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_leaves_once_and_in_its_class_s_order(
        packets in packets(), processors in processors(), classes in classes(),
    ) {
        let scenario = scenario(&format!("{processors}{classes}"), &packets);
        let count = scenario.scheduler.classes.len();
        let (outcome, columns) = columns(&scenario);
        let figures = &outcome.figures;
        prop_assert_eq!(figures.packets + figures.lost, packets.len() as u64);
        prop_assert_eq!(figures.classes.len(), count);
        for (number, class) in figures.classes.iter().enumerate() {
            let of_class = |packet: &&Packet| usize::from(packet.2).min(count - 1) == number;
            let came = packets.iter().filter(of_class).count() as u64;
            prop_assert_eq!(class.packets + class.lost, came);
            // One SA: what leaves a class leaves it in order, and each job's packets together.
            let chosen = (0..packets.len()).filter(|&at| of_class(&&packets[at]) && columns.processor[at] != u16::MAX);
            let chosen: Vec<u64> = chosen.map(|at| columns.chosen[at]).collect();
            prop_assert!(chosen.is_sorted(), "class {}: {:?}", number, chosen);
        }
        for (at, packet) in packets.iter().enumerate().filter(|&(at, _)| columns.processor[at] != u16::MAX) {
            prop_assert!(packet.0 <= columns.chosen[at] && columns.chosen[at] < columns.completed[at]);
        }
        let sum: u64 = figures.processors.iter().map(|one| one.packets).sum();
        prop_assert_eq!(sum, figures.packets);
        // All classes together have the latencies of all.
        let weigh = |class: &forebay_sim::ClassFigures| class.packets as f64 * class.total_latency.mean_s;
        // Those without packets have none.
        let none = |class: &&forebay_sim::ClassFigures| class.packets == 0;
        prop_assert!(figures.classes.iter().filter(none).all(|class| class.total_latency.mean_s.is_nan()));
        let some = figures.classes.iter().filter(|class| class.packets > 0);
        let mean = some.map(weigh).sum::<f64>() / figures.packets as f64;
        prop_assert!((mean - figures.total_latency.mean_s).abs() <= 1e-12 * mean.abs());
    }

    #[test]
    fn one_class_is_what_a_scenario_without_classes_is(
        packets in packets(), processors in processors(), window in window(), service in 0usize..2,
    ) {
        let service = ["strict", "weighted"][service];
        let plain = scenario(&format!("{processors}[scheduler]\n{window}"), &packets);
        let classed = scenario(&format!("{processors}[[class]]\nservice = \"{service}\"\n{window}"), &packets);
        let (with, without) = (columns(&classed), columns(&plain));
        prop_assert_eq!(with.1, without.1);
        let figures = forebay_sim::Figures { classes: Vec::new(), ..with.0.figures };
        prop_assert_eq!(figures, without.0.figures);
    }

    #[test]
    fn classes_that_the_scheduler_does_not_see_change_nothing_but_figures(
        packets in packets(), processors in processors(), window in window(), classes in classes(),
    ) {
        let plain = format!("{processors}[scheduler]\n{window}");
        let blind = scenario(&format!("{plain}by_class = false\n{classes}"), &packets);
        let (with, without) = (columns(&blind), columns(&scenario(&plain, &packets)));
        prop_assert_eq!(with.1, without.1);
        let count = blind.scheduler.classes.len();
        for (number, class) in with.0.figures.classes.iter().enumerate() {
            let came = packets.iter().filter(|packet| usize::from(packet.2).min(count - 1) == number).count();
            prop_assert_eq!(class.packets, came as u64);
        }
        let figures = forebay_sim::Figures { classes: Vec::new(), ..with.0.figures };
        prop_assert_eq!(figures, without.0.figures);
    }
}

const DRAWN: &str = "model = \"host\"\n[traffic]\nsource = \"imix\"\npackets = 20_000\nrate = \"1 Gbit/s\"\n\
[[processor]]\nkind = \"accelerator\"\ncount = 2\ninit = \"1 us\"\nqueue = 50\n";

#[test]
fn drawn_classes_have_their_shares_and_sizes() {
    let voice = "[[class]]\nname = \"voice\"\nshare = 0.25\nsource = \"fixed\"\nvalue = 160\n";
    let text = format!("{DRAWN}{voice}[[class]]\nname = \"bulk\"\nshare = 0.75\n");
    let scenario = parse(&text);
    let figures = run(&scenario, Options::default()).unwrap().figures;
    let [voice, bulk] = &figures.classes[..] else { panic!() };
    assert!((4_800..5_200).contains(&voice.packets) && voice.packets + bulk.packets == 20_000);
    // 3.7 times too much is offered: all of it is bulk's to wait for.
    assert!(voice.total_latency.p99_s < 2e-3 && bulk.total_latency.mean_s > 20e-3, "{figures:?}");
    let stream = forebay_sim::Stream::new(&scenario.traffic, 1);
    assert!(stream.clone().all(|packet| (packet.class == 0) == (packet.bytes == 200)));
    // The same shares without own sizes: the same classes, and the sizes of the scenario without classes.
    let alike = parse(&text.replace("source = \"fixed\"\nvalue = 160\n", ""));
    let alike = forebay_sim::Stream::new(&alike.traffic, 1);
    assert!(alike.clone().map(|packet| packet.class).eq(stream.map(|packet| packet.class)));
    assert!(
        alike
            .map(|packet| packet.bytes)
            .eq(forebay_sim::Stream::new(&parse(DRAWN).traffic, 1).map(|p| p.bytes))
    );
    // What is resolved reads back.
    let again = parse(&scenario.resolved_toml());
    assert_eq!(again.resolved, scenario.resolved);
    assert_eq!(run(&again, Options::default()).unwrap().figures, figures);
    // Poisson arrivals are spaced by the mean over the classes: 0.25 160 + 0.75 340.33, and 40.
    let poisson = parse(&text.replace("rate", "arrivals = \"poisson\"\nrate"));
    let Arrivals::Poisson(mean) = poisson.traffic.arrivals else { panic!() };
    assert!((mean.as_secs() - 8.0 * (0.25 * 160.0 + 0.75 * 4_084.0 / 12.0 + 40.0) / 1e9).abs() < 1e-12);
}

#[test]
fn a_trace_s_column_says_the_class() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "size,class\n100,0\n200,1\n300,2\n400,1\n").unwrap();
    let text = |classes: &str| {
        let path = file.path().display();
        format!(
            "model = \"host\"\n[traffic]\nsource = \"file\"\npath = \"{path}\"\nrate = 1e9\n{CPU}{classes}"
        )
    };
    let two = parse(&text("[[class]]\nname = \"a\"\n[[class]]\nname = \"b\"\n"));
    assert!(two.notes.iter().any(|note| note == "1 packets have a class above the last; they count as `b`"));
    let figures = run(&two, Options::default()).unwrap().figures;
    assert_eq!(figures.classes.iter().map(|class| class.packets).collect::<Vec<_>>(), [1, 3]);
    let found = wrong(&text("[[class]]\ndscp = [46]\n"));
    assert_eq!(found[0].1, "the trace is no capture: its packets have no code points");
}

/// A capture of raw IP packets (link type 101) with these second octets; the last is IPv6.
fn capture(octets: &[u8]) -> tempfile::NamedTempFile {
    let mut bytes: Vec<u8> = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for (at, &octet) in octets.iter().enumerate() {
        let packet = if at + 1 < octets.len() {
            let mut packet = [0u8; 40];
            (packet[0], packet[1], packet[3], packet[8], packet[9]) = (0x45, octet, 40, 64, 17);
            packet
        } else {
            let mut packet = [0u8; 40];
            (packet[0], packet[1], packet[6], packet[7]) = (0x60 | octet >> 4, octet << 4, 59, 64);
            packet
        };
        for word in [0, at as u32, 40, 40] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(packet);
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    file
}

#[test]
fn a_capture_s_code_points_say_the_class() {
    // EF, AF21 with ECN, DF, CS1, EF in IPv6.
    let file = capture(&[46 << 2, 18 << 2 | 1, 0, 8 << 2, 46 << 2 | 2]);
    let packets = |classes: &str| {
        let path = file.path().display();
        let text =
            format!("model = \"host\"\n[traffic]\nsource = \"file\"\npath = \"{path}\"\n{CPU}{classes}");
        let scenario = parse(&text);
        let figures = run(&scenario, Options::default()).unwrap().figures;
        figures.classes.iter().map(|class| class.packets).collect::<Vec<_>>()
    };
    let three =
        "[[class]]\nname = \"real-time\"\n[[class]]\nname = \"interactive\"\n[[class]]\nname = \"bulk\"\n";
    assert_eq!(packets(three), [2, 1, 2]);
    assert_eq!(packets("[[class]]\ndscp = [\"CS1\", 46]\n[[class]]\nname = \"rest\"\n"), [3, 2]);
}

#[test]
fn every_error_is_said_with_its_line() {
    let found = wrong(&format!(
        "{TRAFFIC}{CPU}[[class]]\nname = \"a\"\nservice = \"strickt\"\nshare = 0\n[[class]]\nname = \"a\"\n\
         service = \"weighted\"\nweight = 0\nshare = 1\nqueu = 3\n[[class]]\nweight = 2\nqueue = 0\nwindow = 4\n\
         input = 2\nvalue = 3\n"
    ));
    let lines: Vec<(usize, &str)> =
        found.iter().map(|(line, message, _)| (*line, message.as_str())).collect();
    assert_eq!(
        lines,
        [
            (14, "unknown service `strickt`"),
            (15, "`share` is 0"),
            (17, "there is a class `a` already"),
            (19, "`weight` is 0"),
            (21, "unknown key `queu`"),
            (22, "this [[class]] has no `share`"),
            (22, "`class2` is strict but stands behind a weighted class"),
            (23, "`weight` means nothing for a strict class"),
            (24, "`queue` is 0"),
            (26, "`input` is 2"),
        ]
    );
    assert!(found[0].2.ends_with("did you mean `strict`?"), "{}", found[0].2);
    assert_eq!(found[4].2, "did you mean `queue`?");
    let says = |classes: &str| wrong(&format!("{TRAFFIC}{CPU}{classes}")).remove(0);
    let (line, message, help) = says("[[class]]\nqueue = 3\n");
    assert_eq!((line, message.as_str()), (12, "packets that are drawn have no class"));
    assert!(help.ends_with("share = 0.25"));
    assert_eq!(says("[[class]]\ndscp = [\"EF\"]\n").1, "packets that are drawn have no class");
    assert_eq!(says("[[class]]\nshare = 1\ndscp = [\"EF\"]\n").1, "both `share` and `dscp` are given");
    assert_eq!(says("[[class]]\nshare = 1\nvalue = 3\n").1, "`value` means nothing without `source`");
    assert_eq!(says("[[class]]\nshare = 1\nsource = \"file\"\n").1, "unknown source `file`");
    assert_eq!(says("[scheduler]\nby_class = false\n").1, "`by_class` means nothing without a class");
    assert_eq!(
        says("[scheduler]\ninput = 3\n[[class]]\nshare = 1\nwindow = 9\n").1,
        "an input of 3 packets never fills a window of 9"
    );
}
