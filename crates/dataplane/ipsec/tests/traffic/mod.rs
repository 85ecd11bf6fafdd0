//! Packets by their selectors' values, SAs that stand for a number, and what a database does with them.

#![allow(dead_code)]

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, SessionId, Verdict};
use forebay_ipsec::{DropReason, Ipsec, IvRange, Prepared, SaConfig, Spi, TrafficSelector};

/// What stands behind the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upper {
    /// A protocol with ports: number, source, destination.
    Ports(u8, u16, u16),
    /// ICMP of either version: number, type, code.
    Icmp(u8, u8, u8),
    /// The Mobility Header's type.
    Mobility(u8),
    /// Anything else.
    Other(u8),
}

impl Upper {
    pub fn protocol(self) -> u8 {
        match self {
            Upper::Ports(protocol, ..) | Upper::Icmp(protocol, ..) | Upper::Other(protocol) => protocol,
            Upper::Mobility(_) => 135,
        }
    }
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub upper: Upper,
    pub dscp: u8,
    /// Behind the first fragment: no upper header in it.
    pub later_fragment: bool,
    /// The first fragment: it has the upper header, which in IPv6 stands behind more destination options.
    pub first_fragment: bool,
}

impl Flow {
    pub fn udp(source: &str, destination: &str, ports: (u16, u16)) -> Flow {
        Flow::new(source, destination, Upper::Ports(17, ports.0, ports.1))
    }

    pub fn tcp(source: &str, destination: &str, ports: (u16, u16)) -> Flow {
        Flow::new(source, destination, Upper::Ports(6, ports.0, ports.1))
    }

    pub fn new(source: &str, destination: &str, upper: Upper) -> Flow {
        let (source, destination) = (source.parse().expect("an address"), destination.parse().expect("one"));
        Flow { source, destination, upper, dscp: 0, later_fragment: false, first_fragment: false }
    }

    /// The packet that answers.
    pub fn back(self) -> Flow {
        let upper = match self.upper {
            Upper::Ports(protocol, source, destination) => Upper::Ports(protocol, destination, source),
            other => other,
        };
        Flow { source: self.destination, destination: self.source, upper, ..self }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut payload = match self.upper {
            Upper::Ports(_, source, destination) => {
                [source.to_be_bytes(), destination.to_be_bytes()].concat()
            }
            Upper::Icmp(_, kind, code) => vec![kind, code, 0, 0],
            Upper::Mobility(kind) => vec![59, 0, kind, 0],
            Upper::Other(_) => vec![0xff; 4],
        };
        payload.extend_from_slice(&[0, 12, 0, 0, 1, 2, 3, 4]);
        if self.later_fragment {
            payload.fill(0xee);
        }
        let protocol = self.upper.protocol();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let len = (20 + payload.len()) as u8;
                let fragment = match (self.later_fragment, self.first_fragment) {
                    (true, _) => [0x20, 0x03],
                    (false, true) => [0x20, 0],
                    (false, false) => [0, 0],
                };
                let mut packet =
                    vec![0x45, self.dscp << 2, 0, len, 0, 9, fragment[0], fragment[1], 64, protocol, 0, 0];
                packet.extend_from_slice(&source.octets());
                packet.extend_from_slice(&destination.octets());
                [packet, payload].concat()
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                // Destination options before everything else, so that they are walked over.
                let is_fragment = self.later_fragment || self.first_fragment;
                let mut chain = vec![if is_fragment { 44 } else { protocol }, 0, 1, 4, 0, 0, 0, 0];
                if self.later_fragment {
                    chain.extend_from_slice(&[protocol, 0, 0, 0x19, 0, 0, 0, 1]);
                } else if self.first_fragment {
                    chain.extend_from_slice(&[60, 0, 0, 1, 0, 0, 0, 1]);
                    chain.extend_from_slice(&[60, 0, 1, 4, 0, 0, 0, 0]);
                    chain.extend_from_slice(&[protocol, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                }
                let len = (chain.len() + payload.len()) as u8;
                let mut packet = vec![0x60 | self.dscp >> 2, self.dscp << 6, 0, 0, 0, len, 60, 64];
                packet.extend_from_slice(&source.octets());
                packet.extend_from_slice(&destination.octets());
                [packet, chain, payload].concat()
            }
            _ => panic!("addresses of two IP versions"),
        }
    }
}

/// Selectors in swanctl's words.
pub fn ts(words: &[&str]) -> Vec<TrafficSelector> {
    words.iter().map(|word| word.parse().unwrap_or_else(|error| panic!("{word}: {error}"))).collect()
}

/// The outer addresses of SA number `n`, this side's first.
pub fn ends(n: u32) -> [IpAddr; 2] {
    let peer = 0xcb00_7100 + (n & 0xff);
    [[198, 51, 100, 1].into(), IpAddr::from(peer.to_be_bytes())]
}

/// SA number `n` for this traffic.
pub fn sa(n: u32, local: &[&str], remote: &[&str]) -> SaConfig {
    let [here, peer] = ends(n);
    let suite = "aes128gcm16".parse().expect("a proposal");
    SaConfig {
        local_ts: ts(local),
        remote_ts: ts(remote),
        ..SaConfig::new(&format!("sa-{n}"), Spi::new(0x1000 + n).expect("not zero"), suite, here, peer)
    }
}

pub fn add_out(sad: &mut Ipsec, config: SaConfig) -> SessionId {
    sad.add_outbound(config, IvRange::for_throwaway_key()).expect("settings without fault")
}

pub fn add_in(sad: &mut Ipsec, config: SaConfig) -> SessionId {
    sad.add_inbound(config).expect("settings without fault")
}

pub fn buffer(bytes: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(2_048);
    assert!(packet.fill(bytes));
    packet
}

/// What becomes of an outbound packet: the SA, or nothing if it passes as it is.
pub fn send(sad: &mut Ipsec, flow: &Flow) -> Result<Option<SessionId>, DropReason> {
    send_bytes(sad, &flow.bytes())
}

/// The same of any packet.
pub fn send_bytes(sad: &mut Ipsec, bytes: &[u8]) -> Result<Option<SessionId>, DropReason> {
    let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
    match sad.prepare(Direction::Seal, &mut packet, &mut spec)? {
        Prepared::Bypass => {
            assert_eq!(packet.bytes(), bytes, "as it is");
            Ok(None)
        }
        Prepared::Job => {
            sad.complete(&mut packet, &spec, Verdict::Done)?;
            Ok(Some(spec.session))
        }
    }
}

/// What becomes of a packet that comes in without protection; never a job.
pub fn receive_clear(sad: &mut Ipsec, flow: &Flow) -> Result<(), DropReason> {
    let (bytes, mut spec) = (flow.bytes(), JobSpec::default());
    let mut packet = buffer(&bytes);
    assert_eq!(sad.prepare(Direction::Open, &mut packet, &mut spec)?, Prepared::Bypass);
    assert_eq!(packet.bytes(), bytes, "as it is");
    Ok(())
}

/// The outer packet of `flow` on tunnel SA number `n` as its peer sends it, with a cipher that changes nothing.
pub fn sealed(n: u32, sequence: u32, flow: &Flow) -> Vec<u8> {
    sealed_bytes(n, sequence, &flow.bytes())
}

/// The same of any packet.
pub fn sealed_bytes(n: u32, sequence: u32, inner: &[u8]) -> Vec<u8> {
    let next_header = if inner[0] >> 4 == 4 { 4 } else { 41 };
    let pad = (4 - (inner.len() + 2) % 4) % 4;
    let mut esp = [(0x1000 + n).to_be_bytes(), sequence.to_be_bytes()].concat();
    esp.extend_from_slice(&[0; 8]);
    esp.extend_from_slice(inner);
    esp.extend((1..=pad as u8).chain([pad as u8, next_header]));
    esp.extend_from_slice(&[0; 16]);
    let [here, peer] = ends(n);
    let (IpAddr::V4(here), IpAddr::V4(peer)) = (here, peer) else { panic!("outer addresses are IPv4") };
    let [high, low] = ((20 + esp.len()) as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, 50, 0, 0];
    packet.extend_from_slice(&peer.octets());
    packet.extend_from_slice(&here.octets());
    [packet, esp].concat()
}

/// What becomes of a packet that comes in on SA number `n`.
pub fn receive(sad: &mut Ipsec, n: u32, sequence: u32, flow: &Flow) -> Result<(), DropReason> {
    receive_bytes(sad, n, sequence, &flow.bytes())
}

/// The same of any packet.
pub fn receive_bytes(sad: &mut Ipsec, n: u32, sequence: u32, inner: &[u8]) -> Result<(), DropReason> {
    let (mut packet, mut spec) = (buffer(&sealed_bytes(n, sequence, inner)), JobSpec::default());
    assert_eq!(sad.prepare(Direction::Open, &mut packet, &mut spec)?, Prepared::Job);
    sad.complete(&mut packet, &spec, Verdict::Done)?;
    assert_eq!(packet.bytes(), inner);
    Ok(())
}
