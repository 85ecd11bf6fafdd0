//! Traces from files: CSV, the Internet Traffic Archive's text, captures.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::Path;

use forebay_links::capture::Reader;
use forebay_links::frame::{Family, locate};

use super::Trace;
use crate::scenario::ps_of;

/// The largest payload that is taken from a text.
const SIZE_MAX: u64 = 1 << 30;

/// Why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    file: String,
    line: Option<usize>,
    message: String,
    help: &'static str,
}

impl TraceError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        self.help
    }

    /// The line, from 1, if it is about one.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for TraceError {}

const KINDS: &str = "a trace is a CSV file with the header `size[,time][,sa][,class]`, a pcap or pcapng \
capture, or text of the Internet Traffic Archive: time, source, destination, two ports, data bytes";

/// Reads a trace; which kind it is, the file itself says.
///
/// A capture's sizes are the lengths of its IP packets, and its SAs are the destination addresses. The
/// Archive's text (`sanitize-tcp`: timestamp, source, destination, source port, destination port, data
/// bytes) has an SA for each destination; lines of only two fields are timestamp and size.
pub fn read_trace(path: &Path) -> Result<Trace, TraceError> {
    let file = path.display().to_string();
    let fail = |line, message: String, help| TraceError { file: file.clone(), line, message, help };
    let opened = File::open(path).map_err(|error| fail(None, error.to_string(), "is the path right?"))?;
    let mut input = BufReader::with_capacity(1 << 16, opened);
    let begin = input.fill_buf().map_err(|error| fail(None, error.to_string(), KINDS))?;
    let trace = match begin.first_chunk::<4>() {
        Some(magic) if is_capture(*magic) => {
            capture(input, path).map_err(|message| fail(None, message, KINDS))
        }
        _ => text(input).map_err(|(line, message)| fail(line, message, KINDS)),
    }?;
    if trace.is_empty() {
        return Err(fail(None, "the trace has no packets".to_owned(), KINDS));
    }
    Ok(trace)
}

/// The magic numbers of pcap, with micro- and nanoseconds, and pcapng.
fn is_capture(magic: [u8; 4]) -> bool {
    let number = u32::from_be_bytes(magic);
    [number, number.swap_bytes()].iter().any(|n| [0xa1b2_c3d4, 0xa1b2_3c4d, 0x0a0d_0d0a].contains(n))
}

/// SAs by what the trace calls them, numbered in the order of their first packets.
struct Names<K>(HashMap<K, u32>);

impl<K: std::hash::Hash + Eq> Names<K> {
    fn number(&mut self, name: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}

fn capture(input: impl Read, path: &Path) -> Result<Trace, String> {
    let mut reader = Reader::new(input, path).map_err(|error| error.to_string())?;
    let (mut trace, mut stamps, mut names) = (Trace::default(), Vec::new(), Names(HashMap::new()));
    while let Some(record) = reader.next_record().map_err(|error| error.to_string())? {
        let at = locate(record.link, record.data).ok();
        let packet = at.and_then(|at| header(at.family, record.data.get(at.start..)?));
        let Some(Header { bytes, destination, octet }) = packet else {
            trace.skipped += 1;
            continue;
        };
        trace.sizes.push(bytes);
        trace.sas.push(names.number(destination));
        trace.dscps.push(octet >> 2);
        stamps.push(u128::from(record.timestamp_ns) * 1_000);
    }
    trace.set_times(&stamps);
    Ok(trace)
}

/// What is read of an IP packet.
struct Header {
    bytes: u32,
    destination: IpAddr,
    /// The DS field and ECN's bits (RFC 2474 3, RFC 3168 5).
    octet: u8,
}

/// The header of an IP packet (RFC 791 3.1, RFC 8200 3).
fn header(family: Family, packet: &[u8]) -> Option<Header> {
    let be16 = |at: usize| packet.get(at..at + 2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    Some(match family {
        Family::V4 => Header {
            bytes: be16(2)?,
            destination: IpAddr::from(*packet.get(16..)?.first_chunk::<4>()?),
            octet: *packet.get(1)?,
        },
        Family::V6 => Header {
            bytes: be16(4)? + 40,
            destination: IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?),
            octet: (be16(0)? >> 4) as u8,
        },
    })
}

type LineError = (Option<usize>, String);

/// What the fields of a line are.
struct Layout {
    separator: Option<char>,
    size: usize,
    time: Option<usize>,
    sa: Option<usize>,
    class: Option<usize>,
    fields: usize,
}

fn text(input: impl BufRead) -> Result<Trace, LineError> {
    let (mut trace, mut stamps, mut names) = (Trace::default(), Vec::new(), Names(HashMap::new()));
    let mut layout: Option<Layout> = None;
    for (at, line) in input.lines().enumerate() {
        let number = at + 1;
        let line = line.map_err(|error| (Some(number), error.to_string()))?;
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(layout) = &layout else {
            let (found, is_header) = layout_of(line).map_err(|message| (Some(number), message))?;
            if !is_header {
                packet(line, &found, &mut trace, &mut stamps, &mut names)
                    .map_err(|message| (Some(number), message))?;
            }
            layout = Some(found);
            continue;
        };
        packet(line, layout, &mut trace, &mut stamps, &mut names)
            .map_err(|message| (Some(number), message))?;
    }
    if layout.is_some_and(|layout| layout.time.is_some()) {
        trace.set_times(&stamps);
    }
    Ok(trace)
}

/// What the first line says, and whether it is a header.
fn layout_of(line: &str) -> Result<(Layout, bool), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let numbers = words.iter().all(|word| word.parse::<f64>().is_ok());
    match words.len() {
        2 if numbers => {
            let (size, time) = (1, Some(0));
            return Ok((Layout { separator: None, size, time, sa: None, class: None, fields: 2 }, false));
        }
        6 if numbers => {
            let (size, time, sa) = (5, Some(0), Some(2));
            return Ok((Layout { separator: None, size, time, sa, class: None, fields: 6 }, false));
        }
        _ => {}
    }
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    for column in &columns {
        if !["size", "time", "sa", "class"].contains(column) {
            return Err(format!("the header has the column `{column}`, expected size, time, sa or class"));
        }
        if columns.iter().filter(|other| *other == column).count() > 1 {
            return Err(format!("the header has the column `{column}` twice"));
        }
    }
    let place = |name| columns.iter().position(|column| *column == name);
    let size = place("size").ok_or("the header has no column `size`")?;
    let (time, sa, class) = (place("time"), place("sa"), place("class"));
    Ok((Layout { separator: Some(','), size, time, sa, class, fields: columns.len() }, true))
}

fn packet(
    line: &str,
    layout: &Layout,
    trace: &mut Trace,
    stamps: &mut Vec<u128>,
    names: &mut Names<String>,
) -> Result<(), String> {
    let mut fields = [""; 8];
    let mut found = 0;
    let mut put = |field| {
        if let Some(place) = fields.get_mut(found) {
            *place = field;
        }
        found += 1;
    };
    match layout.separator {
        Some(separator) => line.split(separator).map(str::trim).for_each(&mut put),
        None => line.split_whitespace().for_each(&mut put),
    }
    if found != layout.fields {
        return Err(format!("{found} fields, expected {}", layout.fields));
    }
    let size = fields[layout.size];
    match size.parse().ok().filter(|size: &u64| *size <= SIZE_MAX) {
        Some(size) => trace.sizes.push(size as u32),
        None => return Err(format!("the size is `{size}`, expected a whole number of bytes")),
    }
    if let Some(at) = layout.time {
        let time = fields[at];
        stamps.push(ps_of(time).ok_or_else(|| format!("the time is `{time}`, expected seconds from 0 on"))?);
    }
    if let Some(at) = layout.sa {
        trace.sas.push(match names.0.get(fields[at]) {
            Some(&number) => number,
            None => names.number(fields[at].to_owned()),
        });
    }
    if let Some(at) = layout.class {
        let class = fields[at];
        trace.classes.push(class.parse().map_err(|_| format!("the class is `{class}`, expected 0 to 255"))?);
    }
    Ok(())
}
