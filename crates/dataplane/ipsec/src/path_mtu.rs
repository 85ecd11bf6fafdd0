//! Path MTUs of outbound SAs: as configured, as learned from ICMP, and as the SAs around them leave them
//! (RFC 4301 8.2); and what becomes of packets that are too big.

mod quoted;
mod rate;

use std::net::IpAddr;

use forebay_crypto::SessionId;
use forebay_wire::icmp::{self, TooBig};
use forebay_wire::{Family, Fragments, Ip};

use crate::mtu::{PathMtu, min_path_mtu, plateau_below};
use crate::overhead::Overhead;
use crate::path_limit::PathLimit;
use crate::sa::{Mode, SaConfig, Tfc};
use crate::sad::Sad;
use crate::watch::Watch;
use quoted::{Quoted, spi_and_sequence};
use rate::Rate;

/// The path MTUs of all outbound SAs of this core, and how many ICMP messages are sent and believed. SAs hold only
/// what follows for their packets, [`PathLimit`], which is set here whenever it changes.
#[derive(Debug, Default)]
pub struct PathMtus {
    /// By the number of the SA.
    paths: Vec<Option<Box<SaPath>>>,
    /// Of the ICMP errors that are sent.
    icmp_rate: Rate,
    /// Of the path MTUs that are believed.
    pmtu_rate: Rate,
    counters: PathMtuCounters,
}

/// ICMP messages of smaller path MTUs from outside that were ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathMtuCounters {
    /// Messages that quote no packet that an SA has sent lately, as forged ones do.
    pub unmatched: u64,
    /// Messages that do, beyond the rate at which such messages are believed.
    pub limited: u64,
}

/// The path of one SA, and what its limits come from.
#[derive(Clone, Debug)]
struct SaPath {
    mtu: PathMtu,
    overhead: Overhead,
    mode: Mode,
    /// That of the outer addresses.
    family: Family,
    tfc: Tfc,
}

impl PathMtus {
    /// Adds the path of an outbound SA.
    pub fn add(&mut self, session: SessionId, config: &SaConfig) {
        let index = session.0 as usize;
        self.paths.resize_with(self.paths.len().max(index + 1), || None);
        self.paths[index] = Some(Box::new(SaPath {
            mtu: PathMtu::new(config.mtu),
            overhead: Overhead::of(config),
            mode: config.mode,
            family: Family::of(config.local),
            tfc: config.tfc,
        }));
    }

    /// Forgets the path of an SA that is removed.
    pub fn remove(&mut self, session: SessionId) {
        self.paths.get_mut(session.0 as usize).and_then(Option::take);
    }

    /// The path MTU of an SA at present, in bytes.
    pub fn get(&self, session: SessionId) -> Option<u16> {
        self.path(session)?.mtu.get()
    }

    /// The longest packet that fits the path once an SA has protected it, in bytes: one whose header, which stays in
    /// front in transport mode, has `header_len`.
    pub fn effective(&self, session: SessionId, header_len: usize) -> Option<u16> {
        self.path(session)?.effective(header_len)
    }

    /// Lowers the path MTU of an SA for a while; whether that changed anything.
    pub fn lower(&mut self, session: SessionId, mtu: u16, watch: &mut Watch, sad: &mut Sad) -> bool {
        let Some(path) = self.path_mut(session) else { return false };
        let lower = path.mtu.learn(mtu, path.family, watch.now());
        watch.wake_at(path.mtu.due());
        if lower {
            sad.set_path_limit(session, path.limit());
            self.spread(session, sad);
        }
        lower
    }

    /// Tells SAs whose packets go through `outer` what its path leaves for them.
    pub fn spread(&mut self, outer: SessionId, sad: &mut Sad) {
        let inside = sad.inside(outer);
        if inside.is_empty() {
            return;
        }
        let Some(outer) = self.path(outer).cloned() else { return };
        for inner in inside {
            // No deeper than SAs are nested.
            if let Some(path) = self.path_mut(inner)
                && path.go_through(&outer)
            {
                sad.set_path_limit(inner, path.limit());
                self.spread(inner, sad);
            }
        }
    }

    /// Forgets what was learned for until the time of `watch`, and asks to be called again.
    pub fn pass_time(&mut self, watch: &mut Watch, sad: &mut Sad) {
        for index in 0..self.paths.len() {
            let Some(path) = &mut self.paths[index] else { continue };
            let over = path.mtu.pass_time(watch.now());
            watch.wake_at(path.mtu.due());
            if over {
                let session = SessionId(index as u32);
                sad.set_path_limit(session, path.limit());
                self.spread(session, sad);
            }
        }
    }

    /// The ICMP messages that were ignored so far.
    pub fn counters(&self) -> PathMtuCounters {
        self.counters
    }

    /// Lowers a path MTU by an ICMP message that came from outside; the SA whose path MTU that changed. Nothing
    /// vouches for such a message (RFC 4301 8.2.1), so it is believed only if it quotes SPI, addresses and
    /// sequence number of a packet that was sent lately, and not below what every path takes.
    ///
    /// Anybody can send such messages, so one costs a look-up by peer and SPI, however many SAs there are, and only one
    /// that matches counts against the rate: forged ones take nothing away from those of the routers.
    pub fn learn(&mut self, message: &[u8], watch: &mut Watch, sad: &mut Sad) -> Option<SessionId> {
        let message = TooBig::parse(message)?;
        let quoted = Quoted::parse(message.quoted)?;
        let found = sad.outbound_to(quoted.destination, quoted.spi);
        let is_of = |session: SessionId| Some(quoted.is_of(sad.config(session)?, sad.sequence(session)?));
        let Some(session) = found.filter(|&session| is_of(session) == Some(true)) else {
            self.counters.unmatched += 1;
            return None;
        };
        if !self.pmtu_rate.take(watch.now()) {
            self.counters.limited += 1;
            return None;
        }
        let mtu = match message.mtu {
            0 if quoted.family == Family::V4 => plateau_below(quoted.len),
            mtu if quoted.family == Family::V6 && mtu < min_path_mtu(Family::V6).into() => return None,
            mtu => mtu.min(u16::MAX.into()) as u16,
        };
        self.lower(session, mtu, watch, sad).then_some(session)
    }

    /// How long a packet of an SA may be, if it is longer than that; in bytes.
    pub fn exceeded(&self, session: SessionId, ip: &Ip<'_>) -> Option<u16> {
        let header_len = match ip {
            Ip::V4(ip) => ip.header_len(),
            Ip::V6(ip) => ip.transport_place().ok()?.at,
        };
        let mtu = self.effective(session, header_len)?;
        (ip.bytes().len() > mtu.into()).then_some(mtu)
    }

    /// The fragments that a packet of an SA whose path it exceeds is to be divided into.
    pub fn divide<'a>(&self, session: SessionId, ip: &Ip<'a>) -> Option<Fragments<'a>> {
        let mtu = self.exceeded(session, ip)?;
        if self.path(session)?.mode == Mode::Transport || ip.family() == Family::V6 {
            return None;
        }
        Fragments::new(ip, mtu.into(), 0)
    }

    /// Writes the ICMP error that reports the maximum length to the source of a packet; returns the error's length.
    /// `None` if none may be sent, or too many were sent lately.
    pub fn icmp_error(
        &mut self,
        session: SessionId,
        ip: &Ip<'_>,
        from: IpAddr,
        room: &mut [u8],
        watch: &Watch,
    ) -> Option<usize> {
        let mtu = self.exceeded(session, ip)?;
        let len = icmp::packet_too_big(ip.bytes(), mtu, from, room)?;
        self.icmp_rate.take(watch.now()).then_some(len)
    }

    /// The fragments of a packet that an SA has protected and that is longer than its path takes; `outer` is the SA
    /// that it goes through next.
    pub fn divide_sealed<'a>(
        &self,
        session: SessionId,
        outer: Option<SessionId>,
        sealed: &'a [u8],
    ) -> Option<Fragments<'a>> {
        let mtu = usize::from(self.get(session)?);
        let outer = outer.and_then(|outer| self.path(outer));
        let ip = Ip::parse(sealed).ok()?;
        if ip.bytes().len() <= mtu || outer.is_some_and(|outer| outer.mode == Mode::Transport) {
            return None;
        }
        let (_, spi, sequence) = spi_and_sequence(&ip)?;
        // One to one with the sequence number, and another series for each SA.
        Fragments::new(&ip, mtu, sequence ^ spi.rotate_left(16))
    }

    fn path(&self, session: SessionId) -> Option<&SaPath> {
        self.paths.get(session.0 as usize)?.as_deref()
    }

    fn path_mut(&mut self, session: SessionId) -> Option<&mut SaPath> {
        self.paths.get_mut(session.0 as usize)?.as_deref_mut()
    }
}

impl SaPath {
    fn limit(&self) -> PathLimit {
        PathLimit::new(self.mtu.get(), self.family, &self.overhead, self.tfc)
    }

    fn effective(&self, header_len: usize) -> Option<u16> {
        let kept = if self.mode == Mode::Transport { header_len } else { 0 };
        let mtu = usize::from(self.mtu.get()?).checked_sub(kept)?;
        u16::try_from(kept + self.overhead.longest_payload(mtu)).ok()
    }

    /// Takes over what `outer` leaves, the path of the SA that packets of this one go through next; whether that
    /// changed anything.
    fn go_through(&mut self, outer: &SaPath) -> bool {
        let left = match (self.mode, outer.mode) {
            // Headers are of any length, and alignment, to 16 bytes at most, counts from behind them.
            (Mode::Transport, Mode::Transport) => {
                let headers = (0..16).step_by(4).map(|options| self.family.header_len() + options);
                headers.filter_map(|header_len| outer.effective(header_len)).min()
            }
            _ => outer.effective(self.family.header_len()),
        };
        self.mtu.bound(left)
    }
}
