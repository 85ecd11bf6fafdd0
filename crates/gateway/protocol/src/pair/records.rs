//! How records are made, sent, merged and used.

use super::state::{Broken, Kind, Message, Pending, Plane, Process, Records, State, Window, below};
use super::{Pair, Planted};

/// Numbers of a stripe, in bits, and of a block.
const STRIPE_BITS: u32 = 1;
const BLOCK: u8 = 2;

/// The numbers above `mark` that a gateway may use, as `Territory::block`: the last one before them and the last of them.
fn block(number: usize, mark: u8) -> (u8, u8) {
    let mut first = mark + 1;
    if usize::from(first >> STRIPE_BITS) & 1 != number {
        first = ((first >> STRIPE_BITS) + 1) << STRIPE_BITS;
    }
    let last = (first + BLOCK - 1).min(first | ((1 << STRIPE_BITS) - 1));
    (first - 1, last)
}

/// As `forward` of the mirror: the window of the active gateway, without anything that would lower the window here.
fn forward(known: Window, said: Window) -> Option<Window> {
    (said.top() >= known.certain).then(|| Window {
        mask: said.mask | known.mask & below(known.certain),
        certain: said.certain.max(known.certain),
    })
}

/// As `union` of the mirror: packets that either has received.
fn union(one: Window, other: Window) -> Window {
    Window { mask: one.mask | other.mask, certain: one.certain.max(other.certain) }
}

impl Pair {
    fn territory(&self, gateway: usize) -> usize {
        if self.is(Planted::SameTerritory) { 0 } else { gateway }
    }

    /// Begins a record: it is sent to the peer, or the gateway continues alone, and it is written here.
    pub(super) fn begin(&self, state: &mut State, g: usize, kind: Kind) {
        let disk = &mut state.gateways[g].disk;
        let half = self.territory(g);
        let mut records = Records::default();
        match kind {
            Kind::Numbers { last, iv_last, .. } => {
                (records.last, records.ivs[half]) = (last, iv_last);
                if !self.is(Planted::UsedBeforeRecorded) {
                    (disk.last, disk.ivs[half]) = (last, iv_last);
                }
            }
            Kind::Limit(limit) => {
                disk.window = Window::up_to(limit, disk.window.certain);
                if let Some(plane) = state.gateways[g].process.as_ref().and_then(|process| process.plane) {
                    let certain = plane.received.certain;
                    state.gateways[g].disk.window = Window::up_to(limit, certain);
                }
                records.window = Some(state.gateways[g].disk.window);
            }
            Kind::Full(_) => {
                disk.window.mask = below(disk.window.top());
                records.window = Some(disk.window);
            }
        }
        let is_used_at_once = matches!(kind, Kind::Numbers { .. }) && self.is(Planted::UsedBeforeRecorded);
        let at = if is_used_at_once { None } else { self.send_records(state, g, records) };
        if let Some(process) = &mut state.gateways[g].process {
            process.pending = Some(Pending { kind, at });
        }
    }

    /// Sends records in the session; `None` if there is none, so that the gateway continues alone.
    fn send_records(&self, state: &mut State, g: usize, records: Records) -> Option<(u8, u8)> {
        let process = state.gateways[g].process.as_mut()?;
        let Some(session) = process.session else {
            self.go_alone(state, g);
            return None;
        };
        if self.is(Planted::RecordsNotSent) {
            return None;
        }
        process.sent += 1;
        let at = process.sent;
        state.say(g, Message::Note { session, at, records });
        Some((session, at))
    }

    /// Numbers are used that the peer has not recorded. If the peer runs, either of the two may continue alone, until they merge.
    fn go_alone(&self, state: &mut State, g: usize) {
        let note = &mut state.gateways[g].disk.note;
        let was_alone = note.unmerged;
        note.unmerged |= !self.is(Planted::AloneForgotten);
        if !was_alone && state.gateways[1 - g].process.is_some() {
            state.observer.is_split = [true, true];
        }
    }

    /// Whether the peer has acknowledged the records that wait for it.
    pub(super) fn is_acknowledged(&self, process: &Process, pending: Pending) -> bool {
        match pending.at {
            None => true,
            Some(_) if self.is(Planted::AcknowledgementNotAwaited) => true,
            Some((session, at)) => process.session == Some(session) && process.acknowledged >= at,
        }
    }

    /// The peer has acknowledged, or this gateway does not wait for it any longer: the recorded numbers may be used.
    pub(super) fn use_recorded(&self, state: &mut State, g: usize, gives_up: bool) {
        let Some(process) = &mut state.gateways[g].process else { return };
        let Some(pending) = process.pending.take() else { return };
        if gives_up {
            process.session = None;
            self.go_alone(state, g);
        }
        let Some(process) = &mut state.gateways[g].process else { return };
        match (pending.kind, &mut process.plane) {
            (Kind::Numbers { after, last, iv_after, iv_last }, Some(plane)) => {
                if after > plane.last {
                    plane.sent = after;
                }
                if plane.iv_last < iv_after {
                    plane.iv_sent = iv_after;
                }
                (plane.last, plane.iv_last) = (last, iv_last);
            }
            (Kind::Limit(limit), Some(plane)) => plane.limit = plane.limit.max(limit),
            // Later packets fill the gaps, and the record before them has none.
            (Kind::Full(carried), _) => self.start_plane(state, g, carried),
            _ => {}
        }
    }

    /// Starts or restarts the data plane after the known records of the peer.
    pub(super) fn serve(&self, state: &mut State, g: usize) {
        self.settle(state, g, false);
        let window = state.gateways[g].disk.window;
        let Some(process) = &mut state.gateways[g].process else { return };
        (process.is_running, process.restarts) = (true, false);
        if window.has_gaps() && !self.is(Planted::GapsKept) {
            self.begin(state, g, Kind::Full(window));
        } else {
            self.start_plane(state, g, window);
        }
    }

    fn start_plane(&self, state: &mut State, g: usize, window: Window) {
        let disk = state.gateways[g].disk;
        let half = self.territory(g);
        let back = u8::from(self.is(Planted::StartsBeforeMark));
        let last = disk.last.saturating_sub(back);
        let iv = disk.ivs[half].saturating_sub(back);
        let Some(process) = &mut state.gateways[g].process else { return };
        process.plane = Some(Plane {
            sent: last,
            last: disk.last.min(last + back),
            iv_sent: iv,
            iv_last: disk.ivs[half],
            received: window,
            limit: window.top(),
        });
        state.look_at_start(g, half, window);
    }

    /// The next numbers and IVs of a gateway.
    pub(super) fn next_numbers(&self, state: &State, g: usize) -> Kind {
        let disk = state.gateways[g].disk;
        let (after, last) = block(self.territory(g), disk.last);
        let iv_after = disk.ivs[self.territory(g)];
        Kind::Numbers { after, last, iv_after, iv_last: iv_after + (last - after) }
    }

    /// Ends the data plane: it returns unused numbers, and records the exact window.
    pub(super) fn end_plane(&self, state: &mut State, g: usize) {
        let Some(process) = &mut state.gateways[g].process else { return };
        process.pending = None;
        let Some(plane) = process.plane.take() else { return };
        let disk = &mut state.gateways[g].disk;
        if disk.last == plane.last && plane.sent < plane.last {
            disk.last = plane.sent;
        }
        disk.window = plane.received;
        let records = Records { window: Some(plane.received), ..Records::default() };
        _ = self.send_records(state, g, records);
        state.observer.excused[g] &= !state.observer.told[g];
    }

    /// Writes the exact window, and performs outstanding merges.
    pub(super) fn settle(&self, state: &mut State, g: usize, stands_by: bool) {
        let gateway = &mut state.gateways[g];
        let Some(process) = &mut gateway.process else { return };
        if let Some(mirrored) = process.mirrored.take() {
            gateway.disk.window = mirrored;
        }
        process.own = None;
        if let Some(owed) = process.owed.take() {
            process.own = stands_by.then_some(gateway.disk.window);
            gateway.disk.window = union(gateway.disk.window, owed);
        }
        process.base = gateway.disk.window;
        if std::mem::take(&mut process.owes_answer) {
            state.say(g, Message::Merged);
        }
    }

    /// Handles the end of a standby's data plane.
    pub(super) fn stopped(&self, state: &mut State, g: usize) {
        self.settle(state, g, true);
        if let Some(process) = &mut state.gateways[g].process {
            (process.is_running, process.restarts) = (false, false);
        }
    }

    /// Records the active gateway's records. Both windows are valid if the standby has records of its own.
    pub(super) fn note(&self, state: &mut State, g: usize, records: Records, both: bool) {
        let lowers = self.is(Planted::MergeLowers);
        let gateway = &mut state.gateways[g];
        gateway.raise(records, lowers);
        let Some(process) = &mut gateway.process else { return };
        let Some(said) = records.window.filter(|_| !self.is(Planted::WindowsNotMirrored)) else { return };
        let known = process.mirrored.unwrap_or(gateway.disk.window);
        let window = match forward(known, said) {
            _ if lowers => said,
            Some(forward) if !both => forward,
            _ => union(known, said),
        };
        process.mirrored = Some(window);
        let is_exact = window.has_gaps() || window.certain == window.top();
        if is_exact {
            gateway.disk.window = window;
        } else if window.top() > gateway.disk.window.top() {
            // Further ahead on the disk than in memory.
            let top = (window.top() + 1).min(self.packet_max);
            gateway.disk.window = Window::up_to(top, window.certain);
        }
    }

    /// A message with records of the peer: whether a standby accepts them as its own, `Some(both windows are valid)`.
    pub(super) fn holds(&self, state: &State, g: usize) -> Option<bool> {
        let gateway = &state.gateways[g];
        let process = gateway.process.as_ref()?;
        (!process.is_running && !process.is_active).then_some(gateway.disk.note.unmerged)
    }

    /// All records of the peer have arrived. `is_blank`: the sender has never had all records of the pair; `is_whole`: it could serve with
    /// the records that it sends.
    pub(super) fn merge(
        &self,
        state: &mut State,
        g: usize,
        (records, is_active, term): (Records, bool, u8),
        (is_blank, is_whole): (bool, bool),
    ) {
        let mut raised = false;
        let gateway = &state.gateways[g];
        let known = gateway.process.as_ref().map_or(0, |process| process.term);
        // Before the first term nothing was used. If one of the two directories was emptied, the other one has to be complete.
        let is_new = known.max(term) == 0;
        let counts =
            is_new || !is_blank && (gateway.disk.has_joined || is_whole) || self.is(Planted::BlankCompletes);
        match self.holds(state, g) {
            Some(both) => {
                let gateway = &state.gateways[g];
                let wants = gateway.process.as_ref().is_some_and(|process| process.peer_wants);
                let is_newer = Some(term) >= gateway.disk.note.complete && !wants;
                self.note(state, g, records, both || !(is_active && is_newer));
                if counts {
                    let note = &mut state.gateways[g].disk.note;
                    note.complete = note.complete.max(Some(term));
                }
            }
            None => raised = self.merge_running(state, g, records),
        }
        let is_lost_peer = state.observer.is_lost[1 - g];
        let gateway = &mut state.gateways[g];
        let Some(process) = &mut gateway.process else { return };
        if counts {
            state.observer.is_split = [false, false];
            process.complete = process.complete.max(Some(term));
            process.lacks = false;
            gateway.disk.has_joined = true;
        }
        process.received_session = process.source;
        if raised && !self.is(Planted::MergedBelowPlane) {
            (process.restarts, process.owes_answer) = (true, true);
        } else {
            state.say(g, Message::Merged);
        }
        if !is_lost_peer {
            state.observer.is_lost[g] = false;
        }
    }

    fn merge_running(&self, state: &mut State, g: usize, records: Records) -> bool {
        let gateway = &mut state.gateways[g];
        let mut raised = gateway.raise(records, self.is(Planted::MergeLowers));
        let Some(process) = &mut gateway.process else { return false };
        let base = process.base;
        if let Some(window) = records.window.filter(|window| window.mask & !base.mask != 0) {
            process.owed = Some(process.owed.map_or(window, |owed| union(owed, window)));
            raised = true;
        }
        raised
    }

    /// All records here.
    pub(super) fn everything(&self, state: &State, g: usize) -> Records {
        let gateway = &state.gateways[g];
        let disk = gateway.disk;
        let mut window = disk.window;
        if let Some(process) = &gateway.process {
            let own = process.own.filter(|_| !process.is_active && !process.is_running);
            window = own.or(process.mirrored).unwrap_or(window);
        }
        Records { last: disk.last, ivs: disk.ivs, window: Some(window) }
    }

    /// Uses the next number and IV.
    pub(super) fn send(&self, state: &mut State, g: usize) {
        let half = self.territory(g);
        let Some(plane) = state.gateways[g].process.as_mut().and_then(|process| process.plane.as_mut())
        else {
            return;
        };
        plane.sent += 1;
        plane.iv_sent += 1;
        let (number, iv) = (1 << plane.sent, 1 << plane.iv_sent);
        let observer = &mut state.observer;
        if observer.numbers & number != 0 {
            observer.broken.get_or_insert(Broken::NumberTwice);
        }
        if observer.ivs[half] & iv != 0 {
            observer.broken.get_or_insert(Broken::IvTwice);
        }
        observer.numbers |= number;
        observer.ivs[half] |= iv;
    }

    /// Accepts a packet.
    pub(super) fn receive(&self, state: &mut State, g: usize, packet: u8) {
        let is_apart = state.is_apart() || !state.gateways[1 - g].is_greeted;
        let other = &state.gateways[1 - g].process;
        let is_other_running = other.as_ref().is_some_and(|other| other.is_active || other.is_running);
        let other = other.is_some();
        let Some(process) = &mut state.gateways[g].process else { return };
        // Until the peer has merged all records in this session, numbers that were recorded alone may be used.
        let is_alone = process.session.is_none() || !process.is_merged;
        let Some(plane) = &mut process.plane else { return };
        plane.received.mask |= 1 << packet;
        plane.received.certain = plane.received.certain.max(packet);
        let observer = &mut state.observer;
        let bit = 1 << packet;
        let twice = observer.accepted[g] | observer.accepted[1 - g] & !observer.excused[g];
        if twice & bit != 0 && !observer.packets_waived {
            observer.broken.get_or_insert(Broken::PacketTwice);
        }
        observer.accepted[g] |= bit;
        let is_split = observer.is_split[1 - g];
        let is_excused = is_alone && other && (is_apart || self.excuses_stalls);
        if is_excused || is_split || is_other_running {
            observer.excused[1 - g] |= bit;
        }
    }
}
