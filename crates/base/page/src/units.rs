//! Numbers as people read them: three significant digits and a unit.
//!
//! A no-break space stands before each unit; [`plain`] makes it fit for a terminal.

const NO_BREAK: char = '\u{a0}';

/// What stands where there is no number to show.
pub const NOTHING: &str = "\u{2013}";

/// A count with its thousands apart: `7,312`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count and the noun after it, in the singular where that is right.
pub fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{}{NO_BREAK}{}", count(value), if value == 1 { one } else { many })
}

/// A time: `312 µs`.
pub fn seconds(value: f64) -> String {
    scaled(value, &[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")])
}

/// A rate of bits: `812 Mbit/s`.
pub fn bits_per_second(value: f64) -> String {
    scaled(value, &[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s")])
}

/// An amount of bytes: `4.21 MB`, a thousand to the step.
pub fn bytes(value: f64) -> String {
    scaled(
        value,
        &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"), (1e18, "EB")],
    )
}

/// The length of a packet, always in bytes: `1,204 B`.
pub fn length(value: f64) -> String {
    match value.is_finite() && value >= 0.0 {
        true if value < 1e15 => format!("{}{NO_BREAK}B", count(value.round() as u64)),
        true => bytes(value),
        false => NOTHING.to_owned(),
    }
}

/// A count in full while it is short, then with a letter for its thousands: `7,312`, `15.2 k`.
pub fn short(value: f64) -> String {
    if (0.0..9_999.5).contains(&value) {
        return count(value.round() as u64);
    }
    let steps = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E")];
    scaled(value, &steps).trim_end_matches(NO_BREAK).to_owned()
}

/// A share of one in percent: `42.1 %`; what is more than none never reads as none.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NOTHING.to_owned();
    }
    match share * 100.0 {
        0.0 => format!("0{NO_BREAK}%"),
        p if p > 0.0 && p < 0.1 => format!("<0.1{NO_BREAK}%"),
        p if p > 99.9 && p < 100.0 => format!(">99.9{NO_BREAK}%"),
        100.0 => format!("100{NO_BREAK}%"),
        p if !p.is_finite() => NOTHING.to_owned(),
        p if p.abs() < 1000.0 => format!("{p:.1}{NO_BREAK}%"),
        p => format!("{}{NO_BREAK}%", digits(p)),
    }
}

/// A share of one in whole percent, for small spaces.
pub fn percent_short(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => NOTHING.to_owned(),
        p if p > 99.0 && p < 100.0 => format!(">99{NO_BREAK}%"),
        p if p > 0.0 && p < 1.0 => format!("<1{NO_BREAK}%"),
        p if p < 1e4 => format!("{p:.0}{NO_BREAK}%"),
        p => format!("{}{NO_BREAK}%", digits(p)),
    }
}

/// How many times one value is another: `×1.07`, or nothing where that has no answer.
pub fn ratio(value: f64, to: f64) -> String {
    match value / to {
        r if r.is_finite() && r > 0.0 => format!("×{}", digits(r)),
        _ => NOTHING.to_owned(),
    }
}

/// Three significant digits, with an exponent where they would be far from the point.
pub fn digits(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => NOTHING.to_owned(),
        0.0 => "0".to_owned(),
        v if !(1e-6..999_999_999.5).contains(&v) => power(value),
        v if v >= 999.5 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(v.round() as u64))
        }
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.09995 => format!("{value:.3}"),
        v => format!("{value:.*}", 2 + (-v.log10()).ceil() as usize),
    }
}

/// A number with a power of ten: `2.40×10⁻⁷`.
fn power(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let raised = exponent.chars().map(|c| match c.to_digit(10) {
        Some(digit) => SUPERSCRIPTS[digit as usize],
        None => '\u{207b}',
    });
    format!("{number}×10{}", raised.collect::<String>())
}

/// The digits of exponents.
const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// A round number's text without the zeros that claim a precision it has not got: `1.50 ms` as `1.5 ms`.
pub fn round(text: String) -> String {
    let (number, unit) = text.split_once(NO_BREAK).map_or((text.as_str(), None), |(n, u)| (n, Some(u)));
    if !number.contains('.') || number.contains('×') {
        return text;
    }
    let number = number.trim_end_matches('0').trim_end_matches('.');
    unit.map_or_else(|| number.to_owned(), |unit| format!("{number}{NO_BREAK}{unit}"))
}

/// A value in a drawing or a table: three digits, of which zeros behind the point stay unless the number ends there: 1.4 as it was
/// given, and `1.40` if that is rounded.
pub fn shown(value: f64) -> String {
    let (text, short) = (digits(value), round(digits(value)));
    let is_exact = number(&short).is_some_and(|read| (read - value).abs() <= 1e-12 * value.abs());
    if is_exact { short } else { text }
}

/// The values of an axis, with as many digits as tell them apart.
pub fn ticks(values: &[f64]) -> Vec<String> {
    let steps = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).filter(|step| *step > 0.0);
    let step = steps.fold(f64::INFINITY, f64::min);
    let said: Vec<String> = values.iter().map(|value| round(digits(*value))).collect();
    let is_right = |(text, value): (&String, &f64)| {
        text.contains('\u{d7}') || number(text).is_some_and(|read| (read - value).abs() <= 0.02 * step)
    };
    if !step.is_finite() || said.iter().zip(values).all(is_right) {
        return said;
    }
    let written = |decimals: usize| -> Vec<String> {
        values.iter().map(|value| format!("{value:.decimals$}")).collect()
    };
    let decimals = (0..15).find(|decimals| written(*decimals).iter().zip(values).all(is_right));
    decimals.map_or(said, written)
}

/// The number that a text of [`digits`] says, unless it has a power of ten.
fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// Times that are written as scenarios have them, `17.6 us` or `(us)`, with the letter of the unit: `17.6 µs`.
pub fn micro(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("us") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let number = before.trim_end_matches([' ', NO_BREAK]).ends_with(|c: char| c.is_ascii_digit());
        let unit = before.ends_with('(') && after.starts_with(')');
        out.push_str(before);
        out.push_str(if unit || number && !after.starts_with(char::is_alphanumeric) { "µs" } else { "us" });
        rest = after;
    }
    out + rest
}

/// The same text for a terminal: plain spaces and letters of ASCII.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let powers = SUPERSCRIPTS.iter().chain(&['\u{207b}']);
    let text = powers.fold(text.to_owned(), |text, c| text.replace(&format!("×10{c}"), &format!("e{c}")));
    for c in text.chars() {
        match c {
            NO_BREAK => out.push(' '),
            'µ' => out.push('u'),
            '\u{2013}' | '\u{207b}' => out.push('-'),
            '×' => out.push('x'),
            c => match SUPERSCRIPTS.iter().position(|one| *one == c) {
                Some(digit) => out.push_str(&digit.to_string()),
                None => out.push(c),
            },
        }
    }
    out
}

/// Whether a measured value can be shown and compared at all.
pub fn usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// One part of a whole; none of nothing.
pub fn share(part: f64, whole: f64) -> f64 {
    if usable(whole) { part / whole } else { 0.0 }
}

/// `steps` from small to large: the largest that leaves the rounded number at one or more is taken.
fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let (size, unit) = match value {
        0.0 => *steps.iter().find(|step| step.0 == 1.0).unwrap_or(&steps[0]),
        _ => *steps.iter().rev().find(|step| value.abs() >= step.0 * 0.9995).unwrap_or(&steps[0]),
    };
    format!("{}{NO_BREAK}{unit}", digits(value / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_one_way() {
        for (value, text) in [
            (0.0, "0"),
            (240_000.0, "240,000"),
            (-1234.0, "-1,234"),
            (99.95, "100"),
            (1.234, "1.23"),
            (0.5, "0.500"),
            (0.0123, "0.0123"),
            (0.00012345, "0.000123"),
            (2.4e-7, "2.40×10⁻⁷"),
            (1.5e12, "1.50×10¹²"),
            (f64::NAN, NOTHING),
        ] {
            assert_eq!(digits(value), text);
        }
        assert_eq!(plain("2.40×10⁻⁷ ×10.0 17.6\u{a0}µs \u{2013}"), "2.40e-7 x10.0 17.6 us -");
    }

    #[test]
    fn zeros_stay_where_they_are_digits_and_ticks_are_told_apart() {
        for (value, text) in [
            (1.4, "1.4"),
            (1.3998, "1.40"),
            (0.9999, "1.00"),
            (1.0, "1"),
            (72.03, "72.0"),
            (1e4, "10,000"),
            (0.0, "0"),
        ] {
            assert_eq!(shown(value), text);
        }
        assert_eq!(ticks(&[0.0, 5_000.0, 10_000.0]), ["0", "5,000", "10,000"]);
        assert_eq!(
            ticks(&[0.998, 0.9985, 0.999, 0.9995, 1.0]),
            ["0.9980", "0.9985", "0.9990", "0.9995", "1.0000"]
        );
        assert_eq!(ticks(&[1e-9, 2e-9]), ["1.00×10⁻⁹", "2.00×10⁻⁹"]);
        assert_eq!(ticks(&[7.0]), ["7"]);
        assert_eq!(ticks(&[0.9975, 0.9975, 0.998]), ["0.9975", "0.9975", "0.9980"]);
    }

    #[test]
    fn microseconds_of_scenarios_get_their_letter_and_words_stay() {
        assert_eq!(
            micro("t=17.6 us (us) status of us, 3us; 4 users"),
            "t=17.6 µs (µs) status of us, 3µs; 4 users"
        );
    }
}
