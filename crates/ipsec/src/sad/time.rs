//! Time as the database is told it, and what comes to pass with it.

use forebay_crypto::SessionId;
use forebay_time::Time;

use super::{Sad, State};
use crate::watch::Event;

impl Sad {
    /// Tells the time, which ends lifetimes, lets learned path MTUs be forgotten and answers be given again. SAs
    /// live from the time told last before they were added. To be called before each burst or as often as the
    /// limits are to be exact; it costs a comparison unless something is due. Time never goes back.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if self.watch.advance(now) {
            self.look_at_all();
        }
    }

    #[cold]
    fn look_at_all(&mut self) {
        for index in 0..self.sas.len() {
            let path_changed = match &mut self.sas[index].state {
                State::Out(sa) => sa.pass_time(&mut self.watch),
                State::OutAh(sa) => sa.pass_time(&mut self.watch),
                State::In(sa) => {
                    sa.pass_time(&mut self.watch);
                    false
                }
                State::InAh(sa) => {
                    sa.pass_time(&mut self.watch);
                    false
                }
                State::Away(..) | State::Gone(_) => false,
            };
            if path_changed {
                self.spread_path(SessionId(index as u32));
            }
        }
    }

    /// Takes what has happened since the last call, oldest first. At most 1,024 events wait here; further
    /// ones wait with their SAs until there is room, and none is lost.
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        std::iter::from_fn(|| self.watch.take())
    }
}
