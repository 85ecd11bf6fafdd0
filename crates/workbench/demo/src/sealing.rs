//! Gateway A: the capture in, sealed packets out over UDP.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use forebay_crypto::{Direction, Job, JobSpec};
use forebay_engine::{Engine, Idle};
use forebay_ipsec::DropReason;
use forebay_links::LinkType;
use forebay_links::capture::{Resolution, Writer};
use forebay_time::{Duration, Time};
use forebay_wire::{Esp, Ip, ipv4, udp};
use miette::{IntoDiagnostic, WrapErr, miette};

use super::traffic::Capture;
use super::{DemoArgs, LAST_WORDS, Shared};
use crate::compare::{Expected, Half, Sampler};
use forebay_terminal::capture_error;
use forebay_terminal::progress;

/// Datagrams between the gateways: what the smallest usual socket buffer holds.
const ON_THE_WIRE: u64 = 48;

/// Sealed packets that may wait for the wire.
const PENDING_MAX: usize = 256;

/// Runs the gateway to the end of the traffic; what it counted.
pub fn run(
    args: &DemoArgs,
    mut engine: Engine,
    socket: UdpSocket,
    capture: &Capture,
    expected: Sender<Expected>,
    shared: &Shared,
) -> miette::Result<Half> {
    let mut writer = Writer::create(args.out.join("sealed.pcapng")).map_err(capture_error)?;
    writer.declare(LinkType::Raw, Resolution::Nanoseconds).map_err(capture_error)?;
    let mut gateway = Sealing {
        wall_ns: forebay_terminal::host::unix_ns()?,
        first_pass: capture.packets.len() as u64,
        start: shared.clock.now(),
        sampler: Sampler::new(&engine, shared.clock.now()),
        writer,
        socket,
        expected,
        shared,
        pending: Vec::new(),
    };
    let total = u64::from(args.repeat) * capture.packets.len() as u64;
    let bits_per_ps = args.rate * 1e6 / 1e12;
    let (mut next, mut offered_bits) = (0u64, 0.0);
    let (mut idle, mut burst, mut refused) = (Idle::default(), Vec::new(), Vec::new());
    while next < total && !shared.stop.load(Ordering::Relaxed) {
        let elapsed = shared.clock.now().since(gateway.start);
        let before = next;
        // A burst at most between two turns, each packet no earlier than the offered rate has it.
        for _ in 0..forebay_engine::BURST {
            // What waits for the wire holds the capture back, not the other way round.
            let full = engine.room() <= burst.len() || gateway.pending.len() >= PENDING_MAX;
            if next == total || full || offered_bits > elapsed.0 as f64 * bits_per_ps {
                break;
            }
            let bytes = &capture.packets[(next % capture.packets.len() as u64) as usize];
            let mut packet = engine.buffer();
            if !packet.fill(bytes) {
                return Err(miette!("a packet of {} bytes is too large", bytes.len()));
            }
            burst.push(Job::new(packet, JobSpec::default(), next));
            offered_bits += bytes.len() as f64 * 8.0;
            next += 1;
        }
        engine.admit_burst(Direction::Seal, &mut burst);
        refused.extend(engine.refusals().map(|refusal| refusal.packet));
        refused.drain(..).for_each(|packet| engine.recycle(packet));
        let moved = engine.poll() | gateway.send(&mut engine)?;
        idle.after(moved || next > before);
        if next.is_multiple_of(1024) && progress::is_interrupted() {
            return Err(progress::Interrupted.into());
        }
    }
    let end = shared.clock.now() + LAST_WORDS;
    while (engine.in_flight() > 0 || !gateway.pending.is_empty()) && shared.clock.now() < end {
        engine.flush();
        let moved = engine.poll() | gateway.send(&mut engine)?;
        idle.after(moved);
    }
    gateway.writer.finish().map_err(capture_error)?;
    Ok(gateway.sampler.finish(&engine, gateway.start, shared.clock.now()))
}

struct Sealing<'a> {
    wall_ns: u64,
    first_pass: u64,
    start: Time,
    sampler: Sampler,
    writer: Writer,
    socket: UdpSocket,
    expected: Sender<Expected>,
    shared: &'a Shared,
    /// Sealed packets that wait for room on the wire.
    pending: Vec<forebay_engine::Output>,
}

impl Sealing<'_> {
    /// Sends what is sealed, as far as the wire has room; whether anything was sent.
    fn send(&mut self, engine: &mut Engine) -> miette::Result<bool> {
        self.sampler.look(engine, self.shared.clock.now());
        self.pending.extend(engine.outputs());
        let mut sent = 0;
        for output in &self.pending {
            let under_way =
                self.shared.sent.load(Ordering::Relaxed) - self.shared.received.load(Ordering::Relaxed);
            if under_way >= ON_THE_WIRE {
                break;
            }
            sent += 1;
            if output.result.is_err() {
                continue;
            }
            let bytes = output.packet.bytes();
            let payload = udp_payload(bytes).ok_or_else(|| miette!("a sealed packet is not ESP in UDP"))?;
            let spi = Esp::parse(payload).map_err(|error| miette!("{error}"))?.spi();
            // Told before it is sent: the other side never sees a packet that it does not expect.
            let message = Expected { spi, index: output.tag, admitted: output.admitted };
            if self.expected.send(message).is_err() {
                return Err(miette!("the opening gateway is gone"));
            }
            self.shared.sent.fetch_add(1, Ordering::Relaxed);
            self.socket.send(payload).into_diagnostic().wrap_err("cannot send on loopback")?;
            if output.tag < self.first_pass {
                let at = self.wall_ns + output.released.since(self.start).as_nanos();
                self.writer.write(LinkType::Raw, at, bytes.len() as u32, bytes).map_err(capture_error)?;
            }
        }
        for output in self.pending.drain(..sent) {
            engine.recycle(output.packet);
        }
        Ok(sent > 0)
    }
}

/// The payload of a UDP datagram over IPv4, as the gateway's SAs make them.
fn udp_payload(packet: &[u8]) -> Option<&[u8]> {
    match Ip::parse(packet).ok()? {
        Ip::V4(ip) => packet.get(ip.header_len() + udp::HEADER..),
        Ip::V6(_) => None,
    }
}

/// Puts the outer headers back around what came over the socket, which are the same for all packets
/// but for their lengths.
pub fn rebuild(payload: &[u8], out: &mut [u8]) -> Result<usize, DropReason> {
    let total = ipv4::MIN_HEADER + udp::HEADER + payload.len();
    let packet = out.get_mut(..total).ok_or(DropReason::TooLong)?;
    let length = u16::try_from(total).map_err(|_| DropReason::TooLong)?;
    packet[..28].fill(0);
    packet[0] = 0x45;
    packet[8] = 64;
    packet[12..16].copy_from_slice(&super::gateways::EAST);
    packet[16..20].copy_from_slice(&super::gateways::WEST);
    ipv4::rewrite(packet, ipv4::MIN_HEADER, length, 17);
    packet[20..22].copy_from_slice(&udp::NAT_T_PORT.to_be_bytes());
    packet[22..24].copy_from_slice(&udp::NAT_T_PORT.to_be_bytes());
    packet[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    packet[28..].copy_from_slice(payload);
    Ok(total)
}

/// The shortest time worth a look at the counters.
pub const LOOK: Duration = Duration::from_millis(100);
