//! Messages of the kernel in its own representation (`linux/xfrm.h`).

use std::fmt;
use std::net::IpAddr;

use forebay_crypto::{Direction, SecretBytes};

/// A mark with the bits of it that count (`struct xfrm_mark`); all zero: none, every packet matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark {
    /// The mark.
    pub value: u32,
    /// The bits that are compared.
    pub mask: u32,
}

/// What names an SA in the kernel. Source and reqid may change, this does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SaId {
    /// Where its packets go.
    pub destination: IpAddr,
    /// Its SPI, in the machine's order.
    pub spi: u32,
    /// 50 for ESP, 51 for AH.
    pub protocol: u8,
    /// Packets that it is for.
    pub mark: Mark,
}

impl fmt::Display for SaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.protocol {
            50 => "esp",
            51 => "ah",
            108 => "ipcomp",
            _ => "protocol?",
        };
        write!(f, "{name} {:#010x} to {}", self.spi, self.destination)
    }
}

/// `struct xfrm_selector`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Destination, prefix length.
    pub destination: (IpAddr, u8),
    /// Source, prefix length.
    pub source: (IpAddr, u8),
    /// Destination port and the bits of it that count.
    pub destination_port: (u16, u16),
    /// Source port and the bits of it that count.
    pub source_port: (u16, u16),
    /// `AF_UNSPEC`: both IP versions.
    pub any_family: bool,
    /// Upper protocol, zero for any.
    pub protocol: u8,
    /// Interface, zero for any.
    pub interface: u32,
    /// User, zero for any.
    pub user: u32,
}

/// An algorithm by the kernel's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// As in /proc/crypto.
    pub name: String,
    /// The key, salt included.
    pub key: SecretBytes,
    /// Length of the ICV in bits, if it is said.
    pub icv_bits: Option<u32>,
}

/// `struct xfrm_encap_tmpl`: what ESP stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encap {
    /// 2 for `UDP_ENCAP_ESPINUDP`.
    pub kind: u16,
    /// Source port of its packets.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

/// `struct xfrm_lifetime_cfg`; `u64::MAX` for no limit on bytes and packets, zero for none on seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifetimeConfig {
    /// Bytes: soft, hard.
    pub bytes: (u64, u64),
    /// Packets: soft, hard.
    pub packets: (u64, u64),
    /// Seconds since it was added: soft, hard.
    pub added_s: (u64, u64),
    /// Seconds since it was first used: soft, hard.
    pub used_s: (u64, u64),
}

/// `struct xfrm_lifetime_cur`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes so far.
    pub bytes: u64,
    /// Packets so far.
    pub packets: u64,
    /// When it was added, in seconds since 1970.
    pub added_s: u64,
    /// When it was first used, in seconds since 1970; zero for never.
    pub used_s: u64,
}

/// Where the sequence numbers of an SA are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// The last that was sent.
    pub sent: u64,
    /// The highest that was received.
    pub received: u64,
    /// Words of the bitmap, if the kernel keeps `struct xfrm_replay_state_esn`.
    pub bitmap_words: Option<u32>,
}

/// An SA (`struct xfrm_usersa_info` and attributes).
#[derive(Clone, Debug)]
pub struct KernelSa {
    /// Its name.
    pub id: SaId,
    /// Where its packets come from.
    pub source: IpAddr,
    /// Which packets it is for.
    pub selector: Selector,
    /// Its limits.
    pub lifetime: LifetimeConfig,
    /// What has gone through it.
    pub usage: Usage,
    /// By which policies find it.
    pub reqid: u32,
    /// `XFRM_MODE_`.
    pub mode: u8,
    /// Width of the replay window in packets.
    pub replay_window: u32,
    /// `XFRM_STATE_`.
    pub flags: u8,
    /// `XFRM_SA_XFLAG_`.
    pub extra_flags: u32,
    /// Combined mode.
    pub aead: Option<Algorithm>,
    /// Integrity.
    pub integrity: Option<Algorithm>,
    /// Cipher.
    pub cipher: Option<Algorithm>,
    /// Whether it compresses.
    pub compresses: bool,
    /// What it stands in.
    pub encap: Option<Encap>,
    /// Interface ID, zero for none.
    pub if_id: u32,
    /// Packets are padded to this many bytes; zero for none.
    pub tfc_padding: u32,
    /// Where its sequence numbers are.
    pub sequence: Sequence,
    /// Reported by kernels from 6.10 on, if the process that installed the SA gave it.
    pub direction: Option<Direction>,
    /// Whether a network card does the work.
    pub offloaded: bool,
    /// The CPU whose packets it is for (`XFRMA_SA_PCPU`, RFC 9611); `None` for those of all.
    pub cpu: Option<u32>,
}

impl KernelSa {
    /// Whether it is still being negotiated and has no algorithms.
    pub fn is_larval(&self) -> bool {
        self.id.spi == 0
            || (self.aead.is_none() && self.integrity.is_none() && self.cipher.is_none() && !self.compresses)
    }

    /// Whether the other is another SA by the same name.
    pub fn has_other_keys(&self, other: &KernelSa) -> bool {
        self.aead != other.aead || self.integrity != other.integrity || self.cipher != other.cipher
    }

    /// Whether all that matters for packets is the same; counters and sequence numbers move by themselves.
    pub fn is_set_like(&self, other: &KernelSa) -> bool {
        self.source == other.source
            && self.selector == other.selector
            && self.lifetime == other.lifetime
            && self.reqid == other.reqid
            && self.mode == other.mode
            && self.replay_window == other.replay_window
            && self.flags == other.flags
            && self.extra_flags == other.extra_flags
            && self.encap == other.encap
            && self.if_id == other.if_id
            && self.tfc_padding == other.tfc_padding
            && self.direction == other.direction
            && self.offloaded == other.offloaded
            && self.cpu == other.cpu
            && !self.has_other_keys(other)
    }
}

/// Which packets a policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Packets that arrive for this machine.
    In,
    /// Packets that leave, forwarded ones included.
    Out,
    /// Packets that arrive for others.
    Forward,
}

/// `struct xfrm_user_tmpl`: an SA that a policy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTemplate {
    /// Destination, unspecified for that of the packet.
    pub destination: IpAddr,
    /// Source, likewise.
    pub source: IpAddr,
    /// SPI, zero for any.
    pub spi: u32,
    /// 50 for ESP, 51 for AH.
    pub protocol: u8,
    /// Zero for any.
    pub reqid: u32,
    /// `XFRM_MODE_`.
    pub mode: u8,
    /// Whether packets pass without it.
    pub optional: bool,
}

/// A policy (`struct xfrm_userpolicy_info` and attributes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPolicy {
    /// Its number, of which there is one.
    pub index: u32,
    /// Which packets.
    pub way: Way,
    /// Which of them.
    pub selector: Selector,
    /// The lowest is asked first.
    pub priority: u32,
    /// Whether it blocks.
    pub blocks: bool,
    /// Whether an SA is to be asked for by each CPU that has none of its own (`XFRM_POLICY_CPU_ACQUIRE`).
    pub per_cpu: bool,
    /// SAs that it wants, the innermost first.
    pub templates: Vec<KernelTemplate>,
    /// Packets that it is for.
    pub mark: Mark,
    /// Interface ID, zero for none.
    pub if_id: u32,
    /// The first part of the message as it came, for acquires; its counters are zero.
    pub(crate) info: Box<[u8]>,
    /// The templates as they came.
    pub(crate) raw_templates: Box<[u8]>,
}

/// A message of the kernel.
#[derive(Clone, Debug)]
pub enum Message {
    /// An SA was added, or is part of a dump.
    SaAdded(Box<KernelSa>),
    /// An SA was changed, or one that was being negotiated is complete.
    SaUpdated(Box<KernelSa>),
    /// An SA was deleted.
    SaDeleted(SaId),
    /// A lifetime of an SA has ended; with a hard one, the SA too.
    SaExpired {
        /// The SA.
        id: SaId,
        /// Whether it is gone.
        hard: bool,
    },
    /// SAs of a protocol, zero for all, are gone.
    SasFlushed(u8),
    /// A policy was added or changed, or is part of a dump.
    Policy(Box<KernelPolicy>),
    /// The policy with this index is gone.
    PolicyDeleted(u32),
    /// Policies of a type, zero for the usual ones, are gone.
    PoliciesFlushed(u8),
    /// Addresses of policies and SAs were changed in a way that only a dump shows.
    Migrated,
    /// The end of a dump.
    DumpEnd {
        /// Of which request.
        sequence: u32,
        /// Whether the list changed during the dump so that it must be read again.
        again: bool,
    },
    /// A request was refused.
    Refused {
        /// Which.
        sequence: u32,
        /// `errno`.
        errno: i32,
    },
    /// Nothing that matters here.
    Other,
}
