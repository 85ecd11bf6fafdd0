//! The comparison for the terminal.

use std::fmt::Write as _;

use super::compare::{Comparison, Line, Run};
use forebay_page::units;

/// Writes the tables of all rates.
pub fn table(comparison: &Comparison) -> String {
    let mut out =
        format!("{}\n{} packets at each rate; {}\n", comparison.setup, comparison.packets, comparison.clock);
    for run in &comparison.runs {
        let _ = writeln!(
            out,
            "\n{}: {}",
            run.rate,
            if run.holds { "within the limits" } else { "OUTSIDE the limits" }
        );
        let _ = writeln!(
            out,
            "{:26} {:>14} {:>14} {:>10} {:>8}",
            "", "engine", "simulator", "difference", "limit"
        );
        for line in &run.lines {
            let limit = line.limit.map_or(String::new(), |limit| format!("{:.0} %", 100.0 * limit));
            let _ = writeln!(
                out,
                "{:26} {:>14} {:>14} {:>8.2} % {:>8}{}",
                line.figure,
                value(line.engine, line.unit),
                value(line.simulator, line.unit),
                100.0 * line.difference,
                limit,
                if line.holds { "" } else { "  !" }
            );
        }
        out.push_str(&why(run));
    }
    let _ = writeln!(out, "\n{}", verdict(comparison));
    out
}

/// The outcome in a sentence.
pub fn verdict(comparison: &Comparison) -> String {
    let out: Vec<String> = comparison
        .runs
        .iter()
        .flat_map(|run| run.lines.iter().filter(|line| !line.holds).map(move |line| said(run, line)))
        .collect();
    match out.is_empty() {
        true => "Engine and simulator agree within the limits.".to_owned(),
        false => format!("Outside the limits: {}.", out.join("; ")),
    }
}

fn said(run: &Run, line: &Line) -> String {
    format!("{} at {} ({:+.1} %)", line.figure, run.rate, 100.0 * line.difference)
}

/// A figure in its unit.
pub fn value(value: f64, unit: &str) -> String {
    units::plain(&match unit {
        "bit/s" => format!("{:.2} Mbit/s", value / 1e6),
        "s" => format!("{:.3} us", value * 1e6),
        "share" => format!("{:.2} %", 100.0 * value),
        "packets" => units::count(value as u64),
        _ => format!("{value:.4}"),
    })
}

/// What the engine has and its model has not.
pub fn why(run: &Run) -> String {
    let Some(real) = &run.engine.real else { return String::new() };
    let us = |seconds: f64| format!("{:.3} us", seconds * 1e6);
    format!(
        "engine only: a packet was admitted {} late, an answer taken {} after the card had it (means);\n\
         \x20 a turn took {}, {} at most, {} in all in turns above 100 us; {} audits;\n\
         \x20 {:.2} s on the wall for each second of the engine's clock\n",
        us(real.admission_late_s),
        us(real.answer_late_s),
        us(real.turn_mean_s),
        us(real.turn_max_s),
        us(real.long_turns_s),
        real.audits,
        real.wall_ratio,
    )
}
