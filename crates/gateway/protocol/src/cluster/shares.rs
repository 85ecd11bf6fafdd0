//! The owners of shares, and the use of a share's SAs by a data plane.

use super::state::{Broken, Claim, Held, INBOUND, Late, Name, OUTBOUND, Plane, Process, SHARES, State};
use super::steps::Answer;
use super::{Cluster, Planted};

/// The share of an SA by a version of the file.
pub fn share_of(sa: usize, file: u8) -> usize {
    match (sa, file) {
        (OUTBOUND, 0) => 0,
        _ => 1,
    }
}

impl Cluster {
    /// A process starts and becomes a member; the lease of the one before it is revoked.
    pub(super) fn boot(&self, state: &mut State, g: usize) {
        let gateway = &mut state.gateways[g];
        gateway.processes += 1;
        gateway.process = Some(Process { number: gateway.processes, ..Process::default() });
        self.register(state, g);
    }

    /// Becomes a member again, if its lease has ended.
    pub(super) fn register(&self, state: &mut State, g: usize) {
        let Some(name) = state.name(g) else { return };
        if state.store.members[g] != Some(name) {
            self.end_lease(state, g);
            state.store.members[g] = Some(name);
        }
    }

    /// A lease ends, and with it the keys of its owner.
    pub(super) fn end_lease(&self, state: &mut State, g: usize) {
        let ended = state.store.members[g].take();
        for owner in &mut state.store.owners {
            if owner.is_some() && *owner == ended {
                *owner = None;
            }
        }
    }

    /// Reads the owner of a share and acts accordingly.
    pub(super) fn look(&self, state: &mut State, g: usize, share: usize) {
        let Some(own) = state.name(g).filter(|name| state.lives(*name)) else { return };
        let (owner, claim) = (state.store.owners[share], state.store.claims[share]);
        let records = state.store.records[share];
        let Some(process) = &mut state.gateways[g].process else { return };
        match (owner, &mut process.held[share]) {
            (None, None) => {
                state.store.owners[share] = Some(own);
                state.store.claims[share] =
                    Claim { revision: claim.revision + 1, owner: Some(own), renews: None };
            }
            (None, Some(held)) => {
                if claim.revision == held.fence || self.is(Planted::ResumedWithoutClaim) {
                    held.fence = claim.revision;
                    state.store.owners[share] = Some(own);
                } else if self.is_renewal(claim, own, held) {
                    held.fence = claim.revision;
                } else {
                    process.held[share] = None;
                }
            }
            (Some(owner), None) if owner == own => {
                if claim.owner == Some(own) {
                    process.terms += 1;
                    process.held[share] = Some(Held {
                        term: process.terms,
                        fence: claim.revision,
                        is_doubtful: false,
                        leaving: None,
                        records: Some(records),
                    });
                }
            }
            (Some(owner), Some(held)) if owner == own => held.leaving = None,
            (Some(_), Some(_)) => process.held[share] = None,
            (Some(_), None) => {}
        }
    }

    /// Whether a claim renews the ownership, and is not a new one.
    fn is_renewal(&self, claim: Claim, own: Name, held: &Held) -> bool {
        claim.owner == Some(own) && (claim.renews == Some(held.term) || self.is(Planted::HandedBackUnseen))
    }

    /// Makes the data plane serve a share.
    pub(super) fn serve(&self, state: &mut State, g: usize, share: usize) {
        let Some(process) = state.gateways[g].process else { return };
        let Some(held) = process.held[share].filter(|held| held.leaving.is_none()) else { return };
        let of_share = |sa: &usize| share_of(*sa, process.file) == share && [self.sends, self.receives][*sa];
        for sa in (0..2).filter(of_share) {
            let is_elsewhere = state.store.places[sa].is_some_and(|place| usize::from(place) != share);
            if is_elsewhere && !self.is(Planted::PlaceNotLookedAt) {
                return;
            }
        }
        let gateway = &mut state.gateways[g];
        if let Some(records) = held.records.filter(|_| !self.is(Planted::SharesBeginAnew)) {
            // Also those of an SA that the file does not have yet.
            gateway.disk[OUTBOUND] = gateway.disk[OUTBOUND].max(records[OUTBOUND]);
            if records[INBOUND] > 0 && records[INBOUND] >= gateway.certain {
                gateway.disk[INBOUND] = records[INBOUND];
            }
        }
        let Some(process) = &mut gateway.process else { return };
        process.serving[share] = Some(held.term);
        process.held[share] = Some(Held { records: None, ..held });
        for sa in (0..2).filter(of_share) {
            self.start(state, g, sa);
        }
    }

    fn start(&self, state: &mut State, g: usize, sa: usize) {
        let limit = state.gateways[g].disk[sa];
        let Some(process) = &mut state.gateways[g].process else { return };
        let received = (1 << (limit + 1)) - 1;
        process.planes[sa] = Some(Plane { sent: limit, limit, received });
        let share = share_of(sa, process.file);
        // A gateway without a claim, or whose claim has changed, records and uses nothing.
        let is_fenced =
            process.held[share].is_none_or(|held| held.fence != state.store.claims[share].revision);
        let used = [state.numbers, state.accepted][sa];
        if !is_fenced && used & !u16::from(received) != 0 {
            state.broken.get_or_insert(Broken::NotFound);
        }
    }

    /// Makes the data plane stop serving a share: unused numbers are returned, if the claim is still the same.
    pub(super) fn release(&self, state: &mut State, g: usize, share: usize) {
        let Some(process) = &mut state.gateways[g].process else { return };
        let serving = process.serving[share].take();
        let held = process.held[share].filter(|held| Some(held.term) == serving && !held.is_doubtful);
        for sa in (0..2).filter(|sa| share_of(*sa, process.file) == share) {
            let Some(plane) = process.planes[sa].take() else { continue };
            let gives_back = sa == OUTBOUND && plane.sent < plane.limit && process.is_placed[sa];
            let Some(held) = held.filter(|_| gives_back) else { continue };
            let value = plane.sent.saturating_sub(u8::from(self.is(Planted::GivenBackTooMuch)));
            let claims = &state.store.claims[share];
            if state.gateways[g].disk[sa] == plane.limit && claims.revision == held.fence {
                state.store.records[share][sa] = value;
                state.gateways[g].disk[sa] = value;
            }
            return;
        }
    }

    /// Hands over a share that it does not serve any more to another gateway.
    pub(super) fn hand_over(&self, state: &mut State, g: usize, share: usize, answer: Answer) {
        let Some(held) = state.gateways[g].process.and_then(|process| process.held[share]) else { return };
        let Some(to) = held.leaving else { return };
        let request = Late::HandOver { share: share as u8, fence: held.fence, to };
        let is_done = match answer {
            Answer::Comes => state.carry_out(request, true),
            Answer::LostBehind => {
                state.carry_out(request, true);
                return;
            }
            Answer::LostBefore => {
                state.late.push(request);
                return;
            }
        };
        let (Some(own), claim) = (state.name(g), state.store.claims[share]) else { return };
        let Some(process) = &mut state.gateways[g].process else { return };
        match is_done {
            false if self.is_renewal(claim, own, &held) => {
                process.held[share] = Some(Held { fence: claim.revision, ..held });
            }
            _ => process.held[share] = None,
        }
    }

    /// Records the next number or limit of an SA and uses it.
    pub(super) fn record(&self, state: &mut State, g: usize, sa: usize, answer: Answer) {
        let Some(own) = state.name(g) else { return };
        let Some(process) = &mut state.gateways[g].process else { return };
        let share = share_of(sa, process.file);
        if !process.is_placed[sa] && !self.is(Planted::PlaceNotLookedAt) {
            let place = state.store.places[sa].get_or_insert(share as u8);
            if usize::from(*place) != share {
                return;
            }
            process.is_placed[sa] = true;
        }
        let Some(mut held) = process.held[share] else { return };
        if process.serving[share] != Some(held.term) {
            return;
        }
        let claim = &mut state.store.claims[share];
        if held.is_doubtful {
            if claim.revision == held.fence {
                *claim = Claim { revision: claim.revision + 1, owner: Some(own), renews: Some(held.term) };
            } else if !self.is_renewal(*claim, own, &held) {
                process.held[share] = None;
                return;
            }
            (held.fence, held.is_doubtful) = (claim.revision, false);
            process.held[share] = Some(held);
        }
        let value = state.gateways[g].disk[sa] + 1;
        self.write(state, (g, sa, share), (held, value), answer);
    }

    fn write(
        &self,
        state: &mut State,
        (g, sa, share): (usize, usize, usize),
        (held, value): (Held, u8),
        answer: Answer,
    ) {
        let fence = held.fence;
        let request = Late::Record { share: share as u8, fence, sa: sa as u8, value };
        let compares = !self.is(Planted::ClaimNotCompared);
        match answer {
            Answer::Comes => {
                if !state.carry_out(request, compares) {
                    return self.find_out(state, g, share, held);
                }
            }
            lost => {
                if lost == Answer::LostBefore {
                    state.late.push(request);
                } else {
                    state.carry_out(request, compares);
                }
                let Some(process) = &mut state.gateways[g].process else { return };
                let is_doubtful = !self.is(Planted::DoubtForgotten);
                process.held[share] = Some(Held { is_doubtful, ..held });
                if !self.is(Planted::UsedUnrecorded) {
                    return;
                }
            }
        }
        let gateway = &mut state.gateways[g];
        gateway.disk[sa] = value;
        if let Some(plane) = gateway.process.as_mut().and_then(|process| process.planes[sa].as_mut()) {
            plane.limit = value;
        }
    }

    /// A claim has changed. If it is a renewal, the next step tries the record again.
    fn find_out(&self, state: &mut State, g: usize, share: usize, held: Held) {
        let (Some(own), claim) = (state.name(g), state.store.claims[share]) else { return };
        let Some(process) = &mut state.gateways[g].process else { return };
        process.held[share] = self.is_renewal(claim, own, &held).then_some(Held {
            fence: claim.revision,
            is_doubtful: false,
            ..held
        });
    }

    /// Reads the other file, unless it moves an SA that has records.
    pub(super) fn reload(&self, state: &mut State, g: usize) {
        let Some(process) = state.gateways[g].process else { return };
        let to = share_of(OUTBOUND, 1);
        let is_elsewhere = state.store.places[OUTBOUND].is_some_and(|place| usize::from(place) != to);
        let is_seen = process.is_placed[OUTBOUND] || process.serving[to].is_some() && is_elsewhere;
        if is_seen && !self.is(Planted::PlaceNotLookedAt) {
            return;
        }
        let from = share_of(OUTBOUND, 0);
        let serving = process.serving[from];
        self.release(state, g, from);
        if let Some(process) = &mut state.gateways[g].process {
            (process.file, process.serving[from]) = (1, serving);
            if process.serving[to].is_some() {
                self.start(state, g, OUTBOUND);
            }
        }
    }

    /// Whether a data plane serves a share under another claim than the present one, or under none.
    pub(super) fn serves_in_vain(process: &Process, share: usize) -> bool {
        let held = process.held[share].filter(|held| held.leaving.is_none());
        process.serving[share].is_some() && process.serving[share] != held.map(|held| held.term)
    }

    /// Uses a number.
    pub(super) fn send(state: &mut State, g: usize) {
        let Some(plane) =
            state.gateways[g].process.as_mut().and_then(|process| process.planes[OUTBOUND].as_mut())
        else {
            return;
        };
        plane.sent += 1;
        let number = 1 << plane.sent;
        if state.numbers & number != 0 {
            state.broken.get_or_insert(Broken::NumberTwice);
        }
        state.numbers |= number;
    }

    /// Accepts a packet.
    pub(super) fn receive(state: &mut State, g: usize, packet: u8) {
        let gateway = &mut state.gateways[g];
        gateway.certain = gateway.certain.max(packet);
        if let Some(plane) = gateway.process.as_mut().and_then(|process| process.planes[INBOUND].as_mut()) {
            plane.received |= 1 << packet;
        }
        if state.accepted & 1 << packet != 0 {
            state.broken.get_or_insert(Broken::PacketTwice);
        }
        state.accepted |= 1 << packet;
    }

    /// The gateways to which a share may go.
    pub(super) fn others(state: &State, g: usize) -> impl Iterator<Item = Name> {
        let members = state.store.members;
        members.into_iter().enumerate().filter(move |(other, _)| *other != g).filter_map(|(_, name)| name)
    }

    /// All shares.
    pub(super) fn shares(&self) -> impl Iterator<Item = usize> + use<> {
        let used = [self.sends, self.receives || self.faults.reloads > 0];
        (0..SHARES).filter(move |share| used[*share])
    }
}
