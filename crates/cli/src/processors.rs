//! The processors a command uses, and what the scheduler is told of them.

use std::path::Path;

use forebay_crypto::{Processor, Suite};
use forebay_engine::{Calibration, Clock, Lane, ProcessorSetup, calibrate};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use miette::{IntoDiagnostic, WrapErr, miette};
use serde::{Deserialize, Serialize};

use crate::backend::Backend;

/// Jobs that may wait at a core.
const CORE_QUEUE: usize = 256;

/// Measured costs, as `forebay bench processors --save` writes them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Version of the layout.
    pub schema: u32,
    /// One entry for each processor and suite.
    pub processors: Vec<MeasuredCost>,
}

/// The cost of one suite on one processor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Median distance of the measurements from the line, in seconds.
    pub residual_s: f64,
    /// Share of the variation that the line explains.
    pub r_squared: f64,
    /// Packet length in bytes and median time in seconds.
    pub points: Vec<(u32, f64)>,
}

impl MeasuredCost {
    /// The figures of a calibration.
    pub fn new(name: &str, suite: Suite, calibration: &Calibration) -> MeasuredCost {
        MeasuredCost {
            name: name.to_owned(),
            proposal: suite.to_string(),
            init_s: calibration.cost.init.as_secs(),
            block_s: calibration.cost.block.as_secs(),
            residual_s: calibration.residual.as_secs(),
            r_squared: calibration.r_squared,
            points: vec![],
        }
    }

    /// The cost for the scheduler.
    pub fn cost(&self) -> Cost {
        Cost {
            init: Duration::from_secs(self.init_s),
            block: Duration::from_secs(self.block_s),
            ..Cost::default()
        }
    }
}

impl Costs {
    /// Reads a file that `--save` wrote.
    pub fn load(path: &Path) -> miette::Result<Costs> {
        let name = path.display();
        let text = std::fs::read_to_string(path).into_diagnostic().wrap_err_with(|| format!("{name}"))?;
        let costs: Costs = serde_json::from_str(&text).map_err(|error| {
            miette!(
                help = "write it anew by `forebay bench processors --save FILE`",
                "{name}, line {}: {error}",
                error.line()
            )
        })?;
        if costs.schema != 1 {
            return Err(miette!("{name}: layout {}, expected 1", costs.schema));
        }
        Ok(costs)
    }

    fn find(&self, name: &str, suite: Suite) -> Option<Cost> {
        let word = suite.to_string();
        let found = self.processors.iter().find(|one| one.name == name && one.proposal == word);
        found.map(MeasuredCost::cost)
    }
}

/// A core or card with the cost that was saved for it, or is measured now.
pub fn set_up(
    mut processor: Box<dyn Processor>,
    kind: Kind,
    suite: Suite,
    costs: &Costs,
    clock: Clock,
) -> miette::Result<ProcessorSetup> {
    let measured = costs
        .find(processor.name(), suite)
        .or_else(|| calibrate(&mut *processor, suite, clock).map(|calibration| calibration.cost));
    let cost = measured.ok_or_else(|| miette!("{} does not answer, or lacks {suite}", processor.name()))?;
    let queue = processor.capabilities().queue.min(CORE_QUEUE);
    Ok(ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue })
}

/// The running core and `cores - 1` lanes on further ones.
pub fn cores(
    cores: usize,
    backend: Backend,
    suite: Suite,
    costs: &Costs,
    clock: Clock,
) -> miette::Result<Vec<ProcessorSetup>> {
    let mut setups = vec![set_up(backend.open()?, Kind::Cpu, suite, costs, clock)?];
    for worker in 1..cores {
        let lane = Lane::new(backend.open()?, format!("worker.{worker}"), clock).into_diagnostic()?;
        setups.push(set_up(Box::new(lane), Kind::Cpu, suite, costs, clock)?);
    }
    Ok(setups)
}
