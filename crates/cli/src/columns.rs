//! Tables and sentences that fit a terminal: no number is cut and no line is left for the terminal to break.
//!
//! A table that is too wide has its texts broken at words, and columns that do not fit follow below, each group with the first
//! column in front; one that does not fit beside that either stands under it.

/// Between two columns.
const GAP: usize = 2;
/// What a text is given at least, if it has so much.
const TEXT_MIN: usize = 16;
/// In front of the further lines of a sentence.
const INDENT: &str = "    ";

/// Columns of the terminal that standard output is; lines of files and pipes may have any length.
pub fn width() -> usize {
    forebay_terminal::columns().unwrap_or(usize::MAX)
}

/// Columns of one width each, the first `left` of them to the left, in `width` characters.
pub fn table(left: usize, rows: &[Vec<String>], width: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(|column| widest(rows, column, chars)).collect();
    let mut groups = groups(left, rows, &widths, width);
    let last = groups.pop();
    let mut text = String::new();
    for group in groups {
        push_group(&mut text, left, rows, &group, width);
        text.push('\n');
    }
    last.iter().for_each(|group| push_group(&mut text, left, rows, group, width));
    text
}

/// Breaks lines that are longer than `width` at words.
pub fn fit(text: &str, width: usize) -> String {
    let mut fitted = String::with_capacity(text.len());
    for line in text.lines() {
        if chars(line) <= width {
            fitted += line;
        } else {
            let rest = width.saturating_sub(INDENT.len()).max(1);
            let start = line.len() - line.trim_start().len();
            let indent = &line[..start];
            let broken = broken(
                line.trim_start(),
                width.saturating_sub(start).max(1),
                rest.saturating_sub(start).max(1),
            );
            fitted += indent;
            fitted += &broken.join(&format!("\n{indent}{INDENT}"));
        }
        fitted.push('\n');
    }
    fitted
}

/// Columns with the characters that they are given.
type Group = Vec<(usize, usize)>;

fn groups(left: usize, rows: &[Vec<String>], widths: &[usize], width: usize) -> Vec<Group> {
    let all: Group = widths.iter().copied().enumerate().collect();
    let Some(&first) = widths.first() else { return vec![] };
    if widths.iter().sum::<usize>() + GAP * (widths.len() - 1) <= width {
        return vec![all];
    }
    // A name of any length leaves room for the rest.
    let key = first.min((width / 2).max(1));
    let (mut groups, mut group, mut used) = (vec![], vec![(0, key)], key);
    for &(column, natural) in &all[1..] {
        let word = widest(rows, column, |cell| cell.split(' ').map(chars).max().unwrap_or(0));
        let is_text = column < left || word < natural;
        let unbroken = if is_text { word } else { natural };
        let least = if is_text { natural.min(TEXT_MIN).max(word) } else { natural };
        if used + GAP + least > width && group.len() > 1 {
            groups.push(std::mem::replace(&mut group, vec![(0, key)]));
            used = key;
        }
        if used + GAP + unbroken > width {
            groups.push(vec![(0, first.min(width)), (column, natural.min(width.saturating_sub(GAP)))]);
            continue;
        }
        let given = natural.min(width.saturating_sub(used + GAP)).max(1);
        group.push((column, given));
        used += GAP + given;
    }
    if group.len() > 1 || groups.is_empty() {
        groups.push(group);
    }
    groups
}

fn push_group(text: &mut String, left: usize, rows: &[Vec<String>], group: &Group, width: usize) {
    let all = group.iter().map(|(_, given)| given).sum::<usize>() + GAP * group.len().saturating_sub(1);
    if all > width && group.len() > 1 {
        return push_stacked(text, rows, group);
    }
    // What is broken is read from the left.
    let to_left = |&(column, given): &(usize, usize)| column < left || widest(rows, column, chars) > given;
    let columns: Vec<(usize, usize, bool)> = group.iter().map(|one| (one.0, one.1, to_left(one))).collect();
    for row in rows {
        let cell = |column: usize| row.get(column).map_or("", String::as_str);
        let cells: Vec<Vec<&str>> =
            columns.iter().map(|&(column, given, _)| broken(cell(column), given, given)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let parts = columns.iter().zip(&cells).map(|(&(_, given, to_left), lines)| {
                let part = lines.get(line).copied().unwrap_or("");
                if to_left { format!("{part:<given$}") } else { format!("{part:>given$}") }
            });
            *text += parts.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end();
            text.push('\n');
        }
    }
}

/// Each column on lines of its own, under the first one.
fn push_stacked(text: &mut String, rows: &[Vec<String>], group: &Group) {
    for row in rows {
        for &(column, given) in group {
            let indent = if column == 0 { "" } else { &INDENT[..GAP] };
            for line in broken(row.get(column).map_or("", String::as_str), given.max(1), given.max(1)) {
                *text += &format!("{indent}{line}\n");
            }
        }
    }
}

/// The lines of a text of which the first has `first` characters at most and the others `rest`: words are broken only where
/// one alone is longer.
fn broken(text: &str, first: usize, rest: usize) -> Vec<&str> {
    let (mut lines, mut left, mut room) = (vec![], text, first);
    while chars(left) > room {
        // The bytes of so many characters, and the last space in them or right behind.
        let end = left.char_indices().nth(room).map_or(left.len(), |(at, _)| at);
        let behind = left[end..].starts_with(' ').then_some(end);
        let at = behind.or_else(|| left[..end].trim_end().rfind(' ').filter(|&at| at > 0)).unwrap_or(end);
        lines.push(left[..at].trim_end());
        left = left[at..].trim_start();
        room = rest;
    }
    lines.push(left);
    lines
}

fn widest(rows: &[Vec<String>], column: usize, of: impl Fn(&str) -> usize) -> usize {
    rows.iter().filter_map(|row| row.get(column)).map(|cell| of(cell)).max().unwrap_or(0)
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words_and_long_words_where_they_must() {
        assert_eq!(broken("one two three", 7, 5), ["one two", "three"]);
        assert_eq!(broken("abcdefghij kl", 4, 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(broken("", 4, 4), [""]);
        assert_eq!(
            fit("a short line\n  a line of words that is longer\n", 20),
            "a short line\n  a line of words\n      that is longer\n"
        );
        assert_eq!(fit("any length\n", usize::MAX), "any length\n");
    }

    #[test]
    fn columns_that_do_not_fit_follow_below_with_the_name() {
        let rows: Vec<Vec<String>> = [["NAME", "COUNT", "WHY"], ["a", "123456", "words of it"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .into();
        assert_eq!(table(1, &rows, 80), "NAME   COUNT          WHY\na     123456  words of it\n");
        assert_eq!(
            table(1, &rows, 17),
            "NAME   COUNT\na     123456\n\nNAME          WHY\na     words of it\n"
        );
        assert_eq!(table(1, &rows, 8), "NAME\n  COUNT\na\n  123456\n\nNAME\n  WHY\na\n  words\n  of it\n");
        assert_eq!(
            table(1, &rows, 12),
            "NAME   COUNT\na     123456\n\nNAME  WHY\na     words\n      of it\n"
        );
    }
}
