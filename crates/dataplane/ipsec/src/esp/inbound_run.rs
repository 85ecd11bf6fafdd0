//! Segment runs inbound: ESP packets of one IPv4 flow that follow each other, opened. The first packet of a run
//! and everything unusual go by [`InboundSa::prepare`] and [`InboundSa::complete`]; `tests/suite/segment_run.rs`
//! holds the two against each other.

use std::net::SocketAddr;

use forebay_crypto::{Job, JobSpec, Packet, Verdict};
use forebay_wire::ipv4::{MIN_HEADER, MORE_FRAGMENTS, OFFSET_MASK};
use forebay_wire::{esp, ipv4, ipv6, protocol, udp};

use super::inbound::InboundSa;
use crate::find::{EspAt, names_ipsec};
use crate::lifetime::LONGEST;
use crate::sa::Encapsulation;
use forebay_replay::Replay;
use forebay_tunnel::traffic_class;

impl InboundSa {
    /// Prepares jobs from the front of `jobs` while their packets are ESP of this SA in IPv4 without options, whole and
    /// new, and have the addresses and, in UDP, the ports of `accepted`, the packet before them; how many it did.
    #[inline]
    pub fn prepare_run(&mut self, accepted: &[u8], jobs: &mut [Job]) -> usize {
        if !self.is_steady() {
            return 0;
        }
        let (spi, Some(accepted)) = (self.spi, accepted.first_chunk()) else { return 0 };
        match self.encapsulation {
            Encapsulation::None => self.prepare_run_of(jobs, |packet| plain_esp(packet, accepted, spi)),
            Encapsulation::Udp => self.prepare_run_of(jobs, |packet| esp_in_udp(packet, accepted, spi)),
        }
    }

    /// The same, with ESP found by `find`. By itself, so that the loop has the registers.
    #[inline(never)]
    fn prepare_run_of(&mut self, jobs: &mut [Job], find: impl Fn(&[u8]) -> Option<EspAt>) -> usize {
        let mut done = 0;
        // Packets of one length in one place have the same job.
        let (mut alike, mut spec) = ((usize::MAX, 0), JobSpec::default());
        for job in jobs {
            let Some(found) = find(job.packet.bytes()) else { break };
            // A packet that ends the run is prepared singly by the caller, which finds and counts its error again.
            let Some(sequence) = self.likely(found.sequence) else { break };
            if self.replay.check(sequence) != Replay::New {
                break;
            }
            let place = (found.end, job.packet.offset());
            if place != alike {
                if self.respecify(&job.packet, &found, sequence, &mut spec).is_none() {
                    break;
                }
                alike = place;
            }
            job.spec = JobSpec { seq_hi: self.esn.then_some((sequence >> 32) as u32), ..spec };
            done += 1;
        }
        done
    }

    /// Makes `spec` that of a packet of another length or in another place. By itself, so that `spec` stays in one piece.
    #[inline(never)]
    fn respecify(&self, packet: &Packet, found: &EspAt, sequence: u64, spec: &mut JobSpec) -> Option<()> {
        let text = self.text_of(found).ok()?;
        self.state_job(packet, found, text, sequence, spec).ok()
    }

    /// Completes jobs from the front of `jobs` while they are this SA's and done, and hold an IPv4 packet of
    /// the flow that passed last, unless that was before `policies` came to be; how many, and their bytes. A packet from
    /// elsewhere than the peer ends the run, because the peer may have moved (RFC 7296 2.23).
    #[inline]
    pub fn complete_run(&mut self, jobs: &mut [Job], policies: u64) -> (usize, u64) {
        let Some(passed) = self.passed.filter(|_| self.passes_all(policies)) else { return (0, 0) };
        match self.peer.as_ref().map(|peer| peer.at) {
            None => self.complete_run_of(jobs, passed, |_, _| true),
            Some(peer) => {
                self.complete_run_of(jobs, passed, |packet, esp_at| is_in_udp_from(peer, packet, esp_at))
            }
        }
    }

    /// The same while the outer packet and the place of ESP in it are as `expected`.
    #[inline(never)]
    fn complete_run_of(
        &mut self,
        jobs: &mut [Job],
        passed: [u8; 8],
        expected: impl Fn(&Packet, usize) -> bool,
    ) -> (usize, u64) {
        let allowed = usize::try_from(self.life.allowance(LONGEST)).unwrap_or(usize::MAX).min(jobs.len());
        let (session, check_padding) = (self.session, self.check_padding);
        let class_mask = self.decapsulator.mask();
        let (mut done, mut bytes, mut enciphered) = (0, 0, 0);
        let mut replay = self.replay.settling();
        let mut alike = Alike::NONE;
        for job in &mut jobs[..allowed] {
            let (spec, offset) = (&job.spec, job.packet.offset());
            if spec.session != session || job.verdict != Verdict::Done {
                break;
            }
            let (buffer, text_at) = (job.packet.buffer(), spec.cipher.start as usize);
            let Some(text) = buffer.get(spec.cipher.range()) else { break };
            let Some(outer) = buffer.get(offset..offset + 2).and_then(|outer| outer.first_chunk()) else {
                break;
            };
            if !alike.fits(*outer, text, passed) {
                let opened = opened_ipv4(outer, text, passed, check_padding, class_mask);
                let Some(len) = opened else { break };
                alike = Alike::of(*outer, text, len, check_padding);
            }
            let esp_at = spec.auth.start as usize;
            let Some(low) = buffer.get(esp_at + 4..esp_at + 8).and_then(|low| low.first_chunk()) else {
                break;
            };
            if !expected(&job.packet, esp_at) {
                break;
            }
            let high = u64::from(spec.seq_hi.unwrap_or(0)) << 32;
            if replay.settle(high | u64::from(u32::from_be_bytes(*low))) != Replay::New {
                break;
            }
            enciphered += u64::from(spec.cipher.len);
            bytes += job.packet.len() as u64;
            job.packet.set_bounds(text_at, text_at + usize::from(alike.len));
            done += 1;
        }
        drop(replay);
        if done > 0 {
            self.resync.verified();
            self.life.count(done as u64, enciphered);
        }
        (done, bytes)
    }
}

/// Whether a packet with ESP in UDP at `esp_at` in the buffer comes from `peer`, which is of the packet's IP version:
/// tunnels have one, and only they have runs.
#[inline]
fn is_in_udp_from(peer: SocketAddr, packet: &Packet, esp_at: usize) -> bool {
    let has = |at: usize, expected: &[u8]| packet.buffer().get(at..at + expected.len()) == Some(expected);
    let offset = packet.offset();
    let from_address = match peer {
        SocketAddr::V4(peer) => has(offset + ipv4::field::SOURCE.start, &peer.ip().octets()),
        SocketAddr::V6(peer) => has(offset + ipv6::field::SOURCE.start, &peer.ip().octets()),
    };
    from_address && esp_at >= udp::HEADER && has(esp_at - udp::HEADER, &peer.port().to_be_bytes())
}

/// What [`opened_ipv4`] looked at in the packet before: one that is the same in all of it passes too.
struct Alike {
    /// Version and traffic class of the outer packet.
    outer: [u8; 2],
    text_len: usize,
    /// Version, traffic class and total length of the inner one.
    inner: [u8; 4],
    protocol: u8,
    /// What counts of the end of the text, padding and trailer, and what they are.
    mask: u128,
    tail: u128,
    /// Length of the inner packet.
    len: u16,
}

impl Alike {
    /// No packet is like this, because none has so long a text.
    const NONE: Alike =
        Alike { outer: [0; 2], text_len: usize::MAX, inner: [0; 4], protocol: 0, mask: 0, tail: 0, len: 0 };

    /// Of a packet that passed, with an inner one of `len` bytes.
    #[inline(never)]
    fn of(outer: [u8; 2], text: &[u8], len: u16, check_padding: bool) -> Alike {
        let whole = Alike { len, ..Alike::NONE };
        let Some(inner) = text.first_chunk::<MIN_HEADER>() else { return whole };
        let (Ok(trailer), Some(tail)) = (esp::Trailer::parse(text), text.last_chunk()) else { return whole };
        let looked_at = if check_padding { trailer.len() } else { esp::TRAILER };
        if looked_at >= 16 {
            // Longer padding is looked at each time.
            return whole;
        }
        let mask = !(u128::MAX << (8 * looked_at)).to_be();
        Alike {
            outer,
            text_len: text.len(),
            inner: [inner[0], inner[1], inner[2], inner[3]],
            protocol: inner[9],
            mask,
            tail: u128::from_ne_bytes(*tail) & mask,
            len,
        }
    }

    #[inline(always)]
    fn fits(&self, outer: [u8; 2], text: &[u8], passed: [u8; 8]) -> bool {
        if text.len() != self.text_len {
            return false;
        }
        let Some(inner) = text.first_chunk::<MIN_HEADER>() else { return false };
        let Some(tail) = text.last_chunk() else { return false };
        outer == self.outer
            && inner[..4] == self.inner
            && inner[9] == self.protocol
            && inner[12..20] == passed
            && u128::from_ne_bytes(*tail) & self.mask == self.tail
    }
}

/// Length of the IPv4 packet that a deciphered text begins with, if nothing is to be done but to take it out: between
/// the addresses `passed`, without options, not ESP or AH itself, with good padding, and with marks that do not change
/// under an outer header that begins with `outer`.
#[inline(never)]
fn opened_ipv4(
    outer: &[u8; 2],
    text: &[u8],
    passed: [u8; 8],
    check_padding: bool,
    class_mask: u8,
) -> Option<u16> {
    let inner: &[u8; MIN_HEADER] = text.first_chunk()?;
    let trailer = esp::Trailer::parse(text).ok()?;
    let total_len = u16::from_be_bytes([inner[2], inner[3]]);
    let len = usize::from(total_len);
    let is_plain = inner[0] == 0x45 && trailer.next_header == protocol::IPV4 && !is_looked_at(inner[9]);
    let is_whole = len >= MIN_HEADER && len + trailer.len() <= text.len();
    let passes = is_plain && is_whole && inner[12..20] == passed;
    let is_good = passes && (!check_padding || trailer.is_padded_in_order(text));
    (is_good && (traffic_class(outer) ^ inner[1]) & class_mask == 0).then_some(total_len)
}

/// Whether a packet of this protocol is looked at each time: it may hold ESP or AH itself, or be an ICMP error.
#[inline(always)]
fn is_looked_at(protocol: u8) -> bool {
    names_ipsec(protocol) || protocol == protocol::ICMP
}

/// The headers of an accepted packet that a run is compared with: IPv4 without options and, where there is UDP, its
/// ports.
type Accepted = [u8; MIN_HEADER + 4];

/// Where ESP is in an IPv4 packet without options that has the addresses of `accepted`, if it is of `spi` and whole.
#[inline]
fn plain_esp(bytes: &[u8], accepted: &Accepted, spi: u32) -> Option<EspAt> {
    let header: &[u8; MIN_HEADER + esp::HEADER] = bytes.first_chunk()?;
    let end = plain_end(header.first_chunk()?, protocol::ESP)?;
    let is_alike = header[12..20] == accepted[12..20] && header[20..24] == spi.to_be_bytes();
    if !is_alike || end > bytes.len() {
        return None;
    }
    let sequence = u32::from_be_bytes([header[24], header[25], header[26], header[27]]);
    Some(EspAt { at: MIN_HEADER, end, encapsulation: Encapsulation::None, spi, sequence })
}

/// The same in UDP (RFC 3948 2.1) with the ports of `accepted`, in a datagram that fills the packet.
#[inline]
fn esp_in_udp(bytes: &[u8], accepted: &Accepted, spi: u32) -> Option<EspAt> {
    let header: &[u8; ESP_IN_UDP_AT + esp::HEADER] = bytes.first_chunk()?;
    let end = plain_end(header.first_chunk()?, protocol::UDP)?;
    let len = usize::from(u16::from_be_bytes([header[24], header[25]]));
    // An accepted packet with options has something else in the place of the ports.
    let is_alike = accepted[0] == 0x45 && header[12..24] == accepted[12..24];
    if !is_alike || header[28..32] != spi.to_be_bytes() || MIN_HEADER + len != end || end > bytes.len() {
        return None;
    }
    let sequence = u32::from_be_bytes([header[32], header[33], header[34], header[35]]);
    Some(EspAt { at: ESP_IN_UDP_AT, end, encapsulation: Encapsulation::Udp, spi, sequence })
}

/// Where ESP stands in UDP in IPv4 without options.
const ESP_IN_UDP_AT: usize = MIN_HEADER + udp::HEADER;

/// The end of an IPv4 packet without options that is no fragment and carries `protocol`.
#[inline]
fn plain_end(header: &[u8; MIN_HEADER], protocol: u8) -> Option<usize> {
    let fragment = u16::from_be_bytes([header[6], header[7]]) & (MORE_FRAGMENTS | OFFSET_MASK);
    let is_plain = header[0] == 0x45 && header[9] == protocol && fragment == 0;
    is_plain.then(|| u16::from_be_bytes([header[2], header[3]]).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: [u8; 8] = [10, 1, 0, 1, 10, 2, 0, 1];
    const OUTER: [u8; 2] = [0x45, 0];

    /// The text of a packet of `len` bytes with `pad_len` bytes of padding.
    fn text(len: u8, pad_len: u8) -> Vec<u8> {
        let mut text = vec![0x45, 0, 0, len, 0, 0, 0, 0, 64, protocol::UDP, 0, 0];
        text.extend(ADDRESSES);
        text.resize(len.into(), 0xaa);
        text.extend(1..=pad_len);
        text.extend([pad_len, protocol::IPV4]);
        text
    }

    /// A packet like the one that passed passes without another look, and one that differs in anything that was looked
    /// at does not.
    #[test]
    fn what_is_alike_is_told_by_all_that_was_looked_at() {
        for (pad_len, check_padding) in
            (0..14).flat_map(|pad_len| [false, true].map(|check| (pad_len, check)))
        {
            let passed = text(60, pad_len);
            let alike = Alike::of(OUTER, &passed, 60, check_padding);
            assert!(alike.fits(OUTER, &passed, ADDRESSES), "{pad_len} bytes of padding");
            assert_eq!(alike.len, 60);
            // The rest of the header, the payload, and padding that nobody asks for.
            let free = (4..12).filter(|&at| at != 9).chain(20..60);
            let free: Vec<usize> = match check_padding {
                true => free.collect(),
                false => free.chain(60..60 + usize::from(pad_len)).collect(),
            };
            for at in 0..passed.len() {
                let mut other = passed.clone();
                other[at] ^= 0x10;
                let fits = alike.fits(OUTER, &other, ADDRESSES);
                assert_eq!(fits, free.contains(&at), "byte {at}, {pad_len} bytes of padding");
            }
            assert!(!alike.fits([0x45, 1], &passed, ADDRESSES));
            assert!(!alike.fits(OUTER, &passed, [10, 1, 0, 2, 10, 2, 0, 1]));
            assert!(!alike.fits(OUTER, &passed[1..], ADDRESSES));
        }
    }

    /// ICMP errors are judged by what they quote, each of them.
    #[test]
    fn icmp_is_looked_at_each_time() {
        let mut packet = text(60, 2);
        assert_eq!(opened_ipv4(&OUTER, &packet, ADDRESSES, true, 0), Some(60));
        packet[9] = protocol::ICMP;
        assert_eq!(opened_ipv4(&OUTER, &packet, ADDRESSES, true, 0), None);
    }

    /// Longer padding than is remembered is looked at with each packet, if it is looked at.
    #[test]
    fn long_padding_is_never_alike() {
        for pad_len in [14, 15, 100] {
            let passed = text(60, pad_len);
            let fits = |check| Alike::of(OUTER, &passed, 60, check).fits(OUTER, &passed, ADDRESSES);
            assert_eq!((fits(false), fits(true)), (true, false), "{pad_len} bytes of padding");
        }
        assert!(!Alike::NONE.fits([0; 2], &[0; 64], [0; 8]));
    }
}
