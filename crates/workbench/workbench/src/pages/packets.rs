//! Plots of single packets: how long they took, when, and where they went.

use forebay_page::plot::{Plot, Series, Xs};
use forebay_sim::{Columns, Scenario};

/// Points along an axis of time or size.
const BINS: usize = 100;

/// Lines of a plot at most.
const LINES: usize = 8;

/// Picoseconds as seconds.
pub(super) fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

/// A packet that was completed.
struct Done {
    bytes: f64,
    arrived: f64,
    chosen: f64,
    completed: f64,
    processor: usize,
}

/// Packets that count and were completed, times in seconds.
fn done<'a>(scenario: &Scenario, columns: &'a Columns) -> impl Iterator<Item = Done> + Clone + 'a {
    (scenario.traffic.warm_up as usize..columns.bytes.len())
        .filter(|&at| columns.completed[at] != u64::MAX)
        .map(move |at| Done {
            bytes: columns.bytes[at].into(),
            arrived: seconds(columns.arrived[at]),
            chosen: seconds(columns.chosen[at]),
            completed: seconds(columns.completed[at]),
            processor: columns.processor[at].into(),
        })
}

fn plot(title: &str, x: &str, y: &str, series: Vec<Series>, note: &str) -> Plot {
    let [title, x, y, note] = [title, x, y, note].map(str::to_owned);
    Plot { title, x, y, series, note, ..Plot::default() }
}

/// A factor and a unit in which times of about `seconds` are read with ease.
fn unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s < 2e-6 => (1e9, "ns"),
        s if s < 2e-3 => (1e6, "us"),
        s if s < 2.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    }
}

/// How many packets took longer than so long: by both latencies, and by processor.
pub(super) fn latencies(scenario: &Scenario, columns: &Columns) -> Vec<Plot> {
    let all = || done(scenario, columns);
    let total: Vec<f64> = all().map(|one| one.completed - one.arrived).collect();
    let processing: Vec<f64> = all().map(|one| one.completed - one.chosen).collect();
    let longest = total.iter().copied().fold(0.0, f64::max);
    if total.is_empty() || longest <= 0.0 {
        return Vec::new();
    }
    let (factor, name) = unit(longest);
    let of = |title: &str, x: &str, groups: Vec<(String, Vec<f64>)>, note: &str| {
        let series = groups.into_iter().filter_map(|(name, values)| tail(name, values, factor)).collect();
        Plot { log_y: true, ..plot(title, x, "share of the packets that took longer (%)", series, note) }
    };
    let whole = of(
        "Latency",
        &format!("latency ({name})"),
        vec![
            ("total, from arrival".to_owned(), total),
            ("processing, from the choice".to_owned(), processing),
        ],
        "The share of packets that took longer than the time on the axis: 1 % is where the 99 % quantile lies.",
    );
    let processors = scenario.processors.iter().enumerate().take(LINES);
    let groups = processors.map(|(number, one)| {
        let own = all().filter(|done| done.processor == number).map(|one| one.completed - one.chosen);
        (one.name.clone(), own.collect())
    });
    let title = format!("processing latency ({name})");
    vec![whole, of("Processing latency by processor", &title, groups.collect(), "")]
}

/// Points of 1 - F, closer together towards the end.
fn tail(name: String, mut values: Vec<f64>, factor: f64) -> Option<Series> {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    let last = values.last()?;
    let (mut xs, mut ys) = (vec![values[0] * factor], vec![100.0]);
    // 25 points for each power of ten of the share, and as many from 100 down to 10 %.
    let mut share: f64 = 1.0;
    while share * count as f64 > 1.0 {
        share /= 10f64.powf(0.04);
        let rank = ((1.0 - share) * count as f64) as usize;
        xs.push(values.get(rank).unwrap_or(last) * factor);
        ys.push(100.0 * (count - rank.min(count - 1)) as f64 / count as f64);
    }
    Some(Series { name, xs: Xs::Numbers(xs), ys, ..Series::default() })
}

/// Rates, latencies and packets in flight, by time.
pub(super) fn over_time(scenario: &Scenario, columns: &Columns) -> Vec<Plot> {
    let all = || done(scenario, columns);
    let begin = all().map(|one| one.arrived).fold(f64::INFINITY, f64::min);
    let end = all().map(|one| one.completed).fold(0.0, f64::max);
    if end <= begin {
        return Vec::new();
    }
    let width = (end - begin) / BINS as f64;
    let bin = |at: f64| (((at - begin) / width) as usize).min(BINS - 1);
    let processors = scenario.processors.len();
    let (mut offered, mut carried) = (vec![0.0; BINS], vec![vec![0.0; BINS]; processors]);
    let (mut latency, mut count, mut worst) = (vec![0.0; BINS], vec![0.0f64; BINS], vec![0.0f64; BINS]);
    let (mut input, mut inside) = (vec![0.0; BINS + 1], vec![vec![0.0; BINS + 1]; processors]);
    for one in all() {
        let [arrived, chosen, completed] = [one.arrived, one.chosen, one.completed].map(bin);
        offered[arrived] += one.bytes;
        carried[one.processor][completed] += one.bytes;
        let took = one.completed - one.arrived;
        latency[arrived] += took;
        count[arrived] += 1.0;
        worst[arrived] = worst[arrived].max(took);
        input[arrived] += 1.0;
        input[chosen] -= 1.0;
        inside[one.processor][chosen] += 1.0;
        inside[one.processor][completed] -= 1.0;
    }
    let (factor, name) = unit(end - begin);
    let xs: Vec<f64> = (0..BINS).map(|at| (at as f64 + 0.5) * width * factor).collect();
    let x = format!("time since the first arrival ({name})");
    let line = |name: &str, ys: Vec<f64>| Series::line(name, xs.clone(), ys);
    let mbps = |bytes: &[f64]| -> Vec<f64> { bytes.iter().map(|b| 8e-6 * b / width).collect() };
    let names: Vec<&str> = scenario.processors.iter().map(|one| one.name.as_str()).collect();
    let sum: Vec<f64> = (0..BINS).map(|at| carried.iter().map(|one| one[at]).sum()).collect();
    // Processors first: so each has the same colour in all plots.
    let each = names.iter().zip(&carried).take(LINES - 2);
    let mut rates: Vec<Series> = each.map(|(name, one)| line(name, mbps(one))).collect();
    rates.extend([line("all", mbps(&sum)), line("offered", mbps(&offered))]);
    let (scale, time) = unit(worst.iter().copied().fold(0.0, f64::max));
    let mean = latency.iter().zip(&count).map(|(sum, count)| scale * sum / count).collect();
    let worst =
        worst.iter().zip(&count).map(|(worst, count)| if *count > 0.0 { scale * worst } else { f64::NAN });
    let running = |changes: &[f64]| -> Vec<f64> {
        let sum = changes.iter().take(BINS).scan(0.0, |sum, change| {
            *sum += change;
            Some(*sum)
        });
        sum.collect()
    };
    let each = names.iter().zip(&inside).take(LINES - 1);
    let mut under_way: Vec<Series> = each.map(|(name, one)| line(name, running(one))).collect();
    under_way.push(line("input", running(&input)));
    vec![
        plot("Rates", &x, "Mbit/s", rates, ""),
        plot(
            "Total latency by time of arrival",
            &x,
            &format!("{time}, of the packets that arrived then"),
            vec![line("mean", mean), line("longest", worst.collect())],
            "",
        ),
        plot(
            "Packets in flight",
            &x,
            "packets, at the end of each hundredth",
            under_way,
            "Input: arrived and not yet placed. Of a processor: placed and not yet complete.",
        ),
    ]
}

/// Which share of the packets of each size went to each processor.
pub(super) fn by_size(scenario: &Scenario, columns: &Columns) -> Vec<Plot> {
    const CLASSES: usize = 32;
    let all = || done(scenario, columns);
    let least = all().map(|one| one.bytes).fold(f64::INFINITY, f64::min);
    let most = all().map(|one| one.bytes).fold(0.0, f64::max);
    if most <= least {
        return Vec::new();
    }
    let width = (most - least) / CLASSES as f64;
    let class = |bytes: f64| (((bytes - least) / width) as usize).min(CLASSES - 1);
    let mut counts = vec![vec![0.0f64; CLASSES]; scenario.processors.len()];
    all().for_each(|one| counts[one.processor][class(one.bytes)] += 1.0);
    let totals: Vec<f64> = (0..CLASSES).map(|at| counts.iter().map(|one| one[at]).sum()).collect();
    let xs: Vec<f64> = (0..CLASSES).map(|at| least + (at as f64 + 0.5) * width).collect();
    let whole: f64 = totals.iter().sum();
    let of = |counts: &[f64]| counts.iter().zip(&totals).map(|(part, all)| 100.0 * part / all).collect();
    let lines = scenario.processors.iter().zip(&counts).take(LINES);
    let lines = lines.map(|(one, counts)| Series::line(one.name.as_str(), xs.clone(), of(counts))).collect();
    let sizes = totals.iter().map(|count| 100.0 * count / whole).collect();
    let x = "bytes, overhead included";
    vec![
        plot("Where packets of a size go", x, "per cent of the packets of that size", lines, ""),
        plot(
            "How large packets are",
            x,
            "per cent of all packets",
            vec![Series::line("packets", xs, sizes)],
            &format!("In {CLASSES} classes of equal width."),
        ),
    ]
}
