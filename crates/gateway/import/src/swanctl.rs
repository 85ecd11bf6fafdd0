//! strongSwan's `swanctl.conf` (swanctl.conf(5)).

use super::ike::{Child, ImportedIke, mark, networks, peers, yes};

/// How a child gets a mark there.
const HOW: &str = "`mark_in = 0x4642`, `mark_in_sa = yes`, `mark_out = 0x4642`";

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
/// Settings of a child that mean something else where the gateway processes the packets.
const DIFFERENT: [(&str, &str); 4] = [
    ("set_mark_in", "the mark of received packets is not set: rules by mark see none"),
    ("set_mark_out", "the mark of sent packets is not set: `mark` of `[[outside]]` is for all"),
    (
        "inactivity",
        "it asks the kernel for the last use of policies, which the gateway's packets do not count in: leave it off",
    ),
    ("tfc_padding", "strongSwan's padding is the kernel's: `pad_to` of `[keys]` or IP-TFS take its place"),
];

/// A section with what is in it.
#[derive(Debug, Default)]
struct Section {
    name: String,
    line: usize,
    settings: Vec<(String, String, usize)>,
    sections: Vec<Section>,
}

impl Section {
    fn get(&self, key: &str) -> Option<(&str, usize)> {
        let last = self.settings.iter().rev().find(|(name, ..)| name == key);
        last.map(|(_, value, line)| (value.as_str(), *line))
    }

    fn value(&self, key: &str) -> &str {
        self.get(key).map_or("", |(value, _)| value)
    }

    fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// Reads a configuration.
pub fn read(text: &str) -> ImportedIke {
    let mut imported = ImportedIke::default();
    let root = parse(text, &mut imported);
    for section in &root.sections {
        if section.name != "connections" && section.name != "secrets" {
            imported.note(section.line, &section.name, "it is the daemon's, which goes on with it");
        }
    }
    for (key, _, line) in &root.settings {
        imported.lose(*line, key, "a setting outside any section is not known");
    }
    for connection in root.section("connections").map_or(&[][..], |all| &all.sections) {
        read_connection(connection, &mut imported);
    }
    imported.finish()
}

fn read_connection(connection: &Section, imported: &mut ImportedIke) {
    let children = connection.section("children").map_or(&[][..], |all| &all.sections);
    if children.is_empty() {
        imported.lose(
            connection.line,
            &connection.name,
            "it has no child in this file, so that it has no traffic to protect",
        );
    }
    for section in children {
        let mut child = Child {
            name: format!("{}/{}", connection.name, section.name),
            line: section.line,
            local_ts: networks(section.value("local_ts")),
            remote_ts: networks(section.value("remote_ts")),
            remote: peers(connection.value("remote_addrs")),
            encap: yes(connection.value("encap")),
            marks: ["mark_in", "mark_out"].map(|key| mark(section.value(key))),
            marks_sa: yes(section.value("mark_in_sa")),
            ..Child::default()
        };
        for key in ["esp_proposals", "ah_proposals"] {
            if let Some((value, line)) = section.get(key) {
                child.proposals.extend(networks(value).into_iter().map(|word| (line, word)));
            }
        }
        match section.value("mode") {
            "" | "tunnel" | "transport" => {}
            mode => {
                let line = section.get("mode").map_or(section.line, |(_, line)| line);
                imported.lose(line, "mode", format!("`{mode}`: only `tunnel` and `transport` are served"));
                child.is_refused = true;
            }
        }
        for (key, why) in REFUSED {
            if let Some((_, line)) = section.get(key).filter(|(value, _)| !["no", "0", ""].contains(value)) {
                imported.lose(line, key, why);
                child.is_refused = true;
            }
        }
        for (key, why) in DIFFERENT {
            if let Some((_, line)) =
                section.get(key).filter(|(value, _)| !["no", "0", "0s", ""].contains(value))
            {
                imported.lose(line, key, why);
            }
        }
        if let Some((_, line)) = section.get("policies").filter(|(value, _)| *value == "no") {
            imported.lose(line, "policies", "the gateway goes by the daemon's policies: there are none");
            child.is_refused = true;
        }
        imported.push(child, HOW);
    }
}

/// Reads sections and settings. What cannot be read is remarked, and what is around it read.
fn parse(text: &str, imported: &mut ImportedIke) -> Section {
    let mut open = vec![Section::default()];
    for (number, line) in (1..).zip(text.lines()) {
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with('#') {
                break;
            }
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                match open.pop() {
                    Some(closed) if !open.is_empty() => close(&mut open, closed),
                    root => {
                        open.extend(root);
                        imported.lose(number, "}", "no section is open here");
                    }
                }
                continue;
            }
            let end = rest.find(['{', '=', '}', '#', '\n']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let name = name.trim();
            if let Some(after) = after.strip_prefix('{') {
                // `name : other` inherits from another section, whose settings are not followed.
                let (own, from) =
                    name.split_once(':').map_or((name, ""), |(own, from)| (own.trim(), from.trim()));
                if !from.is_empty() {
                    imported.lose(
                        number,
                        own,
                        format!("what it inherits from `{from}` is not followed: look at it by hand"),
                    );
                }
                open.push(Section { name: own.to_owned(), line: number, ..Section::default() });
                rest = after;
            } else if let Some(after) = after.strip_prefix('=') {
                let (value, after) = take_value(after);
                if let Some(section) = open.last_mut() {
                    section.settings.push((name.to_owned(), value, number));
                }
                rest = after;
            } else if name.starts_with("include") {
                imported.lose(
                    number,
                    name,
                    "files that are included are not read: import them by themselves",
                );
                rest = after;
            } else {
                imported.lose(number, name, "expected `name {`, `name = value` or `}`");
                rest = after;
            }
        }
    }
    while open.len() > 1 {
        if let Some(section) = open.pop() {
            imported.lose(section.line, &section.name, "this section is not closed");
            close(&mut open, section);
        }
    }
    open.pop().unwrap_or_default()
}

/// A section goes into the one around it; of two with one name the later one adds to the first.
fn close(open: &mut [Section], closed: Section) {
    let Some(around) = open.last_mut() else { return };
    match around.sections.iter_mut().find(|section| section.name == closed.name) {
        Some(before) => {
            before.settings.extend(closed.settings);
            before.sections.extend(closed.sections);
        }
        None => around.sections.push(closed),
    }
}

/// A value up to the end of the line, a comment or the end of the section, without quotes; and what follows.
fn take_value(text: &str) -> (String, &str) {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find('"').unwrap_or(quoted.len());
        return (quoted[..end].to_owned(), quoted.get(end + 1..).unwrap_or(""));
    }
    let end = text.find(['#', '}']).unwrap_or(text.len());
    (text[..end].trim().to_owned(), &text[end..])
}
