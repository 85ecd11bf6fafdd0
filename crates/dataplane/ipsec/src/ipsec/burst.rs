//! The same steps for bursts of packets: runs of one flow together, and with very many SAs what they need loaded first.

use forebay_crypto::{Direction, Job, SessionId};
use forebay_wire::{Addresses, Ip};

use super::Ipsec;
use crate::find::esp_spi;
use crate::step::{Next, Prepared, Stop};
use forebay_drops::DropReason;

/// Above so many SAs, which no second-level cache holds, a burst's are loaded before they are used.
const WARM_FROM: usize = 4096;
/// Packets whose loads are begun together.
const WARM_AT_ONCE: usize = 32;

impl Ipsec {
    /// Prepares the packets of `jobs` in order, runs of one flow together. At a packet that has no job
    /// it stops, with the packet's place and the reason; those before it are prepared.
    #[inline]
    pub fn prepare_burst(&mut self, direction: Direction, jobs: &mut [Job]) -> Result<(), (usize, Stop)> {
        self.warm(direction, jobs);
        let mut next = 0;
        while let Some(job) = jobs.get(next) {
            let addresses = match direction {
                Direction::Seal => Addresses::of_packet(job.packet.bytes()),
                Direction::Open => None,
            };
            if let Some(addresses) = &addresses
                && let Some(session) = self.spd.usual(addresses)
            {
                // A run of an earlier burst goes on.
                let more = self.sad.prepare_outbound_run(session, &mut jobs[next..], addresses);
                if more > 0 {
                    next += more;
                    continue;
                }
            }
            let Some((job, rest)) = jobs.get_mut(next..).and_then(<[Job]>::split_first_mut) else { break };
            match self.prepare(direction, &mut job.packet, &mut job.spec) {
                Ok(Prepared::Job) => next += 1,
                Ok(Prepared::Bypass) => return Err((next, Stop::Bypass)),
                Err(reason) => return Err((next, Stop::Drop(reason))),
            }
            let session = job.spec.session;
            next += match (direction, &addresses) {
                // Only while any packet with these addresses goes the same way.
                (Direction::Seal, Some(addresses)) if self.spd.usual(addresses) == Some(session) => {
                    self.sad.prepare_outbound_run(session, rest, addresses)
                }
                (Direction::Seal, _) => 0,
                (Direction::Open, _) => self.sad.prepare_inbound_run(session, job.packet.bytes(), rest),
            };
        }
        Ok(())
    }

    /// Completes `jobs` in order. At a packet that is not simply to be delivered it stops, with the packet's place
    /// and what it stopped for; those before it are complete.
    #[inline]
    pub fn complete_burst(&mut self, jobs: &mut [Job]) -> Result<(), (usize, Stop)> {
        let policies = self.spd.state();
        let mut next = 0;
        while next < jobs.len() {
            let done = self.sad.complete_run(&mut jobs[next..], policies);
            next += done;
            if done > 0 {
                continue;
            }
            // What is not simply done goes the long way.
            let Some(job) = jobs.get_mut(next) else { break };
            let completed = self.complete(&mut job.packet, &job.spec, job.verdict);
            stop_unless_delivered(completed).map_err(|stop| (next, stop))?;
            next += 1;
        }
        Ok(())
    }

    /// Loads these SAs, so that packets need not wait for one after the other where other cores had them last. Nothing is decided
    /// here.
    #[inline]
    pub fn touch(&self, sessions: impl Iterator<Item = SessionId>) {
        sessions.for_each(|session| self.sad.touch(session.0));
    }

    /// The same of the inbound SAs with these SPIs, as far as there are any.
    pub fn touch_by_spi(&self, spis: &[u32]) {
        for spis in spis.chunks(WARM_AT_ONCE) {
            let mut these = [0; WARM_AT_ONCE];
            these[..spis.len()].copy_from_slice(spis);
            self.sad.touch_inbound(&these);
        }
    }

    /// With many SAs, what a packet needs of them is seldom in the cache: loads it for a whole burst, so
    /// that the packets do not wait one behind the other. Nothing is decided here.
    #[inline]
    fn warm(&self, direction: Direction, jobs: &[Job]) {
        if self.sad.len() <= WARM_FROM || jobs.len() < 2 {
            return;
        }
        match direction {
            Direction::Seal => self.warm_outbound(jobs),
            Direction::Open => self.warm_inbound(jobs),
        }
    }

    /// Each step is done for all packets before the next, and no step contains more than the loads of one kind. A
    /// core looks ahead by a number of instructions, so the fewer of them stand between two loads, the more loads are
    /// in flight.
    #[inline(never)]
    fn warm_outbound(&self, jobs: &[Job]) {
        let mut last = None;
        for jobs in jobs.chunks(WARM_AT_ONCE) {
            let mut flows = [None; WARM_AT_ONCE];
            for (job, flow) in jobs.iter().zip(&mut flows) {
                let Ok(ip) = Ip::parse(job.packet.bytes()) else { continue };
                // The packets of a run need the same.
                let addresses = Addresses::of(&ip);
                if addresses.is_some() && std::mem::replace(&mut last, addresses) == addresses {
                    continue;
                }
                let headers = self.spd.outbound_headers(&ip);
                *flow = Some((headers, self.spd.place(&headers)));
            }
            flows.iter().flatten().for_each(|(_, place)| self.spd.touch(*place));
            let mut sessions = [u32::MAX; WARM_AT_ONCE];
            for (flow, session) in flows.iter().zip(&mut sessions) {
                *session = flow.and_then(|(headers, _)| self.spd.peek(&headers)).unwrap_or(u32::MAX);
            }
            sessions.into_iter().for_each(|session| self.sad.touch(session));
        }
    }

    #[inline(never)]
    fn warm_inbound(&self, jobs: &[Job]) {
        let mut last = 0;
        for jobs in jobs.chunks(WARM_AT_ONCE) {
            let mut spis = [0; WARM_AT_ONCE];
            for (job, spi) in jobs.iter().zip(&mut spis) {
                let found = esp_spi(job.packet.bytes()).unwrap_or(0);
                if std::mem::replace(&mut last, found) != found {
                    *spi = found;
                }
            }
            self.sad.touch_inbound(&spis);
        }
    }
}

#[inline]
fn stop_unless_delivered(completed: Result<Next, DropReason>) -> Result<(), Stop> {
    match completed {
        Ok(Next::Deliver) => Ok(()),
        Ok(Next::Unpack) => Err(Stop::Unpack),
        Ok(Next::Again) => Err(Stop::Again),
        Err(reason) => Err(Stop::Drop(reason)),
    }
}

#[cfg(test)]
mod tests;
