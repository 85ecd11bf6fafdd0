//! SAs inside of SAs and policies: what they become, and what is said where a reference is wrong.

mod common;

use common::*;
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Action, DscpSet};
use forebay_sas::{SasFile, parse};

fn right(text: &str) -> SasFile {
    parse(text, "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)))
}

fn wrong(text: &str) -> String {
    outcome(text.as_bytes(), &[]).map(|file| panic!("accepted: {file:?}")).unwrap_err()
}

/// One SA each way and `policy` from line 19 on.
fn both_with(policy: &str) -> String {
    named("east", "out", 1, "") + &named("west", "in", 2, "") + "[[policy]]\n" + policy
}

#[test]
fn policies_in_the_order_of_the_file() {
    let file = right(&full());
    let names: Vec<_> = file.policies.iter().map(|entry| &*entry.policy.name).collect();
    assert_eq!(names, ["voice", "policy-2", "policy-3"]);
    let voice = &file.policies[0].policy;
    assert_eq!((voice.direction, voice.dscp), (Direction::Seal, DscpSet::of([46])));
    assert_eq!(voice.action, Action::Protect(vec![SessionId(0)]));
    assert_eq!(voice.local_ts, ["10.1.0.0/16[udp]".parse().unwrap()]);
    assert_eq!(voice.remote_ts, ["10.2.0.0/16".parse().unwrap()]);
    assert_eq!(file.policies[1].policy.action, Action::Bypass);
    let third = &file.policies[2];
    assert_eq!((third.policy.direction, &third.policy.action), (Direction::Open, &Action::Discard));
    let line = full().lines().position(|line| line.contains("\"discard\"")).unwrap();
    assert_eq!(third.line, line - 1);
    assert_eq!((file.entries[0].outer, file.entries[1].outer), (Some(1), None));
}

#[test]
fn policies_and_nests_reach_the_database() {
    let (sad, keys) = right(&full()).into_sad(7, ivs).unwrap();
    assert_eq!((sad.iter().count(), keys.len()), (2, 2));
    let policies = |direction| sad.policies(direction).map(|(_, policy)| policy.name).collect::<Vec<_>>();
    assert_eq!(policies(Direction::Seal), ["voice", "policy-2"]);
    assert_eq!(policies(Direction::Open), ["policy-3"]);
    let (sad, keys) = right(&full()).into_inbound_sad(7).unwrap();
    assert_eq!((sad.iter().count(), keys.len()), (0, 0));
    assert_eq!((sad.policies(Direction::Seal).count(), sad.policies(Direction::Open).count()), (0, 1));
}

#[test]
fn one_direction_alone_keeps_its_references() {
    let mut text = String::new();
    for (direction, spi) in [("in", 1), ("out", 5)] {
        text += &named(&format!("{direction}-x"), direction, spi, &format!("outer = \"{direction}-z\""));
        text += &named(&format!("{direction}-y"), direction, spi + 1, "");
        text += &named(&format!("{direction}-z"), direction, spi + 2, "");
        text += &format!(
            "[[policy]]\ndirection = \"{direction}\"\naction = \"protect\"\nsa = [\"{direction}-y\", \"{direction}-x\"]\n"
        );
    }
    let text = text.replace("[[policy]]\ndirection = \"in\"", "[[policy]]\n# first\ndirection = \"in\"");
    for direction in [Direction::Seal, Direction::Open] {
        let file = right(&text);
        assert_eq!((file.entries.len(), file.policies.len()), (6, 2));
        let file = file.only(direction);
        let outers: Vec<_> = file.entries.iter().map(|entry| entry.outer).collect();
        assert_eq!(outers, [Some(2), None, None]);
        let [entry] = &file.policies[..] else { panic!() };
        assert_eq!(entry.policy.action, Action::Protect(vec![SessionId(1), SessionId(0)]));
        assert_eq!(entry.policy.direction, direction);
        let (sad, _) = file.into_sad(7, ivs).unwrap();
        assert_eq!(sad.iter().count(), 3);
    }
}

#[test]
fn names_are_told_apart_by_direction() {
    let policy = "direction = \"in\"\naction = \"protect\"\nsa = \"x\"\n";
    let text = named("x", "out", 1, "") + &named("x", "in", 2, "") + "[[policy]]\n" + policy;
    assert_eq!(right(&text).policies[0].policy.action, Action::Protect(vec![SessionId(1)]));
    // Two of one direction are only wrong where one is meant.
    let twice = named("x", "in", 3, "") + &text;
    let text = wrong(&twice);
    assert_says(&text, &["several SAs are called `x`", "SAS.toml:31:6", "which one?", "the second"]);
    right(twice.split("[[policy]]").next().unwrap());
    // Without a name: its place.
    let text = both_with("direction = \"out\"\naction = \"protect\"\nsa = \"sa-1\"\n")
        .replace("name = \"east\"\n", "");
    assert_eq!(right(&text).policies[0].policy.action, Action::Protect(vec![SessionId(0)]));
}

#[test]
fn policies_that_are_wrong() {
    let policy = "direction = \"out\"\naction = \"protect\"\nsa = \"east\"\n";
    right(&both_with(policy));
    for (from, to, says) in [
        ("direction = \"out\"\n", "", &["policy `policy-1` has no `direction`", "SAS.toml:19:1"][..]),
        ("action = \"protect\"\n", "", &["policy `policy-1` has no `action`", "this policy", "\"bypass\""]),
        (
            "sa = \"east\"\n",
            "",
            &["policy `policy-1` has no `sa`", "SAS.toml:19:1", "help: sa = \"east-out\""],
        ),
        ("\"east\"", "[]", &["policy `policy-1` has no `sa`"]),
        ("\"east\"", "5", &["`sa` is of the wrong type, integer", "SAS.toml:22:6"]),
        ("\"east\"", "[\"east\", 5]", &["`sa` is of the wrong type", "SAS.toml:22:15"]),
        ("\"east\"", "\"est\"", &["unknown SA `est`", "SAS.toml:22:6", "did you mean `east`?"]),
        ("\"east\"", "[\"east\", \"wst\"]", &["unknown SA `wst`", "SAS.toml:22:15"]),
        (
            "\"east\"",
            "\"west\"",
            &["SA `west` is for the other direction", "SAS.toml:22:6", "this SA", "direction = \"out\""],
        ),
        ("\"out\"", "\"up\"", &["unknown direction `up`", "SAS.toml:20:13"]),
        ("\"protect\"", "\"none\"", &["unknown action `none`", "SAS.toml:21:10", "or `discard`"]),
        (
            "\"protect\"",
            "\"bypass\"",
            &["that does not protect cannot name an SA", "SAS.toml:22:6", "as this says"],
        ),
        ("action =", "actoin =", &["unknown key `actoin`", "did you mean `action`?"]),
        ("action =", "spi = 5\naction =", &["`spi` belongs in an SA"]),
        ("action =", "name = 5\naction =", &["`name` is of the wrong type"]),
        ("action =", "classes = [64]\naction =", &["not a class of traffic", "SAS.toml:21:12"]),
        ("action =", "local_ts = [\"x\"]\naction =", &["not a selector in `local_ts`", "SAS.toml:21:13"]),
        ("action =", "remote_ts = 5\naction =", &["`remote_ts` is of the wrong type", "SAS.toml:21:13"]),
    ] {
        assert!(policy.contains(from), "{from}");
        assert_says(&wrong(&both_with(&policy.replacen(from, to, 1))), says);
    }
    let text = wrong(&(sample() + "[policy]\naction = \"bypass\"\n"));
    assert_says(&text, &["`policy` is of type table, expected `[[policy]]` tables", "double brackets"]);
    assert_says(
        &wrong("[[policy]]\ndirection = \"in\"\naction = \"discard\"\n"),
        &["no security associations"],
    );
    assert_says(&wrong(&format!("action = 5\n{}", sample())), &["put `[[policy]]` on a line above it"]);
    assert_says(&wrong(&format!("{}action = 5\n", sample())), &["`action` belongs in a policy"]);
    assert_says(
        &wrong(&format!("[[polcy]]\n{}", sample())),
        &["unknown key `polcy`", "did you mean `policy`?"],
    );
}

#[test]
fn nests_that_are_wrong() {
    let chain = |names: &[(&str, &str)]| {
        let sa = |(at, (name, outer)): (usize, &(&str, &str))| {
            let outer = if outer.is_empty() { String::new() } else { format!("outer = \"{outer}\"") };
            named(name, "out", at as u32 + 1, &outer)
        };
        names.iter().enumerate().map(sa).collect::<String>()
    };
    right(&chain(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "")]));
    let text = wrong(&chain(&[("x", "a"), ("y", "x"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "")]));
    assert_says(&text, &["SA `x` is nested in more than 3 others", "SAS.toml:9:9", "nest at most 4 SAs"]);
    assert!(!text.contains("errors"), "{text}");
    let text = wrong(&chain(&[("z", "a"), ("a", "b"), ("b", "c"), ("c", "a")]));
    assert_says(&text, &["SA `a` is nested in itself", "SAS.toml:18:9", "leads back to this SA"]);
    assert!(!text.contains("errors"), "{text}");
    assert_says(&wrong(&chain(&[("a", "a")])), &["SA `a` is nested in itself", "SAS.toml:9:9"]);
    assert_says(&wrong(&chain(&[("a", "c"), ("b", "")])), &["unknown SA `c`", "SAS.toml:9:9"]);
    assert_says(
        &wrong(&named("a", "out", 1, "outer = 5")),
        &["`outer` is of the wrong type", "the name of the SA"],
    );
    let text = named("a", "out", 1, "outer = \"b\"") + &named("b", "in", 1, "");
    assert_says(&wrong(&text), &["SA `b` is for the other direction", "SAS.toml:9:9"]);
    // A fault of an SA is no fault of those that name it.
    let text = wrong(&text.replace("\"in\"", "\"inn\""));
    assert!(text.contains("unknown direction `inn`") && !text.contains("other direction"), "{text}");
}

#[test]
fn sas_that_no_policy_names_are_a_warning() {
    let policy = "direction = \"out\"\naction = \"bypass\"\n";
    let file = right(&both_with(policy));
    let [warning] = &file.warnings[..] else { panic!("{:?}", file.warnings) };
    assert_says(
        &rendered(warning),
        &["⚠", "SA `east` is unused: no policy names it", "SAS.toml:2:8", "in a policy with sa = \"east\""],
    );
    let inner = named("inner", "in", 5, "outer = \"west\"");
    let policy = "direction = \"in\"\naction = \"protect\"\nsa = \"west\"\n";
    assert!(right(&(both_with(policy) + &inner)).warnings.is_empty());
}

#[test]
fn spelled_out_policies_say_what_the_sas_say_and_hold_the_place_of_those_left_out() {
    let sa = |name: &str, direction: &str, spi: u32, rest: &str| {
        format!(
            "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes128gcm16\"\nkey = \"{}\"\n\
             local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n{rest}\n",
            format!("{spi:04x}").repeat(10)
        )
    };
    let text = [
        sa("bound", "out", 0x1001, "remote_ts = [\"10.2.0.0/16\"]\ncpu = 0"),
        sa("inner", "out", 0x1002, "remote_ts = [\"10.3.0.0/16\"]\nouter = \"around\""),
        sa("any", "out", 0x1003, "remote_ts = [\"10.2.0.0/16\"]"),
        sa("around", "out", 0x1004, ""),
        sa("in", "in", 0x1005, ""),
        sa("wide", "out", 0x1006, "remote_ts = [\"10.0.0.0/8\"]"),
    ]
    .concat();
    let file = right(&text).spelled_out();
    let said = |file: &SasFile| -> Vec<(String, Action)> {
        let policies = file.policies.iter().map(|entry| &entry.policy);
        policies.map(|policy| (policy.name.clone(), policy.action.clone())).collect()
    };
    let protect = |places: &[u32]| Action::Protect(places.iter().copied().map(SessionId).collect());
    let own = |name: &str, action| (name.to_owned(), action);
    assert_eq!(
        said(&file),
        [own("inner", protect(&[1])), own("any", protect(&[2, 0])), own("wide", protect(&[5]))]
    );
    assert_eq!(file.policies[1].policy.remote_ts, file.entries[2].config.remote_ts);
    // Where the first is left out, the wider one does not take its packets.
    let part = file.with(&[false, true, false, true, true, true]);
    assert_eq!(said(&part)[1..], [own("any", Action::Discard), own("wide", protect(&[3]))]);
    // With policies of the file there is nothing to spell out.
    let with_policy = format!("{text}[[policy]]\nname = \"p\"\ndirection = \"out\"\naction = \"discard\"\n");
    assert_eq!(right(&with_policy).spelled_out().policies.len(), 1);
}
