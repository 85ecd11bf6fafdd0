//! The smallest buffers of a pipeline for a loss ratio, and the maximum throughput of given ones.

use std::path::{Path, PathBuf};

use forebay_models as models;
use forebay_pipeline::scenario::{CardScenario, Rules, Scenario};
use forebay_pipeline::size::{By, Watch, highest_load_with, smallest_buffers_with};
use forebay_pipeline::{Arrivals, Breakdowns, Buffer, Overflow, Pipeline, Sizes, SmallestBuffers, Stage};
use forebay_time::PS_PER_S;
use serde_json::Value;

use crate::Error;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The maximum loss ratio, above 0 and below 1.
    pub loss: f64,
    /// The largest buffer to try, in packets, at least 1.
    pub buffer_max: u32,
    /// How loss is found; `None`: by the Markov chain if the model is solvable.
    pub by: Option<Method>,
    /// Runs of each design if loss is found by simulation, at least 2.
    pub runs: usize,
    /// Threads for these runs, whose number affects only the time taken.
    pub threads: usize,
}

/// How loss is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By exact solution of the Markov chain.
    Chain,
    /// By several simulations: what the loss is at most with 95 % confidence, without any loss 3 / packets.
    Simulation,
}

/// A pipeline or an inline card whose buffers are to be sized.
#[derive(Debug)]
pub struct Design {
    path: PathBuf,
    pipeline: Pipeline,
    method: Method,
    notes: Vec<String>,
    approximations: Vec<String>,
    resolved: Value,
    /// Bytes that an inline card's packets carry.
    payload: Option<u32>,
    /// The file of a pipeline.
    scenario: Option<Scenario>,
}

impl Design {
    /// Reads the scenario at `path` with `sets` (`key=value`).
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn load(path: &Path, sets: &[String]) -> Result<Design, Error> {
        let text = forebay_scenario::load(path)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        Design::parse(&text, &path.display().to_string(), sets, directory)
    }

    /// Reads `text`, which is called `name` in errors; files that it names are relative to `directory`.
    ///
    /// # Errors
    /// As [`Design::load`].
    pub fn parse(text: &str, name: &str, sets: &[String], directory: &Path) -> Result<Design, Error> {
        if forebay_scenario::model_of(text, sets).as_deref() == Some("inline-card") {
            let card = CardScenario::parse(text, name, sets)?;
            let approximations =
                vec!["all times are assumed exponential, without loss between the stages".to_owned()];
            return Ok(Design {
                path: name.into(),
                pipeline: card.pipeline,
                method: Method::Simulation,
                notes: card.notes,
                approximations,
                resolved: card.resolved,
                payload: Some(card.payload),
                scenario: None,
            });
        }
        let scenario = Scenario::parse(text, name, sets, directory)?;
        Ok(Design {
            path: name.into(),
            pipeline: scenario.simulated(),
            // Not of every pipeline that is simulated by its rules is there a chain: not of batches, nor of a setup.
            method: match scenario.rules {
                Rules::Markov if forebay_pipeline::network(&scenario.pipeline).is_ok() => Method::Chain,
                _ => Method::Simulation,
            },
            notes: scenario.notes.clone(),
            approximations: scenario.approximations(),
            resolved: scenario.resolved.clone(),
            payload: None,
            scenario: Some(scenario),
        })
    }

    /// How loss is found: as asked for, else by the Markov chain if the model is solvable.
    pub fn method(&self, asked: Option<Method>) -> Method {
        asked.unwrap_or(self.method)
    }

    /// Finds the smallest buffers, and the maximum throughput of the design's own. `watch` is called with the number of
    /// designs tried, and returns whether to go on. What was found until then remains, if any buffers kept the bound.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it was stopped before; [`Error::Design`] if a design cannot be solved; [`Error::Input`] if the
    /// scenario cannot be.
    pub fn size_buffers(&self, settings: &Settings, watch: Watch<'_>) -> Result<Sizes<'_>, Error> {
        let &Settings { loss, buffer_max, runs, threads, .. } = settings;
        let pipeline = &self.pipeline;
        let (by, word, notes) = match self.method(settings.by) {
            Method::Chain => (By::Chain(models::Options::default()), "chain", &self.approximations),
            Method::Simulation => (By::Simulation { runs, threads }, "simulation", &self.notes),
        };
        let mut notes = notes.clone();
        // What cannot be kept whatever the buffers is known without trying.
        let ceiling = ceiling(pipeline, loss);
        let offered = offered(pipeline);
        let sized = if offered > ceiling {
            notes.push(format!(
                "the offered {offered:.1} packets/s exceed the loss ratio with buffers of any size"
            ));
            None
        } else {
            smallest_buffers_with(pipeline, loss, buffer_max, by, watch).map_err(|error| self.error(error))?
        };
        let complete = sized.as_ref().is_none_or(|sized| sized.complete);
        let load = match pipeline.arrivals {
            _ if !complete => Ok(None),
            Arrivals::Trace(_) => {
                notes.push(
                    "the maximum throughput is not searched for, because the load of a trace is fixed"
                        .to_owned(),
                );
                Ok(None)
            }
            _ => highest_load_with(pipeline, loss, ceiling, by, watch),
        };
        let load = match load {
            Ok(load) => load,
            Err(models::Error::Cancelled) if sized.is_some() => {
                notes.push("interrupted while the maximum throughput was searched for".to_owned());
                None
            }
            Err(
                error @ (models::Error::TooLarge { .. }
                | models::Error::NotConverged { .. }
                | models::Error::Unshowable { .. }),
            ) => {
                notes.push(format!("the maximum throughput with the file's buffers is unknown: {error}"));
                None
            }
            Err(error) => return Err(self.error(error)),
        };
        if !complete {
            notes.push("interrupted: there may be smaller buffers".to_owned());
        }
        let buffers = |sizes: &[u32]| {
            let stages = pipeline.stages.iter().zip(sizes);
            stages.map(|(stage, &buffer)| Buffer { name: stage.name.clone(), buffer }).collect()
        };
        Ok(Sizes {
            schema: 1,
            by: word,
            loss,
            smallest: sized.map(|sized| SmallestBuffers {
                total: sized.buffers.iter().map(|&buffer| u64::from(buffer)).sum(),
                loss_probability: sized.loss.most,
                packets: sized.loss.seen.map(|seen| seen.packets),
                lost: sized.loss.seen.map(|seen| seen.lost),
                interval: sized.loss.seen.map(|seen| seen.estimate),
                tried: sized.tried,
                complete: (!sized.complete).then_some(false),
                stages: buffers(&sized.buffers),
            }),
            highest_load_pps: load,
            highest_load_bps: self.payload.and_then(|bytes| Some(load? * 8.0 * f64::from(bytes))),
            notes,
            resolved: &self.resolved,
        })
    }

    fn error(&self, error: models::Error) -> Error {
        match (error, &self.scenario) {
            (models::Error::Cancelled, _) => Error::Cancelled,
            // These are of the designs tried, not of the file.
            (
                error @ (models::Error::TooLarge { .. }
                | models::Error::BatchAboveBuffers { .. }
                | models::Error::NotConverged { .. }
                | models::Error::Unshowable { .. }),
                _,
            ) => Error::Design(error),
            (error, Some(scenario)) => scenario.objection(&error).into(),
            (error, None) => Error::of_file(&self.path, error, ""),
        }
    }
}

/// The offered packets per second; 0 for a trace.
fn offered(pipeline: &Pipeline) -> f64 {
    match &pipeline.arrivals {
        Arrivals::Constant(gap) | Arrivals::Exponential(gap) => PS_PER_S as f64 / gap.0.max(1) as f64,
        Arrivals::Trace(_) => 0.0,
    }
}

/// A load, in packets a second, above which more than `bound` is lost for certain, whatever the buffers: a unit or server
/// would have more to do than it can. A lost packet spares it at most what one that comes to any stage still has to do there.
fn ceiling(pipeline: &Pipeline, bound: f64) -> f64 {
    let time = |stage: &Stage| {
        let setup = stage.setup.as_secs() / f64::from(stage.batch);
        let stretch = stage.breakdowns.as_ref().map_or(1.0, Breakdowns::stretch);
        stretch * (stage.time.mean(pipeline.packet_bytes).as_secs() + setup)
    };
    let capacity = |stage: &Stage| match stage.server {
        None => f64::from(stage.units),
        Some(index) => {
            let server = &pipeline.servers[index];
            f64::from(server.cores) / server.breakdowns.as_ref().map_or(1.0, Breakdowns::stretch)
        }
    };
    let stages = &pipeline.stages;
    let visits: Vec<Vec<f64>> = (0..stages.len()).map(|first| pipeline.visits_from(first)).collect();
    // Of each unit or server, by its first stage: the time that a packet takes of it, less what losses may spare it.
    let least = |at: usize| {
        let shares = |one: usize| {
            one == at || (stages[at].server.is_some() && stages[one].server == stages[at].server)
        };
        let from = |first: usize| {
            let on = (0..stages.len()).filter(|&one| shares(one));
            on.map(|one| visits[first][one] * time(&stages[one])).sum::<f64>()
        };
        let spared = match pipeline.overflow {
            Overflow::Drop => (0..stages.len()).map(from).fold(0.0, f64::max),
            _ => from(0),
        };
        (from(0) - bound * spared) / capacity(&stages[at])
    };
    let entry = (1.0 - bound) * time(&stages[0]) / capacity(&stages[0]);
    (0..stages.len()).map(least).fold(entry, f64::max).max(1e-12).recip()
}

#[cfg(test)]
mod tests {
    use forebay_pipeline::{Branch, Law};
    use forebay_time::Duration;

    use super::*;

    #[test]
    fn a_ceiling_is_what_a_unit_can_do_and_what_losses_may_spare_it() {
        let us = Duration::from_micros;
        let stage = |name, time| Stage::new(name, Law::Exponential(us(time)), 10);
        let near = |found: f64, exact: f64| assert!((found / exact - 1.0).abs() < 1e-9, "{found} {exact}");
        let mut pipeline = Pipeline { stages: vec![stage("a", 20), stage("b", 50)], ..Pipeline::default() };
        near(ceiling(&pipeline, 0.01), 20_000.0 / 0.99);
        pipeline.stages[1].units = 2;
        near(ceiling(&pipeline, 0.01), 40_000.0 / 0.99);
        // Half of the packets go to a stage of 1,000 a second: of 4,000 a second a quarter is lost there, of 20,000 less than a half.
        pipeline.stages = vec![stage("a", 20), stage("b", 1000)];
        pipeline.stages[0].next = Some(vec![Branch { stage: 1, share: 0.5 }]);
        near(ceiling(&pipeline, 0.25), 4_000.0);
        near(ceiling(&pipeline, 0.45), 20_000.0);
        // More than a half is lost only at the first stage.
        near(ceiling(&pipeline, 0.6), 50_000.0 / 0.4);
        pipeline.overflow = Overflow::Block;
        near(ceiling(&pipeline, 0.25), 2_000.0 / 0.75);
    }
}
