//! Traces as text: CSV, and the formats of the Internet Traffic Archive.

use std::io::BufRead;

use super::{COLUMNS, Fault, Names, SIZE_MAX, check_names, whole_number};
use crate::scenario::ps_of;
use crate::traffic::Trace;

/// The Archive's files that hold no packets with their sizes.
const NO_SIZES: &str = "the Archive's packets are in the files of `sanitize-tcp` and `sanitize-udp` (.tcp, .udp: time, \
source, destination, two ports, data bytes) and of `BC` (time, length); those of `sanitize-syn-fin` (.sf) and \
`tcp-reduce` have no size for each packet";

/// What stands between the fields of a line.
enum Separator {
    Comma,
    Space,
}

/// What the fields of a line are.
struct Layout {
    separator: Separator,
    size: usize,
    time: Option<usize>,
    sa: Option<usize>,
    class: Option<usize>,
    fields: usize,
}

/// The columns as they are read.
#[derive(Default)]
struct Columns {
    trace: Trace,
    stamps: Vec<u128>,
}

pub(super) fn read(input: impl BufRead) -> Result<Trace, Fault> {
    let (mut columns, mut names) = (Columns::default(), Names::new());
    let mut layout: Option<Layout> = None;
    for (at, line) in input.lines().enumerate() {
        let fail = |fault: Fault| fault.at(at + 1);
        let line = line.map_err(|error| fail(Fault::new(error)))?;
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(layout) = &layout else {
            let (found, is_header) = layout_of(line).map_err(fail)?;
            if !is_header {
                columns.packet(line, &found, &mut names).map_err(fail)?;
            }
            layout = Some(found);
            continue;
        };
        columns.packet(line, layout, &mut names).map_err(fail)?;
    }
    if layout.is_some_and(|layout| layout.time.is_some()) {
        columns.trace.set_times(&columns.stamps).map_err(Fault::too_long)?;
    }
    Ok(columns.trace)
}

/// What the first line says, and whether it is a header.
fn layout_of(line: &str) -> Result<(Layout, bool), Fault> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let numbers = words.iter().all(|word| word.parse::<f64>().is_ok());
    match words.len() {
        2 if numbers => {
            let (size, time) = (1, Some(0));
            return Ok((
                Layout { separator: Separator::Space, size, time, sa: None, class: None, fields: 2 },
                false,
            ));
        }
        6 if numbers => {
            let (size, time, sa) = (5, Some(0), Some(2));
            return Ok((
                Layout { separator: Separator::Space, size, time, sa, class: None, fields: 6 },
                false,
            ));
        }
        fields if fields > 1 && !line.contains(',') && ps_of(words[0]).is_some() => {
            let fault = Fault::value("the number of fields", fields, "6, or 2");
            return Err(fault.with_help(NO_SIZES));
        }
        _ => {}
    }
    let mut columns = Vec::new();
    split(line, |column| columns.push(column))?;
    for (at, column) in columns.iter().enumerate() {
        // R and pandas number the rows in a first column without a name.
        if at == 0 && column.is_empty() && columns.len() > 1 {
            continue;
        }
        if column.is_empty() {
            return Err(Fault::new("the header has the column ``, without a name"));
        }
        if COLUMNS.contains(column) && columns.iter().filter(|other| *other == column).count() > 1 {
            return Err(Fault::new(format!("the header has the column `{column}` twice")));
        }
    }
    // As of a Parquet file, other columns are not read.
    let place = |name| columns.iter().position(|column| *column == name);
    let Some(size) = place("size") else {
        return Err(Fault::value("the header", columns.join(","), "a column named `size`"));
    };
    check_names(&columns)?;
    // One of them may be the time by a word that nobody knows here.
    let other = columns.iter().find(|column| !column.is_empty() && !COLUMNS.contains(column));
    if let (None, Some(other)) = (place("time"), other) {
        let fault = Fault::new(format!("the header has no column `time`, but the column `{other}`"));
        return Err(fault.with_help("rename it to size, time, sa or class, or leave it out"));
    }
    let (time, sa, class) = (place("time"), place("sa"), place("class"));
    Ok((Layout { separator: Separator::Comma, size, time, sa, class, fields: columns.len() }, true))
}

/// The fields of a line of CSV. Commas between quotation marks divide nothing, and the marks around a field are no part of
/// it (RFC 4180 2); a doubled mark inside stays doubled, since fields are compared and not shown.
fn split<'a>(line: &'a str, mut put: impl FnMut(&'a str)) -> Result<(), Fault> {
    let (mut begin, mut inside) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => inside = !inside,
            b',' if !inside => {
                put(unquoted(&line[begin..at]));
                begin = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(Fault::new("a quotation mark is not closed"));
    }
    put(unquoted(&line[begin..]));
    Ok(())
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).map_or(field, str::trim)
}

impl Columns {
    fn packet(&mut self, line: &str, layout: &Layout, names: &mut Names<String>) -> Result<(), Fault> {
        let wanted = [Some(layout.size), layout.time, layout.sa, layout.class];
        let mut fields = [""; 4];
        let mut found = 0;
        let mut put = |field| {
            if let Some(column) = wanted.iter().position(|column| *column == Some(found)) {
                fields[column] = field;
            }
            found += 1;
        };
        match layout.separator {
            Separator::Comma => split(line, &mut put)?,
            Separator::Space => line.split_whitespace().for_each(&mut put),
        }
        if found != layout.fields {
            return Err(Fault::new(format!("{found} fields, expected {}", layout.fields)));
        }
        let [size, time, sa, class] = fields;
        match whole_number(size).filter(|size| *size <= SIZE_MAX) {
            Some(size) => self.trace.sizes.push(size as u32),
            None => return Err(Fault::value("the size", size, "a whole number of bytes")),
        }
        if layout.time.is_some() {
            let stamp = ps_of(time).ok_or_else(|| Fault::value("the time", time, "seconds from 0 on"))?;
            self.stamps.push(stamp);
        }
        if layout.sa.is_some() {
            self.trace.sas.push(match names.0.get(sa) {
                Some(&number) => number,
                None => names.number(sa.to_owned()),
            });
        }
        if layout.class.is_some() {
            let number = whole_number(class).and_then(|class| u8::try_from(class).ok());
            self.trace.classes.push(number.ok_or_else(|| Fault::value("the class", class, "0 to 255"))?);
        }
        Ok(())
    }
}
