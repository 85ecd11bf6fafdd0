//! Which gateway is active: heartbeats, terms, sessions.

use super::state::{Beat, Broken, Heard, Message, Process, State};
use super::{Pair, Planted};

impl Pair {
    /// Whether a gateway has all records of the peer, and whether it was the one that continued alone.
    fn complete(&self, state: &State, g: usize) -> (bool, bool) {
        let gateway = &state.gateways[g];
        let Some(process) = &gateway.process else { return (false, false) };
        let note = gateway.disk.note;
        let may_be_alone = process.is_peer_unmerged && !self.is(Planted::PeerStillAlone);
        let of_both = process.complete.is_some_and(|complete| complete >= process.term) && !may_be_alone;
        (of_both, note.unmerged && note.complete.is_some_and(|complete| complete >= note.term))
    }

    /// The heartbeat of a gateway.
    pub(super) fn beat(&self, state: &State, g: usize) -> Option<Beat> {
        let gateway = &state.gateways[g];
        let process = gateway.process.as_ref()?;
        let heard = Heard { is_active: process.is_active, term: process.term, has_resigned: false };
        let wants = if process.is_active { process.lacks } else { !self.complete(state, g).0 };
        Some(Beat {
            heard,
            unmerged: gateway.disk.note.unmerged,
            wants,
            session: process.session,
            accepted: state.observer.accepted[g],
        })
    }

    /// Reads the next message.
    pub(super) fn deliver(&self, state: &mut State, g: usize) {
        if state.gateways[g].queue.is_empty() {
            return;
        }
        let message = state.gateways[g].queue.remove(0);
        let Some(process) = &mut state.gateways[g].process else { return };
        match message {
            Message::Note { session, at, records } => {
                match self.holds(state, g) {
                    Some(both) => self.note(state, g, records, both),
                    None => _ = state.gateways[g].raise(records, self.is(Planted::MergeLowers)),
                }
                state.say(g, Message::Noted { session, at });
            }
            Message::Noted { session, at } => {
                let is_older = process.session != Some(session);
                if process.session.is_some() && (!is_older || self.is(Planted::AcknowledgementOfOlderSession))
                {
                    process.acknowledged = process.acknowledged.max(at);
                }
            }
            Message::Merge { records, is_active, term, is_blank, is_whole } => {
                self.merge(state, g, (records, is_active, term), (is_blank, is_whole));
            }
            Message::Merged => {
                if process.session.is_some() && process.merge_sent {
                    process.is_merged = true;
                    state.gateways[g].disk.note.unmerged = false;
                }
            }
            Message::Resign { term, unmerged, accepted } => {
                process.is_peer_unmerged = unmerged && !self.is(Planted::UnmergedIgnored);
                let heard = Heard { is_active: false, term, has_resigned: true };
                self.hear(state, g, heard, accepted);
            }
        }
    }

    /// Receives a heartbeat of the other gateway.
    pub(super) fn hear_beat(&self, state: &mut State, g: usize) {
        let Some(beat) = self.beat(state, 1 - g) else { return };
        state.gateways[g].is_greeted = true;
        let Some(process) = &mut state.gateways[g].process else { return };
        let unmerged = beat.unmerged && !self.is(Planted::UnmergedIgnored);
        (process.peer_wants, process.is_peer_unmerged) = (beat.wants, unmerged);
        let is_news = beat.session.is_none() || beat.session != process.received_session;
        if unmerged && is_news {
            process.complete = None;
        }
        self.hear(state, g, beat.heard, beat.accepted);
        // A standby without unmerged records.
        let other = state.gateways[1 - g].process.as_ref();
        let is_merged = other.is_some_and(|other| !other.is_active && !other.is_running) && !beat.unmerged;
        let plane = state.gateways[g].process.as_ref().and_then(|process| process.plane);
        let lacks = plane.is_some_and(|plane| beat.accepted & !plane.received.mask != 0);
        if is_merged && lacks && !state.observer.packets_waived {
            state.observer.broken.get_or_insert(Broken::Incomplete);
        }
    }

    fn hear(&self, state: &mut State, g: usize, heard: Heard, accepted: u8) {
        let gateway = &mut state.gateways[g];
        let Some(process) = &mut gateway.process else { return };
        let (own, was_active) = (process.term, process.is_active);
        process.peer = Some(heard);
        process.term = own.max(heard.term);
        let gives_way = heard.term > own || heard.term == own && g == 1;
        if was_active && heard.is_active && gives_way {
            self.stand_down(state, g);
        } else if process.term > own {
            if was_active {
                (process.lacks, process.merge_sent, process.is_merged) = (true, false, false);
            }
            let term = process.term;
            if !self.is(Planted::TermForgotten) {
                gateway.disk.note.term = term;
            }
            if was_active && self.is(Planted::HeardTermIsComplete) {
                gateway.disk.note.complete = Some(term);
            }
        }
        let Some(process) = &state.gateways[g].process else { return };
        let is_running = process.is_running;
        let is_alone = process.is_active || self.complete(state, g).1;
        let observer = &mut state.observer;
        // A gateway that was active in a higher term merges the records of the other one; until then it may accept those packets once.
        if heard.term > own || !is_alone {
            observer.is_split[g] = false;
            observer.told[g] |= accepted;
        }
        if !is_running {
            observer.excused[g] &= !observer.told[g];
        }
    }

    /// An active gateway becomes a standby.
    pub(super) fn stand_down(&self, state: &mut State, g: usize) {
        let gateway = &mut state.gateways[g];
        let Some(process) = &mut gateway.process else { return };
        process.is_active = false;
        process.complete = None;
        if !self.is(Planted::TermForgotten) {
            gateway.disk.note.term = process.term;
        }
        if !self.is(Planted::StandDownSendsNothing) {
            (process.merge_sent, process.is_merged) = (false, false);
            gateway.disk.note.unmerged = true;
        }
    }

    /// Whether a gateway would be active if its records were complete; the time that it waits is not a part of the model.
    pub(super) fn would_serve(&self, state: &State, g: usize) -> bool {
        let Some(process) = &state.gateways[g].process else { return false };
        let is_silent = !state.gateways[g].is_connected
            || state.is_cut
            || state.gateways[1 - g].process.as_ref().is_none_or(|other| other.is_paused);
        // The first heartbeat arrives with the connection.
        let is_met = state.gateways[g].is_greeted || is_silent;
        if process.is_active || !is_met {
            return false;
        }
        match process.peer {
            // If the link works, the other gateway's heartbeat arrives in time.
            None => state.is_cut || state.gateways[1 - g].process.is_none(),
            Some(peer) if peer.has_resigned => true,
            Some(_) if is_silent => true,
            Some(peer) if peer.is_active => false,
            // If the links work, all records of the peer arrive before the time limit.
            Some(_) => {
                let (of_both, alone) = self.complete(state, g);
                let has_come = process.received_session.is_some();
                g == 0 && (of_both || alone && has_come)
            }
        }
    }

    /// Becomes active, or waits for complete records.
    pub(super) fn elect(&self, state: &mut State, g: usize) {
        let (of_both, alone) = self.complete(state, g);
        let has_other_active = state.gateways[1 - g].process.as_ref().is_some_and(|other| other.is_active);
        let gateway = &mut state.gateways[g];
        let Some(process) = &mut gateway.process else { return };
        if !of_both && !alone && !self.is(Planted::StaleServes) {
            process.waits = true;
            return;
        }
        if state.observer.is_lost[g] && process.peer.is_none() {
            // An older copy of a directory is noticed by a peer only.
            state.observer.all_waived = true;
        }
        (process.waits, process.is_active) = (false, true);
        process.term += 1;
        process.peer = process.peer.map(|peer| Heard { is_active: false, has_resigned: false, ..peer });
        process.complete = None;
        (process.merge_sent, process.is_merged) = (false, false);
        let term = process.term;
        let note = &mut gateway.disk.note;
        if !self.is(Planted::TermForgotten) {
            note.term = term;
        }
        (note.complete, note.unmerged) = (Some(term), true);
        gateway.disk.has_joined = true;
        if has_other_active {
            state.observer.is_split = [true, true];
        }
    }

    /// Begins a session.
    pub(super) fn open_session(&self, state: &mut State, g: usize) {
        state.sessions += 1;
        let session = state.sessions;
        if let Some(process) = &mut state.gateways[g].process {
            process.session = Some(session);
            (process.sent, process.acknowledged) = (0, 0);
            (process.merge_sent, process.is_merged) = (false, false);
        }
        if let Some(other) = &mut state.gateways[1 - g].process {
            other.source = Some(session);
        }
    }

    /// Whether all records have to be sent, after those that were begun in another session.
    pub(super) fn sends_all(&self, state: &State, g: usize) -> bool {
        let gateway = &state.gateways[g];
        let Some(process) = &gateway.process else { return false };
        let is_due =
            process.is_active || !process.is_running && (gateway.disk.note.unmerged || process.peer_wants);
        let is_settled =
            process.pending.is_none_or(|pending| pending.at.map(|(session, _)| session) == process.session);
        process.session.is_some() && is_due && is_settled && !process.merge_sent
    }

    /// Whether all records have to be sent again: to a peer that still reports that it lacks records, when all earlier messages were
    /// answered. An answer counts for the last transmission only.
    pub(super) fn sends_again(&self, state: &State, g: usize) -> bool {
        let [own, other] = [g, 1 - g].map(|one| &state.gateways[one]);
        let (Some(process), Some(peer)) = (&own.process, &other.process) else { return false };
        let is_due = process.is_active || !process.is_running;
        let is_quiet = own.queue.is_empty() && other.queue.is_empty() && !peer.owes_answer;
        let wants = self.sends_again && process.peer_wants;
        process.session.is_some() && process.merge_sent && wants && is_due && is_quiet
    }

    /// Sends all records.
    pub(super) fn send_all(&self, state: &mut State, g: usize) {
        let records = self.everything(state, g);
        let is_blank = !state.gateways[g].disk.has_joined;
        let (of_both, alone) = self.complete(state, g);
        let Some(process) = &mut state.gateways[g].process else { return };
        process.merge_sent = true;
        let (is_active, term) = (process.is_active, process.term);
        let is_whole = of_both || alone || is_active && !process.lacks;
        state.say(g, Message::Merge { records, is_active, term, is_blank, is_whole });
    }

    /// A gateway notices the end of the connection.
    pub(super) fn notice_loss(&self, state: &mut State, g: usize) {
        let gateway = &mut state.gateways[g];
        (gateway.is_connected, gateway.is_greeted) = (false, false);
        gateway.queue.clear();
        if let Some(process) = &mut gateway.process {
            process.session = None;
        }
    }

    /// A process starts.
    pub(super) fn boot(&self, state: &mut State, g: usize) {
        let gateway = &mut state.gateways[g];
        let term = gateway.disk.note.term;
        let own = gateway.disk.accepted;
        gateway.process = Some(Process { term, ..Process::default() });
        if own {
            self.take_word(state, g);
        }
    }

    /// The operator's acceptance is used.
    pub(super) fn take_word(&self, state: &mut State, g: usize) {
        let disk = &mut state.gateways[g].disk;
        disk.accepted = false;
        (disk.note.unmerged, disk.note.complete) = (true, Some(disk.note.term));
        if let Some(process) = &mut state.gateways[g].process {
            process.lacks = true;
        }
        state.observer.packets_waived = true;
        if state.observer.is_lost.contains(&true) {
            state.observer.all_waived = true;
        }
    }
}
