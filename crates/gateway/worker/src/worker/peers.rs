//! Peers whose packets come from another address: their SAs follow them.
//!
//! An inbound SA notices that its peer has another address or port. The SAs of its pair follow at once. Other SAs of the
//! same address and port may belong to another peer behind the same NAT, so they wait for a packet of their own; only if
//! no inbound SA of another pair is there do they follow too.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Encapsulation, SaConfig, TrafficSelector};
use forebay_planted::{Fault, planted};

use super::Worker;
use forebay_config::Changes;
use forebay_sas::{SaEntry, SasFile};

/// A local address, and the address and port of a peer.
type Ends = (IpAddr, SocketAddr);
/// What names a pair of a file's SAs: the ends in the file, and the traffic selectors of both sides.
type Pair<'a> = (Ends, &'a [TrafficSelector], &'a [TrafficSelector]);

/// Where the peer of some SAs is now, by the SAs that stay over a reload.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    /// All of them are to one address and port.
    At(SocketAddr),
    /// They are not.
    Unsure,
}

impl Worker {
    /// Sends the packets of SAs to the address that their peer's host name has now.
    pub(super) fn move_named(&mut self, file: &SasFile, changes: &Changes) {
        for &place in &changes.moved {
            let (Some(entry), Some(&session)) = (file.entries.get(place), self.sessions().get(place)) else {
                continue;
            };
            let (_, to) = ends(&entry.config);
            if let Err(error) = self.engine.set_peer(session, to) {
                tracing::warn!(sa = entry.config.name, %to, %error, "the SA keeps the address that its peer had: another SA to the new one has the SPI");
            }
        }
    }

    /// Gives new SAs of a file the present address of their peer: the file has the first one, and an inbound SA that has
    /// followed its peer does not notice the change again. A new SA goes where the SAs of its pair are, or without any
    /// where all SAs with its addresses in the file are.
    pub(super) fn find_peers(&mut self, file: &SasFile, changes: &Changes) {
        if planted(Fault::PeersNotFound) {
            return;
        }
        let sessions = self.sessions().to_vec();
        let sas = || {
            let sas = file.entries.iter().zip(&changes.kept).zip(sessions.iter().copied());
            sas.filter(|((entry, _), _)| entry.config.encapsulation == Encapsulation::Udp)
        };
        let sad = self.engine.sad();
        let present = |session| sad.config(session).map(|config| ends(config).1);
        let kept = sas().filter(|((_, kept), _)| kept.is_some());
        let kept = kept.filter_map(|((entry, _), session)| Some((entry, present(session)?)));
        let kept: Vec<_> = kept.collect();
        if kept.iter().all(|(entry, now)| ends(&entry.config).1 == *now) {
            return;
        }
        let (mut pairs, mut all) = (HashMap::new(), HashMap::new());
        for (entry, now) in kept {
            note(&mut pairs, pair(entry), now);
            note(&mut all, ends(&entry.config), now);
        }
        drop(sad);
        for ((entry, kept), session) in sas() {
            let now = pairs.get(&pair(entry)).or_else(|| all.get(&ends(&entry.config)));
            if let (None, Some(&Now::At(to))) = (kept, now)
                && let Err(error) = self.engine.move_peer(session, to)
            {
                tracing::warn!(sa = entry.config.name, %to, %error, "the new SA does not follow peer address changes; set its `remote` to this address and reload");
            }
        }
    }

    /// Lets the SAs of an inbound SA's pair follow its peer.
    pub(super) fn follow(&mut self, session: SessionId, to: SocketAddr) {
        if planted(Fault::PeersNotFollowed) {
            return;
        }
        let Some(inbound) = self.engine.sad().config(session).cloned() else { return };
        let (_, from) = ends(&inbound);
        let moved = self.move_peer(&inbound, to);
        self.counts.moved_peers += u64::from(moved > 0);
        if let Some(unsaid) = self.moves_said.admit(self.engine.clock().now()) {
            tracing::info!(%from, %to, sas = moved, unsaid, "peer address changed");
        }
    }

    /// Gives the SAs that follow the peer of an inbound SA its new address and port; how many there were.
    fn move_peer(&mut self, inbound: &SaConfig, to: SocketAddr) -> usize {
        let (local, from) = ends(inbound);
        let sad = self.engine.sad();
        let mut sas = sad.sas_at(local, from);
        let is_paired = |sa| sad.config(sa).is_some_and(|config| config.is_paired_with(inbound));
        let is_shared = sas.iter().any(|&sa| sad.direction(sa) == Some(Direction::Open) && !is_paired(sa));
        if is_shared {
            sas.retain(|&sa| is_paired(sa));
        }
        drop(sad);
        sas.into_iter().filter(|&sa| self.engine.move_peer(sa, to) == Ok(true)).count()
    }
}

fn ends(config: &SaConfig) -> Ends {
    (config.local, SocketAddr::new(config.remote, config.udp.remote))
}

fn pair(entry: &SaEntry) -> Pair<'_> {
    let config = &entry.config;
    (ends(config), &config.local_ts, &config.remote_ts)
}

fn note<K: Eq + std::hash::Hash>(of: &mut HashMap<K, Now>, key: K, now: SocketAddr) {
    let known = of.entry(key).or_insert(Now::At(now));
    if *known != Now::At(now) {
        *known = Now::Unsure;
    }
}
