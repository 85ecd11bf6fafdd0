//! Received packets on their way into the engine: in buffers that the link lends, or copied into the engine's, and admitted in bursts.

use forebay_crypto::{Direction, Job, JobSpec, Packet};
use forebay_engine::{Engine, Refusal, TAKE};
use forebay_ipsec::DropReason;
use forebay_wire::{Ip, protocol, tcp};
use forebay_xfrm::Flow;

use super::audit::Audit;
use super::port::Port;
use forebay_engine::Turnstile;

/// Packets taken from a link before the others have their turn: some GSO batches of 64 KiB.
pub(super) const TURN: usize = 256;
/// Room in the engine without which nothing is taken: one packet may become several.
const ROOM: usize = 64;
/// Flows that want an SA and wait to be asked for.
const WANTED_MAX: usize = 64;

/// Tags of packets: where they are from.
pub(super) const FROM_INSIDE: u64 = 0;
pub(super) const FROM_OUTSIDE: u64 = 1;

/// The way from links into a worker's engine.
pub(super) struct Intake {
    /// Packets that are admitted together, at most [`TAKE`]; empty between two calls.
    burst: Vec<Job>,
    /// What a link has given; empty between two calls.
    arrived: Vec<Packet>,
    audit: Audit,
    wanted: Vec<Flow>,
}

impl Intake {
    /// Records dropped packets in `audit`.
    pub(super) fn new(audit: Audit) -> Intake {
        Intake { burst: Vec::with_capacity(TAKE), arrived: Vec::with_capacity(TAKE), audit, wanted: vec![] }
    }

    /// Takes packets from a link, as many as it has at hand and the engine has room for, at most [`TURN`]: how many, and
    /// whether the link has more. The segment size that TCP announces in them is lowered for packets of `mtu` bytes. Each
    /// burst is prepared before another worker may take the next one. `call` is called before a burst that takes long.
    pub(super) fn take(
        &mut self,
        port: &Turnstile<Port>,
        engine: &mut Engine,
        direction: Direction,
        mtu: Option<u16>,
        call: impl Fn(),
    ) -> (usize, bool) {
        let mut all = 0;
        loop {
            let mut room = TAKE.min(TURN - all).min(room(engine));
            if room == 0 {
                return (all, true);
            }
            // Of its own links it takes something in any case: others come to them only if they have nothing to do.
            room = engine.take_limit(room).max(1);
            let taken = self.take_burst(&mut port.pass(), engine, direction, mtu, room);
            all += taken;
            self.carry_long(engine, direction, &call);
            if taken < room {
                return (all, false);
            }
            if engine.puts_off() {
                // What is done is sent before what takes long goes on.
                return (all, true);
            }
        }
    }

    /// Takes one burst from another worker's link, unless another worker uses it: how many packets, and whether there are more.
    /// `call` is called before a burst that takes long.
    pub(super) fn help(
        &mut self,
        port: &Turnstile<Port>,
        engine: &mut Engine,
        direction: Direction,
        mtu: Option<u16>,
        call: impl Fn(),
    ) -> (usize, bool) {
        let room = engine.take_limit(TAKE.min(room(engine)));
        let Some(mut port) = port.try_pass().filter(|_| room > 0) else { return (0, true) };
        let taken = self.take_burst(&mut port, engine, direction, mtu, room);
        drop(port);
        self.carry_long(engine, direction, call);
        (taken, taken == room)
    }

    /// The same as [`Intake::carry`], after `call` if that takes long.
    fn carry_long(&mut self, engine: &mut Engine, direction: Direction, call: impl Fn()) {
        if engine.takes_long(self.burst.len()) {
            call();
        }
        self.carry(engine, direction);
    }

    /// Receives a burst and gives its packets their places in the order.
    fn take_burst(
        &mut self,
        port: &mut Port,
        engine: &mut Engine,
        direction: Direction,
        mtu: Option<u16>,
        room: usize,
    ) -> usize {
        let Intake { burst, arrived, .. } = self;
        let taken = port.receive(room, arrived, &mut |head, body| {
            let mut packet = engine.buffer();
            let fits = packet.fill_parts(head, body);
            if !fits {
                engine.recycle(std::mem::take(&mut packet));
                engine.count_drop(DropReason::TooLong);
            }
            fits.then_some(packet)
        });
        for mut packet in arrived.drain(..) {
            if packet.len() > engine.packet_capacity() {
                // In a buffer of the link's.
                engine.count_drop(DropReason::TooLong);
                continue;
            }
            if let Some(mtu) = mtu {
                clamp_mss(&mut packet, mtu);
            }
            burst.push(Job::new(packet, JobSpec::default(), tag(direction)));
        }
        if !burst.is_empty() {
            engine.prepare_burst(direction, burst);
        }
        taken
    }

    /// Takes the burst through its crypto, and records what could not be admitted.
    fn carry(&mut self, engine: &mut Engine, direction: Direction) {
        engine.carry(&mut self.burst);
        loop {
            let Some(Refusal { packet, reason, .. }) = engine.refusals().next() else { break };
            if reason == DropReason::OutNoStates && self.wanted.len() < WANTED_MAX {
                self.wanted.extend(flow(packet.bytes()));
            }
            self.dropped(engine, direction, reason, packet);
        }
    }

    /// Records a packet that the engine dropped, and gives its buffer back.
    pub(super) fn dropped(
        &mut self,
        engine: &mut Engine,
        direction: Direction,
        reason: DropReason,
        packet: Packet,
    ) {
        self.audit.note(engine.clock().now(), direction, reason, packet.bytes());
        engine.recycle(packet);
    }

    /// Takes the flows whose packets were dropped because their policy has no SA.
    pub(super) fn take_wanted(&mut self) -> Vec<Flow> {
        std::mem::take(&mut self.wanted)
    }
}

/// Packets that may be admitted now.
pub(super) fn room(engine: &Engine) -> usize {
    engine.room().saturating_sub(ROOM)
}

fn tag(direction: Direction) -> u64 {
    if direction == Direction::Seal { FROM_INSIDE } else { FROM_OUTSIDE }
}

/// Lowers the segment size that a TCP SYN announces. Of other packets over IPv4 only the bytes that say so are read.
#[inline]
pub(super) fn clamp_mss(packet: &mut Packet, mtu: u16) {
    if may_be_syn(packet.bytes()) {
        tcp::clamp_mss(packet.bytes_mut(), mtu);
    }
}

#[inline]
fn may_be_syn(packet: &[u8]) -> bool {
    /// In the TCP header: the place of the flags, and SYN among them (RFC 9293 3.1).
    const FLAGS: (usize, u8) = (13, 2);
    match packet {
        [first, ..] if first >> 4 != 4 => true,
        [first, _, _, _, _, _, _, _, _, protocol::TCP, ..] => {
            packet.get(usize::from(first & 15) * 4 + FLAGS.0).is_some_and(|flags| flags & FLAGS.1 != 0)
        }
        _ => false,
    }
}

/// The flow of a plain packet, for requesting an SA for it (acquire).
fn flow(packet: &[u8]) -> Option<Flow> {
    let ip = Ip::parse(packet).ok()?;
    let (at, upper) = match &ip {
        Ip::V4(ip) => (ip.header_len(), ip.protocol()),
        Ip::V6(ip) => ip.upper_layer().ok().map(|upper| (upper.at, upper.protocol))?,
    };
    let port = |at: usize| packet.get(at..at + 2).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]));
    let ports = matches!(upper, protocol::TCP | protocol::UDP).then(|| (port(at), port(at + 2)));
    let (source, destination) = (ip.source(), ip.destination());
    Some(Flow { source, destination, protocol: upper, ports: ports.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_whose_segment_size_may_be_lowered_is_looked_at() {
        let syn = |flags: u8| {
            let mut packet = [0; 44];
            (packet[0], packet[9], packet[33]) = (0x45, protocol::TCP, flags);
            packet
        };
        assert!(may_be_syn(&syn(0x02)) && may_be_syn(&syn(0x12)), "SYN, and SYN with ACK");
        assert!(!may_be_syn(&syn(0x10)), "ACK");
        assert!(!may_be_syn(&syn(0x02)[..30]), "cut off");
        assert!(!may_be_syn(&[0x45; 9]) && !may_be_syn(&[]));
        let mut udp = syn(0x02);
        udp[9] = protocol::UDP;
        assert!(!may_be_syn(&udp));
        udp[0] = 0x60;
        assert!(may_be_syn(&udp), "IPv6 is left to who knows extension headers");
        let mut options = [0; 60];
        (options[0], options[9], options[24 + 13]) = (0x46, protocol::TCP, 0x02);
        assert!(may_be_syn(&options), "behind IPv4 options");
    }
}
