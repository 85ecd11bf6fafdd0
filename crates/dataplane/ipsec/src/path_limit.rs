//! How long packets of an outbound SA may be, of ESP and AH alike (RFC 4301 8.2).

use forebay_wire::{Family, Ip, ipv6, protocol};

use crate::find::has_nat_t_port;
use crate::overhead::Overhead;
use crate::sa::{SaConfig, Tfc};
use forebay_drops::DropReason;
use forebay_tunnel::Inner;

/// The limits that the path MTU of an outbound SA sets for its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLimit {
    /// Longest tunnel packet that needs no second thought, in bytes.
    pub longest: u32,
    /// Inner packets are padded to this length (RFC 4303 2.7).
    pub pad_to: u32,
    /// The path MTU, in bytes; `None` is no limit but IP's own.
    mtu: Option<u16>,
}

impl PathLimit {
    /// The limit of an SA whose outer addresses are of `family`, with this path MTU.
    pub fn new(mtu: Option<u16>, family: Family, overhead: &Overhead, tfc: Tfc) -> PathLimit {
        let limit = ip_limit(family);
        let longest = mtu.map_or(limit, |mtu| limit.min(mtu.into()));
        let fitting = overhead.longest_payload(longest);
        let pad_to = match tfc {
            Tfc::None => 0,
            Tfc::PadTo(len) => fitting.min(len.into()),
            Tfc::Mtu => fitting,
        };
        // Both are lengths of IP packets.
        PathLimit { longest: longest as u32, pad_to: pad_to as u32, mtu }
    }

    /// The limit of an SA with these settings, before anything has been learned of its path.
    pub fn of(config: &SaConfig) -> PathLimit {
        PathLimit::new(config.mtu, Family::of(config.local), &Overhead::of(config), config.tfc)
    }

    /// Decides on a tunnel packet between addresses of `family` whose `total` exceeds the limit. One that must get
    /// through whole is sent nevertheless, for the path or this host to fragment its outer packet.
    #[cold]
    pub fn exceed(&self, family: Family, inner: &Inner, total: usize) -> Result<(), DropReason> {
        if total > ip_limit(family) {
            return Err(DropReason::OutTooBig);
        }
        // Every link takes that much of IPv6, and so must a tunnel (RFC 8200 5, RFC 2473 7.1).
        let must_pass = inner.next_header == protocol::IPV6 && inner.len <= usize::from(ipv6::MIN_MTU);
        if must_pass { Ok(()) } else { Err(DropReason::OutPathMtu) }
    }

    /// Whether a packet that transport mode makes `total` bytes long is sent: what is protected whole may be
    /// fragmented afterwards, never before (RFC 4303 3.3.4, RFC 4302 3.3.4).
    pub fn admit_whole(&self, family: Family, total: usize, divisible: bool) -> Result<(), DropReason> {
        if total > ip_limit(family) {
            return Err(DropReason::OutTooBig);
        }
        match self.mtu {
            Some(mtu) if total > mtu.into() && !divisible => Err(DropReason::OutPathMtu),
            _ => Ok(()),
        }
    }
}

/// Whether a packet may be fragmented once transport mode has protected it. IPv6 is fragmented only at its source; so
/// only where the source could not be asked to send less, or where it is another SA of this gateway whose path MTU
/// has been lowered already to what this one leaves.
pub fn is_divisible(ip: &Ip<'_>, at: usize, next_header: u8) -> bool {
    match ip {
        Ip::V4(ip) => !ip.dont_fragment(),
        Ip::V6(ip) => {
            let is_sealed = match next_header {
                protocol::UDP => ip.bytes().get(at..).is_some_and(has_nat_t_port),
                other => matches!(other, protocol::ESP | protocol::AH),
            };
            is_sealed || ip.bytes().len() <= ipv6::MIN_MTU.into()
        }
    }
}

/// The longest packet that IP can name: total length counts the header in IPv4, payload length does not in IPv6.
fn ip_limit(family: Family) -> usize {
    match family {
        Family::V4 => 65_535,
        Family::V6 => 65_535 + ipv6::HEADER,
    }
}
