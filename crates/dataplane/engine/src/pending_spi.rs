//! Packets whose SPI is not known yet.
//!
//! If another process installs SAs (an IKE daemon, through the kernel), a peer may use a new SA before this gateway has
//! read it from the kernel: the daemon has installed the SA and answered the peer, and the peer's first packet arrives
//! before the notification. A limited number of such packets waits for a limited time, and continues when the SA is
//! installed.

use std::collections::VecDeque;

use forebay_crypto::Packet;
use forebay_time::{Duration, Time};

/// How long packets of unknown SAs wait, and how many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingSpiLimits {
    /// Maximum number of packets that wait, which also bounds the effect of packets with made-up SPIs. 0: none waits.
    pub packets: usize,
    /// Longest wait.
    pub wait: Duration,
}

impl PendingSpiLimits {
    /// Limits where only this process installs SAs: no packet needs to wait.
    pub const NONE: PendingSpiLimits = PendingSpiLimits { packets: 0, wait: Duration::ZERO };
}

/// A packet that waits for its SA.
#[derive(Debug)]
pub struct Pending {
    pub packet: Packet,
    /// The caller's.
    pub tag: u64,
    pub came: Time,
}

/// The waiting packets, the oldest first.
#[derive(Debug)]
pub struct PendingSpi {
    limits: PendingSpiLimits,
    waiting: VecDeque<Pending>,
    /// An inbound SA has come since they were looked at.
    news: bool,
}

impl PendingSpi {
    pub fn new(limits: PendingSpiLimits) -> PendingSpi {
        PendingSpi { limits, waiting: VecDeque::with_capacity(limits.packets), news: false }
    }

    /// Says that an inbound SA has come. The packets are let in at the next poll, when everything is known of it.
    pub fn announce(&mut self) {
        self.news = !self.waiting.is_empty();
    }

    /// When the first has waited long enough; [`Time::MAX`] if none waits.
    pub fn next_due(&self) -> Time {
        self.waiting.front().map_or(Time::MAX, |first| first.came + self.limits.wait)
    }

    /// Packets that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Keeps a packet; gives it back if as many wait as may.
    pub fn keep(&mut self, packet: Packet, tag: u64, now: Time) -> Result<(), Packet> {
        if self.waiting.len() >= self.limits.packets {
            return Err(packet);
        }
        self.waiting.push_back(Pending { packet, tag, came: now });
        Ok(())
    }

    /// Whether an inbound SA has come since this was last asked.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Takes the one that has waited longest.
    pub fn pop(&mut self) -> Option<Pending> {
        self.waiting.pop_front()
    }

    /// The one that was kept last waits since `came`.
    pub fn backdate(&mut self, came: Time) {
        if let Some(last) = self.waiting.back_mut() {
            last.came = came;
        }
    }
}
