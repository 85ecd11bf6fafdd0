//! What a security association is configured with.

use std::fmt;
use std::net::IpAddr;

use forebay_crypto::{Cipher, Suite};
use forebay_wire::nat::Originals;
use forebay_wire::{Family, esp, udp};

use crate::lifetime::{Lifetime, LifetimeError};
use crate::mtu::min_path_mtu;
use forebay_iptfs::{Iptfs, IptfsError};
use forebay_replay::MAX_WINDOW;
use forebay_spd::{DscpSet, TrafficSelector};
use forebay_tunnel::{TunnelRules, TunnelRulesError};

/// A Security Parameters Index; never zero, which is for local use (RFC 4303 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spi(u32);

impl Spi {
    /// The smallest SPI that is not reserved (RFC 4303 2.1).
    pub const MIN: Spi = Spi(256);

    /// The SPI with this number; `None` for zero.
    pub fn new(spi: u32) -> Option<Spi> {
        (spi != 0).then_some(Spi(spi))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Spi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// The mode of an SA: it protects a whole packet inside a new one, or the payload of the packet itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A whole IP packet goes into a new one.
    Tunnel,
    /// The packet's own IP header stays in front.
    Transport,
}

/// The protocol of an SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Encapsulating Security Payload (RFC 4303).
    Esp,
    /// Authentication Header (RFC 4302).
    Ah,
}

/// The encapsulation of ESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// IP, protocol 50.
    None,
    /// UDP between ports 4500 (RFC 3948). In transport mode a NAT makes the checksums inside wrong, which cover the
    /// addresses: inbound they are repaired, see [`SaConfig::originals`]. Tunnel mode needs no repair.
    Udp,
}

/// The UDP ports of encapsulated ESP. A peer behind a NAT has another than it chose, and it may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UdpPorts {
    /// This side's.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}

impl Default for UdpPorts {
    /// 4500 on both sides (RFC 3948 2.1).
    fn default() -> UdpPorts {
        UdpPorts { local: udp::NAT_T_PORT, remote: udp::NAT_T_PORT }
    }
}

/// Padding that hides how long packets are (RFC 4303 2.7); in tunnel mode only, where the inner packet says where
/// it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tfc {
    /// None.
    None,
    /// Inner packets are made at least this long, in bytes, as far as the path MTU lets them.
    PadTo(u16),
    /// As long as the path MTU lets them.
    Mtu,
}

/// What the two SAs of a tunnel, one of each direction, have in common: addresses and selectors, this side's first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    addresses: [IpAddr; 2],
    selectors: [Vec<TrafficSelector>; 2],
}

/// The settings of one security association, keys apart: those go to the processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaConfig {
    /// Name for people.
    pub name: String,
    /// Index that names the SA in packets.
    pub spi: Spi,
    /// ESP or AH.
    pub protocol: Protocol,
    /// Tunnel or transport.
    pub mode: Mode,
    /// Cipher and integrity.
    pub suite: Suite,
    /// This side's outer address: source when sealing, destination when opening.
    pub local: IpAddr,
    /// The peer's outer address.
    pub remote: IpAddr,
    /// Whether sequence numbers have 64 bits (RFC 4303 2.2.1).
    pub esn: bool,
    /// Width of the replay window in packets, zero for none; inbound only.
    pub replay_window: u32,
    /// Plain ESP or ESP in UDP.
    pub encapsulation: Encapsulation,
    /// The ports of ESP in UDP.
    pub udp: UdpPorts,
    /// How tunnel headers are made and undone.
    pub tunnel: TunnelRules,
    /// The path MTU between the outer addresses, in bytes; `None` if only IP's own limit holds. Outbound only.
    pub mtu: Option<u16>,
    /// Padding against traffic analysis, of ESP alone; outbound only, every receiver takes it off.
    pub tfc: Tfc,
    /// Soft and hard lifetime.
    pub lifetime: Lifetime,
    /// Whether the padding of what comes in must be 1, 2, 3, ...: RFC 4303 2.4 says SHOULD of every cipher
    /// that has no padding of its own, and none here has. Off for a peer that pads otherwise; inbound only, and of no meaning for AH, whose
    /// padding the ICV covers.
    pub check_padding: bool,
    /// Whether the gateway follows the peer of an inbound SA in UDP to another address or port. The initial value is
    /// true only where no NAT can be in front of this side: behind a NAT the peer does not move, and an attacker on
    /// the path could forward packets from another address (RFC 7296 2.23).
    pub follow_peer: bool,
    /// The addresses that the peer's packets have before any NAT (NAT-OA, RFC 3947 5.2), for an inbound SA of ESP in UDP
    /// in transport mode: checksums of TCP, UDP and ICMPv6 are updated by them (RFC 3948 3.1.2, procedure 1). `None`
    /// if they are not known: checksums are computed anew (procedure 2), unless the suite has no ICV.
    pub originals: Option<Originals>,
    /// Number that the kernel's SAs of one tunnel share (`reqid` of XFRM), zero for none.
    pub reqid: u32,
    /// How inner packets share ESP packets; `None` if each has its own.
    pub iptfs: Option<Iptfs>,
    /// Traffic on this side; empty means any.
    pub local_ts: Vec<TrafficSelector>,
    /// Traffic on the peer's side; empty means any.
    pub remote_ts: Vec<TrafficSelector>,
    /// Classes of traffic that this SA is for, outbound, where several are for the same traffic: packets of
    /// unlike classes overtake each other, and one replay window would refuse the late ones (RFC 4301 4.1).
    pub dscp: DscpSet,
    /// The CPU whose packets this SA is for, outbound, where its peer has several SAs for the same traffic (RFC 9611);
    /// `None` for the fallback SA, which is for the packets of any CPU that has none of its own. Inbound the CPU that is
    /// to receive: it changes nothing about the packets.
    pub cpu: Option<u32>,
}

/// Whether a NAT has to be in front of this side: its address is a private one, the peer's is none.
fn is_behind_nat(local: IpAddr, remote: IpAddr) -> bool {
    let is_private = |address: IpAddr| match address {
        // RFC 1918, RFC 6598.
        IpAddr::V4(address) => {
            address.is_private()
                || address.is_link_local()
                || address.is_loopback()
                || u32::from(address) >> 22 == 0x6440_0000 >> 22
        }
        IpAddr::V6(address) => {
            address.is_unique_local() || address.is_unicast_link_local() || address.is_loopback()
        }
    };
    is_private(local) && !is_private(remote)
}

/// Settings that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaConfigError {
    /// `local` and `remote` are of different IP versions.
    MixedFamilies,
    /// An original address is of another IP version than `local` and `remote`.
    OriginalsFamily,
    /// The replay window is wider than [`MAX_WINDOW`].
    WindowTooWide(u32),
    /// AH with a suite that enciphers.
    AhEnciphers(Suite),
    /// AH in UDP, which covers addresses that a NAT would change: there is no such thing (RFC 3948 1).
    AhInUdp,
    /// Neither cipher nor integrity.
    NoProtection,
    /// Settings for aggregation that cannot be.
    Iptfs(IptfsError),
    /// A number in the tunnel rules does not fit its field.
    TunnelRules(TunnelRulesError),
    /// A soft lifetime beyond the hard one.
    Lifetime(LifetimeError),
    /// A path MTU below what every path takes, in bytes.
    MtuTooSmall {
        /// What was asked for.
        mtu: u16,
        /// What must be possible.
        least: u16,
    },
    /// Padding against traffic analysis in transport mode, where the receiver could not remove it.
    TfcInTransport,
    /// Padding up to an MTU that is not given.
    TfcWithoutMtu,
    /// Padding in AH, which hides nothing.
    TfcInAh,
}

impl fmt::Display for SaConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SaConfigError::MixedFamilies => f.write_str("local and remote are of different IP versions"),
            SaConfigError::OriginalsFamily => {
                f.write_str("an original address is of another IP version than local and remote")
            }
            SaConfigError::WindowTooWide(window) => {
                write!(f, "a replay window of {window} packets, at most {MAX_WINDOW} are possible")
            }
            SaConfigError::AhEnciphers(suite) => {
                write!(f, "{suite} enciphers, AH takes an integrity algorithm alone or GMAC")
            }
            SaConfigError::AhInUdp => f.write_str("AH cannot be encapsulated in UDP"),
            SaConfigError::NoProtection => f.write_str("the suite neither enciphers nor authenticates"),
            SaConfigError::Iptfs(error) => error.fmt(f),
            SaConfigError::TunnelRules(error) => error.fmt(f),
            SaConfigError::Lifetime(error) => error.fmt(f),
            SaConfigError::MtuTooSmall { mtu, least } => {
                write!(f, "a path MTU of {mtu} bytes, every path takes {least}")
            }
            SaConfigError::TfcInTransport => f.write_str("TFC padding is possible in tunnel mode only"),
            SaConfigError::TfcInAh => f.write_str("TFC padding is possible with ESP only"),
            SaConfigError::TfcWithoutMtu => f.write_str("TFC padding up to the MTU needs an MTU"),
        }
    }
}

impl std::error::Error for SaConfigError {}

impl SaConfig {
    /// Its ends.
    pub fn ends(&self) -> Ends {
        let selectors = [self.local_ts.clone(), self.remote_ts.clone()];
        Ends { addresses: [self.local, self.remote], selectors }
    }

    /// An SA between two outer addresses with everything else at its default: a tunnel straight in IP by the
    /// default [`TunnelRules`], a replay window of 64, no path MTU, no TFC padding, no end, padding checked,
    /// any traffic.
    pub fn new(name: &str, spi: Spi, suite: Suite, local: IpAddr, remote: IpAddr) -> SaConfig {
        SaConfig {
            name: name.to_owned(),
            spi,
            protocol: Protocol::Esp,
            mode: Mode::Tunnel,
            suite,
            local,
            remote,
            esn: false,
            replay_window: 64,
            encapsulation: Encapsulation::None,
            udp: UdpPorts::default(),
            tunnel: TunnelRules::default(),
            mtu: None,
            tfc: Tfc::None,
            lifetime: Lifetime::default(),
            check_padding: true,
            follow_peer: !is_behind_nat(local, remote),
            originals: None,
            reqid: 0,
            local_ts: vec![],
            remote_ts: vec![],
            iptfs: None,
            dscp: DscpSet::ALL,
            cpu: None,
        }
    }

    /// Whether this SA and another between the same addresses are of one pair, whose peer has one address: they share the
    /// `reqid`, or without one the traffic selectors. SAs that replace each other at a rekey are of one pair too.
    pub fn is_paired_with(&self, other: &SaConfig) -> bool {
        match (self.reqid, other.reqid) {
            (0, 0) => self.local_ts == other.local_ts && self.remote_ts == other.remote_ts,
            (one, two) => one == two,
        }
    }

    /// Checks what can be checked for one SA alone.
    pub fn check(&self) -> Result<(), SaConfigError> {
        if Family::of(self.local) != Family::of(self.remote) {
            return Err(SaConfigError::MixedFamilies);
        }
        if let Some(Originals { source, destination }) = self.originals
            && [source, destination]
                .into_iter()
                .any(|original| Family::of(original) != Family::of(self.local))
        {
            return Err(SaConfigError::OriginalsFamily);
        }
        if self.replay_window > MAX_WINDOW {
            return Err(SaConfigError::WindowTooWide(self.replay_window));
        }
        if self.protocol == Protocol::Ah && !self.suite.suits_ah() {
            return Err(SaConfigError::AhEnciphers(self.suite));
        }
        if self.protocol == Protocol::Ah && self.encapsulation == Encapsulation::Udp {
            return Err(SaConfigError::AhInUdp);
        }
        if self.suite.cipher() == Cipher::Null && self.suite.icv_len() == 0 {
            return Err(SaConfigError::NoProtection);
        }
        if let Some(iptfs) = &self.iptfs {
            if self.mode != Mode::Tunnel || self.protocol != Protocol::Esp {
                return Err(SaConfigError::Iptfs(IptfsError::TransportMode));
            }
            iptfs.check(self.payload_within(iptfs.packet_size)).map_err(SaConfigError::Iptfs)?;
        }
        self.tunnel.check().map_err(SaConfigError::TunnelRules)?;
        self.lifetime.check().map_err(SaConfigError::Lifetime)?;
        let least = min_path_mtu(Family::of(self.local));
        if let Some(mtu) = self.mtu.filter(|&mtu| mtu < least) {
            return Err(SaConfigError::MtuTooSmall { mtu, least });
        }
        if self.protocol == Protocol::Ah && self.tfc != Tfc::None {
            return Err(SaConfigError::TfcInAh);
        }
        match (self.tfc, self.mode, self.mtu) {
            (Tfc::PadTo(_) | Tfc::Mtu, Mode::Transport, _) => return Err(SaConfigError::TfcInTransport),
            (Tfc::Mtu, _, None) => return Err(SaConfigError::TfcWithoutMtu),
            _ => {}
        }
        Ok(())
    }

    /// The longest ESP payload of a tunnel packet that is not longer than `packet` bytes, headers and
    /// padding included.
    pub(crate) fn payload_within(&self, packet: usize) -> Option<usize> {
        let udp_len = if self.encapsulation == Encapsulation::Udp { udp::HEADER } else { 0 };
        let head = Family::of(self.local).header_len() + udp_len + esp::HEADER + self.suite.iv_len();
        let text = packet.checked_sub(head + self.suite.icv_len())? & !(self.suite.align() - 1);
        text.checked_sub(esp::TRAILER)
    }
}
