//! Masks keys in quoted text of an SAs file.
//!
//! The rule is lexical, because errors must be shown for texts that cannot be parsed: the value of a
//! line is shown only if its key is known and no key material, and no run of `RUN` or more hex
//! digits is shown anywhere. Masked text keeps its length, so that positions stay right.

use std::ops::Range;

use super::others::OtherKeys;
use super::table::{Section, is_known, is_plain};

/// Length of a run of hex digits that may be a key: half of the shortest one.
pub(super) const RUN: usize = 16;

/// What a secret that was not closed ends before, other sections apart.
const HEADERS: [&str; 3] = ["[[sa]]", "[sa.iptfs]", "[[policy]]"];

/// Whether the line begins a table.
fn is_header(line: &str, others: &OtherKeys) -> bool {
    let line = line.trim_start();
    HEADERS.iter().any(|header| line.starts_with(header)) || (others.is_header)(line)
}

/// Longest piece of the file in a message, in characters.
const SHOWN: usize = 60;

/// A word of the file as messages may quote it.
pub fn shown(text: &str) -> String {
    let mut hidden = Vec::new();
    hex_runs(text, 0, &mut hidden);
    let mut shown = cover(text, &hidden);
    if let Some((cut, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(cut);
        shown.push('…');
    }
    shown.replace(['\n', '\t'], " ")
}

/// The text with every secret replaced by as many asterisks as it has bytes; values of `others` may be shown.
pub(crate) fn source(text: &str, others: &OtherKeys) -> String {
    let mut hidden = Vec::new();
    let (mut at, mut inside_secret) = (0, false);
    for line in text.split_inclusive('\n') {
        inside_secret = hide_in_line(line, at, inside_secret, others, &mut hidden);
        at += line.len();
    }
    hidden.sort_by_key(|range| range.start);
    cover(text, &hidden)
}

/// Records which parts of `line`, which starts at `at`, are to be hidden. `inside_secret` says whether a secret value
/// of an earlier line is still open; the result says the same for the next line.
fn hide_in_line(
    line: &str,
    at: usize,
    inside_secret: bool,
    others: &OtherKeys,
    hidden: &mut Vec<Range<usize>>,
) -> bool {
    hex_runs(line, at, hidden);
    if let Some(comment) = line.trim_start().strip_prefix('#').filter(|_| !inside_secret) {
        hide_in_comment(comment, at + line.len() - comment.len(), others, hidden);
        return false;
    }
    let Some((key, value)) = line.split_once('=') else {
        if inside_secret {
            hidden.push(at..at + line.len());
        }
        return inside_secret && !is_header(line, others);
    };
    let value_at = at + key.len() + 1;
    let key = key.trim().trim_matches(['"', '\'']);
    if inside_secret && !is_known(key, others) {
        hidden.push(at..at + line.len());
    }
    if !is_plain(key, others) {
        hidden.push(value_at..at + line.len());
        return !is_closed(value);
    }
    let (value, comment) = value.split_at(comment_start(value));
    if value.contains('=') && !(key == "iptfs" && is_plain_table(value)) {
        hidden.push(value_at..value_at + value.len());
    }
    hide_in_comment(comment, value_at + value.len(), others, hidden);
    false
}

/// Whether the value is `{ ... }` with nothing inside but keys of aggregation.
fn is_plain_table(value: &str) -> bool {
    let inside = value.trim().strip_prefix('{').and_then(|value| value.strip_suffix('}'));
    inside.is_some_and(|inside| {
        inside.split(',').all(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (Section::Iptfs.has(key.trim()) || pair.trim().is_empty()) && !value.contains('=')
        })
    })
}

/// A comment may hold a line that was taken out.
fn hide_in_comment(comment: &str, at: usize, others: &OtherKeys, hidden: &mut Vec<Range<usize>>) {
    let body = comment.trim_start_matches(['#', ' ']);
    if body.contains('=') {
        hide_in_line(body, at + comment.len() - body.len(), false, others, hidden);
    }
}

/// Whether the value is one string that ends on its line.
fn is_closed(value: &str) -> bool {
    let value = value.trim();
    let Some(quote) = value.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { return false };
    value[1..].split_once(quote).is_some_and(|(_, rest)| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with('#')
    })
}

/// Where the comment of a value begins, or the value's end.
fn comment_start(value: &str) -> usize {
    let mut quote = None;
    for (at, char) in value.char_indices() {
        match (quote, char) {
            (None, '#') => return at,
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), _) if open == char => quote = None,
            _ => {}
        }
    }
    value.len()
}

fn hex_runs(text: &str, at: usize, hidden: &mut Vec<Range<usize>>) {
    let mut start = at;
    for piece in text.split_inclusive(|char: char| !char.is_ascii_hexdigit()) {
        let run = piece.bytes().take_while(u8::is_ascii_hexdigit).count();
        if run >= RUN {
            hidden.push(start..start + run);
        }
        start += piece.len();
    }
}

/// Puts asterisks over the `hidden` ranges, sorted by their starts, and makes control characters
/// harmless for a terminal.
fn cover(text: &str, hidden: &[Range<usize>]) -> String {
    let mut covered = String::with_capacity(text.len());
    let (mut ranges, mut end) = (hidden.iter().peekable(), 0);
    for (at, char) in text.char_indices() {
        while let Some(range) = ranges.next_if(|range| range.start <= at) {
            end = end.max(range.end);
        }
        let substitute = match char {
            '\n' | '\t' => None,
            '\r' => Some(' '),
            ' ' | '"' | '\'' => None,
            _ if at < end => Some('*'),
            _ if char.is_control() => Some('.'),
            _ => None,
        };
        match substitute {
            Some(substitute) => covered.extend(std::iter::repeat_n(substitute, char.len_utf8())),
            None => covered.push(char),
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(line: &str) -> String {
        let masked = source(line, &OtherKeys::NONE);
        assert_eq!(masked.len(), line.len());
        masked
    }

    #[test]
    fn only_known_harmless_values_are_shown() {
        assert_eq!(masked("key = \"00ff\" # mine\n"), "key = \"****\" * ****\n");
        assert_eq!(masked("kye = '00ff'"), "kye = '****'");
        assert_eq!(masked("name = \"east\" # mine\n"), "name = \"east\" # mine\n");
        assert_eq!(masked("spi = 0x1001 # key = 00ff"), "spi = 0x1001 # key = ****");
        assert_eq!(masked("# key = \"00ff\""), "# key = \"****\"");
        assert_eq!(masked("sa = [{ name = 'x', key = '00' }]"), "sa = ** **** * '*'* *** * '**' **");
    }

    #[test]
    fn aggregation_may_be_shown() {
        let line = "iptfs = { rate = 5, max_delay = '1ms' } # mine";
        assert_eq!(masked(line), line);
        assert_eq!(masked("iptfs.rate = 5"), "iptfs.rate = 5");
        assert_eq!(masked("iptfs = { key = '00' }"), "iptfs = * *** * '**' *");
        assert_eq!(masked("iptfs.key = '00'"), "iptfs.key = '**'");
        assert_eq!(masked("iptfs = { rate = 5 } key = '00'"), "iptfs = * **** * * * *** * '**'");
    }

    #[test]
    fn long_hex_is_hidden_everywhere() {
        let hex = "0123456789abcdef";
        assert_eq!(masked(&format!("name = \"{hex}\"")), format!("name = \"{}\"", "*".repeat(16)));
        assert_eq!(masked(&format!("{hex}7")), "*".repeat(17));
        assert_eq!(shown(&format!("é{hex}é")), format!("é{}é", "*".repeat(16)));
    }

    #[test]
    fn a_secret_over_several_lines_stays_hidden() {
        let text = "key = \"\"\"\n00ff\n11ee\"\"\"\nname = \"x\"\n";
        assert_eq!(masked(text), "key = \"\"\"\n****\n****\"\"\"\nname = \"x\"\n");
        assert_eq!(masked("name = \"x\" key = \"00ff\""), "name = \"*\" *** * \"****\"");
        assert_eq!(masked("key = [\n\"00\",\n\"é1\"\n]\n"), "key = *\n\"**\"*\n\"***\"\n*\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(masked("name = \"\u{1b}[2J\u{9b}\"\r\n"), "name = \".[2J..\" \n");
        assert_eq!(shown("a\nb"), "a b");
    }
}
