//! Peers that a gateway's file calls by host names.

use std::net::IpAddr;
use std::path::Path;

use forebay_config::Config;
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::Action;
use forebay_sas::HostName;

const LINK: &str = "[[outside]]\nkind = \"udp\"\n";

fn sa(name: &str, direction: &str, spi: u32, remote: &str, rest: &str) -> String {
    format!(
        "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes128gcm16\"\nkey = \"{}\"\n\
         local = \"192.0.2.1\"\nremote = \"{remote}\"\nencapsulation = \"udp\"\nlocal_ts = [\"10.1.0.0/16\"]\n{rest}\n",
        format!("{spi:04x}").repeat(10)
    )
}

fn parse(text: &str) -> Config {
    forebay_config::parse(text, "g.toml", Path::new("")).unwrap()
}

/// What is wrong with a file: each message, the line, and the hint.
fn wrong(text: &str) -> String {
    let errors = forebay_config::parse(text, "g.toml", Path::new("")).unwrap_err();
    let found = errors.findings().iter().map(forebay_sas::Finding::plain);
    found.map(|one| format!("{}: {} ({})\n", one.line.unwrap_or(0), one.message, one.hint)).collect()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_name_is_read_and_its_trust_is_warned_of() {
    let text = format!(
        "{LINK}{}{}",
        sa("out", "out", 0x1001, "VPN.example.org", "remote_ts = [\"10.2.0.0/16\"]"),
        sa("in", "in", 0x1002, "vpn.example.org", "remote_ts = [\"10.2.0.0/16\"]")
    );
    let config = parse(&text);
    let name: HostName = "vpn.example.org".parse().unwrap();
    assert!(config.names_wanted().into_iter().eq([(name.clone(), false)]));
    assert!(config.sas.entries.iter().all(|sa| sa.config.remote.is_unspecified()));
    let warning =
        config.warnings.iter().map(forebay_sas::Finding::plain).find(|one| one.message.contains("DNS"));
    let warning = warning.expect("a warning");
    assert_eq!(warning.line, Some(3));
    assert!(
        warning
            .message
            .contains("`remote` of SA `out` is the host name `vpn.example.org` (as that of 1 other SA)")
    );
    assert!(warning.hint.contains("docs/gateway.md#peers-by-host-name"));
    // There is no address yet that the guard could know.
    assert!(config.guard_entries().iter().all(|entry| entry.peers.is_empty()));

    let known =
        config.with_addresses(&|wanted, v6| (*wanted == name && !v6).then(|| address("198.51.100.7")));
    assert!(known.sas.entries.iter().all(|sa| sa.config.remote == address("198.51.100.7")));
    assert!(known.guard_entries().iter().all(|entry| entry.peers == [address("198.51.100.7")]));
    assert_eq!((known.names.len(), &known.names[0].left_out), (1, &vec![]));
    assert!(known.sas.policies.is_empty(), "nothing is left out");
}

#[test]
fn sas_without_an_address_are_left_out_and_nothing_takes_their_packets() {
    let text = format!(
        "{LINK}{}{}{}",
        sa("narrow", "out", 0x1001, "a.example", "remote_ts = [\"10.2.0.0/16\"]"),
        sa("wide", "out", 0x1002, "192.0.2.9", "remote_ts = [\"10.0.0.0/8\"]"),
        sa("in", "in", 0x1003, "a.example", "")
    );
    let config = parse(&text);
    let (routes, guarded) = (config.routes(), config.guard_entries());
    let part = config.with_addresses(&|_, _| None);
    let names: Vec<_> = part.sas.entries.iter().map(|sa| sa.config.name.as_str()).collect();
    assert_eq!(names, ["wide"]);
    assert_eq!(part.names[0].left_out, ["narrow", "in"]);
    assert_eq!(part.names[0].address, None);
    let outbound = part.sas.policies.iter().filter(|one| one.policy.direction == Direction::Seal);
    let actions: Vec<_> = outbound.map(|one| one.policy.action.clone()).collect();
    assert_eq!(actions, [Action::Discard, Action::Protect(vec![SessionId(0)])]);
    assert_eq!((part.discarded(), part.guard_entries()), (routes, guarded));
    // An address of the other IP version is none.
    assert_eq!(config.with_addresses(&|_, _| Some(address("2001:db8::1"))).sas.entries.len(), 1);
}

#[test]
fn an_sa_around_others_is_not_left_out_alone() {
    let text = format!(
        "{LINK}{}{}",
        sa("inner", "out", 0x1001, "192.0.2.9", "remote_ts = [\"10.2.0.0/16\"]\nouter = \"outer\""),
        sa("outer", "out", 0x1002, "a.example", "")
    );
    let part = parse(&text).with_addresses(&|_, _| None);
    assert!(part.sas.entries.is_empty());
    let actions: Vec<_> = part.sas.policies.iter().map(|one| one.policy.action.clone()).collect();
    assert_eq!(actions, [Action::Discard]);
}

#[test]
fn two_names_of_one_peer_do_not_have_one_spi() {
    let ts = |of: u32| format!("remote_ts = [\"10.{of}.0.0/16\"]");
    let twice = |second: &str| {
        let again = sa("b", "out", 0x1001, second, &ts(3)).replace("1001", "1111").replace("4097", "0x1001");
        format!("{LINK}{}{again}", sa("a", "out", 0x1001, "a.example", &ts(2)))
    };
    let said = wrong(&twice("A.example"));
    assert!(said.contains("outbound SPI 0x00001001 to a.example already belongs to SA `a`"), "{said}");
    let config = parse(&twice("b.example"));
    let part = config.with_addresses(&|_, _| Some(address("198.51.100.7")));
    assert_eq!(part.sas.entries.len(), 1);
    let left_out: Vec<_> = part.names.iter().flat_map(|one| &one.left_out).collect();
    assert_eq!(left_out, ["b"]);
    let apart = |name: &HostName, _: bool| {
        Some(address(if name.as_str() == "a.example" { "198.51.100.7" } else { "198.51.100.8" }))
    };
    assert_eq!(config.with_addresses(&apart).sas.entries.len(), 2);
}

#[test]
fn names_are_refused_where_they_cannot_be() {
    let named = |remote: &str, rest: &str| format!("{LINK}{}", sa("a", "in", 0x1001, remote, rest));
    for bad in ["vpn_1.example", "vpn.example:4500", "192.0.2.300", "-a.example", ""] {
        let said = wrong(&named(bad, ""));
        assert!(
            said.contains(&format!("10: `remote` is neither an IP address nor a host name: `{bad}`")),
            "{said}"
        );
        assert!(said.contains("vpn.example.org"), "{said}");
    }
    let said = wrong(&named("vpn.example", "mode = \"transport\""));
    assert!(said.contains("10: `remote` is the host name `vpn.example`: in transport mode"), "{said}");
    let pair = "[pair]\nnumber = 1\nkey_file = \"pair.key\"\nlinks = [{ local = \"10.9.0.1:4501\", peer = \"10.9.0.2:4501\" }]\n";
    let said = wrong(&(named("vpn.example", "") + pair));
    assert!(
        said.contains("3: `remote` of SA `a` is the host name `vpn.example`, in the file of a pair"),
        "{said}"
    );
    let many: String =
        (0..257).map(|n| sa(&format!("a{n}"), "in", 0x1001 + n, &format!("a{n}.example"), "")).collect();
    let said = wrong(&format!("{LINK}{many}"));
    assert!(said.contains("257 host names of peers exceed the limit of 256"), "{said}");
    // A file of SAs alone is for captures.
    let said =
        forebay_sas::parse(&sa("a", "in", 0x1001, "vpn.example", ""), "s.toml").unwrap_err().to_string();
    assert!(said.contains("1 error") || said.contains("not an IP address"), "{said}");
}

#[test]
fn another_address_of_a_name_keeps_the_sas_unless_another_one_had_its_place() {
    let text = format!(
        "{LINK}{}{}{}",
        sa("a", "out", 0x1001, "a.example", "remote_ts = [\"10.2.0.0/16\"]"),
        sa("b", "out", 0x1002, "b.example", "remote_ts = [\"10.3.0.0/16\"]")
            .replace("spi = 4098", "spi = 4097"),
        sa("in", "in", 0x1003, "a.example", "")
    );
    let config = parse(&text);
    let at = |a: &str, b: &str| {
        let (a, b) = (address(a), address(b));
        config.with_addresses(&|name, _| Some(if name.as_str() == "a.example" { a } else { b }))
    };
    let before = at("198.51.100.1", "198.51.100.2");
    let changes = Config::diff(&before, &at("198.51.100.1", "198.51.100.2"));
    assert_eq!((changes.kept, changes.moved), (vec![Some(0), Some(1), Some(2)], vec![]));
    let changes = Config::diff(&before, &at("198.51.100.3", "198.51.100.2"));
    assert_eq!((changes.kept, changes.moved), (vec![Some(0), Some(1), Some(2)], vec![0, 2]));
    assert!(changes.removed.is_empty() && !changes.policies);
    // They change places: each has the SPI of the other.
    let changes = Config::diff(&before, &at("198.51.100.2", "198.51.100.1"));
    assert_eq!((changes.kept, changes.moved), (vec![None, None, Some(2)], vec![2]));
    // An address in the place of the name is another peer.
    let literal = parse(&text.replace("a.example", "198.51.100.9"));
    let literal = literal.with_addresses(&|_, _| Some(address("198.51.100.2")));
    assert_eq!(Config::diff(&before, &literal).kept, [None, Some(1), None]);
}
