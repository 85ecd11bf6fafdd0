//! Apache Parquet files as traces: the columns of a CSV trace, of whatever type holds them.

use std::fs::File;

use forebay_time::PS_PER_S;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::{COLUMNS, Fault, Names, SIZE_MAX, arrow};
use crate::scenario::ps_of;
use crate::traffic::Trace;

const HELP: &str = "a Parquet trace has the columns `size` (whole numbers of bytes) and, if it has them, `time` (seconds, \
timestamps or durations), `sa` (numbers or names) and `class` (0 to 255), none of them nested or null";
/// Records that are read at once.
const BATCH: usize = 1 << 16;

/// The values of a column, in the type that the file has them in.
enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<ByteArray>),
}

pub(super) fn read(file: File) -> Result<Trace, Fault> {
    let reader = SerializedFileReader::new(file).map_err(unreadable)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let place = |name: &str| schema.columns().iter().position(|column| column.path().string() == name);
    let [size, time, sa, class] = [0, 1, 2, 3].map(|at| place(COLUMNS[at]));
    let Some(size) = size else {
        let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let fault = Fault::value("the list of columns", names.join(", "), "one named `size`");
        return Err(fault.with_help(HELP));
    };
    // A file may have other columns, but one that is nearly named as an absent one is probably that one.
    for column in schema.columns() {
        let found = column.path().string();
        let known = COLUMNS.iter().find(|known| is_misspelt(&found, known) && place(known).is_none());
        if let Some(known) = known {
            let fault = Fault::new(format!("there is no column `{known}`, but a column `{found}`"));
            return Err(fault.with_help("rename it, or leave it out"));
        }
    }
    let (mut trace, mut names) = (Trace::default(), Names::new());
    for value in whole(&reader, size)? {
        let size = u32::try_from(value).ok().filter(|&size| u64::from(size) <= SIZE_MAX);
        trace
            .sizes
            .push(size.ok_or_else(|| of_row(trace.sizes.len(), "size", value, "a whole number of bytes"))?);
    }
    if let Some(time) = time {
        let stamps = stamps(&reader, time, &schema.column(time))?;
        trace.set_times(&stamps).map_err(Fault::too_long)?;
    }
    if let Some(sa) = sa {
        trace.sas = match column(&reader, sa)? {
            Values::Whole(list) => {
                list.iter().map(|one| names.number(one.to_string().into_bytes())).collect()
            }
            Values::Text(list) => list.iter().map(|one| names.number(one.data().to_vec())).collect(),
            Values::Real(_) => return Err(of_type("sa", "numbers with a fraction", "whole numbers or text")),
        };
    }
    if let Some(class) = class {
        for value in whole(&reader, class)? {
            let row = trace.classes.len();
            trace.classes.push(u8::try_from(value).map_err(|_| of_row(row, "class", value, "0 to 255"))?);
        }
    }
    Ok(trace)
}

/// Whether a column is named `known` but for case, two letters side by side that are swapped, or an `s` at the end. Not any
/// anagram: `item` and `emit` are words of their own.
fn is_misspelt(found: &str, known: &str) -> bool {
    let found = found.trim().to_lowercase();
    let swapped = |at: usize| {
        let mut letters: Vec<char> = known.chars().collect();
        letters.swap(at, at + 1);
        found.chars().eq(letters)
    };
    found == known || (known.len() > 2 && (found == format!("{known}s") || (0..known.len() - 1).any(swapped)))
}

fn unreadable(error: ParquetError) -> Fault {
    Fault::new(error).with_help("is the file complete, and its compression none, snappy or zstd?")
}

fn of_type(column: &str, found: impl ToString, expected: &'static str) -> Fault {
    Fault::value(format!("the type of the column `{column}`"), found, expected).with_help(HELP)
}

fn of_row(row: usize, column: &str, found: impl ToString, expected: &'static str) -> Fault {
    Fault::value(format!("row {}: the {column}", row + 1), found, expected).with_help(HELP)
}

fn whole(reader: &SerializedFileReader<File>, at: usize) -> Result<Vec<i64>, Fault> {
    let name = reader.metadata().file_metadata().schema_descr().column(at).path().string();
    match column(reader, at)? {
        Values::Whole(list) => Ok(list),
        Values::Real(_) => Err(of_type(&name, "numbers with a fraction", "whole numbers")),
        Values::Text(_) => Err(of_type(&name, "text", "whole numbers")),
    }
}

/// Times in picoseconds: seconds as numbers, or timestamps in their unit.
fn stamps(
    reader: &SerializedFileReader<File>,
    at: usize,
    descriptor: &ColumnDescriptor,
) -> Result<Vec<u128>, Fault> {
    let per_second = |unit| match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    };
    let unit = match descriptor.logical_type_ref() {
        Some(LogicalType::Timestamp(stamp)) => per_second(stamp.unit),
        Some(LogicalType::Time(time)) => per_second(time.unit),
        Some(LogicalType::Integer(_)) => 1,
        None => arrow::duration(reader.metadata().file_metadata(), COLUMNS[1]).unwrap_or(1),
        Some(other) => {
            return Err(of_type("time", format!("{other:?}"), "seconds, timestamps or durations"));
        }
    };
    let wrong = |row, found: String| {
        of_row(row, "time", found, "seconds from 0 on, a timestamp since 1970, or a duration from 0 on")
    };
    match column(reader, at)? {
        Values::Whole(list) => {
            let ps = |(row, &stamp): (usize, &i64)| {
                let stamp = u128::try_from(stamp).map_err(|_| wrong(row, stamp.to_string()))?;
                Ok(stamp * u128::from(PS_PER_S / unit))
            };
            list.iter().enumerate().map(ps).collect()
        }
        // The shortest digits that name a number are those that a CSV file would have.
        Values::Real(list) => {
            let ps = |(row, stamp): (usize, &f64)| {
                ps_of(&stamp.to_string()).ok_or_else(|| wrong(row, stamp.to_string()))
            };
            list.iter().enumerate().map(ps).collect()
        }
        Values::Text(_) => Err(of_type("time", "text", "numbers or timestamps")),
    }
}

/// All values of a column, none of them null.
fn column(reader: &SerializedFileReader<File>, at: usize) -> Result<Values, Fault> {
    let descriptor = reader.metadata().file_metadata().schema_descr().column(at);
    let name = descriptor.path().string();
    let (mut whole, mut real, mut text) = (Vec::new(), Vec::new(), Vec::new());
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(unreadable)?;
        let rows = group.metadata().num_rows().max(0) as usize;
        let levels = descriptor.max_def_level();
        let before = whole.len() + real.len() + text.len();
        match group.get_column_reader(at).map_err(unreadable)? {
            ColumnReader::Int32ColumnReader(one) => {
                whole.extend(values(one, rows, levels, &name, before)?.into_iter().map(i64::from));
            }
            ColumnReader::Int64ColumnReader(one) => whole.extend(values(one, rows, levels, &name, before)?),
            ColumnReader::FloatColumnReader(one) => {
                real.extend(values(one, rows, levels, &name, before)?.into_iter().map(f64::from));
            }
            ColumnReader::DoubleColumnReader(one) => real.extend(values(one, rows, levels, &name, before)?),
            ColumnReader::ByteArrayColumnReader(one) => {
                text.extend(values(one, rows, levels, &name, before)?)
            }
            _ => {
                let found = format!("{:?}", descriptor.physical_type());
                return Err(of_type(&name, found, "whole numbers, numbers or text"));
            }
        }
    }
    Ok(match (real.is_empty(), text.is_empty()) {
        (true, true) => Values::Whole(whole),
        (false, _) => Values::Real(real),
        (true, false) => Values::Text(text),
    })
}

fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    levels: i16,
    name: &str,
    before: usize,
) -> Result<Vec<T::T>, Fault> {
    let mut values = Vec::with_capacity(rows.min(BATCH));
    let mut definitions = Vec::new();
    loop {
        let wanted = (levels > 0).then_some(&mut definitions);
        let (records, ..) = reader.read_records(BATCH, wanted, None, &mut values).map_err(unreadable)?;
        if records == 0 {
            break;
        }
    }
    if let Some(row) = definitions.iter().position(|&level| level < levels) {
        return Err(of_row(before + row, name, "null", "a value"));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::is_misspelt;

    #[test]
    fn columns_that_are_misspelt_are_told_from_words_of_their_own() {
        for found in ["Time", " time ", "tiem", "itme", "times"] {
            assert!(is_misspelt(found, "time"), "{found}");
        }
        for found in ["item", "emit", "mite", "tie", "timestamp", "tim\u{e9}"] {
            assert!(!is_misspelt(found, "time"), "{found}");
        }
        assert!(is_misspelt("SA", "sa") && !is_misspelt("as", "sa") && !is_misspelt("sas", "sa"));
    }
}
