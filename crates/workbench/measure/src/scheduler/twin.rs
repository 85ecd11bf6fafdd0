//! The twin: the same processors in the simulator, with the costs that the engine has learnt of them.

use std::fmt::Write as _;
use std::path::Path;

use forebay_crypto::{SessionId, Suite};
use forebay_engine::RUNNING_CORE;
use forebay_links::output;
use forebay_loadgen::latency::Arrivals;
use forebay_loadgen::rig::{Rig, WINDOW_TIMEOUT};
use forebay_scheduler::{Cost, Kind};
use forebay_sim::{Options, Scenario};
use forebay_time::{Duration, Time};
use miette::{IntoDiagnostic, WrapErr, miette};
use serde::Serialize;

use crate::Error;

/// Packets of each run.
const PACKETS: usize = 20_000;
/// Most jobs that are placed together: the engine's default.
const BATCH: usize = 64;

/// What the simulator makes of a configuration.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Twin {
    /// Packets released per second where all are there at once.
    pub packets_per_s: f64,
    /// Mean time from arrival to release, of packets at the rate that was offered the engine at half of its throughput.
    pub latency_50_mean_s: f64,
    /// And at nine tenths.
    pub latency_90_mean_s: f64,
}

/// What an engine has learnt of its processors.
#[derive(Debug)]
pub struct Learnt {
    moving: Duration,
    processors: Vec<LearntProcessor>,
}

#[derive(Debug)]
struct LearntProcessor {
    name: String,
    kind: Kind,
    cost: Cost,
    /// What the running core spends on each packet for it, and on each block.
    feed: (Duration, Duration),
    queue: usize,
}

impl Learnt {
    /// What the engine of `rig` knows now; kinds and queues are those that it was made with.
    pub fn of(rig: &Rig<'_>, setups: &[(Kind, usize)]) -> Learnt {
        let engine = rig.engine();
        let processors =
            engine.processors().zip(setups).enumerate().map(|(index, (stats, &(kind, queue)))| {
                let feed = engine.feed(index);
                let hand_over = feed.submit.0 as f64 * stats.submissions as f64 / stats.packets.max(1) as f64;
                LearntProcessor {
                    name: stats.name.clone(),
                    kind,
                    cost: engine.cost(index, SessionId(0)).unwrap_or_default(),
                    feed: (feed.init + feed.packet + Duration(hand_over as u64), feed.block),
                    queue,
                }
            });
        Learnt { moving: engine.moving(), processors: processors.collect() }
    }

    /// Runs the twin: `plain` are lengths of packets, with their SAs, that come again and again.
    ///
    /// # Errors
    /// If files cannot be written, or the simulator refuses them.
    pub fn twin(
        &self,
        plain: &[(usize, u8)],
        suite: Suite,
        window: usize,
        offered: [f64; 2],
    ) -> Result<Twin, Error> {
        let at_once = self.run(plain, suite, window, None)?;
        let [half, most] = offered.map(|rate| self.run(plain, suite, window, Some(rate)));
        Ok(Twin {
            packets_per_s: at_once.packets_per_s,
            latency_50_mean_s: half?.latency_mean_s,
            latency_90_mean_s: most?.latency_mean_s,
        })
    }

    fn run(
        &self,
        plain: &[(usize, u8)],
        suite: Suite,
        window: usize,
        rate: Option<f64>,
    ) -> Result<Simulated, Error> {
        let folder = tempfile::tempdir().into_diagnostic().wrap_err("cannot create a temporary directory")?;
        self.write(folder.path(), plain, suite, window, rate).into_diagnostic()?;
        let scenario = Scenario::load(&folder.path().join("scenario.toml"), &[])?;
        let outcome = forebay_sim::run(&scenario, Options::default())
            .map_err(|error| miette!("the simulator: {error}"))?;
        let core = outcome.figures.running_core.ok_or_else(|| miette!("the twin has no running core"))?;
        Ok(Simulated {
            packets_per_s: outcome.figures.packets as f64 / outcome.figures.elapsed_s,
            latency_mean_s: core.release_latency.mean_s,
        })
    }

    fn write(
        &self,
        folder: &Path,
        plain: &[(usize, u8)],
        suite: Suite,
        window: usize,
        rate: Option<f64>,
    ) -> std::io::Result<()> {
        let mut csv = "size,time,sa\n".to_owned();
        let length = Duration::from_secs(PACKETS as f64 * 2.0 / rate.unwrap_or(1.0));
        let mut arrivals = rate.map(|rate| Arrivals::new(rate, length, 1).begin(Time::ZERO));
        for &(plain, sa) in plain.iter().cycle().take(PACKETS) {
            let due = arrivals.as_mut().and_then(|arrivals| arrivals.due(Time::MAX)).unwrap_or(Time::ZERO);
            let (s, ps) = (due.0 / 1_000_000_000_000, due.0 % 1_000_000_000_000);
            let _ = writeln!(csv, "{},{s}.{ps:012},{sa}", sealed(plain, suite));
        }
        output::write(folder.join("packets.csv"), csv)?;
        output::write(folder.join("scenario.toml"), self.scenario(window))
    }

    fn scenario(&self, window: usize) -> String {
        let ps = |time: Duration| format!("\"{} ps\"", time.0);
        let mut text = format!(
            "model = \"host\"\n\n[traffic]\nsource = \"file\"\npath = \"packets.csv\"\narrivals = \"stamps\"\noverhead = 0\n\n\
             [scheduler]\npoll = true\nburst = {BATCH}\nwindow = {window}\n"
        );
        if window > 1 {
            let _ = writeln!(text, "timeout = {}", ps(WINDOW_TIMEOUT));
        }
        for (index, one) in self.processors.iter().enumerate() {
            let kind = if one.kind == Kind::Cpu { "cpu" } else { "accelerator" };
            let cost = one.cost;
            let _ = write!(
                text,
                "\n[[processor]]\nname = \"p{index}\" # {}\nkind = \"{kind}\"\ninit = {}\nblock = {}\npacket = {}\n\
                 submit = {}\nlanes = {}\nqueue = {}\n",
                one.name,
                ps(cost.init),
                ps(cost.block),
                ps(cost.packet),
                ps(cost.submit),
                cost.lanes.max(1),
                one.queue,
            );
            let _ = if index == RUNNING_CORE {
                writeln!(text, "move = {}", ps(self.moving))
            } else {
                let (feed, block) = one.feed;
                writeln!(text, "wake = {}\nfeed = {}\nfeed_block = {}", ps(cost.wake), ps(feed), ps(block))
            };
        }
        text
    }
}

struct Simulated {
    packets_per_s: f64,
    latency_mean_s: f64,
}

/// Length of an ESP packet in tunnel mode over IPv4 (RFC 4303).
fn sealed(plain: usize, suite: Suite) -> usize {
    const OUTER: usize = 20 + 8;
    OUTER + suite.iv_len() + (plain + 2).next_multiple_of(suite.align().max(4)) + suite.icv_len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_esp() {
        let gcm: Suite = "aes128gcm16".parse().unwrap();
        assert_eq!(sealed(64, gcm), 28 + 8 + 68 + 16);
        let cbc: Suite = "aes128-sha256".parse().unwrap();
        assert_eq!(sealed(64, cbc), 28 + 16 + 80 + 16);
    }

    #[test]
    fn one_core_is_as_fast_as_moving_and_crypto_together() {
        let (init, block, moving) = (Duration(50_000), Duration(1_000), Duration(100_000));
        let core = LearntProcessor {
            name: "core".to_owned(),
            kind: Kind::Cpu,
            cost: Cost { init, block, ..Cost::default() },
            feed: (Duration::ZERO, Duration::ZERO),
            queue: 64,
        };
        let learnt = Learnt { moving, processors: vec![core] };
        let suite: Suite = "aes128gcm16".parse().unwrap();
        let twin = learnt.twin(&[(64, 0)], suite, 1, [1e6, 5e6]).unwrap();
        // 120 bytes are eight blocks.
        let each = 158e-9;
        assert!((twin.packets_per_s * each - 1.0).abs() < 1e-3, "{twin:?}");
        assert!(
            twin.latency_50_mean_s >= each && twin.latency_50_mean_s < twin.latency_90_mean_s,
            "{twin:?}"
        );
    }
}
