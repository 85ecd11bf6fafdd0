//! Sets of differentiated services code points.

use std::fmt;
use std::str::FromStr;

/// A set of the 64 differentiated services code points (RFC 2474), one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DscpSet(pub u64);

/// A word that names no code point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DscpError {
    /// The word.
    pub found: String,
}

impl fmt::Display for DscpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "found `{}`, expected code points of 0 to 63, ranges or names, like 46, 10-14, ef, af41, cs1",
            self.found
        )
    }
}

impl std::error::Error for DscpError {}

impl DscpSet {
    /// Every code point.
    pub const ALL: DscpSet = DscpSet(u64::MAX);

    /// The code points of the list; those above 63 do not exist and are left out.
    pub fn of(points: impl IntoIterator<Item = u8>) -> DscpSet {
        DscpSet(points.into_iter().fold(0, |set, point| set | 1_u64.checked_shl(point.into()).unwrap_or(0)))
    }

    /// Whether the set has this code point.
    #[inline]
    pub fn contains(self, point: u8) -> bool {
        self.0 >> (point & 63) & 1 != 0
    }
}

impl Default for DscpSet {
    fn default() -> DscpSet {
        DscpSet::ALL
    }
}

impl FromStr for DscpSet {
    type Err = DscpError;

    /// Numbers, ranges and names with commas between them, or `all`.
    fn from_str(text: &str) -> Result<DscpSet, DscpError> {
        if text == "all" {
            return Ok(DscpSet::ALL);
        }
        let mut set = 0;
        for word in text.split(',').map(str::trim) {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let bounds = code_point(first).zip(code_point(last)).filter(|(first, last)| first <= last);
            let (first, last) = bounds.ok_or_else(|| DscpError { found: word.into() })?;
            set |= DscpSet::of(first..=last).0;
        }
        Ok(DscpSet(set))
    }
}

/// A number, or one of the names of RFC 2474 (cs), RFC 2597 (af), RFC 3246 (ef) and RFC 8622 (le).
fn code_point(word: &str) -> Option<u8> {
    let digit = |text: &str, limit: u8| {
        let number = text.parse::<u8>().ok().filter(|&number| number <= limit)?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then_some(number)
    };
    if let Some(class) = word.strip_prefix("cs") {
        return Some(digit(class, 7)? << 3);
    }
    if let Some(class) = word.strip_prefix("af") {
        let number = digit(class, 43)?;
        let (class, drop) = (number / 10, number % 10);
        return (class >= 1 && (1..=3).contains(&drop)).then_some(class << 3 | drop << 1);
    }
    match word {
        "ef" => Some(46),
        "le" => Some(1),
        _ => digit(word, 63),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recommended code points of RFC 2597 6 and RFC 3246 2.7.
    #[test]
    fn names_numbers_and_ranges() {
        assert_eq!("ef".parse(), Ok(DscpSet::of([46])));
        assert_eq!(DscpSet::of([46, 46]), DscpSet::of([46]), "a point that is named twice is there once");
        assert_eq!("af11,af43".parse(), Ok(DscpSet::of([0b001010, 0b100110])));
        assert_eq!("cs6, 10-12".parse(), Ok(DscpSet::of([48, 10, 11, 12])));
        assert_eq!("all".parse(), Ok(DscpSet::ALL));
        assert!(DscpSet::ALL.contains(63) && !DscpSet::of([1]).contains(0));
        for word in ["", "64", "af14", "af01", "cs8", "12-10", "+3", "voice"] {
            let error = word.parse::<DscpSet>().expect_err(word);
            assert!(error.to_string().contains("expected code points"), "{error}");
        }
    }
}
