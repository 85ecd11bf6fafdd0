//! The paths of tunnels whose SAs exchange congestion information (RFC 9347 2.4.2): one for the SAs of both directions, which it
//! outlives as long as one of them is there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use forebay_crypto::SessionId;
use forebay_iptfs::Congestion;

use crate::sa::{Ends, SaConfig};

/// All paths.
#[derive(Debug, Default)]
pub struct Paths {
    paths: Vec<Path>,
    by_ends: HashMap<Ends, u32>,
    /// The path of each SA.
    path_of: Vec<Option<u32>>,
    /// Paths without an SA.
    free: Vec<u32>,
}

/// What is known of one of them, and who tells the peer.
#[derive(Debug)]
pub struct Path {
    pub congestion: Congestion,
    pub senders: Vec<SessionId>,
    /// SAs, senders among them.
    members: usize,
    ends: Ends,
}

impl Paths {
    /// Adds an SA, if it exchanges congestion information.
    pub fn add(&mut self, session: SessionId, config: &SaConfig, is_sender: bool) {
        if !config.iptfs.as_ref().is_some_and(|iptfs| iptfs.congestion) {
            return;
        }
        let ends = config.ends();
        let number = match self.by_ends.entry(ends.clone()) {
            Entry::Occupied(number) => *number.get(),
            Entry::Vacant(place) => {
                let path = Path { congestion: Congestion::default(), senders: Vec::new(), members: 0, ends };
                let number = self.free.pop().unwrap_or(self.paths.len() as u32);
                match self.paths.get_mut(number as usize) {
                    Some(old) => *old = path,
                    None => self.paths.push(path),
                }
                *place.insert(number)
            }
        };
        let path = &mut self.paths[number as usize];
        path.members += 1;
        path.senders.extend(is_sender.then_some(session));
        let place = session.0 as usize;
        self.path_of.resize(self.path_of.len().max(place + 1), None);
        self.path_of[place] = Some(number);
    }

    /// Forgets an SA, and its path with the last one.
    pub fn remove(&mut self, session: SessionId) {
        let Some(number) = self.path_of.get_mut(session.0 as usize).and_then(Option::take) else { return };
        let path = &mut self.paths[number as usize];
        path.senders.retain(|&sender| sender != session);
        path.members -= 1;
        if path.members == 0 {
            self.forget_ends(number);
            self.free.push(number);
        }
    }

    /// The ends of an SA, and so of its tunnel, are others now.
    pub fn moved(&mut self, session: SessionId, config: &SaConfig) {
        let Some(number) = self.path_of.get(session.0 as usize).copied().flatten() else { return };
        let ends = config.ends();
        if self.paths[number as usize].ends != ends {
            self.forget_ends(number);
            self.paths[number as usize].ends = ends.clone();
            // Where there is another tunnel with these ends, further SAs are of that one.
            self.by_ends.entry(ends).or_insert(number);
        }
    }

    fn forget_ends(&mut self, number: u32) {
        if let Entry::Occupied(found) = self.by_ends.entry(self.paths[number as usize].ends.clone())
            && *found.get() == number
        {
            found.remove();
        }
    }

    /// The path of an SA that exchanges congestion information.
    #[inline]
    pub fn of(&mut self, session: SessionId) -> Option<&mut Path> {
        let number = (*self.path_of.get(session.0 as usize)?)?;
        self.paths.get_mut(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sa::Spi;
    use forebay_iptfs::Iptfs;

    fn sa(remote: &str, congestion: bool) -> SaConfig {
        let (suite, local) = ("aes128gcm16".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let config = SaConfig::new("tunnel", Spi::MIN, suite, local, remote.parse().unwrap());
        SaConfig { iptfs: Some(Iptfs { congestion, ..Iptfs::default() }), ..config }
    }

    #[test]
    fn sas_with_the_same_ends_have_one_path_as_long_as_there_is_one() {
        let [one, other] = ["192.0.2.2", "192.0.2.3"].map(|remote| sa(remote, true));
        let id = SessionId;
        let mut all = Paths::default();
        all.add(id(1), &one, true);
        all.add(id(2), &other, true);
        all.add(id(3), &sa("192.0.2.2", false), true);
        all.add(id(4), &one, false);
        assert!(all.of(id(3)).is_none() && all.of(id(9)).is_none());
        assert_eq!(all.path_of, [None, Some(0), Some(1), None, Some(0)]);
        // Rekeyed: the new ones join, and the old ones leave.
        all.add(id(5), &one, true);
        all.add(id(6), &one, false);
        assert_eq!(all.of(id(6)).unwrap().senders, [id(1), id(5)]);
        all.remove(id(1));
        all.remove(id(4));
        assert_eq!(all.of(id(6)).unwrap().senders, [id(5)]);
        // The peer moves to an address that another tunnel has.
        all.moved(id(5), &other);
        all.moved(id(6), &other);
        all.moved(id(3), &other);
        all.add(id(7), &other, false);
        all.add(id(8), &one, false);
        assert_eq!(all.path_of[5..], [Some(0), Some(0), Some(1), Some(2)]);
        for n in 2..9 {
            all.remove(id(n));
        }
        assert_eq!((all.by_ends.len(), all.free.len()), (0, 3));
        all.add(id(1), &one, true);
        assert_eq!((all.path_of[1], all.of(id(1)).unwrap().senders.len(), all.paths.len()), (Some(2), 1, 3));
    }
}
