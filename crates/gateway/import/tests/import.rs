//! SAs and policies of other systems: what is taken over means the same, and what is not is named with its line.

use std::path::Path;

use forebay_config::{self as config, Config};
use forebay_crypto::Direction;
use forebay_import::{Imported, ImportedIke, Remark, ipsec_conf, secgw, swanctl, write, xfrm};
use forebay_ipsec::{Action, DontFragment, Ecn, Encapsulation, InnerDscp, Mode, Protocol};
use forebay_time::Duration;

const XFRM: &str = include_str!("data/xfrm.txt");
const SECGW: &str = include_str!("data/secgw.cfg");

/// The file that is written, read back by the gateway's reader.
fn through_the_file(imported: &Imported) -> Config {
    let text = write(imported, "a test", None).text;
    config::parse(&text, "gateway.toml", Path::new("")).unwrap_or_else(|errors| {
        panic!("{:#?} in\n{}", errors.findings().iter().map(ToString::to_string).collect::<Vec<_>>(), *text)
    })
}

fn lines(remarks: &[Remark], lost: bool) -> Vec<(usize, &str)> {
    let wanted = remarks.iter().filter(|remark| remark.lost == lost);
    wanted.map(|remark| (remark.line, remark.reason.as_str())).collect()
}

fn line_of(text: &str, part: &str) -> usize {
    1 + text.lines().position(|line| line.contains(part)).unwrap_or_else(|| panic!("no {part}"))
}

/// The remark about the line that holds `part`.
fn said<'a>(imported: &'a Imported, text: &str, part: &str) -> &'a Remark {
    let line = line_of(text, part);
    let found = imported.remarks.iter().find(|remark| remark.line == line);
    found.unwrap_or_else(|| panic!("nothing about line {line}: {:#?}", imported.remarks))
}

#[test]
fn the_kernel_s_states_and_policies_mean_the_same() {
    let imported = xfrm::read(XFRM, &[]);
    let config = through_the_file(&imported);
    let sas = &config.sas.entries;
    let names: Vec<_> = sas.iter().map(|entry| entry.config.name.as_str()).collect();
    assert_eq!(names, ["out-c88b7652", "in-0b81df6e", "out-00001003", "out-00001004", "out-00001005"]);

    let gcm = &sas[0];
    assert_eq!((gcm.direction, gcm.config.spi.get()), (Direction::Seal, 0xc88b_7652));
    assert_eq!((gcm.config.suite.to_string().as_str(), gcm.config.esn), ("aes128gcm16", true));
    assert_eq!(
        (gcm.config.local.to_string(), gcm.config.remote.to_string()),
        ("192.0.2.1".into(), "192.0.2.2".into())
    );
    let life = &gcm.config.lifetime;
    assert_eq!((life.soft.packets, life.hard.packets), (Some(9_000_000), Some(10_000_000)));
    let seconds = |n: u64| Some(Duration::from_millis(1_000 * n));
    assert_eq!((life.soft.time, life.hard.time, life.hard.use_time), (seconds(3_340), seconds(3_960), None));
    assert_eq!((life.soft.bytes, life.hard.bytes), (None, None));

    let back = &sas[1];
    assert_eq!((back.direction, back.config.replay_window), (Direction::Open, 2_048));
    assert_eq!(
        (back.config.local.to_string(), back.config.remote.to_string()),
        ("192.0.2.1".into(), "192.0.2.2".into())
    );

    let cbc = &sas[2].config;
    assert_eq!((cbc.suite.to_string().as_str(), cbc.mode), ("aes128-sha256", Mode::Transport));
    assert_eq!(cbc.local_ts, ["2001:db8::1/128[tcp]".parse().unwrap()]);
    assert_eq!(cbc.remote_ts, ["2001:db8::2/128[tcp/443]".parse().unwrap()]);

    let (ah, ctr) = (&sas[3].config, &sas[4]);
    assert_eq!((ah.protocol, ah.suite.to_string().as_str()), (Protocol::Ah, "null-sha1"));
    assert_eq!(
        (ctr.config.suite.to_string().as_str(), ctr.config.encapsulation),
        ("aes128ctr-sha512", Encapsulation::Udp)
    );
    // The bundle of the policy from 10.3: ESP first, AH around it.
    assert_eq!(ctr.outer, Some(3));

    // The smaller priority goes first; what is forwarded has a policy already.
    let policies: Vec<_> = config.sas.policies.iter().map(|entry| &entry.policy).collect();
    let order: Vec<_> =
        policies.iter().map(|policy| (policy.direction, policy.local_ts[0].to_string())).collect();
    let out = |net: &str| (Direction::Seal, net.to_owned());
    assert_eq!(
        order,
        [
            out("::/0[ipv6-icmp/135]"),
            out("10.1.9.0/24[icmp/8(0)]"),
            (Direction::Open, "10.1.0.0/16".to_owned()),
            out("10.1.0.0/16"),
            out("10.3.0.0/16"),
        ]
    );
    assert_eq!((&policies[0].action, &policies[1].action), (&Action::Bypass, &Action::Discard));
    let protected = |at: usize| match &policies[at].action {
        Action::Protect(sas) => sas.iter().map(|session| names[session.0 as usize]).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        [protected(2), protected(3), protected(4)],
        [["in-0b81df6e"], ["out-c88b7652"], ["out-00001005"]]
    );
    assert_eq!(policies[4].remote_ts, ["10.4.0.0/16".parse().unwrap()]);
}

#[test]
fn tunnel_flags_mean_the_same() {
    let text = "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00000100 reqid 0 mode tunnel\n\treplay-window 32 flag \
                noecn decap-dscp nopmtudisc\n\taead rfc4543(gcm(aes)) 0x000102030405060708090a0b0c0d0e0f10111213 \
                128\n\tdir out\n";
    let config = through_the_file(&xfrm::read(text, &[]));
    let rules = &config.sas.entries[0].config.tunnel;
    assert_eq!(config.sas.entries[0].config.suite.to_string(), "aes128gmac");
    assert_eq!((rules.ecn, rules.inner_dscp), (Ecn::Compatibility, InnerDscp::FromOuter));
    assert_eq!(rules.dont_fragment, DontFragment::Clear);
}

#[test]
fn outbound_states_of_cpus_are_bound_to_worker_threads() {
    let state = |spi: u32, direction: &str, more: &str| {
        format!(
            "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi {spi:#010x} reqid 1 mode tunnel\n\treplay-window 0\n\taead \
             rfc4106(gcm(aes)) 0x{spi:08x}0405060708090a0b0c0d0e0f10111213 128\n\tdir {direction}\n{more}"
        )
    };
    let text = state(0x100, "out", "") + &state(0x101, "out", "\tpcpu-num 1\n");
    let imported = xfrm::read(&text, &[]);
    let config = through_the_file(&imported);
    let cpus: Vec<_> = config.sas.entries.iter().map(|entry| entry.config.cpu).collect();
    assert_eq!(cpus, [None, Some(1)]);
    // Inbound SAs are where their SPIs lead; there are not so many worker threads.
    let text = state(0x100, "in", "\tpcpu-num 1\n") + &state(0x101, "out", "\tpcpu-num 300\n");
    let imported = xfrm::read(&text, &[]);
    assert!(imported.sas.iter().all(|sa| sa.config.cpu.is_none()));
    assert!(said(&imported, &text, "pcpu-num 300").reason.contains("no worker thread has this number"));
}

#[test]
fn what_the_kernel_has_and_forebay_lacks_is_named() {
    let imported = xfrm::read(XFRM, &[]);
    for (part, reason) in [
        ("proto comp", "protocol comp is not supported"),
        ("src 192.0.2.9", "--local"),
        ("spi 0x00001007", ""),
        ("spi 0x00001008", ""),
        ("shiny new attribute 17", "cannot parse"),
        ("dev eth0", "a selector by `dev`"),
        ("src 10.5.0.0/16", "no imported SA"),
    ] {
        // States are named by their first line.
        let line = line_of(XFRM, part);
        let near = |remark: &&Remark| remark.lost && (remark.line == line || remark.line + 1 == line);
        let found = imported.remarks.iter().find(|one| near(one) && one.reason.contains(reason));
        assert!(found.is_some(), "{part}: {:#?}", lines(&imported.remarks, true));
    }
    let reasons: Vec<_> = lines(&imported.remarks, true).into_iter().map(|(_, reason)| reason).collect();
    assert!(reasons.iter().any(|reason| reason.contains("the keys are hidden")), "{reasons:#?}");
    assert!(reasons.iter().any(|reason| reason.contains("96 bits is not supported")), "{reasons:#?}");
    // Eight that are left out, and four SAs that have carried packets.
    assert_eq!(reasons.len(), 12, "{reasons:#?}");
    for part in ["mark 0x10", "if_id 0x42", "crypto offload", "socket in"] {
        let line = line_of(XFRM, part);
        let near = |remark: &Remark| !remark.lost && (remark.line == line || remark.line + 1 == line);
        assert!(imported.remarks.iter().any(near), "{part}");
    }
    // With the address the direction is known.
    let known = xfrm::read(XFRM, &["192.0.2.8".parse().unwrap()]);
    let chacha = known.sas.iter().find(|sa| sa.config.spi.get() == 0x1006).unwrap();
    assert_eq!(
        (chacha.direction, chacha.config.suite.to_string().as_str()),
        (Direction::Open, "chacha20poly1305")
    );
}

#[test]
fn ipsec_secgw_s_rules_mean_the_same() {
    let imported = secgw::read(SECGW);
    let config = through_the_file(&imported);
    let sas = &config.sas.entries;
    let found: Vec<_> = sas
        .iter()
        .map(|entry| {
            (entry.config.name.as_str(), entry.config.suite.to_string(), entry.config.remote.to_string())
        })
        .collect();
    assert_eq!(
        found,
        [
            ("out-00000005", "aes128-sha1".to_owned(), "172.16.2.5".to_owned()),
            ("out-00000006", "aes256gcm16".to_owned(), "2001:db8::2".to_owned()),
            ("in-00000069", "aes128gcm16".to_owned(), "172.16.2.5".to_owned()),
        ]
    );
    assert_eq!((sas[2].config.esn, sas[2].config.encapsulation), (true, Encapsulation::Udp));
    // Single digits are whole bytes.
    assert_eq!(imported.sas[0].key.as_str(), "000102030405060708090a0b0c0d0e0f");
    assert_eq!(imported.sas[0].auth_key.as_str(), format!("{}ff", "00".repeat(19)));
    // The larger number goes first.
    let policies: Vec<_> = config.sas.policies.iter().map(|entry| entry.policy.name.as_str()).collect();
    assert_eq!(policies, ["line-4", "line-6", "line-2", "line-3", "line-7"]);
    let policy = |at: usize| &config.sas.policies[at].policy;
    assert_eq!(policy(0).action, Action::Bypass);
    assert_eq!(policy(0).remote_ts, ["192.168.240.0/24[tcp/443]".parse().unwrap()]);
    assert_eq!(policy(1).action, Action::Discard);
    // Inbound, the destination is this side.
    assert_eq!(
        (policy(3).direction, policy(3).local_ts[0].to_string()),
        (Direction::Open, "192.168.115.0/24".to_owned())
    );
}

#[test]
fn what_ipsec_secgw_has_and_forebay_lacks_is_named() {
    let imported = secgw::read(SECGW);
    for (part, lost, reason) in [
        ("protect 77", true, "no SA 77"),
        ("sa in 106", true, "neither encrypts nor authenticates"),
        ("sa out 7", true, "key has 2 bytes"),
        ("sa out 8", true, "no outer addresses"),
        ("spp ipv4", true, "unknown item `spp`"),
        ("sp ipv4 out esp protect 6", false, "port 0 alone"),
        ("sa out 6", false, "the scheduler chooses"),
        ("rt ipv4", false, "routes"),
        ("neigh", false, "resolves addresses"),
        ("flow", false, "steering"),
    ] {
        let line = line_of(SECGW, part);
        let found = imported.remarks.iter().find(|one| one.line == line && one.reason.contains(reason));
        assert_eq!(found.map(|remark| remark.lost), Some(lost), "{part}: {:#?}", imported.remarks);
    }
    assert_eq!(lines(&imported.remarks, true).len(), 5);
    assert!(said(&imported, SECGW, "rt ipv4").text.starts_with("rt ipv4 dst"));
}

#[test]
fn keys_stand_in_files_of_their_own_and_nowhere_else() {
    for imported in [xfrm::read(XFRM, &[]), secgw::read(SECGW)] {
        let written = write(&imported, "a test", Some("keys/"));
        for sa in &imported.sas {
            for (key, ending) in [(&sa.key, "key"), (&sa.auth_key, "auth")] {
                assert!(key.is_empty() || !written.text.contains(key.as_str()));
                let name = format!("keys/{}.{ending}", sa.config.name);
                let file = written.keys.iter().find(|file| file.name == name);
                assert_eq!(file.map(|file| file.text.as_str()), (!key.is_empty()).then_some(key.as_str()));
            }
        }
        for remark in &imported.remarks {
            assert!(
                !remark.text.contains("0001020304") && !remark.text.contains("de:ad:be:ef:de"),
                "{}",
                remark.text
            );
        }
    }
}

#[test]
fn broken_texts_end_in_remarks() {
    // Every beginning of the texts, and lines that are left out: nothing panics, what is read is written and read back.
    for (text, read) in [(XFRM, (|text| xfrm::read(text, &[])) as fn(&str) -> Imported), (SECGW, secgw::read)]
    {
        for cut in (0..text.len()).step_by(7) {
            let imported = read(&text[..cut]);
            if !imported.sas.is_empty() {
                through_the_file(&imported);
            }
        }
        let all: Vec<&str> = text.lines().collect();
        for left_out in 0..all.len() {
            let some: Vec<&str> =
                all.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, line)| *line).collect();
            let imported = read(&some.join("\n"));
            if !imported.sas.is_empty() {
                through_the_file(&imported);
            }
        }
    }
}

/// An outbound state of the kernel, with more lines behind those that all have.
fn outbound(spi: u32, more: &str) -> String {
    format!(
        "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi {spi:#010x} reqid 1 mode tunnel\n\treplay-window 0 flag \
         af-unspec esn\n\taead rfc4106(gcm(aes)) 0x{spi:08x}0405060708090a0b0c0d0e0f10111213 128\n{more}\tdir out\n"
    )
}

fn policy_of(net: &str, more: &str) -> String {
    format!(
        "src 10.1.0.0/16 dst {net}\n\tdir out priority 9 ptype main\n\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp \
         reqid 1 mode tunnel\n{more}"
    )
}

#[test]
fn a_bitmap_takes_no_line_behind_it() {
    for words in [1, 4, 8, 9, 16, 64] {
        for line in [4, 8] {
            let all = vec!["00000000 "; words];
            let rows: Vec<String> = all.chunks(line).map(|row| format!("\t {}\n", row.concat())).collect();
            let window = format!(
                "\tanti-replay esn context:\n\t seq-hi 0x0, seq 0x0, oseq-hi 0x0, oseq 0x0\n\t replay_window {}, \
                 bitmap-length {words}\n{}\tsel src 10.1.0.0/16 dst 10.2.0.0/16 proto tcp \n",
                32 * words,
                rows.concat()
            );
            let imported = xfrm::read(&outbound(0x100, &window), &[]);
            assert_eq!(imported.remarks, [], "{words} words, {line} a line");
            assert_eq!(imported.sas[0].config.local_ts, ["10.1.0.0/16[tcp]".parse().unwrap()]);
            assert_eq!(imported.sas[0].config.remote_ts, ["10.2.0.0/16[tcp]".parse().unwrap()]);
            // One word less than announced: what stands there instead is not swallowed.
            let short = window.replacen("00000000 ", "", 1);
            let imported = xfrm::read(&outbound(0x100, &short), &[]);
            assert_eq!((imported.sas.len(), imported.remarks[0].lost), (0, true), "{words} words");
        }
    }
    // Newer versions print of an outbound state this alone, on the same line.
    let short = "\tlastused 2026-03-28 20:49:10\n\tanti-replay esn context:\t oseq-hi 0x0, oseq 0x0\n";
    assert_eq!(xfrm::read(&outbound(0x100, short), &[]).remarks, []);
}

#[test]
fn numbers_that_were_counted_are_named() {
    for (context, word) in
        [("seq-hi 0x0, seq 0x0, oseq-hi 0x0, oseq 0xa", Some("sent")), ("seq-hi 0x0, seq 0x0", None)]
    {
        let text = outbound(0x100, &format!("\tanti-replay esn context:\n\t {context}\n"));
        let reasons: Vec<_> = xfrm::read(&text, &[]).remarks.into_iter().map(|one| one.reason).collect();
        assert_eq!(reasons.len(), usize::from(word.is_some()), "{reasons:?}");
        assert!(reasons.iter().all(|reason| reason.contains(word.unwrap_or_default())));
    }
}

#[test]
fn no_state_is_widened() {
    // Unknown lines, and lines of a state whose first line is broken.
    let unknown = xfrm::read(&outbound(0x100, "\tonly-for tcp\n"), &[]);
    assert_eq!((unknown.sas.len(), unknown.remarks.len()), (0, 1));
    let broken = outbound(0x100, "") + &outbound(0x101, "").replacen("src", "rc", 1);
    let broken = xfrm::read(&broken, &[]);
    assert_eq!(broken.sas.len(), 1, "{:#?}", broken.remarks);
    assert_eq!(broken.sas[0].config.spi.get(), 0x100);
    assert!(broken.remarks.iter().all(|remark| remark.lost) && !broken.remarks.is_empty());
    // A selector with ports alone; packets of the outer family alone without the flag.
    let ports = xfrm::read(&outbound(0x100, "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 dport 80 \n"), &[]);
    assert!(ports.sas.iter().all(|sa| !sa.config.remote_ts.is_empty()));
    let family = xfrm::read(&outbound(0x100, "").replace("af-unspec ", ""), &[]);
    assert_eq!(family.sas[0].config.remote_ts, ["0.0.0.0/0".parse().unwrap()]);
}

#[test]
fn a_route_based_policy_takes_no_other_s_traffic() {
    let states = outbound(0x100, "\tif_id 0x1\n") + &outbound(0x200, "\tif_id 0x2\n");
    // The same networks: only the interface tells them apart, which no policy here does.
    let same = states.clone()
        + &policy_of("0.0.0.0/0", "\tif_id 0x1\n")
        + &policy_of("10.2.0.0/16", "\tif_id 0x2\n");
    let imported = xfrm::read(&same, &[]);
    assert!(imported.policies.is_empty() && imported.sas.is_empty(), "{imported:#?}");
    assert_eq!(imported.remarks.iter().filter(|remark| remark.lost).count(), 4);
    // Networks of their own: each policy has the SA of its interface.
    let own = states.clone()
        + &policy_of("10.3.0.0/16", "\tif_id 0x1\n")
        + &policy_of("10.2.0.0/16", "\tif_id 0x2\n");
    let imported = xfrm::read(&own, &[]);
    let config = through_the_file(&imported);
    let actions: Vec<_> = config.sas.policies.iter().map(|entry| &entry.policy.action).collect();
    let one = |place| Action::Protect(vec![forebay_crypto::SessionId(place)]);
    assert_eq!(actions, [&one(0), &one(1)]);
    // A policy without an interface stays, that which it would take the packets of does not.
    let plain = states.clone()
        + &outbound(0x300, "")
        + &policy_of("10.2.0.0/16", "")
        + &policy_of("0.0.0.0/0", "\tif_id 0x2\n");
    let imported = xfrm::read(&plain, &[]);
    assert_eq!(imported.policies.len(), 1);
    assert_eq!(imported.sas.iter().map(|sa| sa.config.spi.get()).collect::<Vec<_>>(), [0x300]);
    through_the_file(&imported);
    // Marks are the same kind; and without policies nothing says what either is for.
    for text in [states.clone(), states.replace("if_id", "mark")] {
        assert!(xfrm::read(&text, &[]).sas.is_empty());
    }
}

#[test]
fn no_piece_of_a_key_is_shown() {
    // 1e, 1f and f1 to f3 stand in keys alone.
    let secgw_texts = [
        "sa out 6 aead_algo aes-128-gcm aead_key 1e:1e:1e:\\\n 1f:f1:f2:f3 mode ipv4-tunnel src 172.16.1.6 dst 172.16.2.6",
        "sa out 6 aead_algo aes-128-gcm aead_key 1e:1e:1e 1f f1:f2 f3 mode ipv4-tunnel",
        "sa out 6 aead_kee 1e:1f:f1:f2:f3",
        "sa out 6 aead_key 1e1ff1zz f2;f3",
        "1e:1f:f1\nsa out 6 cipher_algo 1e:1f",
        "sa out 6 aead_algo aes-128-gcm aead_key 1e:1f\n#\n1f:f1:f2",
    ];
    let xfrm_texts = [
        outbound(0x100, "\tenc cbc(aes) 0x1e1f\n1ff1f2\n\tf3f3\n"),
        outbound(0x100, "\tenc cbc(aes) 0x1e1fzz f1 f2 f3 f3\n"),
        outbound(0x100, "\tenk cbc(aes) 0x1e1f\n\tf1f2f3\n"),
    ];
    let mut all: Vec<Imported> = secgw_texts.iter().map(|text| secgw::read(text)).collect();
    all.extend(xfrm_texts.iter().map(|text| xfrm::read(text, &[])));
    for imported in all {
        assert!(imported.remarks.iter().any(|remark| remark.lost), "{imported:#?}");
        for remark in &imported.remarks {
            let said = format!("{} {}", remark.text, remark.reason);
            for piece in ["1e", "1f", "f1", "f2", "f3"] {
                assert!(!said.contains(piece), "{said}");
            }
        }
    }
}

#[test]
fn keys_of_ipsec_secgw_go_on_in_the_next_line() {
    let text = "sa out 6 aead_algo aes-128-gcm aead_key 10:11:12:13:14:15:16:17:18:19:1a:1b:1c:1d:1e:\\\n# a comment\n\
                1f:a0:a1:a2:a3 mode ipv4-tunnel src 172.16.1.6 dst 172.16.2.6\n";
    let imported = secgw::read(text);
    assert_eq!((imported.sas.len(), imported.remarks.len()), (1, 0), "{:#?}", imported.remarks);
    assert_eq!(imported.sas[0].key.as_str(), "101112131415161718191a1b1c1d1e1fa0a1a2a3");
}

#[test]
fn the_sample_configuration_of_ipsec_secgw_is_imported_but_for_single_sas() {
    // The kinds of lines of its ep0.cfg, one of each.
    let imported = secgw::read(include_str!("data/ep0.cfg"));
    let config = through_the_file(&imported);
    let names: Vec<_> = config.sas.entries.iter().map(|entry| entry.config.name.as_str()).collect();
    assert_eq!(names, ["out-00000005"]);
    assert_eq!(config.sas.policies.len(), 2);
    let lost = lines(&imported.remarks, true);
    assert_eq!(lost.len(), 9, "{lost:#?}");
}

const SWANCTL: &str = include_str!("data/swanctl.conf");
const IPSEC_CONF: &str = include_str!("data/ipsec.conf");

/// The file that is written for a daemon's connections, and the lines and words of what is lost.
fn for_daemon(imported: &ImportedIke) -> (String, Vec<(usize, &str)>) {
    let text = imported.write("a test");
    config::parse(&text, "gateway.toml", Path::new("")).unwrap_or_else(|_| panic!("not read: {text}"));
    let lost = imported.remarks.iter().filter(|remark| remark.lost);
    (text, lost.map(|remark| (remark.line, remark.text.as_str())).collect())
}

#[test]
fn a_gateway_follows_the_connections_of_swanctl_and_says_what_it_cannot() {
    let imported = swanctl::read(SWANCTL);
    let (text, lost) = for_daemon(&imported);
    assert_eq!(imported.children(), 2);
    let net = "# branch/net: 10.1.0.0/16 here, 10.2.0.0/16, 2001:db8:2::/48 behind 192.0.2.2, 2001:db8::2\n";
    assert!(text.contains(net) && text.contains("source = \"xfrm\"\nmark = 0x4642"), "{text}");
    assert!(text.contains("kind = \"raw\"") && text.contains("beside_ike = true"), "{text}");
    let at = |part: &str| line_of(SWANCTL, part);
    let expected = [
        (at("branch : defaults"), "branch"),
        (at("if_id_in"), "if_id_in"),
        (at("if_id_out"), "if_id_out"),
        (at("old {"), "branch/old"),
        (at("camellia"), "camellia256-sha256"),
        (at("set_mark_out"), "set_mark_out"),
        (at("include"), "include conf.d/*.conf"),
    ];
    assert_eq!(lost, expected);
    // What has to be changed is said, and no secret is.
    let any = imported.remarks.iter().find(|remark| remark.text == "warriors/any").unwrap();
    assert!(!any.lost && any.reason.contains("mark_in_sa = yes"), "{any:?}");
    let all = format!("{text}{:?}", imported.remarks);
    assert!(!all.contains("staple") && !all.contains("f1e2"), "{all}");
}

#[test]
fn a_gateway_follows_the_connections_of_ipsec_conf_and_says_what_it_cannot() {
    let imported = ipsec_conf::read(IPSEC_CONF);
    let (text, lost) = for_daemon(&imported);
    assert_eq!(imported.children(), 2);
    let branch = "# branch: 10.1.0.0/16 here, 10.2.0.0/16, 10.3.0.0/16 behind 192.0.2.2\n";
    assert!(text.contains(branch) && text.contains("behind any peer"), "{text}");
    let at = |part: &str| line_of(IPSEC_CONF, part);
    let expected = [
        (at("compress=yes"), "compressed: compress"),
        (at("type=passthrough"), "bypass: type"),
        (at("also=nobody"), "also=nobody"),
        (at("no equals"), "no equals sign here"),
    ];
    assert_eq!(lost, expected);
}

#[test]
fn nothing_that_is_no_configuration_is_served() {
    for text in [
        "",
        "hello\n",
        "}}}}\n{{{{",
        "connections {",
        "conn",
        "conn x\n  =\n",
        "a = \"",
        "connections { a { children { b {",
    ] {
        let (one, other) = (swanctl::read(text), ipsec_conf::read(text));
        assert!(other.children() == 0 && one.children() <= 1, "{text}");
        for imported in [one, other] {
            let _ = for_daemon(&imported);
            assert!(text.is_empty() || imported.children() == 0 || !imported.remarks.is_empty(), "{text}");
        }
    }
}
