//! Network devices by DPDK in a gateway's file.

use std::path::Path;

use forebay_config::{Config, InsideLink, NetworkDevice, OutsideLink, parse};

const DEVICE: &str = r#"kind = "dpdk"
device = "net_memif0"
arguments = "role=client"
addresses = ["10.1.0.1/24", "2001:db8::1/64"]
gateway = ["10.1.0.254", "fe80::1"]
neighbours = ["10.1.0.9=02:00:00:00:00:09"]
mtu = 9000
queues = 3
descriptors = 2048
"#;

fn read(inside: &str, outside: &str) -> Result<Config, Vec<String>> {
    let text = format!("[inside]\n{inside}\n[[outside]]\n{outside}\n[keys]\nsource = \"xfrm\"\n");
    let said = |problem: &dyn std::fmt::Display| problem.to_string();
    parse(&text, "g.toml", Path::new("/etc/forebay"))
        .map_err(|errors| errors.findings().iter().map(|one| said(one.problem())).collect())
}

#[test]
fn every_key_of_a_network_device_is_read() {
    let outside = DEVICE.replace("net_memif0", "0000:3d:00.1") + "ports = [4500, 4501]\n";
    let config = read(DEVICE, &outside).unwrap();
    let expected = NetworkDevice {
        device: "net_memif0".to_owned(),
        arguments: "role=client".to_owned(),
        addresses: vec!["10.1.0.1/24".parse().unwrap(), "2001:db8::1/64".parse().unwrap()],
        gateways: vec!["10.1.0.254".parse().unwrap(), "fe80::1".parse().unwrap()],
        neighbours: vec![("10.1.0.9".parse().unwrap(), [2, 0, 0, 0, 0, 9])],
        mtu: 9_000,
        queues: 3,
        descriptors: 2_048,
    };
    assert_eq!(config.inside.link, InsideLink::Dpdk(expected.clone()));
    assert_eq!(
        config.inside.answer.v4,
        Some([10, 1, 0, 1].into()),
        "the link's own, unless `answer` says another"
    );
    assert_eq!(expected.gateways.len(), 2, "`gateway` has a next hop of each IP version");
    let device = NetworkDevice { device: "0000:3d:00.1".to_owned(), ..expected };
    assert_eq!(config.outside[0].link, OutsideLink::Dpdk { device, ports: vec![4_500, 4_501] });
    assert_eq!(config.outside[0].name, "dpdk-1");
    assert_eq!((config.workers(|_| 1), config.network_devices().count()), (3, 2));
    assert!(config.routes().is_empty() && config.guard_host().inside.is_empty());
}

#[test]
fn defaults_are_those_of_the_reference() {
    const LEAST: &str = "kind = \"dpdk\"\ndevice = \"net_tap0\"\naddresses = [\"10.1.0.1/24\"]\n";
    let config = read(LEAST, "kind = \"udp\"").unwrap();
    let InsideLink::Dpdk(device) = &config.inside.link else { panic!("another link") };
    assert_eq!((device.mtu, device.queues, device.descriptors, &*device.arguments), (1_500, 1, 1_024, ""));
    assert!(device.gateways.is_empty() && device.neighbours.is_empty());
}

#[test]
fn what_cannot_be_is_refused_and_said() {
    for (old, new, said) in [
        ("device = \"net_memif0\"\n", "", "[inside] has no `device`"),
        ("addresses = [\"10.1.0.1/24\", \"2001:db8::1/64\"]\n", "", "[inside] has no `addresses`"),
        ("net_memif0", "net_memif0,role=client", "`device` has a comma or a space"),
        ("10.1.0.1/24", "10.1.0.0/24", "10.1.0.0/24 is not the address of a host"),
        ("10.1.0.1/24", "10.1.0.255/24", "10.1.0.255/24 is not the address of a host"),
        ("10.1.0.1/24", "224.0.0.1/24", "224.0.0.1/24 is not the address of a host"),
        ("\"2001:db8::1/64\"", "\"10.1.0.1/16\"", "`addresses` contains 10.1.0.1 twice"),
        ("10.1.0.254", "10.2.0.254", "the next hop 10.2.0.254 is in no network of `addresses`"),
        ("10.1.0.254", "10.1.0.1", "the next hop 10.1.0.1 is an address of the link itself"),
        ("fe80::1", "10.1.0.253", "several next hops of one IP version"),
        ("=02:00:00:00:00:09", "=03:00:00:00:00:09", "`neighbours` is"),
        ("=02:00:00:00:00:09", "", "`neighbours` is"),
        ("=02:00:00:00:00:09", "=02:00:00:00:00", "`neighbours` is"),
        ("mtu = 9000", "mtu = 16001", "`mtu` is 16001"),
        ("mtu = 9000", "mtu = 1000", "an MTU of 1000 with an IPv6 address"),
        ("descriptors = 2048", "descriptors = 2000", "`descriptors` is 2000"),
        ("queues = 3", "queues = 0", "`queues` is 0"),
        ("mtu = 9000", "routes = [\"10.0.0.0/8\"]", "`routes` does not apply to [inside] of kind `dpdk`"),
    ] {
        let text = DEVICE.replace(old, new);
        assert_ne!(text, DEVICE, "{old}");
        let found = read(&text, "kind = \"udp\"").expect_err(said);
        assert!(found.iter().any(|one| one.contains(said)), "{said}: {found:?}");
    }
    let twice = read(DEVICE, DEVICE).unwrap_err();
    assert!(twice.iter().any(|one| one == "two links have the network device net_memif0"), "{twice:?}");
}
