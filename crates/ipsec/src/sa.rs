//! What a security association is configured with.

use std::fmt;
use std::net::IpAddr;

use crate::replay::MAX_WINDOW;
use crate::{DscpSet, TrafficSelector};
use forebay_crypto::Suite;
use forebay_wire::Family;

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

/// What ESP protects: a whole packet inside a new one, or the payload of the packet itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A whole IP packet goes into a new one.
    Tunnel,
    /// The packet's own IP header stays in front.
    Transport,
}

/// What ESP stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// IP, protocol 50.
    None,
    /// UDP between ports 4500 (RFC 3948).
    Udp,
}

/// The settings of one security association, keys apart: those go to the processors.
#[derive(Clone, Debug)]
pub struct SaConfig {
    /// Name for people.
    pub name: String,
    /// Index that names the SA in packets.
    pub spi: Spi,
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
    /// Traffic on this side; empty means any.
    pub local_ts: Vec<TrafficSelector>,
    /// Traffic on the peer's side; empty means any.
    pub remote_ts: Vec<TrafficSelector>,
    /// Classes of traffic that this SA is for, outbound, where several are for the same traffic: packets of
    /// unlike classes overtake each other, and one replay window would refuse the late ones (RFC 4301 4.1).
    pub dscp: DscpSet,
}

/// Settings that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaConfigError {
    /// `local` and `remote` are of different IP versions.
    MixedFamilies,
    /// The replay window is wider than [`MAX_WINDOW`].
    WindowTooWide(u32),
}

impl fmt::Display for SaConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SaConfigError::MixedFamilies => f.write_str("local and remote are of different IP versions"),
            SaConfigError::WindowTooWide(window) => {
                write!(f, "a replay window of {window} packets, at most {MAX_WINDOW} are possible")
            }
        }
    }
}

impl std::error::Error for SaConfigError {}

impl SaConfig {
    /// An SA between two outer addresses with everything else at its default: a tunnel straight in IP, a
    /// replay window of 64, any traffic.
    pub fn new(name: &str, spi: Spi, suite: Suite, local: IpAddr, remote: IpAddr) -> SaConfig {
        SaConfig {
            name: name.to_owned(),
            spi,
            mode: Mode::Tunnel,
            suite,
            local,
            remote,
            esn: false,
            replay_window: 64,
            encapsulation: Encapsulation::None,
            local_ts: vec![],
            remote_ts: vec![],
            dscp: DscpSet::ALL,
        }
    }

    /// Checks what can be checked for one SA alone.
    pub fn check(&self) -> Result<(), SaConfigError> {
        if Family::of(self.local) != Family::of(self.remote) {
            return Err(SaConfigError::MixedFamilies);
        }
        if self.replay_window > MAX_WINDOW {
            return Err(SaConfigError::WindowTooWide(self.replay_window));
        }
        Ok(())
    }
}
