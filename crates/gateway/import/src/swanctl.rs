//! strongSwan's `swanctl.conf` (swanctl.conf(5); sections, references and inclusions as in strongswan.conf(5)).

mod syntax;

use std::path::Path;

use super::ike::{Child, ImportedIke, mark, networks, peers, yes};
use super::include::{Here, Include, Includes};
use syntax::{Section, parse};

/// How a child gets a mark there.
const HOW: &str = "`mark_in = MARK`, `mark_in_sa = yes`, `mark_out = MARK`";

/// Settings of a child that no gateway can serve, with the reason.
const REFUSED: [(&str, &str); 6] = [
    (
        "if_id_in",
        "SAs of an XFRM interface are the kernel's; without it the gateway's interface takes its place",
    ),
    (
        "if_id_out",
        "SAs of an XFRM interface are the kernel's; without it the gateway's interface takes its place",
    ),
    (
        "hw_offload",
        "with offload the NIC does the crypto, and the gateway never sees the packets: set it to `no`",
    ),
    ("ipcomp", "compressed packets are not processed: set it to `no`"),
    ("interface", "policies for one interface are not supported, and their packets are discarded"),
    ("label", "security labels are not supported"),
];
/// Settings of a connection that its children have where they have none of their own (swanctl.conf(5)).
const INHERITED: [&str; 2] = ["if_id_in", "if_id_out"];
/// Settings of a child that mean something else where the gateway processes the packets.
const DIFFERENT: [(&str, &str); 3] = [
    ("set_mark_in", "the mark of received packets is not set: rules by mark see none"),
    ("set_mark_out", "the mark of sent packets is not set: `mark` of `[[outside]]` is for all"),
    (
        "inactivity",
        "it asks the kernel for the last use of policies, which the gateway's packets do not count in: leave it off",
    ),
];

/// Reads a configuration with the files that it includes; `path` is its own, unless it comes from standard input.
pub fn read(text: &str, path: Option<&Path>, include: &Include<'_>) -> ImportedIke {
    let mut imported = ImportedIke::default();
    let parsed = parse(text, &Here::new(path), &mut Includes::new(include), &mut imported);
    let referred = parsed.referred();
    let root = parsed.whole(&mut imported);
    for section in &root.sections {
        if section.name != "connections" && section.name != "secrets" && !referred.contains(&section.name) {
            imported.note(&section.place, &section.name, "it is the daemon's, which goes on with it");
        }
    }
    for (key, _, place) in &root.settings {
        imported.lose(place, key, "a setting outside any section is not known");
    }
    for connection in root.section("connections").map_or(&[][..], |all| &all.sections) {
        let is_referred = referred.contains(&format!("connections.{}", connection.name));
        read_connection(connection, is_referred, &mut imported);
    }
    imported.finish()
}

fn read_connection(connection: &Section, is_referred: bool, imported: &mut ImportedIke) {
    let children = connection.section("children").map_or(&[][..], |all| &all.sections);
    match children.is_empty() {
        true if is_referred => imported.note(
            &connection.place,
            &connection.name,
            "it has no child of its own, and others inherit from it",
        ),
        true => imported.lose(
            &connection.place,
            &connection.name,
            "it has no child in this file, so that it has no traffic to protect",
        ),
        false => {}
    }
    for section in children {
        let name = format!("{}/{}", connection.name, section.name);
        let mut child = Child {
            name: name.clone(),
            place: section.place.clone(),
            local_ts: networks(section.value("local_ts")),
            remote_ts: networks(section.value("remote_ts")),
            remote: peers(connection.value("remote_addrs")),
            encap: yes(connection.value("encap")),
            marks: ["mark_in", "mark_out"].map(|key| mark(section.value(key))),
            marks_sa: yes(section.value("mark_in_sa")),
            how_to_mark: HOW,
            ..Child::default()
        };
        for key in ["esp_proposals", "ah_proposals"] {
            if let Some((value, place)) = section.get(key) {
                child.proposals.extend(networks(value).into_iter().map(|word| (place.clone(), word)));
            }
        }
        // What is set may stand in another section, from which this one inherits: the child is named.
        let of_connection = |key: &str| INHERITED.contains(&key).then(|| connection.get(key)).flatten();
        let said = |key: &str, nothing: &[&str]| {
            let set = section.get(key).or_else(|| of_connection(key));
            set.filter(|(value, _)| !nothing.contains(value)).map(|(_, place)| place.clone())
        };
        if let Some(place) = said("mode", &["", "tunnel", "transport"]) {
            let mode = super::shown_value(section.value("mode"));
            let why = format!("`{mode}`: only `tunnel` and `transport` are served");
            imported.lose(&place, &format!("{name}: mode"), why);
            child.is_refused = true;
        }
        for (key, why) in REFUSED {
            if let Some(place) = said(key, &["no", "0", ""]) {
                imported.lose(&place, &format!("{name}: {key}"), why);
                child.is_refused = true;
            }
        }
        for (key, why) in DIFFERENT {
            if let Some(place) = said(key, &["no", "0", "0s", ""]) {
                imported.lose(&place, &format!("{name}: {key}"), why);
            }
        }
        if section.value("policies") == "no" {
            let place = said("policies", &[]).unwrap_or_default();
            let why = "the gateway follows the daemon's policies, and this child has none";
            imported.lose(&place, &format!("{name}: policies"), why);
            child.is_refused = true;
        }
        imported.push(child);
    }
}
