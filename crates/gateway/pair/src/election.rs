//! Which of the two gateways is active: a state machine that is given the time and performs no I/O.
//!
//! A gateway starts as standby. It becomes active only if its records are complete, as far as can be known, and if its peer is silent,
//! has resigned, or is a standby with lower priority. Each time it takes a *term* higher than all terms that it knows, which it remembers over restarts. Of two active
//! gateways the one with the higher term stays active; with equal terms gateway 0 does.
//!
//! Time is monotonic: steps of the clock change nothing. If [`Election::tick`] was not called for longer than the peer may be silent, the
//! process was suspended, and its knowledge of the peer is out of date.

use std::time::Duration;

/// The highest term: far from the end of the numbers, so that none ever wraps.
const TERM_MAX: u64 = 1 << 62;
/// By how much the peer's term may be higher: so many take-overs that a gateway has not heard of.
const TERM_JUMP_MAX: u64 = 1 << 32;

/// What a gateway has of the records of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Complete {
    /// It has everything from the peer that is heard.
    pub of_both: bool,
    /// It was the one that went on alone, or an operator said that it is to go on with what it has.
    pub alone: bool,
}

impl Complete {
    /// Everything, as in tests of the election alone.
    #[cfg(test)]
    pub const YES: Complete = Complete { of_both: true, alone: true };
}

/// What a gateway does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It waits.
    Standby,
    /// It has the addresses and moves packets.
    Active,
}

impl Role {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Role::Standby => "standby",
            Role::Active => "active",
        }
    }
}

/// How a gateway takes part.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// 0 or 1.
    pub number: u8,
    /// Whether it becomes active if both start.
    pub preferred: bool,
    /// After this time without a word the peer is taken for dead.
    pub silence: Duration,
    /// How long it waits for the peer when it starts.
    pub start_timeout: Duration,
}

/// What the peer says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its role.
    pub role: Role,
    /// The highest term that it knows; its own, if it is active.
    pub term: u64,
    /// Whether it is the one to become active.
    pub preferred: bool,
    /// It has ended its data plane, and its peer is to take over.
    pub resigned: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Become active, with the reason.
    TakeOver(&'static str),
    /// Become standby, with the reason.
    StandDown(&'static str),
}

/// How an active gateway stands to the shared addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The peer is heard and stands by, or there was none.
    Undisputed,
    /// The peer was silent, and may be active still.
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
    /// When it began to wait: at the start, or when it was suspended or stood down.
    since: Duration,
    ticked: Duration,
    peer: Option<Heard>,
    heard_at: Duration,
    /// When the last connection was closed, if there is none.
    closed_at: Option<Duration>,
    /// When it became active last.
    active_since: Duration,
    /// Because of what it would be active if its records were complete.
    waits: Option<&'static str>,
}

impl Election {
    /// A standby that has heard of terms up to `term`.
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

    /// Because of what it would be active if its records were complete.
    pub fn waits(&self) -> Option<&'static str> {
        self.waits
    }

    /// Whether a term may be the peer's.
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

    /// What the peer said last.
    pub fn peer(&self) -> Option<Heard> {
        self.peer
    }

    /// Whether the peer is to be believed alive.
    pub fn hears(&self, now: Duration) -> bool {
        self.peer.is_some() && !self.is_silent(now)
    }

    /// How an active gateway stands to a peer that may have the addresses too.
    pub fn claim(&self, now: Duration) -> Claim {
        match self.peer {
            Some(_) if self.is_silent(now) && self.heard_at > self.active_since => Claim::Doubtful,
            Some(_) if self.is_silent(now) => Claim::TakenOver,
            _ => Claim::Undisputed,
        }
    }

    /// The peer says this; nothing if its term [cannot be](Election::is_plausible).
    pub fn hear(&mut self, now: Duration, heard: Heard) -> Option<Step> {
        if !self.is_plausible(heard.term) {
            return None;
        }
        if self.peer.is_none() {
            // Whoever is there, its last words count from here on.
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

    /// The last connection to the peer was closed.
    pub fn closed(&mut self, now: Duration) {
        self.closed_at.get_or_insert(now);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration, complete: Complete) -> Option<Step> {
        let asleep = now.saturating_sub(self.ticked) > self.settings.silence;
        let was_heard =
            self.peer.is_some() && self.ticked.saturating_sub(self.heard_at) <= self.settings.silence;
        self.ticked = now;
        if asleep {
            // What was said meanwhile has not been read yet.
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
                // One that could go on alone does not wait for ever for what the peer cannot send.
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
        // A peer that comes back says who it is.
        self.peer = self.peer.map(|peer| Heard { resigned: false, role: Role::Standby, ..peer });
        Some(Step::TakeOver(why))
    }

    fn is_silent(&self, now: Duration) -> bool {
        // A process that was killed has its connections closed at once. A connection that breaks is there again sooner.
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
