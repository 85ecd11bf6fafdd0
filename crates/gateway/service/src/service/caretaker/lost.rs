//! What policies of the kernel protected until a moment ago, which stays in the saved rules for a while.
//!
//! An IKE daemon that ends, as at a shutdown, deletes its policies one by one. Whatever is left of them at the moment when the host
//! goes down is no measure of what the next boot is to begin with.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use forebay_guard::{Entry, Saved};
use ipnet::IpNet;

/// Time for which they stay saved: systemd gives a daemon up to 90 s to end, and one with thousands of policies takes some seconds.
const STAYS: Duration = Duration::from_secs(90);

/// Policies and networks that stay saved although they are not in force any more, with the times of their removal.
#[derive(Default)]
pub(super) struct Lost {
    entries: Vec<(Instant, Entry)>,
    discarded: Vec<(Instant, IpNet)>,
}

impl Lost {
    /// Adds policies that protect in `before` and are not in `after`.
    pub(super) fn note_entries(&mut self, before: &[Entry], after: &[Entry], now: Instant) {
        let after: HashSet<_> = after.iter().collect();
        self.entries.retain(|(_, entry)| !after.contains(entry));
        let went = before.iter().filter(|entry| !entry.bypasses && !after.contains(entry));
        self.entries.extend(went.map(|entry| (now, entry.clone())));
    }

    /// Adds networks that are discarded in `before` and not in `after`.
    pub(super) fn note_discarded(&mut self, before: &[IpNet], after: &[IpNet], now: Instant) {
        let after: HashSet<_> = after.iter().collect();
        self.discarded.retain(|(_, network)| !after.contains(network));
        let went = before.iter().filter(|network| !after.contains(network));
        self.discarded.extend(went.map(|&network| (now, network)));
    }

    /// Forgets old removals; returns whether there were any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let before = (self.entries.len(), self.discarded.len());
        let is_young = |went: Instant| now.saturating_duration_since(went) < STAYS;
        self.entries.retain(|(went, _)| is_young(*went));
        self.discarded.retain(|(went, _)| is_young(*went));
        before != (self.entries.len(), self.discarded.len())
    }

    /// The file names the networks from now on.
    pub(super) fn forget_discarded(&mut self) {
        self.discarded.clear();
    }

    /// Adds removed policies and networks to those in force; blackhole routes only if the gateway has any.
    pub(super) fn add_to(&self, saved: &mut Saved, discards: bool) {
        if saved.host.is_some() {
            saved.entries.extend(self.entries.iter().map(|(_, entry)| entry.clone()));
        }
        if discards {
            saved.discarded.extend(self.discarded.iter().map(|(_, network)| *network));
        }
    }
}
