//! Packet captures beside the loop: `[taps]`.
//!
//! ```text
//! worker:  Tapped { link } -- copies packets as blocks of pcapng --> Tap (room of a fixed size)
//! thread:  takes the blocks every 100 ms, or when half of the room is full, orders them, writes files
//! ```
//!
//! The worker never waits: a packet without room is processed all the same, and counted as lost. An error of the files ends
//! the captures, not the gateway; a reload starts them again.

mod files;
mod tapped;
#[cfg(test)]
mod tests;
mod writing;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use forebay_links::Link;

use forebay_config as config;
use forebay_control::{TapSideDoc, TapsDoc};
use forebay_privileges as privileges;
use tapped::Tapped;
use writing::Writing;

/// Bytes that may wait to be written, of each link.
const ROOM: usize = 4 << 20;

/// A side of the gateway: each has files of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Programs'.
    Inside,
    /// Peers'.
    Outside,
}

impl Side {
    const BOTH: [Side; 2] = [Side::Inside, Side::Outside];

    /// As in names of files.
    fn word(self) -> &'static str {
        match self {
            Side::Inside => "inside",
            Side::Outside => "outside",
        }
    }
}

/// What a worker and the writing thread have in common of a link.
struct Tap {
    side: Side,
    name: String,
    /// Its number among the interfaces of its side's files.
    number: u32,
    unix_time: fn() -> Duration,
    is_on: AtomicBool,
    snap: AtomicUsize,
    /// Packets that found no room.
    lost: AtomicU64,
    slot: Mutex<Slot>,
}

/// Where packets wait to be written.
#[derive(Default)]
struct Slot {
    /// Whole blocks, at most [`ROOM`] bytes.
    blocks: Vec<u8>,
    /// Who writes them.
    writer: Option<Thread>,
}

impl Tap {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        lock(&self.slot)
    }
}

/// What has become of a side's packets.
#[derive(Clone, Debug, Default)]
struct SideState {
    packets: u64,
    bytes: u64,
    files: u64,
    file: Option<PathBuf>,
}

/// The status of the captures.
#[derive(Default)]
struct State {
    is_on: bool,
    /// Why they have ended.
    error: Option<String>,
    failures: u64,
    sides: [SideState; 2],
}

/// The captures of a gateway.
pub struct Taps {
    unix_time: fn() -> Duration,
    taps: Vec<Arc<Tap>>,
    state: Arc<Mutex<State>>,
    running: Option<Running>,
}

struct Running {
    end: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Taps {
    /// None yet; `unix_time` stamps packets.
    pub fn new(unix_time: fn() -> Duration) -> Taps {
        Taps { unix_time, taps: vec![], state: Arc::default(), running: None }
    }

    /// Puts a tap into a link. All links are to have theirs before captures begin.
    pub fn tapped(&mut self, side: Side, name: &str, link: Box<dyn Link + Send>) -> Box<dyn Link + Send> {
        let number = self.taps.iter().filter(|tap| tap.side == side).count() as u32;
        let tap = Arc::new(Tap {
            side,
            name: name.to_owned(),
            number,
            unix_time: self.unix_time,
            is_on: AtomicBool::new(false),
            snap: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            slot: Mutex::default(),
        });
        self.taps.push(tap.clone());
        Box::new(Tapped::new(link, tap))
    }

    /// Ends the captures, and begins those that `wanted` asks for. What goes wrong is said in the log and in the
    /// status; it hinders no packet.
    pub fn change(&mut self, wanted: Option<&config::Taps>) {
        if let Some(Running { end, thread }) = self.running.take() {
            end.store(true, Ordering::Relaxed);
            thread.thread().unpark();
            // It has panicked: there is nothing to end.
            let _ = thread.join();
        }
        lock(&self.state).error = None;
        let Some(wanted) = wanted else { return };
        let end = Arc::new(AtomicBool::new(false));
        let (taps, state, unix_time) = (&self.taps, self.state.clone(), self.unix_time);
        // Without capabilities from the first file on, as for all that follow.
        let begun = privileges::without(|| Writing::begin(wanted, taps, state, end.clone(), unix_time));
        match begun {
            Ok(thread) => self.running = Some(Running { end, thread }),
            Err(error) => fail(&self.state, &self.taps, &error),
        }
    }

    /// Whether the captures have ended because of an error.
    pub fn have_failed(&self) -> bool {
        lock(&self.state).error.is_some()
    }

    /// The status of the captures, which the result keeps up to date.
    pub fn told(&self) -> TapsStatus {
        TapsStatus { taps: self.taps.clone(), state: self.state.clone() }
    }
}

impl Drop for Taps {
    fn drop(&mut self) {
        self.change(None);
    }
}

/// Tells of captures while they run. See [`Taps::told`].
#[derive(Clone)]
pub struct TapsStatus {
    taps: Vec<Arc<Tap>>,
    state: Arc<Mutex<State>>,
}

impl TapsStatus {
    /// The document.
    pub fn document(&self) -> TapsDoc {
        let state = lock(&self.state);
        let word = match (state.is_on, &state.error) {
            (true, _) => "on",
            (false, Some(_)) => "failed",
            (false, None) => "off",
        };
        let side = |(side, counts): (Side, &SideState)| TapSideDoc {
            side: side.word().to_owned(),
            packets: counts.packets,
            bytes: counts.bytes,
            lost: lost(&self.taps, side),
            files: counts.files,
            file: counts.file.as_ref().map(|path| path.display().to_string()),
        };
        TapsDoc {
            state: word.to_owned(),
            error: state.error.clone(),
            failures: state.failures,
            sides: Side::BOTH.into_iter().zip(&state.sides).map(side).collect(),
        }
    }
}

fn lost(taps: &[Arc<Tap>], side: Side) -> u64 {
    taps.iter().filter(|tap| tap.side == side).map(|tap| tap.lost.load(Ordering::Relaxed)).sum()
}

/// Ends the captures for an error.
fn fail(state: &Mutex<State>, taps: &[Arc<Tap>], error: &str) {
    switch_off(taps);
    tracing::error!(
        "packet capture stopped; the gateway continues, and a reload restarts the capture: {error}"
    );
    let mut state = lock(state);
    state.is_on = false;
    state.error = Some(error.to_owned());
    state.failures += 1;
    state.sides.iter_mut().for_each(|side| side.file = None);
}

/// Stops copying packets; those that were copied can still be read.
fn switch_off(taps: &[Arc<Tap>]) {
    taps.iter().for_each(|tap| tap.is_on.store(false, Ordering::Relaxed));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
