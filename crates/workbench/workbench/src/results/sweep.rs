//! The folder of a sweep, written as the runs come.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use forebay_links::output;
use forebay_page::Made;

use super::request::{Done, Request, field};
use crate::columnar::Runs;
use crate::pages::{Row as PageRow, SweepPage};
use crate::sweep::{Event, Point, Sweep, estimates};
use crate::{Error, Row};

/// A folder to which the events of a sweep are added.
pub struct SweepFolder<'a> {
    dir: PathBuf,
    request: Request<'a>,
    sweep: &'a Sweep,
    /// One line of JSON a point.
    points: BufWriter<File>,
    /// One line a run and figure.
    runs: BufWriter<File>,
    /// The same in columns, written at the end.
    columns: Runs,
    /// What the reader of the first point's figures should know.
    notes: Vec<String>,
    /// The points that are complete.
    rows: Vec<PageRow>,
}

impl<'a> SweepFolder<'a> {
    /// Begins the folder of a sweep.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn create(
        dir: &Path,
        request: Request<'a>,
        sweep: &'a Sweep,
        made: &Made,
    ) -> Result<SweepFolder<'a>, Error> {
        let create = || -> io::Result<SweepFolder<'a>> {
            super::begin(dir, request.scenario)?;
            let done = Done { runs: 0, of: sweep.runs(), complete: false };
            request.write_manifest(dir, None, made, done)?;
            output::write(dir.join("scenario.toml"), fs::read(request.scenario)?)?;
            let points = BufWriter::new(output::stream(&dir.join("points.jsonl"))?);
            let mut runs = BufWriter::new(output::stream(&dir.join("figures.csv"))?);
            sweep.keys.iter().try_for_each(|key| write!(runs, "{},", field(key)))?;
            writeln!(runs, "seed,figure,value")?;
            let (dir, columns) = (dir.to_owned(), Runs::new(&sweep.keys));
            Ok(SweepFolder {
                dir,
                request,
                sweep,
                points,
                runs,
                columns,
                notes: Vec::new(),
                rows: Vec::new(),
            })
        };
        create().map_err(Error::writing(dir))
    }

    /// Adds what has come.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn add(&mut self, event: Event<'_>) -> Result<(), Error> {
        let written = match event {
            Event::Run(point, row) => self.run(point, row),
            Event::Point(point, rows) => self.point(point, rows),
        };
        written.map_err(Error::writing(&self.dir))
    }

    fn run(&mut self, point: &Point, row: &Row) -> io::Result<()> {
        for (figure, value) in &row.named {
            point.values.iter().try_for_each(|value| write!(self.runs, "{},", field(value)))?;
            writeln!(self.runs, "{},{figure},{value}", row.seed)?;
        }
        self.columns.add(&point.values, row.seed, row.named.clone());
        self.runs.flush()
    }

    fn point(&mut self, point: &Point, rows: &[Row]) -> io::Result<()> {
        writeln!(self.points, "{}", self.sweep.document(point, rows))?;
        let alone = self.sweep.keys.is_empty();
        let runs = rows.iter().filter(|_| alone).map(|one| (one.seed, one.named.clone())).collect();
        self.rows.push(PageRow { values: point.values.clone(), estimates: estimates(rows), runs });
        if self.rows.len() == 1 {
            self.notes.clone_from(&rows[0].notes);
        }
        self.points.flush()
    }

    /// Writes what can only be written at the end, after `runs` of the sweep.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn finish(self, runs: usize, made: &Made) -> Result<(), Error> {
        let of = self.sweep.runs();
        let done = Done { runs, of, complete: runs == of };
        let first = self.sweep.points.first();
        let page = SweepPage {
            name: self.request.name(),
            keys: &self.sweep.keys,
            replications: first.map_or(1, |point| point.replications),
            notes: self.notes,
            done: &done,
            scenario: first.map_or(String::new(), |point| point.model.resolved_toml()),
        };
        output::write(self.dir.join("report.html"), page.render(&self.rows, made))
            .and_then(|()| self.request.write_manifest(&self.dir, None, made, done))
            .map_err(Error::writing(&self.dir))?;
        let path = self.dir.join("figures.parquet");
        self.columns.write(&path).map_err(io::Error::other).map_err(Error::writing(&path))
    }
}
