//! Tables as Apache Parquet, which spreadsheets of this century and every data frame read: plain columns, no
//! compression.

use std::path::Path;
use std::sync::Arc;

use forebay_links::output::Output;
use forebay_sim::{Columns, Scenario};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Packets of a group of rows: what a reader holds at a time.
const GROUP: usize = 1 << 20;

/// A column of a group of rows; in those that may lack values, which rows have one.
enum Column {
    Text(Vec<ByteArray>, Option<Vec<i16>>),
    Whole(Vec<i64>, Option<Vec<i16>>),
    Short(Vec<i32>),
    Real(Vec<f64>),
}

/// What a column of the file is.
struct Field<'a> {
    name: &'a str,
    kind: Kind,
    optional: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// Unsigned, of 64 bits.
    Whole,
    /// Unsigned, of 32 bits.
    Short,
    Real,
}

/// A file that is being written, a group of rows at a time.
struct Table {
    file: SerializedFileWriter<Output>,
}

impl Table {
    fn create(path: &Path, name: &str, fields: &[Field<'_>]) -> Result<Table, ParquetError> {
        let column = |field: &Field<'_>| {
            let (physical, logical) = match field.kind {
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Whole => (Physical::INT64, Some(LogicalType::integer(64, false))),
                Kind::Short => (Physical::INT32, Some(LogicalType::integer(32, false))),
                Kind::Real => (Physical::DOUBLE, None),
            };
            let repetition = if field.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
            let builder = Type::primitive_type_builder(field.name, physical).with_repetition(repetition);
            builder.with_logical_type(logical).build().map(Arc::new)
        };
        let fields = fields.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let file = SerializedFileWriter::new(Output::create(path)?, Arc::new(schema), properties)?;
        Ok(Table { file })
    }

    /// Adds rows: as many columns as there are fields, of their kinds.
    fn rows(&mut self, columns: &[Column]) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            match (writer.untyped(), column) {
                (ColumnWriter::ByteArrayColumnWriter(to), Column::Text(values, present)) => {
                    to.write_batch(values, present.as_deref(), None)?
                }
                (ColumnWriter::Int64ColumnWriter(to), Column::Whole(values, present)) => {
                    to.write_batch(values, present.as_deref(), None)?
                }
                (ColumnWriter::Int32ColumnWriter(to), Column::Short(values)) => {
                    to.write_batch(values, None, None)?
                }
                (ColumnWriter::DoubleColumnWriter(to), Column::Real(values)) => {
                    to.write_batch(values, None, None)?
                }
                _ => return Err(ParquetError::General("a column of another kind".to_owned())),
            };
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    fn finish(self) -> Result<(), ParquetError> {
        Ok(self.file.into_inner()?.finish()?)
    }
}

/// One row a run and figure: the swept keys as text, the seed, the figure's name and its value.
#[derive(Default)]
pub struct Runs {
    keys: Vec<String>,
    /// By key.
    values: Vec<Vec<ByteArray>>,
    seed: Vec<i64>,
    figure: Vec<ByteArray>,
    value: Vec<f64>,
}

impl Runs {
    /// An empty table with a column of text for each swept key.
    pub fn new(keys: &[String]) -> Runs {
        Runs { values: vec![Vec::new(); keys.len()], keys: keys.to_vec(), ..Runs::default() }
    }

    /// Adds a run.
    pub fn add(&mut self, values: &[String], seed: u64, figures: Vec<(String, f64)>) {
        for (figure, value) in figures {
            for (column, value) in self.values.iter_mut().zip(values) {
                column.push(value.as_str().into());
            }
            self.seed.push(seed as i64);
            self.figure.push(figure.as_str().into());
            self.value.push(value);
        }
    }

    /// Writes the file.
    pub fn write(self, path: &Path) -> Result<(), ParquetError> {
        let field = |name, kind| Field { name, kind, optional: false };
        let mut fields: Vec<Field<'_>> = self.keys.iter().map(|key| field(key, Kind::Text)).collect();
        fields.extend([field("seed", Kind::Whole), field("figure", Kind::Text), field("value", Kind::Real)]);
        let mut table = Table::create(path, "figures", &fields)?;
        let mut columns: Vec<Column> =
            self.values.into_iter().map(|values| Column::Text(values, None)).collect();
        columns.push(Column::Whole(self.seed, None));
        columns.push(Column::Text(self.figure, None));
        columns.push(Column::Real(self.value));
        table.rows(&columns)?;
        table.finish()
    }
}

/// Every packet of a run, times in picoseconds; of a lost one processor and later times are missing.
pub fn write_packets(path: &Path, scenario: &Scenario, columns: &Columns) -> Result<(), ParquetError> {
    let field = |name, kind, optional| Field { name, kind, optional };
    let fields = [
        field("packet", Kind::Whole, false),
        field("bytes", Kind::Short, false),
        field("sa", Kind::Short, false),
        field("arrived_ps", Kind::Whole, false),
        field("chosen_ps", Kind::Whole, true),
        field("completed_ps", Kind::Whole, true),
        field("processor", Kind::Text, true),
    ];
    let names: Vec<ByteArray> = scenario.processors.iter().map(|one| one.name.as_str().into()).collect();
    let mut table = Table::create(path, "packets", &fields)?;
    let count = columns.bytes.len();
    for from in (0..count).step_by(GROUP) {
        let rows = from..(from + GROUP).min(count);
        let times = |times: &[u64]| {
            let times = &times[rows.clone()];
            let present = times.iter().map(|&at| i16::from(at != u64::MAX)).collect();
            let values = times.iter().filter(|&&at| at != u64::MAX).map(|&at| at as i64).collect();
            Column::Whole(values, Some(present))
        };
        let short =
            |values: &[u32]| Column::Short(values[rows.clone()].iter().map(|&value| value as i32).collect());
        let processors = &columns.processor[rows.clone()];
        let present = processors.iter().map(|&one| i16::from(usize::from(one) < names.len())).collect();
        let processors = processors.iter().filter_map(|&one| names.get(usize::from(one)).cloned()).collect();
        table.rows(&[
            Column::Whole(rows.clone().map(|number| number as i64).collect(), None),
            short(&columns.bytes),
            short(&columns.sa),
            Column::Whole(columns.arrived[rows.clone()].iter().map(|&at| at as i64).collect(), None),
            times(&columns.chosen),
            times(&columns.completed),
            Column::Text(processors, Some(present)),
        ])?;
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn rows(path: &Path) -> Vec<String> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("figures.parquet");
        let mut runs = Runs::new(&["a.b".to_owned()]);
        let figures = vec![("lost".to_owned(), 0.5), ("bus.load".to_owned(), 1.0)];
        runs.add(&["x".to_owned()], u64::MAX, figures);
        runs.write(&path).unwrap();
        let rows = rows(&path);
        let max = u64::MAX;
        assert_eq!(rows.len(), 2);
        assert!(
            rows[0].contains("\"x\"") && rows[0].contains(&max.to_string()) && rows[0].contains("lost"),
            "{rows:?}"
        );
        assert!(rows[1].contains("bus.load"), "{rows:?}");
    }
}
