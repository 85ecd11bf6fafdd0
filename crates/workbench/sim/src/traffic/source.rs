//! Traces from files: CSV, the Internet Traffic Archive's text, captures, Parquet.

#[cfg(feature = "parquet")]
mod arrow;
mod capture;
#[cfg(feature = "parquet")]
mod table;
mod text;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use forebay_time::PS_PER_S;

use super::Trace;

/// The largest payload that is taken from a text or a table.
const SIZE_MAX: u64 = 1 << 30;
/// The columns of a CSV or Parquet file.
const COLUMNS: &[&str] = &["size", "time", "sa", "class"];

/// A whole number, or one with a fraction of zeros only: pandas writes whole numbers so where a column once lacked a value.
fn whole_number(text: &str) -> Option<u64> {
    let zeros = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit == b'0');
    match text.split_once('.') {
        Some((number, fraction)) => number.parse().ok().filter(|_| zeros(fraction)),
        None => text.parse().ok(),
    }
}

/// Refuses a column that is nearly named as an absent one and is probably that one; a file may have other columns. `names`
/// are those of all.
fn check_names(names: &[&str]) -> Result<(), Fault> {
    for found in names {
        let known = COLUMNS.iter().find(|known| is_misspelt(found, known) && !names.contains(known));
        if let Some(known) = known {
            let fault = Fault::new(format!("there is no column `{known}`, but a column `{found}`"));
            return Err(fault.with_help("rename it, or leave it out; sizes are in bytes, times in seconds"));
        }
    }
    Ok(())
}

/// Whether a column is named `known` but for case, two letters side by side that are swapped, an `s` at the end, or something
/// that follows, such as a unit: `time_us`, `Size (B)`. Not any anagram: `item` and `emit` are words of their own.
fn is_misspelt(found: &str, known: &str) -> bool {
    let found = found.trim().to_lowercase();
    let swapped = |at: usize| {
        let mut letters: Vec<char> = known.chars().collect();
        letters.swap(at, at + 1);
        found.chars().eq(letters)
    };
    let followed = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    found.strip_prefix(known).is_some_and(followed)
        || (known.len() > 2 && (found == format!("{known}s") || (0..known.len() - 1).any(swapped)))
}

const KINDS: &str = "a trace is a CSV or Parquet file with the columns `size[,time][,sa][,class]`, a pcap or pcapng \
capture, or text of the Internet Traffic Archive: time, source, destination, two ports, data bytes; or time and length";

/// Why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    file: String,
    fault: Fault,
}

impl TraceError {
    /// The file, as it was named.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1, if it is about one.
    pub fn line(&self) -> Option<usize> {
        self.fault.line
    }

    /// What is wrong, without file and line.
    pub fn message(&self) -> String {
        let mut message = self.fault.message.clone();
        if let Some(found) = &self.fault.found {
            message.push_str(&format!(" is `{found}`"));
        }
        if let Some(expected) = self.fault.expected {
            message.push_str(&format!(", expected {expected}"));
        }
        message
    }

    /// What is in the file, if the error is about a value.
    pub fn found(&self) -> Option<&str> {
        self.fault.found.as_deref()
    }

    /// What should be in its place.
    pub fn expected(&self) -> Option<&str> {
        self.fault.expected
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        self.fault.help
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.fault.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message())
    }
}

impl std::error::Error for TraceError {}

/// What is wrong with a trace: `message`, or that what `message` names is `found` in the place of `expected`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    line: Option<usize>,
    message: String,
    found: Option<String>,
    expected: Option<&'static str>,
    help: &'static str,
}

impl Fault {
    fn new(message: impl ToString) -> Fault {
        Fault { line: None, message: message.to_string(), found: None, expected: None, help: KINDS }
    }

    /// What `subject` names is another than is expected.
    fn value(subject: impl ToString, found: impl ToString, expected: &'static str) -> Fault {
        let found = Some(found.to_string());
        Fault { found, expected: Some(expected), ..Fault::new(subject) }
    }

    fn with_help(self, help: &'static str) -> Fault {
        Fault { help, ..self }
    }

    /// Packets that are `ps` picoseconds apart, more than a trace can say.
    fn too_long(ps: u128) -> Fault {
        let days = ps / (86_400 * u128::from(PS_PER_S));
        Fault::value("the time from the first packet to the last", format!("{days} d"), "at most 213 d")
            .with_help("divide the trace")
    }

    fn at(self, line: usize) -> Fault {
        Fault { line: Some(line), ..self }
    }
}

/// Reads a trace; which kind it is, the file itself says.
///
/// A capture's sizes are the lengths of its IP packets, and its SAs are the destination addresses. The
/// Archive's text (`sanitize-tcp`, `sanitize-udp`: timestamp, source, destination, source port, destination
/// port, data bytes) has an SA for each destination; lines of only two fields (`BC`) are timestamp and length.
/// CSV and Parquet files have named columns, of which `size` is required; times are in seconds.
pub fn read_trace(path: &Path) -> Result<Trace, TraceError> {
    let fail = |fault| TraceError { file: path.display().to_string(), fault };
    let read = || {
        let opened = File::open(path).map_err(|error| Fault::new(error).with_help("is the path right?"))?;
        let mut input = BufReader::with_capacity(1 << 16, opened);
        let begin = input.fill_buf().map_err(Fault::new)?;
        let trace = match begin.first_chunk::<4>() {
            Some(magic) if capture::is_capture(*magic) => capture::read(input, path),
            Some(b"PAR1") => table(path),
            Some(magic) => match compressed(magic) {
                Some(fault) => Err(fault),
                None => text::read(input),
            },
            None => text::read(input),
        }?;
        if trace.is_empty() { Err(Fault::new("the trace has no packets")) } else { Ok(trace) }
    };
    read().map_err(fail)
}

#[cfg(feature = "parquet")]
fn table(path: &Path) -> Result<Trace, Fault> {
    let file = File::open(path).map_err(Fault::new)?;
    table::read(file)
}

#[cfg(not(feature = "parquet"))]
fn table(_: &Path) -> Result<Trace, Fault> {
    Err(Fault::new("this build reads no Parquet files").with_help("save the trace as CSV"))
}

/// A file that is compressed, as those of the Archive are when they are fetched.
fn compressed(magic: &[u8; 4]) -> Option<Fault> {
    let (kind, help) = match *magic {
        [0x1f, 0x8b, ..] => ("gzip", "decompress it: `gzip -d FILE`, or `tar xzf FILE` for a tar archive"),
        [0x1f, 0x9d, ..] => {
            ("compress", "decompress it: `gzip -d FILE`, or `tar xzf FILE` for a tar archive")
        }
        [0x28, 0xb5, 0x2f, 0xfd] => ("zstd", "decompress it: `zstd -d FILE`"),
        [b'B', b'Z', b'h', _] => ("bzip2", "decompress it: `bzip2 -d FILE`"),
        [0xfd, b'7', b'z', b'X'] => ("xz", "decompress it: `xz -d FILE`"),
        [b'P', b'K', 3, 4] => ("zip", "decompress it: `unzip FILE`"),
        _ => return None,
    };
    Some(Fault::value("the file", format!("compressed by {kind}"), "a trace").with_help(help))
}

/// SAs by what the trace calls them, numbered in the order of their first packets.
struct Names<K>(HashMap<K, u32>);

impl<K: std::hash::Hash + Eq> Names<K> {
    fn new() -> Names<K> {
        Names(HashMap::new())
    }

    fn number(&mut self, name: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::is_misspelt;

    #[test]
    fn columns_that_are_misspelt_are_told_from_words_of_their_own() {
        for found in ["Time", " time ", "tiem", "itme", "times", "time_us", "Time (ms)", "time.s"] {
            assert!(is_misspelt(found, "time"), "{found}");
        }
        for found in ["item", "emit", "mite", "tie", "timestamp", "tim\u{e9}"] {
            assert!(!is_misspelt(found, "time"), "{found}");
        }
        assert!(is_misspelt("SA", "sa") && !is_misspelt("as", "sa") && !is_misspelt("sas", "sa"));
    }
}
