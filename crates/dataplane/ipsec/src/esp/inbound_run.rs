//! Segment runs inbound: ESP packets of one flow that follow each other, opened. The first packet of a run
//! and everything unusual go by [`InboundSa::prepare`] and [`InboundSa::complete`]; `tests/suite/segment_run.rs`
//! holds the two against each other.

use std::net::SocketAddr;

use forebay_crypto::{Job, JobSpec, Packet, Verdict};
use forebay_wire::{Addresses, esp, ipv4, ipv6, protocol, udp};

use super::inbound::InboundSa;
use super::version::{V4, V6, Version};
use crate::find::EspAt;
use crate::lifetime::LONGEST;
use crate::sa::Encapsulation;
use forebay_replay::Replay;
use forebay_tunnel::traffic_class;

impl InboundSa {
    /// Prepares jobs from the front of `jobs` while their packets are ESP of this SA without options or extension headers,
    /// whole and new, and have the addresses and, in UDP, the ports of `accepted`, the packet before them; how many it did.
    #[inline]
    pub fn prepare_run(&mut self, accepted: &[u8], jobs: &mut [Job]) -> usize {
        match accepted.first().map(|first| first >> 4) {
            _ if !self.is_steady() => 0,
            Some(4) => self.prepare_version::<V4>(accepted, jobs),
            Some(6) => self.prepare_version::<V6>(accepted, jobs),
            _ => 0,
        }
    }

    /// The same for one version of IP outside.
    #[inline]
    fn prepare_version<V: Version>(&mut self, accepted: &[u8], jobs: &mut [Job]) -> usize {
        let (spi, Some((header, rest))) = (self.spi, V::split(accepted)) else { return 0 };
        let addresses = V::addresses(header);
        match self.encapsulation {
            Encapsulation::None => {
                self.prepare_run_of(jobs, |packet| plain_esp::<V>(packet, &addresses, spi))
            }
            Encapsulation::Udp => {
                // An accepted packet with options has something else in the place of the ports.
                let ports = V::whole(header, protocol::UDP).and_then(|_| rest.first_chunk::<4>());
                let Some(&ports) = ports else { return 0 };
                self.prepare_run_of(jobs, |packet| esp_in_udp::<V>(packet, &addresses, ports, spi))
            }
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

    /// Completes jobs from the front of `jobs` while they are this SA's and done, and hold a packet of
    /// the flow that passed last, unless that was before `policies` came to be; how many, and their bytes. A packet from
    /// elsewhere than the peer ends the run, because the peer may have moved (RFC 7296 2.23).
    #[inline]
    pub fn complete_run(&mut self, jobs: &mut [Job], policies: u64) -> (usize, u64) {
        match self.passed().filter(|_| self.passes_all(policies)) {
            Some(Addresses::V4(passed)) => self.complete_version::<V4>(jobs, &passed),
            Some(Addresses::V6(passed)) => self.complete_version::<V6>(jobs, &passed),
            None => (0, 0),
        }
    }

    /// The same for one version of IP inside.
    #[inline]
    fn complete_version<V: Version>(&mut self, jobs: &mut [Job], passed: &V::Addresses) -> (usize, u64) {
        match self.peer.as_ref().map(|peer| peer.at) {
            None => self.complete_run_of::<V>(jobs, passed, |_, _| true),
            Some(peer) => {
                self.complete_run_of::<V>(jobs, passed, |packet, esp_at| is_in_udp_from(peer, packet, esp_at))
            }
        }
    }

    /// The same while the outer packet and the place of ESP in it are as `expected`.
    #[inline(never)]
    fn complete_run_of<V: Version>(
        &mut self,
        jobs: &mut [Job],
        passed: &V::Addresses,
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
            if !alike.fits::<V>(*outer, text, passed) {
                let opened = opened::<V>(outer, text, passed, check_padding, class_mask);
                let Some(len) = opened else { break };
                alike = Alike::of::<V>(*outer, text, len, check_padding);
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

/// What [`opened`] looked at in the packet before: one that is the same in all of it passes too.
struct Alike {
    /// Version and traffic class of the outer packet.
    outer: [u8; 2],
    text_len: usize,
    /// What was checked of the inner one's header.
    inner: u64,
    /// What counts of the end of the text, padding and trailer, and what they are.
    mask: u128,
    tail: u128,
    /// Length of the inner packet.
    len: u16,
}

impl Alike {
    /// No packet is like this, because none has so long a text.
    const NONE: Alike = Alike { outer: [0; 2], text_len: usize::MAX, inner: 0, mask: 0, tail: 0, len: 0 };

    /// Of a packet that passed, with an inner one of `len` bytes.
    #[inline(never)]
    fn of<V: Version>(outer: [u8; 2], text: &[u8], len: u16, check_padding: bool) -> Alike {
        let whole = Alike { len, ..Alike::NONE };
        let Some(inner) = V::split(text).map(|(header, _)| V::checked(header)) else { return whole };
        let (Ok(trailer), Some(tail)) = (esp::Trailer::parse(text), text.last_chunk()) else { return whole };
        let looked_at = if check_padding { trailer.len() } else { esp::TRAILER };
        if looked_at >= 16 {
            // Longer padding is looked at each time.
            return whole;
        }
        let mask = !(u128::MAX << (8 * looked_at)).to_be();
        Alike { outer, text_len: text.len(), inner, mask, tail: u128::from_ne_bytes(*tail) & mask, len }
    }

    #[inline(always)]
    fn fits<V: Version>(&self, outer: [u8; 2], text: &[u8], passed: &V::Addresses) -> bool {
        if text.len() != self.text_len {
            return false;
        }
        let Some((inner, _)) = V::split(text) else { return false };
        let Some(tail) = text.last_chunk() else { return false };
        outer == self.outer
            && V::checked(inner) == self.inner
            && V::addresses(inner) == *passed
            && u128::from_ne_bytes(*tail) & self.mask == self.tail
    }
}

/// Length of the packet that a deciphered text begins with, if nothing is to be done but to take it out: between
/// the addresses `passed`, without options, not ESP or AH itself, with good padding, and with marks that do not change
/// under an outer header that begins with `outer`.
#[inline(never)]
fn opened<V: Version>(
    outer: &[u8; 2],
    text: &[u8],
    passed: &V::Addresses,
    check_padding: bool,
    class_mask: u8,
) -> Option<u16> {
    let (header, _) = V::split(text).filter(|(header, _)| V::addresses(header) == *passed)?;
    let inner = V::inner(header, text.len())?;
    let trailer = esp::Trailer::parse(text).ok()?;
    let is_plain = trailer.next_header == V::PROTOCOL && !V::is_looked_at(V::carried(header));
    let is_whole = inner.len + trailer.len() <= text.len();
    let is_good = is_plain && is_whole && (!check_padding || trailer.is_padded_in_order(text));
    let keeps_class = (traffic_class(outer) ^ inner.traffic_class) & class_mask == 0;
    (is_good && keeps_class).then_some(inner.len).and_then(|len| len.try_into().ok())
}

/// Where ESP is in a packet without options between `addresses`, if it is of `spi` and whole.
#[inline]
fn plain_esp<V: Version>(bytes: &[u8], addresses: &V::Addresses, spi: u32) -> Option<EspAt> {
    let (header, rest) = V::split(bytes)?;
    let end = V::whole(header, protocol::ESP).filter(|end| *end <= bytes.len())?;
    let esp: &[u8; esp::HEADER] = rest.first_chunk()?;
    if V::addresses(header) != *addresses || esp[..4] != spi.to_be_bytes() {
        return None;
    }
    let sequence = u32::from_be_bytes([esp[4], esp[5], esp[6], esp[7]]);
    let at = size_of::<V::Header>();
    Some(EspAt { at, end, encapsulation: Encapsulation::None, spi, sequence })
}

/// The same in UDP (RFC 3948 2.1) with these ports, in a datagram that fills the packet.
#[inline]
fn esp_in_udp<V: Version>(bytes: &[u8], addresses: &V::Addresses, ports: [u8; 4], spi: u32) -> Option<EspAt> {
    let (header, rest) = V::split(bytes)?;
    let end = V::whole(header, protocol::UDP).filter(|end| *end <= bytes.len())?;
    let udp: &[u8; udp::HEADER + esp::HEADER] = rest.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    let is_alike = V::addresses(header) == *addresses && udp[..4] == ports;
    let udp_at = size_of::<V::Header>();
    if !is_alike || udp[8..12] != spi.to_be_bytes() || udp_at + len != end {
        return None;
    }
    let sequence = u32::from_be_bytes([udp[12], udp[13], udp[14], udp[15]]);
    let at = udp_at + udp::HEADER;
    Some(EspAt { at, end, encapsulation: Encapsulation::Udp, spi, sequence })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTER: [u8; 2] = [0x45, 0];

    /// A version of IP with addresses, and what is free in its header: what nobody looks at.
    trait Sample: Version {
        const BETWEEN: Self::Addresses;
        const FREE: &[usize];
        fn header(len: u8) -> Vec<u8>;
        fn others() -> Self::Addresses;

        /// The text of a packet of `len` bytes with `pad_len` bytes of padding.
        fn text(len: u8, pad_len: u8) -> Vec<u8> {
            let mut text = Self::header(len);
            text.resize(len.into(), 0xaa);
            text.extend(1..=pad_len);
            text.extend([pad_len, Self::PROTOCOL]);
            text
        }
    }

    impl Sample for V4 {
        const BETWEEN: [u8; 8] = [10, 1, 0, 1, 10, 2, 0, 1];
        const FREE: &[usize] = &[4, 5, 6, 7, 8, 10, 11];

        fn header(len: u8) -> Vec<u8> {
            let mut header = vec![0x45, 0, 0, len, 0, 0, 0, 0, 64, protocol::UDP, 0, 0];
            header.extend(V4::BETWEEN);
            header
        }

        fn others() -> [u8; 8] {
            [10, 1, 0, 2, 10, 2, 0, 1]
        }
    }

    impl Sample for V6 {
        const BETWEEN: [u8; 32] = [0xfd; 32];
        /// Of the second byte, half is flow label: what the test changes is not.
        const FREE: &[usize] = &[2, 3, 7];

        fn header(len: u8) -> Vec<u8> {
            let mut header = vec![0x60, 0, 0, 0, 0, len - 40, protocol::UDP, 64];
            header.extend(V6::BETWEEN);
            header
        }

        fn others() -> [u8; 32] {
            let mut others = V6::BETWEEN;
            others[31] ^= 1;
            others
        }
    }

    /// A packet like the one that passed passes without another look, and one that differs in anything that was looked
    /// at does not.
    #[test]
    fn what_is_alike_is_told_by_all_that_was_looked_at() {
        is_told_by_all::<V4>();
        is_told_by_all::<V6>();
    }

    fn is_told_by_all<V: Sample>() {
        for (pad_len, check_padding) in
            (0..14).flat_map(|pad_len| [false, true].map(|check| (pad_len, check)))
        {
            let passed = V::text(60, pad_len);
            let alike = Alike::of::<V>(OUTER, &passed, 60, check_padding);
            assert!(alike.fits::<V>(OUTER, &passed, &V::BETWEEN), "{pad_len} bytes of padding");
            assert_eq!(alike.len, 60);
            // The rest of the header, the payload, and padding that nobody asks for.
            let free = V::FREE.iter().copied().chain(size_of::<V::Header>()..60);
            let free: Vec<usize> = match check_padding {
                true => free.collect(),
                false => free.chain(60..60 + usize::from(pad_len)).collect(),
            };
            for at in 0..passed.len() {
                let mut other = passed.clone();
                other[at] ^= 0x10;
                let fits = alike.fits::<V>(OUTER, &other, &V::BETWEEN);
                assert_eq!(fits, free.contains(&at), "byte {at}, {pad_len} bytes of padding");
            }
            assert!(!alike.fits::<V>([0x45, 1], &passed, &V::BETWEEN));
            assert!(!alike.fits::<V>(OUTER, &passed, &V::others()));
            assert!(!alike.fits::<V>(OUTER, &passed[1..], &V::BETWEEN));
        }
    }

    /// ICMP errors are judged by what they quote, each of them.
    #[test]
    fn icmp_is_looked_at_each_time() {
        let mut packet = V4::text(60, 2);
        assert_eq!(opened::<V4>(&OUTER, &packet, &V4::BETWEEN, true, 0), Some(60));
        packet[9] = protocol::ICMP;
        assert_eq!(opened::<V4>(&OUTER, &packet, &V4::BETWEEN, true, 0), None);
    }

    /// So is what has extension headers, which may hide ICMP, ESP or AH.
    #[test]
    fn extension_headers_are_looked_at_each_time() {
        let mut packet = V6::text(60, 2);
        assert_eq!(opened::<V6>(&OUTER, &packet, &V6::BETWEEN, true, 0), Some(60));
        for next_header in 0..=255 {
            packet[6] = next_header;
            let is_opened = opened::<V6>(&OUTER, &packet, &V6::BETWEEN, true, 0).is_some();
            assert_eq!(is_opened, ![0, 43, 44, 50, 51, 58, 60].contains(&next_header), "{next_header}");
        }
    }

    /// Longer padding than is remembered is looked at with each packet, if it is looked at.
    #[test]
    fn long_padding_is_never_alike() {
        for pad_len in [14, 15, 100] {
            let passed = V4::text(60, pad_len);
            let fits =
                |check| Alike::of::<V4>(OUTER, &passed, 60, check).fits::<V4>(OUTER, &passed, &V4::BETWEEN);
            assert_eq!((fits(false), fits(true)), (true, false), "{pad_len} bytes of padding");
        }
        assert!(!Alike::NONE.fits::<V4>([0; 2], &[0; 64], &[0; 8]));
    }
}
