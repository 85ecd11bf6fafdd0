//! The thread that writes captures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_links::LinkType;
use forebay_links::capture::blocks;

use super::files::Files;
use super::{Side, Slot, State, Tap, fail, lock, switch_off};
use forebay_config as config;
use forebay_privileges as privileges;

/// Between two looks at what has come; a slot that is half full wakes the thread.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two looks whether the files are where they were.
const CHECK_EVERY: u32 = 10;
/// Bytes that are given to the system at once.
const AT_ONCE: usize = 1 << 20;

/// What the thread has.
pub(super) struct Writing {
    sides: Vec<OfSide>,
    taps: Vec<Arc<Tap>>,
    state: Arc<Mutex<State>>,
    end: Arc<AtomicBool>,
    unix_time: fn() -> Duration,
}

/// The files of a side and what is to be written to them.
struct OfSide {
    side: Side,
    taps: Vec<Arc<Tap>>,
    /// What was taken from each tap's slot.
    taken: Vec<Vec<u8>>,
    files: Files,
    out: Vec<u8>,
    /// Packets in `out`.
    packets: u64,
    /// Packets in the files since they began, by interface.
    received: Vec<u64>,
    /// Packets that were lost before.
    lost_before: Vec<u64>,
}

impl Writing {
    /// Begins captures: opens the first files, starts the thread, and switches the taps on.
    ///
    /// # Errors
    /// If that cannot be.
    pub(super) fn begin(
        wanted: &config::Taps,
        taps: &[Arc<Tap>],
        state: Arc<Mutex<State>>,
        end: Arc<AtomicBool>,
        unix_time: fn() -> Duration,
    ) -> Result<JoinHandle<()>, String> {
        let mut sides = Vec::new();
        for (side, is_wanted) in Side::BOTH.into_iter().zip([wanted.inside, wanted.outside]) {
            if is_wanted {
                sides.push(OfSide::begin(side, wanted, taps, unix_time())?);
            }
        }
        let wanted_taps: Vec<Arc<Tap>> = sides.iter().flat_map(|side| side.taps.iter().cloned()).collect();
        {
            let mut state = lock(&state);
            state.is_on = true;
            for side in &sides {
                side.tell_file(&mut state);
            }
        }
        let writing = Writing { sides, taps: wanted_taps.clone(), state, end, unix_time };
        let builder = std::thread::Builder::new().name("forebay-taps".to_owned());
        let run = move || {
            privileges::keep_files();
            writing.run()
        };
        let thread = builder.spawn(run).map_err(|error| error.to_string())?;
        for tap in &wanted_taps {
            let mut slot = tap.lock();
            slot.blocks.clear();
            slot.writer = Some(thread.thread().clone());
            tap.snap.store(wanted.snap as usize, Ordering::Relaxed);
            tap.is_on.store(true, Ordering::Relaxed);
        }
        tracing::info!(directory = %wanted.directory.display(), "packet capture started");
        Ok(thread)
    }

    fn run(mut self) {
        let mut looks = 0;
        loop {
            let ending = self.end.load(Ordering::Relaxed);
            if ending {
                switch_off(&self.taps);
            } else {
                std::thread::park_timeout(LOOK_EVERY);
            }
            looks += 1;
            if let Err(error) = self.look(looks % CHECK_EVERY == 0) {
                fail(&self.state, &self.taps, &error);
                return self.forget();
            }
            if ending {
                break;
            }
        }
        for side in &mut self.sides {
            // No more room for its counts is no news: the packets are there.
            let last = side.statistics((self.unix_time)());
            let _ = side.files.write(&last);
        }
        let mut state = lock(&self.state);
        state.is_on = false;
        state.sides.iter_mut().for_each(|side| side.file = None);
        drop(state);
        self.forget();
        tracing::info!("packet capture stopped");
    }

    /// Writes what has come.
    fn look(&mut self, check: bool) -> Result<(), String> {
        for side in &mut self.sides {
            if check && !side.files.is_there() {
                side.next_file(&self.state, self.unix_time)?;
            }
            side.take();
            side.put_in_order(&self.state, self.unix_time)?;
            side.write(&self.state)?;
        }
        Ok(())
    }

    /// Gives back the room that packets waited in.
    fn forget(&self) {
        for tap in &self.taps {
            *tap.lock() = Slot::default();
        }
    }
}

impl OfSide {
    fn begin(side: Side, wanted: &config::Taps, taps: &[Arc<Tap>], now: Duration) -> Result<OfSide, String> {
        let taps: Vec<Arc<Tap>> = taps.iter().filter(|tap| tap.side == side).cloned().collect();
        let mut header = Vec::new();
        blocks::section(&mut header, concat!("forebay ", env!("CARGO_PKG_VERSION")));
        taps.iter().for_each(|tap| blocks::interface(&mut header, LinkType::Raw, &tap.name, wanted.snap));
        let files = Files::begin(wanted, side.word(), header, now)?;
        let taken = vec![Vec::new(); taps.len()];
        let lost_before = taps.iter().map(|tap| tap.lost.load(Ordering::Relaxed)).collect();
        let received = vec![0; taps.len()];
        Ok(OfSide { side, taps, taken, files, out: vec![], packets: 0, received, lost_before })
    }

    /// Takes what waits in the slots, of all at the same moment: so what was before it is all there.
    fn take(&mut self) {
        let mut slots: Vec<_> = self.taps.iter().map(|tap| tap.lock()).collect();
        for (slot, taken) in slots.iter_mut().zip(&mut self.taken) {
            taken.clear();
            std::mem::swap(&mut slot.blocks, taken);
        }
    }

    /// Puts the packets of all links one behind the other by their stamps.
    fn put_in_order(&mut self, state: &Mutex<State>, unix_time: fn() -> Duration) -> Result<(), String> {
        let mut at = vec![0; self.taken.len()];
        loop {
            let waiting = self.taken.iter().zip(&at).enumerate();
            let stamped =
                waiting.filter_map(|(link, (taken, &at))| Some((blocks::stamp(&taken[at..])?, link)));
            let Some((_, link)) = stamped.min() else { return Ok(()) };
            let rest = &self.taken[link][at[link]..];
            // Blocks are put into slots whole.
            let Some(len) = blocks::block_len(rest) else { return Ok(()) };
            self.out.extend_from_slice(&rest[..len]);
            at[link] += len;
            self.packets += 1;
            self.received[link] += 1;
            let is_full = self.out.len() as u64 >= self.files.room();
            if is_full || self.out.len() >= AT_ONCE {
                self.write(state)?;
            }
            if is_full {
                self.next_file(state, unix_time)?;
            }
        }
    }

    /// Writes what is in order.
    fn write(&mut self, state: &Mutex<State>) -> Result<(), String> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.files.write(&self.out)?;
        let counts = &mut lock(state).sides[self.side as usize];
        counts.packets += self.packets;
        counts.bytes += self.out.len() as u64;
        self.packets = 0;
        self.out.clear();
        Ok(())
    }

    fn next_file(&mut self, state: &Mutex<State>, unix_time: fn() -> Duration) -> Result<(), String> {
        let now = unix_time();
        let last = self.statistics(now);
        self.files.next(&last, now)?;
        self.tell_file(&mut lock(state));
        Ok(())
    }

    fn tell_file(&self, state: &mut State) {
        let counts = &mut state.sides[self.side as usize];
        counts.files += 1;
        counts.file = Some(self.files.path().to_owned());
    }

    /// The blocks that a file ends with: what of each interface is in the captures, and what is not, since they began.
    fn statistics(&self, now: Duration) -> Vec<u8> {
        let mut last = Vec::new();
        for (at, tap) in self.taps.iter().enumerate() {
            let lost = tap.lost.load(Ordering::Relaxed) - self.lost_before[at];
            let seen = self.received[at] + lost;
            blocks::statistics(&mut last, tap.number, now.as_nanos() as u64, seen, lost);
        }
        last
    }
}
