//! The limits in words, for the terminal and the page.

use forebay_page::units;

use super::figures::SizeLimits;

/// The limits of one size in a sentence.
pub fn limits_in_words(limits: &SizeLimits) -> String {
    format!(
        "sum of the processors alone: {} packets/s; best fixed split: {} packets/s",
        packets(limits.sum_packets_per_s),
        packets(limits.best_static_packets_per_s)
    )
}

fn packets(packets_per_s: f64) -> String {
    units::count(packets_per_s.round() as u64)
}
