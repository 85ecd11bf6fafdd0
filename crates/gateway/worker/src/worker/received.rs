//! Received packets are delivered when their sequence numbers are noted: see `forebay-state`.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use forebay_crypto::{Direction, SessionId};
use forebay_engine::Output;
use forebay_ipsec::DropReason;

use super::Worker;
use crate::word::Word;

impl Worker {
    /// Sends word of replay windows from now on, and lets received packets wait until their numbers are noted: at all
    /// workers.
    pub fn send_windows(&mut self, to: mpsc::Sender<Word>) {
        self.shared.events.pass().windows_to = Some(to);
        self.shared.holds.store(true, Ordering::Release);
    }

    /// Lets an inbound SA deliver what it receives with numbers up to `limit`, which are noted.
    pub fn note_window(&mut self, session: SessionId, limit: u64) {
        self.engine.note_window(session, limit);
        self.shared.notes.fetch_add(1, Ordering::AcqRel);
        // More may have come since the limit was asked for.
        let sad = self.engine.sad();
        if let Some(top) = sad.sequence(session).filter(|top| *top > limit) {
            let packets = sad.admitted(session);
            drop(sad);
            self.want_note(session, top, packets);
        }
    }

    /// How many times SAs were removed: a message about an SA that was sent before one was removed may be about that one.
    pub fn removals(&self) -> u64 {
        self.shared.removals.load(Ordering::Acquire)
    }

    pub(super) fn want_note(&self, session: SessionId, top: u64, packets: u64) {
        let removals = self.removals();
        if let Some(to) = &self.shared.events.pass().windows_to {
            let _ = to.send(Word::Wanted { session, top, packets, removals });
        }
    }

    /// Takes the packets of an SA that wait until their numbers are noted.
    pub fn take_held(&mut self, session: SessionId) -> Vec<Output> {
        let lane = self.engine.lane_of(session);
        self.shared.lanes[lane].packets.pass().held.take(session)
    }

    /// Takes them up as packets of `session`, which has received them.
    pub fn put_held(&mut self, session: SessionId, outputs: Vec<Output>) {
        let until = self.engine.sad().sequence(session).unwrap_or(0);
        let mut refused = vec![];
        let lane = self.engine.lane_of(session);
        let mut lane = self.shared.lanes[lane].packets.pass();
        for output in outputs {
            let output = Output { session: Some(session), ..output };
            match lane.held.put(session, until, output) {
                Ok(()) => self.counts.held += 1,
                Err(output) => refused.push(output),
            }
        }
        drop(lane);
        self.shared.notes.fetch_add(1, Ordering::AcqRel);
        self.drop_received(refused, DropReason::InStateNotNoted);
    }

    /// Drops packets of SAs that are gone.
    pub fn drop_held(&mut self, outputs: Vec<Output>) {
        self.drop_received(outputs, DropReason::InStateInvalid);
    }

    pub(super) fn drop_received(&mut self, outputs: Vec<Output>, reason: DropReason) {
        for Output { packet, .. } in outputs {
            self.engine.count_drop(reason);
            self.intake.dropped(&mut self.engine, Direction::Open, reason, packet);
        }
    }

    /// Opened packets that wait until their numbers are noted.
    pub fn held(&self) -> usize {
        self.lanes().map(|lane| lane.packets.pass().held.len()).sum()
    }
}
