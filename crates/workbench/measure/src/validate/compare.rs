//! What both came to, the differences, and what they may be.

use serde::Serialize;

use super::settings::{EngineClock, Settings};

/// Throughput and packets per processor may differ by this share.
pub const THROUGHPUT: f64 = 0.03;
/// See [`THROUGHPUT`]. A processor that has fewer than [`FEW`] of the packets is judged by its share of all.
pub const PACKETS: f64 = 0.03;
/// Share of all packets below which a processor's own count says little: some hundred decisions.
pub const FEW: f64 = 0.01;
/// The mean processing latency may differ by this share.
pub const PROCESSING: f64 = 0.10;

/// All runs.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Version of this document's layout.
    pub schema: u32,
    /// Version of Forebay.
    pub version: &'static str,
    /// Processor model and number of cores.
    pub host: String,
    /// Packets at each rate.
    pub packets: u64,
    /// What the engine took for time.
    pub clock: &'static str,
    /// Scheduler and cards, in a line.
    pub setup: String,
    /// Whether all differences are within their limits.
    pub holds: bool,
    /// One for each rate.
    pub runs: Vec<Run>,
}

/// A rate, both sides.
#[derive(Debug)]
pub struct Pair {
    /// As it was given.
    pub rate: String,
    /// The engine.
    pub engine: Figures,
    /// The simulator.
    pub simulator: Figures,
}

/// A rate, compared.
#[derive(Debug, Serialize)]
pub struct Run {
    /// As it was given.
    pub rate: String,
    /// Whether all differences are within their limits.
    pub holds: bool,
    /// Figures that have a limit, and others.
    pub lines: Vec<Line>,
    /// The engine.
    pub engine: Figures,
    /// The simulator.
    pub simulator: Figures,
}

/// One figure of both.
#[derive(Debug, Serialize)]
pub struct Line {
    /// What it is.
    pub figure: String,
    /// s, bit/s, packets, ...
    pub unit: &'static str,
    /// Of the engine.
    pub engine: f64,
    /// Of the simulator.
    pub simulator: f64,
    /// engine / simulator - 1.
    pub difference: f64,
    /// The most that the difference may be.
    pub limit: Option<f64>,
    /// Whether it is that at most.
    pub holds: bool,
}

/// What one side came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// From the first arrival to the last completion, in seconds.
    pub elapsed_s: f64,
    /// Packets completed.
    pub packets: u64,
    /// Sealed bits a second.
    pub throughput_bps: f64,
    /// The running core first.
    pub processors: Vec<Processor>,
    /// Mean from the processor's choice to completion.
    pub processing_mean_s: f64,
    /// Mean from arrival to the release in the order of the SA.
    pub total_mean_s: f64,
    /// The same, 1 % to 99 % of the packets.
    pub total_s: Vec<f64>,
    /// Packets by jobs.
    pub packets_per_job: f64,
    /// What only the engine has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real: Option<Real>,
}

/// One processor.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// Packets it did.
    pub packets: u64,
    /// Share of the time it worked.
    pub load: f64,
    /// t_init and t_block as the scheduler took them to be, in seconds.
    pub cost_s: (f64, f64),
}

/// What makes an engine another than its model: measured, to say why they differ.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Real {
    /// Mean from a packet's arrival to its admission: the loop was elsewhere.
    pub admission_late_s: f64,
    /// Mean from a card's delivery of a packet to the loop's taking it.
    pub answer_late_s: f64,
    /// Mean and longest time of a turn of the loop.
    pub turn_mean_s: f64,
    /// See above.
    pub turn_max_s: f64,
    /// Sum of the times of turns longer than a tenth of a millisecond.
    pub long_turns_s: f64,
    /// Time on the wall for each second of the engine's clock: above 1 where the thread had to wait.
    pub wall_ratio: f64,
    /// Results of cards that the running core did again to check them.
    pub audits: u64,
}

impl Comparison {
    /// Compares all runs.
    pub fn new(settings: &Settings, host: &str, pairs: Vec<Pair>) -> Comparison {
        let runs: Vec<Run> = pairs.into_iter().map(Run::new).collect();
        let clock = match settings.clock {
            EngineClock::Thread => "CPU time of the engine's thread",
            EngineClock::Wall => "wall clock",
        };
        Comparison {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            host: host.to_owned(),
            packets: settings.packets,
            clock,
            setup: format!(
                "{}, running core with alpha {}, {} cards of 230 Mbit/s (write buffer {}, prefetch {}), bus \
                 66 MHz, queue {}, window {}, {} SAs",
                settings.proposal,
                settings.alpha,
                settings.cards,
                settings.write_buffer,
                settings.prefetch,
                settings.queue,
                settings.window,
                settings.sas
            ),
            holds: runs.iter().all(|run| run.holds),
            runs,
        }
    }
}

impl Run {
    fn new(pair: Pair) -> Run {
        let Pair { rate, engine, simulator } = pair;
        let line = |figure: &str, unit, of: fn(&Figures) -> f64, limit| {
            Line::new(figure.to_owned(), unit, (of(&engine), of(&simulator)), limit)
        };
        let mut lines = vec![line("throughput", "bit/s", |f| f.throughput_bps, Some(THROUGHPUT))];
        for (one, two) in engine.processors.iter().zip(&simulator.processors) {
            let counts = (one.packets as f64, two.packets as f64);
            let all = simulator.packets as f64;
            let mut line = Line::new(format!("packets, {}", one.name), "packets", counts, Some(PACKETS));
            if counts.1 < FEW * all {
                line.holds = (counts.0 - counts.1).abs() <= PACKETS * all;
            }
            lines.push(line);
        }
        lines.push(line("processing latency, mean", "s", |f| f.processing_mean_s, Some(PROCESSING)));
        lines.push(line("total latency, mean", "s", |f| f.total_mean_s, None));
        lines.push(line("packets per job", "", |f| f.packets_per_job, None));
        for (one, two) in engine.processors.iter().zip(&simulator.processors) {
            lines.push(Line::new(format!("load, {}", one.name), "share", (one.load, two.load), None));
        }
        let holds = lines.iter().all(|line| line.holds) && engine.packets == simulator.packets;
        Run { rate, holds, lines, engine, simulator }
    }
}

impl Line {
    pub(super) fn new(figure: String, unit: &'static str, values: (f64, f64), limit: Option<f64>) -> Line {
        let (engine, simulator) = values;
        let difference = if engine == simulator { 0.0 } else { engine / simulator - 1.0 };
        let holds = limit.is_none_or(|limit| difference.abs() <= limit);
        Line { figure, unit, engine, simulator, difference, limit, holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(throughput_bps: f64, core: u64, card: u64, processing_mean_s: f64) -> Figures {
        let processor =
            |name: &str, packets| Processor { name: name.to_owned(), packets, ..Processor::default() };
        let processors = vec![processor("core", core), processor("card", card)];
        Figures { throughput_bps, packets: core + card, processors, processing_mean_s, ..Figures::default() }
    }

    fn holds(engine: Figures, simulator: Figures) -> bool {
        Run::new(Pair { rate: String::new(), engine, simulator }).holds
    }

    #[test]
    fn each_figure_has_its_limit() {
        let model = || figures(100.0, 40, 60, 1.0);
        assert!(holds(figures(102.9, 41, 59, 1.09), model()));
        assert!(!holds(figures(103.1, 40, 60, 1.0), model()));
        assert!(!holds(figures(96.9, 40, 60, 1.0), model()));
        assert!(!holds(figures(100.0, 42, 58, 1.0), model()));
        assert!(!holds(figures(100.0, 40, 60, 1.11), model()));
        assert!(!holds(figures(100.0, 40, 60, f64::NAN), model()));
        assert!(!holds(figures(100.0, 40, 61, 1.0), model()), "a packet too many");
    }

    #[test]
    fn a_processor_with_hardly_a_packet_is_judged_by_its_share() {
        assert!(holds(figures(1.0, 2, 998, 1.0), figures(1.0, 1, 999, 1.0)));
        assert!(!holds(figures(1.0, 40, 960, 1.0), figures(1.0, 1, 999, 1.0)));
    }
}
