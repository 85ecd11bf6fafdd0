//! Schedules worked out by hand. On the toy bus a packet of 16 bytes takes 50 ps (address, 4 words), one
//! of 32 bytes 90 ps. The card has t_init 40 and t_block 60 ps: 16 bytes in 100 ps, 32 in 160; the CPU
//! t_init 100 and t_block 200 ps: 16 bytes in 300 ps, 32 in 500.
//!
//! Each table has a line for each packet: when it arrives, its bytes, its SA; and what comes of it: its
//! processor, when that was chosen, and when the packet was complete.

use crate::support;

use forebay_sim::Outcome;
use support::{Packet, run_columns, scenario};

const CPU: &str = "[[processor]]\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"200 ps\"\n";
const CARD: &str = "[[processor]]\nkind = \"accelerator\"\ninit = \"40 ps\"\nblock = \"60 ps\"\n";

type Line = (u64, u32, u32, u16, u64, u64);

/// Runs the packets of the table and compares the rest of it.
fn holds(processors: &str, table: &[Line]) -> Outcome {
    let packets: Vec<Packet> = table.iter().map(|line| (line.0, line.1, line.2)).collect();
    let (outcome, columns) = run_columns(&scenario(processors, &packets));
    let found: Vec<Line> = (0..table.len())
        .map(|at| {
            let (arrived, bytes, sa) = packets[at];
            (arrived, bytes, sa, columns.processor[at], columns.chosen[at], columns.completed[at])
        })
        .collect();
    assert_eq!(found, table);
    outcome
}

#[test]
fn the_plain_rule() {
    // Card free: f_card = 100 < f_cpu = 300. It counts t_enc from when it asks for the bus.
    //   1 at   0: card 100, cpu 300               -> card: in 0-50, computed 150, out 150-200
    //   2 at  10: card 90 + 160 = 250, cpu 500    -> card, waits: in 200-290, computed 450, out 450-540
    //   3 at  20: card 80 + 160 + 100 = 340, cpu 300 -> CPU: 20-320
    //   4 at  30: card 70 + 160 + 100 = 330, cpu 290 + 300 -> card: in 540-590, computed 690, out -740
    //   5 at 330: card: took job 2 at 200, 160 - 130 = 30, + 100 + 100 = 230; cpu 300 -> card: in 740-790,
    //             computed 890, out 890-940
    let table = [
        (0, 16, 0, 1, 0, 200),
        (10, 32, 0, 1, 10, 540),
        (20, 16, 0, 0, 20, 320),
        (30, 16, 0, 1, 30, 740),
        (330, 16, 0, 1, 330, 940),
    ];
    let figures = holds(&format!("{CPU}{CARD}"), &table).figures;
    let (cpu, card) = (&figures.processors[0], &figures.processors[1]);
    assert_eq!((cpu.packets, cpu.bytes, card.packets, card.bytes), (1, 16, 4, 80));
    assert_eq!(card.mean_size, 20.0);
    assert_eq!(figures.elapsed_s, 940e-12);
    assert!((cpu.load - 300.0 / 940.0).abs() < 1e-12);
    assert!((card.load - (100.0 + 160.0 + 100.0 + 100.0) / 940.0).abs() < 1e-12);
    // Transfers: 3 packets of 16 bytes and one of 32, in and out.
    assert!((figures.bus.load - 2.0 * (3.0 * 50.0 + 90.0) / 940.0).abs() < 1e-12);
    assert!((figures.throughput_bps - 8.0 * 96.0 / 940e-12).abs() < 1.0);
    // Total latencies 200, 530, 300, 710, 610; nearest rank: the 3rd of 5 is the median, the 5th all others.
    assert!((figures.total_latency.mean_s - 470e-12).abs() < 1e-20);
    assert_eq!((figures.total_latency.p50_s, figures.total_latency.p90_s), (530e-12, 710e-12));
    assert_eq!(figures.processing_latency, figures.total_latency);
}

#[test]
fn two_cards_contend_for_the_bus() {
    //   1 at 0: A (lower index): in 0-50, computed 150, out 150-200
    //   2 at 0: A 200, B 100 -> B: in 50-100, computed 200, out 200-250 (asks when A's ends: A first)
    //   3 at 0: A 200, B 200 -> A, waits; A is free at 200 and asks behind B's write-back: in 250-300,
    //           computed 400, out 400-450
    //   4 at 0: A 300, B 200 -> B: free at 250, asks behind A's fetch: in 300-350, computed 450, out 450-500
    let table = [(0, 16, 0, 0, 0, 200), (0, 16, 0, 1, 0, 250), (0, 16, 0, 0, 0, 450), (0, 16, 0, 1, 0, 500)];
    holds(&format!("{CARD}count = 2\n"), &table);
}

#[test]
fn a_write_buffer() {
    // Fetches go before write-backs: 1: in 0-50, computed 150. 2: in 150-200, computed 300; 1 out 200-250.
    // 3: in 300-350, computed 450; 2 out 350-400. 3 out 450-500.
    let table = [(0, 16, 0, 0, 0, 250), (0, 16, 0, 0, 0, 400), (0, 16, 0, 0, 0, 500)];
    holds(&format!("{CARD}write_buffer = 1\n"), &table);
}

#[test]
fn prefetch() {
    // 1: in 0-50, computed 150, out 150-200. 2: in 50-100, blocked unit until 200, computed 300, out -350.
    // 3: asked for when 2 leaves its place at 200: in 200-250, computed 450, out 450-500.
    let table = [(0, 16, 0, 0, 0, 200), (0, 16, 0, 0, 0, 350), (0, 16, 0, 0, 0, 500)];
    holds(&format!("{CARD}prefetch = 1\n"), &table);
}

#[test]
fn both_buffers() {
    // Computed back to back: 50-150, 150-250, 250-350. 2 in 50-100; at 150: 3 in 150-200, then 1 out
    // 200-250; 2 out 250-300; 3 out 350-400.
    let table = [(0, 16, 0, 0, 0, 250), (0, 16, 0, 0, 0, 300), (0, 16, 0, 0, 0, 400)];
    holds(&format!("{CARD}write_buffer = 1\nprefetch = 1\n"), &table);
}

#[test]
fn a_prefetched_job_counts_only_for_the_scheduler_that_knows_of_it() {
    // 1 and 2 at 0 to the card: 1 in 0-50, computed 150, out -200; 2 in 50-100, begins at 200, computed
    // 300, out -350. 3 at 120: the card took job 2 at 50: 100 - 70 = 30 left; + 100 = 130 against CPU 210:
    // card; in 200-250, computed 450, out 450-500.
    let cpu = "[[processor]]\nkind = \"cpu\"\ninit = \"10 ps\"\nblock = \"200 ps\"\n";
    let card = format!("{CARD}prefetch = 1\n");
    let plain = [(0, 16, 0, 1, 0, 200), (0, 16, 0, 1, 0, 350), (120, 16, 0, 1, 120, 500)];
    holds(&format!("{cpu}{card}"), &plain);
    // Aware: job 2 is there and not begun, so its 100 count too: 230 against 210: CPU, done at 330.
    let aware = [(0, 16, 0, 1, 0, 200), (0, 16, 0, 1, 0, 350), (120, 16, 0, 0, 120, 330)];
    holds(&format!("{cpu}{card}[scheduler]\nprefetch_aware = true\n"), &aware);
}

#[test]
fn a_full_queue_blocks_the_head_and_all_behind_it() {
    // Queue 1. 1 -> card, taken at once. 2 -> card, waits in the queue. 3: card 90 + 100 + 100 = 280 (at 10),
    // CPU 300 -> card, full: waits for it, though the CPU is idle. 4 (32 bytes) waits behind 3.
    // 200: 1 leaves, 2 is taken (in 200-250, computed 350, out -400), 3 gets its place. Then 4 is chosen at 200:
    // card 100 + 100 + 160 = 360, CPU 500 -> card, full; it waits until 400.
    // 3: in 400-450, computed 550, out -600. 4: in 600-690, computed 850, out -940.
    let table =
        [(0, 16, 0, 1, 0, 200), (0, 16, 0, 1, 0, 400), (10, 16, 0, 1, 10, 600), (20, 32, 0, 1, 200, 940)];
    holds(&format!("{CPU}{CARD}queue = 1\n"), &table);
}

#[test]
fn the_window_bundles_the_reference_s_sa() {
    // W = 3. At 20 three are there: 1 and 3 (SA 7) leave as one job: 32 bytes, 40 + 2 * 60 = 160.
    // In 20-110, computed 270, out 270-360. Then 2 is the reference; nothing more comes after 4 at 40, so at
    // 40 packets 2 and 4 (SA 8) leave: 32 bytes; in 360-450, computed 610, out -700.
    let table =
        [(0, 16, 7, 0, 20, 360), (10, 16, 8, 0, 40, 700), (20, 16, 7, 0, 20, 360), (40, 16, 8, 0, 40, 700)];
    let figures = holds(&format!("{CARD}[scheduler]\nwindow = 3\n"), &table).figures;
    assert_eq!(figures.packets_per_job, 2.0);
    // Processing begins with the choice, total latency with the arrival.
    assert!(
        (figures.processing_latency.mean_s - (340.0 + 660.0 + 340.0 + 660.0) / 4.0 * 1e-12).abs() < 1e-20
    );
    assert!((figures.total_latency.mean_s - (360.0 + 690.0 + 340.0 + 660.0) / 4.0 * 1e-12).abs() < 1e-20);
}

#[test]
fn the_timeout_counts_from_the_reference_s_arrival() {
    // W = 10, timeout 100. Reference 1 is due at 100: 1 and 2 leave; what arrives at 100 itself comes after:
    // in 100-190, computed 350, out 350-440. 3 (SA 1) is due at 200, before 4 comes: in 440-490, computed 590,
    // out 590-640. 4 is the last: at once. In 640-690, computed 790, out 790-840.
    let table = [
        (0, 16, 1, 0, 100, 440),
        (50, 16, 1, 0, 100, 440),
        (100, 16, 1, 0, 200, 640),
        (300, 16, 1, 0, 300, 840),
    ];
    holds(&format!("{CARD}[scheduler]\nwindow = 10\ntimeout = \"100 ps\"\n"), &table);
}

#[test]
fn max_bytes_closes_a_job_early() {
    // W = 10, 32 bytes a job. At 10 SA 1 has 32 bytes: 1 and 2 leave. In 10-100, computed 260, out 260-350.
    // 3 and 5 would be 48: when 5 comes, the last, 3 leaves alone, for the reference's 16 + 32 do not fit:
    // in 350-400, computed 500, out -550. Then 4, then 5: in 550-600, computed 700, out -750; in 750-840,
    // computed 1000, out -1090.
    let table = [
        (0, 16, 1, 0, 10, 350),
        (10, 16, 1, 0, 10, 350),
        (20, 16, 1, 0, 40, 550),
        (30, 16, 2, 0, 40, 750),
        (40, 32, 1, 0, 40, 1_090),
    ];
    holds(&format!("{CARD}[scheduler]\nwindow = 10\nmax_bytes = 32\n"), &table);
}

#[test]
fn ties_go_to_accelerators_then_the_faster_then_the_lower_index() {
    // All would end a packet of 16 bytes 300 ps from now: the CPU at once, the cards not faster.
    let card = "[[processor]]\nkind = \"accelerator\"\ninit = \"240 ps\"\nblock = \"60 ps\"\n";
    let two = format!("{CPU}{card}name = \"a\"\n{card}name = \"b\"\n");
    // 1 -> a: in 0-50, computed 350, out 350-400. 2 -> b: in 50-100, computed 400, out 400-450. 3 -> CPU.
    holds(&two, &[(0, 16, 0, 1, 0, 400), (0, 16, 0, 2, 0, 450), (0, 16, 0, 0, 0, 300)]);
    // a has 100 ps to go (one job of 100 taken at 0), b needs 200 for the next: both end it 200 from now;
    // b is slower, so a.
    let slower =
        "[[processor]]\nkind = \"accelerator\"\nname = \"b\"\ninit = \"140 ps\"\nblock = \"60 ps\"\n";
    holds(&format!("{CARD}name = \"a\"\n{slower}"), &[(0, 16, 0, 0, 0, 200), (0, 16, 0, 0, 0, 400)]);
}

#[test]
fn alpha_and_beta_keep_the_cpu_free() {
    // Card busy: 1 and 2 there at 0 make 300 for 3, and the CPU has 300 too: card by the tie. 4: card 400,
    // CPU 300 -> CPU; with beta 100 it is 400 and the card has it; with alpha 1.5 450, too.
    let with = |bias: &str| format!("{CPU}{bias}{CARD}");
    let head = [(0, 16, 0, 1, 0, 200), (0, 16, 0, 1, 0, 400), (0, 16, 0, 1, 0, 600)];
    holds(&with(""), &[&head[..], &[(0, 16, 0, 0, 0, 300)]].concat());
    holds(&with("beta = \"100 ps\"\n"), &[&head[..], &[(0, 16, 0, 1, 0, 800)]].concat());
    holds(&with("alpha = 1.5\n"), &[&head[..], &[(0, 16, 0, 1, 0, 800)]].concat());
}

#[test]
fn a_serial_full_duplex_bus_carries_both_ways_at_once() {
    // 8 Tbit/s: a byte in 1 ps; overhead 34 ps: 50 ps for 16 bytes. With a write buffer, 2 is fetched while
    // 1 is written back: 1 in 0-50, computed 150, out 150-200. 2 in 150-200, computed 300, out 300-350.
    let text = format!("{CARD}write_buffer = 1\n");
    let sets =
        ["bus={ bandwidth = \"8 Tbit/s\", transfer_overhead = \"34 ps\", full_duplex = true }".to_owned()];
    let base = "model = \"host\"\ntraffic = { source = \"fixed\", value = 16, rate = 1, overhead = 0 }\n";
    let mut scenario =
        forebay_sim::Scenario::parse(&format!("{base}{text}"), "duplex", &sets, std::path::Path::new(""))
            .unwrap();
    support::set_packets(&mut scenario, &[(0, 16, 0), (0, 16, 0)]);
    let (outcome, columns) = run_columns(&scenario);
    assert_eq!(columns.completed, [200, 350]);
    assert!((outcome.figures.bus.load - 100.0 / 350.0).abs() < 1e-12);
}

#[test]
fn energy_is_power_times_time_and_bytes_on_the_bus() {
    // Of the plain rule: in 940 ps the CPU computes for 300 and the card for 460; 80 bytes cross the bus in and out.
    let packets: Vec<Packet> = [(0, 16, 0), (10, 32, 0), (20, 16, 0), (30, 16, 0), (330, 16, 0)].to_vec();
    let of = |cpu: &str, card: &str, sets: &[&str]| {
        let text = format!("{}{cpu}{}{card}", CPU, CARD);
        let scenario = support::scenario_with(&text, &packets, sets);
        (forebay_sim::run(&scenario, forebay_sim::Options::default()).unwrap().figures, scenario.notes)
    };
    let (figures, notes) = of("", "", &[]);
    assert_eq!((figures.energy_per_packet_j, figures.average_power_w), (None, None));
    assert!(notes.iter().all(|note| !note.contains("energy")), "{notes:?}");
    let near = |found: Option<f64>, exact: f64| (found.unwrap() / exact - 1.0).abs() < 1e-12;
    let powers = ["active_power = \"10 W\"\nidle_power = \"2 W\"\n", "active_power = \"4 W\"\n"];
    let joules = (10.0 * 300.0 + 2.0 * 640.0 + 4.0 * 460.0) * 1e-12;
    let (figures, _) = of(powers[0], powers[1], &[]);
    assert!(
        near(figures.energy_per_packet_j, joules / 5.0) && near(figures.average_power_w, joules / 940e-12)
    );
    // A pJ for each byte is 160 pJ more. Idle power alone is that of any time.
    let (figures, _) = of(powers[0], powers[1], &["bus.energy_per_byte=1 pJ"]);
    assert!(near(figures.energy_per_packet_j, (joules + 160e-12) / 5.0));
    let (figures, notes) = of("", "idle_power = \"3 W\"\n", &[]);
    assert!(near(figures.average_power_w, 3.0));
    let without = "the energy is without `cpu`: neither `active_power` nor `idle_power` is given";
    assert!(notes.iter().any(|note| note == without), "{notes:?}");
    // A bus that nothing crosses has no energy, and so there is none that a processor could miss.
    let lone = support::scenario_with(CPU, &packets, &["bus.energy_per_byte=1 pJ"]);
    assert!(lone.notes.iter().all(|note| !note.contains("energy")), "{:?}", lone.notes);
    // Everything else is as it was.
    let plain = of("", "", &[]).0;
    assert_eq!(forebay_sim::Figures { average_power_w: None, energy_per_packet_j: None, ..figures }, plain);
}
