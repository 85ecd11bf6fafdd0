//! One SA out of its table.

use std::net::IpAddr;
use std::ops::Range;

use forebay_crypto::{Direction, Suite};
use forebay_ipsec::{Encapsulation, MAX_WINDOW, Mode, Protocol, SaConfig, Spi};

use super::SaEntry;
use super::errors::Findings;
use super::keys::{self, KeyFiles};
use super::mask::shown;
use super::problem::Problem;
use super::table::SaTable;

const DIRECTIONS: &[(&str, Direction)] = &[("out", Direction::Seal), ("in", Direction::Open)];
const MODES: &[(&str, Mode)] = &[("tunnel", Mode::Tunnel), ("transport", Mode::Transport)];
const ENCAPSULATIONS: &[(&str, Encapsulation)] =
    &[("none", Encapsulation::None), ("udp", Encapsulation::Udp)];
const PROTOCOLS: &[(&str, Protocol)] = &[("esp", Protocol::Esp), ("ah", Protocol::Ah)];

const DEFAULT_WINDOW: u32 = 64;

/// An SPI that an SA uses, for the check against the other SAs.
pub(super) struct Claim {
    pub(super) spi: Spi,
    /// Outbound, the peer whose SPI it is; inbound, it is this side's.
    pub(super) peer: Option<IpAddr>,
    pub(super) name: String,
    pub(super) span: Range<usize>,
}

/// Reads an SA that begins on `line`. Whatever comes back as `None` has left a finding.
pub(super) fn read(
    sa: &SaTable<'_, '_>,
    line: usize,
    files: &KeyFiles,
    findings: &mut Findings,
) -> (Option<SaEntry>, Option<Claim>) {
    sa.report_unknown_keys(findings);
    let name = if sa.has("name") {
        sa.text("name", findings).map(|_| sa.name.clone())
    } else {
        Some(sa.name.clone())
    };
    let direction = required(sa, "direction", findings).and_then(|key| sa.word(key, DIRECTIONS, findings));
    let spi = required(sa, "spi", findings).and_then(|key| spi(sa, key, findings));
    let protocol = optional(sa, "protocol", PROTOCOLS, Protocol::Esp, findings);
    let suite = required(sa, "proposal", findings).and_then(|key| proposal(sa, key, findings));
    let keys = keys::read(sa, suite, files, findings);
    let (local, remote) = addresses(sa, findings);
    let claim = claim(sa, direction, spi, remote);
    let mode = optional(sa, "mode", MODES, Mode::Tunnel, findings);
    let encapsulation = optional(sa, "encapsulation", ENCAPSULATIONS, Encapsulation::None, findings);
    if protocol == Some(Protocol::Ah) && encapsulation == Some(Encapsulation::Udp) {
        findings.add(Problem::AhInUdp, sa.span("encapsulation"), "expected `none`");
    }
    let (esn, allow_weak) = (sa.flag("esn", false, findings), sa.flag("allow_weak", false, findings));
    if let Some(suite) = suite {
        check_suite(sa, suite, protocol, allow_weak, findings);
    }
    let replay_window = replay_window(sa, findings);
    let (local_ts, remote_ts) = (sa.selectors("local_ts", findings), sa.selectors("remote_ts", findings));
    let entry = || {
        Some(SaEntry {
            config: SaConfig {
                protocol: protocol?,
                mode: mode?,
                esn: esn?,
                replay_window: replay_window?,
                encapsulation: encapsulation?,
                local_ts: local_ts?,
                remote_ts: remote_ts?,
                ..SaConfig::new(&name?, spi?, suite?, local?, remote?)
            },
            direction: direction?,
            keys: keys?,
            allow_weak: allow_weak?,
            line,
        })
    };
    (entry(), claim)
}

fn required(sa: &SaTable<'_, '_>, key: &'static str, findings: &mut Findings) -> Option<&'static str> {
    if !sa.has(key) {
        sa.missing(key, findings);
        return None;
    }
    Some(key)
}

fn optional<T: Copy>(
    sa: &SaTable<'_, '_>,
    key: &'static str,
    words: &[(&'static str, T)],
    default: T,
    findings: &mut Findings,
) -> Option<T> {
    if sa.has(key) { sa.word(key, words, findings) } else { Some(default) }
}

fn spi(sa: &SaTable<'_, '_>, key: &'static str, findings: &mut Findings) -> Option<Spi> {
    let ((number, found), span) = sa.number(key, findings)?;
    let spi = number.and_then(|number| u32::try_from(number).ok()).and_then(Spi::new);
    if spi.is_none() {
        findings.add(Problem::BadSpi { found }, span, "expected 1 to 4294967295");
    }
    spi
}

fn proposal(sa: &SaTable<'_, '_>, key: &'static str, findings: &mut Findings) -> Option<Suite> {
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
    sa: &SaTable<'_, '_>,
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

fn addresses(sa: &SaTable<'_, '_>, findings: &mut Findings) -> (Option<IpAddr>, Option<IpAddr>) {
    let (local, remote) = (sa.address("local", findings), sa.address("remote", findings));
    if let (Some((local, local_span)), Some((remote, remote_span))) = (&local, &remote)
        && local.is_ipv4() != remote.is_ipv4()
    {
        let version = |address: &IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let problem = Problem::MixedFamilies { local: *local, remote: *remote };
        findings.add_pair(problem, local_span.clone(), version(local), remote_span.clone(), version(remote));
    }
    (local.map(|(address, _)| address), remote.map(|(address, _)| address))
}

fn claim(
    sa: &SaTable<'_, '_>,
    direction: Option<Direction>,
    spi: Option<Spi>,
    remote: Option<IpAddr>,
) -> Option<Claim> {
    let peer = match direction? {
        Direction::Open => None,
        Direction::Seal => Some(remote?),
    };
    Some(Claim { spi: spi?, peer, name: sa.name.clone(), span: sa.span("spi") })
}

fn replay_window(sa: &SaTable<'_, '_>, findings: &mut Findings) -> Option<u32> {
    if !sa.has("replay_window") {
        return Some(DEFAULT_WINDOW);
    }
    let ((number, found), span) = sa.number("replay_window", findings)?;
    let window = number.and_then(|number| u32::try_from(number).ok()).filter(|&window| window <= MAX_WINDOW);
    if window.is_none() {
        findings.add(Problem::BadWindow { found }, span, "expected 0 to 65536");
    }
    window
}
