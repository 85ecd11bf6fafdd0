//! WireGuard's configuration, as `wg showconf` prints it and wg-quick reads it (wg(8), wg-quick(8)).
//!
//! WireGuard's keys identify peers and IPsec's protect packets, so that no key is taken over. What the file cannot say is a gap in what is
//! written, [`GAP`], which the gateway's reader refuses until it is filled in; each gap and each setting that is not taken over is a remark.
//! A packet goes to the peer with the longest prefix that holds its address, and is accepted from no other: what one peer's networks have in
//! common with a longer prefix of another is therefore taken out of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use forebay_sas::{HostName, Peer as Endpoint};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{Remark, shown};

/// What stands where the user has to fill something in. It is no value of any key.
pub const GAP: &str = "FILL IN";

/// The suite of new SAs: keys from files may meet an IV twice when a state is lost, which CBC bears (RFC 8221 3).
const PROPOSAL: &str = "aes256-sha256";

/// Port of ESP in UDP (RFC 3948), to which every peer sends.
const PORT: u16 = 4500;

/// How many networks may be left of one from which others are taken.
const PIECES_MAX: usize = 256;

/// Settings of the interface that are not taken over, with the reason.
const OF_INTERFACE: [(&str, &str); 7] = [
    ("dns", "the gateway sets no name servers of the host"),
    ("preup", "the gateway runs no commands: a drop-in of its unit does (ExecStartPre=)"),
    ("postup", "the gateway runs no commands: a drop-in of its unit does (ExecStartPost=)"),
    ("predown", "the gateway runs no commands: a drop-in of its unit does (ExecStop=)"),
    ("postdown", "the gateway runs no commands: a drop-in of its unit does (ExecStopPost=)"),
    ("saveconfig", "the gateway never writes its configuration"),
    ("table", "only `off` and `auto`: `routes = []` and routes of your own take the place of another table"),
];

/// A peer.
#[derive(Debug, Default)]
struct Peer {
    line: usize,
    /// Where it is; one that is known by a name is resolved by the gateway.
    endpoint: Option<Endpoint>,
    /// The networks behind it, each with the line where it stands.
    networks: Vec<(IpNet, usize)>,
}

/// What was taken over of an interface and its peers.
#[derive(Debug, Default)]
pub struct ImportedWireguard {
    addresses: Vec<IpAddr>,
    mtu: Option<u16>,
    mark: Option<u32>,
    has_no_routes: bool,
    keepalive: Option<u16>,
    peers: Vec<Peer>,
    /// What was not, and what has to be filled in, in the order of the text.
    pub remarks: Vec<Remark>,
}

/// Which section a line is in.
#[derive(PartialEq)]
enum Part {
    None,
    Interface,
    Peer,
}

/// Reads a configuration.
pub fn read(text: &str) -> ImportedWireguard {
    let mut imported = ImportedWireguard::default();
    let mut part = Part::None;
    for (number, whole) in (1..).zip(text.lines()) {
        let line = whole.split('#').next().unwrap_or("").trim();
        match line.to_ascii_lowercase().as_str() {
            "" => continue,
            "[interface]" => part = Part::Interface,
            "[peer]" => {
                part = Part::Peer;
                imported.peers.push(Peer { line: number, ..Peer::default() });
            }
            _ => match line.split_once('=') {
                Some((key, value)) if part != Part::None => {
                    imported.setting(&part, key.trim(), value.trim(), number);
                }
                Some((key, _)) => imported.lose(number, key, "it is in no section"),
                // It may be a piece of a key.
                None => {
                    imported.lose(number, "", "expected `[Interface]`, `[Peer]` or `name = value`");
                }
            },
        }
    }
    imported.separate();
    imported.name_gaps();
    imported.remarks.sort_by_key(|remark| remark.line);
    imported.remarks.dedup();
    imported
}

impl ImportedWireguard {
    /// How many peers have a network that the gateway can protect.
    pub fn peers(&self) -> usize {
        self.peers.iter().filter(|peer| !peer.networks.is_empty()).count()
    }

    fn lose(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        self.remarks.push(Remark { file: None, line, text: shown(text), reason: reason.into(), lost: true });
    }

    fn note(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        self.lose(line, text, reason);
        self.remarks.last_mut().expect("it was pushed").lost = false;
    }

    /// Takes one setting. No value is shown but addresses and numbers that are understood: any other may be a key.
    fn setting(&mut self, part: &Part, key: &str, value: &str, line: usize) {
        let name = key.to_ascii_lowercase();
        match (part, name.as_str()) {
            (Part::Interface, "privatekey") | (Part::Peer, "publickey") => self.note(
                line,
                key,
                "WireGuard's keys identify peers, IPsec's protect packets: the SAs get new ones",
            ),
            (Part::Peer, "presharedkey") => {
                self.note(line, key, "WireGuard's keys are not IPsec's: the SAs get new ones");
            }
            (Part::Interface, "address") => {
                for word in words(value) {
                    match network(word) {
                        Some(network) => self.addresses.push(network.addr()),
                        None => self.lose(line, key, "expected addresses, such as 10.9.0.1/24"),
                    }
                }
            }
            (Part::Interface, "listenport") => match value.parse() {
                Ok(PORT) => {}
                Ok(port) => {
                    let port: u16 = port;
                    let why = format!(
                        "peers send ESP in UDP to port {PORT}, where the gateway listens: open that port in the firewall instead of {port}"
                    );
                    self.lose(line, key, why);
                }
                Err(_) => self.lose(line, key, "expected a port"),
            },
            (Part::Interface, "mtu") => match value.parse() {
                Ok(mtu) if mtu >= 576 => {
                    self.mtu = Some(mtu);
                    let why = "IPsec's headers are up to 20 bytes longer than WireGuard's: a network that just carried it needs less";
                    self.note(line, key, why);
                }
                _ => self.lose(line, key, "expected an MTU of 576 to 65535 bytes"),
            },
            (Part::Interface, "fwmark") => match number(value) {
                Some(mark) => self.mark = Some(mark).filter(|mark| *mark > 0),
                None => self.lose(line, key, "expected a mark, or `off`"),
            },
            (Part::Interface, "table") if value.eq_ignore_ascii_case("auto") => {}
            (Part::Interface, "table") if value.eq_ignore_ascii_case("off") => self.has_no_routes = true,
            (Part::Interface, name) if OF_INTERFACE.iter().any(|(known, _)| *known == name) => {
                let why = OF_INTERFACE.iter().find(|(known, _)| *known == name).map_or("", |(_, why)| why);
                if name != "saveconfig" || value.eq_ignore_ascii_case("true") {
                    self.lose(line, key, why);
                }
            }
            (Part::Peer, "allowedips") => {
                for word in words(value) {
                    match network(word) {
                        // As WireGuard does: bits behind the prefix do not count.
                        Some(network) => self.of_peer().networks.push((network.trunc(), line)),
                        None => self.lose(
                            line,
                            key,
                            format!("found `{}`, expected networks, such as 10.2.0.0/16", shown(word)),
                        ),
                    }
                }
            }
            (Part::Peer, "endpoint") => self.endpoint(key, value, line),
            (Part::Peer, "persistentkeepalive") => match number(value) {
                Some(seconds @ 1..=3600) => {
                    let seconds = seconds as u16;
                    if self.keepalive.is_some_and(|other| other != seconds) {
                        self.note(line, key, "the smallest of all peers applies: it is one for the link");
                    }
                    self.keepalive = Some(self.keepalive.map_or(seconds, |other| other.min(seconds)));
                }
                Some(0) => {}
                _ => self.lose(line, key, "expected 1 to 3600 seconds, or `off`"),
            },
            _ => self.lose(line, key, "this setting is not known"),
        }
    }

    fn of_peer(&mut self) -> &mut Peer {
        self.peers.last_mut().expect("settings of a peer belong in its section")
    }

    fn endpoint(&mut self, key: &str, value: &str, line: usize) {
        let (host, port) = value.rsplit_once(':').unwrap_or((value, ""));
        let host = host.trim_matches(['[', ']']);
        match (host.parse(), host.parse::<HostName>()) {
            (Ok(address), _) => self.of_peer().endpoint = Some(Endpoint::Address(address)),
            (_, Ok(name)) => {
                let why = "the gateway resolves the name once a minute, and whoever answers decides where packets go";
                self.note(line, key, why);
                self.of_peer().endpoint = Some(Endpoint::Name(name));
            }
            (_, Err(why)) => {
                let why = format!(
                    "neither an address nor a host name, {why}: `remote` of its SAs is left to be filled in"
                );
                self.lose(line, key, why);
            }
        }
        if port != PORT.to_string() {
            let why = format!(
                "ESP in UDP goes to port {PORT} of the peer: its gateway listens there and nowhere else"
            );
            self.lose(line, key, why);
        }
    }

    /// Takes out of each peer's networks what longer prefixes of others hold.
    fn separate(&mut self) {
        let all: Vec<(usize, IpNet, usize)> = (self.peers.iter().enumerate())
            .flat_map(|(at, peer)| peer.networks.iter().map(move |(network, line)| (at, *network, *line)))
            .collect();
        // The last peer that names a network has it.
        let owners: BTreeMap<IpNet, usize> = all.iter().map(|(at, network, _)| (*network, *at)).collect();
        self.peers.iter_mut().for_each(|peer| peer.networks.clear());
        for (at, network, line) in all {
            let text = network.to_string();
            if owners[&network] != at {
                let why = format!(
                    "the peer of line {} has this network too, and WireGuard gives it to the last",
                    self.peers[owners[&network]].line
                );
                self.lose(line, &text, why);
                continue;
            }
            let holes: Vec<IpNet> = (owners.iter())
                .filter(|(hole, owner)| **owner != at && **hole != network && network.contains(*hole))
                .map(|(hole, _)| *hole)
                .collect();
            let mut left = vec![network];
            for hole in &holes {
                left = left.into_iter().flat_map(|one| without(one, *hole)).collect();
                if left.len() > PIECES_MAX {
                    break;
                }
            }
            if left.len() > PIECES_MAX {
                let why = format!(
                    "other peers have {} networks within it, without which it would be more than {PIECES_MAX} networks: write it by hand",
                    holes.len()
                );
                self.lose(line, &text, why);
                continue;
            }
            if !holes.is_empty() {
                let why = format!(
                    "it is written without the networks within it that other peers have, {}",
                    holes.len()
                );
                self.note(line, &text, why);
            }
            let peer = &mut self.peers[at];
            for one in left {
                if !peer.networks.iter().any(|(known, _)| *known == one) {
                    peer.networks.push((one, line));
                }
            }
        }
    }

    /// What has to be filled in, as remarks.
    fn name_gaps(&mut self) {
        let mut gaps = Vec::new();
        let has_own = !self.addresses.is_empty();
        for (at, peer) in self.peers.iter().enumerate() {
            let (name, line) = (format!("peer-{}", at + 1), peer.line);
            if peer.networks.is_empty() {
                gaps.push((
                    line,
                    name,
                    "it has no network in `AllowedIPs`, so that nothing is protected to it".to_owned(),
                ));
                continue;
            }
            let mut gap = |why: String| gaps.push((line, name.clone(), why));
            gap("fill in `local`, this host's address on the outside".to_owned());
            let own = if has_own { ", and this host's own in the tunnel" } else { "" };
            gap(format!("fill in `local_ts`, the networks on this side{own}"));
            gap("fill in `spi`: the peer's file has the same numbers, out and in exchanged".to_owned());
            gap(format!(
                "make its keys: forebay keygen --proposal {PROPOSAL} keys/{name}-out.key keys/{name}-in.key; the peer gets the same, out and in exchanged"
            ));
            if peer.endpoint.is_none() {
                gap(
                    "fill in `remote`: an SA with keys from a file has a peer with an address or a host name"
                        .to_owned(),
                );
            }
        }
        for (line, name, why) in gaps {
            self.lose(line, &name, why);
        }
    }

    /// The gateway's file, with gaps; `origin` is said in its first line.
    pub fn write(&self, origin: &str) -> String {
        let mut text = format!("# Taken over from {}\n", origin.replace(char::is_control, " "));
        push(&mut text, format_args!("# `forebay check` names each `{GAP}` until it is filled in.\n"));
        for remark in &self.remarks {
            let what = if remark.lost { "NOT TAKEN OVER" } else { "note" };
            let (place, words, reason) = (remark.place(), &remark.text, &remark.reason);
            push(&mut text, format_args!("# {what}, {place}: {words}: {reason}\n"));
        }
        push(&mut text, format_args!("\n[inside]\nname = \"forebay0\"\n"));
        if let Some(mtu) = self.mtu {
            push(&mut text, format_args!("mtu = {mtu}\n"));
        }
        // An address adds no route here, and none of the network around it is this side's.
        let addresses: Vec<String> =
            self.addresses.iter().map(|address| format!("\"{}\"", IpNet::from(*address))).collect();
        if !addresses.is_empty() {
            push(&mut text, format_args!("addresses = [{}]\n", addresses.join(", ")));
        }
        if self.has_no_routes {
            push(&mut text, format_args!("routes = []\n"));
        }
        push(&mut text, format_args!("\n[[outside]]\nkind = \"udp\"\n"));
        if let Some(seconds) = self.keepalive {
            push(&mut text, format_args!("keepalive = \"{seconds} s\"\n"));
        }
        if let Some(mark) = self.mark {
            push(&mut text, format_args!("mark = {mark:#x}\n"));
        }
        push(&mut text, format_args!("\n[keys]\nsource = \"static\"\n"));
        for (at, peer) in self.peers.iter().enumerate().filter(|(_, peer)| !peer.networks.is_empty()) {
            for direction in ["out", "in"] {
                push_sa(&mut text, peer, &format!("peer-{}", at + 1), direction);
            }
        }
        text
    }
}

fn push_sa(text: &mut String, peer: &Peer, name: &str, direction: &str) {
    let remote = peer.endpoint.as_ref().map_or(GAP.to_owned(), ToString::to_string);
    let networks: Vec<String> = peer.networks.iter().map(|(network, _)| format!("\"{network}\"")).collect();
    push(
        text,
        format_args!(
            "\n[[sa]]\nname = \"{name}-{direction}\"\ndirection = \"{direction}\"\nspi = \"{GAP}\"\nproposal = \"{PROPOSAL}\"\n\
             key_file = \"keys/{name}-{direction}.key\"\nauth_key_file = \"keys/{name}-{direction}.auth\"\n\
             encapsulation = \"udp\"\nlocal = \"{GAP}\"\nremote = \"{remote}\"\nlocal_ts = [\"{GAP}\"]\nremote_ts = [{}]\n",
            networks.join(", ")
        ),
    );
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes everything");
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// An address with a prefix length, or alone.
fn network(word: &str) -> Option<IpNet> {
    word.parse().ok().or_else(|| word.parse::<IpAddr>().ok().map(IpNet::from))
}

/// A number, in hex too; `off` is 0.
fn number(value: &str) -> Option<u32> {
    match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if value.eq_ignore_ascii_case("off") => Some(0),
        None => value.parse().ok(),
    }
}

/// A network without one that may be within it, or hold it.
fn without(network: IpNet, hole: IpNet) -> Vec<IpNet> {
    if hole.contains(&network) {
        return Vec::new();
    }
    let (mut left, mut rest) = (Vec::new(), network);
    while rest.contains(&hole) && rest != hole {
        for half in halves(rest) {
            match half.contains(&hole) {
                true => rest = half,
                false => left.push(half),
            }
        }
    }
    if left.is_empty() { vec![network] } else { left }
}

fn halves(network: IpNet) -> Vec<IpNet> {
    let len = network.prefix_len() + 1;
    match network {
        IpNet::V4(network) => network.subnets(len).into_iter().flatten().map(Ipv4Net::into).collect(),
        IpNet::V6(network) => network.subnets(len).into_iter().flatten().map(Ipv6Net::into).collect(),
    }
}
