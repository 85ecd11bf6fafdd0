//! Points in time and durations as integer picoseconds.
//!
//! The engine measures them, the simulator computes them, and the scheduler receives them; this crate reads no clock. Equal times are equal on
//! every machine, because they are whole picoseconds. 64 bits of them last 213 days, and arithmetic saturates there instead of wrapping.
//!
//! ```
//! use forebay_time::{Duration, Time};
//!
//! let sent = Time::ZERO + Duration::from_micros(10);
//! let received = sent + Duration::from_nanos(17_600);
//! assert_eq!((received - sent).to_string(), "17.6 us");
//! assert_eq!(std::time::Duration::from(received - sent).as_nanos(), 17_600);
//! assert_eq!(sent - received, Duration::ZERO); // differences are never negative
//! ```

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// A point in time: picoseconds since an origin of the caller's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Later than every other time: "never".
    pub const MAX: Time = Time(u64::MAX);

    /// How long after `earlier` this is; zero if it is not.
    #[inline]
    pub fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// From whole nanoseconds.
    pub const fn from_nanos(ns: u64) -> Duration {
        Duration(ns.saturating_mul(1_000))
    }

    /// From whole microseconds.
    pub const fn from_micros(us: u64) -> Duration {
        Duration(us.saturating_mul(1_000_000))
    }

    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms.saturating_mul(1_000_000_000))
    }

    /// From seconds, rounded to the nearest picosecond, halves up; negative and NaN give zero.
    pub fn from_secs(seconds: f64) -> Duration {
        Duration((seconds * PS_PER_S as f64 + 0.5).floor() as u64)
    }

    /// In seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// In whole nanoseconds, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// `n` times as long.
    #[inline]
    pub fn times(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, length: Duration) -> Time {
        Time(self.0.saturating_add(length.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Sub for Time {
    type Output = Duration;
    /// As [`Time::since`]: zero if `earlier` is not earlier.
    #[inline]
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    /// The origin, if `length` reaches behind it.
    #[inline]
    fn sub(self, length: Duration) -> Time {
        Time(self.0.saturating_sub(length.0))
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, n: u64) -> Duration {
        self.times(n)
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    /// Rounded down.
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    fn div(self, n: u64) -> Duration {
        Duration(self.0 / n)
    }
}

impl From<std::time::Duration> for Duration {
    /// The longest one there is, 213 days, if `length` is longer.
    fn from(length: std::time::Duration) -> Duration {
        Duration(u64::try_from(length.as_nanos().saturating_mul(1_000)).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for std::time::Duration {
    /// In whole nanoseconds, rounded down.
    fn from(length: Duration) -> std::time::Duration {
        std::time::Duration::from_nanos(length.as_nanos())
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Duration {
    /// With the unit that leaves one to three digits before the point: `17.6 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0 => return f.write_str("0 s"),
            1..1_000 => (1.0, "ps"),
            1_000..1_000_000 => (1e3, "ns"),
            1_000_000..1_000_000_000 => (1e6, "us"),
            1_000_000_000..PS_PER_S => (1e9, "ms"),
            _ => (1e12, "s"),
        };
        let value = self.0 as f64 / scale;
        let decimals = if value >= 100.0 { 0 } else { 1 + usize::from(value < 10.0) };
        write!(f, "{value:.decimals$} {unit}")
    }
}

impl fmt::Display for Time {
    /// The time since the origin, in seconds with all digits that are not zero: `1.0000176 s`; [`Time::MAX`] is `never`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::MAX {
            return f.write_str("never");
        }
        let (seconds, rest) = (self.0 / PS_PER_S, self.0 % PS_PER_S);
        let digits = format!("{rest:012}");
        match digits.trim_end_matches('0') {
            "" => write!(f, "{seconds} s"),
            digits => write!(f, "{seconds}.{digits} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_are_reckoned_with_as_those_of_std() {
        let (early, late) = (Time(1_000), Time(4_500));
        assert_eq!((late - early, early - late), (Duration(3_500), Duration::ZERO));
        assert_eq!((late - Duration(500), early - Duration(2_000)), (Time(4_000), Time::ZERO));
        assert_eq!((Duration(7) * 3, Duration(7) / 2), (Duration(21), Duration(3)));
        let std = std::time::Duration::from_micros(1_500);
        assert_eq!(Duration::from(std), Duration::from_micros(1_500));
        assert_eq!(std::time::Duration::from(Duration::from(std)), std);
        assert_eq!(Duration::from(std::time::Duration::MAX), Duration(u64::MAX));
    }

    #[test]
    fn times_print_without_losing_a_digit() {
        for (time, text) in
            [(Time::ZERO, "0 s"), (Time(1_000_017_600_000), "1.0000176 s"), (Time(1), "0.000000000001 s")]
        {
            assert_eq!(time.to_string(), text);
        }
        assert_eq!(Time::MAX.to_string(), "never");
    }

    #[test]
    fn durations_round_halves_up() {
        assert_eq!(Duration::from_secs(1.5e-12), Duration(2));
        assert_eq!(Duration::from_secs(1.4e-12), Duration(1));
        assert_eq!(Duration::from_secs(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs(f64::NAN), Duration::ZERO);
    }

    #[test]
    fn durations_print_with_a_fitting_unit() {
        assert_eq!(Duration::from_nanos(17_600).to_string(), "17.6 us");
        assert_eq!(Duration::from_nanos(440).to_string(), "440 ns");
        assert_eq!(Duration::from_millis(1_500).to_string(), "1.50 s");
    }
}
