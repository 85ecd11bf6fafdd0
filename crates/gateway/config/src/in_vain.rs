//! Warnings about what is accepted and cannot do what it is there for: addresses of the interface that are a peer's, selectors the wrong
//! way round, policies whose SAs carry none of their packets, and exceptions of the guard.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_guard::Plan;
use forebay_ipsec::{Action, Rule, TrafficSelector};
use forebay_sas::mask::shown;
use forebay_sas::{Peer, SaEntry};
use forebay_scenario::Table;

use super::reader::Context;
use super::{Config, GuardMode, InsideLink, KeySource, place_of_key, place_of_line, place_of_sa, whole};

/// Warns of all that.
pub(super) fn check(config: &Config, top: &Table, text: &str, context: &Context<'_>) {
    own_addresses(config, top, context);
    turned_round(config, text, context);
    disjoint(config, text, context);
    shared_integrity_keys(config, text, context);
    exceptions(config, top, context);
}

/// Addresses that the interface would have and that are a peer's, or of a network behind one: this host would keep their packets.
fn own_addresses(config: &Config, top: &Table, context: &Context<'_>) {
    let InsideLink::Tun(tun) = &config.inside.link else { return };
    // It gets the IPv4 address of `answer`, too, if it has none.
    let has_own = place_of_key(top, "inside", "addresses").is_some();
    let is_answer = |address: IpAddr| {
        !has_own || tun.addresses.len() > 1 && config.inside.answer.v4.map(IpAddr::V4) == Some(address)
    };
    let key = |address: IpAddr| {
        let answers = place_of_key(top, "inside", "answer").is_some() && is_answer(address);
        if answers { "answer" } else { "addresses" }
    };
    let own = tun.addresses.iter().map(|one| (key(one.addr()), one.addr()));
    let entries = &config.sas.entries;
    let within = |of: &dyn Fn(&SaEntry) -> &[TrafficSelector], address: IpAddr| {
        entries.iter().find(|entry| has(of(entry), address)).map(|entry| shown(&entry.config.name))
    };
    for (key, address) in own {
        let peer = entries.iter().find(|entry| entry.remote_name.is_none() && entry.config.remote == address);
        let whose = match peer {
            Some(entry) => format!("the peer of SA `{}`", shown(&entry.config.name)),
            None => {
                let local = within(&|entry| &entry.config.local_ts, address);
                let remote = within(&|entry| &entry.config.remote_ts, address);
                let Some(name) = remote.filter(|_| local.is_none()) else { continue };
                format!("in `remote_ts` of SA `{name}`")
            }
        };
        let message =
            format!("`{key}` has {address}, {whose}: this host would take that host's packets for its own");
        let help = "give an address of this gateway, such as its own in the protected network";
        context.advise(message, help, &place_of_key(top, "inside", key).unwrap_or_else(whole));
    }
}

/// Whether one of the selectors contains the address, and not all addresses: the Internet is behind a peer without being its network.
fn has(selectors: &[TrafficSelector], address: IpAddr) -> bool {
    let is_last = |last: IpAddr| match last {
        IpAddr::V4(last) => last.is_broadcast(),
        IpAddr::V6(last) => u128::from(last) == u128::MAX,
    };
    let contains = |one: &TrafficSelector| {
        one.addresses().is_some_and(|(first, last)| {
            let is_any = first.is_unspecified() && is_last(last);
            !is_any && first.is_ipv4() == address.is_ipv4() && first <= address && address <= last
        })
    };
    selectors.iter().any(contains)
}

/// Inbound SAs whose selectors are those of an outbound one of the same peer, with the sides exchanged: `local_ts` is this side in both
/// directions.
fn turned_round(config: &Config, text: &str, context: &Context<'_>) {
    type Networks<'a> = (&'a [TrafficSelector], &'a [TrafficSelector]);
    let entries = &config.sas.entries;
    let ends = |entry: &SaEntry| (entry.config.local, entry.peer());
    let seals = |entry: &&SaEntry| entry.direction == Direction::Seal;
    let outbound: HashSet<((IpAddr, Peer), Networks<'_>)> = entries
        .iter()
        .filter(seals)
        .map(|entry| (ends(entry), (&entry.config.local_ts[..], &entry.config.remote_ts[..])))
        .collect();
    let is_turned = |entry: &&SaEntry| {
        let (local, remote) = (&entry.config.local_ts[..], &entry.config.remote_ts[..]);
        entry.direction == Direction::Open
            && local != remote
            && outbound.contains(&(ends(entry), (remote, local)))
            && !outbound.contains(&(ends(entry), (local, remote)))
    };
    let mut turned = entries.iter().filter(is_turned);
    let Some(first) = turned.next() else { return };
    let others = match turned.count() {
        0 => String::new(),
        more => format!(" ({more} more)"),
    };
    context.advise(
        format!(
            "inbound SA `{}` has as `local_ts` what the outbound SA to the same peer has as `remote_ts`, and the reverse{others}",
            shown(&first.config.name)
        ),
        "`local_ts` are the networks of this side and `remote_ts` those of the peer, in both directions: exchange the two, unless \
         each side has both",
        &place_of_sa(config, text, first),
    );
}

/// Policies that protect by an SA whose selectors contain none of their packets.
fn disjoint(config: &Config, text: &str, context: &Context<'_>) {
    for entry in &config.sas.policies {
        let policy = &entry.policy;
        let Action::Protect(sas) = &policy.action else { continue };
        let rule = Rule::new(&policy.local_ts, &policy.remote_ts, policy.dscp);
        let never = |sa: &&SaEntry| {
            !rule.meets(&Rule::new(&sa.config.local_ts, &sa.config.remote_ts, sa.config.dscp))
        };
        let sas = sas.iter().filter_map(|session| config.sas.entries.get(session.0 as usize));
        let Some(sa) = sas.into_iter().find(never) else { continue };
        let message = format!(
            "policy `{}` protects by SA `{}`, whose selectors contain none of its packets: the SA never carries them",
            shown(&policy.name),
            shown(&sa.config.name)
        );
        let place = match config.keys.source {
            KeySource::Static { sas: None, .. } => place_of_line(text, entry.line),
            _ => whole(),
        };
        context.advise(message, "let the selectors of the policy and of its SA overlap", &place);
    }
}

/// Integrity keys that are also another key: packets of one SA are authentic as those of the other where their suites are alike. Shared
/// cipher keys are errors of the file.
fn shared_integrity_keys(config: &Config, text: &str, context: &Context<'_>) {
    let entries = &config.sas.entries;
    // The keys are compared where they are.
    let ciphers = entries.iter().map(|entry| (entry.keys.cipher(), entry)).filter(|(key, _)| !key.is_empty());
    let mut owners: HashMap<&[u8], (&SaEntry, &str)> =
        ciphers.map(|(key, entry)| (key, (entry, "the cipher key"))).collect();
    for entry in entries.iter().filter(|entry| !entry.keys.integrity().is_empty()) {
        let Some((first, which)) = owners.insert(entry.keys.integrity(), (entry, "the integrity key")) else {
            continue;
        };
        let message = format!(
            "the integrity key of SA `{}` is also {which} of SA `{}`",
            shown(&entry.config.name),
            shown(&first.config.name)
        );
        let help =
            "give every SA and direction keys of its own, made by `forebay keygen`, and the peer the same";
        context.advise(message, help, &place_of_sa(config, text, entry));
        // One is enough: files are often made by one program.
        return;
    }
}

/// Exceptions of the guard that leave nothing guarded, or that are about no protected network.
fn exceptions(config: &Config, top: &Table, context: &Context<'_>) {
    let is_static = matches!(config.keys.source, KeySource::Static { .. });
    let excepted = &config.guard.except;
    if excepted.is_empty() || !is_static || config.guard.mode == GuardMode::Off {
        return;
    }
    let place = || place_of_key(top, "guard", "except").unwrap_or_else(whole);
    let entries = config.guard_entries();
    let ranges = |except: &[ipnet::IpNet]| Plan::of(&entries, except).ranges();
    let all = ranges(&[]);
    if all > 0 && ranges(excepted) == 0 {
        context.advise(
            "`except` contains all protected networks: the guard drops nothing, and their packets can pass in the clear".to_owned(),
            "except only addresses that packets in the clear have to reach, such as this host's own in the remote network",
            &place(),
        );
        return;
    }
    let selectors = || entries.iter().filter(|entry| !entry.bypasses).map(|entry| &entry.remote_ts);
    // Those of all addresses are guarded by their other side.
    if selectors().any(|selectors| selectors.is_empty()) {
        return;
    }
    let meets = |net: &&ipnet::IpNet| {
        let (first, last) = (net.network(), net.broadcast());
        selectors().flatten().any(|selector| {
            selector
                .addresses()
                .is_none_or(|(from, to)| from.is_ipv4() == first.is_ipv4() && from <= last && first <= to)
        })
    };
    for net in excepted.iter().filter(|net| !meets(net)) {
        context.advise(
            format!("`except` has {net}, which is in no `remote_ts`: it has no effect"),
            "leave it out: the guard only holds back packets from and to networks in remote selectors",
            &place(),
        );
    }
}
