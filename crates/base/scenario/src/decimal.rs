//! Numbers as they are written: exact decimals, with a unit or without.

/// mantissa * 10^exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

/// What a number measures, and the units it may be given in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Time,
    /// bit/s.
    Rate,
    /// Hz.
    Frequency,
    /// Bytes.
    Bytes,
    /// Packets a second.
    PacketRate,
    /// Joules.
    Energy,
    /// Watts.
    Power,
    /// A pure number.
    None,
}

impl Unit {
    /// Each unit's word, its factor and the power of ten that goes with it.
    pub fn words(self) -> &'static [(&'static str, u64, i32)] {
        match self {
            Unit::Time => &[
                ("s", 1, 0),
                ("ms", 1, -3),
                ("us", 1, -6),
                ("µs", 1, -6),
                ("μs", 1, -6),
                ("ns", 1, -9),
                ("ps", 1, -12),
                ("m", 60, 0),
                ("min", 60, 0),
                ("h", 3_600, 0),
                ("d", 86_400, 0),
            ],
            Unit::Rate => {
                &[("bit/s", 1, 0), ("kbit/s", 1, 3), ("Mbit/s", 1, 6), ("Gbit/s", 1, 9), ("Tbit/s", 1, 12)]
            }
            Unit::Frequency => &[("Hz", 1, 0), ("kHz", 1, 3), ("MHz", 1, 6), ("GHz", 1, 9)],
            Unit::Bytes => &[
                ("B", 1, 0),
                ("kB", 1, 3),
                ("MB", 1, 6),
                ("GB", 1, 9),
                ("KiB", 1 << 10, 0),
                ("MiB", 1 << 20, 0),
                ("GiB", 1 << 30, 0),
            ],
            Unit::PacketRate => {
                &[("1/s", 1, 0), ("packet/s", 1, 0), ("kpacket/s", 1, 3), ("Mpacket/s", 1, 6)]
            }
            Unit::Energy => {
                &[("J", 1, 0), ("mJ", 1, -3), ("uJ", 1, -6), ("nJ", 1, -9), ("pJ", 1, -12), ("fJ", 1, -15)]
            }
            Unit::Power => &[("W", 1, 0), ("kW", 1, 3), ("mW", 1, -3), ("uW", 1, -6), ("nW", 1, -9)],
            Unit::None => &[],
        }
    }

    /// What to write, for an error.
    pub fn expected(self) -> &'static str {
        match self {
            Unit::Time => {
                "expected a time: \"17.6 us\" (d, h, m, s, ms, us, ns, ps), or a bare number of seconds"
            }
            Unit::Rate => {
                "expected a rate: \"1 Gbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s), or a bare number of bit/s"
            }
            Unit::Frequency => "expected a frequency: \"66 MHz\" (Hz, kHz, MHz, GHz), or a bare number of Hz",
            Unit::Bytes => "expected bytes: \"1500 B\" (B, kB, MB, KiB, MiB), or a bare number of bytes",
            Unit::PacketRate => {
                "expected a rate of packets: \"10 kpacket/s\", or a bare number of packets a second"
            }
            Unit::Energy => {
                "expected an energy: \"12 pJ\" (J, mJ, uJ, nJ, pJ, fJ), or a bare number of joules"
            }
            Unit::Power => "expected a power: \"15 W\" (kW, W, mW, uW, nW), or a bare number of watts",
            Unit::None => "expected a number without a unit",
        }
    }
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoQuantity {
    /// It does not begin with a number.
    NoNumber,
    /// A unit that measures something else, or nothing.
    WrongUnit(String),
}

impl Decimal {
    #[cfg(test)]
    /// A whole number.
    pub fn whole(mantissa: u64) -> Decimal {
        Decimal { negative: false, mantissa: mantissa.into(), exponent: 0 }
    }

    /// Reads a number without a unit; `None` if it is none, infinite, or has more than 34 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let text: String = text.trim().chars().filter(|&c| c != '_').collect();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(&text)),
        };
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok().filter(|e| e.abs() < 1_000)?),
            None => (text, 0),
        };
        let (before, after) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{before}{after}");
        if digits.is_empty() || digits.len() > 34 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mantissa = digits.parse().ok()?;
        Some(Decimal { negative, mantissa, exponent: exponent - after.len() as i32 }.reduced())
    }

    /// Reads a number with a unit, or without one.
    pub fn parse_quantity(text: &str, unit: Unit) -> Result<Decimal, NoQuantity> {
        let text = text.trim();
        let bytes = text.as_bytes();
        let is_number = |(at, &byte): (usize, &u8)| match byte {
            b'0'..=b'9' | b'+' | b'-' | b'.' | b'_' => true,
            b'e' | b'E' => bytes.get(at + 1).is_some_and(|next| matches!(next, b'0'..=b'9' | b'+' | b'-')),
            _ => false,
        };
        let end = bytes.iter().enumerate().position(|one| !is_number(one)).unwrap_or(bytes.len());
        let number = Decimal::parse(&text[..end]).ok_or(NoQuantity::NoNumber)?;
        let word = text[end..].trim();
        if word.is_empty() {
            return Ok(number);
        }
        let Some(&(_, factor, power)) = unit.words().iter().find(|(known, ..)| *known == word) else {
            return Err(NoQuantity::WrongUnit(word.to_owned()));
        };
        let factor = Decimal { negative: false, mantissa: factor.into(), exponent: power };
        number.times(factor).ok_or(NoQuantity::NoNumber)
    }

    fn reduced(mut self) -> Decimal {
        if self.mantissa == 0 {
            return Decimal { negative: self.negative, mantissa: 0, exponent: 0 };
        }
        while self.mantissa.is_multiple_of(10) {
            self.mantissa /= 10;
            self.exponent += 1;
        }
        self
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.negative && !self.is_zero()
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The nearest floating-point number.
    pub fn as_f64(self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.mantissa, self.exponent).parse().unwrap_or(f64::NAN)
    }

    /// The nearest whole number of 10^-`places`, halves up; `None` if negative or beyond 64 bits.
    pub fn scaled(self, places: i32) -> Option<u64> {
        u64::try_from(self.wide(places)?).ok()
    }

    /// Seconds as picoseconds, for times since 1970 too.
    pub fn as_ps(self) -> Option<u128> {
        self.wide(12)
    }

    fn wide(self, places: i32) -> Option<u128> {
        if self.is_zero() {
            return Some(0);
        }
        if self.negative {
            return None;
        }
        let exponent = self.exponent + places;
        if exponent >= 0 {
            return self.mantissa.checked_mul(10u128.checked_pow(exponent as u32)?);
        }
        Some(match 10u128.checked_pow(exponent.unsigned_abs()) {
            Some(divisor) => {
                self.mantissa / divisor + u128::from(self.mantissa % divisor >= divisor.div_ceil(2))
            }
            None => 0,
        })
    }

    /// The number if it is whole and of 64 bits.
    pub fn as_whole(self) -> Option<u64> {
        if self.exponent < 0 { None } else { self.scaled(0) }
    }

    /// As a fraction in its lowest terms above zero, both of 64 bits.
    pub fn as_fraction(self) -> Option<(u64, u64)> {
        if self.negative || self.is_zero() {
            return None;
        }
        let (mut over, mut under) = match self.exponent {
            0.. => (self.mantissa.checked_mul(10u128.checked_pow(self.exponent as u32)?)?, 1),
            _ => (self.mantissa, 10u128.checked_pow(self.exponent.unsigned_abs())?),
        };
        for prime in [2, 5] {
            while over.is_multiple_of(prime) && under.is_multiple_of(prime) {
                (over, under) = (over / prime, under / prime);
            }
        }
        Some((over.try_into().ok()?, under.try_into().ok()?))
    }

    /// The exact product; `None` if it has too many digits.
    pub fn times(self, other: Decimal) -> Option<Decimal> {
        Some(
            Decimal {
                negative: self.negative != other.negative,
                mantissa: self.mantissa.checked_mul(other.mantissa)?,
                exponent: self.exponent + other.exponent,
            }
            .reduced(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ps(text: &str) -> Option<u64> {
        Decimal::parse_quantity(text, Unit::Time).unwrap().scaled(12)
    }

    #[test]
    fn times_are_exact_and_rounded_once() {
        assert_eq!(ps("17.6 us"), Some(17_600_000));
        assert_eq!(ps("1.76e-5"), Some(17_600_000));
        assert_eq!(ps("0.0004 ns"), Some(0));
        assert_eq!(ps("0.0005ns"), Some(1));
        assert_eq!(ps("440 ns"), Some(440_000));
        assert_eq!(ps("1.5 h"), Some(5_400_000_000_000_000));
        assert_eq!(Decimal::parse_quantity("1.5 KiB", Unit::Bytes).unwrap().as_whole(), Some(1_536));
        assert_eq!(ps("0 ns"), Some(0));
        assert_eq!(ps("-1 ns"), None);
        assert_eq!(ps("1e30 s"), None);
        let init = Decimal::parse_quantity("1 us", Unit::Time).unwrap();
        assert_eq!(init.times(Decimal::parse("2.0909").unwrap()).unwrap().scaled(12), Some(2_090_900));
    }

    #[test]
    fn rates_are_fractions() {
        let rate = |text| Decimal::parse_quantity(text, Unit::Rate).unwrap().as_fraction();
        assert_eq!(rate("1 Gbit/s"), Some((1_000_000_000, 1)));
        assert_eq!(rate("2.5"), Some((5, 2)));
        assert_eq!(rate("1e9"), Some((1_000_000_000, 1)));
        assert_eq!(rate("0"), None);
        assert_eq!(Decimal::parse_quantity("66 MHz", Unit::Rate), Err(NoQuantity::WrongUnit("MHz".into())));
        assert_eq!(Decimal::parse_quantity("fast", Unit::Rate), Err(NoQuantity::NoNumber));
    }

    #[test]
    fn whole_numbers_may_be_written_as_powers() {
        assert_eq!(Decimal::parse("1e6").unwrap().as_whole(), Some(1_000_000));
        assert_eq!(Decimal::parse("1_000").unwrap(), Decimal::whole(1_000).reduced());
        assert_eq!(Decimal::parse("1.5").unwrap().as_whole(), None);
        assert_eq!(Decimal::parse("0.30").unwrap().as_f64(), 0.3);
        for wrong in ["", ".", "1.2.3", "inf", "nan", "0x", "1e99999", "--1"] {
            assert_eq!(Decimal::parse(wrong), None, "{wrong}");
        }
    }
}
