//! From a time stamp in units of an interface to nanoseconds since the epoch.

const NS_PER_S: i128 = 1_000_000_000;

/// The unit and the origin of an interface's time stamps: its options `if_tsresol` and
/// `if_tsoffset` (draft-ietf-opsawg-pcapng 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    unit: Unit,
    offset_s: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A unit is this many nanoseconds.
    Nanoseconds(u64),
    /// A nanosecond is this many units; finer stamps are rounded down.
    PerNanosecond(u64),
    /// A second is two to the power of this many units.
    SecondShift(u32),
}

impl Default for Tick {
    /// Microseconds since the epoch, what an interface without options means.
    fn default() -> Tick {
        Tick { unit: Unit::Nanoseconds(1_000), offset_s: 0 }
    }
}

impl Tick {
    /// Takes the value of `if_tsresol`: a negative power of ten, or of two if the top bit is set.
    pub(super) fn set_resolution(&mut self, if_tsresol: u8) {
        let exponent = u32::from(if_tsresol & 0x7f);
        self.unit = match (if_tsresol & 0x80 != 0, exponent) {
            (true, _) => Unit::SecondShift(exponent),
            (false, 0..=9) => Unit::Nanoseconds(10u64.pow(9 - exponent)),
            // Past u64 a unit is so small that 2^64 of them make no nanosecond; the largest
            // divisor rounds all but one stamp to the zero that is meant.
            (false, _) => Unit::PerNanosecond(10u64.checked_pow(exponent - 9).unwrap_or(u64::MAX)),
        };
    }

    /// Takes the value of `if_tsoffset`, in seconds.
    pub(super) fn set_offset(&mut self, if_tsoffset: i64) {
        self.offset_s = if_tsoffset;
    }

    /// Nanoseconds since the epoch; `None` before 1970 and after 2554, where 64 bits end.
    #[inline]
    pub(super) fn nanoseconds(self, units: u64) -> Option<u64> {
        let since_origin = match self.unit {
            Unit::Nanoseconds(length) => i128::from(units) * i128::from(length),
            Unit::PerNanosecond(count) => i128::from(units / count),
            Unit::SecondShift(shift) => (i128::from(units) * NS_PER_S) >> shift,
        };
        u64::try_from(since_origin + i128::from(self.offset_s) * NS_PER_S).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(if_tsresol: u8, if_tsoffset: i64) -> Tick {
        let mut tick = Tick::default();
        tick.set_resolution(if_tsresol);
        tick.set_offset(if_tsoffset);
        tick
    }

    #[test]
    fn powers_of_ten() {
        assert_eq!(Tick::default().nanoseconds(1_700_000_000_123_456), Some(1_700_000_000_123_456_000));
        assert_eq!(tick(6, 0), Tick::default());
        assert_eq!(tick(0, 0).nanoseconds(7), Some(7_000_000_000));
        assert_eq!(tick(9, 0).nanoseconds(u64::MAX), Some(u64::MAX));
        assert_eq!(tick(12, 0).nanoseconds(1_999), Some(1));
        assert_eq!(tick(29, 0).nanoseconds(u64::MAX - 1), Some(0));
        assert_eq!(tick(127, 0).nanoseconds(5), Some(0));
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(tick(0x80, 0).nanoseconds(3), Some(3_000_000_000));
        assert_eq!(tick(0x80 | 10, 0).nanoseconds(1536), Some(1_500_000_000));
        assert_eq!(tick(0x80 | 32, 0).nanoseconds(1 << 31), Some(500_000_000));
        assert_eq!(tick(0xff, 0).nanoseconds(u64::MAX), Some(0));
    }

    #[test]
    fn offsets_in_both_directions() {
        assert_eq!(tick(9, 2).nanoseconds(5), Some(2_000_000_005));
        assert_eq!(tick(9, -2).nanoseconds(3_000_000_000), Some(1_000_000_000));
        assert_eq!(tick(9, -2).nanoseconds(5), None);
        assert_eq!(tick(0, 0).nanoseconds(u64::MAX), None);
        assert_eq!(tick(0, i64::MAX).nanoseconds(u64::MAX), None);
        assert_eq!(tick(0, i64::MIN).nanoseconds(0), None);
    }
}
