//! What an inline card can carry: the limits of a chain of resources (models.md 3, after \[G\]).
//!
//! A packet crosses each resource a number of times: the card's own once each way, main memory
//! once for every copy, DMA and flush. A resource is busy for so long with a packet, and the
//! busiest one limits the rest.

mod interrupts;

pub use interrupts::{Interrupts, Moderated};
use serde::{Deserialize, Serialize};

/// Something every packet needs time of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Its name in the results.
    pub name: String,
    /// What it moves, in bit/s.
    pub rate_bps: f64,
    /// Times that each packet crosses it.
    pub crossings: f64,
    /// Bytes that cross it with each packet beside the payload: headers, framing, gaps.
    #[serde(default)]
    pub overhead_bytes: f64,
    /// Time each crossing takes beside the bytes': an arbitration, an interrupt. In seconds.
    #[serde(default)]
    pub overhead_s: f64,
    /// Whether transfers cross it whole, with the overheads once for each transfer.
    #[serde(default)]
    pub whole: bool,
    /// What it pays to be told of packets.
    #[serde(default)]
    pub interrupts: Option<Interrupts>,
    /// How it is filled by streams of which each packet's blocks depend on one another.
    #[serde(default)]
    pub interleave: Option<Interleave>,
    /// Equal units of it besides the first, which work in parallel.
    #[serde(default)]
    pub more_units: u32,
}

/// A core with a pipeline, in a chained mode: a block waits until the one before it of its stream has passed all of the
/// pipeline, so that each stream fills one place of it (\[G\] 15.3.2: CBC needs two interleaved streams for full throughput).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interleave {
    /// Blocks that the pipeline holds.
    pub depth: u32,
    /// Streams whose packets are interleaved.
    pub streams: u32,
}

impl Interleave {
    /// Places of the pipeline that are filled.
    pub fn filled(self) -> u32 {
        self.streams.min(self.depth)
    }
}

/// A chain of resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The resources, in the order of a packet's way.
    pub resources: Vec<Resource>,
    /// Packets that the card cuts out of each transfer, or joins to one; 0 as 1: a packet is a transfer.
    #[serde(default)]
    pub transfer_packets: u32,
    /// Whether packets come as a Poisson stream; otherwise evenly.
    #[serde(default)]
    pub poisson: bool,
}

/// What a card does at some load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Carried {
    /// Payload carried, in bit/s: what is offered, or the limit.
    pub payload_bps: f64,
    /// The resource that is, or would be, full first; none if no resource takes any time.
    pub bottleneck: Option<String>,
    /// Share of the time that each resource is busy, in order.
    pub utilisation: Vec<f64>,
}

impl Resource {
    /// A resource that each packet crosses `crossings` times, without any overhead.
    pub fn new(name: &str, rate_bps: f64, crossings: f64) -> Resource {
        Resource { name: name.into(), rate_bps, crossings, ..Resource::default() }
    }

    /// The same with `bytes` of headers or framing around each packet.
    pub fn with_overhead(self, bytes: f64) -> Resource {
        Resource { overhead_bytes: bytes, ..self }
    }

    /// How many packets are served in parallel: by units, and in places of a pipeline.
    pub fn lanes(&self) -> u32 {
        self.interleave.map_or(1, Interleave::filled).saturating_mul(1 + self.more_units)
    }

    /// Seconds that a packet of `payload` bytes, one of `of` in a transfer, takes of one lane without interrupts.
    fn lane_s(&self, payload: f64, of: f64) -> f64 {
        let of = if self.whole { of } else { 1.0 };
        let rate_bps = self.rate_bps / f64::from(self.interleave.map_or(1, |one| one.depth));
        self.crossings * (8.0 * (payload + self.overhead_bytes / of) / rate_bps + self.overhead_s / of)
    }

    /// Seconds of it that a packet of `payload` bytes takes, one of `of` in a transfer, where it does not wait for others: the
    /// share of its time for each packet, as far as it could serve the most of them. With interrupts every one is for as
    /// many packets as it can be.
    pub fn busy_s(&self, payload: f64, of: f64) -> f64 {
        self.busy_with(payload, of, self.interrupts.as_ref().map_or(1.0, |one| f64::from(one.packets)))
    }

    /// The same with an interrupt for so many packets.
    fn busy_with(&self, payload: f64, of: f64, packets: f64) -> f64 {
        if self.crossings == 0.0 {
            return 0.0;
        }
        let interrupts = self.interrupts.as_ref().map_or(0.0, |one| one.cost_s / packets);
        (self.lane_s(payload, of) + interrupts) / f64::from(self.lanes())
    }
}

impl Card {
    /// \[G\]'s card and host as measured: one crossing of PCI, I/O and AES core, the MAC at line
    /// rate, and main memory of 8 Gbit/s crossed six times.
    ///
    /// `headers` are the bytes of a packet beside its payload, up to the IP header; the MAC adds
    /// Ethernet's 38 (preamble, header, check sequence, gap).
    pub fn grip(headers: f64) -> Card {
        Card {
            resources: vec![
                Resource::new("memory", 8e9, 6.0).with_overhead(headers),
                Resource::new("pci", 2.11e9, 1.0).with_overhead(headers),
                Resource::new("io", 1.06e9, 1.0).with_overhead(headers),
                Resource::new("core", 1.06e9, 1.0).with_overhead(headers),
                Resource::new("mac", 1e9, 1.0).with_overhead(headers + 38.0),
            ],
            ..Card::default()
        }
    }

    /// The same chain with `name` crossed another number of times: [`Card::grip`] with "pci" crossed
    /// three times is a lookaside card beside a network interface, and "memory" crossed five times is
    /// one copy less.
    pub fn crossing(mut self, name: &str, crossings: f64) -> Card {
        self.resources.iter_mut().filter(|r| r.name == name).for_each(|r| r.crossings = crossings);
        self
    }

    /// The same chain and a processor of which `payload_bps` were seen to take the share `busy`.
    pub fn with_cpu(mut self, payload_bps: f64, busy: f64) -> Card {
        self.resources.push(Resource::new("cpu", payload_bps / busy, 1.0));
        self
    }

    /// The most that packets of `payload` bytes can carry.
    pub fn limit(&self, payload: f64) -> Carried {
        self.carried(payload, f64::INFINITY)
    }

    /// Seconds of a resource that a packet of `payload` bytes takes at full load.
    pub fn busy_s(&self, resource: &Resource, payload: f64) -> f64 {
        resource.busy_s(payload, f64::from(self.transfer_packets.max(1)))
    }

    /// The interrupts of a resource where `payload_bps` come in packets of `payload` bytes; `None` of one without them.
    pub fn moderated(&self, resource: &Resource, payload: f64, payload_bps: f64) -> Option<Moderated> {
        let interrupts = resource.interrupts.filter(|_| resource.crossings > 0.0)?;
        Some(interrupts.at(8.0 * payload / payload_bps, self.poisson))
    }

    /// What is carried of `offered_bps` of payload in packets of `payload` bytes.
    pub fn carried(&self, payload: f64, offered_bps: f64) -> Carried {
        let busy: Vec<f64> = self.resources.iter().map(|r| self.busy_s(r, payload)).collect();
        let longest =
            busy.iter().copied().enumerate().filter(|b| b.1 > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
        let limit = longest.map_or(f64::INFINITY, |(_, s)| 8.0 * payload / s);
        let payload_bps = offered_bps.min(limit);
        let utilisation = self.resources.iter().zip(&busy).map(|(resource, s)| match *s > 0.0 {
            true => match self.moderated(resource, payload, payload_bps) {
                // With packets that come late, an interrupt is for fewer; a resource that is full makes them wait.
                Some(one) => {
                    let of = f64::from(self.transfer_packets.max(1));
                    let s = resource.busy_with(payload, of, one.packets);
                    (s * payload_bps / (8.0 * payload)).min(1.0)
                }
                None => s * payload_bps / (8.0 * payload),
            },
            false => 0.0,
        });
        Carried {
            payload_bps,
            utilisation: utilisation.collect(),
            bottleneck: longest.map(|(index, _)| self.resources[index].name.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [G] 15.5.2: jumbo frames of 9000 bytes. AES-CTR ESP in transport mode: IP 20, ESP 8, IV 8,
    // trailer 2; then UDP 8 and RTP 12, or TCP 20.
    const ESP: f64 = 20.0 + 8.0 + 8.0 + 2.0;
    const RTP: f64 = ESP + 8.0 + 12.0;
    const TCP: f64 = ESP + 20.0;

    fn limit(card: &Card, headers: f64) -> (f64, String) {
        let carried = card.limit(9000.0 - headers);
        (carried.payload_bps / 1e6, carried.bottleneck.unwrap())
    }

    #[test]
    fn bulk_is_limited_by_the_line() {
        // 989 Mbit/s measured: what framing and headers leave of the line.
        let (mbps, by) = limit(&Card::grip(TCP), TCP);
        assert_eq!(by, "mac");
        assert!((mbps - 989.0).abs() < 1.0, "{mbps}");
    }

    #[test]
    fn video_is_carried_whole_and_idle_time_is_left() {
        let card = Card::grip(RTP).with_cpu(893e6, 0.38);
        let carried = card.carried(9000.0 - RTP, 890e6);
        assert_eq!(carried.payload_bps, 890e6);
        // [G] calls memory the bottleneck; by its own figures a third of it is free, the line a tenth.
        assert!((carried.utilisation[0] - 0.672).abs() < 0.001, "{:?}", carried.utilisation);
        assert!(carried.utilisation[4] < 0.91);
        assert!((carried.utilisation[5] - 0.379).abs() < 0.001);
    }

    #[test]
    fn memory_limits_what_a_faster_card_would_carry() {
        // Everything on the card and the line ten times as fast: copies count.
        let mut fast = Card::grip(RTP);
        fast.resources.iter_mut().skip(1).for_each(|r| r.rate_bps *= 10.0);
        let gbps = |card: &Card| (limit(card, RTP).0 / 100.0).round() / 10.0;
        assert_eq!(gbps(&fast), 1.3);
        assert_eq!(gbps(&fast.clone().crossing("memory", 5.0)), 1.6); // without IPsec's copy, or zero-copy sockets
        assert_eq!(gbps(&fast.clone().crossing("memory", 4.0)), 2.0); // both
        assert_eq!(limit(&fast.crossing("memory", 0.0), RTP).1, "mac"); // direct DMA
        // The card as it was gains nothing from any of them: the line is its limit.
        assert_eq!(limit(&Card::grip(RTP).crossing("memory", 4.0), RTP), limit(&Card::grip(RTP), RTP));
    }

    #[test]
    fn a_lookaside_card_does_not_carry_the_video() {
        // Over the bus to the card, back, and to the network interface.
        let (mbps, by) = limit(&Card::grip(RTP).crossing("pci", 3.0), RTP);
        assert_eq!(by, "pci");
        assert!(mbps < 890.0 && (mbps - 698.8).abs() < 0.1, "{mbps}");
    }

    #[test]
    fn nothing_to_cross_has_no_limit() {
        let carried = Card::default().carried(100.0, 5.0);
        assert_eq!((carried.payload_bps, carried.bottleneck), (5.0, None));
    }
}
