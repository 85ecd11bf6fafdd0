//! A table made by netlink is the one that nft(8) makes of its text.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods)] // the test's namespaces are waited for

#[path = "support/namespace.rs"]
mod namespace;

use std::io::Write;
use std::process::{Command, Stdio};

use forebay_links::nftables::{Chain, End, Hook, Match, Nftables, Rule, Set, Table, Verdict};
use namespace::cable;

fn set(name: &'static str, ranges: &[[&str; 2]]) -> Set {
    let ranges = ranges.iter().map(|range| (range[0].parse().unwrap(), range[1].parse().unwrap()));
    Set { name, v6: name.ends_with('6'), ranges: ranges.collect() }
}

/// A table with every kind of match.
fn table(sets: Vec<Set>) -> Table {
    let rule = |matches: Vec<Match>| Rule { matches, verdict: Verdict::Accept };
    let address = |text: &str| text.parse().unwrap();
    let alone = [
        vec![Match::ArrivesBy("lo".to_owned())],
        vec![Match::ArrivesByIndex(1)],
        vec![Match::V6(false), Match::InRange(End::Source, address("10.0.0.3"), address("10.0.0.9"))],
        vec![
            Match::V6(true),
            Match::InRange(End::Destination, address("2001:db8::1"), address("2001:db8::1")),
        ],
        vec![Match::IsLocal(End::Destination), Match::Protocol(50)],
        vec![Match::Protocol(17), Match::Port(End::Destination, 500, 500)],
        vec![Match::Protocol(6), Match::Port(End::Source, 100, 200), Match::Port(End::Destination, 80, 80)],
        vec![Match::V6(false), Match::Protocol(1), Match::Type(3, 3)],
        vec![Match::Protocol(58), Match::TypeAndCode(0x0100, 0x02ff)],
        vec![Match::V6(true), Match::FromLink, Match::Protocol(58), Match::Type(133, 137)],
        vec![Match::V6(false), Match::LaterFragment { v6: false }],
        vec![Match::V6(true), Match::LaterFragment { v6: true }],
        vec![Match::V6(false), Match::IsBroadcast],
    ];
    let mut rules: Vec<Rule> = alone.into_iter().map(rule).collect();
    rules.push(Rule { matches: vec![], verdict: Verdict::Drop("forged") });
    let goes = |v6, end, set| Rule {
        matches: vec![Match::V6(v6), Match::InSet(end, set)],
        verdict: Verdict::Goto("check"),
    };
    let hooks =
        [(Hook::Prerouting, "arriving", End::Source), (Hook::Postrouting, "leaving", End::Destination)];
    let mut chains = vec![Chain { name: "check", hook: None, rules }];
    for (hook, name, end) in hooks {
        let rules = vec![goes(false, end, "remote4"), goes(true, end, "remote6")];
        chains.push(Chain { name, hook: Some(hook), rules });
    }
    let passes = rule(vec![Match::ArrivesBy("fb0".to_owned()), Match::LeavesBy("lan".to_owned())]);
    chains.push(Chain { name: "opened", hook: Some(Hook::Forward), rules: vec![passes] });
    chains[2].rules.push(rule(vec![Match::LeavesBy("fb0".to_owned()), Match::LeavesByIndex(1)]));
    Table { name: "forebay_fb0".to_owned(), counters: vec!["forged", "leaked"], sets, chains }
}

/// Has nft(8) do something.
fn nft(words: &str) {
    assert!(Command::new("nft").args(words.split(' ')).status().unwrap().success(), "{words}");
}

fn listed() -> Option<String> {
    let listed = Command::new("nft").args(["list", "ruleset"]).output().ok()?;
    listed.status.success().then(|| String::from_utf8(listed.stdout).unwrap())
}

fn load(text: &str) {
    let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success(), "{text}");
}

#[test]
fn tables_are_those_of_nft_and_change_in_place() {
    let Some([a, _b]) = cable(1500) else { return };
    a.run(|| {
        let mut nftables = Nftables::open().unwrap();
        let sets = vec![
            set(
                "remote4",
                &[["10.2.0.0", "10.2.255.255"], ["10.5.0.3", "10.5.0.9"], ["192.0.2.1", "192.0.2.1"]],
            ),
            set("remote6", &[["2001:db8::", "2001:db8::ff"]]),
        ];
        let first = table(sets);
        if let Err(error) = nftables.replace(&first) {
            println!("SKIPPED: no nf_tables here: {error}");
            return;
        }
        let counted = nftables.counted("forebay_fb0").unwrap();
        assert_eq!(counted.content, Some(nftables.replace(&first).unwrap()), "the same table");
        assert_eq!(
            counted.packets.into_iter().collect::<Vec<_>>(),
            [("forged".to_owned(), 0), ("leaked".to_owned(), 0)]
        );
        let Some(ours) = listed() else { return println!("SKIPPED: no nft(8) to compare with") };
        nftables.delete("forebay_fb0").unwrap();
        assert_eq!(listed().unwrap(), "");
        nftables.delete("forebay_fb0").unwrap();
        assert_eq!(nftables.counted("forebay_fb0").unwrap(), Default::default());
        load(&first.to_string());
        assert_eq!(listed().unwrap(), ours);

        // In the place of what is there; other tables stay.
        load("table inet other { }");
        nftables.replace(&first).unwrap();
        let with_other = listed().unwrap();
        let sets = vec![
            set(
                "remote4",
                &[["10.2.0.0", "10.2.0.255"], ["10.2.2.0", "10.2.255.255"], ["10.5.0.3", "10.5.0.9"]],
            ),
            set("remote6", &[["::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]]),
        ];
        let second = table(sets);
        assert!(second.is_like(&first));
        nftables.change(&first, &second).unwrap();
        nftables.change(&second, &second).unwrap();
        let changed = listed().unwrap();
        assert!(
            changed.contains("10.2.0.0/24, 10.2.2.0-10.2.255.255,\n\t\t\t     10.5.0.3-10.5.0.9 }"),
            "{changed}"
        );
        assert!(!changed.contains("2001:db8::-"), "{changed}");
        nftables.change(&second, &first).unwrap();
        assert_eq!(listed().unwrap(), with_other);
        // All or nothing.
        let mut broken = second.clone();
        broken.chains[1].rules[0].verdict = Verdict::Goto("nowhere");
        assert!(nftables.replace(&broken).is_err());
        assert!(nftables.change(&second, &first).is_err(), "what is to be taken out is not there");
        assert_eq!(listed().unwrap(), with_other);

        // More than one message of elements, there at once.
        let many: Vec<_> =
            (0..20_000u32).map(|n| std::net::IpAddr::from((0x0a00_0000 + 4 * n).to_be_bytes())).collect();
        let sets = vec![
            Set { name: "remote4", v6: false, ranges: many.iter().map(|&one| (one, one)).collect() },
            set("remote6", &[]),
        ];
        let third = table(sets);
        nftables.change(&first, &third).unwrap();
        assert_eq!(listed().unwrap().matches("10.1.56.").count(), 32, "10.1.56.0 to 10.1.56.124");
        nftables.change(&third, &first).unwrap();
        assert_eq!(listed().unwrap(), with_other);
    });
}

/// What another program does to a table, and whether that is another content.
const CHANGES: [(&str, bool); 11] = [
    ("add table inet other", false),
    ("flush set inet forebay_fb0 remote4", true),
    ("delete element inet forebay_fb0 remote6 { 2001:db8::-2001:db8::ff }", true),
    ("add element inet forebay_fb0 remote4 { 203.0.113.1 }", true),
    ("insert rule inet forebay_fb0 arriving accept", true),
    ("add rule inet forebay_fb0 check accept", true),
    ("flush chain inet forebay_fb0 leaving", true),
    ("add table inet forebay_fb0 { flags dormant ; }", true),
    ("chain inet forebay_fb0 leaving { policy drop ; }", true),
    ("add chain inet forebay_fb0 more { type filter hook prerouting priority -400 ; }", true),
    ("flush ruleset", true),
];

#[test]
fn a_change_by_another_program_is_another_content() {
    let Some([a, _b]) = cable(1500) else { return };
    a.run(|| {
        let mut nftables = Nftables::open().unwrap();
        let sets = vec![
            set("remote4", &[["10.2.0.0", "10.2.255.255"], ["192.0.2.1", "192.0.2.1"]]),
            set("remote6", &[["2001:db8::", "2001:db8::ff"]]),
        ];
        let table = table(sets);
        let made = match nftables.replace(&table) {
            Ok(made) => made,
            Err(error) => return println!("SKIPPED: no nf_tables here: {error}"),
        };
        if listed().is_none() {
            return println!("SKIPPED: no nft(8) to change rules with");
        }
        for (words, changes) in CHANGES {
            let content = |nftables: &mut Nftables| nftables.counted("forebay_fb0").unwrap().content;
            assert_eq!(content(&mut nftables), Some(made));
            nft(words);
            assert_eq!(content(&mut nftables) != Some(made), changes, "{words}");
            assert_eq!(nftables.replace(&table).unwrap(), made, "{words}");
        }
        // A rule in the place of another, as many as before.
        let text = listed().unwrap();
        nft("flush chain inet forebay_fb0 leaving");
        for line in text.lines().skip_while(|line| !line.contains("chain leaving")).skip(2).take(3) {
            let line = if line.contains("fb0") { "counter drop" } else { line.trim() };
            nft(&format!("add rule inet forebay_fb0 leaving {line}"));
        }
        assert_eq!(listed().unwrap().lines().count(), text.lines().count());
        assert_ne!(nftables.counted("forebay_fb0").unwrap().content, Some(made));
    });
}
