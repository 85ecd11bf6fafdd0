//! Every setting of an SA beyond the first ones: what it becomes, and what is said where it is wrong.

mod common;

use common::*;
use forebay_ipsec::{
    DontFragment, Dscp, DscpSet, Ecn, FlowLabel, HopLimit, InnerDscp, Iptfs, Lifetime, Limits, Originals,
    SaConfig, Tfc, TunnelRules,
};
use forebay_sas::{Finding, PARTS, Problem, SasFile, parse};
use forebay_scenario::schema::Takes;
use forebay_time::Duration;

const SECOND: u64 = 1_000_000_000_000;

fn config(more: &str) -> SaConfig {
    let file = parse(&one_with(more), "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert_in_use(&file);
    file.entries.into_iter().next().unwrap().config
}

/// No warnings but of settings of the other direction or IP version.
fn assert_in_use(file: &SasFile) {
    let is_unused =
        |one: &Finding| matches!(one.problem(), Problem::NoEffect { .. } | Problem::CongestionAlone { .. });
    assert!(file.warnings.iter().all(is_unused), "{:?}", file.warnings);
}

/// Each of `lines` alone is refused on line 9 at `column`, with all of `says`.
fn refuses(lines: &[&str], column: usize, says: &[&str]) {
    for line in lines {
        let text = refused(line);
        assert_says(&text, &[&format!("SAS.toml:9:{column}")]);
        assert_says(&text, says);
        assert!(!text.contains(" errors"), "{text}");
    }
}

#[test]
fn defaults_are_those_of_the_database() {
    let read = config("");
    let default =
        SaConfig::new("east-out", read.spi, "aes128gcm16".parse().unwrap(), read.local, read.remote);
    assert_eq!(format!("{read:?}"), format!("{default:?}"));
}

#[test]
fn a_file_may_have_every_setting() {
    let file = parse(&full(), "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    let config = &file.entries[0].config;
    assert_eq!(config.dscp, DscpSet::of([46, 34, 35, 36, 37, 38, 10]));
    assert_eq!(
        config.tunnel,
        TunnelRules {
            dscp: Dscp::Set(46),
            ecn: Ecn::Compatibility,
            dont_fragment: DontFragment::Set,
            flow_label: FlowLabel::Hash,
            hop_limit: HopLimit::Fixed(32),
            inner_dscp: InnerDscp::FromOuter,
        }
    );
    assert_eq!((config.mtu, config.tfc), (Some(1400), Tfc::Mtu));
    assert_eq!(
        config.lifetime,
        Lifetime {
            hard: Limits {
                time: Some(Duration(3600 * SECOND)),
                use_time: Some(Duration(1800 * SECOND)),
                bytes: Some(10_000_000_000),
                packets: Some(4 << 20),
            },
            soft: Limits {
                time: Some(Duration(3000 * SECOND)),
                use_time: Some(Duration(90 * SECOND)),
                bytes: Some(9000),
                packets: Some(1000),
            },
        }
    );
    assert_eq!(
        config.iptfs,
        Some(Iptfs {
            packet_size: 1300,
            rate: Some(1000),
            max_delay: Duration::from_millis(1),
            fragment: false,
            reorder_window: 8,
            lost_after: Duration::from_millis(20),
            queue: 100_000,
            congestion: true,
            ecn: true,
        })
    );
    assert_in_use(&file);
}

#[test]
fn dscp_of_outer_headers() {
    let dscp = |more: &str| (config(more).tunnel.dscp, config(more).tunnel.inner_dscp);
    assert_eq!(dscp("copy_dscp = \"out\""), (Dscp::Copy, InnerDscp::Keep));
    assert_eq!(dscp("copy_dscp = \"in\""), (Dscp::Set(0), InnerDscp::FromOuter));
    assert_eq!(dscp("copy_dscp = \"yes\""), (Dscp::Copy, InnerDscp::FromOuter));
    assert_eq!(dscp("copy_dscp = \"no\""), (Dscp::Set(0), InnerDscp::Keep));
    assert_eq!(dscp("dscp = 10"), (Dscp::Set(10), InnerDscp::Keep));
    assert_eq!(dscp("dscp = \"cs1\"\ncopy_dscp = \"in\""), (Dscp::Set(8), InnerDscp::FromOuter));
    refuses(
        &["copy_dscp = \"both\""],
        13,
        &["unknown copy_dscp `both`", "expected `out` or `in` or `yes` or `no`"],
    );
    refuses(
        &["dscp = 64", "dscp = -1", "dscp = \"voice\"", "dscp = 99999999999999999999"],
        8,
        &["not a class of traffic in `dscp`", "expected code points of 0 to 63", "help: dscp = 46"],
    );
    refuses(&["dscp = \"ef,cs1\"", "dscp = \"all\""], 8, &["expected a single code point"]);
    refuses(&["dscp = true"], 8, &["`dscp` is of the wrong type, boolean", "help: dscp = 46"]);
    refuses(
        &["dscp = 10\ncopy_dscp = \"out\"", "dscp = 10\ncopy_dscp = \"yes\""],
        8,
        &["`dscp` contradicts `copy_dscp`", "says another", "10 │ copy_dscp", "cannot be set"],
    );
}

#[test]
fn other_fields_of_outer_headers() {
    let tunnel = |more: &str| config(more).tunnel;
    assert_eq!(
        (tunnel("copy_ecn = true").ecn, tunnel("copy_ecn = false").ecn),
        (Ecn::Normal, Ecn::Compatibility)
    );
    for (more, df) in [
        ("copy_df = true", DontFragment::Copy),
        ("copy_df = false", DontFragment::Clear),
        ("df = \"copy\"\ncopy_df = true", DontFragment::Copy),
        ("df = \"clear\"", DontFragment::Clear),
        ("df = \"set\"\ncopy_df = false", DontFragment::Set),
    ] {
        assert_eq!(tunnel(more).dont_fragment, df, "{more}");
    }
    for (more, label) in [
        ("flow_label = \"zero\"", FlowLabel::Zero),
        ("flow_label = \"copy\"", FlowLabel::Copy),
        ("flow_label = 0xfffff", FlowLabel::Fixed(0xf_ffff)),
        ("flow_label = \"0x12345\"", FlowLabel::Fixed(0x1_2345)),
    ] {
        assert_eq!(tunnel(more).flow_label, label, "{more}");
    }
    assert_eq!(tunnel("ttl = \"copy\"").hop_limit, HopLimit::Copy);
    assert_eq!(tunnel("ttl = 255").hop_limit, HopLimit::Fixed(255));

    refuses(&["copy_ecn = 1"], 12, &["`copy_ecn` is of the wrong type, integer", "RFC 6040"]);
    refuses(&["copy_df = \"no\""], 11, &["`copy_df` is of the wrong type", "expected `true` or `false`"]);
    refuses(&["df = \"sett\""], 6, &["unknown df `sett`", "did you mean `set`?"]);
    refuses(
        &["df = \"set\"\ncopy_df = true", "df = \"copy\"\ncopy_df = false"],
        6,
        &["`df` contradicts `copy_df`", "10 │ copy_df", "leave out `df` or `copy_df`"],
    );
    refuses(&["flow_label = \"hsh\""], 14, &["unknown flow_label `hsh`", "did you mean `hash`?"]);
    refuses(
        &["flow_label = 0x100000", "flow_label = -1", "flow_label = \"0x100000\""],
        14,
        &["`flow_label` cannot be", "expected 0 to 1048575", "a number of 20 bits"],
    );
    refuses(&["flow_label = []"], 14, &["wrong type, array", "expected a number or a word in quotes"]);
    refuses(&["ttl = 0", "ttl = 256"], 7, &["`ttl` cannot be", "expected 1 to 255", "help: ttl = 64"]);
    refuses(&["ttl = \"keep\""], 7, &["unknown ttl `keep`", "expected `copy`"]);
}

#[test]
fn lengths() {
    assert_eq!((config("mtu = 576").mtu, config("mtu = 65535").mtu), (Some(576), Some(65_535)));
    refuses(
        &["mtu = 575", "mtu = 65536"],
        7,
        &["`mtu` cannot be", "expected 576 to 65535 bytes", "576 bytes of IPv4 and 1280 of IPv6"],
    );
    let v6 = one_with("mtu = 1279").replace("192.0.2.1", "::1").replace("192.0.2.2", "::2");
    assert_says(&outcome(v6.as_bytes(), &[]).unwrap_err(), &["SAS.toml:9:7", "expected 1280 to 65535 bytes"]);
    assert!(outcome(v6.replace("1279", "1280").as_bytes(), &[]).is_ok());

    assert_eq!(config("tfc_padding = 0").tfc, Tfc::None);
    assert_eq!(config("tfc_padding = 65535").tfc, Tfc::PadTo(65_535));
    assert_eq!(config("tfc_padding = \"mtu\"\nmtu = 1400").tfc, Tfc::Mtu);
    refuses(&["tfc_padding = 65536"], 15, &["`tfc_padding` cannot be 65536", "expected 0 to 65535"]);
    refuses(&["tfc_padding = \"max\""], 15, &["unknown tfc_padding `max`", "did you mean `mtu`?"]);
    refuses(&["tfc_padding = \"mtu\""], 15, &["requires an MTU", "help: set the path MTU"]);
    refuses(
        &["tfc_padding = 9\nmode = \"transport\"", "tfc_padding = \"mtu\"\nmtu = 999\nmode = \"transport\""],
        15,
        &["in tunnel mode only", "expected 0 in transport mode", "(RFC 4303 2.7)", "│ mode = "],
    );
    assert!(config("check_padding = true").check_padding && !config("check_padding = false").check_padding);
    refuses(&["check_padding = \"no\""], 17, &["`check_padding` is of the wrong type", "1, 2, 3, ..."]);
}

#[test]
fn classes() {
    assert_eq!(config("classes = [\"ef\", \"af41-af43\", 0]").dscp, DscpSet::of([46, 34, 35, 36, 37, 38, 0]));
    assert_eq!(config("classes = [\"all\"]").dscp, DscpSet::ALL);
    refuses(&["classes = \"ef\""], 11, &["`classes` is of the wrong type", "a list of classes in brackets"]);
    refuses(
        &["classes = [64]", "classes = [\"af44\"]", "classes = [\"af43-af41\"]", "classes = [-1]"],
        12,
        &["not a class of traffic in `classes`", "cs0 to cs7"],
    );
    refuses(&["classes = [[]]"], 12, &["`classes` is of the wrong type, array"]);
    refuses(&["classes = []"], 11, &["expected one at least"]);
    let text = refused("classes = [64, \"ef\", 65]");
    assert_says(&text, &["has 2 errors", "SAS.toml:9:12", "SAS.toml:9:22"]);
}

#[test]
fn lifetimes() {
    let hard = |more: &str| config(more).lifetime.hard;
    assert_eq!(hard("life_time = 0.5").time, Some(Duration(SECOND / 2)));
    assert_eq!(hard("life_time = \"10ms\"").time, Some(Duration(SECOND / 100)));
    assert_eq!(hard("life_use_time = \"2d\"").use_time, Some(Duration(172_800 * SECOND)));
    assert_eq!(hard("life_bytes = \"4 GiB\"").bytes, Some(4 << 30));
    assert_eq!(hard("life_packets = 0xffff_ffff").packets, Some(0xffff_ffff));
    assert_eq!(config("rekey_packets = 5\nlife_packets = 5").lifetime.soft.packets, Some(5));
    for (key, column) in
        [("life_time", 13), ("rekey_time", 14), ("life_use_time", 17), ("rekey_use_time", 18)]
    {
        let wrong = |value: &str, label: &str| {
            let says = [format!("`{key}` cannot be"), label.to_owned(), format!("help: {key} = \"")];
            refuses(&[&format!("{key} = {value}")], column, &says.each_ref().map(String::as_str));
        };
        for value in ["-1", "\"1 hour\"", "\"\"", "\"1h30m\"", "inf"] {
            wrong(value, "expected one like 90,");
        }
        wrong("0", "expected more than 0");
        wrong("\"214d\"", "expected 213 days at most");
        refuses(&[&format!("{key} = []")], column, &["is of the wrong type", "expected a duration"]);
    }
    for (key, column) in
        [("life_bytes", 14), ("rekey_bytes", 15), ("life_packets", 16), ("rekey_packets", 17)]
    {
        for value in ["0", "-1", "\"0k\"", "\"many\"", "\"1 g\"", "99999999999999999999"] {
            let says = [format!("`{key}` cannot be"), format!("help: {key} = \"")];
            let line = format!("{key} = {value}");
            refuses(&[&line], column, &[&says[0], "expected at least 1", &says[1], "remove the key"]);
        }
        refuses(&[&format!("{key} = 1.5")], column, &["is of the wrong type, float"]);
    }
    for (soft, hard) in [
        ("rekey_time = \"2h\"", "life_time = \"1h\""),
        ("rekey_use_time = \"2h\"", "life_use_time = 7199"),
        ("rekey_bytes = \"1Gi\"", "life_bytes = \"1G\""),
        ("rekey_packets = 2", "life_packets = 1"),
    ] {
        let (soft_key, hard_key) = (soft.split(' ').next().unwrap(), hard.split(' ').next().unwrap());
        let says = format!("`{soft_key}` exceeds `{hard_key}`");
        refuses(&[&format!("{soft}\n{hard}")], soft_key.len() + 4, &[&says, "never reached", "ends before"]);
    }
}

#[test]
fn aggregation() {
    let iptfs = |more: &str| config(more).iptfs.unwrap();
    assert_eq!(iptfs("[sa.iptfs]"), Iptfs::default());
    assert_eq!(iptfs("iptfs = {}"), Iptfs::default());
    assert_eq!(iptfs("iptfs = { rate = 5 }\nmtu = 1400").packet_size, 1400);
    assert_eq!(iptfs("iptfs.max_delay = 0\nmtu = 9000").max_delay, Duration::ZERO);
    assert_eq!(iptfs("iptfs.max_delay = 0\nmtu = 9000").packet_size, 1500);
    refuses(&["iptfs = true"], 9, &["`iptfs` is of the wrong type, boolean", "expected a table"]);
    let inside = |lines: &[&str], column: usize, says: &[&str]| {
        for line in lines {
            let text = refused(&format!("[sa.iptfs]\n{line}"));
            assert_says(&text, &[&format!("SAS.toml:10:{column}")]);
            assert_says(&text, says);
        }
    };
    inside(&["ratt = 5"], 1, &["unknown key `ratt`", "did you mean `rate`?"]);
    inside(&["spi = 5"], 1, &["unknown key `spi`", "put it above `[sa.iptfs]`"]);
    inside(&["rate = 0", "rate = 1000000001"], 8, &["expected 1 to 1000000000 packets a second"]);
    inside(&["reorder_window = 1025"], 18, &["`reorder_window` cannot be 1025", "expected 0 to 1024"]);
    inside(&["max_delay = \"1x\""], 13, &["`max_delay` cannot be \"1x\"", "units are d, h"]);
    inside(&["lost_after = -1"], 14, &["`lost_after` cannot be"]);
    inside(&["fragment = 0"], 12, &["`fragment` is of the wrong type"]);
    inside(&["congestion = 0"], 14, &["`congestion` is of the wrong type"]);
    inside(&["packet_size = 65536", "packet_size = 0"], 15, &["expected 1 to 65535 bytes"]);
    inside(&["queue = 0"], 9, &["`queue` cannot be 0", "expected 1 to 1073741824 bytes"]);
    // IPv4 20, ESP 8 + 8, ICV 16; AGGFRAG 4, inner packets 64 and the trailer 2 make a multiple of four: 72.
    inside(&["packet_size = 123"], 15, &["`packet_size` cannot be 123", "expected 124 to 65535 bytes"]);
    assert_eq!(iptfs("[sa.iptfs]\npacket_size = 124").packet_size, 124);
    // 1500 - 52, down to a multiple of four, less the trailer's 2 and AGGFRAG's 4.
    inside(
        &["queue = 1441"],
        9,
        &["`queue` cannot be 1441", "expected 1442 to 1073741824 bytes", "one full"],
    );
    assert_eq!(iptfs("[sa.iptfs]\nqueue = 1442").queue, 1442);
    let text = refused("mtu = 1400\n[sa.iptfs]\npacket_size = 1401");
    assert_says(&text, &["packets of 1401 bytes exceed the path MTU of 1400", "SAS.toml:11:15", "leave out"]);
    let text = refused("mode = \"transport\"\niptfs = {}");
    assert_says(&text, &["in tunnel mode only", "SAS.toml:10:9", "given here", "(RFC 9347 5.1)"]);
    let text = refused("iptfs = { rate = 0, spy = 5 }");
    assert_says(&text, &["has 2 errors", "SAS.toml:9:18", "SAS.toml:9:21"]);
    assert_says(&refused("rate = 5"), &["unknown key `rate`", "put `[sa.iptfs]` on a line above it"]);
}

/// Both addresses before a NAT, or none; of the SA's IP version; and only where there are checksums to repair.
#[test]
fn addresses_before_a_nat() {
    let inbound = |more: &str| {
        let lines = format!("mode = \"transport\"\nencapsulation = \"udp\"\n{more}");
        one_with(&lines).replace("\"out\"", "\"in\"")
    };
    let both = "original_local = \"203.0.113.1\"\noriginal_remote = \"10.9.0.7\"";
    let file = parse(&inbound(both), "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
    let [source, destination] = ["10.9.0.7", "203.0.113.1"].map(|address| address.parse().unwrap());
    assert_eq!(file.entries[0].config.originals, Some(Originals { source, destination }));
    let errors = |text: &str| outcome(text.as_bytes(), &[]).map(|_| ()).expect_err("an error");
    assert_says(
        &errors(&inbound("original_local = \"203.0.113.1\"")),
        &["has no `original_remote`", "10.9.0.7"],
    );
    let v6 = both.replace("10.9.0.7", "2001:db8::7");
    let says =
        ["an original address is of another IP version", "SAS.toml:12:19", "the IP version of `local`"];
    assert_says(&errors(&inbound(&v6)), &says);
    let useless = [
        (inbound(both).replace("\"transport\"", "\"tunnel\""), "only ESP in UDP in transport mode"),
        (inbound(both).replace("\"udp\"", "\"none\""), "only ESP in UDP in transport mode"),
        (inbound(both).replace("\"in\"", "\"out\""), "it is about packets that arrive"),
    ];
    for (text, why) in useless {
        let file = parse(&text, "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
        assert_eq!(file.warnings.len(), 2, "{:?}", file.warnings);
        assert_says(&rendered(&file.warnings[0]), &["`original_local` has no effect", why]);
    }
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let warnings = |text: &str| {
        let file = parse(text, "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
        file.warnings.iter().map(|warning| rendered(warning)).collect::<Vec<_>>()
    };
    let all = warnings(&one_with("mode = \"transport\"\nttl = 5\nmtu = 1400"));
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_says(
        one,
        &["⚠", "`ttl` has no effect", "no outer header", "SAS.toml:10:7", "help: leave out `ttl`"],
    );
    let inbound = one_with("mtu = 1400\nclasses = [1]\ncheck_padding = false").replace("\"out\"", "\"in\"");
    let all = warnings(&inbound);
    let [one, other] = &all[..] else { panic!("{all:?}") };
    assert_says(one, &["`mtu` has no effect: it is about packets that leave", "SAS.toml:9:7"]);
    assert_says(other, &["`classes` has no effect", "SAS.toml:10:11"]);
    let ah = one_with("protocol = \"ah\"\nlife_time = 5\ndf = \"set\"\ncheck_padding = true");
    let all = warnings(&ah.replace("aes128gcm16", "aes128gmac"));
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_says(one, &["`check_padding` has no effect: AH does not pad", "SAS.toml:12:17"]);
    // Each in the direction that has no use for it, and in the other.
    for (key, needs, of_inbound) in [
        ("replay_window = 128", "", true),
        ("check_padding = false", "", true),
        ("follow_peer = false", "encapsulation = \"udp\"\n", true),
        ("copy_ecn = false", "", false),
        ("reorder_window = 9", "[sa.iptfs]\n", true),
        ("lost_after = \"5ms\"", "[sa.iptfs]\n", true),
        ("packet_size = 1400", "[sa.iptfs]\n", false),
        ("rate = 1000", "[sa.iptfs]\n", false),
        ("max_delay = \"1ms\"", "[sa.iptfs]\n", false),
        ("fragment = false", "[sa.iptfs]\n", false),
        ("queue = 100000", "[sa.iptfs]\n", false),
        ("ecn = true", "[sa.iptfs]\n", false),
    ] {
        let name = key.split(' ').next().unwrap();
        let of = |is_inbound: bool| {
            let text = one_with(&format!("{needs}{key}"));
            let text = if is_inbound { text.replace("\"out\"", "\"in\"") } else { text };
            warnings(&text).iter().filter(|one| one.contains(&format!("`{name}` has no effect"))).count()
        };
        assert_eq!((of(true), of(false)), if of_inbound { (0, 1) } else { (1, 0) }, "{key}");
    }
    let all = warnings(&one_with("[sa.iptfs]\nrate = 1000\nmax_delay = \"1ms\""));
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_says(one, &["`max_delay` has no effect: with `rate`"]);
    // Of the other IP version's headers.
    let v6 = |text: String| text.replace("192.0.2.1", "2001:db8::1").replace("192.0.2.2", "2001:db8::2");
    for (key, of_v6) in [("df = \"set\"", true), ("copy_df = true", true), ("flow_label = \"copy\"", false)] {
        let text = one_with(key);
        let [found, none] = if of_v6 { [v6(text.clone()), text] } else { [text.clone(), v6(text)] };
        assert_eq!((warnings(&found).len(), warnings(&none).len()), (1, 0), "{key}");
    }
}

/// A file that gives this key of this section, and what stands before the line with it.
fn giving(section: &str, key: &str, value: &str) -> (String, usize) {
    let before = match section {
        "sa" => "mtu = 1400\n".to_owned(),
        "sa.iptfs" => "[sa.iptfs]\n".to_owned(),
        _ => named("east-ef", "out", 2, "[[policy]]"),
    };
    let is_other = |line: &&str| !line.starts_with(&format!("{key} = "));
    let before: String = one_with(&before).lines().filter(is_other).map(|line| format!("{line}\n")).collect();
    let line = before.lines().count() + 1;
    (format!("{before}{key} = {value}\n"), line)
}

/// Whether the reader finds something wrong with the value.
fn is_wrong(section: &str, key: &str, value: &str) -> bool {
    let (text, line) = giving(section, key, value);
    parse(&text, "SAS.toml").is_err_and(|errors| errors.findings().iter().any(|one| one.line() == Some(line)))
}

/// Every example of the reference is one that the reader takes, and its ranges, words and types are the reader's.
#[test]
fn the_lists_of_keys_say_what_the_reader_takes() {
    let mut count = 0;
    for (section, key) in PARTS.iter().flat_map(|part| part.keys.iter().map(move |key| (part.section, key))) {
        // These two want another SA beside this one.
        let refers = ["outer", "cpu"].contains(&key.name);
        if key.name.contains("key") && !key.name.starts_with("rekey") || refers {
            continue;
        }
        assert!(!is_wrong(section, key.name, key.example), "{}", key.line());
        assert!(is_wrong(section, key.name, "{ no = 1 }"), "{} takes a table", key.name);
        let refused = match key.takes {
            Takes::Whole(_, least, most) => {
                assert!(
                    !is_wrong(section, key.name, &most.to_string()) || key.name == "packet_size",
                    "{most}"
                );
                vec![(least as i128 - 1).to_string(), (most as i128 + 1).to_string()]
            }
            Takes::Word(words) => {
                for word in words {
                    // Some words want other keys, but they are known.
                    let (text, _) = giving(section, key.name, &format!("\"{word}\""));
                    let errors = parse(&text, "SAS.toml").err();
                    let said = errors.as_ref().map(|errors| rendered(errors)).unwrap_or_default();
                    assert!(!said.contains(&format!("unknown {}", key.name)), "{word}: {said}");
                }
                vec!["\"no-such-word\"".to_owned()]
            }
            Takes::Flag => vec!["\"true\"".to_owned()],
            Takes::Time("0 s", _) => vec!["\"214 d\"".to_owned()],
            Takes::Time(..) => vec!["0".to_owned(), "\"214 d\"".to_owned()],
            Takes::Amount => vec!["0".to_owned()],
            _ => vec![],
        };
        for value in refused {
            assert!(is_wrong(section, key.name, &value), "{} = {value}", key.name);
        }
        count += 1;
    }
    assert!(count > 40, "{count}");
}

#[test]
fn congestion_information_wants_an_sa_of_the_other_direction() {
    let file = |other: &str, end: &str| {
        let sa = |direction: &str, remote: &str, congestion: &str| {
            let key = if direction == "out" { "01" } else { "03" };
            format!(
                "[[sa]]\nname = \"{direction}\"\ndirection = \"{direction}\"\nspi = 300\nproposal = \"aes128-sha256\"\n\
                 key = \"{}\"\nauth_key = \"{}\"\nlocal = \"192.0.2.1\"\nremote = \"{remote}\"\n\
                 iptfs = {{ congestion = {congestion} }}\n",
                key.repeat(16),
                key.repeat(32),
            )
        };
        parse(&(sa("out", "192.0.2.2", "true") + &sa("in", end, other)), "SAS.toml")
            .unwrap_or_else(|errors| panic!("{}", rendered(&errors)))
    };
    let said = |file: &SasFile| file.warnings.iter().map(|one| one.to_string()).collect::<Vec<_>>();
    let alone = "SA `out` has congestion information and no SA of the other direction with the same ends has";
    assert_eq!(said(&file("true", "192.0.2.2")), [""; 0]);
    assert_eq!(said(&file("false", "192.0.2.2")), [alone]);
    assert_eq!(said(&file("true", "192.0.2.3")), [alone.to_owned(), alone.replace("`out`", "`in`")]);
}
