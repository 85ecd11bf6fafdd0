//! The network outside: the fate of a packet between two gateways, and packets that others inject.

use forebay_random::Random;
use forebay_time::{Duration, Time};

use crate::oracle::Wire;
use crate::packet::{self, Place};
use crate::site::HOMES;

/// Packets that are remembered, to be sent again.
const REMEMBERED: usize = 20_000;
/// The port of ESP in UDP.
const PORT: u16 = 4_500;
/// Between two addresses of a gateway, and the ports behind which a NAT has them.
const HOME: u8 = 50;
const HOME_PORTS: u16 = 1_000;
/// Source address of packets that no peer sent.
pub const STRANGER: Place = ([203, 0, 113, 66], 6_666);

/// The weather around a gateway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Per cent.
    pub loss: u8,
    pub duplicate: u8,
    pub corrupt: u8,
    /// How much later a packet may come than others.
    pub jitter_ms: u16,
}

/// A packet that was carried.
#[derive(Clone, Debug)]
pub struct Carried {
    /// As it is on the receiver's side.
    pub packet: Vec<u8>,
    pub to: usize,
    pub wire: Option<Wire>,
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Coming {
    pub to: usize,
    pub at: Time,
    pub packet: Vec<u8>,
    /// What it is, if it is intact.
    pub wire: Option<Wire>,
}

/// The network.
pub struct Network {
    random: Random,
    /// Around each gateway.
    pub weather: Vec<Weather>,
    /// Where each gateway is seen behind NAT, and where it was seen before.
    nat: Vec<Vec<Place>>,
    /// What was carried, oldest first.
    pub carried: Vec<Carried>,
}

impl Network {
    /// A network between so many gateways.
    pub fn new(gateways: usize, random: Random) -> Network {
        let weather = vec![Weather::default(); gateways];
        Network { random, weather, nat: vec![Vec::new(); gateways], carried: Vec::new() }
    }

    /// The address of a gateway.
    pub fn address(gateway: usize) -> [u8; 4] {
        Network::address_at(gateway, 0)
    }

    /// One of several that it may have.
    pub fn address_at(gateway: usize, home: u8) -> [u8; 4] {
        [192, 0, 2, home * HOME + gateway as u8 + 1]
    }

    /// Which of its own addresses this is.
    pub fn home_of(address: [u8; 4], gateway: usize) -> Option<u8> {
        (0..HOMES).find(|&home| address == Network::address_at(gateway, home))
    }

    /// Puts a gateway behind another NAT.
    pub fn moves(&mut self, gateway: usize) {
        let turn = self.nat[gateway].len();
        let address = [198, 51, 100, (gateway * 16 + turn % 16) as u8 + 1];
        self.nat[gateway].push((address, 10_000 + turn as u16));
    }

    /// Whether a place is, or once was, a gateway's.
    pub fn is_place_of(&self, place: Place, gateway: usize) -> bool {
        Network::home_of(place.0, gateway).is_some()
            || self.nat[gateway].iter().any(|nat| behind(*nat, place).is_some())
    }

    /// The gateway whose place this is now, and which of its addresses.
    fn at(&self, place: Place, udp: bool) -> Option<(usize, u8)> {
        (0..self.nat.len()).find_map(|gateway| {
            let home = match self.nat[gateway].last() {
                Some(nat) if udp => behind(*nat, place),
                _ => Network::home_of(place.0, gateway),
            };
            Some((gateway, home?))
        })
    }

    /// Carries a packet that gateway `from` sent at `at`.
    pub fn carry(&mut self, from: usize, mut packet: Vec<u8>, wire: Option<Wire>, at: Time) -> Vec<Coming> {
        let udp = packet[9] == 17;
        let (source, destination) = packet::places(&packet);
        if let Some(&(address, port)) = self.nat[from].last().filter(|_| udp) {
            let home = Network::home_of(source.0, from).unwrap_or(0);
            packet::set_source(&mut packet, (address, port + u16::from(home) * HOME_PORTS));
        }
        let Some((to, home)) = self.at(destination, udp) else { return Vec::new() };
        packet::set_destination(&mut packet, (Network::address_at(to, home), PORT));
        if self.carried.len() < REMEMBERED {
            self.carried.push(Carried { packet: packet.clone(), to, wire });
        }
        let (one, two) = (self.weather[from], self.weather[to]);
        let chance = |random: &mut Random, one: u8, two: u8| random.below(100) < u64::from(one.max(two));
        let mut coming = Vec::new();
        let copies = 1 + usize::from(chance(&mut self.random, one.duplicate, two.duplicate));
        for _ in 0..copies {
            if chance(&mut self.random, one.loss, two.loss) {
                continue;
            }
            let jitter = u64::from(one.jitter_ms.max(two.jitter_ms)) * 1_000;
            let late = 300 + self.random.below(50) + self.random.below(jitter + 1);
            let mut copy = Coming { to, at: at + Duration::from_micros(late), packet: packet.clone(), wire };
            if chance(&mut self.random, one.corrupt, two.corrupt) {
                self.damage(&mut copy.packet);
                copy.wire = None;
            }
            coming.push(copy);
        }
        coming
    }

    /// Changes something behind the outer headers, or cuts the packet off.
    fn damage(&mut self, packet: &mut Vec<u8>) {
        let at = if packet[9] == 17 { 28 } else { 20 };
        if packet.len() <= at + 1 {
            return;
        }
        let place = at + self.random.below((packet.len() - at) as u64) as usize;
        match self.random.below(4) {
            0 => {
                let len = place.max(at + 1);
                packet.truncate(len);
                fit(packet);
            }
            _ => packet[place] ^= 1 << self.random.below(8),
        }
    }

    /// Packets that went to a gateway before, again. Those that come from elsewhere have been delivered: what a gateway
    /// has never seen, an attacker on the path could forward.
    pub fn replay(
        &mut self,
        to: usize,
        count: u16,
        elsewhere: bool,
        at: Time,
        delivered: impl Fn(Wire) -> bool,
    ) -> Vec<Coming> {
        let mut coming = Vec::new();
        if self.carried.is_empty() {
            return coming;
        }
        // A stretch of what was carried, or here and there.
        let stretch = self.random.below(2) == 0;
        let mut place = self.random.below(self.carried.len() as u64) as usize;
        for nth in 0..usize::from(count) {
            let one = &self.carried[place];
            let mut packet = one.packet.clone();
            if one.to == to && (!elsewhere || one.wire.is_some_and(&delivered)) {
                if elsewhere {
                    packet::set_source(&mut packet, STRANGER);
                }
                let at = at + Duration::from_micros(10 * nth as u64);
                coming.push(Coming { to, at, packet, wire: one.wire });
            }
            place = match stretch {
                true => (place + 1) % self.carried.len(),
                false => self.random.below(self.carried.len() as u64) as usize,
            };
        }
        coming
    }

    /// ESP packets that no gateway has sent: with numbers far ahead, or of no SA.
    pub fn forge_esp(&mut self, to: usize, count: u16, at: Time) -> Vec<Coming> {
        let templates: Vec<usize> =
            (0..self.carried.len()).filter(|&place| self.carried[place].to == to).collect();
        if templates.is_empty() {
            return Vec::new();
        }
        let mut forge = |nth: u16| {
            let template = templates[self.random.below(templates.len() as u64) as usize];
            let mut packet = self.carried[template].packet.clone();
            let esp = if packet[9] == 17 { 28 } else { 20 };
            if packet.len() < esp + 8 {
                return None;
            }
            let sequence = self.random.bits() as u32 >> self.random.below(24);
            packet[esp + 4..esp + 8].copy_from_slice(&sequence.to_be_bytes());
            if self.random.below(4) == 0 {
                let spi = self.random.bits() as u32 | 0x100;
                packet[esp..esp + 4].copy_from_slice(&spi.to_be_bytes());
            }
            if let Some(last) = packet.last_mut() {
                *last ^= 1;
            }
            let at = at + Duration::from_micros(u64::from(nth) * 5);
            Some(Coming { to, at, packet, wire: None })
        };
        (0..count).filter_map(&mut forge).collect()
    }

    /// ICMP errors about packets that a gateway has sent, or that look so.
    pub fn forge_icmp(&mut self, about: usize, count: u16, mtu: u16) -> Vec<Vec<u8>> {
        let all = self.carried.len() as u64;
        let mut messages = Vec::new();
        for _ in 0..if all == 0 { 0 } else { count } {
            let mut quoted = self.carried[self.random.below(all) as usize].packet.clone();
            if Network::home_of(packet::places(&quoted).0.0, about).is_none() {
                continue;
            }
            if self.random.below(2) == 0 {
                let place = 20 + self.random.below(16) as usize;
                if let Some(byte) = quoted.get_mut(place) {
                    *byte ^= self.random.bits() as u8;
                }
            }
            messages.push(packet::too_big(&quoted, mtu));
        }
        messages
    }
}

/// Which of a gateway's addresses is seen at a place, if that is behind this NAT.
fn behind(nat: Place, place: Place) -> Option<u8> {
    let home = (0..HOMES).find(|&home| place.1 == nat.1 + u16::from(home) * HOME_PORTS)?;
    (place.0 == nat.0).then_some(home)
}

/// Makes the lengths in the outer headers those of the packet.
fn fit(packet: &mut [u8]) {
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    if packet[9] == 17 && packet.len() >= 28 {
        packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    }
    packet::set_checksum(packet);
}
