//! `ipsec.conf` as strongSwan's starter and libreswan read it (ipsec.conf(5)).

use std::collections::BTreeMap;

use super::ike::{Child, ImportedIke, is_address, mark, networks, peers, yes};

/// How a connection gets a mark there.
const HOW: &str = "`mark_in` and `mark_out` with swanctl's `mark_in_sa`, so move it to swanctl.conf; with libreswan see docs/ike.md";

/// Settings that no gateway can serve unless they say no, with the reason.
const REFUSED: [(&str, &str); 5] = [
    ("compress", "compressed packets are not processed: set it to `no`"),
    ("vti-interface", "the gateway's interface takes its place"),
    ("ipsec-interface", "SAs of an XFRM interface are the kernel's: set it to `no`"),
    (
        "nic-offload",
        "with offload the NIC does the crypto, and the gateway never sees the packets: set it to `no`",
    ),
    ("sec-label", "security labels are not supported"),
];

#[derive(Clone, Default)]
struct Conn {
    line: usize,
    settings: BTreeMap<String, (String, usize)>,
    also: Vec<(String, usize)>,
}

/// Reads a configuration.
pub fn read(text: &str) -> ImportedIke {
    let mut imported = ImportedIke::default();
    let (conns, order) = parse(text, &mut imported);
    for name in order.iter().filter(|name| name.as_str() != "%default") {
        let mut whole = conns.get("%default").cloned().unwrap_or_default();
        whole.settings.extend(inherited(name, &conns, &mut imported, 0));
        whole.line = conns.get(name).map_or(0, |conn| conn.line);
        read_conn(name, &whole, &mut imported);
    }
    imported.finish()
}

/// The settings of a connection with those of the ones that it names by `also`.
fn inherited(
    name: &str,
    conns: &BTreeMap<String, Conn>,
    imported: &mut ImportedIke,
    depth: usize,
) -> BTreeMap<String, (String, usize)> {
    let Some(conn) = conns.get(name) else { return BTreeMap::new() };
    let mut settings = BTreeMap::new();
    for (other, line) in &conn.also {
        match conns.contains_key(other) && depth < 16 {
            true => settings.extend(inherited(other, conns, imported, depth + 1)),
            false => {
                imported.lose(*line, &format!("also={other}"), "there is no such connection in this file")
            }
        }
    }
    settings.extend(conn.settings.clone());
    settings
}

fn read_conn(name: &str, conn: &Conn, imported: &mut ImportedIke) {
    let value = |keys: &[&str]| {
        keys.iter().find_map(|key| conn.settings.get(*key)).map_or("", |(value, _)| value.as_str())
    };
    // A part for others: it says no peer.
    if value(&["auto"]) == "ignore" || (value(&["right"]).is_empty() && value(&["left"]).is_empty()) {
        return;
    }
    let (left, right) = (value(&["left"]), value(&["right"]));
    if is_address(left) && is_address(right) && !left.starts_with('%') {
        imported.note(
            conn.line,
            name,
            format!("left ({left}) is taken for this host; if right ({right}) is, exchange the two"),
        );
    }
    let mut child = Child {
        name: name.to_owned(),
        line: conn.line,
        local_ts: networks(value(&["leftsubnet", "leftsubnets"]).trim_matches(['{', '}'])),
        remote_ts: networks(value(&["rightsubnet", "rightsubnets"]).trim_matches(['{', '}'])),
        remote: peers(right),
        encap: yes(value(&["forceencaps", "encapsulation"])),
        marks: [mark(value(&["mark_in", "mark-in", "mark"])), mark(value(&["mark_out", "mark-out", "mark"]))],
        ..Child::default()
    };
    if let Some((words, line)) = ["esp", "phase2alg", "ah"].iter().find_map(|key| conn.settings.get(*key)) {
        child.proposals = networks(words).into_iter().map(|word| (*line, word)).collect();
    }
    match value(&["type"]) {
        "" | "tunnel" | "transport" => {}
        kind => {
            let line = conn.settings.get("type").map_or(conn.line, |(_, line)| *line);
            imported.lose(
                line,
                &format!("{name}: type"),
                format!("`{kind}`: only `tunnel` and `transport` are served"),
            );
            child.is_refused = true;
        }
    }
    for (key, why) in REFUSED {
        if let Some((_, line)) = conn.settings.get(key).filter(|(value, _)| value != "no") {
            // The line may be that of another section, which this one is made of.
            imported.lose(*line, &format!("{name}: {key}"), why);
            child.is_refused = true;
        }
    }
    imported.push(child, HOW);
}

/// Connections by name, and the order of their names.
fn parse(text: &str, imported: &mut ImportedIke) -> (BTreeMap<String, Conn>, Vec<String>) {
    let (mut conns, mut order): (BTreeMap<String, Conn>, Vec<String>) = Default::default();
    // The connection that is open; `None` in a section that is the daemon's.
    let mut open: Option<String> = None;
    for (number, whole) in (1..).zip(text.lines()) {
        let line = whole.split('#').next().unwrap_or("").trim_end();
        if line.trim().is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            let mut words = line.split_whitespace();
            open = None;
            match (words.next(), words.next()) {
                (Some("conn"), Some(name)) => {
                    open = Some(name.to_owned());
                    order.push(name.to_owned());
                    conns.entry(name.to_owned()).or_default().line = number;
                }
                (Some("config" | "ca"), Some(name)) => {
                    imported.note(
                        number,
                        &format!("section {name}"),
                        "it is the daemon's, which goes on with it",
                    );
                }
                (Some("include"), _) => {
                    imported.lose(
                        number,
                        line,
                        "files that are included are not read: import them by themselves",
                    );
                }
                (Some("version"), _) => {}
                _ => imported.lose(
                    number,
                    line,
                    "expected `conn NAME`, `config setup`, `ca NAME` or `include FILE`",
                ),
            }
            continue;
        }
        let Some(conn) = open.as_ref().and_then(|name| conns.get_mut(name)) else { continue };
        match line.split_once('=') {
            Some((key, value)) => {
                let (key, value) =
                    (key.trim().to_ascii_lowercase(), value.trim().trim_matches('"').to_owned());
                if key == "also" {
                    conn.also.push((value, number));
                } else {
                    conn.settings.insert(key, (value, number));
                }
            }
            None => imported.lose(number, line.trim(), "expected `name=value`"),
        }
    }
    (conns, order)
}
