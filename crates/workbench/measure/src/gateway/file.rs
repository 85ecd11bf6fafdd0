//! The gateway's file, as an operator would write it for these links.

use std::fmt::Write as _;

use forebay_crypto::Suite;
use forebay_ipsec::Encapsulation;

use super::bed::SINK;
use super::{Kind, Kinds};

/// The ring of a device of AF_PACKET: the driver's own default is 8 MB for 4,096 frames of an Ethernet.
const RING: &str = "blocksz=65536,framesz=2048,framecnt=4096";

/// The file of a gateway, or of a relay, by links of these kinds.
pub(super) fn text(kinds: Kinds, suite: Suite, keys: &str) -> String {
    let mut text = format!(
        "[inside]\n{}\n[[outside]]\n{}\n[keys]\nstate = \"state\"\n\n[control]\nsocket = \"control\"\n\n{keys}\n",
        link(kinds.inside, "lan", "net_af_packet0", "10.2.0.1/16", &format!("10.2.0.10={SINK}")),
        link(kinds.outside, "wan", "net_af_packet1", "192.0.2.2/24", &format!("192.0.2.1={SINK}")),
    );
    let encapsulation = if kinds.encapsulation() == Encapsulation::Udp { "udp" } else { "none" };
    for (direction, spi, first) in [("out", 0x2001, 0x80), ("in", 0x1001, 0)] {
        let _ = write!(
            text,
            "\n[[sa]]\nname = \"{direction}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"{suite}\"\n\
             encapsulation = \"{encapsulation}\"\nlocal = \"192.0.2.2\"\nremote = \"192.0.2.1\"\n\
             local_ts = [\"10.2.0.0/16\"]\nremote_ts = [\"10.1.0.0/16\"]\n{}",
            secrets(suite, first)
        );
    }
    text
}

/// The keys of a link.
fn link(kind: Kind, interface: &str, device: &str, address: &str, neighbour: &str) -> String {
    let host = address.split_once('/').map_or(address, |(host, _)| host);
    match kind {
        Kind::Tun => "kind = \"tun\"\nname = \"tun0\"\n".to_owned(),
        Kind::Udp => format!("kind = \"udp\"\nlisten = \"{host}:4500\"\n"),
        Kind::Raw => format!("kind = \"raw\"\naddresses = [\"{host}\"]\nprotocols = [\"esp\"]\n"),
        Kind::Xdp => format!("kind = \"xdp\"\ninterface = \"{interface}\"\n"),
        Kind::XdpGeneric => format!("kind = \"xdp\"\ninterface = \"{interface}\"\nmode = \"generic\"\n"),
        Kind::Dpdk => format!(
            "kind = \"dpdk\"\ndevice = \"{device}\"\narguments = \"iface={interface},{RING}\"\n\
             addresses = [\"{address}\"]\nneighbours = [\"{neighbour}\"]\n"
        ),
    }
}

/// The keys of an SA: those of [`throwaway_keys`](crate::esp::throwaway_keys), by which the generator seals, for the first byte 0.
fn secrets(suite: Suite, first: u8) -> String {
    let hex = |bytes: usize| (0..bytes).map(|byte| format!("{:02x}", byte as u8 ^ first)).collect::<String>();
    let mut text = String::new();
    let (cipher, integrity) = (suite.cipher_key_len() + suite.salt_len(), suite.integrity_key_len());
    if cipher > 0 {
        let _ = writeln!(text, "key = \"{}\"", hex(cipher));
    }
    if integrity > 0 {
        let _ = writeln!(text, "auth_key = \"{}\"", hex(integrity));
    }
    text
}
