//! The engine's side: real crypto, cards that deliver when a card would.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_crypto::{Direction, Job, Processor, SaKeys, SecretBytes, SessionId, Suite, forward_processor};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{BURST, Clock, Engine, Limits, ProcessorSetup, RUNNING_CORE, Scheduling, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind};
use forebay_time::{Duration, Time};
use miette::{IntoDiagnostic, miette};

use super::compare::{Figures, Processor as ProcessorFigures, Real};
use super::packets::{self, Plain};
use super::settings::{EngineClock, Settings as Plan};
use crate::Error;
use forebay_processors::{self as processors, Costs};

/// A window that does not fill is waited for this long.
pub const WINDOW_TIMEOUT: Duration = Duration::from_micros(100);
/// Packets between two looks at what the running core is taken to cost.
const LOOK_EVERY: u64 = 512;
/// Packets between two reports of progress, which cost a turn or so.
const REPORT_EVERY: usize = 1_024;
/// Longest time that nothing comes back before the run is given up.
const STUCK: Duration = Duration::from_millis(5_000);
/// A turn longer than this was not the engine's work.
const LONG: Duration = Duration::from_micros(100);

/// An engine's run.
pub struct Emulated {
    /// What it came to.
    pub figures: Figures,
    /// What the running core was taken to cost, on average over the run.
    pub core: Cost,
    /// Lengths of the sealed packets, in the order of arrival.
    pub sealed: Vec<u32>,
}

/// Runs the packets through an engine in real time; `watch` is told how many are through, and says whether to go on.
pub fn run(
    plan: &Plan,
    packets: &[Plain],
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Emulated, Error> {
    let clock = match plan.clock {
        EngineClock::Thread => Clock::of_this_thread(),
        EngineClock::Wall => Clock::start(),
    };
    let late = Arc::new(AtomicU64::new(0));
    let mut engine = engine(plan, clock, &late)?;
    let mut filler: Vec<u8> = (0..packets::LENGTHS.1).map(|at| at as u8).collect();
    let mut books = Books::new(packets.len());
    let (wall, start) = (Clock::start(), clock.now());
    let (mut next, mut before) = (0, start);
    let (mut last, mut reported) = (start, 0);
    while books.released < packets.len() {
        let now = clock.now();
        books.turn(now.since(before));
        before = now;
        let arrived = Time::ZERO + now.since(start);
        // One packet a turn: as in the model, each is followed by what can be decided then.
        if let Some(plain) = packets.get(next).filter(|plain| plain.at <= arrived && engine.room() > 0) {
            let bytes = &mut filler[..plain.len as usize];
            packets::write(bytes, plain);
            let mut packet = engine.buffer();
            packet.fill(bytes);
            if let Err((_, reason)) = engine.admit(Direction::Seal, packet, next as u64) {
                return Err(miette!("the engine rejected packet {next}: {reason:?}").into());
            }
            books.admission_late += arrived.since(plain.at);
            next += 1;
            if next == packets.len() {
                engine.flush();
            }
        }
        engine.poll();
        let taken = books.take(&mut engine, start, packets)?;
        if taken > 0 {
            last = now;
            if books.released >= reported + REPORT_EVERY {
                reported = books.released;
                if watch(reported as u64).is_break() {
                    return Err(Error::Cancelled);
                }
            }
        } else if next > books.released && now.since(last) > STUCK {
            let stuck = miette!("the engine stalled with {} packets in flight", engine.in_flight());
            return Err(stuck.into());
        }
    }
    let wall_s = wall.now().since(Time::ZERO).as_secs();
    Ok(books.finish(plan, &engine, packets, wall_s, Duration(late.load(Ordering::Relaxed))))
}

/// What is noted while packets go through.
struct Books {
    released: usize,
    sealed: Vec<u32>,
    totals: Vec<Duration>,
    end: Time,
    admission_late: Duration,
    turns: u64,
    turn_max: Duration,
    long_turns: Duration,
    /// Sums of the running core's costs in picoseconds, and how many.
    costs: (u128, u128, u64),
    next_look: u64,
}

impl Books {
    fn new(packets: usize) -> Books {
        Books {
            released: 0,
            sealed: vec![0; packets],
            totals: Vec::with_capacity(packets),
            end: Time::ZERO,
            admission_late: Duration::ZERO,
            turns: 0,
            turn_max: Duration::ZERO,
            long_turns: Duration::ZERO,
            costs: (0, 0, 0),
            next_look: 0,
        }
    }

    fn turn(&mut self, took: Duration) {
        self.turns += 1;
        self.turn_max = self.turn_max.max(took);
        if took > LONG {
            self.long_turns += took;
        }
    }

    /// Takes what is through; how many packets that is.
    fn take(&mut self, engine: &mut Engine, start: Time, packets: &[Plain]) -> miette::Result<usize> {
        let outputs: Vec<_> = engine.outputs().collect();
        let taken = outputs.len();
        for output in outputs {
            if let Err(reason) = output.result {
                return Err(miette!("packet {} was dropped: {reason:?}", output.tag));
            }
            let at = Time::ZERO + output.released.since(start);
            self.sealed[output.tag as usize] = output.packet.len() as u32;
            self.totals.push(at.since(packets[output.tag as usize].at));
            self.end = self.end.max(at);
            engine.recycle(output.packet);
        }
        self.released += taken;
        if self.released as u64 >= self.next_look {
            self.next_look += LOOK_EVERY;
            let cost = engine.cost(RUNNING_CORE, SessionId(0)).unwrap_or_default();
            self.costs.0 += u128::from(cost.init.0);
            self.costs.1 += u128::from(cost.block.0);
            self.costs.2 += 1;
        }
        Ok(taken)
    }

    fn finish(
        mut self,
        plan: &Plan,
        engine: &Engine,
        packets: &[Plain],
        wall_s: f64,
        late: Duration,
    ) -> Emulated {
        let elapsed_s = self.end.since(packets[0].at).as_secs();
        let (init, block, looks) = self.costs;
        let mean = |sum: u128| Duration((sum / u128::from(looks.max(1))) as u64);
        let core = Cost { init: mean(init), block: mean(block), ..Cost::default() };
        let card = CardConfig::paper_230_mbit();
        let (mut jobs, mut processing) = (0, 0.0);
        let mut processors = Vec::new();
        for (index, one) in engine.processors().enumerate() {
            jobs += one.jobs;
            processing += one.processing.as_secs();
            let cost = if index == RUNNING_CORE { (core.init, core.block) } else { (card.init, card.block) };
            processors.push(ProcessorFigures {
                name: if index == RUNNING_CORE { "core".to_owned() } else { one.name.clone() },
                packets: one.packets,
                load: one.busy.as_secs() / elapsed_s,
                cost_s: (cost.0.as_secs(), cost.1.as_secs()),
            });
        }
        let count = packets.len() as f64;
        let by_cards: u64 = processors[1..].iter().map(|one| one.packets).sum();
        let bytes: u64 = self.sealed.iter().map(|&len| u64::from(len)).sum();
        let total = self.totals.iter().map(|total| total.as_secs()).sum::<f64>();
        let real = Real {
            admission_late_s: self.admission_late.as_secs() / count,
            answer_late_s: late.as_secs() / by_cards.max(1) as f64,
            turn_mean_s: elapsed_s / self.turns.max(1) as f64,
            turn_max_s: self.turn_max.as_secs(),
            long_turns_s: self.long_turns.as_secs(),
            wall_ratio: if plan.clock == EngineClock::Thread { wall_s / elapsed_s } else { 1.0 },
            audits: engine.stats().audits,
        };
        let figures = Figures {
            elapsed_s,
            packets: self.released as u64,
            throughput_bps: 8.0 * bytes as f64 / elapsed_s,
            processors,
            processing_mean_s: processing / count,
            total_mean_s: total / count,
            total_s: percentiles(&mut self.totals),
            packets_per_job: count / jobs.max(1) as f64,
            real: Some(real),
        };
        Emulated { figures, core, sealed: self.sealed }
    }
}

/// The values of nearest rank, 1 % to 99 %.
pub fn percentiles(values: &mut [Duration]) -> Vec<f64> {
    values.sort_unstable();
    let rank = |percent: usize| (percent * values.len()).div_ceil(100).max(1) - 1;
    (1..100).filter_map(|percent| values.get(rank(percent))).map(|value| value.as_secs()).collect()
}

/// A running core and cards on one bus.
fn engine(plan: &Plan, clock: Clock, late: &Arc<AtomicU64>) -> Result<Engine, Error> {
    let suite: Suite = plan.proposal.parse()?;
    let (sad, keys) = sas(plan.sas, suite)?;
    let mut core = processors::set_up(plan.backend.open()?, Kind::Cpu, suite, &Costs::default(), clock)?;
    core.alpha = plan.alpha;
    core.queue = plan.queue;
    let mut setups = vec![core];
    let bus = Bus::new(BusConfig::pci_66());
    for number in 0..plan.cards {
        let config = CardConfig {
            name: format!("card.{number}"),
            queue: plan.queue,
            write_buffer: plan.write_buffer,
            prefetch: plan.prefetch,
            ..CardConfig::paper_230_mbit()
        };
        let cost = Cost { init: config.init, block: config.block, ..Cost::default() };
        let card = Card::new(config, &bus, Box::new(AwsLc::new()));
        let processor = Box::new(Watched { card, late: late.clone() });
        let (kind, queue) = (Kind::Accelerator, plan.queue);
        setups.push(ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue });
    }
    let timeout = (plan.window > 1).then_some(WINDOW_TIMEOUT);
    let scheduling = Scheduling { window: plan.window, batch: 1, timeout, ..Scheduling::default() };
    // Room for all that may wait, so that packets queue where the model has them queue.
    let in_flight = ((plan.cards + 1) * (plan.queue + 2) * plan.window + BURST).clamp(1_024, 1 << 16);
    let limits = Limits { in_flight, hold: STUCK, ..Limits::default() };
    let settings = Settings { scheduling, limits, ..Settings::default() };
    Ok(Engine::new(sad, &keys, setups, settings, clock).into_diagnostic()?)
}

/// Outbound SAs, chosen by the second octet of the destination.
fn sas(count: usize, suite: Suite) -> miette::Result<(Ipsec, Vec<SaKeys>)> {
    let (mut sad, mut all) = (Ipsec::default(), Vec::new());
    let filler = |n: usize, from: usize| SecretBytes::new((0..n).map(|at| (at + from) as u8).collect());
    for sa in 0..count {
        let selector = |second: usize| format!("10.{second}.0.0/16").parse().into_diagnostic();
        let spi = Spi::new(0x1000 + sa as u32).unwrap_or(Spi::MIN);
        let (near, far): ([u8; 4], [u8; 4]) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let config = SaConfig {
            local_ts: vec![selector(250)?],
            remote_ts: vec![selector(sa)?],
            ..SaConfig::new("validate-model", spi, suite, near.into(), far.into())
        };
        sad.add_outbound(config, IvRange::for_throwaway_key()).into_diagnostic()?;
        let key = filler(suite.cipher_key_len() + suite.salt_len(), sa);
        all.push(SaKeys::new(suite, &key, &filler(suite.integrity_key_len(), sa)).into_diagnostic()?);
    }
    Ok((sad, all))
}

/// A card that notes how long its answers wait to be taken.
struct Watched {
    card: Card,
    /// Sum over packets, in picoseconds.
    late: Arc<AtomicU64>,
}

impl Processor for Watched {
    forward_processor!(card: name, capabilities, open_session, close_session, submit, next_due);

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        let mut late = 0;
        self.card.collect(now, |at, job| {
            late += now.since(at).0;
            done.push(job);
        });
        self.late.fetch_add(late, Ordering::Relaxed);
    }
}
