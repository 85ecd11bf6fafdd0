//! Trains: packets of one IPv4 flow that follow each other, sealed in tunnel mode or opened.
//!
//! Traffic comes in trains (a window of TCP, a frame of video), and most of what [`OutboundSa`]
//! works out for a packet is the same for the next of its flow. Here it is worked out once and the
//! loop does only what differs. The bytes are those of [`OutboundSa::prepare`], which takes the first
//! packet of a train and everything unusual: the loop stops before a packet that it does not like, and
//! `tests/train.rs` holds the two against each other.

use forebay_crypto::{Job, JobSpec, Span};
use forebay_wire::ipv4::{DONT_FRAGMENT, MIN_HEADER};
use forebay_wire::{Family, esp, protocol};

use crate::inbound::{EspAt, InboundSa};
use crate::outbound::{OutboundSa, TEMPLATE, fill_ipv6};
use crate::tunnel::{Inner, Outer};
use crate::{Encapsulation, Mode};

/// Template and IV, laid down in one array so that its bounds are checked once.
const FRONT: usize = TEMPLATE + 16;
/// Padding, trailer and ICV at their longest, likewise.
const BACK: usize = 64;
/// No packet has more bytes to encipher.
const LONGEST: u64 = 1 << 17;

impl OutboundSa {
    /// Prepares jobs from the front of `jobs` while their packets are IPv4 without options, between
    /// `addresses` (as in [`Ipv4::raw_addresses`](forebay_wire::Ipv4::raw_addresses)) and with nothing
    /// in the way; how many it did.
    #[inline]
    pub fn prepare_train(&mut self, jobs: &mut [Job], addresses: [u8; 8]) -> usize {
        if self.mode != Mode::Tunnel || self.aggregator.is_some() {
            return 0;
        }
        match (self.family, self.encapsulation, self.plain) {
            (Family::V4, Encapsulation::None, true) => self.run_train::<20, 0, true>(jobs, addresses),
            (Family::V4, Encapsulation::None, false) => self.run_train::<20, 0, false>(jobs, addresses),
            (Family::V4, Encapsulation::Udp, true) => self.run_train::<20, 8, true>(jobs, addresses),
            (Family::V4, Encapsulation::Udp, false) => self.run_train::<20, 8, false>(jobs, addresses),
            (Family::V6, Encapsulation::None, true) => self.run_train::<40, 0, true>(jobs, addresses),
            (Family::V6, Encapsulation::None, false) => self.run_train::<40, 0, false>(jobs, addresses),
            (Family::V6, Encapsulation::Udp, true) => self.run_train::<40, 8, true>(jobs, addresses),
            (Family::V6, Encapsulation::Udp, false) => self.run_train::<40, 8, false>(jobs, addresses),
        }
    }

    #[inline]
    fn run_train<const OUTER: usize, const UDP: usize, const PLAIN: bool>(
        &mut self,
        jobs: &mut [Job],
        addresses: [u8; 8],
    ) -> usize {
        let (iv_len, icv_len, align_mask) = (self.iv_len, self.icv_len, self.align_mask);
        let head = OUTER + UDP + esp::HEADER + iv_len;
        let cipher_offset = if self.cbc { 0 } else { iv_len };
        let session = self.session;
        // As many as all counters allow; the loop need not look at them again.
        let allowed = (self.sequence_limit - self.sequence).min(self.iv.remaining());
        let allowed = allowed.min(self.life.allowance(LONGEST));
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        // What the rules leave as it is by default need not even be asked.
        let (longest, pad_to) = (self.limit.longest, if PLAIN { 0 } else { self.limit.pad_to });
        let mut sequence = self.sequence;
        let mut enciphered = 0;
        for job in jobs.iter_mut().take(allowed) {
            let Some(inner) = plain_ipv4(job.packet.bytes(), addresses) else { break };
            let text_at = job.packet.offset();
            let payload_end = text_at + inner.len;
            let text_end = text_at + inner.len.max(pad_to);
            let pad_len = (text_end - text_at + esp::TRAILER).wrapping_neg() & align_mask;
            let icv_at = text_end + pad_len + esp::TRAILER;
            let total = icv_at + icv_len - text_at + head;
            let iv_at = text_at.wrapping_sub(iv_len);
            let esp_at = iv_at.wrapping_sub(esp::HEADER);
            let mut outer = if PLAIN { Outer::plain(&inner) } else { self.encapsulator.outer(&inner) };
            if OUTER == 40 && !PLAIN {
                outer.flow_label = self.encapsulator.flow_label(job.packet.bytes());
            }
            // One look at the buffer covers everything that is written, before any of it is.
            let window = iv_at.wrapping_sub(TEMPLATE)..text_end.wrapping_add(BACK);
            let Some(window) = job.packet.buffer_mut().get_mut(window) else { break };
            if total > longest {
                break;
            }
            if !PLAIN && payload_end < text_end {
                let from = payload_end + TEMPLATE - iv_at;
                window[from..from + (text_end - payload_end)].fill(0);
            }
            let Some(back) = window.last_chunk_mut::<BACK>().and_then(|back| back.first_chunk_mut()) else {
                break;
            };
            esp::Trailer { pad_len: pad_len as u8, next_header: inner.next_header }.write(back);
            let Some(front) = window.first_chunk_mut::<FRONT>() else { break };
            let Some(number) = self.iv.take() else { break };
            sequence += 1;
            enciphered += (icv_at - text_at) as u64;

            let Some((template, iv)) = front.split_first_chunk_mut::<TEMPLATE>() else { break };
            *template = self.template;
            if OUTER == 20 {
                self.fill_ipv4::<UDP>(template, &outer, total, sequence);
            } else {
                fill_ipv6::<UDP>(template, &outer, total);
            }
            if UDP == 8 {
                template[52..54].copy_from_slice(&((total - OUTER) as u16).to_be_bytes());
            }
            template[60..64].copy_from_slice(&(sequence as u32).to_be_bytes());
            match iv_len {
                8 => iv[..8].copy_from_slice(&number.to_be_bytes()),
                0 => {}
                _ => iv[..16].copy_from_slice(&u128::from(number).to_be_bytes()),
            }

            job.packet.set_bounds(text_at - head, icv_at + icv_len);
            let cipher_at = iv_at + cipher_offset;
            let auth_len = if self.aead { esp::HEADER } else { icv_at - esp_at };
            job.spec = JobSpec {
                session,
                cipher: Span { start: cipher_at as u32, len: (icv_at - cipher_at) as u32 },
                iv: iv_at as u32,
                auth: Span { start: esp_at as u32, len: auth_len as u32 },
                icv: icv_at as u32,
                seq_hi: self.esn.then_some((sequence >> 32) as u32),
            };
        }
        let done = sequence - self.sequence;
        self.sequence = sequence;
        self.life.count(done, enciphered);
        done as usize
    }
}

impl InboundSa {
    /// Prepares jobs from the front of `jobs` while their packets are ESP of this SA straight in IPv4
    /// without options between `addresses`, whole and new; how many it did. A packet between these addresses
    /// has been accepted.
    #[inline]
    pub fn prepare_train(&mut self, jobs: &mut [Job], addresses: [u8; 8]) -> usize {
        // The packet that was accepted had the SA's encapsulation; those that are found here have none.
        if self.encapsulation != Encapsulation::None {
            return 0;
        }
        let mut done = 0;
        for job in jobs {
            let Some(found) = plain_esp(job.packet.bytes(), addresses, self.spi) else { break };
            // What is wrong with it is found out again, and counted, by whoever takes it up.
            if self.prepare(&job.packet, &found, &mut job.spec).is_err() {
                break;
            }
            done += 1;
        }
        done
    }
}

/// Where ESP is in an IPv4 packet without options between `addresses`, if it is of `spi` and whole.
#[inline]
fn plain_esp(bytes: &[u8], addresses: [u8; 8], spi: u32) -> Option<EspAt> {
    let header: &[u8; MIN_HEADER + esp::HEADER] = bytes.first_chunk()?;
    let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let unfragmented = header[6] & 0x3f == 0 && header[7] == 0;
    let plain = header[0] == 0x45 && header[9] == protocol::ESP && unfragmented;
    if !plain || header[12..20] != addresses || header[20..24] != spi.to_be_bytes() || end > bytes.len() {
        return None;
    }
    let sequence = u32::from_be_bytes([header[24], header[25], header[26], header[27]]);
    Some(EspAt { at: MIN_HEADER, end, encapsulation: Encapsulation::None, spi, sequence })
}

/// What a tunnel header takes from an IPv4 packet without options between `addresses`.
#[inline]
fn plain_ipv4(bytes: &[u8], addresses: [u8; 8]) -> Option<Inner> {
    let header: &[u8; MIN_HEADER] = bytes.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] != 0x45 || header[12..20] != addresses || len < MIN_HEADER || len > bytes.len() {
        return None;
    }
    Some(Inner {
        len,
        next_header: protocol::IPV4,
        traffic_class: header[1],
        ttl: header[8],
        dont_fragment: header[6] & (DONT_FRAGMENT >> 8) as u8 != 0,
    })
}
