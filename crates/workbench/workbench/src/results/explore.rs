//! Folders of runs and of sweeps of embedded cores.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use forebay_embedded::report::{self, Point};
use forebay_embedded::{Figures, Setup};
use forebay_links::output;
use forebay_page::Made;
use serde_json::Value;

use super::request::{field, manifest, write_json};
use crate::Error;
use crate::columnar::Runs;
use crate::explore::document;

/// What was requested.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The configuration's file.
    pub config: &'a Path,
    /// What was set in it, `key=value`.
    pub sets: &'a [String],
    /// Swept keys with their values, `key=v1,v2,...`.
    pub sweeps: &'a [String],
}

impl Request<'_> {
    fn name(&self) -> String {
        self.config.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    fn write_manifest(&self, dir: &Path, made: &Made) -> io::Result<()> {
        let mut manifest = manifest("config", self.config, self.sets, made);
        manifest["sweep"] = self.sweeps.into();
        write_json(&dir.join("manifest.json"), &manifest)
    }
}

/// Writes the folder of a run, with the firmware's output image.
///
/// # Errors
/// If the folder cannot be written.
pub fn keep(
    dir: &Path,
    request: Request<'_>,
    setup: &Setup,
    figures: &Figures,
    output: &[u8],
    made: &Made,
) -> Result<(), Error> {
    let page = report::run(&request.name(), figures, made);
    let write = || -> io::Result<()> {
        super::begin(dir, request.config)?;
        request.write_manifest(dir, made)?;
        write_json(&dir.join("figures.json"), &figures.document(setup))?;
        output::write(dir.join("config.toml"), fs::read(request.config)?)?;
        output::write(dir.join("stacks.txt"), figures.folded())?;
        if !output.is_empty() {
            output::write(dir.join("output.bin"), output)?;
        }
        output::write(dir.join("report.html"), page)
    };
    write().map_err(Error::writing(dir))
}

/// Reads the figures of a run from its folder.
///
/// # Errors
/// If the folder has none.
pub fn load(dir: &Path) -> Result<Point, Error> {
    let path = dir.join("figures.json");
    let wrong = |found: String| {
        Error::of_file(&path, found, "give directories written by `forebay explore run --out DIR`")
    };
    let text = fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let mut document: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let figures = serde_json::from_value(document["figures"].take());
    let figures: Figures = figures.map_err(|error| wrong(error.to_string()))?;
    Ok(Point { name: dir.display().to_string(), values: Vec::new(), figures })
}

/// The folder of a sweep, written as the points come.
pub struct SweepFolder<'a> {
    dir: PathBuf,
    request: Request<'a>,
    /// One line of JSON a point.
    points: BufWriter<File>,
    /// One line a point and figure.
    figures: BufWriter<File>,
    columns: Runs,
}

impl<'a> SweepFolder<'a> {
    /// Begins the folder of a sweep of `keys`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn create(
        dir: &Path,
        request: Request<'a>,
        keys: &[String],
        made: &Made,
    ) -> Result<SweepFolder<'a>, Error> {
        let create = || -> io::Result<SweepFolder<'a>> {
            super::begin(dir, request.config)?;
            request.write_manifest(dir, made)?;
            output::write(dir.join("config.toml"), fs::read(request.config)?)?;
            let points = BufWriter::new(output::stream(&dir.join("points.jsonl"))?);
            let mut figures = BufWriter::new(output::stream(&dir.join("figures.csv"))?);
            keys.iter().try_for_each(|key| write!(figures, "{},", field(key)))?;
            writeln!(figures, "figure,value")?;
            Ok(SweepFolder { dir: dir.to_owned(), request, points, figures, columns: Runs::new(keys) })
        };
        create().map_err(Error::writing(dir))
    }

    /// Adds a point.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn add(&mut self, point: &Point) -> Result<(), Error> {
        self.write(point).map_err(Error::writing(&self.dir))
    }

    fn write(&mut self, point: &Point) -> io::Result<()> {
        writeln!(self.points, "{}", document(point))?;
        self.points.flush()?;
        let values: Vec<String> = point.values.iter().map(|(_, value)| value.clone()).collect();
        for (figure, value) in point.figures.row() {
            values.iter().try_for_each(|value| write!(self.figures, "{},", field(value)))?;
            writeln!(self.figures, "{figure},{value}")?;
        }
        self.columns.add(&values, 0, point.figures.row());
        self.figures.flush()
    }

    /// Writes what can only be written at the end, with the page of all `points`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn finish(self, points: &[Point], made: &Made) -> Result<(), Error> {
        let page = report::points(&self.request.name(), points, made);
        let table = self.columns.write(&self.dir.join("figures.parquet")).map_err(io::Error::other);
        let written = table.and_then(|()| output::write(self.dir.join("report.html"), page));
        written.map_err(Error::writing(&self.dir))
    }
}
