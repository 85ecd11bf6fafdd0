//! Received packets are delivered when their sequence numbers are noted: see `forebay-state`.

use std::sync::mpsc;

use forebay_crypto::{Direction, SessionId};
use forebay_engine::Output;
use forebay_ipsec::DropReason;
use forebay_planted::{Fault, planted};

use super::Worker;
use crate::word::Word;

impl Worker {
    /// Sends word of replay windows from now on, and lets received packets wait until their numbers are noted.
    pub fn send_windows(&mut self, to: mpsc::Sender<Word>) {
        self.windows_to = Some(to);
    }

    /// Lets an inbound SA deliver what it receives with numbers up to `limit`, which are noted.
    pub fn note_window(&mut self, session: SessionId, limit: u64) {
        self.engine.note_window(session, limit);
        self.held.look_again();
        // More may have come since the limit was asked for.
        let sad = self.engine.sad();
        if let Some(top) = sad.sequence(session).filter(|top| *top > limit) {
            let packets = sad.admitted(session);
            self.want_note(session, top, packets);
        }
    }

    /// How many times SAs were removed: a message about an SA that was sent before one was removed may be about that one.
    pub fn removals(&self) -> u64 {
        self.removals
    }

    pub(super) fn want_note(&self, session: SessionId, top: u64, packets: u64) {
        if let Some(to) = &self.windows_to {
            let worker = self.index.get();
            let removals = self.removals;
            let _ = to.send(Word::Wanted { worker, session, top, packets, removals });
        }
    }

    /// Takes the packets of an SA that wait until their numbers are noted.
    pub fn take_held(&mut self, session: SessionId) -> Vec<Output> {
        self.held.take(session)
    }

    /// Takes them up as packets of `session`, which has received them.
    pub fn put_held(&mut self, session: SessionId, outputs: Vec<Output>) {
        let until = self.engine.sad().sequence(session).unwrap_or(0);
        for output in outputs {
            self.hold(session, until, Output { session: Some(session), ..output });
        }
        self.held.look_again();
    }

    /// Drops packets of SAs that are gone.
    pub fn drop_held(&mut self, outputs: Vec<Output>) {
        for Output { packet, .. } in outputs {
            let reason = DropReason::InStateInvalid;
            self.engine.count_drop(reason);
            self.intake.dropped(&mut self.engine, Direction::Open, reason, packet);
        }
    }

    /// Opened packets that wait until their numbers are noted.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives a received packet back, or keeps it if its number may not be noted yet.
    pub(super) fn hold_unless_noted(&mut self, output: Output) -> Option<Output> {
        let session = output.session.filter(|_| self.windows_to.is_some());
        let Some(session) = session else { return Some(output) };
        match self.engine.sad().noted(session) {
            Some((top, limit)) if top > limit && !planted(Fault::DeliveredBeforeNoted) => {
                self.hold(session, top, output)
            }
            _ => return Some(output),
        }
        None
    }

    /// Keeps a packet until all is noted that its SA has received by now.
    #[cold]
    fn hold(&mut self, session: SessionId, until: u64, output: Output) {
        let Err(output) = self.held.put(session, until, output) else {
            self.counts.held += 1;
            return;
        };
        let reason = DropReason::InStateNotNoted;
        self.engine.count_drop(reason);
        self.intake.dropped(&mut self.engine, Direction::Open, reason, output.packet);
    }
}
