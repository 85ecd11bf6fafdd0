//! The time that the caller sets, and events of SAs.

use std::collections::VecDeque;
use std::net::SocketAddr;

use forebay_crypto::SessionId;
use forebay_time::Time;

/// Something about an SA that the key exchange should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The SA.
    pub session: SessionId,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The kind of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A soft limit was reached.
    Soft,
    /// A hard limit was reached; nothing passes any more.
    Hard,
    /// An eighth of the sequence numbers is left.
    SequenceLow,
    /// There is no sequence number left; nothing passes any more.
    SequenceEnd,
    /// Half of the sequence numbers that the SA may use is left: see [`Ipsec::grant`](crate::Ipsec::grant).
    SequenceWanted,
    /// Half of the IVs that the SA may use is left: see [`IvRefill`](crate::IvRefill).
    IvWanted,
    /// No IV is left; nothing passes until there are more.
    IvEnd,
    /// An inbound SA has used half of the numbers that are noted, or more of them than are noted: see
    /// [`Ipsec::note_window`](crate::Ipsec::note_window).
    WindowWanted {
        /// The highest number that it has received.
        top: u64,
        /// Packets that it has received since it was added.
        packets: u64,
    },
    /// An inbound SA in UDP has received a packet, authentic and newer than all before it, from another address or
    /// port than its peer's: the address of the peer behind a NAT has changed. At most four of these events are sent
    /// at once, and one per second in the long run. Outbound SAs follow by
    /// [`Ipsec::move_peer`](crate::Ipsec::move_peer).
    Moved(SocketAddr),
}

/// Events that wait to be taken; one more waits with its SA.
const MAX_EVENTS: usize = 1_024;

/// The time, and what has happened.
#[derive(Debug, Default)]
pub struct Watch {
    now: Time,
    /// When some SA has to be looked at again.
    wake: Option<Time>,
    events: VecDeque<Event>,
    moves_limited: u64,
}

impl Watch {
    /// The time told last.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Whether SAs have to be looked at, now that it is `now`; if so, nothing is due any more until
    /// [`Watch::wake_at`] says so. Time never goes back.
    #[inline]
    pub fn advance(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        let due = self.wake.is_some_and(|wake| wake <= self.now);
        if due {
            self.wake = None;
        }
        due
    }

    /// Asks for a look at `time` at the latest.
    pub fn wake_at(&mut self, time: Option<Time>) {
        self.wake = [self.wake, time].into_iter().flatten().min();
    }

    /// Counts a packet whose peer has moved too often to be followed now.
    pub fn limit_move(&mut self) {
        self.moves_limited += 1;
    }

    /// How many there were.
    pub fn moves_limited(&self) -> u64 {
        self.moves_limited
    }

    /// Whether there are events.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event.
    pub fn take(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Forgets the events of an SA that is removed: its number may be another one's next.
    pub fn forget(&mut self, session: SessionId) {
        self.events.retain(|event| event.session != session);
    }

    /// Makes room, so that later events allocate nothing.
    pub fn reserve(&mut self) {
        self.events.reserve_exact(MAX_EVENTS - self.events.len());
    }

    /// Adds an event; `false` if there is no room.
    pub fn tell(&mut self, session: SessionId, kind: EventKind) -> bool {
        let room = self.events.len() < MAX_EVENTS;
        if room {
            self.events.push_back(Event { session, kind });
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_take_no_memory_once_there_is_room() {
        let mut watch = Watch::default();
        let tell = |watch: &mut Watch| watch.tell(SessionId(1), EventKind::Soft);
        watch.reserve();
        let taken = allocation_counter::measure(|| {
            (0..10).for_each(|_| assert!(tell(&mut watch)));
            watch.reserve();
            (10..MAX_EVENTS).for_each(|_| assert!(tell(&mut watch)));
            assert!(!tell(&mut watch), "it is full");
            watch.reserve();
        });
        assert_eq!(taken.count_total, 0);
        assert_eq!(watch.take(), Some(Event { session: SessionId(1), kind: EventKind::Soft }));
        assert!(tell(&mut watch));
    }
}
