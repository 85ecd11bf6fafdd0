//! Segment runs outbound: packets of one flow that follow each other, sealed in tunnel mode.
//!
//! Traffic comes in runs (a window of TCP, a frame of video), and most of what [`OutboundSa`]
//! works out for a packet is the same for the next of its flow. Here it is worked out once and the
//! loop does only what differs. The bytes are those of [`OutboundSa::prepare`], which takes the first
//! packet of a run and everything unusual: the loop stops before a packet that it does not like, and
//! `tests/suite/segment_run.rs` holds the two against each other.

use std::ops::Range;

use forebay_crypto::{Job, JobSpec, Packet, SessionId, Span, Verdict};
use forebay_wire::checksum::Sum;
use forebay_wire::{Addresses, Family, esp};

use super::front::{self, Front};
use super::outbound::OutboundSa;
use super::version::{V4, V6, Version};
use crate::lifetime::LONGEST;
use crate::sa::{Encapsulation, Mode};
use forebay_tunnel::Outer;

/// Template and IV, laid down in one array so that its bounds are checked once.
const FRONT: usize = front::LEN + 16;
/// Padding, trailer and ICV at their longest, likewise.
const BACK: usize = 64;

impl OutboundSa {
    /// Prepares jobs from the front of `jobs` while their packets are between `addresses`, without options or extension
    /// headers, and with nothing in the way; how many it did.
    #[inline]
    pub fn prepare_run(&mut self, jobs: &mut [Job], addresses: &Addresses) -> usize {
        if self.mode != Mode::Tunnel || self.aggregates {
            return 0;
        }
        match addresses {
            Addresses::V4(addresses) => self.prepare_version::<V4>(jobs, addresses),
            Addresses::V6(addresses) => self.prepare_version::<V6>(jobs, addresses),
        }
    }

    /// The same for one version of IP inside.
    #[inline]
    fn prepare_version<V: Version>(&mut self, jobs: &mut [Job], addresses: &V::Addresses) -> usize {
        match (self.family, self.encapsulation, self.plain) {
            (Family::V4, Encapsulation::None, true) => self.prepare_run_of::<V, 20, 0, true>(jobs, addresses),
            (Family::V4, Encapsulation::None, false) => {
                self.prepare_run_of::<V, 20, 0, false>(jobs, addresses)
            }
            (Family::V4, Encapsulation::Udp, true) => self.prepare_run_of::<V, 20, 8, true>(jobs, addresses),
            (Family::V4, Encapsulation::Udp, false) => {
                self.prepare_run_of::<V, 20, 8, false>(jobs, addresses)
            }
            (Family::V6, Encapsulation::None, true) => self.prepare_run_of::<V, 40, 0, true>(jobs, addresses),
            (Family::V6, Encapsulation::None, false) => {
                self.prepare_run_of::<V, 40, 0, false>(jobs, addresses)
            }
            (Family::V6, Encapsulation::Udp, true) => self.prepare_run_of::<V, 40, 8, true>(jobs, addresses),
            (Family::V6, Encapsulation::Udp, false) => {
                self.prepare_run_of::<V, 40, 8, false>(jobs, addresses)
            }
        }
    }

    #[inline]
    fn prepare_run_of<V: Version, const OUTER: usize, const UDP: usize, const PLAIN: bool>(
        &mut self,
        jobs: &mut [Job],
        addresses: &V::Addresses,
    ) -> usize {
        // As many as all counters allow; the loop need not look at them again.
        let numbers = &self.numbers;
        let allowed = (numbers.end() - numbers.sequence).min(numbers.iv.remaining());
        let allowed = allowed.min(numbers.life.allowance(LONGEST));
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        let (mut number, step) = numbers.iv.peek();
        let (iv_len, esn, mut sequence) = (self.iv_len(), numbers.esn, numbers.sequence);
        let mut enciphered = 0;
        let mut shape = Shape::NONE;
        for job in jobs.iter_mut().take(allowed) {
            // Other rules may look at more than a shape is for.
            if !(PLAIN && shape.fits::<V>(&job.packet, addresses))
                && self.find_shape::<V, OUTER, UDP, PLAIN>(&job.packet, addresses, &mut shape).is_none()
            {
                break;
            }
            // One look at the buffer covers everything that is written, before any of it is.
            let Some(window) = job.packet.buffer_mut().get_mut(shape.window.clone()) else { break };
            if !PLAIN {
                let text_end = window.len() - BACK;
                window[text_end - shape.zeros..text_end].fill(0);
            }
            let Some(back) = window.last_chunk_mut::<BACK>().and_then(|back| back.first_chunk_mut()) else {
                break;
            };
            *back = shape.back;
            let Some(front) = window.first_chunk_mut::<FRONT>() else { break };
            let Some((template, iv)) = front.split_first_chunk_mut::<{ front::LEN }>() else { break };
            sequence += 1;
            *template = shape.template;
            front::set_esp(template, shape.spi, sequence);
            if OUTER == 20 {
                front::number_ipv4::<UDP>(template, shape.sum, shape.atomic, sequence);
            }
            match iv_len {
                _ if PLAIN => iv[..8].copy_from_slice(&number.to_be_bytes()),
                8 => iv[..8].copy_from_slice(&number.to_be_bytes()),
                0 => {}
                _ => iv[..16].copy_from_slice(&u128::from(number).to_be_bytes()),
            }
            number = number.wrapping_add(step);
            enciphered += shape.enciphered;
            job.packet.set_bounds(shape.start, shape.end);
            job.spec = JobSpec { seq_hi: esn.then_some((sequence >> 32) as u32), ..shape.spec };
        }
        let numbers = &mut self.numbers;
        let done = sequence - std::mem::replace(&mut numbers.sequence, sequence);
        numbers.iv.skip(done);
        numbers.life.count(done, enciphered);
        done as usize
    }

    /// Makes `shape` that of a packet; `None` if it is none for a run. By itself, so that the loop around it
    /// has the registers.
    #[inline(never)]
    fn find_shape<V: Version, const OUTER: usize, const UDP: usize, const PLAIN: bool>(
        &self,
        packet: &Packet,
        addresses: &V::Addresses,
        shape: &mut Shape,
    ) -> Option<()> {
        let (header, _) =
            V::split(packet.bytes()).filter(|(header, _)| V::addresses(header) == *addresses)?;
        let (inner, taken) = (V::inner(header, packet.len())?, V::taken(header));
        let (iv_len, icv_len) = (self.iv_len(), self.icv_len());
        let head = OUTER + UDP + esp::HEADER + iv_len;
        let text_at = packet.offset();
        // What the rules leave as it is by default need not even be asked.
        let text_end = text_at + inner.len.max(if PLAIN { 0 } else { self.limit.pad_to as usize });
        let pad_len = (text_end - text_at + esp::TRAILER).wrapping_neg() & usize::from(self.align_mask);
        let icv_at = text_end + pad_len + esp::TRAILER;
        let total = icv_at + icv_len - text_at + head;
        let iv_at = text_at.checked_sub(iv_len)?;
        let esp_at = iv_at.checked_sub(esp::HEADER)?;
        if total > self.limit.longest as usize {
            return None;
        }
        let mut outer = if PLAIN { Outer::plain(&inner) } else { self.encapsulator.outer(&inner) };
        if OUTER == 40 && !PLAIN {
            outer.flow_label = self.encapsulator.flow_label(packet.bytes());
        }
        let mut template = self.template;
        let sum = match OUTER {
            20 => front::set_ipv4::<UDP>(&mut template, self.base_sum, &outer, total),
            _ => {
                front::set_ipv6::<UDP>(&mut template, &outer, total);
                Sum::default()
            }
        };
        if UDP == 8 {
            front::set_udp_length(&mut template, total - OUTER);
        }
        let cipher_at = if self.cbc { iv_at } else { text_at };
        let auth_len = if self.aead { esp::HEADER } else { icv_at - esp_at };
        let spec = JobSpec {
            session: self.numbers.session,
            cipher: Span { start: cipher_at as u32, len: (icv_at - cipher_at) as u32 },
            iv: iv_at as u32,
            auth: Span { start: esp_at as u32, len: auth_len as u32 },
            icv: icv_at as u32,
            seq_hi: None,
        };
        let mut back = [0; 32];
        esp::Trailer { pad_len: pad_len as u8, next_header: inner.next_header }.write(&mut back);
        *shape = Shape {
            taken,
            len: inner.len,
            text_at,
            window: iv_at.checked_sub(front::LEN)?..text_end + BACK,
            template,
            spi: front::spi(&template),
            sum,
            atomic: outer.dont_fragment,
            zeros: text_end - text_at - inner.len,
            back,
            enciphered: (icv_at - text_at) as u64,
            start: text_at - head,
            end: icv_at + icv_len,
            spec,
        };
        Some(())
    }

    /// Completes jobs from the front of `jobs` while they are this SA's and done; how many, and their bytes.
    #[inline]
    pub fn complete_run(&self, jobs: &mut [Job]) -> (usize, u64) {
        let (mut done, mut bytes) = (0, 0);
        // UDP may have a checksum.
        let checksum = self.encapsulation == Encapsulation::Udp;
        for job in jobs {
            if job.spec.session != self.numbers.session || job.verdict != Verdict::Done {
                break;
            }
            if checksum {
                self.complete(&mut job.packet, &job.spec);
            }
            bytes += job.packet.len() as u64;
            done += 1;
        }
        (done, bytes)
    }
}

/// What follows from place and length of a packet and what its tunnel header takes from it, for all packets
/// of a run that are alike in these: nearly all.
struct Shape {
    /// What it is for: what is taken from the packet's header, its length and its place.
    taken: u64,
    len: usize,
    text_at: usize,
    /// Everything that is written, in the buffer.
    window: Range<usize>,
    template: Front,
    spi: u32,
    /// Sum over the outer IPv4 header, but for its identification.
    sum: Sum,
    /// Whether that stays zero.
    atomic: bool,
    /// Zeros behind the payload.
    zeros: usize,
    /// Padding and trailer, and what may stand behind them.
    back: [u8; 32],
    enciphered: u64,
    /// Bounds of the tunnel packet.
    start: usize,
    end: usize,
    spec: JobSpec,
}

impl Shape {
    /// No packet is of this.
    const NONE: Shape = Shape {
        taken: 0,
        len: usize::MAX,
        text_at: 0,
        window: 0..0,
        template: [0; front::LEN],
        spi: 0,
        sum: Sum::ZERO,
        atomic: false,
        zeros: 0,
        back: [0; 32],
        enciphered: 0,
        start: 0,
        end: 0,
        spec: JobSpec {
            session: SessionId(0),
            cipher: Span { start: 0, len: 0 },
            iv: 0,
            auth: Span { start: 0, len: 0 },
            icv: 0,
            seq_hi: None,
        },
    };

    #[inline]
    fn fits<V: Version>(&self, packet: &Packet, addresses: &V::Addresses) -> bool {
        let bytes = packet.bytes();
        let Some((header, _)) = V::split(bytes) else { return false };
        V::taken(header) == self.taken
            && V::addresses(header) == *addresses
            && self.len <= bytes.len()
            && self.text_at == packet.offset()
    }
}
