//! Which of the two gateways is active: a state machine that is given the time and performs no I/O.
//!
//! A gateway starts as standby. It becomes active only if its records are complete, as far as can be known, and if its peer is silent,
//! has resigned, or is a standby with lower priority. Each time it takes a *term* higher than all terms that it knows, which it remembers over restarts. Of two active
//! gateways the one with the higher term stays active; with equal terms gateway 0 does.
//!
//! Time is monotonic: steps of the clock change nothing. If [`Election::tick`] was not called for longer than the peer may be silent, the
//! process was suspended, and its knowledge of the peer is out of date.

use std::time::Duration;

/// The highest term, far below the maximum of the type, so that no term wraps.
const TERM_MAX: u64 = 1 << 62;
/// Maximum by which the peer's term may be higher: take-overs that a gateway has missed.
const TERM_JUMP_MAX: u64 = 1 << 32;

/// Completeness of a gateway's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Complete {
    /// It has all records of the connected peer.
    pub of_both: bool,
    /// It was the gateway that continued alone, or an operator has accepted its records as they are.
    pub alone: bool,
}

impl Complete {
    /// Complete in both ways, for tests of the election alone.
    #[cfg(test)]
    pub const YES: Complete = Complete { of_both: true, alone: true };
}

/// The role of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It waits.
    Standby,
    /// It has the addresses and moves packets.
    Active,
}

impl Role {
    /// Its name in messages and in the status.
    pub fn word(self) -> &'static str {
        match self {
            Role::Standby => "standby",
            Role::Active => "active",
        }
    }
}

/// The settings of a gateway of the pair.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// 0 or 1.
    pub number: u8,
    /// Whether it becomes active if both start.
    pub preferred: bool,
    /// Time without a heartbeat after which the peer counts as dead.
    pub silence: Duration,
    /// Time that it waits for the peer at its start.
    pub start_timeout: Duration,
}

/// The peer's state in its last heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its role.
    pub role: Role,
    /// The highest term that it knows; its own, if it is active.
    pub term: u64,
    /// Whether it is the preferred gateway.
    pub preferred: bool,
    /// It has ended its data plane, and its peer should take over.
    pub resigned: bool,
}

/// A change of role that the caller has to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Become active, with the reason.
    TakeOver(&'static str),
    /// Become standby, with the reason.
    StandDown(&'static str),
}

/// Whether the peer may have the shared addresses of an active gateway too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The peer's heartbeats arrive and it is the standby, or there was no peer.
    Undisputed,
    /// The peer was silent, and may still be active.
    TakenOver,
    /// The peer became silent while this gateway was active, and may have taken over.
    Doubtful,
}

/// The state of a gateway.
#[derive(Clone, Debug)]
pub struct Election {
    settings: Settings,
    role: Role,
    term: u64,
    /// When it began to wait: at the start, or when it was suspended or became the standby.
    since: Duration,
    ticked: Duration,
    peer: Option<Heard>,
    heard_at: Duration,
    /// When the last connection was closed, if there is none.
    closed_at: Option<Duration>,
    /// When it became active last.
    active_since: Duration,
    /// The reason for which it would be active if its records were complete.
    waits: Option<&'static str>,
}

impl Election {
    /// A standby that knows terms up to `term`.
    pub fn new(settings: Settings, term: u64, now: Duration) -> Election {
        Election {
            settings,
            role: Role::Standby,
            term,
            since: now,
            ticked: now,
            peer: None,
            heard_at: now,
            closed_at: None,
            active_since: now,
            waits: None,
        }
    }

    /// The reason for which it would be active if its records were complete.
    pub fn waits(&self) -> Option<&'static str> {
        self.waits
    }

    /// Whether a term is plausible for the peer.
    pub fn is_plausible(&self, term: u64) -> bool {
        term <= TERM_MAX && term <= self.term.saturating_add(TERM_JUMP_MAX)
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The highest term that it knows; its own, if it is active.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// The peer's last heartbeat.
    pub fn peer(&self) -> Option<Heard> {
        self.peer
    }

    /// Whether the peer counts as alive.
    pub fn hears(&self, now: Duration) -> bool {
        self.peer.is_some() && !self.is_silent(now)
    }

    /// Whether the peer may have the addresses of this active gateway too.
    pub fn claim(&self, now: Duration) -> Claim {
        match self.peer {
            Some(_) if self.is_silent(now) && self.heard_at > self.active_since => Claim::Doubtful,
            Some(_) if self.is_silent(now) => Claim::TakenOver,
            _ => Claim::Undisputed,
        }
    }

    /// Handles a heartbeat of the peer; ignores it if its term is [not plausible](Election::is_plausible).
    pub fn hear(&mut self, now: Duration, heard: Heard) -> Option<Step> {
        if !self.is_plausible(heard.term) {
            return None;
        }
        if self.peer.is_none() {
            // A peer is connected: the wait begins here.
            self.since = now;
        }
        self.peer = Some(heard);
        (self.heard_at, self.closed_at) = (now, None);
        let own = self.term;
        self.term = self.term.max(heard.term);
        if self.role == Role::Active && heard.role == Role::Active {
            let gives_way = heard.term > own || heard.term == own && self.settings.number == 1;
            if gives_way {
                return Some(self.stand_down(now, "the peer is active in a higher term"));
            }
            self.term = own;
        }
        None
    }

    /// Handles the end of the last connection to the peer.
    pub fn closed(&mut self, now: Duration) {
        self.closed_at.get_or_insert(now);
    }

    /// Handles the passage of time up to `now`.
    pub fn tick(&mut self, now: Duration, complete: Complete) -> Option<Step> {
        let asleep = now.saturating_sub(self.ticked) > self.settings.silence;
        let was_heard =
            self.peer.is_some() && self.ticked.saturating_sub(self.heard_at) <= self.settings.silence;
        self.ticked = now;
        if asleep {
            // Messages that arrived meanwhile have not been read yet.
            (self.since, self.heard_at) = (now, now);
            self.closed_at = None;
            if self.role == Role::Active && was_heard {
                return Some(self.stand_down(now, "the process was suspended"));
            }
            return None;
        }
        self.waits = None;
        if self.role == Role::Active {
            return None;
        }
        let waited = now.saturating_sub(self.since);
        let why = match self.peer {
            None => (waited >= self.settings.start_timeout).then_some("no peer was heard since the start"),
            Some(peer) if peer.resigned => Some("the peer resigned"),
            Some(_) if self.is_silent(now) => Some("the peer is silent"),
            Some(Heard { role: Role::Active, .. }) => None,
            Some(peer) => {
                let wins = match (self.settings.preferred, peer.preferred) {
                    (own, other) if own != other => own,
                    _ => self.settings.number == 0,
                };
                // A gateway that could continue alone does not wait forever for records that the peer cannot send.
                let waits =
                    if complete.of_both { self.settings.silence } else { self.settings.start_timeout };
                (wins && waited >= waits).then_some("both stand by")
            }
        }?;
        let may_lack = !complete.of_both && !complete.alone;
        if may_lack || self.term >= TERM_MAX {
            self.waits = Some(why);
            return None;
        }
        self.role = Role::Active;
        self.active_since = now;
        self.term += 1;
        // A peer that comes back sends its role again.
        self.peer = self.peer.map(|peer| Heard { resigned: false, role: Role::Standby, ..peer });
        Some(Step::TakeOver(why))
    }

    fn is_silent(&self, now: Duration) -> bool {
        // The kernel closes the connections of a killed process at once. A broken connection is restored sooner.
        let closed = self.closed_at.is_some_and(|at| now.saturating_sub(at) > self.settings.silence / 4);
        closed || now.saturating_sub(self.heard_at) > self.settings.silence
    }

    fn stand_down(&mut self, now: Duration, why: &'static str) -> Step {
        (self.role, self.since) = (Role::Standby, now);
        Step::StandDown(why)
    }
}

#[cfg(test)]
mod tests;
