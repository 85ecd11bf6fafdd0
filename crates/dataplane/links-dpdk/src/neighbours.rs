//! Who on the Ethernet gets a packet to its destination: the table of neighbours, which asks for those that it lacks and
//! answers those who ask for this link's addresses.
//!
//! It does no I/O: frames that are to be sent wait in it, and the time is given. It keeps limits on everything that others can
//! make it do.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::IpNet;

use crate::Mac;
use crate::messages::{self, Message};

/// How long an answer counts before it is asked for again; meanwhile it is used.
const FRESH: Duration = Duration::from_secs(30);
/// How long an answer counts at most.
const KEEP: Duration = Duration::from_secs(60);
/// Between two requests for one neighbour (RFC 4861 10, RetransTimer).
const AGAIN: Duration = Duration::from_secs(1);
/// Requests a second for all neighbours together: whoever sends to many addresses has them asked for.
const ASKS: u32 = 100;
/// Maximum number of neighbours.
const MOST: usize = 4_096;
/// Frames that wait to be sent.
const WAITING: usize = 64;

/// What a link has to know of its Ethernet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The own Ethernet address.
    pub mac: Mac,
    /// The own addresses, each with the network that is on this Ethernet.
    pub addresses: Vec<IpNet>,
    /// Routers for all other destinations, at most one of each IP version.
    pub gateways: Vec<IpAddr>,
    /// Neighbours that are not asked for.
    pub fixed: Vec<(IpAddr, Mac)>,
}

/// The table.
#[derive(Debug)]
pub struct Neighbours {
    settings: Settings,
    entries: HashMap<IpAddr, Entry>,
    waiting: Vec<Vec<u8>>,
    /// The second in which requests were counted last, and how many.
    asked: (Option<Instant>, u32),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    mac: Option<Mac>,
    /// When the neighbour itself said so last, or was first wanted.
    said: Instant,
    asked: Option<Instant>,
}

impl Neighbours {
    /// An empty table. Its first frames announce the own addresses and ask for the routers.
    pub fn new(settings: Settings, now: Instant) -> Neighbours {
        let announced = settings.addresses.iter().map(|own| messages::announce((own.addr(), settings.mac)));
        let waiting = announced.take(WAITING / 2).collect();
        let mut table = Neighbours { settings, entries: HashMap::new(), waiting, asked: (None, 0) };
        for gateway in table.settings.gateways.clone() {
            table.towards(gateway, now);
        }
        table
    }

    /// Neighbours that have an address.
    pub fn known(&self) -> usize {
        self.entries.values().filter(|entry| entry.mac.is_some()).count()
    }

    /// Who takes a packet to its destination: itself, or the router of its IP version.
    fn next_hop(&self, to: IpAddr) -> Option<IpAddr> {
        if self.is_near(to) {
            return Some(to);
        }
        self.settings.gateways.iter().copied().find(|gateway| gateway.is_ipv4() == to.is_ipv4())
    }

    /// Whether an address is on this Ethernet.
    fn is_near(&self, address: IpAddr) -> bool {
        let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let given = || self.settings.fixed.iter().any(|(fixed, _)| *fixed == address);
        is_link_local
            || self.settings.addresses.iter().any(|own| own.contains(&address))
            || self.settings.gateways.contains(&address)
            || given()
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.settings.addresses.iter().any(|own| own.addr() == address)
    }

    /// The Ethernet address for packets to a destination; `None` if no way leads there, or the neighbour has yet to say who it
    /// is: it is asked then.
    pub fn towards(&mut self, to: IpAddr, now: Instant) -> Option<Mac> {
        if let Some(group) = messages::group(to) {
            return Some(group);
        }
        let hop = self.next_hop(to)?;
        if let Some((_, mac)) = self.settings.fixed.iter().find(|(fixed, _)| *fixed == hop) {
            return Some(*mac);
        }
        let mut entry = match self.entries.get(&hop) {
            Some(entry) => *entry,
            None => {
                self.make_room();
                Entry { mac: None, said: now, asked: None }
            }
        };
        let age = now.saturating_duration_since(entry.said);
        if age >= KEEP {
            entry.mac = None;
        }
        let is_due = entry.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= AGAIN);
        if is_due && (entry.mac.is_none() || age >= FRESH) && self.ask(hop, entry.mac, now) {
            entry.asked = Some(now);
        }
        self.entries.insert(hop, entry);
        entry.mac
    }

    /// Asks for a neighbour; whether that was possible.
    fn ask(&mut self, hop: IpAddr, known: Option<Mac>, now: Instant) -> bool {
        let (since, count) = &mut self.asked;
        if since.is_none_or(|since| now.saturating_duration_since(since) >= Duration::from_secs(1)) {
            (*since, *count) = (Some(now), 0);
        }
        let mut own = self.settings.addresses.iter().filter(|own| own.addr().is_ipv4() == hop.is_ipv4());
        let Some(from) = own.clone().find(|own| own.contains(&hop)).or_else(|| own.next()) else {
            return false;
        };
        if *count >= ASKS || self.waiting.len() >= WAITING {
            return false;
        }
        *count += 1;
        self.waiting.push(messages::ask((from.addr(), self.settings.mac), hop, known));
        true
    }

    /// Takes note of what a neighbour says, and answers it if it asks for an own address; whether the message was for this link.
    pub fn heard(&mut self, message: Message, now: Instant) -> bool {
        match message {
            Message::Says { who, mac, overrides } => {
                let Some(entry) = self.entries.get_mut(&who) else { return false };
                if entry.mac.is_none() || entry.mac == Some(mac) || overrides {
                    *entry = Entry { mac: Some(mac), said: now, asked: None };
                }
                true
            }
            Message::Asks { from, target } => {
                if !self.is_own(target) {
                    return false;
                }
                if let Some((who, mac)) = from.filter(|(who, _)| self.is_near(*who) && !self.is_own(*who)) {
                    if !self.entries.contains_key(&who) {
                        self.make_room();
                    }
                    self.entries.insert(who, Entry { mac: Some(mac), said: now, asked: None });
                }
                if self.waiting.len() < WAITING {
                    self.waiting.push(messages::answer((target, self.settings.mac), from));
                }
                true
            }
        }
    }

    /// Makes room for a neighbour: those that have never answered go first, then the one that was heard longest ago.
    fn make_room(&mut self) {
        if self.entries.len() < MOST {
            return;
        }
        self.entries.retain(|_, entry| entry.mac.is_some());
        if self.entries.len() >= MOST {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.said).map(|(who, _)| *who);
            oldest.map(|who| self.entries.remove(&who));
        }
    }

    /// Whether there are frames to be sent.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the frames that are to be sent.
    pub fn take_waiting(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a time to begin with
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const PEER: Mac = [2, 0, 0, 0, 0, 2];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn table(now: Instant) -> Neighbours {
        let settings = Settings {
            mac: OWN,
            addresses: vec!["192.0.2.1/24".parse().unwrap(), "2001:db8::1/64".parse().unwrap()],
            gateways: vec![ip("192.0.2.254")],
            fixed: vec![(ip("192.0.2.9"), [2, 0, 0, 0, 0, 9])],
        };
        Neighbours::new(settings, now)
    }

    fn says(who: &str, mac: Mac) -> Message {
        Message::Says { who: ip(who), mac, overrides: true }
    }

    #[test]
    fn neighbours_are_asked_for_and_their_answers_kept_for_a_minute() {
        let begin = Instant::now();
        let at = |s| begin + Duration::from_secs(s);
        let mut table = table(begin);
        assert_eq!(table.take_waiting().len(), 3, "two announcements, and a request for the router");
        for peer in ["192.0.2.2", "2001:db8::2", "fe80::2"] {
            assert_eq!(table.towards(ip(peer), begin), None);
            assert_eq!(table.towards(ip(peer), begin), None);
            assert_eq!(table.take_waiting().len(), 1, "{peer}: one request a second");
            assert_eq!(table.towards(ip(peer), at(1)), None);
            assert_eq!(table.take_waiting().len(), 1);
            assert!(table.heard(says(peer, PEER), at(1)));
            assert_eq!(table.towards(ip(peer), at(20)), Some(PEER));
            assert!(table.take_waiting().is_empty());
            // It is asked again while it is used, by a frame to it alone.
            assert_eq!(table.towards(ip(peer), at(32)), Some(PEER));
            assert_eq!(table.take_waiting()[0][..6], PEER);
            assert_eq!(table.towards(ip(peer), at(60)), Some(PEER));
            assert_eq!(table.towards(ip(peer), at(61)), None, "it has gone");
            table.take_waiting();
        }
        // By the router, which an address of another network is not asked for.
        assert_eq!(table.towards(ip("203.0.113.7"), at(61)), None);
        table.heard(says("192.0.2.254", PEER), at(61));
        assert_eq!(table.towards(ip("203.0.113.7"), at(61)), Some(PEER));
        assert_eq!(table.towards(ip("2001:db8:9::7"), at(61)), None, "no router of this IP version");
        assert_eq!(table.towards(ip("192.0.2.9"), at(61)), Some([2, 0, 0, 0, 0, 9]), "given by the file");
        assert_eq!(table.towards(ip("224.0.0.5"), at(61)), Some([1, 0, 0x5e, 0, 0, 5]));
    }

    #[test]
    fn only_own_addresses_are_answered_for_and_who_asks_is_a_neighbour() {
        let now = Instant::now();
        let mut table = table(now);
        table.take_waiting();
        let asks = |from: Option<&str>, target: &str| Message::Asks {
            from: from.map(|from| (ip(from), PEER)),
            target: ip(target),
        };
        assert!(!table.heard(asks(Some("192.0.2.2"), "192.0.2.3"), now));
        assert!(table.take_waiting().is_empty());
        assert!(table.heard(asks(Some("192.0.2.2"), "192.0.2.1"), now));
        assert_eq!(table.take_waiting()[0][..6], PEER);
        assert_eq!(table.towards(ip("192.0.2.2"), now), Some(PEER));
        // One of another network is answered, and not believed.
        assert!(table.heard(asks(Some("198.51.100.2"), "192.0.2.1"), now));
        assert_eq!((table.take_waiting().len(), table.known()), (1, 1));
        // Whoever looks whether the address is free learns that it is not; and nobody takes it over.
        assert!(table.heard(asks(None, "2001:db8::1"), now));
        assert_eq!(table.take_waiting().len(), 1);
        assert!(!table.heard(says("192.0.2.1", PEER), now));
        // What nobody asked for makes no entry.
        assert!(!table.heard(says("192.0.2.77", PEER), now));
        assert_eq!(table.known(), 1);
    }

    #[test]
    fn requests_entries_and_frames_have_limits() {
        let begin = Instant::now();
        let mut table = table(begin);
        table.heard(Message::Asks { from: Some((ip("192.0.2.2"), PEER)), target: ip("192.0.2.1") }, begin);
        let mut sent = table.take_waiting().len();
        for n in 0..3 * MOST as u128 {
            let to = IpAddr::from((0x2001_0db8_u128 << 96 | (n + 16)).to_be_bytes());
            assert_eq!(table.towards(to, begin), None);
            assert!(table.entries.len() <= MOST && table.waiting.len() <= WAITING);
            sent += table.take_waiting().len();
        }
        assert!(sent <= ASKS as usize + 8, "{sent} frames in a second");
        assert_eq!(table.towards(ip("192.0.2.2"), begin), Some(PEER), "who has answered stays");
        for n in 0..2 * MOST as u128 {
            let who = IpAddr::from((0x2001_0db8_u128 << 96 | (n + 16)).to_be_bytes());
            table.heard(Message::Asks { from: Some((who, PEER)), target: ip("2001:db8::1") }, begin);
            assert!(table.entries.len() <= MOST && table.waiting.len() <= WAITING);
        }
    }
}
