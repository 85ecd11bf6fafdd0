//! What this machine lacks for a gateway's file, beyond devices: ESP in the kernel, settings of the network, capabilities.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use forebay_config::{Config, InsideLink, KeySource};
use forebay_gateway::service::{BROADCAST_HELP, broadcasts};
use miette::Severity;

/// What is lacking, how badly, and what to do.
pub struct Lack {
    pub severity: Severity,
    pub message: String,
    pub help: &'static str,
}

/// Everything that this machine lacks. `root` is where its `/proc` and `/lib` are.
pub fn lacks(config: &Config, root: &Path) -> Vec<Lack> {
    let machine = Machine { root };
    let mut lacks = Vec::new();
    if matches!(config.keys.source, KeySource::Xfrm(_)) && machine.has_esp() == Some(false) {
        lacks.push(Lack {
            severity: Severity::Error,
            message: "`source` is \"xfrm\", and this kernel has no ESP: an IKE daemon cannot give it SAs, so there \
                      would be none"
                .to_owned(),
            help: "load esp4 and esp6 (modprobe), or run a kernel with CONFIG_INET_ESP and CONFIG_INET6_ESP; or keep SAs in \
                   the file: source = \"static\"",
        });
    }
    // What is taken from a card and given to it does not pass the host's stack.
    if let InsideLink::Tun(tun) = &config.inside.link {
        lacks.extend(machine.forwarding(config));
        lacks.extend(machine.disabled_ipv6(config, &tun.name));
        lacks.extend(broadcasts(tun, root).into_iter().map(|address| Lack {
            severity: Severity::Warning,
            message: format!(
                "`{}` gets the address {address}, the broadcast address of a network of this host, whose broadcasts would end \
                 at the gateway",
                tun.name
            ),
            help: BROADCAST_HELP,
        }));
    }
    lacks.extend(machine.capabilities());
    lacks
}

/// A host as its kernel describes it in files.
struct Machine<'a> {
    root: &'a Path,
}

impl Machine<'_> {
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    fn is(&self, path: &str, value: &str) -> bool {
        self.read(path).is_some_and(|text| text.trim() == value)
    }

    /// Whether the kernel has ESP, or a module that it can load; `None`: there is no telling.
    fn has_esp(&self) -> Option<bool> {
        let symbols = self.read("proc/kallsyms").filter(|symbols| !symbols.is_empty())?;
        let has_symbol =
            symbols.lines().any(|line| line.split(' ').any(|word| word.starts_with("esp_init_state")));
        let release = self.read("proc/sys/kernel/osrelease").unwrap_or_default();
        let list = |list| self.read(&format!("lib/modules/{}/{list}", release.trim()));
        let modules = [list("modules.dep"), list("modules.builtin")];
        let has_module = modules.iter().flatten().any(|modules| modules.contains("/esp4.ko"));
        // Where a kernel has modules and a container not their lists, one that has not been loaded is not seen.
        let takes_modules = self.root.join("proc/modules").exists();
        let is_known = !takes_modules || modules.iter().any(Option::is_some);
        if has_symbol || has_module { Some(true) } else { is_known.then_some(false) }
    }

    fn forwarding(&self, config: &Config) -> Option<Lack> {
        let off = |path| self.is(path, "0");
        let (v4, v6) = families(config);
        let missing = match (
            v4 && off("proc/sys/net/ipv4/ip_forward"),
            v6 && off("proc/sys/net/ipv6/conf/all/forwarding"),
        ) {
            (true, true) => "net.ipv4.ip_forward and net.ipv6.conf.all.forwarding are 0",
            (true, false) => "net.ipv4.ip_forward is 0",
            (false, true) => "net.ipv6.conf.all.forwarding is 0",
            (false, false) => return None,
        };
        Some(Lack {
            severity: Severity::Warning,
            message: format!(
                "{missing}: the kernel forwards no packets between the inside network and the tunnel"
            ),
            help: "set it to 1 in /etc/sysctl.d, unless only programs of this host use the tunnel",
        })
    }

    fn disabled_ipv6(&self, config: &Config, interface: &str) -> Option<Lack> {
        let off = |name: &str| self.is(&format!("proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        // A unit may hide all settings.
        let there = |version: &str| self.root.join(format!("proc/sys/net/{version}")).exists();
        let whole = there("ipv4") && !there("ipv6");
        let wants = families(config).1;
        if !wants || !(whole || off("all") || off("default") || off(interface)) {
            return None;
        }
        Some(Lack {
            severity: Severity::Warning,
            message: "the file has IPv6 addresses or networks, and IPv6 is disabled on this machine: no IPv6 packet enters or leaves \
                      the tunnel, and peers with IPv6 addresses may be out of reach"
                .to_owned(),
            help: "set net.ipv6.conf.all.disable_ipv6 and net.ipv6.conf.default.disable_ipv6 to 0, or take IPv6 out of the file",
        })
    }

    fn capabilities(&self) -> Option<Lack> {
        const NET_ADMIN: u32 = 12;
        let status = self.read("proc/self/status")?;
        let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:"))?;
        let bounding = u64::from_str_radix(bounding.trim(), 16).ok()?;
        if bounding >> NET_ADMIN & 1 == 1 {
            return None;
        }
        Some(Lack {
            severity: Severity::Warning,
            message: "no process here can have CAP_NET_ADMIN, which the gateway requires for its interface and routes".to_owned(),
            help: "give the container that capability (docker run --cap-add NET_ADMIN), or run the gateway on the host",
        })
    }
}

/// The IP versions that networks of the file name. Networks of the kernel's SAs are not known here.
fn families(config: &Config) -> (bool, bool) {
    let selectors = config.sas.entries.iter().flat_map(|entry| entry.config.remote_ts.iter());
    let selectors =
        selectors.chain(config.sas.policies.iter().flat_map(|entry| entry.policy.remote_ts.iter()));
    let inner = selectors.filter_map(|selector| selector.addresses()).map(|(first, _)| first);
    let own = match &config.inside.link {
        InsideLink::Tun(tun) => tun.addresses.iter().map(|net| net.addr()).collect(),
        InsideLink::Xdp { .. } => vec![],
        InsideLink::Dpdk(device) => device.addresses.iter().map(|net| net.addr()).collect(),
    };
    let outer = config.sas.entries.iter().map(|entry| entry.config.remote);
    let all: Vec<IpAddr> = inner.chain(own).collect();
    let v6 = all.iter().any(IpAddr::is_ipv6) || outer.into_iter().any(|address| address.is_ipv6());
    (all.is_empty() || all.iter().any(IpAddr::is_ipv4), v6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        forebay_config::parse(text, "g.toml", Path::new("")).unwrap()
    }

    /// What is said of a machine that has these files.
    fn said(config: &Config, files: &[(&str, &str)]) -> String {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let lacks = lacks(config, root.path());
        lacks.iter().map(|lack| format!("{:?} {}\n", lack.severity, lack.message)).collect()
    }

    #[test]
    fn a_kernel_without_esp_is_an_error_for_keys_from_it() {
        let xfrm = config("[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n");
        let ipv6 = ("proc/sys/net/ipv6/conf/all/disable_ipv6", "0\n");
        let without = [("proc/kallsyms", "0 t xfrm_init_state\n"), ipv6];
        assert!(said(&xfrm, &without).starts_with("Error `source` is \"xfrm\", and this kernel has no ESP"));
        let with = [("proc/kallsyms", "0 t esp_init_state\t[esp4]\n"), ipv6];
        assert_eq!(said(&xfrm, &with), "");
        let module = [
            ("proc/kallsyms", "0 t xfrm_init_state\n"),
            ("proc/sys/kernel/osrelease", "6.1\n"),
            ("lib/modules/6.1/modules.dep", "kernel/net/ipv4/esp4.ko.zst: kernel/net/xfrm.ko\n"),
            ipv6,
        ];
        assert_eq!(said(&xfrm, &module), "");
        let unseen =
            [("proc/kallsyms", "0 t xfrm_init_state\n"), ("proc/modules", "xfrm_user 1 0 - Live\n"), ipv6];
        assert_eq!(said(&xfrm, &unseen), "", "a module may be there that has not been loaded");
        assert_eq!(said(&xfrm, &[ipv6]), "", "nothing is known of a kernel that shows no symbols");
    }

    #[test]
    fn settings_that_keep_packets_from_the_tunnel_are_warnings() {
        const SA: &str = "[[outside]]\nkind = \"raw\"\n[[sa]]\nname = \"a\"\ndirection = \"out\"\nspi = 0x1001\n\
            proposal = \"aes128gcm16\"\nkey = \"000102030405060708090a0b0c0d0e0fdeadbeef\"\nlocal = \"192.0.2.1\"\n\
            remote = \"192.0.2.2\"\nremote_ts = [\"10.2.0.0/16\", \"fd02::/64\"]\n";
        let file = config(SA);
        let text = said(
            &file,
            &[
                ("proc/sys/net/ipv4/ip_forward", "0\n"),
                ("proc/sys/net/ipv6/conf/all/forwarding", "0\n"),
                ("proc/sys/net/ipv6/conf/all/disable_ipv6", "1\n"),
                ("proc/self/status", "CapBnd:\t0000000000000000\n"),
            ],
        );
        for part in ["ip_forward", "IPv6 is disabled", "CAP_NET_ADMIN"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("Error"));
        let well = [
            ("proc/sys/net/ipv4/ip_forward", "1\n"),
            ("proc/sys/net/ipv6/conf/all/forwarding", "1\n"),
            ("proc/sys/net/ipv6/conf/all/disable_ipv6", "0\n"),
            // The gateway makes this loose for its interface, and keeps it so.
            ("proc/sys/net/ipv4/conf/default/rp_filter", "1\n"),
            ("proc/sys/net/ipv4/conf/all/rp_filter", "1\n"),
            ("proc/self/status", "CapBnd:\t000001ffffffffff\n"),
        ];
        assert_eq!(said(&file, &well), "");
    }
    #[test]
    fn an_address_of_the_gateway_that_is_a_networks_broadcast_is_a_warning() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.0.1\n        /32 host LOCAL\n     |-- 10.1.0.255\n        /32 link \
                    BROADCAST\n";
        for (inside, warned) in [
            ("answer = [\"10.1.0.255\"]", true),
            ("addresses = [\"10.1.0.255/32\"]", true),
            // An interface of the host that has the same address is the usual case (docs/gateway.md).
            ("answer = [\"10.1.0.1\"]", false),
        ] {
            let file = config(&format!(
                "[inside]\n{inside}\n[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n"
            ));
            let text = said(&file, &[("proc/net/fib_trie", trie)]);
            assert_eq!(text.contains("the broadcast address of a network"), warned, "{inside}: {text}");
        }
    }
}
