//! Packets on their way out: what becomes of each, and frames for those that go.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrayvec::ArrayVec;
use dpdk_sys::port::{BURST, Frame};
use forebay_links::TxReport;
use forebay_packet::Packet;
use forebay_wire::fragments::Fragments;
use forebay_wire::{Family, Ip, icmp};

use crate::link::{Beside, PortLink};
use crate::{ETHERNET, Side, messages};

/// Replies of the gateway itself to what came out of a tunnel.
const LOOPED: usize = 64;

/// What is to become of a packet.
#[derive(Clone, Copy)]
pub(crate) enum Fate<Header = ()> {
    /// Behind this header, so many of its bytes.
    Sent(Header),
    Answered,
    TooBig,
    Unreachable,
    Refused,
    Unfit,
}

/// A packet as it is given: to be copied, or in a buffer that may be lent.
pub(crate) trait Given {
    fn bytes(&self) -> &[u8];

    /// A frame of its first bytes.
    fn frame(&mut self, header: [u8; ETHERNET], len: usize) -> Frame<'_>;
}

impl Given for &[u8] {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn frame(&mut self, header: [u8; ETHERNET], len: usize) -> Frame<'_> {
        Frame::new(header, &self[..len])
    }
}

impl Given for &mut Packet {
    #[inline]
    fn bytes(&self) -> &[u8] {
        Packet::bytes(self)
    }

    #[inline]
    fn frame(&mut self, header: [u8; ETHERNET], len: usize) -> Frame<'_> {
        Frame::of_packet(header, self, len)
    }
}

impl PortLink {
    /// Sends packets in order; what becomes of each.
    pub(crate) fn send_all<T: Given>(&mut self, packets: &mut [T]) -> TxReport {
        let mut report = TxReport::default();
        if packets.is_empty() {
            self.has_left = self.queue.flush() > 0;
            return report;
        }
        let now = Instant::now();
        let mut last = None;
        let mut rest = packets;
        while let Some(first) = rest.first() {
            let fitting = rest.iter().take(BURST).take_while(|one| !self.is_divided(one.bytes())).count();
            let sent = match fitting {
                0 => self.send_divided(first.bytes(), now),
                _ => self.send_burst(&mut rest[..fitting], &mut last, now),
            };
            rest = &mut rest[fitting.max(1)..];
            report.add(&sent);
            if sent.would_block > 0 {
                report.would_block += rest.len();
                break;
            }
        }
        if self.has_news {
            self.attend(Beside::default());
        }
        report
    }

    /// What is to become of a packet.
    #[inline]
    fn prepare(
        &mut self,
        packet: &[u8],
        last: &mut Option<(IpAddr, [u8; ETHERNET])>,
        now: Instant,
    ) -> Fate<([u8; ETHERNET], usize)> {
        let Ok(ip) = Ip::parse(packet) else { return Fate::Unfit };
        let (len, to) = (ip.bytes().len(), ip.destination());
        let fits = len <= self.mtu;
        if let Some((same, header)) = last
            && *same == to
            && fits
        {
            return Fate::Sent((*header, len));
        }
        if self.sorter.own.contains(&to) {
            // What came out of a tunnel for the gateway itself.
            let Some(reply) = messages::echo(&ip).filter(|_| self.looped.len() < LOOPED) else {
                return Fate::Refused;
            };
            self.looped.push_back(reply);
            return Fate::Answered;
        }
        if !fits {
            return Fate::TooBig;
        }
        match self.header(to, ip.family(), now) {
            Some(header) => {
                *last = Some((to, header));
                Fate::Sent((header, len))
            }
            None => Fate::Unreachable,
        }
    }

    /// Whether a packet is longer than the inside link's MTU: its router is this link. What is too big for the outside lowers
    /// the path MTU of its SA.
    #[inline]
    fn is_divided(&self, packet: &[u8]) -> bool {
        packet.len() > self.mtu && self.sorter.side == Side::Inside
    }

    /// Sends a packet that is longer than the MTU in fragments, or tells its source what fits (RFC 1812 4.2.2.7 and 4.3.3.3, RFC
    /// 4443 3.2).
    #[cold]
    fn send_divided(&mut self, packet: &[u8], now: Instant) -> TxReport {
        let mut report = TxReport::default();
        let is_own = |ip: &Ip<'_>| self.sorter.own.contains(&ip.destination());
        let ip = match Ip::parse(packet) {
            Ok(ip) if ip.bytes().len() > self.mtu && !is_own(&ip) => ip,
            _ => return self.send_burst(&mut [packet], &mut None, now),
        };
        // Routers do not divide packets of IPv6.
        let fragments = Fragments::new(&ip, self.mtu, 0).filter(|_| ip.family() == Family::V4);
        let Some(mut fragments) = fragments else {
            let mut room = [0; icmp::MAX_V6];
            let from = self.sorter.own.iter().find(|own| own.is_ipv4() == (ip.family() == Family::V4));
            let len =
                from.and_then(|from| icmp::packet_too_big(ip.bytes(), self.mtu as u16, *from, &mut room));
            if let Some(len) = len.filter(|_| self.looped.len() < LOOPED) {
                self.looped.push_back(room[..len].to_vec());
            }
            return TxReport { too_big: 1, mtu: Some(self.mtu as u32), ..report };
        };
        let Some(header) = self.header(ip.destination(), ip.family(), now) else {
            return TxReport { unreachable: 1, ..report };
        };
        if self.shared.is_away.load(Ordering::Relaxed) {
            return TxReport { down: 1, ..report };
        }
        let mut pieces = vec![];
        let mut room = vec![0; self.mtu];
        while let Some(len) = fragments.next_into(&mut room) {
            pieces.push(room[..len].to_vec());
        }
        let mut frames: Vec<Frame<'_>> = pieces.iter().map(|piece| Frame::new(header, piece)).collect();
        let sent = self.queue.send(&mut frames);
        self.has_left = sent.left > 0;
        let count = match sent.taken {
            taken if taken == frames.len() => &mut report.taken,
            0 if !sent.lacks_buffers && !self.shared.port.is_up() => &mut report.down,
            0 if !sent.lacks_buffers => &mut report.would_block,
            // Of a packet of which some fragments are lost nothing is left.
            _ => &mut report.no_buffers,
        };
        *count += 1;
        report
    }

    /// Sends a burst; the report, and how many of the last packets there is no room for.
    fn send_burst<T: Given>(
        &mut self,
        packets: &mut [T],
        last: &mut Option<(IpAddr, [u8; ETHERNET])>,
        now: Instant,
    ) -> TxReport {
        let mut fates: ArrayVec<Fate, BURST> = ArrayVec::new();
        let frame = |packet| {
            let packet: &mut T = packet;
            let (fate, frame) = match self.prepare(packet.bytes(), last, now) {
                Fate::Sent((header, len)) => (Fate::Sent(()), Some(packet.frame(header, len))),
                Fate::Answered => (Fate::Answered, None),
                Fate::TooBig => (Fate::TooBig, None),
                Fate::Unreachable => (Fate::Unreachable, None),
                Fate::Refused => (Fate::Refused, None),
                Fate::Unfit => (Fate::Unfit, None),
            };
            fates.push(fate);
            frame
        };
        let mut frames: ArrayVec<Frame<'_>, BURST> = packets.iter_mut().filter_map(frame).collect();
        let count = frames.len();
        let mut left = 0;
        let mut report = TxReport::default();
        let mut taken = count;
        let (mut lacks_buffers, mut is_down) = (false, false);
        if count > 0 && self.shared.is_away.load(Ordering::Relaxed) {
            (taken, is_down) = (0, true);
        } else if count > 0 {
            let sent = self.queue.send(&mut frames);
            (taken, lacks_buffers) = (sent.taken, sent.lacks_buffers);
            self.has_left = sent.left > 0;
            is_down = taken < count && !lacks_buffers && !self.shared.port.is_up();
        }
        for (at, fate) in fates.iter().enumerate() {
            match fate {
                Fate::Sent(()) if taken > 0 => {
                    taken -= 1;
                    report.taken += 1;
                }
                Fate::Sent(()) if lacks_buffers => report.no_buffers += 1,
                Fate::Sent(()) if is_down => report.down += 1,
                Fate::Sent(()) => {
                    left = fates.len() - at;
                    break;
                }
                Fate::Answered => report.taken += 1,
                Fate::TooBig => {
                    report.too_big += 1;
                    report.mtu = Some(self.mtu as u32);
                }
                Fate::Unreachable => report.unreachable += 1,
                Fate::Refused => report.refused += 1,
                Fate::Unfit => report.unfit += 1,
            }
        }
        report.would_block = left;
        report
    }
}
