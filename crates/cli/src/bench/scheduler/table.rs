//! The figures for the terminal.

use std::fmt::Write as _;

use forebay_page::units;

use forebay_measure::scheduler::{Document, Latency, Outcome, Twin, limits_in_words};

/// Writes a table for each size and window.
pub fn table(document: &Document, color: bool) -> String {
    let bold = |text: String| if color { format!("\x1b[1m{text}\x1b[0m") } else { text };
    let mut out = format!(
        "{}, {}, {}\n{}\n",
        document.proposal,
        counted(document.sas, "SA"),
        document.processors.join(" + "),
        document.host
    );
    for limits in &document.limits.by_size {
        let _ = writeln!(out, "\n{}", bold(format!("{}: {}", limits.size, limits_in_words(limits))));
        for one in document.alone.iter().filter(|one| one.size == limits.size) {
            let rate = rate(one.packets_per_s);
            let _ = writeln!(out, "  {:<14} {:>14} packets/s alone, window {}", one.name, rate, one.window);
        }
        let _ = writeln!(
            out,
            "\n  {:<14} {:>6} {:>11} {:>7} {:>7} {:>9}  {:>17}  {:>17}  share of the packets",
            "policy",
            "window",
            "packets/s",
            "Gbit/s",
            "of sum",
            "of static",
            "p50, p99 at 50 %",
            "p50, p99 at 90 %"
        );
        let outcomes = document.results.iter().chain(&document.rivals);
        for outcome in outcomes.clone().filter(|one| one.size == limits.size) {
            let _ = writeln!(out, "  {}", line(outcome));
        }
        for outcome in outcomes.filter(|one| one.size == limits.size) {
            if let Some(twin) = &outcome.twin {
                let _ = writeln!(out, "{}", against(outcome, twin));
            }
        }
    }
    out
}

fn line(outcome: &Outcome) -> String {
    let shares = outcome.processors.iter();
    let shares: Vec<String> = shares.map(|one| units::plain(&units::percent_short(one.share))).collect();
    let label = outcome.label();
    // The name of a rival may be as long as a line.
    let label = if label.len() > 14 { format!("{label}\n  {:<14}", "") } else { format!("{label:<14}") };
    format!(
        "{label} {:>6} {:>11} {:>7.2} {:>6.0} % {:>7.0} %  {:>17}  {:>17}  {}",
        outcome.window,
        rate(outcome.packets_per_s),
        outcome.bits_per_s / 1e9,
        100.0 * outcome.of_sum,
        100.0 * outcome.of_best_static,
        latency(&outcome.latency_50),
        latency(&outcome.latency_90),
        shares.join(" + "),
    )
}

/// The simulator beside the engine.
fn against(outcome: &Outcome, twin: &Twin) -> String {
    let time = |seconds: f64| units::plain(&units::seconds(seconds));
    let off = |twin: f64, real: f64| format!("{:+.0} %", 100.0 * (twin / real - 1.0));
    format!(
        "  simulated with the costs learnt, window {}: {} packets/s ({}); mean latency at 50 %: {} (measured {}), at 90 %: {} \
         (measured {})",
        outcome.window,
        rate(twin.packets_per_s),
        off(twin.packets_per_s, outcome.packets_per_s),
        time(twin.latency_50_mean_s),
        time(outcome.latency_50.mean_s),
        time(twin.latency_90_mean_s),
        time(outcome.latency_90.mean_s),
    )
}

fn latency(latency: &Latency) -> String {
    let time = |seconds: f64| units::plain(&units::seconds(seconds));
    format!("{}, {}", time(latency.p50_s), time(latency.p99_s))
}

fn rate(packets_per_s: f64) -> String {
    units::count(packets_per_s.round() as u64)
}

fn counted(count: usize, noun: &str) -> String {
    units::plain(&units::counted(count as u64, noun, &format!("{noun}s")))
}
