//! The configuration of DPDK's ipsec-secgw (its sample application's guide, "Configuration File Syntax").
//!
//! `sp` becomes a policy, `sa` an SA. `rt` and `neigh` say where packets go next, which the system's routes do here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_crypto::{Direction, SessionId, Suite};
use forebay_ipsec::{Action, Encapsulation, Mode, Policy, PortRange, SaConfig, Spi, TrafficSelector};
use ipnet::IpNet;
use zeroize::Zeroizing;

use super::{Imported, ImportedSa, check_keys, name};

/// Reads a configuration.
pub fn read(text: &str) -> Imported {
    let mut imported = Imported::default();
    let mut rules = Vec::new();
    for (line, item) in items(text) {
        let words: Vec<&str> = item.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["sa", rest @ ..] => match sa(rest, line, &item, &mut imported) {
                Ok(sa) => imported.sas.push(sa),
                Err(reason) => imported.lose(line, &item, reason),
            },
            ["sp", rest @ ..] => match rule(rest, line, &item, &mut imported) {
                Ok(rule) => rules.push(rule),
                Err(reason) => imported.lose(line, &item, reason),
            },
            ["rt", ..] => imported.note(line, &item, "the system's routes are used"),
            ["neigh", ..] => imported.note(line, &item, "the system resolves addresses itself"),
            ["flow", ..] => imported.note(line, &item, "flow steering by the NIC is not needed"),
            [other, ..] => imported.lose(
                line,
                &item,
                format!("unknown item `{}`: expected sp, sa, rt, neigh or flow", super::shown(other)),
            ),
        }
    }
    // The larger number goes first; of two the same the one that stands first.
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    for rule in rules {
        match resolve(&rule, &imported.sas) {
            Ok(policy) => imported.policies.push(policy),
            Err(reason) => imported.lose(rule.line, &rule.text, reason),
        }
    }
    imported.finish()
}

/// The lines without comments, each with its number. One that ends in a backslash goes on in the next without a space
/// between them, as ipsec-secgw joins them (its parser.c); a line that is a comment is not there at all.
fn items(text: &str) -> Vec<(usize, Zeroizing<String>)> {
    let mut items: Vec<(usize, Zeroizing<String>)> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let line = line.split('#').next().unwrap_or_default();
        let (line, goes_on) = match line.trim_end().strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match items.last_mut().filter(|_| open) {
            Some((_, item)) => {
                // What grows in place leaves a copy of a key behind.
                let mut joined = Zeroizing::new(String::with_capacity(item.len() + line.len()));
                joined.push_str(item);
                joined.push_str(line);
                *item = joined;
            }
            None => items.push((at + 1, Zeroizing::new(line.to_owned()))),
        }
        open = goes_on;
    }
    items
}

fn direction(word: Option<&&str>) -> Result<Direction, String> {
    match word {
        Some(&"out") => Ok(Direction::Seal),
        Some(&"in") => Ok(Direction::Open),
        _ => Err("expected `in` or `out`".to_owned()),
    }
}

/// Algorithms by their words here and there.
const CIPHERS: &[(&str, &str)] = &[
    ("null", "null"),
    ("aes-128-cbc", "aes128"),
    ("aes-192-cbc", "aes192"),
    ("aes-256-cbc", "aes256"),
    ("aes-128-ctr", "aes128ctr"),
    ("aes-192-ctr", "aes192ctr"),
    ("aes-256-ctr", "aes256ctr"),
    ("3des-cbc", "3des"),
];
const AUTHS: &[(&str, &str)] = &[
    ("null", ""),
    ("sha1-hmac", "-sha1"),
    ("sha256-hmac", "-sha256"),
    ("sha384-hmac", "-sha384"),
    ("sha512-hmac", "-sha512"),
    ("aes-xcbc-mac-96", "-aesxcbc"),
];
const AEADS: &[(&str, &str)] = &[
    ("aes-128-gcm", "aes128gcm16"),
    ("aes-192-gcm", "aes192gcm16"),
    ("aes-256-gcm", "aes256gcm16"),
    ("chacha20-poly1305", "chacha20poly1305"),
];

fn find(table: &[(&str, &'static str)], word: &str, what: &str) -> Result<&'static str, String> {
    let found = table.iter().find(|(known, _)| *known == word).map(|&(_, ours)| ours);
    found.ok_or_else(|| format!("{what} `{}` is not supported", super::shown(word)))
}

/// `x:x:...` as hex, each byte with two digits.
fn key(text: &str) -> Result<Zeroizing<String>, String> {
    let mut hex = Zeroizing::new(String::with_capacity(text.len()));
    for byte in text.split(':') {
        if byte.is_empty() || byte.len() > 2 || !byte.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("a key is not bytes in hex with colons between them".to_owned());
        }
        if byte.len() == 1 {
            hex.push('0');
        }
        hex.push_str(byte);
    }
    Ok(hex)
}

/// `sa <dir> <spi> ...`.
fn sa(words: &[&str], line: usize, text: &str, imported: &mut Imported) -> Result<ImportedSa, String> {
    let mut rest = words.iter();
    let direction = direction(rest.next())?;
    let spi = rest.next().and_then(|word| word.parse().ok()).and_then(Spi::new);
    let spi = spi.ok_or("expected an SPI above 0")?;
    let (mut cipher, mut auth, mut aead) = (None, None, None);
    let (mut cipher_key, mut auth_key) = (Zeroizing::default(), Zeroizing::default());
    let (mut mode, mut src, mut dst) = (None, None, None);
    let (mut esn, mut udp) = (false, false);
    while let Some(&word) = rest.next() {
        let mut value = || rest.next().copied().ok_or_else(|| format!("`{word}` has no value"));
        match word {
            "cipher_algo" => cipher = Some(find(CIPHERS, value()?, "cipher")?),
            "auth_algo" => auth = Some(find(AUTHS, value()?, "integrity algorithm")?),
            "aead_algo" => aead = Some(find(AEADS, value()?, "AEAD")?),
            "cipher_key" | "aead_key" => cipher_key = key(value()?)?,
            "auth_key" => auth_key = key(value()?)?,
            "mode" => mode = Some(value()?),
            "src" => src = Some(address(value()?)?),
            "dst" => dst = Some(address(value()?)?),
            // The number that the sequence numbers begin with.
            "esn" => {
                esn = true;
                let begin = value()?;
                if begin != "0" {
                    imported.note(
                        line,
                        text,
                        format!("sequence numbers begin with 1, not with `esn {begin}`"),
                    );
                }
            }
            "udp-encap" => udp = true,
            "type" => {
                if value()? != "no-offload" {
                    imported.note(line, text, "the scheduler chooses the processor: see [[processor]]");
                }
            }
            "port_id" => drop(value()?),
            "fallback" | "flow-direction" | "telemetry" | "reassembly_en" => {
                if word == "fallback" || word == "flow-direction" {
                    value()?;
                }
                if word == "flow-direction" {
                    value()?;
                }
                imported.note(line, text, format!("`{word}` is ignored"));
            }
            "mss" => {
                value()?;
                imported.lose(line, text, "`mss` is not imported: see `mss_clamp` in [inside]");
            }
            other => return Err(format!("unknown option `{}`", super::shown(other))),
        }
    }
    let proposal = proposal(cipher, auth, aead)?;
    if auth == Some("-sha256") {
        imported.note(line, text, "an ICV of 128 bits (RFC 4868); ipsec-secgw before DPDK 20.02 sends 96");
    }
    let suite: Suite = proposal.parse().map_err(|_| format!("unknown proposal {proposal}"))?;
    check_keys(suite, &cipher_key, &auth_key)?;
    let mode = match mode {
        Some("ipv4-tunnel" | "ipv6-tunnel") => Mode::Tunnel,
        Some("transport") => Mode::Transport,
        _ => return Err("expected mode ipv4-tunnel, ipv6-tunnel or transport".to_owned()),
    };
    let (Some(src), Some(dst)) = (src, dst) else {
        return Err("it has no outer addresses (src, dst), which an SA is found by here".to_owned());
    };
    let (local, remote) = if direction == Direction::Seal { (src, dst) } else { (dst, src) };
    let encapsulation = if udp { Encapsulation::Udp } else { Encapsulation::None };
    let plain = SaConfig::new(&name(direction, spi.get()), spi, suite, local, remote);
    let config = SaConfig { mode, esn, encapsulation, ..plain };
    config.check().map_err(|error| error.to_string())?;
    let twice = |sa: &&ImportedSa| sa.direction == direction && sa.config.spi == spi;
    if let Some(first) = imported.sas.iter().find(twice) {
        return Err(format!("line {} has this SPI already", first.line));
    }
    // A gateway's file with both would be refused as a whole.
    let keyed = |sa: &&ImportedSa| !cipher_key.is_empty() && *sa.key == *cipher_key;
    if let Some(first) = imported.sas.iter().find(keyed) {
        return Err(format!("the SA of line {} has the same key: give each a key of its own", first.line));
    }
    Ok(ImportedSa { config, direction, key: cipher_key, auth_key, outer: None, line })
}

/// The proposal of these algorithms, in Forebay's words.
fn proposal(cipher: Option<&str>, auth: Option<&str>, aead: Option<&str>) -> Result<String, String> {
    Ok(match (cipher, auth, aead) {
        (None, None, Some(aead)) => aead.to_owned(),
        (Some("null"), Some(""), None) => {
            return Err(
                "the SA neither encrypts nor authenticates: use a policy with action = \"bypass\"".to_owned()
            );
        }
        (Some(cipher), Some(auth), None) => format!("{cipher}{auth}"),
        _ => return Err("expected cipher_algo and auth_algo, or aead_algo alone".to_owned()),
    })
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("`{}` is no address", super::shown(text)))
}

/// `sp <ip_ver> <dir> esp <action> ...`, whose SA is not looked for yet.
struct Rule {
    direction: Direction,
    /// The SPI if it protects.
    action: Result<u32, Action>,
    priority: i64,
    src: TrafficSelector,
    dst: TrafficSelector,
    line: usize,
    text: String,
}

fn rule(words: &[&str], line: usize, text: &str, imported: &mut Imported) -> Result<Rule, String> {
    let mut rest = words.iter();
    let any = match rest.next() {
        Some(&"ipv4") => IpNet::new_assert(Ipv4Addr::UNSPECIFIED.into(), 0),
        Some(&"ipv6") => IpNet::new_assert(Ipv6Addr::UNSPECIFIED.into(), 0),
        _ => return Err("expected `ipv4` or `ipv6`".to_owned()),
    };
    let direction = direction(rest.next())?;
    if rest.next() != Some(&"esp") {
        return Err("expected `esp`".to_owned());
    }
    let action = match rest.next() {
        Some(&"protect") => {
            Ok(rest.next().and_then(|word| word.parse().ok()).ok_or("`protect` has no SPI")?)
        }
        Some(&"bypass") => Err(Action::Bypass),
        Some(&"discard") => Err(Action::Discard),
        _ => return Err("expected `protect SPI`, `bypass` or `discard`".to_owned()),
    };
    let (mut priority, mut src, mut dst) = (0, any, any);
    let (mut proto, mut sport, mut dport) = (0u8, None, None);
    while let Some(&word) = rest.next() {
        let value = rest.next().copied().ok_or_else(|| format!("`{word}` has no value"))?;
        match word {
            "pri" => priority = value.parse().map_err(|_| "`pri` is no number")?,
            "src" | "dst" => {
                let net: IpNet =
                    value.parse().map_err(|_| format!("`{}` is no prefix", super::shown(value)))?;
                if net.trunc() != net {
                    imported.note(
                        line,
                        text,
                        format!("{net} has host bits set; imported as {}", net.trunc()),
                    );
                }
                *(if word == "src" { &mut src } else { &mut dst }) = net.trunc();
            }
            "proto" => proto = protocol(value)?,
            "sport" => sport = Some(range(value)?),
            "dport" => dport = Some(range(value)?),
            other => return Err(format!("unknown option `{}`", super::shown(other))),
        }
    }
    if sport.is_none() || dport.is_none() {
        imported.note(
            line,
            text,
            "without `sport` and `dport` ipsec-secgw matches port 0 alone; imported as any port",
        );
    }
    let (sport, dport) = (sport.unwrap_or(PortRange::ANY), dport.unwrap_or(PortRange::ANY));
    let select = |net: IpNet, ports: PortRange| {
        let range = TrafficSelector::range(net.network(), net.broadcast());
        range.map(|range| range.with(proto, ports)).ok_or("no addresses")
    };
    let (src, dst) = (select(src, sport)?, select(dst, dport)?);
    Ok(Rule { direction, action, priority, src, dst, line, text: text.to_owned() })
}

/// `X`, `X/mask` or `X:Y`: one protocol, or any.
fn protocol(text: &str) -> Result<u8, String> {
    let (first, other) = text.split_once(['/', ':']).unwrap_or((text, "0xff"));
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => word.parse::<u8>().ok(),
    };
    match (number(first), number(other), text.contains(':')) {
        (Some(0), Some(0 | 255), _) => Ok(0),
        (Some(_), Some(0), false) => Ok(0),
        (Some(protocol), Some(255), false) => Ok(protocol),
        (Some(first), Some(last), true) if first == last => Ok(first),
        _ => Err(format!("`proto {}` is more than one protocol: give each a line", super::shown(text))),
    }
}

/// `X:Y`.
fn range(text: &str) -> Result<PortRange, String> {
    let wrong = || format!("`{}` is not a range of ports", super::shown(text));
    let (first, last) = text.split_once(':').ok_or_else(wrong)?;
    let (first, last) = (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
    PortRange::new(first, last).ok_or_else(wrong)
}

/// The policy, if its SA is there.
fn resolve(rule: &Rule, sas: &[ImportedSa]) -> Result<Policy, String> {
    let action = match &rule.action {
        Err(action) => action.clone(),
        Ok(spi) => {
            let found =
                sas.iter().position(|sa| sa.direction == rule.direction && sa.config.spi.get() == *spi);
            let place = found.ok_or_else(|| format!("no SA {spi} of this direction was imported"))?;
            Action::Protect(vec![SessionId(place as u32)])
        }
    };
    let (local, remote) =
        if rule.direction == Direction::Seal { (rule.src, rule.dst) } else { (rule.dst, rule.src) };
    let policy = Policy::new(&format!("line-{}", rule.line), rule.direction, action);
    Ok(Policy { local_ts: vec![local], remote_ts: vec![remote], ..policy })
}
