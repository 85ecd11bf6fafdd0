//! The parts of two machines of a pair beside their loops: the pair's own threads, and the path between the two.
//!
//! The path carries messages in no time, holds a direction back while it is cut, and delivers older messages late
//! (as TCP does). Election, records and merging are the gateway's own code, driven by [`Stepper`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_config as config;
use forebay_pair::{Clocks, Message, Pair, PairError, Speaker, Stepper, decode, encode};
use forebay_state::{IvStore, Lock};
use forebay_time::{Duration, Time};

use crate::clock::{Turn, monotonic, unix_time};

/// Between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(100);

/// The threads of a process that is one of a pair.
pub struct Member {
    stepper: Arc<Stepper>,
    path: Path,
    side: usize,
    turn: Turn,
}

impl Member {
    /// Begins by what is on the disk.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn new(
        settings: &config::Pair,
        state: (IvStore, Lock),
        path: &Path,
        side: usize,
        process: u64,
        turn: Turn,
    ) -> Result<(Arc<Pair>, Member), PairError> {
        let meanwhile = {
            let path = path.clone();
            Arc::new(move || path.carry(turn.now()))
        };
        let clocks = Clocks { monotonic, unix: unix_time };
        let (pair, stepper) = Pair::stepped(settings, state, process, clocks, meanwhile)?;
        let stepper = Arc::new(stepper);
        path.lock().ends[side] = Some(End { stepper: stepper.clone(), turn, suspended: false });
        Ok((Arc::new(pair), Member { stepper, path: path.clone(), side, turn }))
    }

    /// Time passes.
    pub fn pass_time(&self, now: Time) {
        self.path.connect(now);
        self.path.carry(now);
        self.turn.run(now, || self.stepper.pass_time());
        self.path.carry(now);
    }

    /// Whether it has used or received numbers that the other may not know.
    pub fn is_unmerged(&self) -> bool {
        self.stepper.is_unmerged()
    }

    /// The process does nothing from now on, or goes on.
    pub fn suspend(&self, suspended: bool) {
        if let Some(end) = &mut self.path.lock().ends[self.side] {
            end.suspended = suspended;
        }
    }

    /// The process ends. With the power gone, nobody tells the other one.
    pub fn end(self, power: bool) {
        let mut path = self.path.lock();
        path.ends[self.side] = None;
        for connection in &mut path.connections {
            connection.is_mute[self.side] |= power;
            connection.links[self.side] = None;
            connection.closed[self.side] = true;
        }
    }
}

/// A process at an end of the path.
struct End {
    stepper: Arc<Stepper>,
    turn: Turn,
    suspended: bool,
}

/// A connection: each array by side.
struct Connection {
    number: u64,
    /// What is on its way to a side.
    queues: [VecDeque<Vec<u8>>; 2],
    /// By what number the side knows it.
    links: [Option<u64>; 2],
    /// The side has closed it.
    closed: [bool; 2],
    /// Nothing of the side arrives any more, not even that it has gone.
    is_mute: [bool; 2],
    /// What goes to the side waits for TCP to try again.
    waits: [Time; 2],
}

#[derive(Default)]
struct State {
    ends: [Option<End>; 2],
    connections: Vec<Connection>,
    count: u64,
    /// Since when what goes to a side is held back.
    held: [Option<Time>; 2],
    tried: Time,
}

/// The path. Its copies are of the same one.
#[derive(Clone, Default)]
pub struct Path(Arc<Mutex<State>>);

impl Path {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds back what goes to a side, or no longer. A connection of before comes to life as late again as it was held, for
    /// so TCP doubles the time between its attempts; a new one is there at once.
    pub fn hold(&self, side: usize, held: bool, now: Time) {
        let mut state = self.lock();
        let since = std::mem::replace(&mut state.held[side], held.then_some(now));
        if let Some(since) = since.filter(|_| !held) {
            let late = now + now.since(since);
            state.connections.iter_mut().for_each(|connection| connection.waits[side] = late);
        }
    }

    /// All connections end: both sides hear of it.
    pub fn reset(&self) {
        self.lock().connections.iter_mut().for_each(|connection| connection.closed = [true; 2]);
    }

    /// Makes a connection where there is none that both have.
    fn connect(&self, now: Time) {
        let mut state = self.lock();
        let is_open = |one: &Connection| {
            one.closed == [false; 2] && one.is_mute == [false; 2] && one.waits.iter().all(|at| *at <= now)
        };
        if state.connections.iter().any(is_open) || state.held != [None; 2] || now.since(state.tried) < AGAIN
        {
            return;
        }
        state.tried = now;
        let [Some(one), Some(two)] = &state.ends else { return };
        if one.suspended || two.suspended {
            return;
        }
        let ends = [(one.stepper.clone(), one.turn), (two.stepper.clone(), two.turn)];
        let number = state.count;
        state.count += 1;
        let (queues, links) = Default::default();
        let (closed, is_mute, waits) = ([false; 2], [false; 2], [now; 2]);
        state.connections.push(Connection { number, queues, links, closed, is_mute, waits });
        drop(state);
        for (side, (stepper, turn)) in ends.into_iter().enumerate() {
            let speaker = Arc::new(Voice { path: self.clone(), number, side });
            let link = turn.run(now, || stepper.connect(speaker));
            if let Some(connection) = self.lock().connection(number) {
                connection.links[side] = Some(link);
            }
        }
    }

    /// Has both sides hear what arrives by now, and what is answered.
    fn carry(&self, now: Time) {
        loop {
            let Some((stepper, turn, number, side, link, message)) = self.lock().next(now) else { return };
            match message {
                Some(bytes) => {
                    let message: Message = decode(&bytes).expect("what the other one said");
                    let goes_on = turn.run(now, || stepper.hear(link, message));
                    if !goes_on && let Some(connection) = self.lock().connection(number) {
                        connection.closed[side] = true;
                    }
                }
                None => turn.run(now, || stepper.disconnect(link)),
            }
        }
    }
}

/// Something that happens at a side: to which process and by which connection; a message, or the end of the connection.
type Happening = (Arc<Stepper>, Turn, u64, usize, u64, Option<Vec<u8>>);

impl State {
    fn connection(&mut self, number: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.number == number)
    }

    fn next(&mut self, now: Time) -> Option<Happening> {
        self.connections.retain(|one| one.links != [None; 2] || one.closed != [true; 2]);
        for connection in &mut self.connections {
            for side in 0..2 {
                let Some(end) = self.ends[side].as_ref().filter(|end| !end.suspended) else { continue };
                let Some(link) = connection.links[side] else { continue };
                let what = |message| (end.stepper.clone(), end.turn, connection.number, side, link, message);
                if connection.closed[side] {
                    let ended = what(None);
                    connection.links[side] = None;
                    return Some(ended);
                }
                if self.held[side].is_some() || connection.waits[side] > now || connection.is_mute[1 - side] {
                    continue;
                }
                if let Some(message) = connection.queues[side].pop_front() {
                    return Some(what(Some(message)));
                }
                // What was sent before has arrived.
                connection.closed[side] = connection.closed[1 - side];
                if connection.closed[side] {
                    let ended = what(None);
                    connection.links[side] = None;
                    return Some(ended);
                }
            }
        }
        None
    }
}

/// What a side speaks by.
struct Voice {
    path: Path,
    number: u64,
    side: usize,
}

impl Speaker for Voice {
    fn say(&self, message: &Message) -> bool {
        let mut state = self.path.lock();
        let Some(connection) = state.connection(self.number).filter(|one| !one.closed[self.side]) else {
            return false;
        };
        connection.queues[1 - self.side].push_back(encode(message));
        true
    }

    fn end(&self) {
        if let Some(connection) = self.path.lock().connection(self.number) {
            connection.closed[self.side] = true;
        }
    }
}
