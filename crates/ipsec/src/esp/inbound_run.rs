//! Segment runs inbound: ESP packets of one IPv4 flow that follow each other, opened. The first packet of a run
//! and everything unusual go by [`InboundSa::prepare`] and [`InboundSa::complete`]; `tests/segment_run.rs` holds the
//! two against each other.

use forebay_crypto::{Job, Verdict};
use forebay_wire::ipv4::MIN_HEADER;
use forebay_wire::{esp, protocol};

use super::inbound::InboundSa;
use crate::find::{EspAt, names_ipsec};
use crate::lifetime::LONGEST;
use crate::replay::Replay;
use crate::sa::Encapsulation;
use crate::tunnel::traffic_class;

impl InboundSa {
    /// Prepares jobs from the front of `jobs` while their packets are ESP of this SA straight in IPv4
    /// without options between `addresses`, whole and new; how many it did. A packet between these addresses
    /// has been accepted.
    #[inline(never)]
    pub fn prepare_run(&mut self, jobs: &mut [Job], addresses: [u8; 8]) -> usize {
        // The packet that was accepted had the SA's encapsulation; those that are found here have none.
        if self.encapsulation != Encapsulation::None || !self.is_steady() {
            return 0;
        }
        let mut done = 0;
        for job in jobs {
            let Some(found) = plain_esp(job.packet.bytes(), addresses, self.spi) else { break };
            // What is wrong with it is found out again, and counted, by whoever takes it up.
            let (Ok(text), Some(sequence)) = (self.text_of(&found), self.likely(found.sequence)) else {
                break;
            };
            if self.state_job(&job.packet, &found, text, sequence, &mut job.spec).is_err() {
                break;
            }
            done += 1;
        }
        done
    }

    /// Completes jobs from the front of `jobs` while they are this SA's and done, and hold an IPv4 packet of
    /// the flow that passed last, unless that was before `policies` came to be; how many, and their bytes.
    #[inline(never)]
    pub fn complete_run(&mut self, jobs: &mut [Job], policies: u64) -> (usize, u64) {
        let Some(passed) = self.passed.filter(|_| self.passes_all(policies)) else { return (0, 0) };
        let allowed = usize::try_from(self.life.allowance(LONGEST)).unwrap_or(usize::MAX);
        let (session, check_padding) = (self.session, self.check_padding);
        let class_mask = self.decapsulator.mask();
        let (mut done, mut bytes, mut enciphered) = (0, 0, 0);
        for job in jobs.iter_mut().take(allowed) {
            let (spec, offset) = (&job.spec, job.packet.offset());
            if spec.session != session || job.verdict != Verdict::Done {
                break;
            }
            let (text_at, text_end) = (spec.cipher.start as usize, spec.cipher.end());
            // One look at the buffer covers everything that is read.
            let Some(window) = job.packet.buffer().get(offset..text_end) else { break };
            let Some(len) = opened_ipv4(window, text_at - offset, passed, check_padding, class_mask) else {
                break;
            };
            let low_at = spec.auth.start as usize + 4 - offset;
            let Some(low) = window.get(low_at..).and_then(|low| low.first_chunk()) else { break };
            let high = u64::from(spec.seq_hi.unwrap_or(0)) << 32;
            if self.replay.settle(high | u64::from(u32::from_be_bytes(*low))) != Replay::New {
                break;
            }
            enciphered += u64::from(spec.cipher.len);
            bytes += job.packet.len() as u64;
            job.packet.set_bounds(text_at, text_at + len);
            done += 1;
        }
        if done > 0 {
            self.resync.verified();
            self.life.count(done as u64, enciphered);
        }
        (done, bytes)
    }
}

/// Length of the IPv4 packet at `text_at` in `window`, which begins with the outer packet and ends with the
/// deciphered text, if nothing is to be done but to take it out: between the addresses `passed`, without
/// options, not ESP or AH itself, with good padding and marks that do not change.
#[inline]
fn opened_ipv4(
    window: &[u8],
    text_at: usize,
    passed: [u8; 8],
    check_padding: bool,
    class_mask: u8,
) -> Option<usize> {
    let text = window.get(text_at..)?;
    let inner: &[u8; MIN_HEADER] = text.first_chunk()?;
    let trailer = esp::Trailer::parse(text).ok()?;
    let len = usize::from(u16::from_be_bytes([inner[2], inner[3]]));
    let is_plain = inner[0] == 0x45 && trailer.next_header == protocol::IPV4 && !names_ipsec(inner[9]);
    let is_whole = len >= MIN_HEADER && len + trailer.len() <= text.len();
    let passes = is_plain && is_whole && inner[12..20] == passed;
    let is_good = passes && (!check_padding || trailer.is_padded_in_order(text));
    (is_good && (traffic_class(window) ^ inner[1]) & class_mask == 0).then_some(len)
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
