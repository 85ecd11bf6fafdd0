//! Figures as they are read: with the unit that their name says.

use forebay_page::units;

use crate::Figure;

/// Every figure with its unit.
pub(crate) fn of(named: &[(String, f64)]) -> Vec<Figure> {
    let figure = |(name, value): &(String, f64)| Figure {
        name: name.clone(),
        value: *value,
        text: text(name, *value),
    };
    named.iter().map(figure).collect()
}

/// A value with the unit that the last part of its name says: figures of documents are in SI base units.
fn text(name: &str, value: f64) -> String {
    const SHARES: [&str; 8] = [
        "load",
        "moving",
        "feeding",
        "utilisation",
        "utilization",
        "switching",
        "waiting",
        "loss_probability",
    ];
    let last = name.rsplit('.').next().unwrap_or(name);
    match last {
        _ if last.ends_with("_s") => units::seconds(value),
        _ if last.ends_with("_bps") => units::bits_per_second(value),
        _ if last.ends_with("_pps") => format!("{}\u{a0}packets/s", units::digits(value)),
        "bytes" => units::bytes(value),
        "mean_size" => units::length(value),
        _ if SHARES.contains(&last) => units::percent(value),
        _ if value.fract() == 0.0 && value.abs() < 1e15 && value >= 0.0 => units::count(value as u64),
        _ => units::digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_unit_that_their_name_says() {
        let plain = |name, value| units::plain(&text(name, value));
        assert_eq!(plain("total_latency.p99_s", 12e-6), "12.0 us");
        assert_eq!(plain("throughput_bps", 4e8), "400 Mbit/s");
        assert_eq!(plain("throughput_pps", 1234.5), "1,235 packets/s");
        assert_eq!(plain("processor.card.load", 0.25), "25.0 %");
        assert_eq!(plain("packets", 1e6), "1,000,000");
        assert_eq!(plain("packets_per_job", 1.5), "1.50");
    }
}
