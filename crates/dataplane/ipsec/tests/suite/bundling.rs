//! The model behind `examples/bundling`, by hand: 1 us a job, 440 ns a block of 16 bytes.

#[allow(dead_code)]
#[path = "../../examples/bundling/model.rs"]
mod model;

use forebay_scheduler::Cost;
use forebay_time::Duration;
use model::{Bundling, Figures, Traffic, run};

const COST: Cost = Cost {
    init: Duration::from_micros(1),
    packet: Duration::ZERO,
    block: Duration::from_nanos(440),
    submit: Duration::ZERO,
    wake: Duration::ZERO,
    lanes: 1,
};
const PATIENCE: Duration = Duration::from_micros(10);

fn figures(packets: &[(u32, u32)], bundling: Bundling) -> Figures {
    run(&Traffic { packets: packets.to_vec(), rate: 1_000_000_000 }, bundling, COST)
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, by hand {expected}");
}

/// 64 bytes and a trailer of two, padded to 68: five blocks, 3.2 us, and 120 bytes outside.
#[test]
fn two_packets_one_by_one() {
    let found = figures(&[(64, 0), (64, 0)], Bundling::None);
    assert_eq!((found.packets, found.jobs, found.inner_bytes, found.wire_bytes), (2, 2, 128, 240));
    assert_eq!(found.crypto, Duration::from_nanos(6_400));
    close(found.throughput, 1024.0 / 6.4e-6);
    // They arrive at 0 and 512 ns, and are done at 3.2 and 6.4 us.
    assert_eq!(found.mean_latency, Duration::from_nanos((3_200 + 5_888) / 2));
    assert_eq!(found.p99_latency, Duration::from_nanos(5_888));
}

/// Both as one job when the second comes: one t_init less, the same bytes.
#[test]
fn two_packets_in_a_window() {
    let found = figures(&[(64, 0), (64, 0)], Bundling::Window { packets: 2, timeout: PATIENCE });
    assert_eq!((found.packets, found.jobs, found.wire_bytes), (2, 1, 240));
    assert_eq!(found.crypto, Duration::from_nanos(5_400));
    assert_eq!(found.p99_latency, Duration::from_nanos(5_912));
    // Of different SAs they are no bundle.
    let found = figures(&[(64, 0), (64, 1)], Bundling::Window { packets: 2, timeout: PATIENCE });
    assert_eq!(found.jobs, 2);
}

/// Both in one payload when the first has waited for 10 us: 4 + 128 bytes and a trailer, padded to 136: nine
/// blocks, 4.96 us, and 188 bytes outside.
#[test]
fn two_packets_in_a_payload() {
    let found = figures(&[(64, 0), (64, 0)], Bundling::Iptfs { max_delay: PATIENCE });
    assert_eq!((found.packets, found.jobs, found.wire_bytes), (2, 1, 188));
    assert_eq!(found.crypto, Duration::from_nanos(4_960));
    assert_eq!(found.p99_latency, Duration::from_nanos(14_960));
    assert_eq!(found.mean_latency, Duration::from_nanos((14_960 + 14_448) / 2));
    let found = figures(&[(64, 0), (64, 1)], Bundling::Iptfs { max_delay: PATIENCE });
    assert_eq!((found.jobs, found.wire_bytes), (2, 2 * 124));
}

/// RFC 9347 appendix C: 58 bytes around each payload of 1442, so 4.02 % of any inner size.
#[test]
fn the_overhead_of_the_rfc() {
    for size in [40, 576, 1_500] {
        // What fills a payload in time: the last one of many is the only one that is not full.
        let full = Bundling::Iptfs { max_delay: Duration::from_millis(1) };
        let found = figures(&vec![(size, 0); 1_442 * 10], full);
        let overhead = found.wire_bytes as f64 / found.inner_bytes as f64 - 1.0;
        close(overhead, 58.0 / 1442.0);
    }
}
