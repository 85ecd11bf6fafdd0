//! Reads one SA from its table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use forebay_crypto::{Direction, Suite};
use forebay_ipsec::{Encapsulation, MAX_WINDOW, Mode, Originals, Protocol, SaConfig, SaConfigError, Spi};

use super::errors::Findings;
use super::host_name::{HostName, Peer, no_peer};
use super::keys::{self, KeyFiles};
use super::mask::shown;
use super::names::Named;
use super::problem::Problem;
use super::schema::CPU_MAX;
use super::table::Table;
use super::{SaEntry, iptfs, lifetime, tunnel};

pub(super) const DIRECTIONS: &[(&str, Direction)] = &[("out", Direction::Seal), ("in", Direction::Open)];
/// The addresses before any NAT: source and destination of packets that arrive.
const ORIGINALS: [&str; 2] = ["original_remote", "original_local"];
const MODES: &[(&str, Mode)] = &[("tunnel", Mode::Tunnel), ("transport", Mode::Transport)];
const ENCAPSULATIONS: &[(&str, Encapsulation)] =
    &[("none", Encapsulation::None), ("udp", Encapsulation::Udp)];
const PROTOCOLS: &[(&str, Protocol)] = &[("esp", Protocol::Esp), ("ah", Protocol::Ah)];

const DEFAULT_WINDOW: u32 = 64;

/// An SPI that an SA uses, for the check against the other SAs.
pub(super) struct Claim {
    pub(super) spi: Spi,
    /// Outbound, the peer whose SPI it is; inbound, it is this side's.
    pub(super) peer: Option<Peer>,
    pub(super) name: String,
    pub(super) span: Range<usize>,
}

/// What comes of one table.
pub(super) struct Read {
    /// If nothing is wrong with it.
    pub(super) entry: Option<SaEntry>,
    pub(super) claim: Option<Claim>,
    pub(super) named: Named,
}

/// Reads an SA that begins on `line`. A value that is missing or wrong yields `None` and a finding.
pub(super) fn read(sa: &Table<'_, '_>, line: usize, files: &KeyFiles, findings: &mut Findings) -> Read {
    sa.report_unknown_keys(findings);
    let name = sa.or("name", (&*sa.name, 0..0), |key| sa.name_of(key, findings));
    let direction = sa.required("direction", findings).and_then(|key| sa.word(key, DIRECTIONS, findings));
    let outer = sa.or("outer", None, |key| sa.text(key, findings).map(Some));
    let named = Named {
        name: sa.name.clone(),
        direction,
        span: sa.span(if sa.has("name") { "name" } else { "spi" }),
        outer: outer.clone().flatten().map(|(name, span)| (name.to_owned(), span)),
        cpu: sa.has("cpu").then(|| sa.span("cpu")),
    };
    let core = core(sa, findings);
    let keys = keys::read(sa, core.suite, files, findings);
    let allow_weak = sa.flag("allow_weak", false, findings);
    if let Some(suite) = core.suite {
        check_suite(sa, suite, core.protocol, allow_weak, findings);
    }
    let claim = claim(sa, direction, &core);
    report_unused(sa, &core, direction, findings);
    let settings = settings(sa, &core, direction, findings);
    let remote_name = core.remote_name.clone();
    let entry = || {
        let config = SaConfig { name: name?.0.to_owned(), ..settings? };
        outer.as_ref()?;
        Some(SaEntry {
            config,
            direction: direction?,
            keys: keys?,
            allow_weak: allow_weak?,
            outer: None,
            remote_name,
            line,
        })
    };
    let entry = entry();
    Read { entry, claim, named }
}

/// What other settings depend on.
struct Core {
    spi: Option<Spi>,
    protocol: Option<Protocol>,
    mode: Option<Mode>,
    encapsulation: Option<Encapsulation>,
    suite: Option<Suite>,
    local: Option<IpAddr>,
    /// Unspecified where the peer has a name.
    remote: Option<IpAddr>,
    remote_name: Option<HostName>,
}

fn core(sa: &Table<'_, '_>, findings: &mut Findings) -> Core {
    let spi = sa.required("spi", findings).and_then(|key| spi(sa, key, findings));
    let protocol = sa.word_or("protocol", PROTOCOLS, Protocol::Esp, findings);
    let suite = sa.required("proposal", findings).and_then(|key| proposal(sa, key, findings));
    let (local, (remote, remote_name)) = addresses(sa, findings);
    let mode = sa.word_or("mode", MODES, Mode::Tunnel, findings);
    if let (Some(name), Some(Mode::Transport)) = (&remote_name, mode) {
        let why = "in transport mode it is the address of the packets themselves, which name no host";
        findings.add(
            Problem::NameRefused { name: name.clone(), why },
            sa.span("remote"),
            "expected an address",
        );
    }
    let encapsulation = sa.word_or("encapsulation", ENCAPSULATIONS, Encapsulation::None, findings);
    if protocol == Some(Protocol::Ah) && encapsulation == Some(Encapsulation::Udp) {
        findings.add(Problem::AhInUdp, sa.span("encapsulation"), "expected `none`");
    }
    Core { spi, protocol, mode, encapsulation, suite, local, remote, remote_name }
}

impl Core {
    /// An SA with the default of everything else, if that can be.
    fn config(&self, sa: &Table<'_, '_>, findings: &mut Findings) -> Option<SaConfig> {
        let config = SaConfig {
            protocol: self.protocol?,
            mode: self.mode?,
            encapsulation: self.encapsulation?,
            ..SaConfig::new("", self.spi?, self.suite?, self.local?, self.remote?)
        };
        match config.check() {
            Ok(()) => return Some(config),
            // Found already.
            Err(SaConfigError::MixedFamilies | SaConfigError::AhEnciphers(_) | SaConfigError::AhInUdp) => {}
            Err(error) => findings.add(Problem::Refused { error }, sa.span("proposal"), "this SA"),
        }
        None
    }
}

/// All the settings but the name.
fn settings(
    sa: &Table<'_, '_>,
    core: &Core,
    direction: Option<Direction>,
    findings: &mut Findings,
) -> Option<SaConfig> {
    let esn = sa.flag("esn", false, findings);
    let check_padding = sa.flag("check_padding", true, findings);
    let plain = core.config(sa, findings);
    let follows = plain.as_ref().is_none_or(|config| config.follow_peer);
    let follow_peer = sa.flag("follow_peer", follows, findings);
    let originals = originals(sa, core.local, findings);
    let replay_window = replay_window(sa, findings);
    let (local_ts, remote_ts) = (sa.selectors("local_ts", findings), sa.selectors("remote_ts", findings));
    let dscp = sa.classes(findings);
    let cpu = sa.or("cpu", None, |key| {
        let cpu = sa.ranged(key, 0..=CPU_MAX, "", findings)?;
        u32::try_from(cpu).ok().map(Some)
    });
    let lifetime = lifetime::read(sa, findings);
    let tunnel = tunnel::read(sa, findings);
    let mtu = tunnel::mtu(sa, core.local, findings);
    let tfc = tunnel::tfc(sa, core.mode, findings);
    let with_mtu = plain.clone().zip(mtu).map(|(config, mtu)| SaConfig { mtu, ..config });
    let iptfs = iptfs::read(sa, with_mtu.as_ref(), direction, findings);
    let config = SaConfig {
        esn: esn?,
        check_padding: check_padding?,
        follow_peer: follow_peer?,
        originals: originals?,
        replay_window: replay_window?,
        local_ts: local_ts?,
        remote_ts: remote_ts?,
        dscp: dscp?,
        cpu: cpu?,
        lifetime: lifetime?,
        tunnel: tunnel?,
        mtu: mtu?,
        tfc: tfc?,
        iptfs: iptfs?,
        ..plain?
    };
    // All that this can find has been found above, or should have been.
    if let Err(error) = config.check() {
        findings.add(Problem::Refused { error }, sa.span("spi"), "this SA");
        return None;
    }
    Some(config)
}

/// Notes settings that this SA has no use for.
fn report_unused(sa: &Table<'_, '_>, core: &Core, direction: Option<Direction>, findings: &mut Findings) {
    let mut report = |keys: &[&'static str], why: &'static str| {
        for key in keys.iter().copied().filter(|key| sa.has(key)) {
            findings.add(Problem::NoEffect { key, why }, sa.span(key), "");
        }
    };
    if core.mode == Some(Mode::Transport) {
        report(tunnel::KEYS, "there is no outer header in transport mode");
    }
    if core.protocol == Some(Protocol::Ah) {
        report(&["check_padding"], "AH does not pad");
    }
    if direction == Some(Direction::Open) {
        report(&["classes", "mtu", "tfc_padding"], "it is about packets that leave");
        if core.mode == Some(Mode::Tunnel) {
            report(
                &["dscp", "copy_df", "copy_ecn", "df", "flow_label", "ttl"],
                "it is about packets that leave",
            );
        }
        if core.encapsulation == Some(Encapsulation::None) {
            report(&["follow_peer"], "only peers of SAs in UDP are followed");
        }
    }
    if core.mode == Some(Mode::Tunnel) && direction == Some(Direction::Seal) {
        match core.local {
            Some(IpAddr::V6(_)) => report(&["df", "copy_df"], "IPv6 headers have no such bit"),
            Some(IpAddr::V4(_)) => report(&["flow_label"], "IPv4 headers have none"),
            None => {}
        }
    }
    if direction == Some(Direction::Seal) {
        report(&["replay_window", "follow_peer"], "it is about packets that arrive");
        if core.protocol != Some(Protocol::Ah) {
            report(&["check_padding"], "it is about packets that arrive");
        }
        report(&ORIGINALS, "it is about packets that arrive");
    } else if core.mode == Some(Mode::Tunnel) || core.encapsulation == Some(Encapsulation::None) {
        report(&ORIGINALS, "only ESP in UDP in transport mode has checksums to repair");
    }
}

fn spi(sa: &Table<'_, '_>, key: &'static str, findings: &mut Findings) -> Option<Spi> {
    let ((number, found), span) = sa.number(key, findings)?;
    let spi = number.and_then(|number| u32::try_from(number).ok()).and_then(Spi::new);
    if let Some(reserved) = spi.filter(|spi| spi.get() < 0x100) {
        findings.add(Problem::ReservedSpi { spi: reserved }, span.clone(), "reserved");
    }
    if spi.is_none() {
        findings.add(Problem::BadSpi { found }, span, "expected 1 to 4294967295");
    }
    spi
}

fn proposal(sa: &Table<'_, '_>, key: &'static str, findings: &mut Findings) -> Option<Suite> {
    let (text, span) = sa.text(key, findings)?;
    match text.parse() {
        Ok(suite) => Some(suite),
        Err(error) => {
            let problem = Problem::UnknownProposal { found: shown(&error.found), nearest: error.nearest };
            findings.add(problem, span, "not a proposal");
            None
        }
    }
}

/// Checks that the suite is one for the protocol, and strong or called weak.
fn check_suite(
    sa: &Table<'_, '_>,
    suite: Suite,
    protocol: Option<Protocol>,
    allow_weak: Option<bool>,
    findings: &mut Findings,
) {
    if protocol == Some(Protocol::Ah) && !suite.suits_ah() {
        let problem = Problem::NotForAh { suite };
        findings.add(problem, sa.span("proposal"), "expected an integrity algorithm alone");
    }
    if suite.is_weak() && allow_weak == Some(false) {
        findings.add(Problem::WeakSuite { suite }, sa.span("proposal"), "MUST NOT in RFC 8221");
    }
}

/// The addresses of both ends, and the name of the peer where that stands in the place of its address.
fn addresses(
    sa: &Table<'_, '_>,
    findings: &mut Findings,
) -> (Option<IpAddr>, (Option<IpAddr>, Option<HostName>)) {
    let local = sa.address("local", findings);
    if let Some((found, span)) = &local
        && let Some(is) = no_peer(found)
    {
        findings.add(Problem::NotOwn { found: *found, is }, span.clone(), "expected a unicast address");
    }
    let remote = match sa.peer("remote", findings) {
        Some((Peer::Name(name), _)) => {
            let unspecified = local.as_ref().map(|(local, _)| match local {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            });
            return (local.map(|(address, _)| address), (unspecified, Some(name)));
        }
        Some((Peer::Address(address), span)) => Some((address, span)),
        None => None,
    };
    if let (Some((local, local_span)), Some((remote, remote_span))) = (&local, &remote)
        && local.is_ipv4() != remote.is_ipv4()
    {
        let version = |address: &IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let problem = Problem::MixedFamilies { local: *local, remote: *remote };
        findings.add_pair(problem, local_span.clone(), version(local), remote_span.clone(), version(remote));
    }
    if let Some((found, span)) = &remote
        && let Some(is) = no_peer(found)
    {
        findings.add(Problem::NoPeer { found: *found, is }, span.clone(), "expected a unicast address");
    }
    (local.map(|(address, _)| address), (remote.map(|(address, _)| address), None))
}

/// The addresses before any NAT, of which both are needed or none; `Some(None)` for none.
fn originals(
    sa: &Table<'_, '_>,
    local: Option<IpAddr>,
    findings: &mut Findings,
) -> Option<Option<Originals>> {
    if !ORIGINALS.iter().any(|key| sa.has(key)) {
        return Some(None);
    }
    let [source, destination] = ORIGINALS.map(|key| {
        let (address, span) = sa.address(key, findings)?;
        if local.is_some_and(|local| local.is_ipv4() != address.is_ipv4()) {
            let problem = Problem::Refused { error: SaConfigError::OriginalsFamily };
            findings.add(problem, span, "expected the IP version of `local`");
            return None;
        }
        Some(address)
    });
    Some(Some(Originals { source: source?, destination: destination? }))
}

fn claim(sa: &Table<'_, '_>, direction: Option<Direction>, core: &Core) -> Option<Claim> {
    let named = || core.remote_name.clone().map(Peer::Name);
    let peer = match direction? {
        Direction::Open => None,
        Direction::Seal => Some(named().or(core.remote.map(Peer::Address))?),
    };
    Some(Claim { spi: core.spi?, peer, name: sa.name.clone(), span: sa.span("spi") })
}

fn replay_window(sa: &Table<'_, '_>, findings: &mut Findings) -> Option<u32> {
    sa.or("replay_window", DEFAULT_WINDOW, |key| {
        let ((number, found), span) = sa.number(key, findings)?;
        let window =
            number.and_then(|number| u32::try_from(number).ok()).filter(|&window| window <= MAX_WINDOW);
        if window.is_none() {
            findings.add(Problem::BadWindow { found }, span, "expected 0 to 65536");
        }
        window
    })
}
