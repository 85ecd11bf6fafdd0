//! Peers that come from another address: their SAs follow them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use forebay_crypto::SessionId;
use forebay_ipsec::{Encapsulation, SaConfig};
use forebay_planted::{Fault, planted};

use super::Worker;
use crate::config::Changes;
use crate::sas::{SaEntry, SasFile};

impl Worker {
    /// Lets new SAs know where their peers have moved: the file says where these were at first, and an inbound SA that has
    /// noticed it does not notice it again. All SAs of a peer have one place, so that they follow it together.
    pub(super) fn find_peers(&mut self, file: &SasFile, changes: &Changes) {
        if planted(Fault::PeersNotFound) {
            return;
        }
        let sessions = self.sessions().to_vec();
        let place = |sa: &SaConfig| (sa.local, SocketAddr::new(sa.remote, sa.udp.remote));
        let sas = || {
            let sas = file.entries.iter().zip(&changes.kept).zip(sessions.iter().copied());
            sas.filter(|((entry, _), _)| entry.config.encapsulation == Encapsulation::Udp)
        };
        let sad = self.engine.sad();
        let moved = |((entry, kept), session): ((&SaEntry, &Option<usize>), SessionId)| {
            let (first, now) = (place(&entry.config), place(sad.config(session)?));
            (kept.is_some() && first != now).then_some((first, now.1))
        };
        let moved: HashMap<(IpAddr, SocketAddr), SocketAddr> = sas().filter_map(moved).collect();
        if moved.is_empty() {
            return;
        }
        for ((entry, kept), session) in sas() {
            if let (None, Some(&to)) = (kept, moved.get(&place(&entry.config)))
                && let Err(error) = self.engine.move_peer(session, to)
            {
                tracing::warn!(sa = entry.config.name, %to, %error, "the new SA cannot follow its peer");
            }
        }
    }

    /// Lets the outbound SAs to the peer of an inbound one follow it.
    pub(super) fn follow(&mut self, session: SessionId, to: SocketAddr) {
        if planted(Fault::PeersNotFollowed) {
            return;
        }
        let Some(inbound) = self.engine.sad().config(session) else { return };
        let (local, from) = (inbound.local, SocketAddr::new(inbound.remote, inbound.udp.remote));
        let moved = self.move_peer(local, from, to);
        self.counts.moved_peers += u64::from(moved > 0);
        if let Some(unsaid) = self.moves_said.admit(self.engine.clock().now()) {
            tracing::info!(%from, %to, sas = moved, unsaid, "a peer has moved");
        }
        for other in &self.others {
            // Nobody has to wait for it.
            drop(other.post(move |worker| worker.move_peer(local, from, to)));
        }
    }

    /// Gives the SAs between a local address and a peer another place of the peer; how many there were.
    fn move_peer(&mut self, local: IpAddr, from: SocketAddr, to: SocketAddr) -> usize {
        let sas = self.engine.sad().sas_at(local, from);
        sas.into_iter().filter(|&sa| self.engine.move_peer(sa, to) == Ok(true)).count()
    }
}
