//! The part of a configuration from which the rules of the host's guard are made.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use forebay_crypto::Direction;
use forebay_ipsec::Action;

use super::operation::GuardMode;
use super::reader::Context;
use super::{Config, InsideLink, KeySource, OutsideLink};
use forebay_guard::{Entry, Host, Plan};
use forebay_sas::{SaEntry, SasFile};

impl Config {
    /// What the guard's rules have to know of the host.
    pub fn guard_host(&self) -> Host {
        let (own, inside) = match &self.inside.link {
            InsideLink::Tun(tun) => (&tun.name, Some(tun.name.clone())),
            // What is taken from a card and given to it does not pass the host's stack.
            InsideLink::Xdp { card, .. } => (&card.interface, None),
            InsideLink::Dpdk(device) => (&device.device, None),
        };
        let name = own.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '_' });
        let port = |outside: &super::Outside| match &outside.link {
            OutsideLink::Udp(udp) => udp.listen.first().map(SocketAddr::port),
            OutsideLink::Raw(_) | OutsideLink::Xdp { .. } | OutsideLink::Dpdk { .. } => None,
        };
        Host {
            table: std::iter::once("forebay_").map(str::to_owned).chain([name.collect()]).collect(),
            inside: inside.into_iter().chain(self.guard.interfaces.iter().cloned()).collect(),
            ports: self.outside.iter().filter_map(port).collect(),
            ways: None,
        }
    }

    /// The policies of the file, and where a direction has none its SAs; none where they come from the kernel.
    pub fn guard_entries(&self) -> Vec<Entry> {
        match (&self.keys.source, &self.whole) {
            (KeySource::Static { .. }, Some((entries, _))) => entries.clone(),
            (KeySource::Static { .. }, None) => entries(&self.sas),
            (KeySource::Xfrm(_), _) => vec![],
        }
    }
}

pub(super) fn entries(file: &SasFile) -> Vec<Entry> {
    let mut entries = Vec::new();
    for direction in [Direction::Seal, Direction::Open] {
        let policies = file.policies.iter().map(|entry| &entry.policy);
        let mut policies = policies.filter(|policy| policy.direction == direction).peekable();
        let entry = |bypasses, local_ts: &[_], remote_ts: &[_], peers| Entry {
            direction,
            bypasses,
            local_ts: local_ts.to_vec(),
            remote_ts: remote_ts.to_vec(),
            interface: None,
            peers,
        };
        let of_sa = |sa: &SaEntry| entry(false, &sa.config.local_ts, &sa.config.remote_ts, peers(file, sa));
        if policies.peek().is_none() {
            // What goes around another SA has that one's packets.
            let outer: HashSet<usize> = file.entries.iter().filter_map(|entry| entry.outer).collect();
            for (place, sa) in file.entries.iter().enumerate() {
                if sa.direction == direction && !outer.contains(&place) {
                    entries.push(of_sa(sa));
                }
            }
            continue;
        }
        for policy in policies {
            match &policy.action {
                Action::Bypass => entries.push(entry(true, &policy.local_ts, &policy.remote_ts, vec![])),
                Action::Discard => {}
                Action::Protect(sas) => {
                    let sas = sas.iter().filter_map(|session| file.entries.get(session.0 as usize));
                    if policy.remote_ts.is_empty() {
                        // Which addresses are meant its SAs say.
                        entries.extend(sas.map(of_sa));
                    } else {
                        let peers = sas.flat_map(|sa| peers(file, sa)).collect();
                        entries.push(entry(false, &policy.local_ts, &policy.remote_ts, peers));
                    }
                }
            }
        }
    }
    entries
}

/// The outer addresses that packets of an SA, and of those around it, come from.
fn peers(file: &SasFile, sa: &SaEntry) -> Vec<IpAddr> {
    let outer = |sa: &&SaEntry| file.entries.get(sa.outer?);
    let sas = std::iter::successors(Some(sa), outer).take(file.entries.len());
    // Of a name that is not resolved there is none.
    sas.map(|sa| sa.config.remote).filter(|remote| !remote.is_unspecified()).collect()
}

/// Notes what the guard leaves open, and peers that it makes hard to reach.
pub(super) fn check(config: &Config, context: &Context<'_>) {
    if config.guard.mode == GuardMode::Off {
        return;
    }
    let plan = Plan::of(&config.guard_entries(), &config.guard.except);
    if plan.any_to_any > 0 {
        let message = format!(
            "{} of the policies or SAs protect any address from any, or equal networks from each other: no address says on \
             which side it belongs, and packets in the clear are not kept from passing beside the gateway",
            plan.any_to_any
        );
        let help = "set `local_ts` and `remote_ts` to different networks, so that addresses belong to a side, or install rules of your own";
        context.advise(message, help, &super::whole());
    }
    if plan.left_out > 0 {
        let message = format!(
            "{} address ranges of bypass policies exceed the guard's limit; it drops their packets",
            plan.left_out
        );
        context.advise(
            message,
            "bypass fewer ranges, or set `mode` of `[guard]` to \"print\"",
            &super::whole(),
        );
    }
}
