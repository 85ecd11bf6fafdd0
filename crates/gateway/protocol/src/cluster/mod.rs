//! The protocol of a [cluster](../../../../../docs/many-gateways.md): three gateways, etcd, two shares, an outbound and an inbound SA.

mod runs;
mod shares;
mod state;
mod steps;

use stateright::{Model, Property};

pub use self::state::{Broken, Faults, State};
pub use self::steps::{Answer, Step};

/// A rule that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// Numbers are used although the store did not answer.
    UsedUnrecorded,
    /// A record is written regardless of the claim of its share.
    ClaimNotCompared,
    /// The claim is not renewed after a request without an answer.
    DoubtForgotten,
    /// A gateway that begins to serve a share does not read its records.
    SharesBeginAnew,
    /// A gateway continues with a share that has no owner, although another one may have had it meanwhile.
    ResumedWithoutClaim,
    /// A gateway returns one number more than it has left unused.
    GivenBackTooMuch,
    /// Records are searched in the share that the file names, not in the share that has them.
    PlaceNotLookedAt,
    /// A claim that was handed back counts as a renewal of the earlier one.
    HandedBackUnseen,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 8] = [
        Planted::UsedUnrecorded,
        Planted::ClaimNotCompared,
        Planted::DoubtForgotten,
        Planted::SharesBeginAnew,
        Planted::ResumedWithoutClaim,
        Planted::GivenBackTooMuch,
        Planted::PlaceNotLookedAt,
        Planted::HandedBackUnseen,
    ];
}

/// The model with its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    /// The wrong rule, if there is one.
    pub planted: Option<Planted>,
    /// Whether the outbound SA sends and the inbound one receives.
    pub sends: bool,
    pub receives: bool,
    /// How many gateways take part.
    pub gateways: usize,
    /// The highest number and packet, and revision of a claim.
    pub number_max: u8,
    pub revision_max: u8,
    /// The faults that may happen.
    pub faults: Faults,
}

impl Cluster {
    /// Small bounds and no fault.
    pub fn small() -> Cluster {
        Cluster {
            planted: None,
            sends: true,
            receives: false,
            gateways: 3,
            number_max: 3,
            revision_max: 4,
            faults: Faults::default(),
        }
    }

    fn is(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Step;

    /// All gateways run, and none has a share.
    fn init_states(&self) -> Vec<State> {
        let mut state = State { faults: self.faults, ..State::default() };
        (0..self.gateways).for_each(|g| self.boot(&mut state, g));
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.possible(state, steps);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        self.take(&mut next, step);
        // A step that changes nothing, as one that is refused.
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Cluster>> {
        vec![
            Property::always("no sequence number is used twice", |_, state: &State| {
                state.broken != Some(Broken::NumberTwice)
            }),
            Property::always("no packet is accepted twice", |_, state: &State| {
                state.broken != Some(Broken::PacketTwice)
            }),
            Property::always("records are found wherever their share is", |_, state: &State| {
                state.broken != Some(Broken::NotFound)
            }),
        ]
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.store.claims.iter().all(|claim| claim.revision <= self.revision_max)
    }
}
