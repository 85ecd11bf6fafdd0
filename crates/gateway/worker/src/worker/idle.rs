//! How a worker sleeps while nothing is at hand.

use forebay_planted::{Fault, planted};
use forebay_time::Duration;
use std::os::fd::AsFd;

use rustix::event::PollFlags;

use super::{NAP, Worker};
use crate::stations::Shared;

/// Longest sleep while a link holds packets that it took and the kernel did not.
const UNSENT_NAP: Duration = Duration::from_millis(1);
/// Sleeps in a row that errors of links ended, behind which a sleep asks no link and is as long at most.
const FAULTS: u32 = 8;
const FAULT_NAP: Duration = Duration::from_millis(2);

impl Worker {
    /// Waits until a link, an order or the time has something.
    pub(super) fn sleep(&mut self) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let inside_waits = shared.sealed_wait();
        let gates = self.station().ports().skip(usize::from(inside_waits)).filter(|gate| gate.is_own);
        let more = gates.into_iter().any(|gate| gate.pass().link.pending());
        let bell = &shared.stations[self.index].bell;
        // What it could not take out of a lane because another worker was at it.
        let untaken = self.engine.untaken() > 0;
        if more || untaken || !bell.falls_asleep(|| self.may_help(&shared)) {
            // Packets wait for another worker, which may have lost its CPU to this one, or may come to one that is at a long burst.
            self.wait.rest(false);
            return Ok(());
        }
        let slept = self.sleep_in_poll(&shared, inside_waits);
        bell.wakes();
        slept
    }

    fn sleep_in_poll(&mut self, shared: &Shared, inside_waits: bool) -> std::io::Result<()> {
        self.counts.naps += 1;
        let now = self.engine.clock().now();
        let faulty = self.faults >= FAULTS;
        let station = &shared.stations[self.index];
        let gates: Vec<_> = station.ports().collect();
        let ports: Vec<_> = gates.iter().map(|gate| gate.pass()).collect();
        let most = match faulty {
            true => FAULT_NAP,
            false if ports.iter().any(|port| port.link.unsent()) => UNSENT_NAP,
            false => NAP,
        };
        // A port of another worker has nothing for this one, unless packets wait there for room.
        let napping = gates.iter().zip(&ports).filter(|(gate, port)| gate.is_own || port.is_blocked());
        let naps = napping.filter_map(|(_, port)| port.link.nap());
        let most = naps.map(|nap| Duration::from_nanos(nap.as_nanos() as u64)).min().unwrap_or(NAP).min(most);
        let mut due = self.engine.next_due().min(self.keepalives.next()).since(now).min(most);
        let icmp_rests = self.icmp_rests.since(now);
        if icmp_rests > Duration::ZERO {
            due = due.min(icmp_rests);
        }
        let wanted: Vec<_> = gates
            .iter()
            .zip(&ports)
            .enumerate()
            .map(|(index, (gate, port))| {
                let mut wanted = PollFlags::empty();
                wanted.set(PollFlags::IN, gate.is_own && (index > 0 || !inside_waits));
                wanted.set(PollFlags::OUT, port.is_blocked());
                wanted
            })
            .collect();
        // Others have no business at the links of one that sleeps, but for those that they use too.
        let mut ports: Vec<_> =
            ports.into_iter().zip(&gates).map(|(port, gate)| gate.fd.is_none().then_some(port)).collect();
        let mut fds = vec![(station.bell.fd(), PollFlags::IN)];
        for ((gate, port), wanted) in gates.iter().zip(&ports).zip(wanted) {
            let fd = gate.fd.as_ref().map(AsFd::as_fd).or(port.as_ref().map(|port| port.link.fd()));
            // One of the two is there.
            fds.extend(fd.map(|fd| (fd, wanted)));
        }
        let icmp = if icmp_rests > Duration::ZERO { &[][..] } else { &self.icmp };
        fds.extend(icmp.iter().map(|link| (link.fd(), PollFlags::IN)));
        let asked = if faulty { 1 } else { fds.len() };
        let mut ready = self.wait.poll(&fds[..asked], due)?;
        // Those that were not asked are not ready.
        ready.resize(fds.len(), PollFlags::empty());
        drop(fds);
        if !ready[0].is_empty() {
            station.bell.silence();
        }
        let fault = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        self.faults = match ready.iter().any(|ready| ready.intersects(fault)) {
            true => self.faults + 1,
            false => 0,
        };
        // Behind the bell and the ports.
        let icmp_from = 1 + ports.len();
        // Behind its rest it is asked for without another sleep.
        let has_rested = icmp_rests > Duration::ZERO && self.engine.clock().now() >= self.icmp_rests;
        self.icmp_ready = has_rested || ready[icmp_from..].iter().any(|ready| !ready.is_empty());
        for ((gate, port), ready) in gates.iter().zip(&mut ports).zip(&ready[1..]) {
            if ready.intersects(PollFlags::OUT | PollFlags::ERR) && !planted(Fault::NotUnblocked) {
                match port {
                    Some(port) => port.unblock(),
                    None => gate.pass().unblock(),
                }
            }
        }
        Ok(())
    }
}
