//! One SA out of its table.

use std::net::IpAddr;
use std::ops::Range;

use forebay_crypto::{Direction, Suite};
use forebay_ipsec::{Encapsulation, MAX_WINDOW, Mode, SaConfig, Spi};

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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Esp,
    Ah,
}

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
    if protocol == Some(Protocol::Ah) {
        let problem = Problem::NotInThisVersion { key: "protocol", found: "ah".into() };
        findings.add(problem, sa.span("protocol"), "expected `esp`");
    }
    // What names no cipher of ESP may be right for AH, whose absence has been reported.
    let suite = required(sa, "proposal", findings)
        .filter(|_| protocol != Some(Protocol::Ah))
        .and_then(|key| proposal(sa, key, findings));
    let keys = keys::read(sa, suite, files, findings);
    let (local, remote) = addresses(sa, findings);
    let claim = claim(sa, direction, spi, remote);
    let mode = optional(sa, "mode", MODES, Mode::Tunnel, findings);
    let encapsulation = optional(sa, "encapsulation", ENCAPSULATIONS, Encapsulation::None, findings);
    let (esn, allow_weak) = (sa.flag("esn", false, findings), sa.flag("allow_weak", false, findings));
    let replay_window = replay_window(sa, findings);
    let (local_ts, remote_ts) = (sa.selectors("local_ts", findings), sa.selectors("remote_ts", findings));
    let entry = || {
        Some(SaEntry {
            config: SaConfig {
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
        Err(_) if is_of_a_later_version(text) => {
            let problem = Problem::NotInThisVersion { key, found: shown(text) };
            findings.add(problem, span, "known, but not available yet");
            None
        }
        Err(error) => {
            let problem = Problem::UnknownProposal { found: shown(&error.found), nearest: error.nearest };
            findings.add(problem, span, "not a proposal");
            None
        }
    }
}

/// Whether this is a proposal of swanctl's that Forebay means to have and has not.
fn is_of_a_later_version(text: &str) -> bool {
    const CIPHERS: &[&str] = &["aes128", "aes192", "aes256", "aes128ctr", "aes192ctr", "aes256ctr"];
    const INTEGRITIES: &[&str] = &["md5", "sha1", "sha256", "sha384", "sha512", "aesxcbc", "aescmac"];
    let word = text.trim().to_ascii_lowercase().replace("sha2_", "sha");
    if let Some((cipher, integrity)) = word.split_once('-') {
        let cipher_known = CIPHERS.contains(&cipher) || ["3des", "null"].contains(&cipher);
        return cipher_known && INTEGRITIES.contains(&integrity);
    }
    let mode = CIPHERS[..3].iter().find_map(|cipher| word.strip_prefix(cipher));
    let combined = match mode.map(|mode| mode.split_at_checked(3).unwrap_or((mode, ""))) {
        Some(("ccm", icv)) => ["8", "12", "16", "64", "96", "128"].contains(&icv),
        Some(mode) => mode == ("gma", "c"),
        None => false,
    };
    combined || INTEGRITIES.contains(&&*word)
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
