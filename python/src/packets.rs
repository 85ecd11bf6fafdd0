//! Every packet of a run as an Arrow table, by the C stream interface and without a copy.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::UInt16Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, RecordBatchIterator, StringArray};
use arrow_array::{UInt16Array, UInt32Array, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use forebay_sim::{Columns, Scenario};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// An Arrow table of one batch.
#[pyclass(frozen, module = "forebay._forebay")]
#[derive(Debug)]
pub struct Table(RecordBatch);

#[pymethods]
impl Table {
    /// The number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The table as a stream of Arrow's C interface; a requested schema is not followed.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batch = Ok::<_, ArrowError>(self.0.clone());
        let reader = RecordBatchIterator::new([batch], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

/// The packets of a run, and the names of its processors.
#[derive(Debug)]
pub struct Raw {
    columns: Columns,
    names: Vec<String>,
}

impl Raw {
    /// The packets of a run of `scenario`.
    pub fn new(scenario: &Scenario, columns: Columns) -> Raw {
        Raw { columns, names: scenario.processors.iter().map(|one| one.name.clone()).collect() }
    }
}

impl Table {
    /// Packets, with the columns of `packets.parquet`.
    pub fn new(raw: Raw) -> PyResult<Table> {
        let Columns { bytes, sa, arrived, chosen, completed, processor } = raw.columns;
        let rows = bytes.len();
        // Of a lost packet these are not known.
        let known =
            |valid: BooleanBuffer| Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0);
        let time = |times: Vec<u64>| -> ArrayRef {
            let nulls = known(BooleanBuffer::collect_bool(rows, |at| times[at] != u64::MAX));
            Arc::new(UInt64Array::new(ScalarBuffer::from(times), nulls))
        };
        let names = StringArray::from_iter_values(raw.names);
        let placed = known(BooleanBuffer::collect_bool(rows, |at| processor[at] != u16::MAX));
        // A null's index must be none of those beyond the names.
        let keys: Vec<u16> = match &placed {
            None => processor,
            Some(_) => processor.into_iter().map(|one| if one == u16::MAX { 0 } else { one }).collect(),
        };
        let keys = UInt16Array::new(ScalarBuffer::from(keys), placed);
        let processor = DictionaryArray::<UInt16Type>::try_new(keys, Arc::new(names)).map_err(wrong)?;
        let all: Vec<(&str, ArrayRef)> = vec![
            ("packet", Arc::new(UInt64Array::from_iter_values(0..rows as u64))),
            ("bytes", Arc::new(UInt32Array::new(ScalarBuffer::from(bytes), None))),
            ("sa", Arc::new(UInt32Array::new(ScalarBuffer::from(sa), None))),
            ("arrived_ps", Arc::new(UInt64Array::new(ScalarBuffer::from(arrived), None))),
            ("chosen_ps", time(chosen)),
            ("completed_ps", time(completed)),
            ("processor", Arc::new(processor)),
        ];
        Table::of(all, &["chosen_ps", "completed_ps", "processor"])
    }

    /// Columns of one length; `nullable`: those whose values may be absent.
    pub fn of(columns: Vec<(&str, ArrayRef)>, nullable: &[&str]) -> PyResult<Table> {
        let field = |(name, array): &(&str, ArrayRef)| {
            let kind: &DataType = array.data_type();
            Field::new(*name, kind.clone(), nullable.contains(name))
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<Field>>()));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(schema, arrays).map(Table).map_err(wrong)
    }
}

/// An error of Arrow's library, which well-formed columns do not give.
fn wrong(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
