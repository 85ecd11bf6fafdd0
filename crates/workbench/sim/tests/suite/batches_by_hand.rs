//! Batches and polls, to the picosecond by hand.

use crate::support;

use support::{Packet, run_columns, scenario};

/// Two cores of 100 ps a packet of up to 16 bytes, four at a time on the second.
const CORES: &str = "[[processor]]\nname = \"core\"\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"0 ps\"\n\
                     [[processor]]\nname = \"wide\"\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"0 ps\"\nlanes = 4\n";

/// When each packet is complete.
fn times(text: &str, packets: &[Packet]) -> Vec<u64> {
    run_columns(&scenario(text, packets)).1.completed
}

#[test]
fn packets_of_one_instant_are_one_batch() {
    let four = [(0, 16, 0); 4];
    let to_wide = "[scheduler]\npolicy = \"single\"\nprocessor = \"wide\"\n";
    // One by one: a job of 100 ps each.
    assert_eq!(times(&format!("{CORES}{to_wide}"), &four), [100, 200, 300, 400]);
    assert_eq!(times(&format!("{CORES}{to_wide}burst = 8\n"), &four), [100; 4]);
    // Six are two groups, done as a whole, or one after the other.
    let six = [(0, 16, 0); 6];
    assert_eq!(times(&format!("{CORES}{to_wide}burst = 8\n"), &six), [200; 6]);
    let each = CORES.replace("lanes = 4", "lanes = 4\nanswers = \"each\"");
    let found = times(&format!("{each}{to_wide}burst = 8\n"), &six);
    assert_eq!(found, [100, 100, 100, 100, 200, 200]);
}

#[test]
fn submit_is_paid_for_each_submission_and_wake_by_an_idle_processor() {
    let core = "[[processor]]\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"0 ps\"\nsubmit = \"30 ps\"\nwake = \"1000 ps\"\n";
    let packets = [(0, 16, 0), (0, 16, 0), (5_000, 16, 0)];
    assert_eq!(times(core, &packets), [1_130, 1_260, 6_130]);
    let batches = format!("{core}[scheduler]\nburst = 2\n");
    assert_eq!(times(&batches, &packets), [1_230, 1_230, 6_130]);
}

#[test]
fn a_running_core_does_one_thing_at_a_time() {
    // Polls at 0: packet 1 only; moved until 10, computed until 110. Polls at 110: 2, 3 and 4 of the burst of 3; moved
    // until 140, 16 ps each for what goes to the other. 5 is taken by the third poll.
    let text = "[[processor]]\nname = \"core\"\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"0 ps\"\nmove = \"10 ps\"\n\
                [[processor]]\nname = \"other\"\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"0 ps\"\nfeed = \"10 ps\"\n\
                feed_block = \"6 ps\"\n\
                [scheduler]\npolicy = \"round-robin\"\nburst = 3\npoll = true\n";
    let packets = [(0, 16, 0), (5, 16, 0), (6, 16, 0), (7, 16, 0), (8, 16, 0)];
    // Round robin deals 2 of 3 to the other and 1 to the core: handed over at 140 + 32 = 172, where the core begins
    // its own one, until 272; the other needs until 372. At 272 packet 5 is taken, moved until 282; it is the other's
    // turn: fed until 298, there until 472.
    let (outcome, columns) = run_columns(&scenario(text, &packets));
    assert_eq!(columns.processor, [0, 1, 1, 0, 1]);
    assert_eq!(columns.completed, [110, 372, 372, 272, 472]);
    let core = outcome.figures.running_core.unwrap();
    // Packet 4 waits from 272 to 372 for 2 and 3.
    assert!((core.reorder_hold.mean_s - 20e-12).abs() < 1e-20);
    assert!((core.moving - 50.0 / 472.0).abs() < 1e-12 && (core.feeding - 48.0 / 472.0).abs() < 1e-12);
    assert!((core.load - (50.0 + 48.0 + 200.0) / 472.0).abs() < 1e-12);
    assert!((core.packets_per_poll - 5.0 / 3.0).abs() < 1e-12);
}

#[test]
fn a_limited_input_is_the_ring_before_a_running_core() {
    // 1 is taken at 0, and the core is busy until 110; of the others, two find room.
    let text = "[[processor]]\nkind = \"cpu\"\ninit = \"100 ps\"\nblock = \"0 ps\"\nmove = \"10 ps\"\n\
                [scheduler]\npoll = true\ninput = 2\n";
    let packets = [(0, 16, 0), (10, 16, 0), (20, 16, 0), (30, 16, 0), (300, 16, 0)];
    let (outcome, columns) = run_columns(&scenario(text, &packets));
    assert_eq!(columns.completed, [110, 220, 330, u64::MAX, 440]);
    assert_eq!((outcome.figures.lost, outcome.figures.packets), (1, 4));
}
