//! The engine on several cores beside the simulator's machine of equal cores, on the same packets.
//!
//! ```text
//!               +--> engine: one on each core, one SA, one input, a clock that runs --+
//! drawn packets-+                                                                     +--> compared
//!               +--> simulator: [cores] with the times of one core's steps -----------+
//! ```
//!
//! The times are measured in the same round: to take and to complete, by cores that do it in turn, so that each finds what they
//! share in another's cache but waits for nobody; of the crypto, by all cores at once. Who then waits for whom is what the model
//! has to foresee. It knows nothing of moments without a CPU, nor of what it costs that two cores write to one place at once.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path as FilePath;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use forebay_crypto::{Direction, Job, SessionId, Suite};
use forebay_engine::{BURST, Clock, Turnstile};
use forebay_links::output;
use forebay_loadgen::median::median;
use forebay_processors::Backend;
use forebay_sim::{Options, Scenario, Stream};
use forebay_time::Duration;
use miette::{IntoDiagnostic, WrapErr, miette};

use super::compare::{Comparison, Figures, Line, Run};
use super::emulated::percentiles;
use crate::Error;
use crate::esp::{Path, paths, plain_packet, throwaway_keys};

/// Throughput may differ by this share.
const THROUGHPUT: f64 = 0.05;
/// The mean latency may differ by this share, where the load leaves one.
const LATENCY: f64 = 0.10;
/// Rounds, of whose figures the medians count; odd.
const ROUNDS: usize = 15;
/// Bursts by which the time of a step is measured.
const BURSTS: usize = 400;
/// Offered traffic as a share of what the model carries, by name; the last one is more than that.
const LOADS: [(&str, f64); 3] = [("50 % load", 0.5), ("80 % load", 0.8), ("saturated", 1000.0)];

/// What is compared.
#[derive(Clone, Debug)]
pub struct CoresSettings {
    /// Cores, a thread each.
    pub cores: usize,
    /// Packets of a run.
    pub packets: u64,
    /// Length of the cleartext packets, in bytes.
    pub size: usize,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Cipher suite, in swanctl notation.
    pub proposal: String,
    /// Crypto library of the cores.
    pub backend: Backend,
}

impl CoresSettings {
    fn check(&self) -> Result<(), Error> {
        let limits = [
            ("cores", self.cores as u64, 1, 64),
            ("packets", self.packets, 1_000, 1_000_000),
            ("size", self.size as u64, 28, 9_000),
        ];
        for (name, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(Error::range(name, value, format_args!("{least} to {most}")));
            }
        }
        Ok(())
    }
}

/// Runs engine and simulator at each load and compares them. `host` is the machine in words. The scenarios of the last round are
/// kept in `dir`, if it is given. `watch` is called with the rounds that are done and rounds in all, and returns whether to go on.
///
/// # Errors
/// If a setting is out of range, the engine or the simulator fails, `dir` cannot be written, or `watch` stops the work.
pub fn cores(
    settings: &CoresSettings,
    host: &str,
    dir: Option<&FilePath>,
    mut watch: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Comparison, Error> {
    settings.check()?;
    let suite: Suite = settings.proposal.parse()?;
    let mut bench = Bench::new(settings, suite)?;
    let mut sides: [Vec<[Figures; 2]>; LOADS.len()] = Default::default();
    for round in 0..ROUNDS {
        if watch(round as u64, ROUNDS as u64).is_break() {
            return Err(Error::Cancelled);
        }
        let times = bench.times()?;
        for (number, ((_, load), sides)) in LOADS.iter().zip(&mut sides).enumerate() {
            let rate = load * times.carries(settings.cores);
            let text = times.scenario(settings, round, rate);
            let scenario = Scenario::parse(&text, "the cores", &[], FilePath::new("."))?;
            if let Some(dir) = dir {
                keep(&dir.join(format!("load-{}", number + 1)), &text)?;
            }
            let arrivals = Stream::new(&scenario.traffic, scenario.seed).map(|one| one.at.0).collect();
            sides.push([bench.run(arrivals)?, simulated(&scenario, settings.size)?]);
        }
    }
    let runs: Vec<Run> =
        LOADS.iter().zip(sides).map(|((name, load), sides)| compared(name, *load, sides)).collect();
    Ok(Comparison {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        host: host.to_owned(),
        packets: settings.packets,
        clock: "wall clock",
        setup: format!(
            "{}, {} bytes, {} equal cores, one SA in order, bursts of {BURST}; medians of {ROUNDS} rounds",
            settings.proposal, settings.size, settings.cores
        ),
        holds: runs.iter().all(|run| run.holds),
        runs,
    })
}

fn keep(dir: &FilePath, text: &str) -> Result<(), Error> {
    let written = fs::create_dir_all(dir).and_then(|()| output::write(dir.join("scenario.toml"), text));
    Ok(written.into_diagnostic().wrap_err_with(|| format!("cannot write {}", dir.display()))?)
}

/// The medians of both over the rounds.
fn compared(name: &str, load: f64, sides: Vec<[Figures; 2]>) -> Run {
    let (engine, simulator): (Vec<Figures>, Vec<Figures>) =
        sides.into_iter().map(|[one, two]| (one, two)).unzip();
    let [engine, simulator] = [engine, simulator].map(middle);
    let latency = (load < 1.0).then_some(LATENCY);
    let line = |figure: &str, unit, of: fn(&Figures) -> f64, limit| {
        Line::new(figure.to_owned(), unit, (of(&engine), of(&simulator)), limit)
    };
    let lines = vec![
        line("throughput", "bit/s", |f| f.throughput_bps, Some(THROUGHPUT)),
        line("total latency, mean", "s", |f| f.total_mean_s, latency),
        line("total latency, median", "s", |f| f.total_s.get(49).copied().unwrap_or(f64::NAN), None),
        line("processing latency, mean", "s", |f| f.processing_mean_s, None),
        line("packets per burst", "", |f| f.packets_per_job, None),
    ];
    let holds = lines.iter().all(|line| line.holds) && engine.packets == simulator.packets;
    Run { rate: name.to_owned(), holds, lines, engine, simulator }
}

fn middle(all: Vec<Figures>) -> Figures {
    let of = |figure: &dyn Fn(&Figures) -> f64| median(all.iter().map(figure).collect());
    let quantiles = all.iter().map(|one| one.total_s.len()).min().unwrap_or(0);
    Figures {
        elapsed_s: of(&|f| f.elapsed_s),
        packets: all.first().map_or(0, |one| one.packets),
        throughput_bps: of(&|f| f.throughput_bps),
        processors: Vec::new(),
        processing_mean_s: of(&|f| f.processing_mean_s),
        total_mean_s: of(&|f| f.total_mean_s),
        total_s: (0..quantiles).map(|at| of(&|f| f.total_s[at])).collect(),
        packets_per_job: of(&|f| f.packets_per_job),
        real: None,
    }
}

fn simulated(scenario: &Scenario, size: usize) -> miette::Result<Figures> {
    let options = Options { columns: true, ..Options::default() };
    let outcome = forebay_sim::run(scenario, options).map_err(|error| miette!("the simulator: {error}"))?;
    let columns = outcome.columns.unwrap_or_default();
    let spans = |from: &[u64]| -> Vec<Duration> {
        from.iter().zip(&columns.completed).map(|(from, until)| Duration(until - from)).collect()
    };
    Ok(figures(
        size,
        outcome.figures.elapsed_s,
        spans(&columns.arrived),
        spans(&columns.chosen),
        outcome.figures.packets_per_job,
    ))
}

fn figures(
    size: usize,
    elapsed_s: f64,
    mut total: Vec<Duration>,
    processing: Vec<Duration>,
    per_job: f64,
) -> Figures {
    let mean = |all: &[Duration]| all.iter().map(|one| one.as_secs()).sum::<f64>() / all.len().max(1) as f64;
    Figures {
        elapsed_s,
        packets: total.len() as u64,
        throughput_bps: (total.len() * size * 8) as f64 / elapsed_s,
        processors: Vec::new(),
        processing_mean_s: mean(&processing),
        total_mean_s: mean(&total),
        total_s: percentiles(&mut total),
        packets_per_job: per_job,
        real: None,
    }
}

/// A time of a burst of n packets: `burst` + n x `packet`, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    burst: f64,
    packet: f64,
}

impl Step {
    /// Of the times of one packet and of a full burst.
    fn through(one: f64, full: f64) -> Step {
        let packet = ((full - one) / (BURST - 1) as f64).max(0.0);
        Step { burst: (one - packet).max(0.0), packet }
    }

    fn of_a_burst(self) -> f64 {
        self.burst + BURST as f64 * self.packet
    }
}

/// The steps of one core.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    take: Step,
    crypto: Step,
    complete: Step,
}

impl Times {
    /// Packets a second of so many cores by the formula of docs/simulation.md.
    fn carries(&self, cores: usize) -> f64 {
        let [take, crypto, complete] = [self.take, self.crypto, self.complete].map(Step::of_a_burst);
        BURST as f64 * (cores as f64 / (take + crypto + complete)).min(1.0 / (take + complete))
    }

    fn scenario(&self, settings: &CoresSettings, round: usize, rate: f64) -> String {
        let ps = |seconds: f64| format!("\"{:.0} ps\"", seconds * 1e12);
        format!(
            "# Made by validate-model: the steps of one core.\n\
             model = \"host\"\nseed = {}\n\n[traffic]\nsource = \"fixed\"\nvalue = {}\noverhead = 0\npackets = {}\n\
             packet_rate = {rate:.0}\n\n[cores]\nburst = {BURST}\nshared = true\ntake = {}\ntake_packet = {}\ncomplete = {}\n\
             complete_packet = {}\n\n[[processor]]\nname = \"core\"\nkind = \"cpu\"\ncount = {}\nsubmit = {}\ninit = {}\n\
             block = 0\n",
            settings.seed + round as u64,
            settings.size,
            settings.packets,
            ps(self.take.burst),
            ps(self.take.packet),
            ps(self.complete.burst),
            ps(self.complete.packet),
            settings.cores,
            ps(self.crypto.burst),
            ps(self.crypto.packet),
        )
    }
}

/// Engines that share an SA.
struct Bench {
    size: usize,
    clock: Clock,
    plain: Vec<Vec<u8>>,
    shared: Vec<Path>,
    ciphers: Vec<Cipher>,
}

/// A core's cipher without a path around it.
struct Cipher {
    processor: Box<dyn forebay_crypto::Processor>,
    suite: Suite,
}

impl Bench {
    fn new(settings: &CoresSettings, suite: Suite) -> miette::Result<Bench> {
        let clock = Clock::start();
        let cipher = |_| {
            let mut processor = settings.backend.open()?;
            processor
                .open_session(SessionId(0), &throwaway_keys(suite)?, Direction::Seal)
                .into_diagnostic()?;
            Ok(Cipher { processor, suite })
        };
        Ok(Bench {
            size: settings.size,
            clock,
            plain: (0..BURST).map(|_| plain_packet(settings.size)).collect(),
            shared: paths(settings.cores, settings.backend, suite, settings.size, clock)?,
            ciphers: (0..settings.cores).map(cipher).collect::<miette::Result<_>>()?,
        })
    }

    /// The steps of a core: the mean of the cores. Take and completion are those of cores in turn, which find what they share in
    /// the other's cache and wait for nobody; the crypto is that of all cores at once.
    fn times(&mut self) -> miette::Result<Times> {
        let (clock, plain, cores) = (self.clock, &self.plain, self.shared.len());
        let mut of = [Step::default(); 3];
        let mut steps = [[0.0; 3]; 2];
        for (burst, steps) in [1, BURST].into_iter().zip(&mut steps) {
            let course = Course::new(vec![0; BURSTS * cores * burst], burst);
            let barrier = Barrier::new(cores);
            let all: Vec<miette::Result<[f64; 3]>> = std::thread::scope(|scope| {
                let run = |(place, (path, cipher))| {
                    scope.spawn({
                        let (course, barrier) = (&course, &barrier);
                        move || steps_of(place, cores, course, path, cipher, &plain[..burst], clock, barrier)
                    })
                };
                let threads: Vec<_> =
                    self.shared.iter_mut().zip(&mut self.ciphers).enumerate().map(run).collect();
                threads.into_iter().map(joined).collect()
            });
            for times in all {
                steps.iter_mut().zip(times?).for_each(|(sum, time)| *sum += time / cores as f64);
            }
        }
        let [one, full] = steps;
        of.iter_mut().enumerate().for_each(|(at, step)| *step = Step::through(one[at], full[at]));
        let [take, complete, crypto] = of;
        Ok(Times { take, crypto, complete })
    }

    /// The packets through the engines that share an SA.
    fn run(&mut self, arrivals: Vec<u64>) -> miette::Result<Figures> {
        let course = Course::new(arrivals, BURST);
        let (clock, plain) = (self.clock, &self.plain);
        let barrier = Barrier::new(self.shared.len());
        let all: Vec<miette::Result<()>> = std::thread::scope(|scope| {
            let run = |path| scope.spawn(|| course.run(path, plain, clock, &barrier));
            let threads: Vec<_> = self.shared.iter_mut().map(run).collect();
            threads.into_iter().map(joined).collect()
        });
        all.into_iter().collect::<miette::Result<()>>()?;
        let times =
            |all: &[AtomicU64]| -> Vec<u64> { all.iter().map(|one| one.load(Ordering::Relaxed)).collect() };
        let (taken, completed) = (times(&course.taken), times(&course.completed));
        let spans = |from: &[u64]| -> Vec<Duration> {
            from.iter().zip(&completed).map(|(from, until)| Duration(until.saturating_sub(*from))).collect()
        };
        let first = course.arrivals.first().copied().unwrap_or(0);
        let elapsed = Duration(completed.iter().max().copied().unwrap_or(0).saturating_sub(first)).as_secs();
        let per_burst = completed.len() as f64 / course.bursts.load(Ordering::Relaxed).max(1) as f64;
        Ok(figures(self.size, elapsed, spans(&course.arrivals), spans(&taken), per_burst))
    }
}

/// The mean of times without those in which the core did something else: more than three times the median.
fn usual(times: Vec<f64>) -> f64 {
    let most = 3.0 * median(times.clone());
    let kept: Vec<f64> = times.into_iter().filter(|time| *time <= most).collect();
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, miette::Result<T>>) -> miette::Result<T> {
    thread.join().unwrap_or_else(|_| Err(miette!("a core failed")))
}

/// Times to take a burst of this length, to complete it, and of its crypto.
#[expect(clippy::too_many_arguments)] // of one thread
fn steps_of(
    place: usize,
    cores: usize,
    course: &Course,
    path: &mut Path,
    cipher: &mut Cipher,
    burst: &[Vec<u8>],
    clock: Clock,
    barrier: &Barrier,
) -> miette::Result<[f64; 3]> {
    let mut steps = Steps::default();
    let mut alone = Vec::new();
    let now = || clock.now().0;
    let mut jobs = cipher.jobs(burst);
    let mut failed = None;
    barrier.wait();
    for turn in 0..BURSTS {
        course.await_turn(turn * cores + place);
        if failed.is_none() {
            failed = course.turn(path, burst, &now, Some(&mut steps)).err();
        }
        alone.push(cipher.time(&mut jobs, clock));
        course.turns.fetch_add(1, Ordering::Release);
    }
    barrier.wait();
    let together = (0..BURSTS).map(|_| cipher.time(&mut jobs, clock)).collect();
    barrier.wait();
    while course.done.load(Ordering::Relaxed) < course.arrivals.len() && failed.is_none() {
        failed = course.turn(path, burst, &now, None).err();
    }
    match failed {
        Some(error) => Err(error),
        None => {
            let complete = (usual(steps.carry) - usual(alone)).max(0.0);
            Ok([usual(steps.take), complete, usual(together)])
        }
    }
}

impl Cipher {
    fn jobs(&self, burst: &[Vec<u8>]) -> Vec<Job> {
        burst
            .iter()
            .map(|packet| forebay_engine::esp_job(SessionId(0), self.suite, packet.len() as u32))
            .collect()
    }

    /// Of these jobs, in seconds.
    fn time(&mut self, jobs: &mut Vec<Job>, clock: Clock) -> f64 {
        let begun = clock.now();
        self.processor.submit(begun, jobs);
        self.processor.poll(begun, jobs);
        clock.now().since(begun).as_secs()
    }
}

/// Times of a core's bursts, in seconds.
#[derive(Default)]
struct Steps {
    take: Vec<f64>,
    carry: Vec<f64>,
}

/// Packets on their way through all cores; times are in picoseconds from the start.
struct Course {
    arrivals: Vec<u64>,
    /// Most packets that a core takes at once.
    burst: usize,
    /// The first packet that has not been taken: one core at a time takes and prepares.
    input: Turnstile<usize>,
    /// The same for cores that look whether there is one.
    next: AtomicUsize,
    /// Bursts of cores that take turns.
    turns: AtomicUsize,
    done: AtomicUsize,
    bursts: AtomicUsize,
    taken: Vec<AtomicU64>,
    completed: Vec<AtomicU64>,
    start: AtomicU64,
    failed: AtomicBool,
}

impl Course {
    fn new(arrivals: Vec<u64>, burst: usize) -> Course {
        let times = || arrivals.iter().map(|_| AtomicU64::new(0)).collect();
        Course {
            burst,
            input: Turnstile::new(0),
            next: AtomicUsize::new(0),
            turns: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            bursts: AtomicUsize::new(0),
            taken: times(),
            completed: times(),
            start: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            arrivals,
        }
    }

    fn run(&self, path: &mut Path, plain: &[Vec<u8>], clock: Clock, barrier: &Barrier) -> miette::Result<()> {
        if barrier.wait().is_leader() {
            self.start.store(clock.now().0, Ordering::Relaxed);
        }
        barrier.wait();
        let start = self.start.load(Ordering::Relaxed);
        let now = || clock.now().0 - start;
        while self.done.load(Ordering::Relaxed) < self.arrivals.len() {
            if self.failed.load(Ordering::Relaxed) {
                return Err(miette!("another core failed"));
            }
            let turn = self.turn(path, plain, &now, None);
            turn.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    /// Waits for the turn of this number.
    fn await_turn(&self, turn: usize) {
        let mut looks = 0_u32;
        while self.turns.load(Ordering::Acquire) < turn {
            looks += 1;
            if looks < 2_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Takes a burst, if packets have arrived, and carries it; completes what others have left.
    fn turn(
        &self,
        path: &mut Path,
        plain: &[Vec<u8>],
        now: &impl Fn() -> u64,
        steps: Option<&mut Steps>,
    ) -> miette::Result<()> {
        let waits = |at: usize, now: u64| self.arrivals.get(at).is_some_and(|arrival| *arrival <= now);
        let begun = now();
        let mut count = 0;
        // Who has no buffers, because others hold up what it did, must not go in.
        if waits(self.next.load(Ordering::Relaxed), begun) && path.has_room(self.burst) {
            let mut next = self.input.pass();
            let (first, at) = (*next, now());
            count = (first..first + self.burst).take_while(|packet| waits(*packet, at)).count();
            path.fill(&plain[..count], first as u64)?;
            path.prepare(Direction::Seal);
            *next += count;
            self.next.store(*next, Ordering::Relaxed);
            drop(next);
            self.taken[first..first + count].iter().for_each(|taken| taken.store(at, Ordering::Relaxed));
            self.bursts.fetch_add(usize::from(count > 0), Ordering::Relaxed);
        }
        let since = if steps.is_some() { now() } else { begun };
        let mut at = None;
        let mut done = 0;
        path.carry(|packet, _| {
            let at = *at.get_or_insert_with(now);
            self.completed[packet].store(at, Ordering::Relaxed);
            done += 1;
        })?;
        if done > 0 {
            self.done.fetch_add(done, Ordering::Relaxed);
        }
        if count > 0
            && let Some(steps) = steps
        {
            steps.take.push(Duration(since - begun).as_secs());
            steps.carry.push(Duration(now() - since).as_secs());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_through_what_was_measured() {
        let step = Step::through(5e-7, 36e-7);
        assert!((step.packet - 1e-7).abs() < 1e-12 && (step.burst - 4e-7).abs() < 1e-12);
        assert!((step.of_a_burst() - 36e-7).abs() < 1e-12);
        // A burst that takes no longer than a packet has no time for each.
        assert_eq!(Step::through(5e-7, 4e-7).packet, 0.0);
    }

    /// How far both are apart is this machine's matter; that each packet went through both is not.
    #[test]
    fn each_packet_goes_through_both() {
        let settings = CoresSettings {
            cores: 2,
            packets: 1_000,
            size: 200,
            seed: 1,
            proposal: "aes128gcm16".to_owned(),
            backend: Backend::Auto,
        };
        let dir = tempfile::tempdir().unwrap();
        let mut rounds = 0;
        let watch = |done, all| {
            rounds += 1;
            assert!(done < all);
            ControlFlow::Continue(())
        };
        let comparison = cores(&settings, "here", Some(dir.path()), watch).unwrap();
        assert_eq!((comparison.runs.len(), rounds), (LOADS.len(), ROUNDS));
        for run in &comparison.runs {
            assert_eq!((run.engine.packets, run.simulator.packets), (1_000, 1_000));
            assert!(run.engine.total_mean_s > 0.0 && run.simulator.total_mean_s > 0.0, "{run:?}");
        }
        let kept = Scenario::load(&dir.path().join("load-3/scenario.toml"), &[]).unwrap();
        assert_eq!((kept.processors.len(), kept.cores.unwrap().burst), (2, BURST));
        let wrong = CoresSettings { cores: 0, ..settings };
        assert!(
            cores(&wrong, "here", None, |_, _| ControlFlow::Continue(()))
                .unwrap_err()
                .to_string()
                .contains("cores")
        );
    }
}
