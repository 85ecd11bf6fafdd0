//! Numbers, amounts with a unit, and durations.

use std::ops::RangeInclusive;

use forebay_scenario::{Decimal, Unit};
use forebay_time::Duration;
use toml::de::DeValue;

use super::errors::Findings;
use super::mask::shown;
use super::problem::Problem;
use super::table::{Placed, Table};

/// What stands before bytes and packets.
const MULTIPLES: &[(&str, u64)] = &[
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// Longest decimal number, so that times any unit it fits 128 bits.
const DIGITS_MAX: usize = 20;

impl Table<'_, '_> {
    /// A number, as an integer or as a string that holds one, with how it was written;
    /// negative ones and those above 64 bits are `None` inside.
    pub(super) fn number(
        &self,
        key: &'static str,
        findings: &mut Findings,
    ) -> Option<Placed<(Option<u64>, String)>> {
        self.value(key, "expected a number", findings, |value| match value {
            DeValue::Integer(number) => {
                let value = u64::from_str_radix(number.as_str(), number.radix()).ok();
                Some((value, shown(&number.to_string())))
            }
            DeValue::String(text) => {
                let value = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                Some((value.ok(), quoted(text)))
            }
            _ => None,
        })
    }

    /// A number in `range`, of `unit`, which may be "".
    pub(super) fn ranged(
        &self,
        key: &'static str,
        range: RangeInclusive<u64>,
        unit: &'static str,
        findings: &mut Findings,
    ) -> Option<u64> {
        let ((number, found), span) = self.number(key, findings)?;
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = range.into_inner();
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            let label = format!("expected {least} to {most}{unit}");
            findings.add(Problem::OutOfRange { key, found, least, most }, span, &label);
        }
        number
    }

    /// One of `words`, or a number in `range`, which `of` gives its meaning.
    pub(super) fn word_or_number<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
        range: RangeInclusive<u64>,
        of: impl FnOnce(u64) -> T,
        findings: &mut Findings,
    ) -> Option<T> {
        const EXPECTED: &str = "expected a number or a word in quotes";
        let word = |value: &DeValue<'_>| match value {
            DeValue::Integer(_) => Some(false),
            DeValue::String(text) => Some(!text.starts_with(|char: char| char.is_ascii_digit())),
            _ => None,
        };
        match self.value(key, EXPECTED, findings, word)?.0 {
            true => self.word(key, words, findings),
            false => self.ranged(key, range, "", findings).map(of),
        }
    }

    /// An amount of at least one: a number, or a string with k, M, G, T or Ki, Mi, Gi, Ti behind it.
    pub(super) fn amount(&self, key: &'static str, findings: &mut Findings) -> Option<u64> {
        let ((number, found), span) =
            self.value(key, "expected a number, or one with its unit in quotes", findings, |value| {
                Some(match value {
                    DeValue::Integer(number) => {
                        let value = u64::from_str_radix(number.as_str(), number.radix()).ok();
                        (value, shown(&number.to_string()))
                    }
                    DeValue::String(text) => (amount(text), quoted(text)),
                    _ => return None,
                })
            })?;
        let number = number.filter(|&number| number > 0);
        if number.is_none() {
            let label = "expected at least 1, like 1000000, \"10G\" or \"4 GiB\"";
            findings.add(Problem::BadAmount { key, found }, span, label);
        }
        number
    }

    /// A duration of `least` or more: seconds, or a string with its unit.
    pub(super) fn duration(
        &self,
        key: &'static str,
        least: Duration,
        findings: &mut Findings,
    ) -> Option<Duration> {
        let ((ps, found), span) =
            self.value(key, "expected a duration: seconds, or with its unit in quotes", findings, |value| {
                Some(match value {
                    DeValue::Integer(seconds) if seconds.radix() == 10 => {
                        (seconds_of(seconds.as_str()), shown(seconds.as_str()))
                    }
                    DeValue::Float(seconds) => (seconds_of(seconds.as_str()), shown(seconds.as_str())),
                    DeValue::String(text) => (duration(text), quoted(text)),
                    _ => return None,
                })
            })?;
        let label = match ps {
            None => "expected one like 90, \"90s\", \"30m\", \"1h\", \"10ms\"",
            Some(ps) if ps < u128::from(least.0) => "expected more than 0",
            Some(ps) if ps > u64::MAX.into() => "expected 213 days at most",
            Some(ps) => return u64::try_from(ps).ok().map(Duration),
        };
        findings.add(Problem::BadDuration { key, found }, span, label);
        None
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

/// A time by the grammar of scenarios and of the gateway's other tables, in picoseconds.
fn duration(text: &str) -> Option<u128> {
    Decimal::parse_quantity(text, Unit::Time).ok()?.as_ps()
}

fn seconds_of(number: &str) -> Option<u128> {
    Decimal::parse(number)?.as_ps()
}

fn amount(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let unit = unit.strip_suffix('B').unwrap_or(unit);
    let (_, times) = MULTIPLES.iter().find(|(word, _)| *word == unit)?;
    u64::try_from(scaled(number, *times)?).ok()
}

/// A number and the unit behind it, between which there may be a space.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number, unit.strip_prefix(' ').unwrap_or(unit)))
}

/// A decimal number times `unit`, if that comes out even.
fn scaled(text: &str, unit: u64) -> Option<u128> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let rest_is_number = is_number(rest);
    let rest = rest.trim_end_matches('0');
    if !is_number(whole) || !rest_is_number || whole.len() + rest.len() > DIGITS_MAX {
        return None;
    }
    let digits: u128 = format!("{whole}{rest}").parse().ok()?;
    let product = digits * u128::from(unit);
    let places = 10_u128.pow(rest.len() as u32);
    product.is_multiple_of(places).then_some(product / places)
}

#[cfg(test)]
mod tests {
    use forebay_time::PS_PER_S;

    use super::*;

    #[test]
    fn durations_and_amounts_have_units() {
        for (text, ps) in [
            ("1h", 3_600 * PS_PER_S),
            ("30m", 1_800 * PS_PER_S),
            ("90 s", 90 * PS_PER_S),
            ("10ms", PS_PER_S / 100),
            ("17.6 us", 17_600_000),
            ("2.50s", PS_PER_S * 5 / 2),
            ("1ns", 1_000),
            ("2d", 172_800 * PS_PER_S),
            // As the other tables of a gateway's file and scenarios read them.
            ("1 min", 60 * PS_PER_S),
            ("3 μs", 3_000_000),
            ("7 ps", 7),
            ("1e3 s", 1_000 * PS_PER_S),
            ("90", 90 * PS_PER_S),
        ] {
            assert_eq!(duration(text), Some(ps.into()), "{text}");
        }
        for text in ["", "h", "1 hour", "-1s", "1..2s", "1h30m", "1 Mbit/s"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!((amount("10G"), amount("4 GiB")), (Some(10_000_000_000), Some(4 << 30)));
        assert_eq!((amount("1.5k"), amount("7"), amount("1kB")), (Some(1_500), Some(7), Some(1_000)));
        for text in ["", "G", "1g", "1.5", "20000000T", "1 B B", "999999999999999999999"] {
            assert_eq!(amount(text), None, "{text}");
        }
    }
}
