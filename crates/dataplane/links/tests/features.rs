//! Features of interfaces, beside what ethtool(8) says of them.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods)] // the test's namespaces are waited for

#[path = "support/namespace.rs"]
mod namespace;

use std::process::Command;

use forebay_links::features::{Feature, Features, RX_GRO, RX_UDP_GRO_FORWARDING, TX_UDP_SEGMENTATION};
use namespace::cable;

const LOOPBACK: &str = "loopback";

/// What ethtool(8) says of a feature: `on`, `off`, `on [fixed]`; nothing where it is not installed.
fn told(interface: &str, feature: &str) -> Option<String> {
    let said = Command::new("ethtool").args(["-k", interface]).output().ok()?;
    let said = String::from_utf8(said.stdout).unwrap();
    said.lines().find_map(|line| Some(line.trim().strip_prefix(feature)?.strip_prefix(": ")?.to_owned()))
}

#[test]
fn features_are_read_and_switched_as_ethtool_sees_them() {
    let Some([a, _b]) = cable(1500) else { return };
    a.run(|| {
        let cable = "cable";
        let mut features = Features::open().unwrap();
        for name in [RX_UDP_GRO_FORWARDING, TX_UDP_SEGMENTATION] {
            for is_on in [true, false, true] {
                assert!(features.switch(cable, name, is_on).unwrap(), "{name} {is_on}");
                let [feature] = features.read(cable, [name]).unwrap();
                assert_eq!(feature, Some(Feature { is_on, is_changeable: true }), "{name}");
                let said = told("cable", name);
                assert!(said.is_none_or(|said| said == if is_on { "on" } else { "off" }), "{name}");
            }
        }
        // Others stay as they are: each is switched by itself.
        let both = features.read(cable, [RX_UDP_GRO_FORWARDING, TX_UDP_SEGMENTATION]).unwrap();
        assert!(both.iter().all(|feature| feature.is_some_and(|feature| feature.is_on)), "{both:?}");
        let [gro, unknown] = features.read(cable, [RX_GRO, "rx-of-tomorrow"]).unwrap();
        assert!(gro.is_some_and(|gro| gro.is_changeable) && unknown.is_none());
        // What the loopback interface is nobody changes.
        let [fixed] = features.read("lo", [LOOPBACK]).unwrap();
        assert_eq!(fixed, Some(Feature { is_on: true, is_changeable: false }));
        assert!(told("lo", LOOPBACK).is_none_or(|said| said == "on [fixed]"));
        assert!(!features.switch("lo", LOOPBACK, false).unwrap_or(false), "a fixed feature was changed");
        assert!(features.read("nothing", [RX_GRO]).is_err());
        assert!(features.switch(cable, "rx-of-tomorrow", true).is_err());
        assert!(features.read(cable, [RX_GRO]).is_ok(), "an error ends nothing");
    });
}
