//! The sending side: inner packets in, payloads out (RFC 9347 2.2).

use std::collections::VecDeque;

use forebay_crypto::Packet;
use forebay_time::{Duration, PS_PER_S, Time};
use forebay_tunnel::{SharedEcn, traffic_class};
use forebay_wire::aggfrag::{self, CongestionInfo};

use super::congestion::Congestion;
use super::settings::Iptfs;
use forebay_drops::DropReason;

/// Payloads that a fixed-rate tunnel sends in a row when its driver comes late; what it missed beyond that
/// is left out, so that a stall does not become a burst on the path.
const CATCH_UP: u64 = 16;

/// Queues the inner packets of one SA and cuts them into payloads.
#[derive(Debug)]
pub struct Aggregator {
    /// The inner packets, one behind the other, in a ring.
    ring: Box<[u8]>,
    /// Where the first byte stands in the ring, and how many there are.
    head: usize,
    held: usize,
    /// The packets that the bytes are of.
    waiting: VecDeque<Waiting>,
    /// Whether the first one's begin has been sent already.
    begun: bool,
    /// Without fragmentation: the packets at the front that share the next payload, and their bytes.
    fitting: (usize, usize),
    header_len: usize,
    /// Bytes of data blocks that a payload has room for.
    room: usize,
    fragment: bool,
    max_delay: Duration,
    ticks: Option<Ticks>,
    congestion: Option<CongestionInfo>,
    /// Where payloads follow the load: when the peer is to have congestion information at the latest.
    owed: Time,
    /// Whether outer packets have marks, and those of the payload filled last.
    copies_ecn: bool,
    ecn: SharedEcn,
}

#[derive(Debug)]
struct Waiting {
    /// Bytes that are still to be sent.
    left: usize,
    arrived: Time,
    traffic_class: u8,
}

impl Aggregator {
    /// An aggregator for payloads of up to `payload` bytes, which the settings have been checked for.
    pub fn new(config: &Iptfs, payload: usize) -> Aggregator {
        Aggregator {
            ring: vec![0; config.queue].into_boxed_slice(),
            head: 0,
            held: 0,
            waiting: VecDeque::new(),
            begun: false,
            fitting: (0, 0),
            header_len: config.header_len(),
            room: payload.saturating_sub(config.header_len()).max(1),
            fragment: config.fragment,
            max_delay: config.max_delay,
            ticks: config.rate.map(Ticks::new),
            congestion: config.congestion.then(CongestionInfo::default),
            owed: Time::MAX,
            copies_ecn: config.ecn,
            ecn: SharedEcn::default(),
        }
    }

    /// Queues a copy of `packet`, an IP packet without anything behind its stated length. Refused, with
    /// no change, if it is longer than a payload and may not be cut, or if the queue is full.
    pub fn push(&mut self, now: Time, packet: &[u8]) -> Result<(), DropReason> {
        if !self.fragment && packet.len() > self.room {
            return Err(DropReason::OutTooBig);
        }
        if packet.len() > self.ring.len() - self.held {
            return Err(DropReason::OutNoQueueSpace);
        }
        let from = (self.head + self.held) % self.ring.len();
        let (first, second) = packet.split_at(packet.len().min(self.ring.len() - from));
        self.ring[from..from + first.len()].copy_from_slice(first);
        self.ring[..second.len()].copy_from_slice(second);
        self.held += packet.len();
        let traffic_class = traffic_class(packet);
        self.waiting.push_back(Waiting { left: packet.len(), arrived: now, traffic_class });
        self.fit();
        Ok(())
    }

    /// When the next payload is to leave: in the past if it is late, [`Time::ZERO`] if it is full,
    /// [`Time::MAX`] if there is nothing to send.
    #[inline]
    pub fn due(&self) -> Time {
        match (&self.ticks, self.waiting.front()) {
            (Some(ticks), _) => ticks.due(),
            (None, Some(_)) if self.is_full() => Time::ZERO,
            (None, Some(oldest)) => (oldest.arrived + self.max_delay).min(self.owed),
            (None, None) => self.owed,
        }
    }

    /// Fills `payload` with the next payload if it is due; `false` if not. To be asked until it is not.
    /// An error, and no change, if `payload` has no room for it.
    pub fn poll(&mut self, now: Time, payload: &mut Packet) -> Result<bool, DropReason> {
        if now < self.due() {
            return Ok(false);
        }
        let full = self.ticks.is_some();
        let carried = if self.fragment { self.held.min(self.room) } else { self.fitting.1 };
        let len = self.header_len + if full { self.room } else { carried };
        if len > payload.capacity() {
            return Err(DropReason::TooLong);
        }
        payload.set_bounds(Packet::HEADROOM, Packet::HEADROOM + len);
        let offset = self.waiting.front().filter(|_| self.begun).map_or(0, |rest| rest.left);
        let (header, blocks) = payload.bytes_mut().split_at_mut(self.header_len);
        match &self.congestion {
            // An inner packet has at most 65,575 bytes, and of the first some have been sent.
            Some(info) => header.copy_from_slice(&info.write_header(offset as u16)),
            None => header.copy_from_slice(&aggfrag::write_header(offset as u16)),
        }
        let (data, pad) = blocks.split_at_mut(carried);
        self.take(data);
        // A pad block is zeros to the end of the payload.
        pad.fill(0);
        if let Some(ticks) = &mut self.ticks {
            ticks.sent(now);
        }
        self.owed = Time::MAX;
        Ok(true)
    }

    /// Where payloads follow the load: lets a payload leave at this time, with a header alone if nothing else waits, because the peer
    /// is to have congestion information once a round trip (RFC 9347 2.4.2).
    pub fn owe(&mut self, at: Time) {
        if self.congestion.is_some() && self.ticks.is_none() {
            self.owed = self.owed.min(at);
        }
    }

    /// The ECN field for the outer header of the payload filled last: Not-ECT unless the settings ask for marks.
    #[inline]
    pub fn ecn(&self) -> u8 {
        if self.copies_ecn { self.ecn.outer() } else { 0 }
    }

    /// Bytes of inner packets that wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.held
    }

    /// Says by the header of the next payload what is known of the path, and yields to it with a fixed rate. Without effect unless
    /// the settings ask for congestion information.
    pub fn follow(&mut self, path: &mut Congestion, now: Time) {
        let Some(info) = &mut self.congestion else { return };
        // Answers come once a round trip: their spacing says nothing about the path.
        path.set_transmit_delay(self.ticks.as_ref().map_or(Duration::ZERO, Ticks::spacing));
        *info = path.info(now);
        if let Some(ticks) = &mut self.ticks {
            ticks.limit(path.allowed_rate(now, ticks.most as f64));
        }
    }

    /// Payloads a second at a fixed rate, as the path lets it be now.
    pub fn rate(&self) -> Option<u64> {
        self.ticks.as_ref().map(|ticks| ticks.rate)
    }

    /// Whether a further packet would not change the next payload.
    fn is_full(&self) -> bool {
        match self.fragment {
            true => self.held >= self.room,
            false => self.fitting.0 < self.waiting.len() || self.fitting.1 == self.room,
        }
    }

    /// Adds to the packets of the next payload as many as fit whole.
    fn fit(&mut self) {
        if self.fragment {
            return;
        }
        while let Some(next) = self.waiting.get(self.fitting.0)
            && self.fitting.1 + next.left <= self.room
        {
            self.fitting = (self.fitting.0 + 1, self.fitting.1 + next.left);
        }
    }

    /// Moves the first bytes out of the queue.
    fn take(&mut self, data: &mut [u8]) {
        let (first, second) = data.split_at_mut(data.len().min(self.ring.len() - self.head));
        first.copy_from_slice(&self.ring[self.head..self.head + first.len()]);
        second.copy_from_slice(&self.ring[..second.len()]);
        self.head = (self.head + data.len()) % self.ring.len();
        self.held -= data.len();
        let mut taken = data.len();
        self.ecn = SharedEcn::default();
        while taken > 0
            && let Some(packet) = self.waiting.front_mut()
        {
            self.ecn.add(packet.traffic_class);
            if packet.left > taken {
                packet.left -= taken;
                self.begun = true;
                break;
            }
            taken -= packet.left;
            self.waiting.pop_front();
            self.begun = false;
        }
        self.fitting = (0, 0);
        self.fit();
    }
}

/// The instants of a fixed rate: tick k of a second is k/rate behind its begin, so that none drifts.
#[derive(Debug)]
struct Ticks {
    /// Payloads a second: the most, and now.
    most: u64,
    rate: u64,
    /// Begin of the second that is being counted; `None` until the first payload.
    second: Option<Time>,
    /// Payloads sent in it.
    sent: u64,
}

impl Ticks {
    fn new(rate: u64) -> Ticks {
        let most = rate.max(1);
        Ticks { most, rate: most, second: None, sent: 0 }
    }

    /// Goes on at the rate that the path takes, at least one payload a second, from the payload that is due next.
    fn limit(&mut self, allowed: f64) {
        let rate = (allowed as u64).clamp(1, self.most);
        if rate != self.rate {
            self.second = self.second.map(|second| self.at(second, self.sent));
            (self.rate, self.sent) = (rate, 0);
        }
    }

    /// The time between two payloads.
    fn spacing(&self) -> Duration {
        Duration(PS_PER_S / self.rate)
    }

    fn at(&self, second: Time, tick: u64) -> Time {
        let ps = u128::from(tick) * u128::from(PS_PER_S) / u128::from(self.rate);
        second + Duration(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    fn due(&self) -> Time {
        self.second.map_or(Time::ZERO, |second| self.at(second, self.sent))
    }

    fn sent(&mut self, now: Time) {
        let second = match self.second {
            Some(second) if now <= self.at(second, self.sent + CATCH_UP) => second,
            _ => {
                self.sent = 0;
                now
            }
        };
        self.sent += 1;
        self.second = Some(second);
        if self.sent >= self.rate {
            self.sent -= self.rate;
            self.second = Some(second + Duration(PS_PER_S));
        }
    }
}
