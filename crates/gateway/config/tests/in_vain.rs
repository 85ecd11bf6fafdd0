//! Warnings about what is accepted and cannot do what it is there for.

use std::path::Path;

fn sa(name: &str, direction: &str, spi: u32, rest: &str) -> String {
    let key = format!("{spi:08x}").repeat(8);
    format!(
        "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes256-sha256\"\nkey = \"{key}\"\n\
         local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n{rest}\n"
    )
}

const OUT: &str = "local_ts = [\"10.1.0.0/16\"]\nremote_ts = [\"10.2.0.0/16\"]";
const TURNED: &str = "local_ts = [\"10.2.0.0/16\"]\nremote_ts = [\"10.1.0.0/16\"]";

fn auth(byte: &str) -> String {
    format!("auth_key = \"{}\"\n", byte.repeat(32))
}

/// A tunnel of two SAs, with selectors of the inbound one.
fn tunnel(inbound: &str, rest: &str) -> String {
    let (out, back) = (format!("{OUT}\n{}", auth("a1")), format!("{inbound}\n{}", auth("a2")));
    format!(
        "[[outside]]\nkind = \"raw\"\n{}{}{rest}",
        sa("out", "out", 4097, &out),
        sa("in", "in", 8193, &back)
    )
}

fn warnings(text: &str) -> Vec<String> {
    let config = forebay_config::parse(text, "gateway.toml", Path::new("/etc/forebay"))
        .unwrap_or_else(|errors| panic!("{text}: {:?}", errors.findings()));
    config.warnings.iter().map(|one| one.problem().to_string()).collect()
}

#[track_caller]
fn is_said(text: &str, message: Option<&str>) {
    let found = warnings(text);
    assert_eq!(found.len(), usize::from(message.is_some()), "{text}: {found:?}");
    assert!(found.iter().all(|one| one.contains(message.unwrap_or_default())), "{found:?}");
}

#[test]
fn selectors_the_wrong_way_round_are_warned_of() {
    is_said(&tunnel(OUT, ""), None);
    is_said(&tunnel(TURNED, ""), Some("inbound SA `in` has as `local_ts` what the outbound SA"));
    // Where each side has both networks, they are right both ways.
    let other = sa("other", "out", 4098, &format!("{TURNED}\n{}", auth("a3")));
    is_said(&tunnel(TURNED, &other), None);
    let both =
        "local_ts = [\"10.1.0.0/16\", \"10.2.0.0/16\"]\nremote_ts = [\"10.1.0.0/16\", \"10.2.0.0/16\"]";
    let found = warnings(&tunnel(both, "").replace(OUT, both));
    assert!(!found.iter().any(|one| one.contains("wrong way") || one.contains("the reverse")), "{found:?}");
}

#[test]
fn addresses_of_others_on_the_interface_are_warned_of() {
    let inside = |line: &str| format!("[inside]\n{line}\n{}", tunnel(OUT, ""));
    is_said(&inside("addresses = [\"10.1.0.1/32\"]"), None);
    is_said(
        &inside("addresses = [\"192.0.2.2/32\"]"),
        Some("`addresses` has 192.0.2.2, the peer of SA `out`"),
    );
    is_said(&inside("addresses = [\"10.2.0.7/32\"]"), Some("10.2.0.7, in `remote_ts` of SA `out`"));
    is_said(&inside("answer = [\"192.0.2.2\"]"), Some("`answer` has 192.0.2.2, the peer"));
    // All addresses are the peer's side, and this one is this side's, too.
    let wide = inside("addresses = [\"10.1.0.1/32\"]").replace("[\"10.2.0.0/16\"]", "[\"0.0.0.0/0\"]");
    let found = warnings(&wide);
    assert!(!found.iter().any(|one| one.contains("for its own")), "{found:?}");
}

#[test]
fn policies_whose_sas_carry_none_of_their_packets_are_warned_of() {
    let policy = |network: &str, classes: &str| {
        format!(
            "[[policy]]\nname = \"p\"\ndirection = \"out\"\naction = \"protect\"\nsa = \"out\"\nremote_ts = [\"{network}\"]\n{classes}"
        )
    };
    is_said(&tunnel(OUT, &policy("10.2.3.0/24", "")), None);
    is_said(&tunnel(OUT, &policy("10.0.0.0/8", "")), None);
    let never = Some("policy `p` protects by SA `out`, whose selectors contain none of its packets");
    is_said(&tunnel(OUT, &policy("10.9.0.0/16", "")), never);
    let classed = tunnel(OUT, &policy("10.2.0.0/16", "classes = [\"ef\"]")).replacen(
        "spi",
        "classes = [\"cs1\"]\nspi",
        1,
    );
    is_said(&classed, never);
}

#[test]
fn integrity_keys_that_are_another_key_too_are_warned_of() {
    let shared = Some("the integrity key of SA `in` is also the integrity key of SA `out`");
    is_said(&tunnel(OUT, "").replace(&auth("a2"), &auth("a1")), shared);
    let cipher = format!("auth_key = \"{}\"\n", "00001001".repeat(8));
    is_said(
        &tunnel(OUT, "").replace(&auth("a2"), &cipher),
        Some("the integrity key of SA `in` is also the cipher key of SA `out`"),
    );
    // AH has no other key.
    let ah = |text: String| {
        let lines = text.lines().filter(|line| !line.starts_with("key ="));
        lines.collect::<Vec<_>>().join("\n").replace("\"aes256-sha256\"", "\"sha256\"\nprotocol = \"ah\"")
    };
    is_said(&ah(tunnel(OUT, "")), None);
    is_said(&ah(tunnel(OUT, "").replace(&auth("a2"), &auth("a1"))), shared);
}

#[test]
fn exceptions_that_open_the_guard_or_do_nothing_are_warned_of() {
    let except = |networks: &str| format!("[guard]\nexcept = [{networks}]\n{}", tunnel(OUT, ""));
    is_said(&except("\"10.2.0.9/32\""), None);
    is_said(&except("\"10.0.0.0/8\""), Some("`except` contains all protected networks"));
    is_said(&except("\"0.0.0.0/0\""), Some("`except` contains all protected networks"));
    is_said(&except("\"172.16.0.0/12\""), Some("`except` has 172.16.0.0/12, which is in no `remote_ts`"));
    is_said(&except("\"::/0\", \"10.2.0.9/32\""), Some("`except` has ::/0"));
}
