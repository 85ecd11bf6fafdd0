//! Packets of SAs that are not here yet.
//!
//! Where another process puts SAs into the database (an IKE daemon, by way of the kernel), a peer may use a new SA
//! before this side has been told of it: the daemon has installed it and answered, and the answer's first packet
//! overtakes the news. Such packets wait a little, few of them, and go on when the SA comes.

use std::collections::VecDeque;

use forebay_crypto::{Direction, Packet};
use forebay_ipsec::DropReason;
use forebay_time::{Duration, Time};

use crate::engine::{Engine, Output};

/// How long packets of unknown SAs wait, and how many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrangerLimits {
    /// Most that wait; who sends garbage takes no more than that. 0: none waits.
    pub packets: usize,
    /// Longest wait.
    pub wait: Duration,
}

impl StrangerLimits {
    /// For SAs that come from nowhere but this process: none is ever late.
    pub const NONE: StrangerLimits = StrangerLimits { packets: 0, wait: Duration::ZERO };
}

#[derive(Debug)]
struct Stranger {
    packet: Packet,
    tag: u64,
    came: Time,
}

/// What waits, the oldest first.
#[derive(Debug)]
pub struct Strangers {
    limits: StrangerLimits,
    waiting: VecDeque<Stranger>,
    /// An inbound SA has come since they were looked at.
    news: bool,
}

impl Strangers {
    pub fn new(limits: StrangerLimits) -> Strangers {
        Strangers { limits, waiting: VecDeque::with_capacity(limits.packets), news: false }
    }

    /// Says that an inbound SA has come. They are let in at the next turn, when all is said of it.
    pub fn announce(&mut self) {
        self.news = !self.waiting.is_empty();
    }

    /// When the first has waited long enough; [`Time::MAX`] if none waits.
    pub fn next_due(&self) -> Time {
        self.waiting.front().map_or(Time::MAX, |first| first.came + self.limits.wait)
    }
}

impl Engine {
    /// Keeps a packet that no SA is for, or refuses it.
    #[cold]
    pub(crate) fn keep_stranger(&mut self, packet: Packet, tag: u64) -> Result<(), (Packet, DropReason)> {
        let Strangers { limits, waiting, .. } = &mut self.strangers;
        if waiting.len() >= limits.packets {
            return self.refuse(packet, DropReason::InNoStates);
        }
        waiting.push_back(Stranger { packet, tag, came: self.now });
        Ok(())
    }

    /// Lets those in whose SA has come, and drops those who have waited in vain; whether there were some.
    #[inline]
    pub(crate) fn look_after_strangers(&mut self) -> bool {
        if self.strangers.waiting.is_empty() {
            return false;
        }
        if std::mem::take(&mut self.strangers.news) {
            self.let_strangers_in();
        }
        self.send_strangers_away()
    }

    fn let_strangers_in(&mut self) {
        for _ in 0..self.strangers.waiting.len() {
            let Some(Stranger { packet, tag, came }) = self.strangers.waiting.pop_front() else { break };
            let others = self.strangers.waiting.len();
            let result = self.enter(Direction::Open, packet, tag);
            if self.strangers.waiting.len() == others {
                self.stats.strangers += u64::from(result.is_ok());
            } else if let Some(still) = self.strangers.waiting.back_mut() {
                still.came = came;
            }
            if let Err((packet, reason)) = result {
                self.turn_away(packet, tag, came, reason);
            }
        }
    }

    fn send_strangers_away(&mut self) -> bool {
        let mut moved = false;
        while self.strangers.next_due() <= self.now
            && let Some(Stranger { packet, tag, came }) = self.strangers.waiting.pop_front()
        {
            self.drops.count(DropReason::InNoStates);
            self.turn_away(packet, tag, came, DropReason::InNoStates);
            moved = true;
        }
        moved
    }

    fn turn_away(&mut self, packet: Packet, tag: u64, admitted: Time, reason: DropReason) {
        let (session, result, released) = (None, Err(reason), self.now);
        self.outputs.push(Output { packet, tag, session, result, admitted, released });
    }
}
