//! SAs and policies of other systems: what is taken over means the same, and what is not is named with its line.

use std::path::{Path, PathBuf};

use forebay_config::{self as config, Config};
use forebay_crypto::Direction;
use forebay_import::{
    Imported, ImportedIke, Remark, Text, ipsec_conf, secgw, swanctl, wireguard, write, xfrm,
};
use forebay_ipsec::{Action, DontFragment, Ecn, Encapsulation, InnerDscp, Mode, Protocol};
use forebay_time::Duration;
use zeroize::Zeroizing;

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
        "sa out 6 cipher_algo aes-128-cbc cipher_key=1e:1f:f1:f2:f3 mode transport",
        "sa out 6 cipher_kee=1e:1f:f1:f2:f3 mode transport",
    ];
    let xfrm_texts = [
        outbound(0x100, "\tenc cbc(aes) 0x1e1f\n1ff1f2\n\tf3f3\n"),
        outbound(0x100, "\tenc cbc(aes) 0x1e1fzz f1 f2 f3 f3\n"),
        outbound(0x100, "\tenk cbc(aes) 0x1e1f\n\tf1f2f3\n"),
        outbound(0x100, "\tenc cbc(aes) 0x1e1ff1f2f3_1e1ff1f2f3_1e1ff1f2f3\n"),
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

/// In the place of a setting, without what should stand before or behind it, or of another file.
#[test]
fn secrets_in_lines_that_are_wrong_are_not_shown() {
    const KEY: &str = "q7SECRETqabcdefghijklmnop0123456789ABCDEFGH=";
    let about_key = "[Interface]\nAddress = 10.9.0.1/24\n";
    let wireguard = [
        format!("PrivateKey {KEY}"),
        KEY.to_owned(),
        format!("[Peer {KEY}"),
        format!("{KEY} = PrivateKey"),
        format!("PostUp = x\nPresharedKey: {KEY}"),
        format!("PrivateKey={KEY} {KEY}"),
    ];
    let mut said: Vec<Vec<Remark>> =
        wireguard.iter().map(|line| wireguard::read(&format!("{about_key}{line}\n")).remarks).collect();
    let conn = "conn net\n  left=192.0.2.1\n  right=192.0.2.2\n";
    for line in [
        "192.0.2.1 192.0.2.2 : PSK \"SECRET pass phrase\"",
        ": RSA key.pem SECRET",
        "user : EAP SECRET",
        "  psk=SECRET",
        "  psk SECRET",
        "  secret: SECRET",
        "psk=\"SECRET pass phrase\"",
        "  secret:\"SECRET pass phrase\"",
        ": PSK\"SECRET\"",
        "user : EAP\"SECRET\"",
        "PSK=SECRET pass phrase",
    ] {
        said.push(of_ipsec_conf(&format!("{conn}{line}\n"), &[]).remarks);
    }
    for line in ["secret SECRET", "secret = SECRET\n}\nsecret = SECRET", "psk: SECRET"] {
        said.push(of_swanctl(&format!("connections {{\n a {{\n {line}\n }}\n}}\n"), &[]).remarks);
    }
    for remarks in said {
        for remark in &remarks {
            let said = format!("{} {}", remark.text, remark.reason);
            assert!(!said.contains("SECRET") && !said.contains("phrase"), "{said}");
        }
    }
}

/// Keys that stand where an address, a network or a mode should: neither remarks nor the file's comments show them.
#[test]
fn keys_in_the_place_of_a_value_are_not_shown() {
    const KEY: &str = "q7SECRETqabcdefghijklmnop0123456789ABCDEFGH=";
    let mut written = vec![];
    for setting in ["left", "right", "leftsubnet", "rightsubnet", "type", "esp", "ike", "auto"] {
        let text = format!("conn net\n  left=192.0.2.1\n  right=192.0.2.2\n  {setting}={KEY}\n");
        written.push(of_ipsec_conf(&text, &[]));
    }
    for setting in ["local_ts", "remote_ts", "mode", "esp_proposals", "mark_in"] {
        let text = format!(
            "connections {{ a {{ remote_addrs = 0s{KEY}\n children {{ c {{ {setting} = {KEY}\n }} }} }} }}\n"
        );
        written.push(of_swanctl(&text, &[]));
    }
    for imported in written {
        let said: String =
            imported.remarks.iter().map(|one| format!("{} {}\n", one.text, one.reason)).collect();
        let text = imported.write("a file");
        assert!(!said.contains("SECRET") && !text.contains("SECRET"), "{said}{text}");
    }
    // Addresses are.
    let child = "connections { a { remote_addrs = 2001:db8:1111:2222:3333:4444:5555:6666\n children { c { remote_ts = fd02::/64\n } } } }\n";
    let text = of_swanctl(child, &[]).write("a file");
    assert!(text.contains("fd02::/64 behind 2001:db8:1111:2222:3333:4444:5555:6666"), "{text}");
}

#[test]
fn a_setting_whose_name_ends_like_that_of_a_key_is_shown() {
    let remarks = of_ipsec_conf("conn net\n  left=192.0.2.1\n  right=192.0.2.2\nrekey=no\n", &[]).remarks;
    assert!(remarks.iter().any(|remark| remark.text == "rekey=no"), "{remarks:?}");
}

/// What only looks like a key is.
#[test]
fn addresses_and_names_are_shown() {
    for line in [
        "sp foo 2001:db8:1111:2222:3333:4444:5555:6666/64",
        "sp ipv4 out esp foo 192.168.100.100-192.168.200.200",
        "sp site-to-site-tunnel-2026 aes256gcm16-modp2048",
    ] {
        assert!(
            said(&secgw::read(line), line, "sp ").text.ends_with(line.split(' ').next_back().unwrap()),
            "{line}"
        );
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

/// Files that may be included: those with a pattern's begin and end, in order.
fn files<'a>(named: &'a [(&str, &str)]) -> impl Fn(&Path) -> Result<Vec<Text>, String> + 'a {
    move |pattern| {
        let pattern = pattern.to_str().unwrap();
        let (begin, end) = pattern.split_once('*').unwrap_or((pattern, ""));
        let fits = |name: &str| match pattern.contains('*') {
            true => name.starts_with(begin) && name.ends_with(end),
            false => name == pattern,
        };
        let found = named.iter().filter(|(name, _)| fits(name));
        let found: Vec<Text> = found
            .map(|(name, text)| Text { path: PathBuf::from(name), text: Zeroizing::new((*text).to_owned()) })
            .collect();
        if found.is_empty() && !pattern.contains('*') {
            Err("there is no such file".into())
        } else {
            Ok(found)
        }
    }
}

fn of_swanctl(text: &str, named: &[(&str, &str)]) -> ImportedIke {
    swanctl::read(text, Some(Path::new("etc/swanctl.conf")), &files(named))
}

fn of_ipsec_conf(text: &str, named: &[(&str, &str)]) -> ImportedIke {
    ipsec_conf::read(text, Some(Path::new("etc/ipsec.conf")), &files(named))
}

/// The file that is written for a daemon's connections, and the lines and words of what is lost.
fn for_daemon(imported: &ImportedIke) -> (String, Vec<(usize, &str)>) {
    let text = imported.write("a test");
    config::parse(&text, "gateway.toml", Path::new("")).unwrap_or_else(|_| panic!("not read: {text}"));
    let lost = imported.remarks.iter().filter(|remark| remark.lost);
    (text, lost.map(|remark| (remark.line, remark.text.as_str())).collect())
}

#[test]
fn children_have_the_interface_of_their_connection() {
    let of = |connection: &str, child: &str| {
        let text = format!(
            "connections {{\n a {{\n{connection}\n remote_addrs = 192.0.2.2\n children {{\n c {{\n{child}\n local_ts = 10.1.0.0/16\n \
             remote_ts = 10.2.0.0/16\n mark_in = 5\n mark_out = 5\n mark_in_sa = yes\n esp_proposals = aes128gcm16\n}}\n}}\n}}\n}}\n"
        );
        let imported = of_swanctl(&text, &[]);
        let lost = imported.remarks.iter().filter(|one| one.lost).map(|one| (one.line, one.text.clone()));
        (imported.children(), lost.collect::<Vec<_>>())
    };
    assert_eq!(of("", ""), (1, vec![]));
    assert_eq!(of("if_id_out = 5", ""), (0, vec![(3, "a/c: if_id_out".to_owned())]));
    assert_eq!(of("", "if_id_in = %unique"), (0, vec![(7, "a/c: if_id_in".to_owned())]));
    // The kernel's SA has the length, and the gateway pads to it.
    assert_eq!(of("", "tfc_padding = 500"), (1, vec![]));
    // Its own counts.
    assert_eq!(of("if_id_in = 5", "if_id_in = 0"), (1, vec![]));
}

#[test]
fn a_gateway_follows_the_connections_of_swanctl_and_says_what_it_cannot() {
    let imported = of_swanctl(SWANCTL, &[]);
    let (text, lost) = for_daemon(&imported);
    assert_eq!(imported.children(), 2);
    let net = "# branch/net: 10.1.0.0/16 here, 10.2.0.0/16, 2001:db8:2::/48 behind 192.0.2.2, 2001:db8::2\n";
    assert!(text.contains(net) && text.contains("source = \"xfrm\"\nmark = 0x4642"), "{text}");
    assert!(text.contains("kind = \"raw\"") && text.contains("beside_ike = true"), "{text}");
    let at = |part: &str| line_of(SWANCTL, part);
    let expected = [
        (at("branch : defaults"), "branch"),
        (at("if_id_in"), "branch/interface: if_id_in"),
        (at("if_id_out"), "branch/interface: if_id_out"),
        (at("old {"), "branch/old"),
        (at("camellia"), "camellia256-sha256"),
        (at("set_mark_out"), "warriors/any: set_mark_out"),
        (at("include"), "include there/is/none.conf"),
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
    let imported = of_ipsec_conf(IPSEC_CONF, &[]);
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
        let (one, other) = (of_swanctl(text, &[]), of_ipsec_conf(text, &[]));
        assert!(other.children() == 0 && one.children() <= 1, "{text}");
        for imported in [one, other] {
            let _ = for_daemon(&imported);
            assert!(text.is_empty() || imported.children() == 0 || !imported.remarks.is_empty(), "{text}");
        }
    }
}

/// The lines of the written file that say what is served.
fn served(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains(" here, ")).collect()
}

/// The example of strongswan.conf(5), with settings that a gateway looks at.
#[test]
fn sections_inherit_from_those_that_they_refer_to() {
    let text = "
conn-defaults { encap = yes
    remote_addrs = 192.0.2.9 }
child-defaults {
    local_ts = 10.1.0.0/16   # which each child has
    esp_proposals = aes256gcm16
    mark_in = 0x7
    mark_in_sa = yes
    mark_out = 0x7
}
connections {
    conn-a : conn-defaults, eap-defaults {
        children { child-a : child-defaults { remote_ts = 10.2.0.0/16 } }
    }
    conn-b : conn-defaults
    {
        remote_addrs =
        children { child-b : child-defaults { remote_ts = 10.3.0.0/16
            local_ts = 10.1.3.0/24 } }
    }
    conn-c : connections.conn-a {
        remote_addrs = \"192.0.2.3\"
        children { child-c : child-defaults { remote_ts = 10.4.0.0/16 } }
    }
}
eap-defaults { remote { auth = eap } }
";
    let imported = of_swanctl(text, &[]);
    let (written, lost) = for_daemon(&imported);
    assert_eq!(lost, []);
    let expected = [
        "# conn-a/child-a: 10.1.0.0/16 here, 10.2.0.0/16 behind 192.0.2.9",
        "# conn-b/child-b: 10.1.3.0/24 here, 10.3.0.0/16 behind any peer",
        "# conn-c/child-c: 10.1.0.0/16 here, 10.4.0.0/16 behind 192.0.2.3",
        "# conn-c/child-a: 10.1.0.0/16 here, 10.2.0.0/16 behind 192.0.2.3",
    ];
    assert_eq!(served(&written), expected);
    // All of them have `encap`, so that no link for ESP straight in IP is made; sections that others inherit from are not the daemon's alone.
    assert!(!written.contains("kind = \"raw\"") && written.contains("mark = 0x7\n"), "{written}");
    assert_eq!(imported.remarks, []);
}

#[test]
fn what_a_child_inherits_and_no_gateway_serves_is_named_with_the_child() {
    let text = "base { children { net { if_id_in = 4\n remote_ts = 10.2.0.0/16 } } }\nconnections { a : base { }\n b : base { } }\n";
    let (written, lost) = {
        let imported = of_swanctl(text, &[]);
        assert_eq!(imported.children(), 0);
        (
            imported.write("a test"),
            imported.remarks.into_iter().filter(|remark| remark.lost).collect::<Vec<_>>(),
        )
    };
    let found: Vec<_> = lost.iter().map(|remark| (remark.line, remark.text.as_str())).collect();
    assert_eq!(found, [(1, "a/net: if_id_in"), (1, "b/net: if_id_in")], "{written}");
}

#[test]
fn references_that_lead_nowhere_or_in_a_circle_are_named() {
    let text = "connections {\n west : connections.south {\n children { x { } } }\n south : connections.west {\n children { y { } } }\n                 north : none.such { children { z { } } } }\n";
    let imported = of_swanctl(text, &[]);
    let (_, lost) = for_daemon(&imported);
    assert_eq!(lost, [(2, "west"), (4, "south"), (6, "north")]);
    // Each has the other's child all the same.
    assert_eq!(imported.children(), 5);
    // Many that each lead to two others end.
    let many: String = (0..40).map(|n| format!("s{n} : s{0}, s{0} {{ }}\n", n + 1)).collect();
    let many = format!("{many}s40 {{ }}\nconnections {{ a : s0 {{ children {{ x {{ }} }} }} }}\n");
    assert_eq!(of_swanctl(&many, &[]).children(), 1);
}

#[test]
fn files_that_swanctl_conf_includes_are_read_where_they_are_named() {
    let text = "connections {\n    include conf.d/*.conf # each a connection\n}\ninclude more.conf\ninclude none.conf\n";
    let named = [
        (
            "etc/conf.d/east.conf",
            "east : base {\n  children { net { remote_ts = 10.2.0.0/16\n if_id_out = 7 } }\n}\n",
        ),
        ("etc/conf.d/west.conf", "west {\n  remote_addrs = 192.0.2.7\n  children { include west/nets } }\n"),
        ("etc/conf.d/west/nets", "net { remote_ts = 10.3.0.0/16 }\n}\n"),
        ("etc/more.conf", "base { remote_addrs = 192.0.2.2 }\ninclude more.conf\n"),
    ];
    let imported = of_swanctl(text, &named);
    let (written, _) = for_daemon(&imported);
    assert_eq!(served(&written), ["# west/net: what IKE negotiates here, 10.3.0.0/16 behind 192.0.2.7"]);
    let lost: Vec<_> =
        imported.remarks.iter().filter(|one| one.lost).map(|one| (one.place(), one.text.as_str())).collect();
    let expected = [
        ("line 5".to_owned(), "include none.conf"),
        ("etc/conf.d/east.conf line 3".to_owned(), "east/net: if_id_out"),
        ("etc/conf.d/west/nets line 2".to_owned(), "}"),
        // It includes itself.
        ("etc/more.conf line 2".to_owned(), "include more.conf"),
    ];
    assert_eq!(lost, expected);
    assert!(written.contains("# NOT SERVED, etc/conf.d/east.conf line 3: east/net: if_id_out:"), "{written}");
    // Standard input has no directory.
    let piped = swanctl::read("include conf.d/*.conf\n", None, &files(&named));
    assert!(piped.remarks[0].reason.contains("standard input"), "{:?}", piped.remarks);
}

#[test]
fn values_have_quotes_and_go_on_behind_ends_of_lines() {
    let text = "connections { a { remote_addrs = \"192.0.2.2,\\\n 192.0.2.3\" # two\n children { n { remote_ts = 10.2.0.0/16, \
                10.3.0.0/16 } } } }\nsecrets { ike { secret = \"staple }\n";
    let imported = of_swanctl(text, &[]);
    let (written, lost) = for_daemon(&imported);
    assert_eq!(
        served(&written),
        ["# a/n: what IKE negotiates here, 10.2.0.0/16, 10.3.0.0/16 behind 192.0.2.2, 192.0.2.3"]
    );
    assert_eq!(lost, [(4, "secret"), (4, "ike"), (4, "secrets")]);
    assert!(!written.contains("staple"));
}

#[test]
fn connections_inherit_by_also_and_from_the_default() {
    let text = "conn one\n  also=nets\n  also=peer\n  right=192.0.2.1\nconn nets\n  rightsubnet=10.2.0.0/16\n  leftsubnet=10.1.0.0/16\n  \
                also=deep\nconn peer\n  right=192.0.2.9\n  rightsubnet=10.2.0.0/16\nconn deep\n  esp=aes256gcm16\n  leftsubnet=10.9.0.0/16\n\
                conn %default\n  forceencaps=yes\n  right=%any\n  also=deep\nconn two\n  also=nets\n  leftsubnet=\nconn three\n  also=three\n  \
                also=nobody\n";
    let imported = of_ipsec_conf(text, &[]);
    let (written, lost) = for_daemon(&imported);
    let expected = [
        "# one: 10.1.0.0/16 here, 10.2.0.0/16 behind 192.0.2.1",
        "# nets: 10.1.0.0/16 here, 10.2.0.0/16 behind any peer",
        "# peer: what IKE negotiates here, 10.2.0.0/16 behind 192.0.2.9",
        "# deep: 10.9.0.0/16 here, what IKE negotiates behind any peer",
        "# two: what IKE negotiates here, 10.2.0.0/16 behind any peer",
        "# three: what IKE negotiates here, what IKE negotiates behind any peer",
    ];
    assert_eq!(served(&written), expected);
    assert!(!written.contains("kind = \"raw\""), "{written}");
    let lines = text.lines().collect::<Vec<_>>();
    let lost: Vec<_> = lost.iter().map(|(line, text)| (lines[line - 1].trim(), *text)).collect();
    let expected =
        [("also=deep", "%default: also=deep"), ("also=three", "also=three"), ("also=nobody", "also=nobody")];
    assert_eq!(lost, expected);
}

#[test]
fn a_connection_that_inherits_that_it_is_ignored_is_not_lost_in_silence() {
    let text = "conn base\n  right=192.0.2.2\n  auto=ignore\nconn west\n  also=base\n  rightsubnet=10.2.0.0/16\nconn nothing\n  type=tunnel\n";
    let imported = of_ipsec_conf(text, &[]);
    let (written, lost) = for_daemon(&imported);
    assert_eq!(served(&written), ["# west: what IKE negotiates here, 10.2.0.0/16 behind 192.0.2.2"]);
    assert_eq!(lost, [(7, "nothing")]);
    assert!(imported.remarks.iter().any(|remark| !remark.lost && remark.line == 1), "{:?}", imported.remarks);
}

/// strongSwan takes what the last `also` brings (conf_parser.c), libreswan the first one (ipsec.conf(5)).
#[test]
fn what_the_daemons_take_from_different_also_is_named() {
    let text = "conn west\n  right=192.0.2.2\n  also=x\n  also=y\nconn x\n  rightsubnet=10.2.0.0/16\n  dpdaction=hold\nconn y\n                  rightsubnet=10.0.0.0/8\n  dpdaction=clear\n";
    let imported = of_ipsec_conf(text, &[]);
    let (written, lost) = for_daemon(&imported);
    assert_eq!(served(&written), ["# west: what IKE negotiates here, 10.0.0.0/8 behind 192.0.2.2"]);
    assert_eq!(lost, [(9, "west: rightsubnet")]);
}

#[test]
fn files_that_ipsec_conf_includes_are_read_where_they_are_named() {
    let text = "config setup\n  uniqueids=no\ninclude ipsec.d/*.conf\nconn here\n  right=192.0.2.2\n  include ipsec.d/nets\n  compress=yes\n\
                include gone.conf\n";
    let named = [
        ("etc/ipsec.d/a.conf", "conn there\n  also=here\n  right=192.0.2.3\n  type=passthrough\n"),
        ("etc/ipsec.d/nets", "  rightsubnet=10.7.0.0/16\n"),
    ];
    let imported = of_ipsec_conf(text, &named);
    assert_eq!(imported.children(), 0);
    let lost: Vec<_> =
        imported.remarks.iter().filter(|one| one.lost).map(|one| (one.place(), one.text.as_str())).collect();
    let expected = [
        ("line 7".to_owned(), "there: compress"),
        ("line 7".to_owned(), "here: compress"),
        ("line 8".to_owned(), "include gone.conf"),
        ("etc/ipsec.d/a.conf line 4".to_owned(), "there: type"),
    ];
    assert_eq!(lost, expected);
    // Without what cannot be served, the included networks are the connection's.
    let text = text.replace("  compress=yes\n", "");
    let (written, _) = for_daemon(&of_ipsec_conf(&text, &named));
    assert_eq!(served(&written), ["# here: what IKE negotiates here, 10.7.0.0/16 behind 192.0.2.2"]);
}

const WIREGUARD: &str = include_str!("data/wg0.conf");

/// What is written with its gaps filled in: parsed, and keys in the place of their files.
fn filled(text: &str) -> Config {
    let mut spi = 0x1000;
    let blocks: Vec<&str> = text.split("[[sa]]").collect();
    let lines = blocks.iter().flat_map(|block| {
        let own = if block.contains("remote = \"2001:") { "2001:db8::1" } else { "192.0.2.1" };
        block.lines().map(move |line| (own, line)).chain([(own, "[[sa]]")])
    });
    let lines = lines.map(|(own, line)| match line.split_once(" = ") {
        Some(("spi", _)) => {
            spi += 1;
            format!("spi = {spi}")
        }
        Some(("local", _)) => format!("local = \"{own}\""),
        Some(("remote", value)) if value.contains(wireguard::GAP) => "remote = \"198.51.100.7\"".to_owned(),
        Some(("local_ts", _)) => "local_ts = [\"10.1.0.0/16\", \"2001:db8:1::/48\"]".to_owned(),
        Some(("key_file" | "auth_key_file", _)) => {
            let key = if line.starts_with("auth") { "auth_key" } else { "key" };
            spi += 1;
            format!("{key} = \"{}\"", format!("{spi:08x}").repeat(8))
        }
        _ => line.to_owned(),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.trim_end_matches("[[sa]]");
    config::parse(text, "gateway.toml", Path::new("")).unwrap_or_else(|errors| {
        panic!("{:#?} in\n{text}", errors.findings().iter().map(ToString::to_string).collect::<Vec<_>>())
    })
}

#[test]
fn addresses_and_networks_of_wireguard_are_taken_over_with_gaps() {
    let imported = wireguard::read(WIREGUARD);
    assert_eq!(imported.peers(), 3);
    let text = imported.write("a test");
    let parts = [
        "mtu = 1380\n",
        "addresses = [\"10.9.0.1/32\", \"fd00:9::1/128\"]\n",
        "keepalive = \"15 s\"\n",
        "mark = 0xca6c\n",
        "routes = []\n",
        "remote = \"198.51.100.2\"\n",
        "remote = \"2001:db8::2\"\n",
        "remote = \"vpn.example\"\n",
    ];
    parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    // The reader names every gap, and nothing else.
    let Err(errors) = config::parse(&text, "gateway.toml", Path::new("")) else {
        panic!("gaps are taken: {text}")
    };
    let gaps =
        text.lines().filter(|line| line.ends_with("\"FILL IN\"") || line.ends_with("[\"FILL IN\"]")).count();
    let keys = text.lines().filter(|line| line.contains("key_file")).count();
    assert_eq!((gaps, keys), (3 * 6, 12));
    let errors: Vec<_> = errors.findings().iter().filter_map(|finding| finding.line()).collect();
    for (number, line) in (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.ends_with("FILL IN\"") || line.ends_with("FILL IN\"]"))
    {
        assert!(errors.contains(&number), "line {number}: {line}: {errors:?}");
    }
    // With the gaps filled in it is a gateway whose SAs have the peers' networks.
    let config = filled(&text.replace("mtu = 1380", "mtu = 1300"));
    let networks: Vec<_> = (config.sas.entries.iter())
        .map(|entry| entry.config.remote_ts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        .collect();
    let road = "10.9.0.0/28 10.9.0.16/29 10.9.0.24/30 10.9.0.28/31 10.9.0.31 10.9.0.32/27 10.9.0.64/26 10.9.0.128/25";
    assert_eq!(networks[0], "10.2.0.0/16 2001:db8:2::/48");
    assert_eq!(networks[2].replace("/32", ""), "10.9.0.30");
    assert_eq!(sorted(&networks[4].replace("/32", "")), sorted(road));
}

fn sorted(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split(' ').collect();
    words.sort_unstable();
    words
}

#[test]
fn what_wireguard_has_and_no_gateway_takes_is_named_and_no_key_is_shown() {
    let imported = wireguard::read(WIREGUARD);
    let text = imported.write("a test");
    for (part, lost) in [
        ("PrivateKey", false),
        ("ListenPort", true),
        ("DNS", true),
        ("PostUp", true),
        ("Endpoint = vpn.example:51820", true),
        ("nonsense", true),
        ("PresharedKey", false),
    ] {
        let line = line_of(WIREGUARD, part);
        let found = imported.remarks.iter().filter(|remark| remark.line == line).map(|remark| remark.lost);
        assert_eq!(found.max(), Some(lost), "{part}: {:#?}", imported.remarks);
    }
    for peer in ["peer-1", "peer-2"] {
        assert_eq!(imported.remarks.iter().filter(|remark| remark.text == peer).count(), 4, "{peer}");
    }
    // A name is for the gateway to resolve.
    let line = line_of(WIREGUARD, "Endpoint = vpn.example:51820");
    let trust = |remark: &&Remark| remark.line == line && remark.reason.contains("whoever answers");
    assert_eq!(imported.remarks.iter().find(trust).map(|remark| remark.lost), Some(false));
    let none = wireguard::read("[Peer]\nEndpoint = vpn_1.example:4500\nAllowedIPs = 10.2.0.0/16\n");
    assert!(none.remarks.iter().any(|remark| remark.line == 2 && remark.lost), "{:#?}", none.remarks);
    let all = format!("{text}{:?}", imported.remarks);
    for line in WIREGUARD.lines().filter(|line| line.contains("Key = ")) {
        let key = line.split_once(" = ").unwrap().1;
        assert!(!all.contains(&key[..6]) && !all.contains(&key[key.len() - 6..]), "{key}");
    }
    assert!(!all.contains("hunter2"), "{all}");
}

#[test]
fn no_peer_of_wireguard_gets_what_is_another_s() {
    let peer = |networks: &str| format!("[Peer]\nEndpoint = 198.51.100.2:4500\nAllowedIPs = {networks}\n");
    let networks = |text: &str| {
        let imported = wireguard::read(text);
        let text = imported.write("a test");
        let found = text.lines().filter_map(|line| line.strip_prefix("remote_ts = ")).step_by(2);
        (found.map(ToOwned::to_owned).collect::<Vec<_>>(), imported)
    };
    // The longest prefix has a packet, whatever comes first.
    for text in [peer("10.0.0.0/30") + &peer("10.0.0.0/31"), peer("10.0.0.0/31") + &peer("10.0.0.0/30")] {
        let (mut found, _) = networks(&text);
        found.sort();
        assert_eq!(found, ["[\"10.0.0.0/31\"]", "[\"10.0.0.2/31\"]"]);
    }
    // The last peer has what two have; bits behind the prefix do not count.
    let (found, imported) = networks(&(peer("10.2.7.7/16, 10.3.0.0/16") + &peer("10.2.0.0/16")));
    assert_eq!(found, ["[\"10.3.0.0/16\"]", "[\"10.2.0.0/16\"]"]);
    assert!(imported.remarks.iter().any(|remark| remark.line == 3 && remark.lost), "{:#?}", imported.remarks);
    // What would be too many pieces is left to a person.
    let many: String = (0..200).map(|n| peer(&format!("10.{n}.1.1/32"))).collect();
    let (found, imported) = networks(&(peer("10.0.0.0/8") + &many));
    assert_eq!(found.len(), 200);
    assert!(imported.remarks.iter().any(|remark| remark.text == "10.0.0.0/8" && remark.lost));
    for text in [
        "",
        "[Interface]",
        "[Peer]\nAllowedIPs = x, , 1.2.3.4/99",
        "AllowedIPs = 10.0.0.0/8",
        "\u{0}=\n[peer]\n=\n",
    ] {
        assert_eq!(wireguard::read(text).peers(), 0, "{text}");
    }
}
