//! The link types of capture files that can carry IP, by the registry of tcpdump.org.

use std::fmt;

/// The header in front of the IP packet in a record: a link type that Forebay reads and writes.
///
/// Source: <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the machine that captured (0).
    Null,
    /// Ethernet, with 802.1Q and 802.1ad tags where there are any (1).
    Ethernet,
    /// PPP, with or without address and control bytes (9).
    Ppp,
    /// PPP in HDLC-like framing, RFC 1662 (50).
    PppHdlc,
    /// A bare IPv4 or IPv6 packet (101; 12 and 14 are read as this, never written).
    Raw,
    /// OpenBSD loopback: a 4-byte address family in network byte order (108).
    Loop,
    /// Linux cooked capture, 16-byte header (113).
    LinuxSll,
    /// A bare IPv4 packet (228).
    Ipv4,
    /// A bare IPv6 packet (229).
    Ipv6,
    /// Linux cooked capture version 2, 20-byte header (276).
    LinuxSll2,
    /// Another one, by its code: records that Forebay cannot look into, read so that they can be counted.
    Other(u16),
}

impl LinkType {
    /// Every link type that can be looked into, in the order of their codes.
    pub const ALL: [LinkType; 10] = [
        LinkType::Null,
        LinkType::Ethernet,
        LinkType::Ppp,
        LinkType::PppHdlc,
        LinkType::Raw,
        LinkType::Loop,
        LinkType::LinuxSll,
        LinkType::Ipv4,
        LinkType::Ipv6,
        LinkType::LinuxSll2,
    ];

    /// The link type of a code in a file; `None` for one that Forebay cannot look into.
    pub fn from_code(code: u32) -> Option<LinkType> {
        match code {
            // DLT_RAW of most systems and of OpenBSD: some writers put it into files unmapped.
            12 | 14 => Some(LinkType::Raw),
            _ => LinkType::ALL.into_iter().find(|link| u32::from(link.code()) == code),
        }
    }

    /// The code that files name it by.
    pub fn code(self) -> u16 {
        match self {
            LinkType::Null => 0,
            LinkType::Ethernet => 1,
            LinkType::Ppp => 9,
            LinkType::PppHdlc => 50,
            LinkType::Raw => 101,
            LinkType::Loop => 108,
            LinkType::LinuxSll => 113,
            LinkType::Ipv4 => 228,
            LinkType::Ipv6 => 229,
            LinkType::LinuxSll2 => 276,
            LinkType::Other(code) => code,
        }
    }

    /// The link type for packets whose family may have changed on the way: the kinds that hold one
    /// family only become [`LinkType::Raw`], all others carry both and stay.
    pub fn rewritten(self) -> LinkType {
        match self {
            LinkType::Ipv4 | LinkType::Ipv6 => LinkType::Raw,
            other => other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            LinkType::Null => "NULL",
            LinkType::Ethernet => "ETHERNET",
            LinkType::Ppp => "PPP",
            LinkType::PppHdlc => "PPP_HDLC",
            LinkType::Raw => "RAW",
            LinkType::Loop => "LOOP",
            LinkType::LinuxSll => "LINUX_SLL",
            LinkType::Ipv4 => "IPV4",
            LinkType::Ipv6 => "IPV6",
            LinkType::LinuxSll2 => "LINUX_SLL2",
            LinkType::Other(_) => "another link type",
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_type_reads_back_from_its_code() {
        for link in LinkType::ALL {
            assert_eq!(LinkType::from_code(link.code().into()), Some(link));
            assert_eq!(link.rewritten().rewritten(), link.rewritten());
        }
    }

    #[test]
    fn unmapped_raw_codes_are_raw() {
        assert_eq!(LinkType::from_code(12), Some(LinkType::Raw));
        assert_eq!(LinkType::from_code(14), Some(LinkType::Raw));
        assert_eq!(LinkType::from_code(8), None);
        assert_eq!(LinkType::from_code(0x1_0001), None);
    }
}
