//! A generator on a CPU of its own, and what of its packets arrives behind the gateway.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_crypto::Direction;
use forebay_engine::{Clock, TAKE};
use forebay_ipsec::Encapsulation;
use forebay_links::Link;
use forebay_links::raw::{self, Carries, RawOptions};
use forebay_links::udp::{self, UdpOptions};
use forebay_links_xdp::{Mode, Network, Take, XdpOptions};
use forebay_processors::Backend;
use forebay_wire::Family;
use miette::{IntoDiagnostic as _, miette};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::bed::{self, Bed};
use super::packets::{self, Front, IP, IP_UDP};
use super::{Forwarder, Plan, SIZES, wait_for};
use crate::Error;
use crate::esp;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// How long the first packet may take.
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// What passes before a measurement begins.
const SETTLES_IN: Duration = Duration::from_millis(200);
/// How long nothing has come when the forwarder is empty, and how long that may take.
const EMPTY_AFTER: Duration = Duration::from_millis(50);
const EMPTY_WITHIN: Duration = Duration::from_secs(20);
/// Times that a generator offers packets again for which there was no room.
const TRIES: usize = 16;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub direction: Direction,
    pub size: usize,
    pub flows: usize,
}

/// What was measured once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub generator: &'static str,
    pub offered_per_s: f64,
    pub packets_per_s: f64,
    pub cpu_us_per_packet: Option<f64>,
}

/// Generates and counts.
pub(super) fn measure(
    plan: &Plan,
    forwarder: &Forwarder,
    case: Case,
    bed: &mut Bed,
    watch: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Figure, Error> {
    let (mut source, frame) = Source::new(forwarder, case, bed.sealer.take())?;
    let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let (namespace, to_near) = match case.direction {
        Direction::Seal => (bed::NEAR, false),
        Direction::Open => (bed::FAR, true),
    };
    let figure = std::thread::scope(|scope| {
        let generator = scope.spawn(|| {
            bed::move_into(namespace)?;
            let mut cpu = CpuSet::new();
            cpu.set(plan.settings.cpus[0]);
            sched_setaffinity(None, &cpu).into_diagnostic()?;
            let (name, mut link) = open(forwarder, case)?;
            source.run(&mut *link, &is_over, &sent)?;
            Ok(name)
        });
        let watched = watched(plan, bed, to_near, frame, &sent, watch, || generator.is_finished());
        is_over.store(true, Ordering::Relaxed);
        let name = generator.join().unwrap_or_else(|_| Err(miette!("the generator failed")));
        // Why it has ended by itself says more than that nothing arrived.
        let cancelled = matches!(watched, Err(Error::Cancelled));
        if cancelled {
            watched
        } else {
            name.map_err(Error::from).and_then(|name| Ok(Figure { generator: name, ..watched? }))
        }
    });
    bed.sealer = source.sealer;
    let figure = figure?;
    // Queues of the kernel may hold batches for some seconds' work, which the next measurement is not to count.
    let mut before = bed.arrived(to_near)?;
    let mut since = Instant::now();
    wait_for(EMPTY_WITHIN, watch, || {
        let now = bed.arrived(to_near)?;
        if std::mem::replace(&mut before, now) != now {
            since = Instant::now();
        }
        Ok(since.elapsed() > EMPTY_AFTER)
    })?;
    Ok(figure)
}

/// Waits until packets arrive, and counts them.
fn watched(
    plan: &Plan,
    bed: &mut Bed,
    to_near: bool,
    frame: Frame,
    sent: &AtomicU64,
    watch: &mut dyn FnMut() -> ControlFlow<()>,
    has_ended: impl Fn() -> bool,
) -> Result<Figure, Error> {
    let before = bed.arrived(to_near)?;
    let came = wait_for(FIRST_WITHIN, watch, || {
        bed.look()?;
        Ok(has_ended() || bed.arrived(to_near)? > before)
    })?;
    if !came {
        return Err(miette!("no packet arrived within {} s", FIRST_WITHIN.as_secs()).into());
    }
    wait_for(SETTLES_IN, watch, || Ok(false))?;
    let mut read = || -> Result<_, Error> {
        let now = Instant::now();
        Ok((now, frame.packets(bed.arrived(to_near)?), sent.load(Ordering::Relaxed), bed.cpu_s()))
    };
    let begin = read()?;
    wait_for(Duration::from_secs_f64(plan.settings.seconds), watch, || Ok(has_ended()))?;
    let end = read()?;
    bed.look()?;
    let seconds = end.0.duration_since(begin.0).as_secs_f64();
    let packets = end.1 - begin.1;
    if packets < 1.0 {
        return Err(miette!("no packet arrived any more").into());
    }
    let cpu_s = end.3.zip(begin.3).map(|(end, begin)| end - begin);
    Ok(Figure {
        generator: "",
        offered_per_s: (end.2 - begin.2) as f64 / seconds,
        packets_per_s: packets / seconds,
        cpu_us_per_packet: cpu_s.map(|cpu_s| cpu_s * 1e6 / packets),
    })
}

/// How packets are counted that come to the sink as frames: the kernel passes some of equal length as one, which has their headers
/// once.
#[derive(Clone, Copy, Debug)]
struct Frame {
    headers: usize,
    payload: usize,
}

impl Frame {
    /// Of IP packets of `size` bytes.
    fn of(size: usize, encapsulation: Encapsulation) -> Frame {
        let headers = if encapsulation == Encapsulation::Udp { IP_UDP } else { IP };
        Frame { headers: ETHERNET + headers, payload: size - headers }
    }

    fn packets(self, (frames, bytes): (u64, u64)) -> f64 {
        (bytes as f64 - (frames * self.headers as u64) as f64) / self.payload as f64
    }
}

/// What a generator sends: the same packets again and again, sealed where it is the peer of a gateway.
struct Source {
    packets: Vec<Vec<u8>>,
    sealer: Option<esp::Path>,
    is_sealed: bool,
}

impl Source {
    /// The packets of a case, and what comes to the sink of them.
    fn new(forwarder: &Forwarder, case: Case, sealer: Option<esp::Path>) -> Result<(Source, Frame), Error> {
        let Case { direction, size, flows } = case;
        let is_out = direction == Direction::Seal;
        let [from, to] = if is_out { [packets::NEAR, packets::FAR] } else { [packets::FAR, packets::NEAR] };
        let plain = packets::plain(from, to, size, flows);
        // A whole number of bursts.
        let mut packets: Vec<_> = plain.iter().cycle().take(flows.next_multiple_of(TAKE)).cloned().collect();
        let (mut frame, mut sealer) = (Frame::of(size, Encapsulation::Udp), sealer);
        match forwarder {
            Forwarder::Kernel => {}
            Forwarder::Relay(kinds) => {
                let encapsulation = kinds.encapsulation();
                let is_udp = encapsulation == Encapsulation::Udp;
                let front = Front::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), is_udp);
                if is_out {
                    frame = Frame::of(size + front.size(), encapsulation);
                } else {
                    for packet in &mut packets {
                        let inner = std::mem::take(packet);
                        front.put(packet, &inner, &[]);
                    }
                }
            }
            Forwarder::Gateway(suite, kinds) => {
                let encapsulation = kinds.encapsulation();
                if sealer.is_none() {
                    let of = (*suite, encapsulation, Family::V4);
                    sealer = esp::paths(1, Backend::Auto, of, *SIZES.end(), Clock::start())?.pop();
                }
                if let Some(path) = sealer.as_mut().filter(|_| is_out) {
                    // The gateway's packets are as long as those that are sealed here.
                    let mut len = 0;
                    path.fill(&packets::plain(packets::FAR, packets::NEAR, size, 1), 0)?;
                    path.prepare(Direction::Seal);
                    path.carry(|_, packet| len = packet.len())?;
                    frame = Frame::of(len, encapsulation);
                }
            }
        }
        let is_sealed = !is_out && matches!(forwarder, Forwarder::Gateway(..));
        Ok((Source { packets, sealer, is_sealed }, frame))
    }

    /// Sends as fast as it can until it is over, and counts what the link took.
    fn run(&mut self, link: &mut dyn Link, is_over: &AtomicBool, sent: &AtomicU64) -> miette::Result<()> {
        let mut sealed = vec![Vec::new(); TAKE];
        for burst in self.packets.chunks_exact(TAKE).cycle() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let mut packets = burst;
            if let Some(path) = self.sealer.as_mut().filter(|_| self.is_sealed) {
                path.fill(burst, 0)?;
                path.prepare(Direction::Seal);
                let mut count = 0;
                path.carry(|_, packet| {
                    sealed[count].clear();
                    sealed[count].extend_from_slice(packet.bytes());
                    count += 1;
                })?;
                packets = &sealed[..count];
            }
            let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
            let mut left = &slices[..];
            for _ in 0..TRIES {
                let report = link.send(left);
                sent.fetch_add(report.taken as u64, Ordering::Relaxed);
                left = &left[left.len() - report.would_block..];
                // The kernel's threads receive on this CPU.
                std::thread::yield_now();
                if left.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// What a host sends by: UDP sockets where packets are of one flow outside, of which they give the kernel batches; its interface by
/// AF_XDP for all others, or raw sockets, which are slower, where that is not allowed.
fn open(forwarder: &Forwarder, case: Case) -> miette::Result<(&'static str, Box<dyn Link>)> {
    let encapsulation = match forwarder {
        Forwarder::Gateway(_, kinds) | Forwarder::Relay(kinds) if case.direction == Direction::Open => {
            Some(kinds.encapsulation())
        }
        _ => None,
    };
    let local = match (encapsulation, case.direction) {
        (Some(_), _) => SocketAddr::from(([192, 0, 2, 1], forebay_wire::udp::NAT_T_PORT)),
        (None, Direction::Seal) => SocketAddr::from((packets::NEAR, packets::SOURCE_PORT)),
        (None, Direction::Open) => SocketAddr::from((packets::FAR, packets::SOURCE_PORT)),
    };
    let is_one_flow = encapsulation.map_or(case.flows == 1, |one| one == Encapsulation::Udp);
    if !is_one_flow {
        // Nothing is to be received: the network is nobody's.
        let take = Take::Inside { to: vec![Network { address: [192, 0, 2, 255].into(), prefix: 32 }] };
        let options = XdpOptions { mode: Mode::Generic, ..XdpOptions::new(bed::INTERFACE, take) };
        if let Ok(link) = forebay_links_xdp::open(&options).map(|mut links| links.remove(0)) {
            return Ok(("AF_XDP", Box::new(link)));
        }
    }
    if encapsulation == Some(Encapsulation::None) {
        let options = RawOptions { local: local.ip(), ..RawOptions::new(Family::V4, Carries::Esp) };
        return Ok(("raw sockets", Box::new(raw::open(&options).into_diagnostic()?.remove(0))));
    }
    Ok(("UDP sockets", Box::new(udp::open(&UdpOptions::at(local)).into_diagnostic()?.remove(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_whether_they_come_alone_or_as_one() {
        for (size, encapsulation, headers) in [(64, Encapsulation::Udp, 42), (96, Encapsulation::None, 34)] {
            let frame = Frame::of(size, encapsulation);
            let payload = size + 14 - headers;
            // One by itself, and a batch of forty.
            let bytes = (size + 14) + (headers + 40 * payload);
            assert_eq!(frame.packets((2, bytes as u64)), 41.0);
        }
    }
}
