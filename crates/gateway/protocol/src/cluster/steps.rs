//! All steps that can happen next.

use super::Cluster;
use super::shares::share_of;
use super::state::{INBOUND, Name, OUTBOUND, State};

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The store answers.
    Comes,
    /// The store performs the request and the answer is lost.
    LostBehind,
    /// The request is late: the store may perform it later, or not at all.
    LostBefore,
}

/// A step, and its gateway, share or SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Look(usize, usize),
    Register(usize),
    Serve(usize, usize),
    Release(usize, usize),
    Leave(usize, usize, Name),
    HandOver(usize, usize, Answer),
    Record(usize, usize, Answer),
    Send(usize),
    Receive(usize, u8),
    CarryOutLate(usize),
    EndLease(usize),
    Crash(usize),
    Boot(usize),
    Reload(usize),
    LoseDirectory(usize),
}

const LOST: [Answer; 2] = [Answer::LostBehind, Answer::LostBefore];

impl Cluster {
    /// The steps that are possible.
    pub(super) fn possible(&self, state: &State, steps: &mut Vec<Step>) {
        if state.broken.is_some() {
            return;
        }
        steps.extend((0..state.late.len()).map(Step::CarryOutLate));
        for g in 0..self.gateways {
            let Some(process) = &state.gateways[g].process else {
                if state.store.members[g].is_some() {
                    steps.push(Step::EndLease(g));
                }
                steps.push(Step::Boot(g));
                if state.faults.losses > 0 {
                    steps.push(Step::LoseDirectory(g));
                }
                continue;
            };
            if state.name(g).is_some_and(|name| !state.lives(name)) {
                steps.push(Step::Register(g));
            } else if state.faults.leases > 0 {
                steps.push(Step::EndLease(g));
            }
            if state.faults.crashes > 0 {
                steps.push(Step::Crash(g));
            }
            if state.faults.reloads > 0 && process.file == 0 {
                steps.push(Step::Reload(g));
            }
            for share in self.shares() {
                steps.push(Step::Look(g, share));
                self.possible_of_share(state, g, share, steps);
            }
            self.possible_of_planes(state, g, steps);
        }
    }

    fn possible_of_share(&self, state: &State, g: usize, share: usize, steps: &mut Vec<Step>) {
        let Some(process) = &state.gateways[g].process else { return };
        if Cluster::serves_in_vain(process, share) {
            steps.push(Step::Release(g, share));
        }
        let Some(held) = process.held[share] else { return };
        match (held.leaving, process.serving[share]) {
            (None, None) => steps.push(Step::Serve(g, share)),
            (None, Some(_)) if state.faults.moves > 0 => {
                steps.extend(Cluster::others(state, g).map(|name| Step::Leave(g, share, name)));
            }
            (Some(_), None) => {
                steps.push(Step::HandOver(g, share, Answer::Comes));
                if state.faults.unanswered > 0 {
                    steps.extend(LOST.map(|answer| Step::HandOver(g, share, answer)));
                }
            }
            _ => {}
        }
    }

    fn possible_of_planes(&self, state: &State, g: usize, steps: &mut Vec<Step>) {
        let Some(process) = &state.gateways[g].process else { return };
        for sa in [OUTBOUND, INBOUND] {
            let Some(plane) = process.planes[sa] else { continue };
            if plane.limit < self.number_max && process.serving[share_of(sa, process.file)].is_some() {
                steps.push(Step::Record(g, sa, Answer::Comes));
                if state.faults.unanswered > 0 {
                    steps.extend(LOST.map(|answer| Step::Record(g, sa, answer)));
                }
            }
            if sa == OUTBOUND && plane.sent < plane.limit {
                steps.push(Step::Send(g));
            }
            if sa == INBOUND {
                let new = (1..=plane.limit).filter(|packet| plane.received & 1 << packet == 0);
                steps.extend(new.map(|packet| Step::Receive(g, packet)));
            }
        }
    }

    /// The state after a step.
    pub(super) fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Look(g, share) => self.look(state, g, share),
            Step::Register(g) => self.register(state, g),
            Step::Serve(g, share) => self.serve(state, g, share),
            Step::Release(g, share) => self.release(state, g, share),
            Step::Leave(g, share, to) => {
                state.faults.moves -= 1;
                if let Some(process) = &mut state.gateways[g].process
                    && let Some(held) = &mut process.held[share]
                {
                    held.leaving = Some(to);
                }
            }
            Step::HandOver(g, share, answer) => {
                state.faults.unanswered -= u8::from(answer != Answer::Comes);
                self.hand_over(state, g, share, answer);
            }
            Step::Record(g, sa, answer) => {
                state.faults.unanswered -= u8::from(answer != Answer::Comes);
                self.record(state, g, sa, answer);
            }
            Step::Send(g) => Cluster::send(state, g),
            Step::Receive(g, packet) => Cluster::receive(state, g, packet),
            Step::CarryOutLate(place) => {
                let late = state.late.remove(place);
                state.carry_out(late, !self.is(super::Planted::ClaimNotCompared));
            }
            Step::EndLease(g) => {
                state.faults.leases -= u8::from(state.gateways[g].process.is_some());
                self.end_lease(state, g);
            }
            Step::Crash(g) => {
                state.faults.crashes -= 1;
                state.gateways[g].process = None;
            }
            Step::Boot(g) => self.boot(state, g),
            Step::Reload(g) => {
                state.faults.reloads -= 1;
                self.reload(state, g);
            }
            Step::LoseDirectory(g) => {
                state.faults.losses -= 1;
                state.gateways[g].disk = [0; 2];
                state.gateways[g].certain = 0;
            }
        }
    }
}
