//! Reports to the kernel and the IKE daemon: limits that were reached, numbers, counters, and SAs that are needed.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{EventKind, SaCounters, TrafficSelector};
use forebay_time::Duration;
use forebay_xfrm::{self as xfrm, Done, Flow, PolicyIndex, SaId, Way};

use super::{Follow, SyncedSa};
use forebay_worker::Worker;

/// Sequence numbers that are reported to the kernel before they are used: about three seconds' worth at twenty
/// million packets per second. Another process continues behind them.
const AHEAD: u64 = 1 << 26;
/// Between two questions for the same flow: as long as the kernel waits for an answer (`xfrm_acq_expires`).
const ASK_AGAIN: Duration = Duration::from_millis(30_000);
/// Flows that are asked for at a time.
const ASKED_MAX: usize = 1_024;

/// What an SA was asked for: by the policy, the addresses of the packet, and the CPU if the policy wants an SA for each.
/// While there is a fallback SA, one packet speaks for all of its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    policy: PolicyIndex,
    addresses: Option<(IpAddr, IpAddr)>,
    cpu: Option<u32>,
}

/// A packet that an SA is wanted for.
struct Wanted {
    flow: Flow,
    /// The worker that has received it.
    cpu: u32,
    /// Whether it went through the fallback SA.
    has_fallback: bool,
}

/// What a worker has for the daemon.
struct NewSaResources {
    limits: Vec<(SessionId, bool)>,
    wanted: Vec<Wanted>,
    /// Of all SAs, at the first worker.
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
        let names: HashMap<SessionId, SaId> =
            self.sas.iter().map(|(id, taken)| (taken.session, *id)).collect();
        let mut wanted = Vec::new();
        for news in news {
            self.tell_of(&names, &news, due, now)?;
            wanted.extend(news.wanted);
        }
        if due {
            self.reported = now;
        }
        self.ask_for(wanted, now)
    }

    /// Tells what a worker has.
    fn tell_of(
        &mut self,
        names: &HashMap<SessionId, SaId>,
        news: &NewSaResources,
        due: bool,
        now: std::time::Duration,
    ) -> io::Result<()> {
        for &(session, hard) in &news.limits {
            if let Some(id) = names.get(&session) {
                tracing::info!(sa = %id, hard, "SA lifetime expired");
                self.mirror.expire(id, hard)?;
            }
        }
        for &(session, sequence, counters) in &news.numbers {
            let Some(id) = names.get(&session) else { continue };
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
        taken.told = told_ahead(sequence, taken.sa.config.esn);
        let done = Done { sequence: Some(taken.told), ..done(taken) };
        if let Err(error) = self.mirror.report(id, Direction::Seal, &done) {
            tracing::warn!(sa = %id, %error, "cannot report sequence numbers to the kernel; its counters are old, and rekeying by them comes late: is the SA still there (ip xfrm state)?");
        }
    }

    /// Asks for SAs that packets had to do without.
    fn ask_for(&mut self, wanted: Vec<Wanted>, now: std::time::Duration) -> io::Result<()> {
        let again = std::time::Duration::from_nanos(ASK_AGAIN.as_nanos());
        let mut unheard = Vec::new();
        self.asked.retain(|question, asked| {
            let waits = now.saturating_sub(*asked) < again;
            unheard.extend(question.cpu.filter(|_| !waits && question.addresses.is_none()));
            waits
        });
        // Flows that are known go on by the fallback SA without being noted.
        for worker in unheard.into_iter().filter_map(|cpu| self.workers.get(cpu as usize)) {
            drop(worker.post(|worker| worker.engine().forget_decisions()));
        }
        for Wanted { flow, cpu, has_fallback } in wanted {
            let first = self.kernel_policies.values().map(|(rank, policy)| (rank, policy));
            let first = first.filter(|(_, policy)| policy.way == Way::Out && covers(policy, &flow));
            let Some((_, policy)) = first.min_by_key(|(rank, _)| **rank) else { continue };
            let question = Question {
                policy: policy.index,
                addresses: (!has_fallback).then_some((flow.source, flow.destination)),
                cpu: policy.per_cpu.then_some(cpu),
            };
            if self.asked.len() < ASKED_MAX && !self.asked.contains_key(&question) {
                self.asked.insert(question, now);
                self.mirror.acquire(question.policy, &flow, question.cpu)?;
            }
        }
        Ok(())
    }
}

/// What the kernel is told of an outbound SA that has come to this number.
pub(super) fn told_ahead(sequence: u64, esn: bool) -> u64 {
    let most = if esn { u64::MAX } else { u32::MAX.into() };
    sequence.saturating_add(AHEAD).min(most)
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
    let cpu = worker.index() as u32;
    let refused = worker.take_wanted().into_iter().map(|flow| Wanted { flow, cpu, has_fallback: false });
    let mut wanted: Vec<Wanted> = refused.collect();
    wanted.extend(worker.engine().take_fallback_flows().into_iter().map(|(source, destination)| {
        // Neither protocol nor ports: the SA is for whatever the CPU sends.
        let flow = Flow { source, destination, protocol: 0, ports: (0, 0) };
        Wanted { flow, cpu, has_fallback: true }
    }));
    if worker.index() > 0 {
        return NewSaResources { limits, wanted, numbers: vec![] };
    }
    let sad = worker.engine().sad();
    let numbers = sad.iter().map(|(session, _, _, counters)| (session, sad.sequence(session), *counters));
    let numbers = numbers.collect();
    NewSaResources { limits, wanted, numbers }
}

fn done(taken: &SyncedSa) -> Done {
    let SaCounters { packets, bytes, .. } = taken.counters;
    Done { packets, bytes, first_use_s: taken.first_use_s, sequence: None }
}
