//! All steps that can happen next.

use super::Pair;
use super::state::{Broken, Disk, Faults, Message, Process, State};

/// A step, and its gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Boot(usize),
    Connect,
    NoticeLoss(usize),
    HearBeat(usize),
    Deliver(usize),
    OpenSession(usize),
    SendAll(usize),
    SendAgain(usize),
    Elect(usize),
    Serve(usize),
    Restart(usize),
    EndPlane(usize),
    Reserve(usize),
    RaiseLimit(usize, u8),
    UseRecorded(usize),
    GiveUpPeer(usize),
    Send(usize),
    Receive(usize, u8),
    Crash(usize),
    Stop(usize),
    Cut,
    Heal,
    Break(usize),
    Pause(usize),
    Resume(usize),
    Stall(usize),
    LoseDirectory(usize),
    Copy(usize),
    Restore(usize),
    Accept(usize),
}

impl Pair {
    /// The steps that are possible.
    pub(super) fn possible(&self, state: &State, steps: &mut Vec<Step>) {
        if state.observer.broken.is_some() {
            return;
        }
        let [one, two] = &state.gateways;
        let awake = |process: &Option<Process>| process.as_ref().is_some_and(|process| !process.is_paused);
        if awake(&one.process)
            && awake(&two.process)
            && !state.is_cut
            && !one.is_connected
            && !two.is_connected
        {
            steps.push(Step::Connect);
        }
        match state.is_cut {
            // Both have closed the connection of a link that was cut for longer than `silence`.
            true if !one.is_connected && !two.is_connected => steps.push(Step::Heal),
            false if state.faults.cuts > 0 => steps.push(Step::Cut),
            _ => {}
        }
        for g in 0..2 {
            match &state.gateways[g].process {
                None => self.possible_down(state, g, steps),
                Some(process) if process.is_paused => steps.push(Step::Resume(g)),
                Some(process) => {
                    self.possible_links(state, g, process, steps);
                    self.possible_roles(state, g, process, steps);
                    self.possible_packets(process, g, steps);
                    possible_faults(state, g, process, steps);
                }
            }
        }
    }

    fn possible_down(&self, state: &State, g: usize, steps: &mut Vec<Step>) {
        steps.push(Step::Boot(g));
        let may_be_lost = self.loses_any || state.other_has_all(g);
        let disk = state.gateways[g].disk;
        if state.faults.losses > 0 && may_be_lost && disk != Disk::default() {
            steps.push(Step::LoseDirectory(g));
        }
        if state.gateways[g].copy.is_some_and(|copy| copy != disk) && may_be_lost {
            steps.push(Step::Restore(g));
        }
    }

    fn possible_links(&self, state: &State, g: usize, process: &Process, steps: &mut Vec<Step>) {
        let [own, other] = [g, 1 - g].map(|one| &state.gateways[one]);
        if !own.is_connected {
            return;
        }
        if !other.is_connected || state.is_cut {
            steps.push(Step::NoticeLoss(g));
        }
        if !own.queue.is_empty() && own.is_greeted {
            steps.push(Step::Deliver(g));
        }
        if !other.is_connected || state.is_cut {
            return;
        }
        if other.process.as_ref().is_some_and(|process| !process.is_paused) {
            steps.push(Step::HearBeat(g));
        }
        if process.session.is_none() {
            steps.push(Step::OpenSession(g));
        }
        if self.sends_all(state, g) {
            steps.push(Step::SendAll(g));
        }
        if self.sends_again(state, g) {
            steps.push(Step::SendAgain(g));
        }
    }

    fn possible_roles(&self, state: &State, g: usize, process: &Process, steps: &mut Vec<Step>) {
        if self.would_serve(state, g) {
            steps.push(Step::Elect(g));
        }
        match (process.is_active, process.is_running) {
            (true, false) => steps.push(Step::Serve(g)),
            (true, true) if process.restarts => steps.push(Step::Restart(g)),
            (false, true) => steps.push(Step::EndPlane(g)),
            _ => {}
        }
        if process.waits && state.faults.words > 0 {
            steps.push(Step::Accept(g));
        }
    }

    fn possible_packets(&self, process: &Process, g: usize, steps: &mut Vec<Step>) {
        if let Some(pending) = process.pending {
            if self.is_acknowledged(process, pending) {
                steps.push(Step::UseRecorded(g));
            } else if pending.at.map(|(session, _)| session) != process.session {
                steps.push(Step::GiveUpPeer(g));
            }
        }
        let Some(plane) = process.plane else { return };
        let is_idle = process.pending.is_none();
        if self.sends && is_idle && plane.last <= plane.sent + 1 && plane.last < self.number_max {
            steps.push(Step::Reserve(g));
        }
        if self.sends && plane.sent < plane.last && plane.iv_sent < plane.iv_last {
            steps.push(Step::Send(g));
        }
        if self.receives {
            let limits = plane.limit + 1..=self.packet_max;
            steps.extend(limits.filter(|_| is_idle).map(|limit| Step::RaiseLimit(g, limit)));
            let packets = 1..=plane.limit.min(self.packet_max);
            let new = packets.filter(|packet| plane.received.mask & 1 << packet == 0);
            steps.extend(new.map(|packet| Step::Receive(g, packet)));
        }
    }

    /// The state after a step.
    pub(super) fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Boot(g) => self.boot(state, g),
            Step::Connect => {
                state.gateways.iter_mut().for_each(|gateway| {
                    gateway.is_connected = true;
                    gateway.queue.clear();
                });
            }
            Step::NoticeLoss(g) => self.notice_loss(state, g),
            Step::HearBeat(g) => self.hear_beat(state, g),
            Step::Deliver(g) => self.deliver(state, g),
            Step::OpenSession(g) => self.open_session(state, g),
            Step::SendAll(g) | Step::SendAgain(g) => self.send_all(state, g),
            Step::Elect(g) => self.elect(state, g),
            Step::Serve(g) => self.serve(state, g),
            Step::Restart(g) => {
                self.end_plane(state, g);
                self.serve(state, g);
            }
            Step::EndPlane(g) => {
                self.end_plane(state, g);
                self.stopped(state, g);
            }
            Step::Reserve(g) => {
                let numbers = self.next_numbers(state, g);
                self.begin(state, g, numbers);
            }
            Step::RaiseLimit(g, limit) => self.begin(state, g, super::state::Kind::Limit(limit)),
            Step::UseRecorded(g) => self.use_recorded(state, g, false),
            Step::GiveUpPeer(g) => self.use_recorded(state, g, true),
            Step::Send(g) => self.send(state, g),
            Step::Receive(g, packet) => self.receive(state, g, packet),
            fault => self.fail(state, fault),
        }
        look_at_terms(state);
    }

    fn fail(&self, state: &mut State, fault: Step) {
        match fault {
            Step::Crash(g) => {
                state.faults.crashes -= 1;
                self.end(state, g);
            }
            Step::Stop(g) => {
                state.faults.stops -= 1;
                self.end_plane(state, g);
                self.stopped(state, g);
                let term = state.gateways[g].process.as_ref().map_or(0, |process| process.term);
                let accepted = state.observer.accepted[g];
                let unmerged = state.gateways[g].disk.note.unmerged;
                state.say(g, Message::Resign { term, unmerged, accepted });
                self.end(state, g);
            }
            Step::Cut => {
                state.faults.cuts -= 1;
                state.is_cut = true;
            }
            Step::Heal => state.is_cut = false,
            Step::Break(g) => {
                state.faults.breaks -= 1;
                self.notice_loss(state, g);
            }
            Step::Pause(g) => {
                state.faults.pauses -= 1;
                state.gateways[g].process.iter_mut().for_each(|process| process.is_paused = true);
            }
            Step::Resume(g) => self.resume(state, g),
            Step::Stall(g) => {
                state.faults.stalls -= 1;
                self.use_recorded(state, g, true);
            }
            Step::LoseDirectory(g) => {
                state.faults.losses -= 1;
                state.gateways[g].disk = Disk::default();
                state.observer.is_lost[g] = true;
            }
            Step::Copy(g) => {
                state.faults.restores -= 1;
                state.gateways[g].copy = Some(state.gateways[g].disk);
            }
            Step::Restore(g) => {
                if let Some(copy) = state.gateways[g].copy.take() {
                    state.gateways[g].disk = copy;
                    state.observer.is_lost[g] = true;
                }
            }
            Step::Accept(g) => {
                state.faults.words -= 1;
                self.take_word(state, g);
            }
            _ => {}
        }
    }

    /// A process ends.
    fn end(&self, state: &mut State, g: usize) {
        self.notice_loss(state, g);
        state.gateways[g].process = None;
        state.observer.excused[g] &= !state.observer.told[g];
    }

    fn resume(&self, state: &mut State, g: usize) {
        let Some(process) = &mut state.gateways[g].process else { return };
        process.is_paused = false;
        process.complete = None;
        if process.is_active && process.peer.is_some() {
            self.stand_down(state, g);
        }
        // Connections that were silent for longer than `silence` are closed.
        self.notice_loss(state, g);
    }

    /// Whether exactly one gateway becomes active if no further fault happens: the links work, and each gateway
    /// does what is due. After the loss of a directory, an operator may be needed.
    pub(super) fn converges(&self, state: &State) -> bool {
        if !self.looks_ahead
            || state.faults != Faults::default()
            || state.observer.is_lost.contains(&true)
            || state.observer.broken.is_some()
        {
            return true;
        }
        let mut later = state.clone();
        self.converge(&mut later);
        let serves = |process: &Process| process.is_active && process.is_running && !process.restarts;
        let serving = later.gateways.iter().filter_map(|gateway| gateway.process.as_ref());
        serving.filter(|process| serves(process)).count() == 1
    }

    /// Does what is due, in turns.
    pub(super) fn converge(&self, state: &mut State) {
        for _ in 0..12 {
            for g in 0..2 {
                self.do_due(state, g);
            }
        }
    }

    fn do_due(&self, state: &mut State, g: usize) {
        let possible = |state: &State| {
            let mut steps = Vec::new();
            self.possible(state, &mut steps);
            steps
        };
        let due = [
            Step::Resume(g),
            Step::Boot(g),
            Step::NoticeLoss(0),
            Step::NoticeLoss(1),
            Step::Heal,
            Step::Connect,
            Step::HearBeat(0),
            Step::HearBeat(1),
            Step::OpenSession(g),
            Step::UseRecorded(g),
            Step::GiveUpPeer(g),
            Step::SendAll(g),
            Step::SendAgain(g),
            Step::Restart(g),
            Step::EndPlane(g),
            Step::Elect(g),
            Step::Serve(g),
        ];
        for step in due {
            if possible(state).contains(&step) {
                self.take(state, step);
            }
        }
        while possible(state).contains(&Step::Deliver(g)) {
            self.deliver(state, g);
        }
    }
}

fn possible_faults(state: &State, g: usize, process: &Process, steps: &mut Vec<Step>) {
    let faults = state.faults;
    let is_connected = state.gateways[g].is_connected;
    let waits = process.pending.is_some_and(|pending| {
        pending.at.is_some_and(|(session, at)| process.session == Some(session) && process.acknowledged < at)
    });
    let possible = [
        (faults.crashes > 0, Step::Crash(g)),
        (faults.stops > 0, Step::Stop(g)),
        (faults.breaks > 0 && is_connected, Step::Break(g)),
        (faults.pauses > 0, Step::Pause(g)),
        (faults.stalls > 0 && waits, Step::Stall(g)),
        (faults.restores > 0 && state.gateways[g].copy.is_none(), Step::Copy(g)),
    ];
    steps.extend(possible.into_iter().filter(|(is_possible, _)| *is_possible).map(|(_, step)| step));
}

/// A gateway must not forget a term, unless its directory was lost.
fn look_at_terms(state: &mut State) {
    for g in 0..2 {
        let Some(process) = &state.gateways[g].process else { continue };
        let term = process.term;
        let observer = &mut state.observer;
        if term < observer.terms[g] && !observer.is_lost[g] {
            observer.broken.get_or_insert(Broken::TermFell);
        }
        observer.terms[g] = term;
    }
}
