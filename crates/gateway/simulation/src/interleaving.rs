//! The work of the other cores of a gateway while one of them is at its crypto.
//!
//! Everything else of a core runs under a lock, so all interleavings are given by what other cores do while one is between its two visits
//! to the databases. Here the core at its crypto lets others run poll iterations, drawn from the
//! seed, before it continues; they may in turn be delayed at their own crypto. During some faults, a core loses its CPU for
//! so long that it is overtaken.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_gateway::service::{Steps, Worker};
use forebay_random::Random;
use forebay_time::Duration;

/// One in so many bursts is met by other cores.
const MEETS: u64 = 3;
/// And while cores lose their CPUs one in so many, for so long: steps of the others, and the time of each. A core is overtaken
/// after half a second.
const LOSES: u64 = 40;
const STEPS: u64 = 160;
const STEP: Duration = Duration::from_millis(5);
/// Cores that stand in each other's crypto.
const DEPTH: usize = 6;

/// See the module.
#[derive(Default)]
pub struct Interleaving(Mutex<State>);

#[derive(Default)]
struct State {
    cores: Vec<Steps>,
    random: Option<Random>,
    depth: usize,
    loses_cpus: bool,
}

impl Interleaving {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cores of a process that begins. They lead back here, so [`Interleaving::end`] has to follow.
    pub fn begin(&self, cores: Vec<Steps>, seed: u64) {
        let loses_cpus = self.lock().loses_cpus;
        *self.lock() = State { cores, random: Some(Random::seeded(seed)), depth: 0, loses_cpus };
    }

    /// The process has ended.
    pub fn end(&self) {
        let ended = std::mem::take(&mut self.lock().cores);
        drop(ended);
    }

    /// Whether cores lose their CPUs from now on.
    pub fn lose_cpus(&self, whether: bool) {
        self.lock().loses_cpus = whether;
    }

    /// A core is at its crypto: what others do meanwhile.
    pub fn others_go_on(&self, cell: &AtomicU64) {
        let Some((steps, time)) = self.draw() else { return };
        for _ in 0..steps {
            let core = {
                let state = &mut *self.lock();
                let count = state.cores.len() as u64;
                let Some(random) = &mut state.random else { break };
                let core = random.below(count) as usize;
                state.cores.get(core).cloned()
            };
            cell.fetch_add(time.0, Ordering::Relaxed);
            // Those that are at something themselves do nothing.
            core.map(|core| core.with(Worker::round));
        }
        self.lock().depth -= 1;
    }

    /// How many rounds of other cores there are, and how long each is after the one before; `None` if there are none.
    fn draw(&self) -> Option<(u64, Duration)> {
        let state = &mut *self.lock();
        let random = state.random.as_mut().filter(|_| state.cores.len() > 1 && state.depth < DEPTH)?;
        let drawn = match () {
            () if state.loses_cpus && state.depth == 0 && random.below(LOSES) == 0 => (STEPS, STEP),
            () if random.below(MEETS) == 0 => (1 + random.below(4), Duration::from_micros(random.below(30))),
            () => return None,
        };
        state.depth += 1;
        Some(drawn)
    }
}
