//! SAs of other cores. Where several cores share the traffic, each SA is at one of them, which alone has its sequence
//! numbers, replay window and keys. The others know it as *away*: look-ups and policies find it, so that each core
//! decides on every packet alike, and what is its packet is given to the core that it is at.

use forebay_crypto::{Direction, SessionId};

use super::{Sad, SadError, State};
use crate::drops::DropReason;
use crate::sa::SaConfig;
use crate::step::Prepared;

impl Sad {
    /// Adds an SA that the core of number `core` has: its packets are never prepared here, [`Sad::prepare`] says
    /// [`Prepared::Away`] of them.
    pub fn add_away(
        &mut self,
        direction: Direction,
        config: SaConfig,
        core: u16,
    ) -> Result<SessionId, SadError> {
        let session = self.check(direction, &config)?;
        match direction {
            Direction::Seal => self.name_outbound(session, &config),
            Direction::Open => self.name_inbound(session, &config),
        }
        self.put(session, State::Away(direction, core), config);
        Ok(session)
    }

    /// The core that has an SA, if that is another.
    pub fn away(&self, session: SessionId) -> Option<u16> {
        match self.sas.get(session.0 as usize)?.state {
            State::Away(_, core) => Some(core),
            _ => None,
        }
    }
}

impl State {
    /// What becomes of a packet of an inbound SA that is not one of this core's to open.
    #[cold]
    pub(super) fn away(&self) -> Result<Prepared, DropReason> {
        match self {
            State::Away(Direction::Open, core) => Ok(Prepared::Away(*core)),
            _ => Err(DropReason::InNoStates),
        }
    }
}
