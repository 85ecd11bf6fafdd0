//! Warnings about addresses and selectors of SAs that no packet has.

use std::path::Path;

/// The warnings of a file with one outbound SA in which `from` is replaced.
fn warnings(from: &str, to: &str) -> Vec<String> {
    let file = r#"
[inside]
name = "fb0"
[[outside]]
kind = "raw"
[keys]
manual_keying = "accepted"
[[sa]]
name = "east"
direction = "out"
spi = 0x1001
proposal = "aes128gcm16"
key = "000102030405060708090a0b0c0d0e0f10111213"
local = "192.0.2.1"
remote = "192.0.2.2"
local_ts = ["10.1.0.0/16"]
remote_ts = ["10.2.0.0/16"]
"#;
    assert!(file.contains(from), "{from}");
    let config = forebay_config::parse(&file.replace(from, to), "gateway.toml", Path::new("/etc/forebay"))
        .unwrap_or_else(|errors| panic!("{to}: {:?}", errors.findings()));
    config.warnings.iter().map(|one| one.problem().to_string()).collect()
}

#[test]
fn ends_and_selectors_that_no_packet_has_are_warned_of() {
    assert_eq!(warnings("east", "west"), Vec::<String>::new());
    for (from, to, message) in [
        ("192.0.2.2", "192.0.2.1", "SA `east`: `local` and `remote` are both 192.0.2.1"),
        ("192.0.2.1", "127.0.0.1", "between 127.0.0.1 and 192.0.2.2 no packet passes"),
        ("192.0.2.", "fe80::", "fe80::1 is a link-local address"),
        ("10.2.0.0/16", "127.0.0.0/8", "`remote_ts` has 127.0.0.0/8: loopback addresses"),
        (
            "spi",
            "mode = \"transport\"\nspi",
            "its mode is `transport`, in which packets keep their addresses",
        ),
    ] {
        let found = warnings(from, to);
        assert!(found.iter().any(|one| one.contains(message)), "{to}: {found:?}");
    }
}

/// Two gateways on one host talk over loopback addresses, BGP in a tunnel over link-local ones, and a transport SA has the addresses of both ends.
#[test]
fn ends_that_work_are_not_warned_of() {
    assert_eq!(warnings("192.0.2.", "127.0.0."), Vec::<String>::new());
    assert_eq!(warnings("10.1.0.0/16", "169.254.6.0/30"), Vec::<String>::new());
    let both = "mode = \"transport\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n#";
    let ends = "local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\nlocal_ts = [\"10.1.0.0/16\"]\nremote_ts = [\"10.2.0.0/16\"]";
    let on_one_host = ends.replace("192.0.2.", "127.0.0.").replace("10.", "127.");
    assert_eq!(warnings(ends, &on_one_host), Vec::<String>::new());
    let of_hosts = warnings(ends, both);
    assert!(!of_hosts.iter().any(|one| one.contains("transport")), "{of_hosts:?}");
}
