//! What bundling gains for small packets: none, the scheduler's sliding window, and IP-TFS.
//!
//!     cargo run --release -p forebay-ipsec --example bundling [-- --json]
//!
//! One accelerator of the papers (440 ns a block; t_init is not printed there: 1 us and 10 us are shown),
//! without its bus. Overhead is AES-GCM's in an IPv4 tunnel; packets over 1500 bytes are sent whole, except
//! by IP-TFS, which cuts them. Throughput at 1 Gbit/s offered, which is more than the accelerator does;
//! latency at 40 Mbit/s, which is less.

mod model;

use forebay_scheduler::Cost;
use forebay_time::Duration;
use model::{Bundling, Figures, Traffic, run};

const PACKETS: usize = 40_000;
const OVERLOAD: u64 = 1_000_000_000;
const LIGHT: u64 = 40_000_000;
/// Both kinds of bundling wait this long for company.
const PATIENCE: Duration = Duration::from_micros(500);

/// Numbers from 0 to 1, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Lengths of IP packets: headers of 40 bytes (the papers' overhead) and a payload of [S], or a mix.
fn length(kind: &str, random: &mut Random) -> u32 {
    match kind {
        "64 bytes" => 64,
        "IMIX" => match random.next() * 12.0 {
            draw if draw < 7.0 => 40,
            draw if draw < 11.0 => 576,
            _ => 1_500,
        },
        // 20..7065, mean 471.
        "exponential" => 40 + (20.0 - 451.0 * (1.0 - random.next()).ln()).min(7_065.0) as u32,
        "uniform" => 40 + (random.next() * 1_961.0) as u32,
        _ => unreachable!("one of the above"),
    }
}

fn traffic(kind: &str, sas: u32, rate: u64) -> Traffic {
    let mut random = Random(1);
    let mut packet = || {
        let bytes = length(kind, &mut random);
        (bytes, (random.next() * f64::from(sas)) as u32)
    };
    Traffic { packets: (0..PACKETS).map(|_| packet()).collect(), rate }
}

struct Row {
    kind: &'static str,
    sas: u32,
    init_us: u64,
    bundling: Bundling,
    full: Figures,
    light: Figures,
    added: f64,
}

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let bundlings = [
        Bundling::None,
        Bundling::Window { packets: 10, timeout: PATIENCE },
        Bundling::Window { packets: 30, timeout: PATIENCE },
        Bundling::Iptfs { max_delay: PATIENCE },
    ];
    let mut rows: Vec<Row> = Vec::new();
    for init_us in [1, 10] {
        let cost = Cost {
            init: Duration::from_micros(init_us),
            block: Duration::from_nanos(440),
            ..Cost::default()
        };
        for (kind, sas) in
            ["64 bytes", "IMIX", "exponential", "uniform"].into_iter().flat_map(|k| [(k, 1), (k, 100)])
        {
            let mut alone = None;
            for bundling in bundlings {
                let full = run(&traffic(kind, sas, OVERLOAD), bundling, cost);
                let light = run(&traffic(kind, sas, LIGHT), bundling, cost);
                let mean = light.mean_latency.as_secs() * 1e6;
                let added = mean - *alone.get_or_insert(mean);
                rows.push(Row { kind, sas, init_us, bundling, full, light, added });
            }
        }
    }
    if json {
        let rows: Vec<String> = rows.iter().map(Row::json).collect();
        println!("[\n{}\n]", rows.join(",\n"));
        return;
    }
    println!(
        "{:>6} {:12} {:>4} {:10} {:>8} {:>9} {:>10} {:>10} {:>10} {:>9} {:>11} {:>9}",
        "t_init",
        "packets",
        "SAs",
        "bundling",
        "jobs",
        "per job",
        "us/packet",
        "wire/pkt",
        "efficiency",
        "Mbit/s",
        "added us",
        "p99 us"
    );
    rows.iter().for_each(|row| println!("{}", row.text()));
}

impl Row {
    fn efficiency(&self) -> f64 {
        self.full.inner_bytes as f64 / self.full.wire_bytes as f64
    }

    fn text(&self) -> String {
        let (full, packets) = (&self.full, self.full.packets as f64);
        format!(
            "{:>3} us {:12} {:4} {:10} {:8} {:9.2} {:10.3} {:10.1} {:9.1}% {:9.1} {:11.1} {:9.1}",
            self.init_us,
            self.kind,
            self.sas,
            self.bundling.name(),
            full.jobs,
            packets / full.jobs as f64,
            full.crypto.as_secs() * 1e6 / packets,
            full.wire_bytes as f64 / packets,
            100.0 * self.efficiency(),
            full.throughput / 1e6,
            self.added,
            self.light.p99_latency.as_secs() * 1e6,
        )
    }

    fn json(&self) -> String {
        let (full, light) = (&self.full, &self.light);
        format!(
            "{{\"t_init_us\":{},\"packets\":\"{}\",\"sas\":{},\"bundling\":\"{}\",\"count\":{},\"jobs\":{},\"crypto_s\":{:.9},\
             \"inner_bytes\":{},\"wire_bytes\":{},\"efficiency\":{:.6},\"throughput_bit_s\":{:.0},\
             \"light_jobs\":{},\"light_wire_bytes\":{},\"light_mean_latency_s\":{:.9},\"light_p99_latency_s\":{:.9},\
             \"added_latency_s\":{:.9}}}",
            self.init_us,
            self.kind,
            self.sas,
            self.bundling.name(),
            full.packets,
            full.jobs,
            full.crypto.as_secs(),
            full.inner_bytes,
            full.wire_bytes,
            self.efficiency(),
            full.throughput,
            light.jobs,
            light.wire_bytes,
            light.mean_latency.as_secs(),
            light.p99_latency.as_secs(),
            self.added / 1e6,
        )
    }
}
