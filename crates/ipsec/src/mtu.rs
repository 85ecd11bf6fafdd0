//! Path MTUs (RFC 4301 8.2): how much longer protection makes a packet, and what fits.

use forebay_time::{Duration, Time};
use forebay_wire::{Family, esp, ipv6, udp};

use crate::{Encapsulation, Mode, Protocol, SaConfig};

/// The smallest path MTU that is believed of IPv4, in bytes: what every host takes (RFC 791 3.1). A forged
/// message could ask for less to no good end; the same limit for IPv6 is [`ipv6::MIN_MTU`].
pub const MIN_PATH_MTU_V4: u16 = 576;

/// How long a path MTU that was learned holds (RFC 1191 6.3: ten minutes).
pub const LEARNED_FOR: Duration = Duration::from_millis(600_000);

/// The smallest path MTU for packets of this family, in bytes.
pub const fn min_path_mtu(family: Family) -> u16 {
    match family {
        Family::V4 => MIN_PATH_MTU_V4,
        Family::V6 => ipv6::MIN_MTU,
    }
}

/// What a packet grows by. In transport mode that is counted from behind the IP header, which stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Before the payload: outer header, UDP, ESP or AH header, IV; in bytes.
    pub front: usize,
    /// What `front` has behind the outer header ends aligned; payload and this much behind it are made
    /// a multiple of `align`.
    pub trailer: usize,
    /// A power of two.
    pub align: usize,
    /// Behind all that: ESP's ICV, in bytes.
    pub back: usize,
}

impl Overhead {
    /// That of an SA with these settings.
    pub fn of(config: &SaConfig) -> Overhead {
        let suite = config.suite;
        match config.protocol {
            Protocol::Esp => Overhead::esp(config),
            // Where there is an IV, it stands at the begin of the ICV field (RFC 4543 4).
            Protocol::Ah => {
                Overhead::ah(config.mode, Family::of(config.local), suite.iv_len() + suite.icv_len())
            }
        }
    }

    /// ESP's (RFC 4303 2).
    pub fn esp(config: &SaConfig) -> Overhead {
        let outer = match config.mode {
            Mode::Tunnel => Family::of(config.local).header_len(),
            Mode::Transport => 0,
        };
        let udp = match config.encapsulation {
            Encapsulation::None => 0,
            Encapsulation::Udp => udp::HEADER,
        };
        let suite = config.suite;
        Overhead {
            front: outer + udp + esp::HEADER + suite.iv_len(),
            trailer: esp::TRAILER,
            align: suite.align(),
            back: suite.icv_len(),
        }
    }

    /// AH's (RFC 4302 2.2, 3.3.3.2.1): its header is a multiple of four bytes, of eight in IPv6. `family` is
    /// that of the header it stands behind; `icv_len` counts the IV of GMAC, which stands in the ICV's field.
    pub fn ah(mode: Mode, family: Family, icv_len: usize) -> Overhead {
        const FIXED: usize = 12;
        let (outer, align) = match family {
            Family::V4 => (20, 4),
            Family::V6 => (40, 8),
        };
        let outer = if mode == Mode::Tunnel { outer } else { 0 };
        Overhead { front: outer + (FIXED + icv_len).next_multiple_of(align), trailer: 0, align: 1, back: 0 }
    }

    /// Length of a protected packet with `payload` bytes inside.
    #[inline]
    pub fn sealed_len(&self, payload: usize) -> usize {
        self.front + (payload + self.trailer).next_multiple_of(self.align) + self.back
    }

    /// The longest payload whose protected packet has at most `mtu` bytes; zero if there is none.
    pub fn longest_payload(&self, mtu: usize) -> usize {
        let text = mtu.saturating_sub(self.front + self.back) / self.align * self.align;
        text.saturating_sub(self.trailer)
    }
}

/// A path MTU as configured, as learned since, and as another SA on the way leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtu {
    configured: Option<u16>,
    /// With the time at which it is forgotten.
    learned: Option<(u16, Time)>,
    /// What the SA leaves that packets go through next.
    bound: Option<u16>,
}

impl PathMtu {
    /// As configured; `None` is no limit but IP's own.
    pub fn new(configured: Option<u16>) -> PathMtu {
        PathMtu { configured, learned: None, bound: None }
    }

    /// What holds at present, in bytes.
    pub fn get(&self) -> Option<u16> {
        let learned = self.learned.map(|(mtu, _)| mtu);
        [self.configured, learned, self.bound].into_iter().flatten().min()
    }

    /// Lowers it to `mtu`, or to the least there is for `family`, for a while; whether that changed anything. A
    /// message never raises it (RFC 1191 4, RFC 8201 4).
    pub fn learn(&mut self, mtu: u16, family: Family, now: Time) -> bool {
        let mtu = mtu.max(min_path_mtu(family));
        let lower = self.get().is_none_or(|current| mtu < current);
        if lower {
            self.learned = Some((mtu, now + LEARNED_FOR));
        }
        lower
    }

    /// Sets what the SA leaves that packets go through next; whether that changed anything.
    pub fn bound(&mut self, bound: Option<u16>) -> bool {
        std::mem::replace(&mut self.bound, bound) != bound
    }

    /// When what was learned is forgotten.
    pub fn due(&self) -> Option<Time> {
        self.learned.map(|(_, until)| until)
    }

    /// Forgets what was learned for until `now`; whether there was such a thing.
    pub fn pass_time(&mut self, now: Time) -> bool {
        let over = self.due().is_some_and(|until| until <= now);
        if over {
            self.learned = None;
        }
        over
    }
}

/// The path MTU to try after a router that did not name its own (RFC 1191 7.1): the next step below the length
/// of what was too big.
pub fn plateau_below(len: u16) -> u16 {
    const PLATEAUS: [u16; 10] = [65_535, 32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];
    PLATEAUS.into_iter().find(|&plateau| plateau < len).unwrap_or(68)
}
