//! Captures and SAs files as images for firmware, and what it gives back as captures.

use std::fmt;
use std::io::{Cursor, Read};
use std::net::IpAddr;
use std::path::Path;

use forebay_crypto::{Cipher, Direction, Integrity};
use forebay_diagnostics::Plain;
use forebay_ipsec::{Mode, Protocol, TrafficSelector};
use forebay_links::LinkType;
use forebay_links::capture::{CaptureError, Reader, Resolution, Writer};
use forebay_links::frame::locate;
use forebay_sas::{self as sas, SaEntry, SasErrors};
use forebay_wire::Ip;

use crate::builtin;
use crate::image;
use crate::sender;
use crate::setup::{Input, SasSource};

/// What is wrong with a capture or with SAs.
#[derive(Clone, Debug)]
pub struct PacketError {
    /// What, with its file.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PacketError {}

fn wrong<T>(message: String, help: &str) -> Result<T, PacketError> {
    Err(PacketError { message, help: help.to_owned() })
}

fn capture_error(error: CaptureError) -> PacketError {
    let help = error.hint().unwrap_or("expected a capture, pcap or pcapng");
    PacketError { message: error.to_string(), help: help.to_owned() }
}

fn sas_error(errors: &SasErrors) -> PacketError {
    let all: Vec<Plain> = errors.findings().iter().map(|one| one.plain()).collect();
    let said = all.iter().map(|Plain { file, line, message, .. }| {
        let line = line.map_or(String::new(), |line| format!("{line}: "));
        format!("{file}:{line}{message}")
    });
    let message = said.collect::<Vec<_>>().join("; ");
    PacketError { message, help: all.into_iter().next().map_or(String::new(), |one| one.hint) }
}

/// The input image of packets and SAs.
///
/// # Errors
/// What is wrong with the capture or the SAs, or what of them the firmware lacks.
pub fn image(input: &Input) -> Result<Vec<u8>, PacketError> {
    let Input::Packets { capture, sas: path, packets, inbound, checksums } = input else {
        return Ok(Vec::new());
    };
    let wanted = if *inbound { Direction::Open } else { Direction::Seal };
    let file = match path {
        SasSource::File(path) => sas::load(path),
        SasSource::Text(text) => sas::parse(text, "input.sas"),
    }
    .map_err(|errors| sas_error(&errors))?;
    let name = match path {
        SasSource::File(path) => path.display().to_string(),
        SasSource::Text(_) => "input.sas".to_owned(),
    };
    let mut records = Vec::new();
    let mut policies = Vec::new();
    for entry in file.entries.iter().filter(|entry| entry.direction == wanted) {
        let line = entry.line;
        let record = record(entry).or_else(|what| {
            let sa = &entry.config.name;
            wrong(
                format!("{name}:{line}: SA `{sa}`: the firmware has no {what}"),
                "it has AES-CBC, AES-CTR and AES-GCM, HMAC-MD5-96, HMAC-SHA-1-96 and HMAC-SHA-256-128",
            )
        })?;
        policies.extend(selectors(entry, records.len() as u16));
        records.push(record);
    }
    if records.is_empty() {
        let direction = if *inbound { "in" } else { "out" };
        let help = "`direction` of [input] and of the SAs have to be the same";
        return wrong(format!("{name} has no SA of direction `{direction}`"), help);
    }
    let drawn = capture.to_str().and_then(builtin::datagrams);
    let bodies = match capture.to_str() {
        _ if drawn.is_some() => Ok(vec![drawn.clone().unwrap_or_default(); *packets as usize]),
        Some(builtin::CAPTURE) => {
            let reader = Reader::new(Cursor::new(builtin::DEMO), builtin::CAPTURE);
            bodies(reader.map_err(capture_error)?, *packets as usize)
        }
        _ => bodies(Reader::open(capture).map_err(capture_error)?, *packets as usize),
    }
    .map_err(capture_error)?;
    if bodies.is_empty() {
        return wrong(format!("{} holds no whole IP packet", capture.display()), "take another capture");
    }
    let ours = drawn.is_some() || capture.to_str() == Some(builtin::CAPTURE);
    let bodies = match *inbound && ours {
        true => sender::protected(&records, &policies, &bodies)
            .map_err(|error| PacketError { message: error.to_string(), help: error.help() })?,
        false => bodies,
    };
    let bodies: Vec<(bool, &[u8])> = bodies.iter().map(|one| (*inbound, one.as_slice())).collect();
    Ok(image::input(*checksums, &records, &policies, &bodies))
}

/// The first whole IP packets of a capture.
fn bodies<R: Read>(mut reader: Reader<R>, most: usize) -> Result<Vec<Vec<u8>>, CaptureError> {
    let mut bodies = Vec::new();
    while bodies.len() < most {
        let Some(record) = reader.next_whole_record()? else { break };
        let Ok(at) = locate(record.link, record.data) else { continue };
        let Ok(ip) = Ip::parse(&record.data[at.start..]) else { continue };
        bodies.push(ip.bytes().to_vec());
    }
    Ok(bodies)
}

fn record(entry: &SaEntry) -> Result<image::Sa, &'static str> {
    let config = &entry.config;
    let suite = entry.keys.suite();
    let cipher = match suite.cipher() {
        Cipher::Null => 0,
        Cipher::AesCbc(_) => 1,
        Cipher::AesCtr(_) => 2,
        Cipher::AesGcm(_) => 3,
        _ => return Err("such cipher"),
    };
    let auth = match suite.integrity() {
        Integrity::Combined | Integrity::None => 0,
        Integrity::HmacMd5 => 1,
        Integrity::HmacSha1 => 2,
        Integrity::HmacSha256 => 3,
        _ => return Err("such integrity algorithm"),
    };
    if config.iptfs.is_some() {
        return Err("IP-TFS");
    }
    let inbound = entry.direction == Direction::Open;
    let (source, destination) =
        if inbound { (config.remote, config.local) } else { (config.local, config.remote) };
    let key = [entry.keys.cipher(), entry.keys.salt()].concat();
    Ok(image::Sa {
        spi: config.spi.get(),
        inbound,
        protocol: if config.protocol == Protocol::Ah { 51 } else { 50 },
        mode: u8::from(config.mode == Mode::Transport),
        cipher,
        auth,
        icv_len: suite.icv_len() as u8,
        flags: u8::from(config.esn) | if inbound && config.replay_window == 0 { 2 } else { 0 },
        family: if source.is_ipv4() { 4 } else { 6 },
        sequence: 0,
        source: octets(source),
        destination: octets(destination),
        key_len: entry.keys.cipher().len() as u8,
        key,
        auth_key: entry.keys.integrity().to_vec(),
    })
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut out = [0; 16];
            out[..4].copy_from_slice(&address.octets());
            out
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// A policy for every pair of an SA's selectors: everything of both families where it has none.
fn selectors(entry: &SaEntry, sa: u16) -> Vec<image::Policy> {
    let any = [TrafficSelector::ANY];
    let or_any = |list: &[TrafficSelector]| if list.is_empty() { any.to_vec() } else { list.to_vec() };
    let (local, remote) = (or_any(&entry.config.local_ts), or_any(&entry.config.remote_ts));
    let inbound = entry.direction == Direction::Open;
    let mut policies = Vec::new();
    for one in &local {
        for other in &remote {
            let (from, to) = if inbound { (other, one) } else { (one, other) };
            for family in [4, 6] {
                let Some((source, source_bits)) = prefix(from, family) else { continue };
                let Some((destination, destination_bits)) = prefix(to, family) else { continue };
                let protocol = from.protocol().or(to.protocol()).unwrap_or(0);
                policies.push(image::Policy {
                    inbound,
                    action: 2,
                    family,
                    protocol,
                    sa,
                    prefixes: (source_bits, destination_bits),
                    ports: [from.ports().first(), from.ports().last(), to.ports().first(), to.ports().last()],
                    source,
                    destination,
                });
            }
        }
    }
    policies
}

/// The smallest prefix around a selector's addresses in a family.
fn prefix(selector: &TrafficSelector, family: u8) -> Option<([u8; 16], u8)> {
    let Some((first, last)) = selector.addresses() else { return Some(([0; 16], 0)) };
    if first.is_ipv4() != (family == 4) {
        return None;
    }
    let (a, b) = (octets(first), octets(last));
    let most = if family == 4 { 32 } else { 128 };
    let differ = (0..most).find(|&bit: &usize| (a[bit / 8] ^ b[bit / 8]) >> (7 - bit % 8) & 1 != 0);
    let bits = differ.unwrap_or(most);
    let mut address = a;
    for bit in bits..most {
        address[bit / 8] &= !(0x80 >> (bit % 8));
    }
    Some((address, bits as u8))
}

/// Writes the packets of an output image that passed.
///
/// # Errors
/// That there is no image, or the file cannot be written.
pub fn write(path: &Path, output: &[u8]) -> Result<(), PacketError> {
    let Some(results) = image::results(output) else {
        return wrong("the firmware has left no output image".to_owned(), "does it end with code 0?");
    };
    let mut writer = Writer::create(path).map_err(capture_error)?;
    writer.declare(LinkType::Raw, Resolution::Microseconds).map_err(capture_error)?;
    for (number, (_, packet)) in results.iter().filter(|(status, _)| *status == 0).enumerate() {
        // There is no time on the core: a microsecond a packet keeps their order.
        writer
            .write(LinkType::Raw, 1_000 * number as u64, packet.len() as u32, packet)
            .map_err(capture_error)?;
    }
    writer.finish().map_err(capture_error)
}
