//! A run's results.

use pyo3::prelude::*;

use crate::packets::Table;

/// What came of a run.
#[pyclass(frozen, module = "forebay._forebay")]
#[derive(Debug)]
pub struct Ran {
    /// The JSON that the command prints.
    pub document: String,
    /// The seed of the first run.
    #[pyo3(get)]
    pub seed: u64,
    /// What the reader of the figures should know.
    #[pyo3(get)]
    pub notes: Vec<String>,
    /// Broken off after so many packets.
    #[pyo3(get)]
    pub cut: Option<u64>,
    /// Whether that was an interrupt.
    #[pyo3(get)]
    pub interrupted: bool,
    /// Every packet.
    pub packets: Option<Py<Table>>,
}

#[pymethods]
impl Ran {
    /// The JSON that the command prints.
    fn document(&self) -> &str {
        &self.document
    }

    /// Every packet as an Arrow table, or None.
    fn packets(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.packets.as_ref().map(|table| table.clone_ref(py))
    }
}
