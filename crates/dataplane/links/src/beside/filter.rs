//! The packet socket's filter: ESP in UDP for this host, and fragments of UDP.

use std::net::IpAddr;

use forebay_links_sys::option::Instruction;
use forebay_wire::{ipv6, protocol};

use super::BesideOptions;
use crate::bpf;

/// Bytes of the packet are counted from its IP header on (`SKF_NET_OFF`).
const IP: u32 = -0x10_0000_i32 as u32;
/// The kind of a packet, in the words of packet(7): 0 is for this host (`SKF_AD_PKTTYPE`).
const PACKET_TYPE: u32 = -0x1000_i32 as u32 + 4;
/// Keeps all bytes.
const ALL: u32 = u32::MAX;
/// The least length of UDP with ESP, as the kernel sees it: more than its header, SPI and sequence number. A keepalive has
/// less, whatever a card has padded it to.
const SHORTEST: u32 = (forebay_wire::udp::HEADER + super::SHORTEST) as u32;
const IPV6_FRAGMENT: u32 = 44;

/// The program of one of the workers.
pub(super) fn program(options: &BesideOptions, worker: usize) -> Vec<Instruction> {
    let mut program = Program::default();
    program.must_be(bpf::load_byte(PACKET_TYPE), 0);
    let port = options.local.port().into();
    // The first of the workers gets fragments, which have no SPI.
    let of_fragments = if worker == 0 { ALL } else { 0 };
    match options.local.ip() {
        IpAddr::V4(local) => {
            if !local.is_unspecified() {
                program.must_be(bpf::load_word(IP + 16), local.to_bits());
            }
            program.must_be(bpf::load_byte(IP + 9), protocol::UDP.into());
            program.put(bpf::load_half(IP + 6));
            program.put(bpf::jump_if_any(0x3fff, 0, 1));
            program.put(bpf::end_with(of_fragments));
            program.put(bpf::index_behind_ipv4_at(IP));
            let [to, len, spi] = [
                bpf::load_half_indexed(IP + 2),
                bpf::load_half_indexed(IP + 4),
                bpf::load_word_indexed(IP + 8),
            ];
            program.must_be_esp(to, len, spi, port);
        }
        IpAddr::V6(local) => {
            if !local.is_unspecified() {
                for (i, word) in local.octets().as_chunks::<4>().0.iter().enumerate() {
                    program.must_be(bpf::load_word(IP + 24 + 4 * i as u32), u32::from_be_bytes(*word));
                }
            }
            let udp = IP + ipv6::HEADER as u32;
            program.put(bpf::load_byte(IP + 6));
            // Over what is for fragments.
            program.put(bpf::jump_if_equal(IPV6_FRAGMENT, 0, 3));
            program.must_be(bpf::load_byte(udp), protocol::UDP.into());
            program.put(bpf::end_with(of_fragments));
            program.must_be(bpf::load_byte(IP + 6), protocol::UDP.into());
            let [to, len, spi] = [bpf::load_half(udp + 2), bpf::load_half(udp + 4), bpf::load_word(udp + 8)];
            program.must_be_esp(to, len, spi, port);
        }
    }
    if options.workers > 1 {
        // The SPI is still there.
        program.put(bpf::modulo(options.workers as u32));
        program.must(bpf::jump_if_equal(worker as u32, 0, DROP));
    }
    program.put(bpf::end_with(ALL));
    program.finish()
}

/// A jump to the end, which is not known yet.
const DROP: u8 = u8::MAX;

#[derive(Default)]
struct Program(Vec<Instruction>);

impl Program {
    fn put(&mut self, instruction: Instruction) {
        self.0.push(instruction);
    }

    fn must(&mut self, jump: Instruction) {
        self.put(jump);
    }

    fn must_be(&mut self, load: Instruction, value: u32) {
        self.put(load);
        self.must(bpf::jump_if_equal(value, 0, DROP));
    }

    /// To our port, long enough, and without the marker of IKE (RFC 3948 2.2).
    fn must_be_esp(&mut self, to: Instruction, len: Instruction, spi: Instruction, port: u32) {
        self.must_be(to, port);
        self.put(len);
        self.must(bpf::jump_if_at_least(SHORTEST, 0, DROP));
        self.put(spi);
        self.must(bpf::jump_if_equal(0, DROP, 0));
    }

    /// Drops at the end.
    fn finish(mut self) -> Vec<Instruction> {
        let end = self.0.len();
        for (at, instruction) in self.0.iter_mut().enumerate() {
            let distance = (end - at - 1) as u8;
            for jump in [&mut instruction.jump_true, &mut instruction.jump_false] {
                if *jump == DROP {
                    *jump = distance;
                }
            }
        }
        self.put(bpf::end_with(0));
        self.0
    }
}
