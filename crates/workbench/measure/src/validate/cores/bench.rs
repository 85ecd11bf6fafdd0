//! The engine on several cores: its steps, measured in turn, and packets through all cores at once.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use forebay_crypto::{Direction, Job, SessionId, Suite};
use forebay_engine::{Clock, Turnstile};
use forebay_ipsec::Encapsulation;
use forebay_loadgen::median::median;
use forebay_time::Duration;
use forebay_wire::Family;
use miette::{IntoDiagnostic, miette};

use super::{CoresSettings, Step, Times, figures};
use crate::esp::{BURST, Path, paths, plain_packet, throwaway_keys};
use crate::validate::compare::Figures;

/// Bursts by which the time of a step is measured.
const BURSTS: usize = 100;

/// Engines that share an SA.
pub(super) struct Bench {
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
    pub(super) fn new(settings: &CoresSettings, suite: Suite) -> miette::Result<Bench> {
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
            plain: (0..BURST).map(|_| plain_packet(Family::V4, settings.size)).collect(),
            shared: paths(
                settings.cores,
                settings.backend,
                (suite, Encapsulation::None, Family::V4),
                settings.size,
                clock,
            )?,
            ciphers: (0..settings.cores).map(cipher).collect::<miette::Result<_>>()?,
        })
    }

    /// The steps of a core: the mean of the cores. Take and completion are those of cores in turn, which find what they share in
    /// the other's cache and wait for nobody; the crypto is that of all cores at once.
    pub(super) fn times(&mut self) -> miette::Result<Times> {
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
    pub(super) fn run(&mut self, arrivals: Vec<u64>) -> miette::Result<Figures> {
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
