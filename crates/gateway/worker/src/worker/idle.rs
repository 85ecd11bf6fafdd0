//! How a worker sleeps while nothing is at hand.

use forebay_planted::{Fault, planted};
use forebay_time::Duration;
use rustix::event::PollFlags;

use super::{NAP, Worker};
use crate::intake::TAKE;

/// Longest sleep while a link holds packets that it took and the kernel did not.
const UNSENT_NAP: Duration = Duration::from_millis(1);
/// Sleeps in a row that errors of links ended, behind which a sleep asks no link and is as long at most.
const FAULTS: u32 = 8;
const FAULT_NAP: Duration = Duration::from_millis(2);

impl Worker {
    /// Waits until a link, an order or the time has something.
    pub(super) fn sleep(&mut self) -> std::io::Result<()> {
        let no_room = !self.handoff.has_room(TAKE);
        let inside_waits = no_room || self.sealed_wait();
        let more = self.ports().skip(usize::from(inside_waits)).any(|port| port.link.pending());
        if more || !self.handoff.falls_asleep(no_room.then_some(TAKE)) {
            return Ok(());
        }
        let slept = self.sleep_in_poll(inside_waits);
        self.handoff.wakes();
        slept
    }

    fn sleep_in_poll(&mut self, inside_waits: bool) -> std::io::Result<()> {
        self.counts.naps += 1;
        let now = self.engine.clock().now();
        let faulty = self.faults >= FAULTS;
        let most = match faulty {
            true => FAULT_NAP,
            false if self.ports().any(|port| port.link.unsent()) => UNSENT_NAP,
            false => NAP,
        };
        let mut due = self.engine.next_due().min(self.keepalives.next()).since(now).min(most);
        let icmp_rests = self.icmp_rests.since(now);
        if icmp_rests > Duration::ZERO {
            due = due.min(icmp_rests);
        }
        let mut fds = vec![(self.handoff.bell().fd(), PollFlags::IN)];
        let ports = std::iter::once(&self.inside).chain(self.outside.iter().map(|one| &one.port));
        for (index, port) in ports.enumerate() {
            let mut wanted = if index == 0 && inside_waits { PollFlags::empty() } else { PollFlags::IN };
            wanted.set(PollFlags::OUT, port.is_blocked());
            fds.push((port.link.fd(), wanted));
        }
        let icmp = if icmp_rests > Duration::ZERO { &[][..] } else { &self.icmp };
        fds.extend(icmp.iter().map(|link| (link.fd(), PollFlags::IN)));
        let asked = if faulty { 1 } else { fds.len() };
        let mut ready = self.wait.poll(&fds[..asked], due)?;
        // Those that were not asked are not ready.
        ready.resize(fds.len(), PollFlags::empty());
        if !ready[0].is_empty() {
            self.handoff.bell().silence();
        }
        let fault = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        self.faults = match ready.iter().any(|ready| ready.intersects(fault)) {
            true => self.faults + 1,
            false => 0,
        };
        // Behind the bell and the ports.
        let icmp_from = 2 + self.outside.len();
        // Behind its rest it is asked for without another sleep.
        let has_rested = icmp_rests > Duration::ZERO && self.engine.clock().now() >= self.icmp_rests;
        self.icmp_ready = has_rested || ready[icmp_from..].iter().any(|ready| !ready.is_empty());
        let ports = std::iter::once(&mut self.inside).chain(self.outside.iter_mut().map(|one| &mut one.port));
        for (port, ready) in ports.zip(&ready[1..]) {
            if ready.intersects(PollFlags::OUT | PollFlags::ERR) && !planted(Fault::NotUnblocked) {
                port.unblock();
            }
        }
        Ok(())
    }
}
