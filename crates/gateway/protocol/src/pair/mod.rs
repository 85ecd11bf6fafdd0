//! The protocol of a [pair](../../../../../docs/pair.md): two gateways, an outbound and an inbound SA.

mod records;
mod roles;
mod runs;
mod state;
mod steps;

use stateright::{Model, Property};

pub use self::state::{Broken, Disk, Faults, State, Window};
pub use self::steps::Step;

/// A rule that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// A number is used although its record is neither on the disk nor at the peer.
    UsedBeforeRecorded,
    /// A gateway starts one number before the end of its last block.
    StartsBeforeMark,
    /// Both gateways take their numbers from the same range.
    SameTerritory,
    /// Records are on the gateway's own disk only.
    RecordsNotSent,
    /// A record is used before the peer has acknowledged it.
    AcknowledgementNotAwaited,
    /// An acknowledgement of an older session counts in a newer one.
    AcknowledgementOfOlderSession,
    /// The standby acknowledges replay windows that it does not keep.
    WindowsNotMirrored,
    /// A gateway that continues alone does not record that.
    AloneForgotten,
    /// A term is not recorded.
    TermForgotten,
    /// A gateway becomes active although its records may be incomplete.
    StaleServes,
    /// A gateway whose peer reports unmerged records counts as complete.
    UnmergedIgnored,
    /// A standby that has everything counts as complete before the active gateway has recorded that it is not alone any more.
    PeerStillAlone,
    /// Records of the peer replace the gateway's own, even if they are lower.
    MergeLowers,
    /// Records are merged while a data plane continues without them.
    MergedBelowPlane,
    /// A data plane fills gaps of a window, and the record of the window keeps them.
    GapsKept,
    /// An active gateway that receives a higher term counts as complete in it.
    HeardTermIsComplete,
    /// A gateway that becomes the standby does not send again what it has recorded since it sent everything.
    StandDownSendsNothing,
    /// The records of an empty state directory make those of the other gateway complete.
    BlankCompletes,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 18] = [
        Planted::UsedBeforeRecorded,
        Planted::StartsBeforeMark,
        Planted::SameTerritory,
        Planted::RecordsNotSent,
        Planted::AcknowledgementNotAwaited,
        Planted::AcknowledgementOfOlderSession,
        Planted::WindowsNotMirrored,
        Planted::AloneForgotten,
        Planted::TermForgotten,
        Planted::StaleServes,
        Planted::UnmergedIgnored,
        Planted::PeerStillAlone,
        Planted::MergeLowers,
        Planted::MergedBelowPlane,
        Planted::GapsKept,
        Planted::HeardTermIsComplete,
        Planted::StandDownSendsNothing,
        Planted::BlankCompletes,
    ];
}

/// The model with its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The wrong rule, if there is one.
    pub planted: Option<Planted>,
    /// Whether the outbound SA sends and the inbound one receives.
    pub sends: bool,
    pub receives: bool,
    /// The highest sequence number, packet and term, the sessions, and the messages in flight in one direction.
    pub number_max: u8,
    pub packet_max: u8,
    pub term_max: u8,
    pub session_max: u8,
    pub queue_max: usize,
    /// The faults that may happen.
    pub faults: Faults,
    /// Whether a directory may be lost although the other gateway does not have all of its records.
    pub loses_any: bool,
    /// Whether a gateway whose peer does not acknowledge within `silence` counts as one whose links are cut.
    pub excuses_stalls: bool,
    /// Whether the pair begins with empty directories.
    pub begins_empty: bool,
    /// Whether everything is sent again to a peer that says that it lacks records.
    pub sends_again: bool,
    /// Whether each state without further faults is followed until a gateway serves, which takes time.
    pub looks_ahead: bool,
}

impl Pair {
    /// Small bounds and no fault.
    pub fn small() -> Pair {
        Pair {
            planted: None,
            sends: true,
            receives: true,
            number_max: 9,
            packet_max: 2,
            term_max: 4,
            session_max: 6,
            queue_max: 3,
            faults: Faults::default(),
            loses_any: false,
            excuses_stalls: true,
            begins_empty: false,
            sends_again: false,
            looks_ahead: false,
        }
    }

    fn is(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }
}

impl Model for Pair {
    type State = State;
    type Action = Step;

    /// A pair whose standby is in sync, or one whose directories are empty.
    fn init_states(&self) -> Vec<State> {
        let empty = State { faults: self.faults, ..State::default() };
        if self.begins_empty {
            return vec![empty];
        }
        let mut in_sync = empty;
        self.converge(&mut in_sync);
        vec![in_sync]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.possible(state, steps);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        self.take(&mut next, step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Pair>> {
        fn holds(state: &State, broken: Broken) -> bool {
            state.observer.broken != Some(broken)
        }
        vec![
            Property::always("no sequence number is used twice", |_, state| {
                holds(state, Broken::NumberTwice)
            }),
            Property::always("no IV is used twice", |_, state| holds(state, Broken::IvTwice)),
            Property::always("no packet is accepted twice", |_, state| holds(state, Broken::PacketTwice)),
            Property::always("no gateway serves with incomplete records", |_, state| {
                holds(state, Broken::Incomplete)
            }),
            Property::always("no term falls", |_, state| holds(state, Broken::TermFell)),
            Property::always("without further faults exactly one gateway becomes active", Pair::converges),
        ]
    }

    fn within_boundary(&self, state: &State) -> bool {
        let processes = || state.gateways.iter().filter_map(|gateway| gateway.process.as_ref());
        !state.observer.all_waived
            && state.sessions <= self.session_max
            && state.gateways.iter().all(|gateway| gateway.queue.len() <= self.queue_max)
            && state.gateways.iter().all(|gateway| gateway.disk.last <= self.number_max)
            && processes().all(|process| process.term <= self.term_max)
    }
}
