//! Outbound SAs for the same traffic, one for each CPU, and the fallback SA beside them (RFC 9611).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use forebay_crypto::Direction;
use forebay_ipsec::SaConfig;

use super::errors::Findings;
use super::mask::shown;
use super::names::Names;
use super::problem::Problem;
use super::{PolicyEntry, SaEntry, protecting};

/// SAs for the same traffic.
#[derive(Default)]
struct Set {
    has_fallback: bool,
    by_cpu: HashMap<u32, usize>,
}

/// Checks that in each policy, or in the file if that has no policies of outbound packets, there is one SA for each CPU,
/// and a fallback SA beside them.
pub(super) fn check(entries: &[SaEntry], policies: &[PolicyEntry], names: &Names, findings: &mut Findings) {
    if entries.iter().all(|entry| entry.config.cpu.is_none()) {
        return;
    }
    report_nested(entries, names, findings);
    let policies = policies.iter().filter(|entry| entry.policy.direction == Direction::Seal);
    let mut lists: Vec<Vec<usize>> = policies.map(|policy| protecting(policy).collect()).collect();
    if lists.is_empty() {
        lists.push((0..entries.len()).collect());
    }
    let mut reported = HashSet::new();
    for list in lists {
        let mut sets: HashMap<String, Set> = HashMap::new();
        let outbound = |&place: &usize| Some((place, entries.get(place)?));
        let outbound =
            list.iter().filter_map(outbound).filter(|(_, entry)| entry.direction == Direction::Seal);
        let outbound: Vec<(usize, &SaEntry)> = outbound.collect();
        for &(place, entry) in &outbound {
            let set = sets.entry(traffic(&entry.config)).or_default();
            let Some(cpu) = entry.config.cpu else {
                set.has_fallback = true;
                continue;
            };
            match set.by_cpu.entry(cpu) {
                Entry::Vacant(free) => drop(free.insert(place)),
                Entry::Occupied(first) if *first.get() != place && reported.insert(place) => {
                    let other = *first.get();
                    let problem = Problem::SharedCpu { cpu, first: shown(&entries[other].config.name) };
                    let spans = (names.cpu_span(place), names.cpu_span(other));
                    findings.add_pair(problem, spans.0, "used again here", spans.1, "first used here");
                }
                Entry::Occupied(_) => {}
            }
        }
        for (place, entry) in outbound {
            let lacks = sets.get(&traffic(&entry.config)).is_some_and(|set| !set.has_fallback);
            if lacks && reported.insert(place) {
                let problem = Problem::NoFallback { name: shown(&entry.config.name) };
                findings.add(problem, names.cpu_span(place), "packets of other CPUs have no SA");
            }
        }
    }
}

/// What SAs have in common that stand in for each other.
fn traffic(config: &SaConfig) -> String {
    let SaConfig { local, remote, local_ts, remote_ts, dscp, .. } = config;
    format!("{local} {remote} {local_ts:?} {remote_ts:?} {dscp:?}")
}

/// Reports SAs that could not be where their outer SA is.
fn report_nested(entries: &[SaEntry], names: &Names, findings: &mut Findings) {
    for (place, entry) in entries.iter().enumerate() {
        let Some((cpu, outer)) = entry.config.cpu.zip(entry.outer.and_then(|outer| entries.get(outer)))
        else {
            continue;
        };
        if outer.config.cpu != Some(cpu) {
            let problem = Problem::CpuOfOuter { cpu, outer: shown(&outer.config.name) };
            findings.add(problem, names.cpu_span(place), "its outer SA is not bound to this CPU");
        }
    }
}
