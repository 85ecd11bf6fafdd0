//! Costs of processors: measured, saved, loaded, and passed to the scheduler.

use std::path::Path;

use forebay_crypto::{Processor, Suite};
use forebay_engine::{Calibration, Clock, Point, ProcessorSetup, calibrate_within};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use miette::{IntoDiagnostic, WrapErr, miette};
use serde::{Deserialize, Serialize};

#[cfg(feature = "libraries")]
use crate::backend::Backend;

/// How long a processor is measured before it is used: costs are learnt from then on.
const CALIBRATION: Duration = Duration::from_millis(8);
/// Jobs that may wait at a core.
const CORE_QUEUE: usize = 256;

/// The layout of the saved file; 1 had no `submit_s`, `wake_s`, `packet_s`, `lanes` and `batches`.
const SCHEMA: u32 = 2;
/// Packets handed over together where one figure has to do: a core under load is given several at once.
const USUAL_BATCH: usize = 8;

/// Measured costs, as `forebay bench processors --save` writes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Version of the layout.
    pub schema: u32,
    /// One entry for each processor and suite.
    pub processors: Vec<MeasuredCost>,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs { schema: SCHEMA, processors: Vec::new() }
    }
}

/// The cost of one suite on one processor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCost {
    /// The processor's name.
    pub name: String,
    /// The suite.
    pub proposal: String,
    /// t_init in seconds.
    pub init_s: f64,
    /// t_block in seconds.
    pub block_s: f64,
    /// Per packet, also where packets are computed side by side, in seconds.
    #[serde(default)]
    pub packet_s: f64,
    /// Per batch handed over together, in seconds.
    #[serde(default)]
    pub submit_s: f64,
    /// From the hand-over to an idle processor until it begins, in seconds.
    #[serde(default)]
    pub wake_s: f64,
    /// Packets of a batch that are computed side by side.
    #[serde(default = "one")]
    pub lanes: u32,
    /// Median distance of the measurements from the fitted cost, in seconds.
    pub residual_s: f64,
    /// Share of the variation that the fitted cost explains.
    pub r_squared: f64,
    /// Packet length in bytes and median time in seconds per packet, in batches of 8.
    pub points: Vec<(u32, f64)>,
    /// What was measured.
    #[serde(default)]
    pub batches: Vec<MeasuredBatch>,
}

/// The median time of batches of one size.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredBatch {
    /// Packet length in bytes.
    pub size: u32,
    /// Packets in the batch.
    pub batch: usize,
    /// Time of the batch in seconds.
    pub time_s: f64,
    /// The time that the fitted cost gives, in seconds.
    pub predicted_s: f64,
    /// Time from the hand-over until all packets were back, in seconds; 0 in files of before it was kept.
    #[serde(default)]
    pub response_s: f64,
}

fn one() -> u32 {
    1
}

impl MeasuredCost {
    /// The figures of a calibration.
    pub fn new(name: &str, suite: Suite, calibration: &Calibration) -> MeasuredCost {
        let Calibration { points, cost, residual, r_squared } = calibration;
        let usual = points.iter().map(|point| point.batch).filter(|&batch| batch <= USUAL_BATCH).max();
        let usual = points.iter().filter(|point| Some(point.batch) == usual);
        let batch = |point: &Point| MeasuredBatch {
            size: point.size,
            batch: point.batch,
            time_s: point.time.as_secs(),
            predicted_s: cost.of_batch(std::iter::repeat_n(point.work, point.batch)).as_secs(),
            response_s: point.response.as_secs(),
        };
        MeasuredCost {
            name: name.to_owned(),
            proposal: suite.to_string(),
            init_s: cost.init.as_secs(),
            block_s: cost.block.as_secs(),
            packet_s: cost.packet.as_secs(),
            submit_s: cost.submit.as_secs(),
            wake_s: cost.wake.as_secs(),
            lanes: cost.lanes,
            residual_s: residual.as_secs(),
            r_squared: *r_squared,
            points: usual.map(|point| (point.size, point.time.as_secs() / point.batch as f64)).collect(),
            batches: points.iter().map(batch).collect(),
        }
    }

    /// The cost for the scheduler.
    pub fn cost(&self) -> Cost {
        Cost {
            init: Duration::from_secs(self.init_s),
            block: Duration::from_secs(self.block_s),
            packet: Duration::from_secs(self.packet_s),
            submit: Duration::from_secs(self.submit_s),
            wake: Duration::from_secs(self.wake_s),
            lanes: self.lanes.max(1),
        }
    }

    /// Packets per second in batches of `batch` packets of `size` bytes; `None` if these were not measured.
    pub fn rate(&self, size: u32, batch: usize) -> Option<f64> {
        let found = self.batches.iter().find(|one| one.size == size && one.batch == batch)?;
        Some(batch as f64 / found.time_s)
    }
}

impl Costs {
    /// Reads a file that `--save` wrote.
    ///
    /// # Errors
    /// That it cannot be read, or is of another layout.
    pub fn load(path: &Path) -> miette::Result<Costs> {
        let name = path.display();
        let text = std::fs::read_to_string(path).into_diagnostic().wrap_err_with(|| format!("{name}"))?;
        let costs: Costs = serde_json::from_str(&text).map_err(|error| {
            miette!(
                help = "write the file again with `forebay bench processors --save FILE`",
                "{name}, line {}: {error}",
                error.line()
            )
        })?;
        if !(1..=SCHEMA).contains(&costs.schema) {
            return Err(miette!(
                help = "write the file again with `forebay bench processors --save FILE`",
                "{name}: `schema` is {}, expected 1 or {SCHEMA}",
                costs.schema
            ));
        }
        Ok(costs)
    }

    fn find(&self, name: &str, suite: Suite) -> Option<Cost> {
        let word = suite.to_string();
        let found = self.processors.iter().find(|one| one.name == name && one.proposal == word);
        found.map(MeasuredCost::cost)
    }
}

/// A core or card that has passed its known-answer tests, with the cost that was saved for it, or is measured now.
///
/// # Errors
/// If it does not answer, computes wrongly, or lacks the suite.
pub fn set_up(
    mut processor: Box<dyn Processor>,
    kind: Kind,
    suite: Suite,
    costs: &Costs,
    clock: Clock,
) -> miette::Result<ProcessorSetup> {
    crate::test_known_answers(&mut *processor, clock)?;
    let measured = costs
        .find(processor.name(), suite)
        .or_else(|| calibrate_within(&mut *processor, suite, clock, CALIBRATION).map(|found| found.cost));
    let cost = measured
        .ok_or_else(|| miette!("{} does not respond, or does not support {suite}", processor.name()))?;
    let queue = processor.capabilities().queue.min(CORE_QUEUE);
    Ok(ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue })
}

/// A core with the library `backend`. Alone it has nothing to choose, and so its cost need not be known.
///
/// # Errors
/// If there is no such library.
#[cfg(feature = "libraries")]
pub fn core(backend: Backend) -> miette::Result<ProcessorSetup> {
    let processor = backend.open()?;
    let queue = processor.capabilities().queue.min(CORE_QUEUE);
    let (kind, cost, beta) = (Kind::Cpu, Cost::default(), Duration::ZERO);
    Ok(ProcessorSetup { processor, kind, cost, alpha: 1.0, beta, queue })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> miette::Result<Costs> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Costs::load(file.path())
    }

    const OLD: &str = r#"{"schema": 1, "processors": [{"name": "ipsec-mb", "proposal": "aes128gcm16",
        "init_s": 2e-8, "block_s": 1e-9, "residual_s": 0, "r_squared": 1, "points": [[64, 3e-8]]}]}"#;

    #[test]
    fn costs_of_schema_1_are_read_as_the_papers() {
        let costs = load(OLD).unwrap();
        let expected =
            Cost { init: Duration::from_nanos(20), block: Duration::from_nanos(1), ..Cost::default() };
        assert_eq!(costs.processors[0].cost(), expected);
        assert_eq!(costs.processors[0].rate(64, 8), None);
    }

    #[test]
    fn saved_costs_are_read_back() {
        let mut costs = Costs { schema: SCHEMA, ..load(OLD).unwrap() };
        let one = &mut costs.processors[0];
        (one.submit_s, one.wake_s, one.packet_s, one.lanes) = (1e-6, 2e-6, 3e-9, 16);
        one.batches =
            vec![MeasuredBatch { size: 64, batch: 8, time_s: 4e-6, predicted_s: 5e-6, response_s: 6e-6 }];
        let read = load(&serde_json::to_string(&costs).unwrap()).unwrap();
        assert_eq!(read.processors[0].cost(), costs.processors[0].cost());
        assert_eq!(read.processors[0].cost().lanes, 16);
        assert_eq!(read.processors[0].rate(64, 8), Some(2e6));
    }

    #[test]
    fn costs_of_an_unknown_schema_are_refused() {
        let error = load(&OLD.replace("\"schema\": 1", "\"schema\": 3")).unwrap_err();
        assert!(error.to_string().contains("expected 1 or 2"), "{error}");
        assert!(error.help().is_some());
    }
}
