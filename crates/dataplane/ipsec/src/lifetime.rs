//! Lifetimes of SAs (RFC 4301 4.4.2.1): at the soft limit the key exchange is asked for another SA; at the hard limit
//! traffic stops.
//!
//! The caller sets the time ([`Ipsec::advance`](crate::Ipsec::advance)); this module never reads a clock. A packet
//! costs two comparisons: with the numbers of packets and of bytes below which no event can happen. Every possible
//! event, the first use and the expiry by time included, lowers those marks and is handled off the fast path.

use std::fmt;

use forebay_crypto::SessionId;
use forebay_time::{Duration, Time};

use crate::watch::{EventKind, Watch};
use forebay_drops::DropReason;

/// How long something may go on; each limit on its own, `None` for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Packets sealed, or opened with a matching ICV.
    pub packets: Option<u64>,
    /// Bytes that were worked on (RFC 4301 4.4.2.1): by ESP's cipher, padding and trailer included; by AH's
    /// integrity algorithm, all of the packet and, with ESN, the half of the number that is not sent.
    pub bytes: Option<u64>,
    /// Since the SA was added.
    pub time: Option<Duration>,
    /// Since its first packet.
    pub use_time: Option<Duration>,
}

/// Both ends of an SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Reaching it makes an [`Event`](crate::Event), once.
    pub soft: Limits,
    /// The packet that would exceed these limits is dropped, and all that follow.
    pub hard: Limits,
}

/// A soft limit that is never reached, since the hard one comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifetimeError {
    /// The quantity that is limited.
    pub what: &'static str,
}

impl fmt::Display for LifetimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the soft limit of {} is beyond the hard one", self.what)
    }
}

impl std::error::Error for LifetimeError {}

impl Lifetime {
    /// Checks that each soft limit comes before the hard one of its kind.
    pub fn check(&self) -> Result<(), LifetimeError> {
        fn beyond<T: PartialOrd>(soft: Option<T>, hard: Option<T>) -> bool {
            soft.zip(hard).is_some_and(|(soft, hard)| soft > hard)
        }
        let (soft, hard) = (&self.soft, &self.hard);
        let limits = [
            ("packets", beyond(soft.packets, hard.packets)),
            ("bytes", beyond(soft.bytes, hard.bytes)),
            ("time", beyond(soft.time, hard.time)),
            ("time of use", beyond(soft.use_time, hard.use_time)),
        ];
        match limits.into_iter().find(|&(_, beyond)| beyond) {
            Some((what, _)) => Err(LifetimeError { what }),
            None => Ok(()),
        }
    }
}

/// How far an SA has come in its life, in a form that can be kept beyond the life of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lived {
    /// Since it was added first.
    pub age: Duration,
    /// Since its first packet; `None` if there was none.
    pub used: Option<Duration>,
    /// Packets counted.
    pub packets: u64,
    /// Bytes counted, as [`Limits::bytes`] are.
    pub bytes: u64,
}

/// No packet has more bytes to encipher.
pub const LONGEST: u64 = 1 << 17;

/// Why an SA lets no packet pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its hard lifetime has ended.
    Expired,
    /// The sequence numbers that it was granted are used up.
    NoNumber,
}

impl Refused {
    /// The drop reason for an outbound SA's packet.
    pub fn reason(self) -> DropReason {
        match self {
            Refused::Expired => DropReason::OutStateExpired,
            Refused::NoNumber => DropReason::OutStateSeqError,
        }
    }
}

/// How far an SA has come in its life.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Life {
    packets: u64,
    bytes: u64,
    /// As long as both stay at or under these, there is nothing to find out.
    packet_mark: u64,
    byte_mark: u64,
    /// In a place of its own, so that what packets need of an SA stands together.
    facts: Box<Facts>,
}

/// What only a look needs.
#[derive(Clone, Debug)]
struct Facts {
    expired: bool,
    lifetime: Lifetime,
    /// When it was added here, and its age then.
    added: Time,
    age: Duration,
    /// When it had its first packet here, and how long it had been in use then.
    used: Option<Time>,
    used_for: Duration,
    /// The packet with which sequence numbers get low.
    low_at: u64,
    /// The last sequence number that was granted; the packet that has it, and the one half-way there.
    granted: u64,
    granted_at: u64,
    want_at: u64,
    told: Told,
    session: SessionId,
}

/// Events that have been told.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    soft: bool,
    hard: bool,
    low: bool,
    end: bool,
    want: bool,
}

impl Life {
    /// The life of an SA that is added at the time that `watch` has. The first packet is examined in any case.
    pub fn new(lifetime: Lifetime, session: SessionId, watch: &mut Watch) -> Life {
        let facts = Box::new(Facts {
            expired: false,
            lifetime,
            added: watch.now(),
            age: Duration::ZERO,
            used: None,
            used_for: Duration::ZERO,
            low_at: u64::MAX,
            granted: u64::MAX,
            granted_at: u64::MAX,
            want_at: u64::MAX,
            told: Told::default(),
            session,
        });
        let life = Life { packets: 0, bytes: 0, packet_mark: 0, byte_mark: 0, facts };
        watch.reserve();
        watch.wake_at(life.facts.due());
        life
    }

    /// Lets the event of low sequence numbers come with the packet from which on less than an eighth is left,
    /// if the last one had number `last` and `end` is the last there is; and that of more being wanted half-way
    /// to what is granted.
    pub fn number_from(&mut self, last: u64, end: u64) {
        let low = end - end / 8;
        let facts = &mut self.facts;
        facts.low_at = self.packets.saturating_add(low.saturating_sub(last));
        (facts.granted_at, facts.want_at) = (u64::MAX, u64::MAX);
        if facts.granted < end {
            let left = facts.granted.saturating_sub(last);
            facts.granted_at = self.packets.saturating_add(left);
            facts.want_at = self.packets.saturating_add((left / 2).max(1));
        }
        facts.told.want = false;
        // The next packet is looked at and finds the marks.
        self.packet_mark = 0;
    }

    /// Lets numbers go up to `last` and no further.
    pub fn grant(&mut self, last: u64) {
        self.facts.granted = last;
    }

    /// Tells, once, that the last number of all is used.
    #[cold]
    pub fn end_numbers(&mut self, watch: &mut Watch) {
        let told = &mut self.facts.told;
        if !told.end {
            told.end = watch.tell(self.facts.session, EventKind::SequenceEnd);
        }
    }

    /// Whether the hard lifetime has ended.
    #[inline]
    pub fn has_expired(&self) -> bool {
        self.packet_mark == 0 && self.facts.expired
    }

    /// Whether one more packet of `bytes` may pass; counts nothing.
    #[inline]
    pub fn admit(&mut self, bytes: usize, watch: &mut Watch) -> Result<(), Refused> {
        if self.packets >= self.packet_mark || self.bytes.wrapping_add(bytes as u64) > self.byte_mark {
            return self.look(bytes as u64, watch);
        }
        Ok(())
    }

    /// Counts `packets` that have been admitted, with `bytes` together.
    #[inline]
    pub fn count(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }

    /// How far it has come by `now`.
    pub fn lived(&self, now: Time) -> Lived {
        let facts = &self.facts;
        let age = facts.age + now.since(facts.added);
        let used = facts.used.map(|used| facts.used_for + now.since(used));
        Lived { age, used, packets: self.packets, bytes: self.bytes }
    }

    /// Lets a new SA continue the lifetime that was used up under its keys before. Sequence numbers have to be set
    /// separately.
    pub fn resume(&mut self, lived: &Lived, watch: &mut Watch) {
        self.packets = self.packets.saturating_add(lived.packets);
        self.bytes = self.bytes.saturating_add(lived.bytes);
        let facts = &mut self.facts;
        facts.age = lived.age;
        if let Some(used) = lived.used {
            (facts.used, facts.used_for) = (Some(watch.now()), used);
        }
        (self.packet_mark, self.byte_mark) = (0, 0);
        watch.wake_at(self.facts.due());
    }

    /// Packets that were counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// How many packets of at most `longest` bytes may pass without being asked for.
    #[inline]
    pub fn allowance(&self, longest: u64) -> u64 {
        let by_bytes = self.byte_mark.saturating_sub(self.bytes) / longest;
        self.packet_mark.saturating_sub(self.packets).min(by_bytes)
    }

    #[cold]
    fn look(&mut self, bytes: u64, watch: &mut Watch) -> Result<(), Refused> {
        let (packets, bytes) = (self.packets + 1, self.bytes.saturating_add(bytes));
        let passes = self.facts.look(packets, bytes, watch);
        self.set_marks();
        passes
    }

    /// Looks what is due by the time of `watch`, and asks to be looked at again.
    pub fn pass_time(&mut self, watch: &mut Watch) {
        self.facts.pass_time(watch);
        if self.facts.expired {
            self.set_marks();
        }
    }

    fn set_marks(&mut self) {
        (self.packet_mark, self.byte_mark) = self.facts.marks();
    }
}

impl Facts {
    /// Finds out what comes to pass with a packet that makes so many, and whether it may pass.
    fn look(&mut self, packets: u64, bytes: u64, watch: &mut Watch) -> Result<(), Refused> {
        if self.used.is_none() {
            self.used = Some(watch.now());
        }
        let beyond = |limit: Option<u64>, count| limit.is_some_and(|limit| count > limit);
        let reached = |limit: Option<u64>, count| limit.is_some_and(|limit| count >= limit);
        let Lifetime { soft, hard } = self.lifetime;
        self.expired |= beyond(hard.packets, packets) || beyond(hard.bytes, bytes);
        self.pass_time(watch);
        if !self.expired && !self.told.soft && (reached(soft.packets, packets) || reached(soft.bytes, bytes))
        {
            self.told.soft = watch.tell(self.session, EventKind::Soft);
        }
        if !self.expired && !self.told.low && packets >= self.low_at {
            self.told.low = watch.tell(self.session, EventKind::SequenceLow);
        }
        if !self.expired && !self.told.want && packets >= self.want_at {
            self.told.want = watch.tell(self.session, EventKind::SequenceWanted);
        }
        match self.expired {
            true => Err(Refused::Expired),
            false if packets > self.granted_at => Err(Refused::NoNumber),
            false => Ok(()),
        }
    }

    fn pass_time(&mut self, watch: &mut Watch) {
        let (soft, hard) = (self.end(&self.lifetime.soft), self.end(&self.lifetime.hard));
        self.expired |= hard.is_some_and(|end| end <= watch.now());
        if self.expired {
            self.told.hard = self.told.hard || watch.tell(self.session, EventKind::Hard);
        } else if !self.told.soft && soft.is_some_and(|end| end <= watch.now()) {
            self.told.soft = watch.tell(self.session, EventKind::Soft);
        }
        watch.wake_at(self.due());
    }

    /// When time will have something to say: at once, if there was no room for it.
    fn due(&self) -> Option<Time> {
        if self.expired {
            return (!self.told.hard).then_some(Time::ZERO);
        }
        let soft = if self.told.soft { None } else { self.end(&self.lifetime.soft) };
        [soft, self.end(&self.lifetime.hard)].into_iter().flatten().min()
    }

    fn end(&self, limits: &Limits) -> Option<Time> {
        let left = |length: Duration, gone: Duration| Duration(length.0.saturating_sub(gone.0));
        let by_use = self.used.zip(limits.use_time).map(|(used, length)| used + left(length, self.used_for));
        [limits.time.map(|length| self.added + left(length, self.age)), by_use].into_iter().flatten().min()
    }

    /// Packets and bytes up to which nothing comes to pass.
    fn marks(&self) -> (u64, u64) {
        if self.expired {
            return (0, 0);
        }
        let Lifetime { soft, hard } = self.lifetime;
        let before = |limit: Option<u64>, told: bool| match limit {
            Some(limit) if !told => limit.saturating_sub(1),
            _ => u64::MAX,
        };
        let low = if self.told.low { u64::MAX } else { self.low_at.saturating_sub(1) };
        let want = if self.told.want { u64::MAX } else { self.want_at.saturating_sub(1) };
        let numbers = low.min(want).min(self.granted_at);
        let packet_mark =
            hard.packets.unwrap_or(u64::MAX).min(before(soft.packets, self.told.soft)).min(numbers);
        let byte_mark = hard.bytes.unwrap_or(u64::MAX).min(before(soft.bytes, self.told.soft));
        (packet_mark, byte_mark)
    }
}
