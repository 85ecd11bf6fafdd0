//! Apache Parquet files as traces: the columns of a CSV trace, of whatever type holds them.

use std::fs::File;

use forebay_time::PS_PER_S;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::{COLUMNS, Fault, Names, SIZE_MAX, arrow, check_names, whole_number};
use crate::scenario::ps_of;
use crate::traffic::Trace;

const HELP: &str = "a Parquet trace has the columns `size` (whole numbers of bytes) and, if it has them, `time` (seconds, \
timestamps or durations), `sa` (numbers or names) and `class` (0 to 255), none of them nested or null";
/// Records that are read at once.
const BATCH: usize = 1 << 16;
/// Up to this, whole numbers are told apart as floating-point numbers.
const WHOLE_MAX: f64 = (1u64 << 53) as f64;

/// The values of a column, in the type that the file has them in.
enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<ByteArray>),
    /// Numbers of type DECIMAL, as they are written.
    Decimals(Vec<String>),
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
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    check_names(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
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
            Values::Real(list) => {
                let mut sas = Vec::with_capacity(list.len());
                for (row, one) in list.iter().enumerate() {
                    if one.is_nan() {
                        return Err(of_row(row, "sa", one, "a number or text"));
                    }
                    sas.push(names.number(one.to_string().into_bytes()));
                }
                sas
            }
            Values::Decimals(list) => list.iter().map(|one| names.number(one.clone().into_bytes())).collect(),
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
        // Sizes that pandas has once had with a missing one among them are such numbers.
        Values::Real(list) => {
            let whole = |(row, &one): (usize, &f64)| {
                let is_whole = one.fract() == 0.0 && one.abs() <= WHOLE_MAX;
                is_whole.then_some(one as i64).ok_or_else(|| of_row(row, &name, one, "a whole number"))
            };
            list.iter().enumerate().map(whole).collect()
        }
        Values::Decimals(list) => {
            let whole = |(row, one): (usize, &String)| {
                let found = whole_number(one).and_then(|one| i64::try_from(one).ok());
                found.ok_or_else(|| of_row(row, &name, one, "a whole number"))
            };
            list.iter().enumerate().map(whole).collect()
        }
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
        Some(LogicalType::String | LogicalType::Decimal(_)) => 1,
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
        Values::Decimals(list) => {
            let ps = |(row, stamp): (usize, &String)| ps_of(stamp).ok_or_else(|| wrong(row, stamp.clone()));
            list.iter().enumerate().map(ps).collect()
        }
        Values::Text(list) => {
            let ps = |(row, stamp): (usize, &ByteArray)| {
                let stamp = String::from_utf8_lossy(stamp.data());
                ps_of(&stamp).ok_or_else(|| wrong(row, stamp.into_owned()))
            };
            list.iter().enumerate().map(ps).collect()
        }
    }
}

/// All values of a column, none of them null.
fn column(reader: &SerializedFileReader<File>, at: usize) -> Result<Values, Fault> {
    let descriptor = reader.metadata().file_metadata().schema_descr().column(at);
    let name = descriptor.path().string();
    let (mut whole, mut real, mut text) = (Vec::new(), Vec::new(), Vec::new());
    let mut decimals = Vec::new();
    // A decimal is stored as a whole number of its smallest steps.
    let is_decimal = descriptor.converted_type() == ConvertedType::DECIMAL
        || matches!(descriptor.logical_type_ref(), Some(LogicalType::Decimal(_)));
    let scale = usize::try_from(descriptor.type_scale()).unwrap_or(0);
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(unreadable)?;
        let rows = group.metadata().num_rows().max(0) as usize;
        let levels = descriptor.max_def_level();
        let before = whole.len() + real.len() + text.len() + decimals.len();
        match group.get_column_reader(at).map_err(unreadable)? {
            ColumnReader::Int32ColumnReader(one) if is_decimal => {
                let steps = values(one, rows, levels, &name, before)?;
                decimals.extend(steps.into_iter().map(|one| digits(one.into(), scale)));
            }
            ColumnReader::Int64ColumnReader(one) if is_decimal => {
                let steps = values(one, rows, levels, &name, before)?;
                decimals.extend(steps.into_iter().map(|one| digits(one.into(), scale)));
            }
            ColumnReader::FixedLenByteArrayColumnReader(one) if is_decimal => {
                let steps = values(one, rows, levels, &name, before)?;
                decimals.extend(steps.iter().map(|one| digits(signed(one.data()), scale)));
            }
            ColumnReader::ByteArrayColumnReader(one) if is_decimal => {
                let steps = values(one, rows, levels, &name, before)?;
                decimals.extend(steps.iter().map(|one| digits(signed(one.data()), scale)));
            }
            ColumnReader::BoolColumnReader(one) => {
                let words = values(one, rows, levels, &name, before)?;
                text.extend(words.into_iter().map(|one| ByteArray::from(if one { "true" } else { "false" })));
            }
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
    if !decimals.is_empty() {
        return Ok(Values::Decimals(decimals));
    }
    Ok(match (real.is_empty(), text.is_empty()) {
        (true, true) => Values::Whole(whole),
        (false, _) => Values::Real(real),
        (true, false) => Values::Text(text),
    })
}

/// A number of steps of 10^-scale in decimal digits.
fn digits(steps: i128, scale: usize) -> String {
    let sign = if steps < 0 { "-" } else { "" };
    let all = format!("{:0width$}", steps.unsigned_abs(), width = scale + 1);
    let (number, fraction) = all.split_at(all.len() - scale);
    if scale == 0 { format!("{sign}{number}") } else { format!("{sign}{number}.{fraction}") }
}

/// Of two's complement, the highest byte first; at most 16 of them.
fn signed(bytes: &[u8]) -> i128 {
    let start = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
    bytes.iter().fold(start, |number, &byte| (number << 8) | i128::from(byte))
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
