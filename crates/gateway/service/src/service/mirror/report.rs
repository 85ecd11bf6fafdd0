//! Reports to the kernel and the IKE daemon: limits that were reached, numbers, counters, and SAs that are needed.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{EventKind, SaCounters, TrafficSelector};
use forebay_time::Duration;
use forebay_xfrm::{self as xfrm, Done, Flow, SaId, Way};

use super::{Follow, SyncedSa};
use forebay_worker::Worker;

/// Sequence numbers that are reported to the kernel before they are used: about three seconds' worth at twenty
/// million packets per second. Another process continues behind them.
const AHEAD: u64 = 1 << 26;
/// Between two questions for the same flow: as long as the kernel waits for an answer (`xfrm_acq_expires`).
const ASK_AGAIN: Duration = Duration::from_millis(30_000);
/// Flows that are asked for at a time.
const ASKED_MAX: usize = 1_024;

/// What a worker has for the daemon.
struct NewSaResources {
    limits: Vec<(SessionId, bool)>,
    wanted: Vec<Flow>,
    /// Of its own SAs.
    numbers: Vec<(SessionId, Option<u64>, SaCounters)>,
}

impl Follow {
    /// Tells the daemon what has happened to SAs, and the kernel how far they have counted.
    pub(super) fn tell(&mut self) -> io::Result<()> {
        let now = (self.clock)();
        let due = self
            .report
            .is_some_and(|every| now.saturating_sub(self.reported).as_nanos() as u64 >= every.as_nanos());
        let Some(news) = self.workers.ask(news) else { return Ok(()) };
        // By owner and number there.
        let name = |(id, taken): (&SaId, &SyncedSa)| {
            let owner = taken.owner.get();
            Some(((owner, *taken.sessions.get(owner)?), *id))
        };
        let names: HashMap<(usize, SessionId), SaId> = self.sas.iter().filter_map(name).collect();
        let mut wanted = Vec::new();
        for (place, news) in news.into_iter().enumerate() {
            self.tell_of(place, &names, &news, due, now)?;
            wanted.extend(news.wanted);
        }
        if due {
            self.reported = now;
        }
        self.ask_for(wanted, now)
    }

    /// Tells what worker number `place` has.
    fn tell_of(
        &mut self,
        place: usize,
        names: &HashMap<(usize, SessionId), SaId>,
        news: &NewSaResources,
        due: bool,
        now: std::time::Duration,
    ) -> io::Result<()> {
        for &(session, hard) in &news.limits {
            if let Some(id) = names.get(&(place, session)) {
                tracing::info!(sa = %id, hard, "SA lifetime expired");
                self.mirror.expire(id, hard)?;
            }
        }
        for &(session, sequence, counters) in &news.numbers {
            let Some(id) = names.get(&(place, session)) else { continue };
            let Some(taken) = self.sas.get_mut(id) else { continue };
            let used = counters.packets > taken.counters.packets;
            taken.counters = counters;
            taken.first_use_s = taken.first_use_s.or(used.then_some(now.as_secs()));
            let sequence = sequence.unwrap_or(0);
            if taken.direction == Direction::Seal && taken.told.saturating_sub(sequence) < AHEAD / 2 {
                self.announce(id, sequence);
            } else if due && used {
                let told = if taken.direction == Direction::Seal { taken.told } else { sequence };
                let done = Done { sequence: Some(told), ..done(taken) };
                self.mirror.report(id, taken.direction, &done)?;
            }
        }
        Ok(())
    }

    /// Tells the kernel, before it is used, how far an outbound SA may count.
    pub(super) fn announce(&mut self, id: &SaId, sequence: u64) {
        let Some(taken) = self.sas.get_mut(id) else { return };
        if taken.direction == Direction::Open {
            return;
        }
        let most = if taken.sa.config.esn { u64::MAX } else { u32::MAX.into() };
        taken.told = sequence.saturating_add(AHEAD).min(most);
        let done = Done { sequence: Some(taken.told), ..done(taken) };
        if let Err(error) = self.mirror.report(id, Direction::Seal, &done) {
            tracing::warn!(sa = %id, %error, "cannot report sequence numbers to the kernel");
        }
    }

    /// Asks for SAs that packets had to do without.
    fn ask_for(&mut self, flows: Vec<Flow>, now: std::time::Duration) -> io::Result<()> {
        let again = std::time::Duration::from_nanos(ASK_AGAIN.as_nanos());
        self.asked.retain(|_, asked| now.saturating_sub(*asked) < again);
        for flow in flows {
            let first = self.kernel_policies.values().map(|(rank, policy)| (rank, policy));
            let first = first.filter(|(_, policy)| policy.way == Way::Out && covers(policy, &flow));
            let Some((_, policy)) = first.min_by_key(|(rank, _)| **rank) else { continue };
            let index = policy.index;
            let name = (index, flow.source, flow.destination);
            if self.asked.len() < ASKED_MAX && self.asked.insert(name, now).is_none() {
                self.mirror.acquire(index, &flow)?;
            }
        }
        Ok(())
    }
}

fn covers(policy: &xfrm::Policy, flow: &Flow) -> bool {
    let within = |selectors: &[TrafficSelector], address: IpAddr| {
        selectors.is_empty()
            || selectors.iter().any(|selector| {
                selector.addresses().is_none_or(|(first, last)| first <= address && address <= last)
            })
    };
    within(&policy.local_ts, flow.source) && within(&policy.remote_ts, flow.destination)
}

fn news(worker: &mut Worker) -> NewSaResources {
    let events = worker.take_events();
    let limits = events.into_iter().filter_map(|event| match event.kind {
        EventKind::Soft | EventKind::SequenceLow => Some((event.session, false)),
        EventKind::Hard | EventKind::SequenceEnd => Some((event.session, true)),
        _ => None,
    });
    let limits = limits.collect();
    let wanted = worker.take_wanted();
    let sad = worker.engine().sad();
    let own = sad.iter().filter(|(session, ..)| sad.remote(*session).is_none());
    let numbers = own.map(|(session, _, _, counters)| (session, sad.sequence(session), *counters)).collect();
    NewSaResources { limits, wanted, numbers }
}

fn done(taken: &SyncedSa) -> Done {
    let SaCounters { packets, bytes, .. } = taken.counters;
    Done { packets, bytes, first_use_s: taken.first_use_s, sequence: None }
}
