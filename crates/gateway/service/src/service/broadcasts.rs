//! Addresses of the gateway that are broadcast addresses of its host's networks.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use forebay_config::Tun;

/// What to do about such an address.
pub const BROADCAST_HELP: &str =
    "give `addresses` or `answer` of [inside] an address that is this gateway's alone";

/// Addresses of the interface that are broadcast addresses of the host's networks: as the gateway's own, they end broadcasts
/// there. `root` is where `/proc` is. That another interface of the host has one of the addresses does no harm.
pub fn broadcasts(tun: &Tun, root: &Path) -> Vec<Ipv4Addr> {
    let Ok(table) = fs::read_to_string(root.join("proc/net/fib_trie")) else { return vec![] };
    let own = |address: &Ipv4Addr| tun.addresses.iter().any(|one| one.addr() == IpAddr::V4(*address));
    let mut found: Vec<Ipv4Addr> = all(&table).filter(own).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// All broadcast addresses of the table: an address has its kinds on the lines behind it.
fn all(table: &str) -> impl Iterator<Item = Ipv4Addr> {
    let mut address = None;
    table.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(text) = line.strip_prefix("|-- ") {
            address = text.trim().parse().ok();
            return None;
        }
        let is_broadcast = line.starts_with("/32 ") && line.split(' ').any(|word| word == "BROADCAST");
        address.filter(|_| is_broadcast)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcast_addresses_are_told_from_hosts() {
        let table = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 192.0.2.2\n        /32 host LOCAL\n     |-- 192.0.2.255\n        \
                     /32 link BROADCAST\n     |-- 192.0.2.0\n        /24 link UNICAST\n";
        assert_eq!(all(table).collect::<Vec<_>>(), [Ipv4Addr::new(192, 0, 2, 255)]);
    }
}
