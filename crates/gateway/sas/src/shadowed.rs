//! Warnings about SAs and policies that never decide, because an earlier one takes all their packets, and about selectors that
//! no packet matches.

use std::ops::Range;

use forebay_crypto::Direction;
use forebay_ipsec::{Action, Rule, SaConfig};

use super::errors::Findings;
use super::mask::shown;
use super::names::Names;
use super::problem::Problem;
use super::{PolicyEntry, SaEntry, protecting};

/// In longer lists each is compared only with as many before it: the work grows with the square.
const COMPARED_MAX: usize = 1_024;

/// One that decides on packets, in the order in which they are asked.
struct Decider<'a> {
    kind: &'static str,
    name: &'a str,
    rule: Rule,
    /// An SA that is bound to a CPU decides on the packets of that one only.
    cpu: Option<u32>,
    span: Range<usize>,
}

/// Reports the SAs and policies that are never asked, since one before them takes all of their packets.
pub(super) fn report(
    entries: &[SaEntry],
    policies: &[PolicyEntry],
    policy_spans: &[Range<usize>],
    names: &Names,
    findings: &mut Findings,
) {
    let sa = |place: usize| {
        let entry = entries.get(place)?;
        let SaConfig { name, local_ts, remote_ts, dscp, cpu, .. } = &entry.config;
        let (rule, span) = (Rule::new(local_ts, remote_ts, *dscp), names.span(place));
        Some(Decider { kind: "SA", name, rule, cpu: *cpu, span })
    };
    let of_direction = |direction| {
        let placed = policies.iter().zip(policy_spans);
        placed.filter(move |(entry, _)| entry.policy.direction == direction)
    };
    for direction in [Direction::Seal, Direction::Open] {
        let deciders = of_direction(direction).map(|(entry, span)| {
            let policy = &entry.policy;
            let rule = Rule::new(&policy.local_ts, &policy.remote_ts, policy.dscp);
            Decider { kind: "policy", name: &policy.name, rule, cpu: None, span: span.clone() }
        });
        report_list(&deciders.collect::<Vec<_>>(), findings);
    }
    // Inbound, the SPI chooses the SA.
    let outbound: Vec<_> = of_direction(Direction::Seal).map(|(entry, _)| entry).collect();
    for entry in outbound.iter().filter(|entry| matches!(entry.policy.action, Action::Protect(_))) {
        report_list(&protecting(entry).filter_map(sa).collect::<Vec<_>>(), findings);
    }
    if outbound.is_empty() {
        // What goes around another SA has that one's packets.
        let is_outer = |place: usize| entries.iter().any(|entry| entry.outer == Some(place));
        let nested = entries.iter().any(|entry| entry.outer.is_some());
        let asked = |&(place, entry): &(usize, &SaEntry)| {
            entry.direction == Direction::Seal && !(nested && is_outer(place))
        };
        let deciders = entries.iter().enumerate().filter(asked).filter_map(|(place, _)| sa(place));
        report_list(&deciders.collect::<Vec<_>>(), findings);
    }
}

fn report_list(deciders: &[Decider<'_>], findings: &mut Findings) {
    for (place, one) in deciders.iter().enumerate() {
        if !one.rule.can_match() {
            let problem = Problem::NoCommonFamily { kind: one.kind, name: shown(one.name) };
            findings.add(problem, one.span.clone(), "matches no packet");
            continue;
        }
        let mut before = deciders[..place].iter().take(COMPARED_MAX);
        let Some(first) = before.find(|first| first.cpu == one.cpu && first.rule.covers(&one.rule)) else {
            continue;
        };
        let problem = Problem::Shadowed { kind: one.kind, name: shown(one.name), first: shown(first.name) };
        let label = "takes all packets first";
        findings.add_pair(problem, one.span.clone(), "never asked", first.span.clone(), label);
    }
}
