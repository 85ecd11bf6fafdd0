//! Warnings about addresses and selectors of SAs that no packet between two hosts has, or that contradict the mode of the SA.

use std::net::IpAddr;

use forebay_ipsec::{Mode, TrafficSelector};
use forebay_sas::SaEntry;
use forebay_sas::mask::shown;

use super::reader::Context;
use super::{Config, place_of_sa};

/// Notes SAs whose addresses never work between two hosts, and selectors that no packet has; of each kind the first SA, with the
/// number of the others.
pub(super) fn check(config: &Config, text: &str, context: &Context<'_>) {
    let entries = &config.sas.entries;
    let note = |says: &dyn Fn(&SaEntry) -> Option<String>, help: &str| {
        let mut all = entries.iter().filter_map(|entry| Some((entry, says(entry)?)));
        let Some((first, message)) = all.next() else { return };
        let others = match all.count() {
            0 => String::new(),
            1 => " (1 other SA too)".to_owned(),
            more => format!(" ({more} other SAs too)"),
        };
        let message = format!("SA `{}`: {message}{others}", shown(&first.config.name));
        context.advise(message, help, &place_of_sa(config, text, first));
    };
    note(
        &|entry| {
            let at = entry.config.local;
            (entry.remote_name.is_none() && at == entry.config.remote)
                .then(|| format!("`local` and `remote` are both {at}"))
        },
        "`local` is the outer address of this host, `remote` that of the peer",
    );
    note(
        &|entry| {
            let (local, remote) = (entry.config.local, entry.config.remote);
            let one = local.is_loopback() != remote.is_loopback();
            (entry.remote_name.is_none() && one).then(|| {
                format!("between {local} and {remote} no packet passes: one of them is a loopback address")
            })
        },
        "give both ends the addresses at which they reach each other",
    );
    note(
        &|entry| {
            let ends = [entry.config.local, entry.config.remote];
            ends.into_iter().find(is_link_local).map(|at| {
                format!(
                    "{at} is a link-local address, which names no interface: the kernel sends nothing to it"
                )
            })
        },
        "give global or unique local addresses (fd00::/8)",
    );
    note(
        &|entry| {
            let (local, remote) = (&entry.config.local_ts, &entry.config.remote_ts);
            let found =
                local.iter().map(|one| ("local_ts", one)).chain(remote.iter().map(|one| ("remote_ts", one)));
            // Between two gateways on one host, loopback addresses are as good as any.
            let mut never = found.filter(|(_, one)| is_loopback(one) && !entry.config.local.is_loopback());
            never
                .next()
                .map(|(key, one)| format!("`{key}` has {one}: loopback addresses are never on a network"))
        },
        "leave it out: name the networks behind both gateways",
    );
    // The packets of an SA around another one have that one's addresses.
    let is_nested = entries.iter().any(|entry| entry.outer.is_some());
    note(
        &|entry| {
            let config = &entry.config;
            let in_vain = config.mode == Mode::Transport
                && !is_nested
                && !(has(&config.local_ts, config.local) && has(&config.remote_ts, config.remote));
            in_vain.then(|| {
                "its mode is `transport`, in which packets keep their addresses, and its selectors do not contain `local` and \
                 `remote`"
                    .to_owned()
            })
        },
        "remove `mode` to protect packets between networks (tunnel mode), or leave `local_ts` and `remote_ts` out to protect those \
         between the two hosts",
    );
}

fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Whether one of the selectors contains the address; an empty list is any.
fn has(selectors: &[TrafficSelector], address: IpAddr) -> bool {
    let contains = |one: &TrafficSelector| match one.addresses() {
        None => true,
        Some((first, last)) => first <= address && address <= last && first.is_ipv4() == address.is_ipv4(),
    };
    selectors.is_empty() || selectors.iter().any(contains)
}

/// Whether no packet between two hosts has an address of this selector. Link-local addresses are not meant: BGP and
/// OSPFv3 through a tunnel have them.
fn is_loopback(selector: &TrafficSelector) -> bool {
    selector.addresses().is_some_and(|(first, last)| first.is_loopback() && last.is_loopback())
}
