//! The tidy table of runs as Apache Parquet.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// One row a run and figure, column by column.
pub struct Columns {
    path: PathBuf,
    keys: Vec<String>,
    /// By key.
    values: Vec<Vec<ByteArray>>,
    seed: Vec<i64>,
    figure: Vec<ByteArray>,
    value: Vec<f64>,
}

impl Columns {
    /// An empty table with a column of text for each swept key.
    pub fn new(path: PathBuf, keys: &[&str]) -> Columns {
        Columns {
            path,
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            values: vec![Vec::new(); keys.len()],
            seed: Vec::new(),
            figure: Vec::new(),
            value: Vec::new(),
        }
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
    pub fn write(&self) -> Result<(), ParquetError> {
        let text = |name: &str| column(name, Physical::BYTE_ARRAY, Some(LogicalType::String));
        let mut fields = self.keys.iter().map(|key| text(key)).collect::<Result<Vec<_>, _>>()?;
        let unsigned = LogicalType::integer(64, false);
        fields.push(column("seed", Physical::INT64, Some(unsigned))?);
        fields.push(text("figure")?);
        fields.push(column("value", Physical::DOUBLE, None)?);
        let schema = Type::group_type_builder("figures").with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file = SerializedFileWriter::new(File::create(&self.path)?, Arc::new(schema), properties)?;
        let mut group = file.next_row_group()?;
        let mut texts = self.values.iter().chain([&self.figure]);
        while let Some(mut column) = group.next_column()? {
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(to) => {
                    let values = texts.next().map_or(&[][..], Vec::as_slice);
                    to.write_batch(values, None, None)?;
                }
                ColumnWriter::Int64ColumnWriter(to) => {
                    to.write_batch(&self.seed, None, None)?;
                }
                ColumnWriter::DoubleColumnWriter(to) => {
                    to.write_batch(&self.value, None, None)?;
                }
                _ => unreachable!("the schema above has no other columns"),
            }
            column.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(())
    }
}

fn column(name: &str, physical: Physical, logical: Option<LogicalType>) -> Result<Arc<Type>, ParquetError> {
    let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
    builder.with_logical_type(logical).build().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("figures.parquet");
        let mut columns = Columns::new(path.clone(), &["a.b"]);
        columns.add(
            &["x".to_owned()],
            u64::MAX,
            vec![("lost".to_owned(), 0.5), ("bus.load".to_owned(), 1.0)],
        );
        columns.write().unwrap();
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        let max = u64::MAX;
        assert_eq!(rows.len(), 2);
        assert!(
            rows[0].contains("\"x\"") && rows[0].contains(&max.to_string()) && rows[0].contains("lost"),
            "{rows:?}"
        );
        assert!(rows[1].contains("bus.load"), "{rows:?}");
    }
}
