//! The running core as a polling loop: it moves the packets, and computes its own share of them.
//!
//! A poll
//! 1. collects the results of other processors: those packets are complete, and this is reported to the scheduler;
//! 2. takes up to `burst` of the packets that have arrived, and spends `move` on each;
//! 3. lets the scheduler place them, and what still waits in it;
//! 4. hands the shares of others over, one processor after the other in the order in which the scheduler named
//!    them, each after `feed` for its packets and `feed_block` for their blocks;
//! 5. computes its own share to completion, and polls again.
//!
//! A poll that finds nothing takes no time; the next one comes with the next arrival, answer or timeout. A queue that
//! is full keeps what was to go there, and everything behind it, in the scheduler; a poll takes no more than that has room.

use std::collections::VecDeque;

use forebay_scheduler::Item;
use forebay_station::Host;
use forebay_time::{Duration, Time};

use crate::bursts::{Desk, Rest};
use crate::input::{Ending, Input};
use crate::ledger::Ledger;
use crate::outcome::RunError;
use crate::probe::Probe;
use crate::scenario::{RunningCore, Scenario};
use crate::setup;

/// Packets that have arrived and have not been taken.
struct Ring {
    items: VecDeque<Item>,
    /// Most of them.
    size: usize,
    /// Whether what does not fit is lost; else it arrives later, with the time at which it did.
    loses: bool,
}

impl Ring {
    /// Packets arrive up to an instant, it included.
    fn fill(&mut self, now: Time, input: &mut Input, ledger: &mut Ledger) {
        while input.next_at() <= now && (self.loses || self.items.len() < self.size) {
            let Some((_, item)) = input.take(ledger) else { return };
            if self.items.len() < self.size {
                self.items.push_back(item);
            } else {
                ledger.lose(item.id);
            }
        }
    }
}

/// A run in which everything goes through one core that polls.
pub(crate) fn drive<P: Probe>(
    scenario: &Scenario,
    core: RunningCore,
    mut input: Input,
    mut desk: Desk<P>,
    ending: &mut Ending<'_>,
) -> Result<(Ledger, P), RunError> {
    let settings = &scenario.scheduler;
    let mut host = setup::host(scenario);
    let mut loads = setup::Loads::new(scenario);
    let size = settings.input.unwrap_or(settings.burst);
    let mut ring = Ring { items: VecDeque::new(), size, loses: settings.input.is_some() };
    let mut now = Time::ZERO;
    desk.scheduler.set_moving(core.moves);
    loop {
        host.advance(now, &mut desk);
        desk.collect(now);
        loads.report(&mut desk.scheduler, now);
        ring.fill(now, &mut input, &mut desk.ledger);
        // Classes have inputs of their own, which turn away what does not fit.
        let room = if settings.has_classes() { usize::MAX } else { desk.scheduler.input_room() };
        let taken = ring.items.len().min(settings.burst).min(room);
        let begin = now;
        now = now + core.moves.times(taken as u64);
        host.advance(now, &mut desk);
        for item in ring.items.drain(..taken) {
            match desk.scheduler.push(now, item) {
                Ok(()) => desk.ledger.admit(item.id, item.sa),
                Err(item) => desk.ledger.lose(item.id),
            }
        }
        if input.next.is_none() && ring.items.is_empty() {
            desk.scheduler.end_of_input();
        }
        let moved = now;
        desk.scheduler.moved(now);
        let rest = desk.place(now, |_| false, &mut input, ending)?;
        let idle = taken == 0 && desk.batches.waiting().is_empty();
        now = feed(scenario, core, now, &mut desk, &mut host);
        desk.ledger.polls(begin, moved, now, taken);
        loads.add(now.since(begin));
        if desk.batches.waiting().contains(&core.processor) {
            now = now + desk.hand_over(now, core.processor, &mut host);
        }
        if !idle {
            if now == Time::MAX {
                return Err(RunError::TooLong);
            }
            continue;
        }
        let event = host.advance(now, &mut desk);
        let until = match rest {
            Rest::Blocked => desk.scheduler.due(),
            Rest::Until(until) => until,
        };
        // A ring that cannot be emptied waits for an answer.
        let arrival = if ring.items.is_empty() { input.next_at() } else { Time::MAX };
        now = arrival.min(event).min(until);
        if now == Time::MAX {
            host.advance(now, &mut desk);
            desk.collect(now);
            let overflows = input.next.is_some() || desk.ledger.last() == Time::MAX;
            return if overflows { Err(RunError::TooLong) } else { Ok(desk.close()) };
        }
    }
}

/// Hands over what was placed on other processors; returns when that is done.
fn feed<P: Probe>(
    scenario: &Scenario,
    core: RunningCore,
    mut now: Time,
    desk: &mut Desk<P>,
    host: &mut Host<u32>,
) -> Time {
    while let Some(&other) = desk.batches.waiting().iter().find(|&&one| one != core.processor) {
        let feed = scenario.processors[other].feed;
        let (packets, blocks) = desk.batches.size(other);
        let time: Duration = feed.packet.times(packets) + feed.block.times(blocks);
        now = now + time;
        host.advance(now, desk);
        desk.hand_over(now, other, host);
    }
    now
}
