//! Folders of runs and of sweeps.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use forebay_embedded::report::{self, Point};
use forebay_embedded::{Figures, Setup};
use forebay_workbench::columnar::Runs;
use miette::IntoDiagnostic;
use serde_json::{Value, json};

fn manifest(config: &Path, sets: &[String], sweeps: &[String]) -> Value {
    json!({
        "schema": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "config": config.display().to_string(),
        "set": sets,
        "sweep": sweeps,
        "host": forebay_terminal::host::model(),
    })
}

/// Writes the folder of a run.
pub fn keep_run(
    dir: &Path,
    config: &Path,
    sets: &[String],
    setup: &Setup,
    figures: &Figures,
    output: &[u8],
) -> miette::Result<()> {
    let name = config.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let page = report::run(&name, figures, &crate::study::made()?);
    let pretty = |value: &Value| serde_json::to_string_pretty(value).map(|text| text + "\n");
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(dir)?;
        fs::write(dir.join("manifest.json"), pretty(&manifest(config, sets, &[]))?)?;
        fs::write(dir.join("figures.json"), pretty(&figures.document(setup))?)?;
        fs::copy(config, dir.join("config.toml"))?;
        fs::write(dir.join("stacks.txt"), figures.folded())?;
        if !output.is_empty() {
            fs::write(dir.join("output.bin"), output)?;
        }
        fs::write(dir.join("report.html"), page)
    };
    write().into_diagnostic()
}

/// The folder of a sweep, written as it goes.
pub struct Sweep {
    /// One line of JSON a point.
    points: BufWriter<File>,
    /// One line a point and figure.
    figures: BufWriter<File>,
    columns: Runs,
}

impl Sweep {
    /// An empty folder's files, with the swept keys.
    pub fn create(
        dir: &Path,
        config: &Path,
        sets: &[String],
        sweeps: &[String],
        keys: &[&str],
    ) -> std::io::Result<Sweep> {
        fs::create_dir_all(dir)?;
        fs::write(
            dir.join("manifest.json"),
            serde_json::to_string_pretty(&manifest(config, sets, sweeps))? + "\n",
        )?;
        fs::copy(config, dir.join("config.toml"))?;
        let points = BufWriter::new(File::create(dir.join("points.jsonl"))?);
        let mut figures = BufWriter::new(File::create(dir.join("figures.csv"))?);
        keys.iter().try_for_each(|key| write!(figures, "{},", field(key)))?;
        writeln!(figures, "figure,value")?;
        Ok(Sweep { points, figures, columns: Runs::new(keys) })
    }

    /// Adds a point.
    pub fn add(&mut self, values: &[String], document: &Value, figures: &Figures) -> std::io::Result<()> {
        writeln!(self.points, "{document}")?;
        self.points.flush()?;
        for (figure, value) in figures.row() {
            values.iter().try_for_each(|value| write!(self.figures, "{},", field(value)))?;
            writeln!(self.figures, "{figure},{value}")?;
        }
        self.columns.add(values, 0, figures.row());
        self.figures.flush()
    }

    /// Writes what is written at the end.
    pub fn finish(self, dir: &Path, name: &str, points: &[Point]) -> miette::Result<()> {
        self.columns.write(&dir.join("figures.parquet")).into_diagnostic()?;
        fs::write(dir.join("report.html"), report::points(name, points, &crate::study::made()?)).into_diagnostic()
    }
}

/// A field of a CSV file (RFC 4180 2).
fn field(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}
