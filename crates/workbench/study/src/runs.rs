//! Runs of scenarios: in parallel, each one once, all of them written down.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use forebay_workbench::{Model, NoFigures, Way, pool};
use serde::Serialize;

use crate::model::{self, Figures, Ran, Setup};
use crate::study::Study;

/// A run that was made: with scenario file and settings it can be had again.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// From 1, in the order in which the script asked.
    pub run: usize,
    /// The scenario file.
    pub scenario: String,
    /// What the script set in it.
    pub set: Vec<(String, String)>,
    /// How its figures were found.
    pub by: Way,
    /// The seed.
    pub seed: u64,
    /// What it came to.
    pub figures: Figures,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// The scenario with all defaults filled in, as TOML.
    #[serde(skip)]
    pub resolved: String,
}

/// Why there are no figures.
pub(crate) enum Failure {
    /// The user has interrupted the study.
    Interrupted,
    /// Something is wrong with a scenario.
    Wrong(String),
}

/// Asked between steps of work with runs done and runs asked for so far.
pub type Watch<'a> = &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>;

pub(crate) struct Runner {
    files: Study,
    quick: bool,
    threads: usize,
    pub(crate) records: Vec<Rc<Record>>,
    /// Records by the resolved scenario: the same is not run twice.
    known: HashMap<String, usize>,
}

impl Runner {
    pub(crate) fn new(study: &Study, quick: bool, threads: usize) -> Runner {
        Runner { files: study.clone(), quick, threads, records: Vec::new(), known: HashMap::new() }
    }

    pub(crate) fn knows(&self, file: &str) -> bool {
        self.files.files.contains_key(file)
    }

    /// The scenario of a setup, cut down if that is wanted.
    pub(crate) fn scenario(&self, setup: &Setup) -> Result<Model, String> {
        let text = self.files.files.get(&*setup.file).map_or("", String::as_str);
        let directory = self.files.directory.as_deref().unwrap_or(Path::new("."));
        model::read(setup, text, directory, self.quick)
    }

    /// The records of setups, in their order; those that are not known yet are run, on all threads.
    pub(crate) fn run(&mut self, setups: &[Setup], watch: Watch<'_>) -> Result<Vec<Rc<Record>>, Failure> {
        let mut wanted: Vec<(String, &Setup, Model)> = Vec::new();
        let mut keys = Vec::with_capacity(setups.len());
        for setup in setups {
            let scenario = self.scenario(setup).map_err(Failure::Wrong)?;
            let key = format!("{}\n{}", setup.way, scenario.resolved_toml());
            if !self.known.contains_key(&key) && wanted.iter().all(|(known, ..)| *known != key) {
                wanted.push((key.clone(), setup, scenario));
            }
            keys.push(key);
        }
        let (outcomes, mut interrupted) = self.simulate(&wanted, watch);
        for ((key, setup, scenario), outcome) in wanted.iter().zip(outcomes) {
            let outcome = match outcome {
                Some(Ok(outcome)) => outcome,
                Some(Err(NoFigures::Cancelled)) | None => {
                    interrupted = true;
                    continue;
                }
                Some(Err(error)) => return Err(Failure::Wrong(format!("{}: {error}", setup.file))),
            };
            let run = self.records.len() + 1;
            self.known.insert(key.clone(), run - 1);
            self.records.push(Rc::new(Record {
                run,
                scenario: setup.file.to_string(),
                set: setup.sets.clone(),
                by: setup.way,
                seed: outcome.seed,
                figures: outcome.figures,
                notes: outcome.notes,
                resolved: scenario.resolved_toml(),
            }));
        }
        if interrupted {
            return Err(Failure::Interrupted);
        }
        Ok(keys.iter().map(|key| self.records[self.known[key]].clone()).collect())
    }

    /// Runs on all threads, whose number changes nothing but the time taken; and whether that was broken off.
    fn simulate(
        &self,
        wanted: &[(String, &Setup, Model)],
        watch: Watch<'_>,
    ) -> (Vec<Option<Result<Ran, NoFigures>>>, bool) {
        // Threads get scenarios only: the script's own values stay on the script's thread.
        let scenarios: Vec<(&Model, Way)> =
            wanted.iter().map(|(_, setup, scenario)| (scenario, setup.way)).collect();
        let (done, all) = (self.records.len(), self.records.len() + wanted.len());
        let mut outcomes: Vec<_> = wanted.iter().map(|_| None).collect();
        let (mut ready, mut interrupted) = (0, false);
        let work = |&(scenario, way): &(&Model, Way), go: pool::GoOn<'_>| model::run(scenario, way, go);
        pool::each(&scenarios, self.threads, work, |result| {
            if let Some((at, outcome)) = result {
                outcomes[at] = Some(outcome);
                ready += 1;
            }
            let go_on = watch(done + ready, all);
            interrupted |= go_on.is_break();
            go_on
        });
        (outcomes, interrupted)
    }
}
