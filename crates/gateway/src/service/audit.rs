//! Audit records of packets that were dropped (RFC 4303 2.1, 3.4.2 to 3.4.4; RFC 4301 4.4.1, 5.2), at a
//! limited rate: whoever sends forged packets must not fill the disk.

use forebay_crypto::Direction;
use forebay_ipsec::DropReason;
use forebay_time::{Duration, Time};
use forebay_wire::{Ip, protocol, udp};

/// Says what was dropped, with the fields that RFC 4303 asks for: SPI, time, source, destination, sequence
/// number and, in IPv6, flow label. The time is the log's.
#[derive(Debug)]
pub struct Audit {
    /// Records that may be made now.
    tokens: u32,
    /// Most of them.
    burst: u32,
    /// Between two new ones.
    every: Duration,
    since: Time,
    /// Drops that there was no record of.
    unsaid: u64,
}

impl Audit {
    /// At most `per_second` records a second, none for 0, and `burst` at once after a quiet time.
    pub fn new(per_second: u32, burst: u32) -> Audit {
        let burst = if per_second == 0 { 0 } else { burst };
        let every = Duration::from_micros(1_000_000 / u64::from(per_second.max(1)));
        Audit { tokens: burst, burst, every, since: Time::ZERO, unsaid: 0 }
    }

    /// Makes a record of a dropped packet, unless there were too many.
    pub fn note(&mut self, now: Time, direction: Direction, reason: DropReason, packet: &[u8]) {
        let new = (now.since(self.since).0 / self.every.0.max(1)).min(u64::from(self.burst)) as u32;
        if new > 0 {
            self.tokens = self.tokens.saturating_add(new).min(self.burst);
            self.since = now;
        }
        if self.tokens == 0 {
            self.unsaid += 1;
            return;
        }
        self.tokens -= 1;
        let unsaid = std::mem::take(&mut self.unsaid);
        let direction = if direction == Direction::Seal { "out" } else { "in" };
        let (reason, why) = (reason.name(), reason.explanation());
        match Fields::of(packet) {
            Some(Fields { source, destination, esp: Some((spi, sequence)), flow_label }) => {
                tracing::warn!(target: "forebay::audit", direction, reason, %source, %destination,
                    spi = format_args!("{spi:#010x}"), sequence, flow_label, unsaid, "{why}");
            }
            Some(Fields { source, destination, esp: None, flow_label }) => {
                tracing::warn!(target: "forebay::audit", direction, reason, %source, %destination, flow_label,
                    unsaid, "{why}");
            }
            None => tracing::warn!(target: "forebay::audit", direction, reason, unsaid, "{why}"),
        }
    }
}

/// What a record says of a packet.
struct Fields {
    source: std::net::IpAddr,
    destination: std::net::IpAddr,
    /// SPI and sequence number.
    esp: Option<(u32, u32)>,
    flow_label: Option<u32>,
}

impl Fields {
    fn of(packet: &[u8]) -> Option<Fields> {
        let ip = Ip::parse(packet).ok()?;
        let (at, upper, flow_label) = match &ip {
            Ip::V4(v4) => (v4.header_len(), v4.protocol(), None),
            Ip::V6(v6) => {
                let label = u32::from_be_bytes([0, packet[1] & 0xf, packet[2], packet[3]]);
                let upper = v6.upper_layer().ok()?;
                (upper.at, upper.protocol, Some(label))
            }
        };
        // AH has its SPI behind four bytes of its own.
        let at = match upper {
            protocol::ESP => Some(at),
            protocol::UDP => Some(at + udp::HEADER),
            protocol::AH => Some(at + 4),
            _ => None,
        };
        let word = |at: usize| Some(u32::from_be_bytes(*packet.get(at..)?.first_chunk()?));
        let esp = at.and_then(|at| Some((word(at)?, word(at + 4)?)));
        Some(Fields { source: ip.source(), destination: ip.destination(), esp, flow_label })
    }
}
