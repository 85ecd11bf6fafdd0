//! What a command takes from the machine that it runs on.

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use miette::{IntoDiagnostic, WrapErr};

/// A random number that no other party can know, for the hashes of a database.
pub fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// Nanoseconds since 1970.
///
/// # Errors
/// If the clock stands at a time that has none.
#[allow(clippy::disallowed_methods)] // the command line is where time comes from
pub fn unix_ns() -> miette::Result<u64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ns = since.into_diagnostic().wrap_err("the system clock is set before 1970")?.as_nanos();
    u64::try_from(ns).into_diagnostic().wrap_err("the system clock is set after 2554")
}

/// Processor model and number of cores.
pub fn model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("model name"));
    let model = line.and_then(|line| line.split(':').nth(1)).unwrap_or("unknown processor").trim();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
}

/// Now, as RFC 3339 in UTC.
///
/// # Errors
/// As [`unix_ns`].
pub fn timestamp() -> miette::Result<String> {
    let seconds = unix_ns()? / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    Ok(format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60))
}

/// The Gregorian date `days` after 1970-01-01 (days are counted from 1 March, so that leap days come last).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
    }
}
