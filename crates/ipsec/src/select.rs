//! Which outbound SA a packet belongs to: the first whose selectors match, in the order of the file.

use forebay_wire::Ip;
use ipnet::IpNet;

use crate::SaConfig;

/// Flows remembered; a power of two.
const CACHE_SLOTS: usize = 4096;
/// Up to this many SAs a scan is as fast as the cache.
const SCAN_LIMIT: usize = 4;

/// Address prefixes on one side of an SA, as (mask, network) pairs, so that a match is one mask and
/// one comparison.
#[derive(Clone, Debug)]
struct Prefixes {
    any: bool,
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

/// Both addresses of a packet as numbers: source, destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    V4(u32, u32),
    V6(u128, u128),
}

impl Flow {
    /// The flow of a packet.
    #[inline]
    fn of(ip: &Ip<'_>) -> Flow {
        match ip {
            Ip::V4(ip) => Flow::V4(ip.source().into(), ip.destination().into()),
            Ip::V6(ip) => Flow::V6(ip.source().into(), ip.destination().into()),
        }
    }

    #[inline]
    fn slot(&self) -> usize {
        let folded = match *self {
            Flow::V4(source, destination) => u64::from(source) << 32 | u64::from(destination),
            Flow::V6(source, destination) => {
                let mixed = source ^ destination.rotate_left(29);
                (mixed as u64) ^ (mixed >> 64) as u64
            }
        };
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % CACHE_SLOTS
    }
}

impl Prefixes {
    /// The given networks; none means any address.
    fn new(networks: &[IpNet]) -> Prefixes {
        let mut prefixes = Prefixes { any: networks.is_empty(), v4: Vec::new(), v6: Vec::new() };
        for network in networks {
            match network {
                IpNet::V4(n) => prefixes.v4.push((n.netmask().into(), n.network().into())),
                IpNet::V6(n) => prefixes.v6.push((n.netmask().into(), n.network().into())),
            }
        }
        prefixes
    }

    #[inline]
    fn contains_v4(&self, address: u32) -> bool {
        self.any || self.v4.iter().any(|&(mask, network)| address & mask == network)
    }

    #[inline]
    fn contains_v6(&self, address: u128) -> bool {
        self.any || self.v6.iter().any(|&(mask, network)| address & mask == network)
    }
}

/// The selectors of one SA.
#[derive(Clone, Debug)]
pub struct Selectors {
    local: Prefixes,
    remote: Prefixes,
}

impl Selectors {
    /// The selectors that `config` states.
    pub fn new(config: &SaConfig) -> Selectors {
        Selectors { local: Prefixes::new(&config.local_ts), remote: Prefixes::new(&config.remote_ts) }
    }

    /// Whether a flow from this side to the peer's may use the SA.
    #[inline]
    fn match_flow(&self, flow: &Flow) -> bool {
        match *flow {
            Flow::V4(source, destination) => {
                self.local.contains_v4(source) && self.remote.contains_v4(destination)
            }
            Flow::V6(source, destination) => {
                self.local.contains_v6(source) && self.remote.contains_v6(destination)
            }
        }
    }

    /// Whether a packet that came out of the SA may have (RFC 4301 5.2 step 4).
    #[inline]
    pub fn match_inbound(&self, ip: &Ip<'_>) -> bool {
        match Flow::of(ip) {
            Flow::V4(source, destination) => self.match_flow(&Flow::V4(destination, source)),
            Flow::V6(source, destination) => self.match_flow(&Flow::V6(destination, source)),
        }
    }
}

/// The outbound SAs in order, with the answers for recent flows. An answer is used only for the
/// very addresses it was found for, and selectors do not change while they stand in here, so it can be
/// neither another flow's nor an old one.
#[derive(Debug, Default)]
pub struct Selection {
    order: Vec<(Selectors, u32)>,
    cache: Vec<Option<(Flow, u32)>>,
    /// The last IPv4 packet's addresses and answer: packets come in trains.
    last: Option<([u8; 8], u32)>,
}

impl Selection {
    /// Adds the next SA, known as `index`.
    pub fn push(&mut self, selectors: Selectors, index: u32) {
        self.order.push((selectors, index));
        self.cache.clear();
        self.last = None;
        if self.order.len() > SCAN_LIMIT {
            self.cache.resize(CACHE_SLOTS, None);
        }
    }

    /// The first SA that a packet may use.
    #[inline]
    pub fn find(&mut self, ip: &Ip<'_>) -> Option<u32> {
        let Ip::V4(v4) = ip else { return self.find_flow(&Flow::of(ip)) };
        let addresses = v4.raw_addresses();
        match self.last {
            Some((last, index)) if last == addresses => Some(index),
            _ => {
                let index = self.find_flow(&Flow::of(ip))?;
                self.last = Some((addresses, index));
                Some(index)
            }
        }
    }

    /// The answer for the last IPv4 packet, if it had these addresses.
    #[inline]
    pub fn recent(&self, addresses: [u8; 8]) -> Option<u32> {
        self.last.filter(|(last, _)| *last == addresses).map(|(_, index)| index)
    }

    fn find_flow(&mut self, flow: &Flow) -> Option<u32> {
        if self.cache.is_empty() {
            return self.scan(flow);
        }
        let slot = flow.slot();
        match self.cache[slot] {
            Some((cached, index)) if cached == *flow => Some(index),
            _ => {
                let index = self.scan(flow)?;
                self.cache[slot] = Some((*flow, index));
                Some(index)
            }
        }
    }

    fn scan(&self, flow: &Flow) -> Option<u32> {
        self.order.iter().find(|(selectors, _)| selectors.match_flow(flow)).map(|&(_, index)| index)
    }
}
