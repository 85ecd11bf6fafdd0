//! The comparison in words, for the terminal and the page.

use forebay_page::units;

use super::compare::{Comparison, Line, Run};

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
