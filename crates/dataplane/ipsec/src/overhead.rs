//! How much longer protection makes a packet.

use forebay_wire::{Family, esp, udp};

use crate::sa::{Encapsulation, Mode, Protocol, SaConfig};

/// Growth of a packet. In transport mode it is counted from behind the IP header, which stays.
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
    /// The overhead of an SA with these settings.
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
