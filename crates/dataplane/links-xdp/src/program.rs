//! The XDP program: which frames are the gateway's.

use std::net::IpAddr;

use forebay_links_sys::ebpf::assembler::{Assembler, Is, Label, R0, R1, R2, R3, R4, R5, R6, Reg, Width};
use forebay_wire::protocol;

/// Addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// One of them.
    pub address: IpAddr,
    /// How many bits.
    pub prefix: u8,
}

impl From<IpAddr> for Network {
    /// One address alone.
    fn from(address: IpAddr) -> Network {
        Network { address, prefix: if address.is_ipv6() { 128 } else { 32 } }
    }
}

/// Which frames a link takes; all others are the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// The outside: ESP, AH, and what is neither IKE nor a keepalive on UDP ports.
    Outside {
        /// Addresses of the gateway; if the list is empty, packets to any address match.
        to: Vec<Network>,
        /// UDP ports for ESP; 4500 (RFC 3948).
        ports: Vec<u16>,
    },
    /// The inside: all IP packets to these networks.
    Inside {
        /// The networks that are reached through the gateway.
        to: Vec<Network>,
    },
}

/// Most networks, and ports, that a program may look for: it looks for one after the other.
pub(crate) const MAX_ENTRIES: usize = 256;

const ETHERNET: i16 = 14;
const XDP_PASS: i32 = 2;
const REDIRECT_MAP: i32 = 51;
/// Where IPv6 starts being a header of its own length.
const IPV4: i16 = 20;
const IPV6: i16 = 40;
/// The shortest UDP datagram with ESP: its header, SPI and sequence number.
const SHORTEST: u32 = 8 + 8;

/// The program: frames that are taken go to the socket in `map` under the number of their queue.
pub(crate) fn program(take: &Take, map: i32) -> Vec<u64> {
    let mut asm = Assembler::default();
    let (pass, found) = (asm.label(), asm.label());
    let (v4, v6) = (asm.label(), asm.label());
    let (data, end) = (R2, R3);
    asm.copy(R6, R1);
    asm.load(data, Width::Word, R1, 0);
    asm.load(end, Width::Word, R1, 4);
    must_hold(&mut asm, data, end, ETHERNET + IPV4, pass);
    asm.load(R5, Width::Half, data, 12);
    asm.jump_if(R5, Is::Equal, 0x0800u16.to_be().into(), v4);
    asm.jump_if(R5, Is::Equal, 0x86ddu16.to_be().into(), v6);
    asm.jump(pass);

    let (Take::Outside { to, .. } | Take::Inside { to }) = take;
    let (to_v4, to_v6): (Vec<Network>, Vec<Network>) = to.iter().partition(|to| to.address.is_ipv4());
    asm.here(v4);
    if to_v4.is_empty() && !to.is_empty() {
        asm.jump(pass); // what cannot be reached may not be in a program
    } else {
        must_be_to(&mut asm, &to_v4, data, ETHERNET + 16, pass);
        asm.load(R5, Width::Byte, data, ETHERNET);
        asm.jump_if(R5, Is::Below, 0x45, pass);
        if let Take::Outside { ports, .. } = take {
            asm.jump_if(R5, Is::NotEqual, 0x45, pass);
            // More fragments, and an offset.
            asm.load(R5, Width::Half, data, ETHERNET + 6);
            asm.and(R5, 0x3fffu16.to_be().into());
            asm.jump_if(R5, Is::NotEqual, 0, pass);
            asm.load(R5, Width::Byte, data, ETHERNET + 9);
            asm.add(data, i32::from(ETHERNET + IPV4));
            must_be_ipsec(&mut asm, ports, (data, end), found, pass);
        } else {
            asm.jump(found);
        }
    }
    asm.here(v6);
    must_hold(&mut asm, data, end, ETHERNET + IPV6, pass);
    if to_v6.is_empty() && !to.is_empty() {
        asm.jump(pass);
    } else {
        must_be_to(&mut asm, &to_v6, data, ETHERNET + 24, pass);
        if let Take::Outside { ports, .. } = take {
            asm.load(R5, Width::Byte, data, ETHERNET + 6);
            asm.add(data, i32::from(ETHERNET + IPV6));
            must_be_ipsec(&mut asm, ports, (data, end), found, pass);
        } else {
            asm.jump(found);
        }
    }

    asm.here(found);
    asm.load(R2, Width::Word, R6, 16); // the receive queue
    asm.map(R1, map);
    asm.set(R3, XDP_PASS); // without a socket for the queue
    asm.call(REDIRECT_MAP);
    asm.exit();
    asm.here(pass);
    asm.set(R0, XDP_PASS);
    asm.exit();
    asm.finish()
}

/// Goes to `pass` if there are fewer than `len` bytes from `data` on.
fn must_hold(asm: &mut Assembler, data: Reg, end: Reg, len: i16, pass: Label) {
    asm.copy(R4, data);
    asm.add(R4, len.into());
    asm.jump_if_above(R4, end, pass);
}

/// Goes to `pass` if the address at `at` is in none of the networks, which are of its family; that there are none
/// means all.
fn must_be_to(asm: &mut Assembler, networks: &[Network], data: Reg, at: i16, pass: Label) {
    if networks.is_empty() {
        return;
    }
    let found = asm.label();
    for network in networks {
        let octets = match network.address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let other = asm.label();
        let mut bits = u32::from(network.prefix).min(8 * octets.len() as u32);
        for (i, word) in
            octets.as_chunks::<4>().0.iter().enumerate().take_while(|(i, _)| 32 * i < network.prefix.into())
        {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0).to_be();
            bits = bits.saturating_sub(32);
            asm.load(R5, Width::Word, data, at + 4 * i as i16);
            if mask != u32::MAX {
                asm.and(R5, mask);
            }
            asm.jump_if(R5, Is::NotEqual, u32::from_ne_bytes(*word) & mask, other);
        }
        asm.jump(found);
        asm.here(other);
    }
    asm.jump(pass);
    asm.here(found);
}

/// Goes to `found` if protocol `R5`, whose header is at `data`, is ESP, AH, or ESP in UDP; else to `pass`.
fn must_be_ipsec(asm: &mut Assembler, ports: &[u16], (data, end): (Reg, Reg), found: Label, pass: Label) {
    asm.jump_if(R5, Is::Equal, protocol::ESP.into(), found);
    asm.jump_if(R5, Is::Equal, protocol::AH.into(), found);
    asm.jump_if(R5, Is::NotEqual, protocol::UDP.into(), pass);
    must_hold(asm, data, end, SHORTEST as i16, pass);
    // The frame may be longer than the datagram.
    asm.load(R5, Width::Half, data, 4);
    asm.host_half(R5);
    asm.jump_if(R5, Is::Below, SHORTEST, pass);
    let marker = asm.label();
    asm.load(R5, Width::Half, data, 2);
    for port in ports {
        asm.jump_if(R5, Is::Equal, port.to_be().into(), marker);
    }
    asm.jump(pass);
    asm.here(marker);
    // The non-ESP marker (RFC 3948 2.2).
    asm.load(R5, Width::Word, data, 8);
    asm.jump_if(R5, Is::NotEqual, 0, found);
    asm.jump(pass);
}
