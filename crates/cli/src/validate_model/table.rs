//! The comparison for the terminal.

use std::fmt::Write as _;

use forebay_measure::validate::{Comparison, value, verdict, why};

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
