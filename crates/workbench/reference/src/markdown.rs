//! Pages of the reference.

use std::fmt::Write;

use forebay_scenario::schema::{Absent, Key, Part};

use crate::files::File;

/// What stands at the head of every generated page.
pub(crate) const GENERATED: &str =
    "<!-- Made from the code by `BLESS=1 cargo test -p forebay-reference`; do not edit. -->";

/// The page of a kind of file.
pub(crate) fn page(file: &File) -> String {
    let mut page = format!("# {}\n\n{GENERATED}\n\n{}\n\n{}\n\n", file.title, file.about, file.units());
    let schema = format!("../schema/{}.schema.json", file.name);
    writeln!(page, "Editors complete and check these keys with the [JSON Schema]({schema}): see [Editors](../editors.md).\n")
        .unwrap();
    let mut last = None;
    for part in &file.parts {
        if last != Some(part.section) {
            writeln!(page, "## {}\n", heading(part)).unwrap();
            last = Some(part.section);
        }
        if !part.kind.is_empty() {
            writeln!(page, "### `{}` with `{} = \"{}\"`\n", part.header(), File::kind_word(part), part.kind)
                .unwrap();
        }
        if part.keys.is_empty() {
            continue;
        }
        page +=
            "<div class=\"keys\">\n\n| Key | Takes | Default | Meaning | Example |\n|---|---|---|---|---|\n";
        part.keys.iter().for_each(|key| page += &row(file, part, key));
        page += "\n</div>\n\n";
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

/// A section as a heading.
fn heading(part: &Part) -> String {
    match part.section {
        "" => "The top of the file".to_owned(),
        _ => format!("`{}`", part.header()),
    }
}

fn row(file: &File, part: &Part, key: &Key) -> String {
    let absent = match key.absent {
        Absent::Required => "required".to_owned(),
        Absent::Is(value) => format!("`{value}`"),
        Absent::Means(words) => words.to_owned(),
    };
    let mut live = file.live.iter().filter(|(section, _)| *section == part.section);
    let mark = if live.any(|(_, name)| *name == key.name || name.is_empty()) { " ↻" } else { "" };
    let cells = [key.takes.to_string(), absent, key.meaning.to_owned(), format!("`{}`", key.line())];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| `{}`{mark} | {} |\n", key.name, cells.join(" | "))
}
