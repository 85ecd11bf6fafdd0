//! How long packets of an outbound SA may be, of ESP and AH alike (RFC 4301 8.2).

use forebay_wire::{Family, Ip, ipv6, protocol};

use crate::drops::DropReason;
use crate::mtu::PathMtu;
use crate::overhead::Overhead;
use crate::sa::{Mode, SaConfig, Tfc};
use crate::tunnel::Inner;
use crate::watch::Watch;

/// The path MTU of an outbound SA and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLimit {
    /// Longest tunnel packet that needs no second thought, in bytes.
    pub longest: u32,
    /// Inner packets are padded to this length (RFC 4303 2.7).
    pub pad_to: u32,
    /// What these come from: seldom looked at, and so not among what a packet has to wait for.
    of: Box<Of>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    path: PathMtu,
    overhead: Overhead,
    mode: Mode,
    /// That of the outer addresses.
    family: Family,
    tfc: Tfc,
}

impl PathLimit {
    pub fn new(config: &SaConfig) -> PathLimit {
        let of = Of {
            path: PathMtu::new(config.mtu),
            overhead: Overhead::of(config),
            mode: config.mode,
            family: Family::of(config.local),
            tfc: config.tfc,
        };
        let mut limit = PathLimit { longest: 0, pad_to: 0, of: Box::new(of) };
        limit.follow();
        limit
    }

    /// The path MTU, in bytes.
    pub fn mtu(&self) -> Option<u16> {
        self.of.path.get()
    }

    /// Tunnel or transport.
    pub fn mode(&self) -> Mode {
        self.of.mode
    }

    /// Length of the protected packet with `payload` bytes inside.
    pub fn sealed_len(&self, payload: usize) -> usize {
        self.of.overhead.sealed_len(payload)
    }

    /// The longest packet that fits the path once it is protected, in bytes: one whose header, which stays in
    /// front in transport mode, has `header_len`.
    pub fn effective_mtu(&self, header_len: usize) -> Option<u16> {
        let kept = if self.of.mode == Mode::Transport { header_len } else { 0 };
        let mtu = usize::from(self.of.path.get()?).checked_sub(kept)?;
        u16::try_from(kept + self.of.overhead.longest_payload(mtu)).ok()
    }

    /// Lowers the path MTU for a while; whether that changed anything.
    pub fn learn(&mut self, mtu: u16, watch: &mut Watch) -> bool {
        let lower = self.of.path.learn(mtu, self.of.family, watch.now());
        watch.wake_at(self.of.path.due());
        self.follow();
        lower
    }

    /// Takes over what `outer` leaves, the SA that packets of this one go through next; whether that changed
    /// anything.
    pub fn go_through(&mut self, outer: &PathLimit) -> bool {
        let left = match (self.of.mode, outer.of.mode) {
            // Headers are of any length, and alignment, to 16 bytes at most, counts from behind them.
            (Mode::Transport, Mode::Transport) => {
                let headers = (0..16).step_by(4).map(|options| self.of.family.header_len() + options);
                headers.filter_map(|header_len| outer.effective_mtu(header_len)).min()
            }
            _ => outer.effective_mtu(self.of.family.header_len()),
        };
        let changed = self.of.path.bound(left);
        self.follow();
        changed
    }

    /// Forgets what was learned for until the time of `watch`, and asks to be called again; whether that
    /// changed anything.
    pub fn pass_time(&mut self, watch: &mut Watch) -> bool {
        let over = self.of.path.pass_time(watch.now());
        if over {
            self.follow();
        }
        watch.wake_at(self.of.path.due());
        over
    }

    fn follow(&mut self) {
        let limit = ip_limit(self.of.family);
        let longest = self.of.path.get().map_or(limit, |mtu| limit.min(mtu.into()));
        let fitting = self.of.overhead.longest_payload(longest);
        let pad_to = match self.of.tfc {
            Tfc::None => 0,
            Tfc::PadTo(len) => fitting.min(len.into()),
            Tfc::Mtu => fitting,
        };
        // Both are lengths of IP packets.
        (self.longest, self.pad_to) = (longest as u32, pad_to as u32);
    }

    /// What becomes of a tunnel packet whose `total` is over the longest: one that must get through whole is sent
    /// nevertheless, for the path or this host to divide its outer packet.
    #[cold]
    pub fn exceed(&self, inner: &Inner, total: usize) -> Result<(), DropReason> {
        if total > ip_limit(self.of.family) {
            return Err(DropReason::OutTooBig);
        }
        // Every link takes that much of IPv6, and so must a tunnel (RFC 8200 5, RFC 2473 7.1).
        let must_pass = inner.next_header == protocol::IPV6 && inner.len <= usize::from(ipv6::MIN_MTU);
        if must_pass { Ok(()) } else { Err(DropReason::OutPathMtu) }
    }

    /// Whether a packet that transport mode makes `total` bytes long is sent: what is protected whole may be
    /// divided afterwards, never before (RFC 4303 3.3.4, RFC 4302 3.3.4).
    pub fn admit_whole(&self, family: Family, total: usize, divisible: bool) -> Result<(), DropReason> {
        if total > ip_limit(family) {
            return Err(DropReason::OutTooBig);
        }
        match self.of.path.get() {
            Some(mtu) if total > mtu.into() && !divisible => Err(DropReason::OutPathMtu),
            _ => Ok(()),
        }
    }
}

/// Whether a packet may be divided once transport mode has protected it. IPv6 is divided at its source alone:
/// where that could not be told to send less, and where it is another SA of this gateway, which has looked
/// already ([`PathLimit::go_through`]).
pub fn is_divisible(ip: &Ip<'_>, next_header: u8) -> bool {
    match ip {
        Ip::V4(ip) => !ip.dont_fragment(),
        Ip::V6(ip) => {
            ip.bytes().len() <= ipv6::MIN_MTU.into() || matches!(next_header, protocol::ESP | protocol::AH)
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
