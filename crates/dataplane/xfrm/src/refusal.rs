//! Reasons for which an SA or policy is left to the kernel.

use std::fmt;

use forebay_crypto::{KeyError, Suite};
use forebay_ipsec::SaConfigError;

use crate::SaId;

/// Why an SA or a policy is not taken over. The kernel goes on processing such an SA itself; such a policy discards.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The kernel does not show keys (`lockdown=confidentiality`).
    KeysHidden,
    /// An algorithm that Forebay has not, or with another length than the RFC's.
    Algorithm(String),
    /// A key of a length that the algorithm has not.
    Key(KeyError),
    /// RFC 8221 says MUST NOT, and it was not asked for.
    Weak(Suite),
    /// Neither tunnel nor transport mode (`XFRM_MODE_`).
    Mode(u8),
    /// Neither ESP nor AH; or compression.
    Protocol(u8),
    /// An SPI of zero.
    NoSpi,
    /// ESP in something else than UDP (`UDP_ENCAP_`).
    Encapsulation(u16),
    /// AH in IPv4 whose header the kernel pads to 8 bytes (no `XFRM_STATE_ALIGN4`), against RFC 4302 3.3.3.2.1.
    AhPadding,
    /// Its cipher key is that of this SA: under a key in two places IVs repeat.
    SharedKey(SaId),
    /// A network card does the work.
    Offloaded,
    /// Selectors that have no like: ports by a mask that is no range, one interface, one user.
    Selector(&'static str),
    /// A policy that wants so many SAs around each packet, one inside of the other.
    Templates(usize),
    /// Settings that contradict each other.
    Config(SaConfigError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::KeysHidden => {
                f.write_str("the kernel hides its keys: lockdown (confidentiality) is active")
            }
            Refusal::Algorithm(name) => write!(f, "unsupported algorithm: {name}"),
            Refusal::Key(error) => error.fmt(f),
            Refusal::Weak(suite) => write!(f, "{suite} is weak (RFC 8221: MUST NOT)"),
            Refusal::Mode(mode) => write!(f, "mode {mode} is neither tunnel nor transport"),
            Refusal::Protocol(protocol) => write!(f, "protocol {protocol} is neither ESP nor AH alone"),
            Refusal::NoSpi => f.write_str("the SA has no SPI"),
            Refusal::Encapsulation(kind) => write!(f, "encapsulation {kind} is not ESP in UDP (RFC 3948)"),
            Refusal::AhPadding => f.write_str("AH padded to 8 bytes in IPv4: the SA lacks the flag align4"),
            Refusal::SharedKey(other) => {
                write!(
                    f,
                    "its cipher key is also that of the SA {other}; each SA requires its own key, so let IKE negotiate keys"
                )
            }
            Refusal::Offloaded => f.write_str("SA is offloaded to a NIC"),
            Refusal::Selector(what) => write!(f, "unsupported selector for {what}"),
            Refusal::Templates(count) => {
                write!(f, "the policy requires {count} nested SAs; only one is supported")
            }
            Refusal::Config(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}
