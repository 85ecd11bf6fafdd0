//! The capture that is sent, and the wire it is sent over.

use std::io::Cursor;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use forebay_links::capture::Reader;
use forebay_links::frame::locate;
use forebay_wire::{Ip, protocol};
use miette::{IntoDiagnostic, WrapErr, miette};

use super::figures::CaptureFigures;
use forebay_terminal::capture_error;

/// Recorded from real programs by `demo/record.sh`.
static BUILT_IN: &[u8] = forebay_embedded::builtin::DEMO;
/// Largest capture, in packets: they are all kept in memory.
const PACKETS_MAX: usize = 1_000_000;

/// IP packets in the order of a capture.
pub struct Capture {
    pub name: String,
    pub packets: Vec<Box<[u8]>>,
}

/// Reads the capture at `path`, or the one built in; what is not IP is left out.
pub fn load(path: Option<&Path>) -> miette::Result<Capture> {
    match path {
        Some(path) => {
            let file = std::fs::File::open(path).into_diagnostic();
            let file = file.wrap_err_with(|| format!("cannot read {}", path.display()))?;
            read(Reader::new(file, path).map_err(capture_error)?, path.display().to_string())
        }
        None => {
            let name = "demo/traffic.pcap";
            read(Reader::new(Cursor::new(BUILT_IN), name).map_err(capture_error)?, name.to_owned())
        }
    }
}

fn read<R: std::io::Read>(mut reader: Reader<R>, name: String) -> miette::Result<Capture> {
    let mut packets: Vec<Box<[u8]>> = Vec::new();
    while let Some(record) = reader.next_whole_record().map_err(capture_error)? {
        let Ok(at) = locate(record.link, record.data) else { continue };
        let Ok(ip) = Ip::parse(&record.data[at.start..]) else { continue };
        if packets.len() == PACKETS_MAX {
            return Err(miette!("{name} has more than {PACKETS_MAX} packets"));
        }
        packets.push(ip.bytes().into());
    }
    if packets.is_empty() {
        return Err(miette!("{name} holds no whole IP packet"));
    }
    Ok(Capture { name, packets })
}

impl Capture {
    /// Counts, sizes and protocols.
    pub fn figures(&self) -> CaptureFigures {
        let mut sizes: Vec<u64> = self.packets.iter().map(|packet| packet.len() as u64).collect();
        sizes.sort_unstable();
        let bytes: u64 = sizes.iter().sum();
        let mut protocols: Vec<(String, u64, u64)> = Vec::new();
        for packet in &self.packets {
            let name = protocol_name(packet);
            let entry = match protocols.iter_mut().position(|(known, ..)| *known == name) {
                Some(place) => &mut protocols[place],
                None => {
                    protocols.push((name, 0, 0));
                    let last = protocols.len() - 1;
                    &mut protocols[last]
                }
            };
            entry.1 += 1;
            entry.2 += packet.len() as u64;
        }
        protocols.sort_by_key(|&(_, packets, _)| std::cmp::Reverse(packets));
        CaptureFigures {
            name: self.name.clone(),
            packets: sizes.len() as u64,
            bytes,
            mean_size: bytes as f64 / sizes.len() as f64,
            median_size: sizes[sizes.len() / 2],
            protocols,
        }
    }
}

fn protocol_name(packet: &[u8]) -> String {
    let (family, number) = match Ip::parse(packet) {
        Ok(Ip::V4(ip)) => ("IPv4", ip.protocol()),
        Ok(Ip::V6(ip)) => ("IPv6", ip.upper_layer().map_or(ip.next_header(), |walk| walk.protocol)),
        Err(_) => ("IP", 0),
    };
    match number {
        1 | 58 => format!("ICMP over {family}"),
        protocol::TCP => format!("TCP over {family}"),
        protocol::UDP => format!("UDP over {family}"),
        other => format!("protocol {other} over {family}"),
    }
}

/// Two sockets on loopback that talk to each other.
pub fn loopback_pair() -> miette::Result<(UdpSocket, UdpSocket)> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let pair = || -> std::io::Result<(UdpSocket, UdpSocket)> {
        let (near, far) = (bind()?, bind()?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        far.set_nonblocking(true)?;
        Ok((near, far))
    };
    pair().into_diagnostic().wrap_err("cannot open UDP sockets on loopback")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capture_built_in_is_whole() {
        let capture = load(None).unwrap();
        assert!(capture.packets.len() > 5_000);
        let figures = capture.figures();
        assert_eq!(figures.protocols.iter().map(|&(_, packets, _)| packets).sum::<u64>(), figures.packets);
    }
}
