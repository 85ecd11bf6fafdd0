//! What is modelled: a chain of stages, and the servers that work for them.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::closed::Breakdowns;

/// A chain of stages behind Poisson arrivals, every time in it exponential (\[N\]; models.md 2).
///
/// A packet that arrives while the first stage is full is lost. Between stages nothing is lost: a
/// stage works only while the next one has room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Packets a second offered.
    pub arrival_rate: f64,
    /// The stages, in the order in which a packet passes them.
    pub stages: Vec<Stage>,
    /// What the stages share; a stage without a server has its own.
    #[serde(default)]
    pub servers: Vec<Server>,
}

/// One stage of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name in the results.
    pub name: String,
    /// Mean service time in seconds.
    pub time_s: f64,
    /// Packets it can hold, the one in service counted.
    pub buffer: u32,
    /// Units of its own that work at once; 1 for a stage on a shared server.
    #[serde(default = "one")]
    pub units: u32,
    /// The shared server that works for it, as an index into [`Network::servers`].
    #[serde(default)]
    pub server: Option<usize>,
    /// Mean length of its runs on an interrupt-driven server, in seconds; the server's if absent.
    #[serde(default)]
    pub run_length_s: Option<f64>,
    /// Where packets go on to, which the rest of them leave the network from; absent: all to the next stage.
    /// Of closed forms only: no chain is solved of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<Branch>>,
    /// How its unit breaks down; of closed forms and single units only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdowns: Option<Breakdowns>,
}

/// A way from a stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// The stage that it leads to, as an index into [`Network::stages`].
    pub stage: usize,
    /// Probability that a packet takes it.
    pub share: f64,
}

/// A server shared by several stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Its name in the results.
    pub name: String,
    /// How its stages share it.
    pub discipline: Discipline,
}

/// How the stages of one server share it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Discipline {
    /// A packet holds the server from the first of its stages to the last, also while another unit
    /// works for it in between.
    BusyWaiting,
    /// The server stays with a stage while it can work there. It leaves after a run of mean
    /// `run_length_s` if another stage can work, at once if only another can, and never to a stage
    /// that cannot; the next is the next in the chain's cyclic order. A change takes a mean of
    /// `switch_delay_s`.
    InterruptDriven {
        /// Mean length of a run in seconds; infinite for runs that end only when there is no work left.
        run_length_s: f64,
        /// Mean time of a change in seconds.
        switch_delay_s: f64,
    },
    /// The last of its stages that can work has the server: packets are finished before others
    /// are begun. Preemptive, without cost.
    LastFirst,
    /// The first of its stages that can work has the server. Preemptive, without cost.
    FirstFirst,
    /// All stages that can work have equal shares of the server.
    ProcessorSharing,
}

fn one() -> u32 {
    1
}

impl Stage {
    /// A stage with a unit of its own.
    pub fn new(name: &str, time_s: f64, buffer: u32) -> Stage {
        Stage {
            name: name.into(),
            time_s,
            buffer,
            units: 1,
            server: None,
            run_length_s: None,
            next: None,
            breakdowns: None,
        }
    }

    /// The same stage on a shared server.
    pub fn on(self, server: usize) -> Stage {
        Stage { server: Some(server), ..self }
    }
}

impl Network {
    /// \[N\]'s network processor: receive, preprocess, crypto, IP, transmit, of which preprocess and
    /// IP share the core. Times from \[N\] Table II, `buffer` packets a stage.
    pub fn ixp425(arrival_rate: f64, buffer: u32, core: Discipline) -> Network {
        Network {
            arrival_rate,
            stages: vec![
                Stage::new("receive", 27.3e-6, buffer),
                Stage::new("preprocess", 32e-6, buffer).on(0),
                Stage::new("crypto", 12.6e-6, buffer),
                Stage::new("ip", 49e-6, buffer).on(0),
                Stage::new("transmit", 27.3e-6, buffer),
            ],
            servers: vec![Server { name: "core".into(), discipline: core }],
        }
    }

    /// The stages that `server` works for, in the chain's order.
    pub fn stages_of(&self, server: usize) -> Vec<usize> {
        (0..self.stages.len()).filter(|&k| self.stages[k].server == Some(server)).collect()
    }

    /// The first and last stage of each queue: a stage, or the span that a packet holds a busy-waiting
    /// server through.
    pub fn stations(&self) -> Vec<(usize, usize)> {
        let mut stations = Vec::new();
        let mut first = 0;
        while first < self.stages.len() {
            let holds = |&server: &usize| self.servers[server].discipline == Discipline::BusyWaiting;
            let last = match self.stages[first].server.filter(holds) {
                Some(server) => self.stages_of(server).into_iter().max().unwrap_or(first),
                None => first,
            };
            stations.push((first, last));
            first = last + 1;
        }
        stations
    }

    /// How often a packet passes each of the [stations](Network::stations), in the mean: the traffic equations
    /// v = e + P' v of a network in which a packet chooses its way anew at each stage (Jackson, Jobshop-like queueing
    /// systems, Management Science 10, 1963).
    ///
    /// # Errors
    /// [`Error::Invalid`] if packets come to a station that they never leave the network from.
    pub fn visits(&self) -> Result<Vec<f64>, Error> {
        let visits = self.visits_from(0);
        match visits.iter().position(|visits| !visits.is_finite() || *visits <= 0.0) {
            Some(station) => {
                let name = &self.stages[self.stations()[station].0].name;
                Err(Error::Invalid(format!("stage {name}: packets never come to it, or never leave")))
            }
            None => Ok(visits),
        }
    }

    /// How often a packet that is at the station `first` passes each station from there on in the mean, that time counted. Not
    /// finite if it never leaves.
    pub fn visits_from(&self, first: usize) -> Vec<f64> {
        let stations = self.stations();
        let of = |stage: usize| stations.iter().position(|&(first, last)| (first..=last).contains(&stage));
        // Each row is an equation: v[to] - sum of share * v[from] = 1 of the station `first`, else 0.
        let width = stations.len();
        let mut rows = vec![vec![0.0; width + 1]; width];
        rows[first][width] = 1.0;
        for (from, &(_, last)) in stations.iter().enumerate() {
            rows[from][from] += 1.0;
            let next = Branch { stage: last + 1, share: 1.0 };
            for branch in self.stages[last].next.as_deref().unwrap_or(&[next]) {
                if let Some(to) = of(branch.stage) {
                    rows[to][from] -= branch.share;
                }
            }
        }
        eliminate(rows)
    }

    /// Whether the description makes sense.
    ///
    /// # Errors
    /// [`Error::Invalid`] says what does not.
    pub fn check(&self) -> Result<(), Error> {
        let invalid = |what: String| Err(Error::Invalid(what));
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if !positive(self.arrival_rate) {
            return invalid(format!("arrival rate {} is not a positive number", self.arrival_rate));
        }
        if self.stages.is_empty() {
            return invalid("there are no stages".into());
        }
        for stage in &self.stages {
            let name = &stage.name;
            if !positive(stage.time_s) {
                return invalid(format!("stage {name}: time {} is not a positive number", stage.time_s));
            }
            if stage.buffer == 0 {
                return invalid(format!("stage {name}: buffer is 0"));
            }
            if stage.units == 0 || (stage.server.is_some() && stage.units != 1) {
                return invalid(format!("stage {name}: {} units (shared servers have 1)", stage.units));
            }
            if stage.server.is_some_and(|s| s >= self.servers.len()) {
                return invalid(format!("stage {name}: there is no such server"));
            }
            if stage.run_length_s.is_some_and(|t| t.is_nan() || t < 0.0) {
                return invalid(format!("stage {name}: run length is negative"));
            }
            let ways = stage.next.as_deref().unwrap_or_default();
            let all: f64 = ways.iter().map(|way| way.share).sum();
            let known = |way: &Branch| way.stage < self.stages.len() && way.share > 0.0;
            if !ways.iter().all(known) || all > 1.0 + 1e-9 {
                return invalid(format!("stage {name}: shares of packets are not positive, or more than 1"));
            }
        }
        for (index, server) in self.servers.iter().enumerate() {
            if let Discipline::InterruptDriven { run_length_s, switch_delay_s } = server.discipline
                && !(run_length_s >= 0.0 && switch_delay_s >= 0.0 && switch_delay_s.is_finite())
            {
                return invalid(format!("server {}: run length or switch delay is negative", server.name));
            }
            self.check_span(index)?;
        }
        Ok(())
    }

    /// Nothing else may be shared within the span that a busy-waiting server holds a packet for.
    fn check_span(&self, server: usize) -> Result<(), Error> {
        let stages = self.stages_of(server);
        let (Some(&first), Some(&last)) = (stages.first(), stages.last()) else { return Ok(()) };
        if self.servers[server].discipline == Discipline::BusyWaiting {
            for stage in &self.stages[first..=last] {
                if stage.server.is_some_and(|s| s != server) {
                    let name = &self.servers[server].name;
                    let what =
                        format!("stage {} is shared, inside the span of busy-waiting {name}", stage.name);
                    return Err(Error::Invalid(what));
                }
            }
        }
        Ok(())
    }
}

/// The solution of linear equations, of which the last column is what is wanted; not finite if there is none.
fn eliminate(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let width = rows.len();
    for column in 0..width {
        let largest =
            (column..width).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()));
        rows.swap(column, largest.unwrap_or(column));
        let pivot = rows[column].clone();
        for (at, row) in rows.iter_mut().enumerate() {
            let factor = row[column] / pivot[column];
            if at != column && factor != 0.0 {
                row.iter_mut().zip(&pivot).skip(column).for_each(|(x, p)| *x -= factor * p);
            }
        }
    }
    rows.iter().enumerate().map(|(at, row)| row[width] / row[at]).collect()
}
