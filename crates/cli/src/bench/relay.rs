//! `forebay bench relay`: the links of a gateway's file with nothing between them, for `forebay bench gateway` and
//! `make bench-gateway`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use forebay_config::{Config, InsideLink, OutsideLink};
use forebay_engine::{Clock, TAKE};
use forebay_gateway::service::{CardSide, Caretaker, Host, Machine, Queues};
use forebay_ipsec::{Encapsulation, Protocol};
use forebay_links::Link;
use forebay_measure::gateway::Front;
use forebay_terminal::{Answer, progress};
use miette::{IntoDiagnostic, miette};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sd_notify::NotifyState;

/// Longest time between two looks at whether it is to end.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);
/// The same while packets wait in memory of a link that does not signal when they can go.
const RETRY: std::time::Duration = std::time::Duration::from_millis(1);

/// Arguments of `forebay bench relay`.
#[derive(Args)]
pub struct RelayArgs {
    /// The gateway's configuration file. Its first SA gives the addresses of what is sent.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the command until it is interrupted. Rules of the guard, routes and offloads are as with the gateway; packets pass
/// unprotected.
pub fn run(args: &RelayArgs) -> miette::Result<Answer> {
    let config = forebay_config::load(&args.config)?;
    let front = front(&config)?;
    let caretaker = Caretaker::open(&config, &Machine, None)?;
    let mut inside = one(inside(&config)?)?;
    let mut outside = one(outside(&config)?)?;
    caretaker.attach(&config, &Machine)?;
    caretaker.configure(&config)?;
    caretaker.route(&config)?;
    let _ = sd_notify::notify(false, &[NotifyState::Ready]);
    let mut buffers = vec![Vec::new(); TAKE];
    while !progress::is_interrupted() {
        let cover = |packet: &mut Vec<u8>, head: &[u8], body: &[u8]| front.put(packet, head, body);
        let out = pass(&mut buffers, &mut *inside, &mut *outside, 0, cover)?;
        let copy = |packet: &mut Vec<u8>, head: &[u8], body: &[u8]| {
            packet.clear();
            packet.extend_from_slice(head);
            packet.extend_from_slice(body);
        };
        let inward = pass(&mut buffers, &mut *outside, &mut *inside, front.size(), copy)?;
        if out + inward == 0 {
            wait([&mut *inside, &mut *outside])?;
        }
    }
    caretaker.end();
    Ok(Answer::Interrupted)
}

/// What stands in front of packets outside.
fn front(config: &Config) -> miette::Result<Front> {
    let sa = config.sas.entries.first().map(|sa| &sa.config);
    match sa.map(|sa| (sa.local, sa.remote, sa.encapsulation)) {
        Some((IpAddr::V4(local), IpAddr::V4(remote), encapsulation)) => {
            Ok(Front::new(local, remote, encapsulation == Encapsulation::Udp))
        }
        _ => Err(miette!("a relay needs an SA between IPv4 addresses")),
    }
}

fn inside(config: &Config) -> miette::Result<Queues> {
    Ok(match &config.inside.link {
        InsideLink::Tun(tun) => Machine.tun(tun, 1),
        InsideLink::Xdp { card, .. } => Machine.card(CardSide::Inside(config, card), 1),
        InsideLink::Dpdk(device) => Machine.network_device("[inside]", device, None, 1).map(|both| both.0),
    }?)
}

fn outside(config: &Config) -> miette::Result<Queues> {
    let first = config.outside.first().ok_or_else(|| miette!("a relay needs a link outside"))?;
    let name = &first.name;
    Ok(match &first.link {
        OutsideLink::Udp(udp) => {
            let local = udp.listen.first().copied().ok_or_else(|| miette!("{name}: no address"))?;
            Machine.udp(name, udp, local, 1, Clock::start())
        }
        OutsideLink::Raw(raw) => {
            let local = raw.addresses.first().copied().ok_or_else(|| miette!("{name}: no address"))?;
            Machine.raw(name, raw, local, Protocol::Esp, 1)
        }
        OutsideLink::Xdp { card, ports } => Machine.card(CardSide::Outside(card, ports), 1),
        OutsideLink::Dpdk { device, ports } => {
            Machine.network_device(name, device, Some(ports), 1).map(|both| both.0)
        }
    }?)
}

fn one(links: Queues) -> miette::Result<Box<dyn Link + Send>> {
    links.into_iter().next().ok_or_else(|| miette!("a link has no queue"))
}

/// Moves one burst, of whose packets the first `skip` bytes are not sent. Returns how many came; what there is no room for is lost.
fn pass(
    buffers: &mut [Vec<u8>],
    from: &mut dyn Link,
    to: &mut dyn Link,
    skip: usize,
    put: impl Fn(&mut Vec<u8>, &[u8], &[u8]),
) -> miette::Result<usize> {
    let mut count = 0;
    let received = from.receive(buffers.len(), &mut |head, body| {
        put(&mut buffers[count], head, body);
        count += 1;
    });
    received.into_diagnostic()?;
    if count > 0 || to.unsent() {
        let packets: Vec<&[u8]> =
            buffers[..count].iter().map(|packet| packet.get(skip..).unwrap_or_default()).collect();
        to.send(&packets);
    }
    Ok(count)
}

/// Waits until something may have come.
fn wait(links: [&mut dyn Link; 2]) -> miette::Result<()> {
    let nap = |link: &dyn Link| if link.unsent() { Some(RETRY) } else { link.nap() };
    let naps = links.iter().filter_map(|link| nap(&**link));
    let longest = naps.min().map_or(LOOK_EVERY, |nap| nap.min(LOOK_EVERY));
    if longest.is_zero() || links.iter().any(|link| link.pending()) {
        return Ok(());
    }
    let fds = [links[0].fd(), links[1].fd()];
    let mut fds = [PollFd::new(&fds[0], PollFlags::IN), PollFd::new(&fds[1], PollFlags::IN)];
    let longest = Timespec::try_from(longest).into_diagnostic()?;
    match poll(&mut fds, Some(&longest)) {
        Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
        Err(error) => Err(error).into_diagnostic(),
    }
}
