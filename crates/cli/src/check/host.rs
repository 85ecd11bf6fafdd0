//! What a gateway's file names and this machine does not have: addresses, interfaces, CPUs, a user, a group, directories. The gateway would
//! not start, or not as the file has it; what comes only later, as an address by DHCP does, may be missing now.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;

use forebay_config::{Config, InsideLink, Listen, OutsideLink};
use forebay_links::interface::Interface;
use miette::Severity;

use super::machine::Lack;

/// Reports all of these. `root` is where `/etc` and `/sys` are.
pub fn misses(config: &Config, root: &Path) -> Vec<Lack> {
    misses_of(config, root, is_here)
}

/// The same of a machine whose addresses `is_here` knows.
fn misses_of(config: &Config, root: &Path, is_here: impl Fn(IpAddr) -> bool) -> Vec<Lack> {
    let lack = |message: String, help: &'static str| Lack { severity: Severity::Warning, message, help };
    let mut lacks = Vec::new();
    lacks.extend(addresses(config).into_iter().filter(|(_, address)| !is_here(*address)).map(|(key, address)| {
        lack(
            format!("`{key}` has {address}, which is an address of no interface of this machine"),
            "give the interface that address, or name another one; addresses that VRRP moves need net.ipv4.ip_nonlocal_bind = 1",
        )
    }));
    lacks.extend(interfaces(config).into_iter().filter(|(_, name)| !exists(name)).map(|(key, name)| {
        lack(
            format!("`{key}` names the interface `{name}`, which this machine does not have"),
            "see `ip link`",
        )
    }));
    lacks.extend(taken(config, root).map(|name| {
        lack(
            format!("`name` of [inside] is `{name}`, an interface of this machine that is no TUN interface"),
            "give the interface that the gateway is to make a name that no other one has",
        )
    }));
    lacks.extend(cpus(config, root).map(|cpu| {
        lack(
            format!("`pin` names CPU {cpu}, which is not online on this machine"),
            "see /sys/devices/system/cpu/online",
        )
    }));
    lacks.extend(accounts(config, root).map(|(what, name)| {
        lack(
            format!(
                "the {what} `{name}` is not in {}",
                if what == "user" { "/etc/passwd" } else { "/etc/group" }
            ),
            "make it (`adduser --system --group NAME`), or name another one",
        )
    }));
    lacks.extend(directories(config).map(|(key, path)| {
        lack(
            format!("`{key}`: the directory {} does not exist", path.display()),
            "make the directory, or give another path",
        )
    }));
    lacks
}

/// The addresses at which sockets are bound.
fn addresses(config: &Config) -> BTreeSet<(&'static str, IpAddr)> {
    let mut found = BTreeSet::new();
    for outside in &config.outside {
        match &outside.link {
            OutsideLink::Udp(udp) => found.extend(udp.listen.iter().map(|at| ("listen", at.ip()))),
            OutsideLink::Raw(raw) => found.extend(raw.addresses.iter().map(|at| ("addresses", *at))),
            OutsideLink::Xdp { .. } | OutsideLink::Dpdk { .. } => {}
        }
    }
    // Only gateway 0 of a pair listens.
    let pair = config.pair.iter().filter(|pair| pair.number == 0);
    found.extend(pair.flat_map(|pair| &pair.listen).map(|at| ("listen", at.ip())));
    found.extend(config.metrics.iter().map(|metrics| ("listen", metrics.listen.ip())));
    found.extend(config.page.iter().filter_map(|page| match &page.listen {
        Listen::Tcp(at) => Some(("listen", at.ip())),
        Listen::Unix(_) => None,
    }));
    // What the gateway gives an interface itself is there when it is needed.
    let mut given: BTreeSet<IpAddr> = config.shared_addresses().map(|one| one.address.addr()).collect();
    if let InsideLink::Tun(tun) = &config.inside.link {
        given.extend(tun.addresses.iter().map(|one| one.addr()));
    }
    found.retain(|(_, address)| !given.contains(address));
    found
}

/// Whether sockets can have the address. Of an IP version that the machine does not have nothing is said here.
fn is_here(address: IpAddr) -> bool {
    match UdpSocket::bind((address, 0)) {
        Err(error) => error.kind() != io::ErrorKind::AddrNotAvailable,
        Ok(_) => true,
    }
}

/// Interfaces that have to be there already.
fn interfaces(config: &Config) -> BTreeSet<(&'static str, &str)> {
    let mut found = BTreeSet::new();
    if let InsideLink::Xdp { card, .. } = &config.inside.link {
        found.insert(("interface", card.interface.as_str()));
    }
    for outside in &config.outside {
        if let OutsideLink::Xdp { card, .. } = &outside.link {
            found.insert(("interface", card.interface.as_str()));
        }
    }
    found.extend(config.shared_addresses().map(|one| ("addresses", one.interface.as_str())));
    if let InsideLink::Tun(tun) = &config.inside.link {
        // The gateway makes that one.
        found.remove(&("addresses", tun.name.as_str()));
    }
    found
}

fn exists(interface: &str) -> bool {
    !matches!(Interface::by_name(interface), Err(error) if error.raw_os_error() == Some(NO_DEVICE))
}

/// ENODEV.
const NO_DEVICE: i32 = 19;

fn taken<'a>(config: &'a Config, root: &Path) -> Option<&'a str> {
    let InsideLink::Tun(tun) = &config.inside.link else { return None };
    let interface = root.join("sys/class/net").join(&tun.name);
    (interface.exists() && !interface.join("tun_flags").exists()).then_some(&tun.name)
}

/// The first CPU that is not online.
fn cpus(config: &Config, root: &Path) -> Option<u32> {
    let online = fs::read_to_string(root.join("sys/devices/system/cpu/online")).ok()?;
    let is_online = |cpu: u32| {
        online.trim().split(',').any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            matches!((first.parse::<u32>(), last.parse::<u32>()), (Ok(first), Ok(last)) if first <= cpu && cpu <= last)
        })
    };
    config.processors.iter().flat_map(|one| one.cpus()).copied().find(|cpu| !is_online(*cpu))
}

/// Users and groups that are not there.
fn accounts<'a>(config: &'a Config, root: &Path) -> impl Iterator<Item = (&'static str, &'a str)> {
    let has = |file: &str, name: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        text.is_empty() || text.lines().any(|line| line.split(':').next() == Some(name))
    };
    let user = config.privileges.user.as_deref().filter(|name| !has("etc/passwd", name));
    let group = config.control.group.as_deref();
    let group = group.filter(|name| name.parse::<u32>().is_err() && !has("etc/group", name));
    user.map(|name| ("user", name)).into_iter().chain(group.map(|name| ("group", name)))
}

/// Directories that the gateway does not make and in which it is to write.
fn directories(config: &Config) -> impl Iterator<Item = (&'static str, &Path)> {
    // Of captures the last part is made.
    let taps = config.taps.as_ref().and_then(|taps| taps.directory.parent()).map(|path| ("directory", path));
    let export = config.esp_sa_export.as_deref().and_then(Path::parent).map(|path| ("esp_sa_export", path));
    let is_missing = |path: &Path| !path.as_os_str().is_empty() && !path.is_dir();
    taps.into_iter().chain(export).filter(move |(_, path)| is_missing(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n";

    fn said(text: &str, files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let config = forebay_config::parse(text, "g.toml", Path::new("")).unwrap();
        let is_here = |address: IpAddr| address.is_loopback() || address.is_unspecified();
        misses_of(&config, root.path(), is_here).into_iter().map(|lack| lack.message).collect()
    }

    /// 192.0.2.0/24 is for documentation (RFC 5737).
    #[test]
    fn addresses_that_this_machine_does_not_have_are_named() {
        let at = |text: &str| said(text, &[]);
        let link = |link: &str| format!("[[outside]]\n{link}\n[keys]\nsource = \"xfrm\"\n");
        for (text, address) in [
            (link("kind = \"udp\"\nlisten = \"192.0.2.77:4500\""), Some("192.0.2.77")),
            (link("kind = \"udp\"\nlisten = \"127.0.0.1:4500\""), None),
            (link("kind = \"udp\""), None),
            (link("kind = \"raw\"\naddresses = [\"127.0.0.1\", \"192.0.2.78\"]"), Some("192.0.2.78")),
            // The interface that the gateway makes has it.
            (
                format!(
                    "[inside]\naddresses = [\"192.0.2.79/32\"]\n[metrics]\nlisten = \"192.0.2.79:1\"\n{REST}"
                ),
                None,
            ),
            (format!("[metrics]\nlisten = \"192.0.2.79:1\"\n{REST}"), Some("192.0.2.79")),
        ] {
            let found = at(&text);
            let named: Vec<_> =
                found.iter().filter(|one| one.contains("an address of no interface")).collect();
            assert_eq!(named.len(), usize::from(address.is_some()), "{text}: {found:?}");
            assert!(named.iter().all(|one| one.contains(address.unwrap_or_default())), "{found:?}");
        }
    }

    #[test]
    fn interfaces_cpus_accounts_and_directories_that_are_missing_are_named() {
        let root = [
            ("etc/passwd", "root:x:0:0::/:\n"),
            ("etc/group", "root:x:0:\n"),
            ("sys/devices/system/cpu/online", "0-1,4\n"),
            ("sys/class/net/eth0/address", ""),
            ("sys/class/net/fb0/tun_flags", ""),
        ];
        for (text, message) in [
            ("[inside]\nname = \"eth0\"\n", Some("no TUN interface")),
            ("[inside]\nname = \"fb0\"\n", None),
            (
                "[inside]\nkind = \"xdp\"\ninterface = \"nope0\"\nroutes = []\n",
                Some("`nope0`, which this machine does not have"),
            ),
            ("[privileges]\nuser = \"nobody2\"\n", Some("the user `nobody2`")),
            ("[privileges]\nuser = \"root\"\n", None),
            ("[control]\nmode = \"0660\"\ngroup = \"staff2\"\n", Some("the group `staff2`")),
            ("[control]\nmode = \"0660\"\ngroup = \"root\"\n", None),
            ("[[processor]]\nkind = \"core\"\npin = [2]\n", Some("CPU 2")),
            ("[[processor]]\nkind = \"core\"\npin = [4]\n", None),
            ("[taps]\ndirectory = \"/nowhere/else/taps\"\n", Some("/nowhere/else")),
            ("[taps]\ndirectory = \"/nowhere\"\n", None),
        ] {
            let found = said(&format!("{text}{REST}"), &root);
            assert_eq!(found.len(), usize::from(message.is_some()), "{text}: {found:?}");
            assert!(found.iter().all(|one| one.contains(message.unwrap_or_default())), "{text}: {found:?}");
        }
        let found = said(&format!("esp_sa_export = \"/nowhere/else/keys\"\n{REST}"), &root);
        assert!(
            matches!(&found[..], [one] if one.contains("`esp_sa_export`: the directory /nowhere/else")),
            "{found:?}"
        );
    }
}
