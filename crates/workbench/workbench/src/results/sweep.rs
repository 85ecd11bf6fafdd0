//! The folder of a sweep of the host model, written as the runs come.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use forebay_page::Made;
use forebay_sim::Outcome;

use super::request::{Done, Request, field};
use crate::columnar::Runs;
use crate::pages::{Row, SweepPage};
use crate::sweep::{Event, Point, Sweep, estimates};
use crate::{Error, flat};

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
    /// The points that are complete.
    rows: Vec<Row>,
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
            fs::create_dir_all(dir)?;
            let done = Done { runs: 0, of: sweep.runs(), complete: false };
            request.write_manifest(dir, None, made, done)?;
            fs::copy(request.scenario, dir.join("scenario.toml"))?;
            let points = BufWriter::new(File::create(dir.join("points.jsonl"))?);
            let mut runs = BufWriter::new(File::create(dir.join("figures.csv"))?);
            sweep.keys.iter().try_for_each(|key| write!(runs, "{},", field(key)))?;
            writeln!(runs, "seed,figure,value")?;
            let (dir, columns) = (dir.to_owned(), Runs::new(&sweep.keys));
            Ok(SweepFolder { dir, request, sweep, points, runs, columns, rows: Vec::new() })
        };
        create().map_err(Error::writing(dir))
    }

    /// Adds what has come.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn add(&mut self, event: Event<'_>) -> Result<(), Error> {
        let written = match event {
            Event::Run(point, outcome) => self.run(point, outcome),
            Event::Point(point, outcomes) => self.point(point, outcomes),
        };
        written.map_err(Error::writing(&self.dir))
    }

    fn run(&mut self, point: &Point, outcome: &Outcome) -> io::Result<()> {
        let figures = flat(&outcome.figures);
        for (figure, value) in &figures {
            point.values.iter().try_for_each(|value| write!(self.runs, "{},", field(value)))?;
            writeln!(self.runs, "{},{figure},{value}", outcome.seed)?;
        }
        self.columns.add(&point.values, outcome.seed, figures);
        self.runs.flush()
    }

    fn point(&mut self, point: &Point, outcomes: &[Outcome]) -> io::Result<()> {
        writeln!(self.points, "{}", self.sweep.document(point, outcomes))?;
        let alone = self.sweep.keys.is_empty();
        let runs = outcomes.iter().filter(|_| alone).map(|one| (one.seed, flat(&one.figures))).collect();
        self.rows.push(Row { values: point.values.clone(), estimates: estimates(outcomes), runs });
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
        let notes =
            first.filter(|_| !self.rows.is_empty()).map_or(Vec::new(), |one| one.scenario.notes.clone());
        let page = SweepPage {
            name: self.request.name(),
            keys: &self.sweep.keys,
            replications: self.sweep.replications,
            notes,
            done: &done,
            scenario: first.map_or(String::new(), |point| point.scenario.resolved_toml()),
        };
        fs::write(self.dir.join("report.html"), page.render(&self.rows, made))
            .and_then(|()| self.request.write_manifest(&self.dir, None, made, done))
            .map_err(Error::writing(&self.dir))?;
        let path = self.dir.join("figures.parquet");
        self.columns.write(&path).map_err(io::Error::other).map_err(Error::writing(&path))
    }
}
