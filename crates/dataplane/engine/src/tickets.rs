//! The order in which packets leave, whichever core has them: tickets.
//!
//! When a packet is prepared, it draws the next ticket of its *line*: its SA, or a single line if all packets keep their
//! order. When its crypto is done, it is completed if its ticket is next. If it is not, it is *parked* with its run, and
//! the core that completes the packets before it completes it too. So no core waits for another.
//!
//! ```text
//!            turn                     next
//!             |                        |
//!   line  ... 7  8  9 | 10 11 12 | 13  14
//!         core A:      core B:     parked until A has completed 7 to 9, or has been held up for too long
//! ```
//!
//! A core that is held up for longer than [`Limits::overtake`](crate::Limits::overtake) is *overtaken*: its tickets are
//! skipped, and what it brings later is dropped. Its sequence numbers remain unused, which IPsec allows.

use std::cmp::Ordering;
use std::collections::VecDeque;

use forebay_crypto::Job;
use forebay_ipsec::Path;
use forebay_planted::{Fault, planted};
use forebay_time::{Duration, Time};

/// Which packets are released in the order in which they were admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The packets of an SA: what IPsec needs.
    PerSa,
    /// All packets: what a file needs.
    Total,
}

/// Packets side by side that have consecutive tickets of one line.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The line.
    pub line: u32,
    /// The ticket of the first packet.
    pub ticket: u32,
    /// How many packets.
    pub len: u32,
    /// Service class, for the scheduler.
    pub class: u8,
    /// Whether a policy bypasses the packets, so that they have no job and only wait for their place in the order.
    pub bypass: bool,
    /// Whether the ticket has been used when this packet is through: pieces of one packet share its ticket.
    pub last: bool,
    /// When the packets were admitted.
    pub admitted: Time,
    /// The SAs that the packets have been through before that of their jobs.
    pub path: Path,
}

impl Run {
    /// Whether another run is of the packets right behind this one.
    #[inline]
    pub fn is_continued_by(&self, next: &Run) -> bool {
        let is_behind = next.line == self.line && next.ticket == self.ticket.wrapping_add(self.len);
        let is_plain = |run: &Run| run.last && !run.bypass && run.path.sas().is_empty();
        is_behind && next.admitted == self.admitted && is_plain(self) && is_plain(next)
    }
}

/// No place among the parked runs.
const NONE: u32 = u32::MAX;

/// Tickets of one line; they wrap around.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The ticket that is drawn next.
    next: u32,
    /// The ticket whose turn it is.
    turn: u32,
    /// First and last of the parked runs, in the order of their tickets.
    first: u32,
    last: u32,
}

/// A run whose crypto is done and whose turn has not come.
#[derive(Debug)]
struct Parked {
    run: Run,
    jobs: Vec<Job>,
    since: Time,
    waits: Duration,
    behind: u32,
}

/// All lines, and what is parked.
#[derive(Debug)]
pub struct Tickets {
    order: Order,
    lines: Vec<Line>,
    parked: Vec<Parked>,
    free: Vec<u32>,
    /// Packets parked.
    packets: usize,
    /// Lines in which packets are parked, and since when by `waited`; some of them may have gone since.
    waiting: VecDeque<(Duration, u32)>,
    /// When this was last looked at, and the time in which a core looked: all cores may have been stopped
    /// together, and then nobody was waited for.
    seen: Time,
    waited: Duration,
}

/// The longest time between two looks that counts as waiting.
const LOOK: Duration = Duration::from_millis(10);

impl Tickets {
    pub fn new(order: Order) -> Tickets {
        let (lines, parked) = (Vec::new(), Vec::new());
        Tickets {
            order,
            lines,
            parked,
            free: Vec::new(),
            packets: 0,
            waiting: VecDeque::new(),
            seen: Time::ZERO,
            waited: Duration::ZERO,
        }
    }

    /// Whether all packets keep their order.
    pub fn is_total(&self) -> bool {
        self.order == Order::Total
    }

    /// Makes room for the line of one more SA.
    pub fn open(&mut self, session: u32) {
        let line = self.line_of(session) as usize;
        if line >= self.lines.len() {
            self.lines.resize(line + 1, Line { next: 0, turn: 0, first: NONE, last: NONE });
        }
    }

    #[inline]
    fn line_of(&self, session: u32) -> u32 {
        if self.order == Order::PerSa { session } else { 0 }
    }

    /// Draws `len` tickets for packets of an SA: their line, and the first ticket.
    #[inline]
    pub fn draw(&mut self, session: u32, len: u32) -> (u32, u32) {
        let number = self.line_of(session);
        let line = &mut self.lines[number as usize];
        let ticket = line.next;
        line.next = ticket.wrapping_add(len);
        (number, ticket)
    }

    /// Whether the turn of a run has come (equal), is still to come (greater), or has been missed (less).
    #[inline]
    pub fn compare(&self, run: &Run) -> Ordering {
        if planted(Fault::OrderLost) {
            return Ordering::Equal;
        }
        let ahead = run.ticket.wrapping_sub(self.lines[run.line as usize].turn) as i32;
        ahead.cmp(&0)
    }

    /// The ticket whose turn it is in a line.
    pub fn turn(&self, line: u32) -> u32 {
        self.lines[line as usize].turn
    }

    /// Loads a line.
    #[inline]
    pub fn touch(&self, line: u32) {
        std::hint::black_box(self.turn(line));
    }

    /// The next `len` tickets of a line have been used.
    #[inline]
    pub fn advance(&mut self, line: u32, len: u32) {
        let line = &mut self.lines[line as usize];
        line.turn = line.turn.wrapping_add(len);
    }

    /// Parks a run until its turn, and takes its jobs.
    #[cold]
    pub fn park(&mut self, run: Run, jobs: &mut [Job], now: Time) {
        self.look(now);
        self.packets += jobs.len();
        let place = self.place();
        let parked = &mut self.parked[place as usize];
        (parked.run, parked.since, parked.waits) = (run, now, self.waited);
        parked.jobs.extend(jobs.iter_mut().map(std::mem::take));
        let before = self.before(&run);
        let line = &mut self.lines[run.line as usize];
        if line.first == NONE {
            self.waiting.push_back((self.waited, run.line));
        }
        let behind = match before {
            NONE => std::mem::replace(&mut line.first, place),
            before => std::mem::replace(&mut self.parked[before as usize].behind, place),
        };
        self.parked[place as usize].behind = behind;
        if behind == NONE {
            line.last = place;
        }
    }

    /// The parked run of the same line behind which `run` belongs. Most come in order.
    fn before(&self, run: &Run) -> u32 {
        let line = self.lines[run.line as usize];
        let is_before =
            |place: u32| run.ticket.wrapping_sub(self.parked[place as usize].run.ticket) as i32 >= 0;
        if line.last != NONE && is_before(line.last) {
            return line.last;
        }
        let (mut before, mut at) = (NONE, line.first);
        while at != NONE && is_before(at) {
            (before, at) = (at, self.parked[at as usize].behind);
        }
        before
    }

    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let path = Path::default();
            let (bypass, last, admitted) = (false, true, Time::ZERO);
            let run = Run { line: 0, ticket: 0, len: 0, class: 0, bypass, last, admitted, path };
            self.parked.push(Parked {
                run,
                jobs: Vec::new(),
                since: Time::ZERO,
                waits: Duration::ZERO,
                behind: NONE,
            });
            self.parked.len() as u32 - 1
        })
    }

    /// Takes the parked run whose turn it is in a line, its jobs, and since when it was parked. The vector is to be given
    /// back by [`Tickets::give_back`].
    #[inline]
    pub fn take_parked(&mut self, line: u32) -> Option<(Run, Vec<Job>, Time)> {
        let first = self.lines[line as usize].first;
        if first == NONE || self.compare(&self.parked[first as usize].run) != Ordering::Equal {
            return None;
        }
        let parked = &mut self.parked[first as usize];
        let (run, jobs, since) = (parked.run, std::mem::take(&mut parked.jobs), parked.since);
        let line = &mut self.lines[line as usize];
        line.first = parked.behind;
        if line.first == NONE {
            line.last = NONE;
        }
        self.packets -= jobs.len();
        self.free.push(first);
        Some((run, jobs, since))
    }

    /// Takes back the room of a run that was parked.
    pub fn give_back(&mut self, mut jobs: Vec<Job>) {
        jobs.clear();
        if let Some(&place) = self.free.last() {
            self.parked[place as usize].jobs = jobs;
        }
    }

    /// Packets that are parked.
    #[inline]
    pub fn parked(&self) -> usize {
        self.packets
    }

    /// When a core should look whether another is held up: [`Time::MAX`] if nothing is parked.
    pub fn next_due(&self) -> Time {
        if self.packets == 0 { Time::MAX } else { self.seen + LOOK }
    }

    /// Takes note of the time; to be called often while packets are parked.
    #[inline]
    pub fn look(&mut self, now: Time) {
        self.waited += now.since(self.seen).min(LOOK);
        self.seen = self.seen.max(now);
    }

    /// Skips the tickets before a parked run that has waited for `limit`, if there is one: its line, and how many tickets
    /// were skipped.
    pub fn overtake(&mut self, limit: Duration) -> Option<(u32, u32)> {
        while let Some(&(since, number)) = self.waiting.front() {
            let line = self.lines[number as usize];
            if line.first != NONE && since + limit > self.waited {
                return None;
            }
            self.waiting.pop_front();
            if line.first == NONE {
                continue;
            }
            let first = &self.parked[line.first as usize];
            if first.waits + limit > self.waited {
                // Others have come and gone.
                self.waiting.push_back((first.waits, number));
                continue;
            }
            let skipped = first.run.ticket.wrapping_sub(line.turn);
            self.advance(number, skipped);
            // Those behind it may have to wait for another core.
            self.waiting.push_back((self.waited, number));
            return Some((number, skipped));
        }
        None
    }
}

#[cfg(test)]
mod tests;
