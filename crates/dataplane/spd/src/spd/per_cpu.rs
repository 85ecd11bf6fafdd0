//! SAs that are bound to CPUs, each of which stands in for the fallback SA of the same traffic (RFC 9611 2).

use std::collections::HashMap;
use std::net::IpAddr;

use forebay_crypto::SessionId;
use forebay_wire::Ip;

use super::{Decision, Spd};
use crate::hash::Seed;
use crate::headers::Headers;
use crate::rule::Rule;

/// Policies with a noted packet that wait to be taken.
const NOTED_MAX: usize = 64;

/// SAs by the selectors and classes that each shares with its fallback SA.
#[derive(Debug)]
pub struct PerCpu {
    /// Each with its CPU; those that are preferred first.
    by_rule: HashMap<Rule, Vec<(u32, u32)>, Seed>,
}

impl PerCpu {
    /// Without SAs.
    pub fn new(seed: Seed) -> PerCpu {
        PerCpu { by_rule: HashMap::with_hasher(seed) }
    }

    /// Adds an SA of a CPU before or behind those with the same rule.
    pub fn add(&mut self, rule: &Rule, session: u32, cpu: u32, first: bool) {
        let alike = self.by_rule.entry(rule.clone()).or_default();
        alike.insert(if first { 0 } else { alike.len() }, (cpu, session));
    }

    /// Takes an SA out, if it is there.
    pub fn remove(&mut self, rule: &Rule, session: u32) {
        if let Some(alike) = self.by_rule.get_mut(rule) {
            alike.retain(|(_, other)| *other != session);
            if alike.is_empty() {
                self.by_rule.remove(rule);
            }
        }
    }

    /// The SA that packets of a CPU go through in the place of an SA with this rule.
    pub fn stand_in(&self, rule: &Rule, cpu: u32) -> Option<u32> {
        self.by_rule.get(rule)?.iter().find(|(of, _)| *of == cpu).map(|(_, session)| *session)
    }
}

impl Spd {
    /// Adds the selectors of an outbound SA that is bound to a CPU, for whose packets it stands in for any other with the
    /// same rule. Packets of other CPUs never go through it.
    pub fn add_bound_sa(&mut self, session: SessionId, rule: Rule, cpu: u32) {
        self.own.add(&rule, session.0, cpu, false);
        self.bound.insert(session.0, cpu);
        self.add_sa(session, rule);
    }

    /// Notes a packet that goes through the fallback SA although its policy is to have one for each CPU.
    pub(super) fn note_fallback(&mut self, ip: &Ip<'_>, headers: &Headers, decision: Decision) {
        let Decision::Protect(session) = decision else { return };
        if self.bound.contains_key(&session) {
            return;
        }
        let Some(index) = self.outbound.policies.find(headers).id else { return };
        let wants = self.slots[index as usize].policy.as_ref().is_some_and(|policy| policy.per_cpu);
        let is_new = || self.fallback_flows.iter().all(|(other, ..)| *other != index);
        if wants && self.fallback_flows.len() < NOTED_MAX && is_new() {
            self.fallback_flows.push((index, ip.source(), ip.destination()));
        }
    }

    /// Takes the source and destination of a packet for each policy with [`Policy::per_cpu`](crate::Policy::per_cpu) whose packets have gone
    /// through the fallback SA. Of flows whose decision stands no packet is noted again before
    /// [`Spd::forget_decisions`].
    pub fn take_fallback_flows(&mut self) -> Vec<(IpAddr, IpAddr)> {
        self.fallback_flows.drain(..).map(|(_, source, destination)| (source, destination)).collect()
    }

    /// Forgets every decision, so that the next packet of every flow is decided on anew: something has changed that is not a
    /// policy or an outbound SA.
    pub fn forget_decisions(&mut self) {
        self.changed();
    }
}
