//! `ipsec.conf` as strongSwan's starter and libreswan read it (ipsec.conf(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::ike::{Child, ImportedIke, is_address, mark, networks, peers, yes};
use super::include::{Here, Include, Includes, Place};

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

/// Settings of which it matters that the daemons do not agree on what `also` brings.
const USED: [&str; 9] = [
    "left",
    "right",
    "leftsubnet",
    "leftsubnets",
    "rightsubnet",
    "rightsubnets",
    "esp",
    "type",
    "encapsulation",
];

/// A connection with its own settings, and the names of those that it is made of.
#[derive(Clone, Default)]
struct Conn {
    place: Place,
    settings: BTreeMap<String, (String, Place)>,
    also: Vec<(String, Place)>,
}

/// The connections of a configuration and of the files that it includes.
#[derive(Default)]
struct Conns {
    by_name: BTreeMap<String, Conn>,
    /// Their names, in the order in which they stand there.
    order: Vec<String>,
    /// The connection that is open; `None` in a section that is the daemon's.
    open: Option<String>,
}

/// Reads a configuration with the files that it includes; `path` is its own, unless it comes from standard input.
pub fn read(text: &str, path: Option<&Path>, include: &Include<'_>) -> ImportedIke {
    let mut imported = ImportedIke::default();
    let mut conns = Conns::default();
    conns.parse(text, &Here::new(path), &mut Includes::new(include), &mut imported);
    for (name, place) in conns.by_name.get("%default").map_or(&[][..], |default| &default.also) {
        imported.lose(place, &format!("%default: also={name}"), "the daemons do not follow it there");
    }
    let mut chains = Chains { conns: &conns.by_name, known: BTreeMap::new(), imported: &mut imported };
    let mut wholes = Vec::new();
    for name in conns.order.iter().filter(|name| name.as_str() != "%default") {
        wholes.push((name, chains.whole(name)));
    }
    let parts: BTreeSet<&str> =
        conns.by_name.values().flat_map(|conn| conn.also.iter().map(|(name, _)| name.as_str())).collect();
    for (name, whole) in wholes {
        read_conn(name, &whole, parts.contains(name.as_str()), &mut imported);
    }
    imported.finish()
}

/// Which connections each is made of.
struct Chains<'a> {
    conns: &'a BTreeMap<String, Conn>,
    /// By name and by who reads: the names, the one that goes first at the begin.
    known: BTreeMap<(String, bool), Vec<String>>,
    imported: &'a mut ImportedIke,
}

impl Chains<'_> {
    /// A connection with what it inherits: what is its own goes first, `%default` last. Between them the last `also` goes first
    /// with strongSwan, which is taken, and the first one with libreswan.
    fn whole(&mut self, name: &str) -> Conn {
        let [of_strongswan, of_libreswan] =
            [true, false].map(|last_first| self.chain(name, last_first, &mut Vec::new()));
        let own = &self.conns[name];
        let mut whole = Conn { place: own.place.clone(), ..Conn::default() };
        for (chain, is_taken) in [(of_strongswan, true), (of_libreswan, false)] {
            let mut seen = BTreeMap::new();
            for part in [name].into_iter().chain(chain.iter().map(String::as_str)).chain(["%default"]) {
                for (key, setting) in self.conns.get(part).iter().flat_map(|conn| &conn.settings) {
                    seen.entry(key.clone()).or_insert_with(|| setting.clone());
                }
            }
            if is_taken {
                whole.settings = seen;
                continue;
            }
            for (key, (value, place)) in &whole.settings {
                let other = seen.get(key).map_or("", |(value, _)| value);
                if USED.contains(&key.as_str()) && other != value {
                    self.imported.lose(
                        place,
                        &format!("{name}: {key}"),
                        format!(
                            "strongSwan takes `{}`, and libreswan `{}`, from another `also`",
                            super::shown_value(value),
                            super::shown_value(other)
                        ),
                    );
                }
            }
        }
        whole
    }

    /// The names of the connections that one is made of, without its own and without `%default`.
    fn chain(&mut self, name: &str, last_first: bool, stack: &mut Vec<String>) -> Vec<String> {
        if let Some(chain) = self.known.get(&(name.to_owned(), last_first)) {
            return chain.clone();
        }
        stack.push(name.to_owned());
        let mut also = self.conns.get(name).map_or(Vec::new(), |conn| conn.also.clone());
        if last_first {
            also.reverse();
        }
        let mut chain: Vec<String> = Vec::new();
        for (other, place) in also {
            let why = match () {
                () if !self.conns.contains_key(&other) => "connection not found in this file",
                () if stack.contains(&other) => "it leads back to itself",
                () => {
                    let inner = self.chain(&other, last_first, stack);
                    chain.extend([other].into_iter().chain(inner));
                    continue;
                }
            };
            self.imported.lose(&place, &format!("also={other}"), why);
        }
        stack.pop();
        // Of a name that is there twice, strongSwan keeps the last place and libreswan the first.
        let mut seen = BTreeSet::new();
        if last_first {
            chain.reverse();
        }
        chain.retain(|one| seen.insert(one.clone()));
        if last_first {
            chain.reverse();
        }
        self.known.insert((name.to_owned(), last_first), chain.clone());
        chain
    }
}

fn read_conn(name: &str, conn: &Conn, is_part: bool, imported: &mut ImportedIke) {
    let value = |keys: &[&str]| {
        keys.iter().find_map(|key| conn.settings.get(*key)).map_or("", |(value, _)| value.as_str())
    };
    // What others are made of is loaded by itself only if it says so; `auto` is inherited like everything.
    let has_no_ends = value(&["right"]).is_empty() && value(&["left"]).is_empty();
    if is_part && (has_no_ends || value(&["auto"]) == "ignore") {
        return imported.note(
            &conn.place,
            name,
            "other connections include it (`also`), and it is not a connection on its own",
        );
    }
    if has_no_ends {
        return imported.lose(&conn.place, name, "it has neither `left` nor `right`");
    }
    let (left, right) = (value(&["left"]), value(&["right"]));
    if is_address(left) && is_address(right) && !left.starts_with('%') {
        imported.note(
            &conn.place,
            name,
            format!(
                "left ({}) is taken for this host; if right ({}) is, exchange the two",
                super::shown_value(left),
                super::shown_value(right)
            ),
        );
    }
    let mut child = Child {
        name: name.to_owned(),
        place: conn.place.clone(),
        local_ts: networks(value(&["leftsubnet", "leftsubnets"]).trim_matches(['{', '}'])),
        remote_ts: networks(value(&["rightsubnet", "rightsubnets"]).trim_matches(['{', '}'])),
        remote: peers(right),
        encap: yes(value(&["forceencaps", "encapsulation"])),
        marks: [mark(value(&["mark_in", "mark-in", "mark"])), mark(value(&["mark_out", "mark-out", "mark"]))],
        how_to_mark: HOW,
        ..Child::default()
    };
    if let Some((words, place)) = ["esp", "phase2alg", "ah"].iter().find_map(|key| conn.settings.get(*key)) {
        child.proposals = networks(words).into_iter().map(|word| (place.clone(), word)).collect();
    }
    match value(&["type"]) {
        "" | "tunnel" | "transport" => {}
        kind => {
            let place = conn.settings.get("type").map_or(&conn.place, |(_, place)| place);
            imported.lose(
                place,
                &format!("{name}: type"),
                format!("`{}`: only `tunnel` and `transport` are served", super::shown_value(kind)),
            );
            child.is_refused = true;
        }
    }
    for (key, why) in REFUSED {
        if let Some((_, place)) =
            conn.settings.get(key).filter(|(value, _)| !["no", ""].contains(&value.as_str()))
        {
            // The line may be that of another section, which this one is made of.
            imported.lose(place, &format!("{name}: {key}"), why);
            child.is_refused = true;
        }
    }
    imported.push(child);
}

impl Conns {
    /// Reads a file. The section that is open goes on in it, and its last one behind it.
    fn parse(&mut self, text: &str, here: &Here, includes: &mut Includes<'_>, imported: &mut ImportedIke) {
        for (number, whole) in (1..).zip(text.lines()) {
            let line = whole.split('#').next().unwrap_or("").trim_end();
            let place = here.place(number);
            let mut words = line.split_whitespace();
            let first = words.next();
            match (first, words.next()) {
                (None, _) => {}
                (Some("include"), Some(pattern)) if !pattern.starts_with('=') => {
                    match includes.open(here, pattern.trim_matches('"')) {
                        Ok(texts) => {
                            for (inner, text) in texts {
                                self.parse(&text.text, &inner, includes, imported);
                            }
                        }
                        Err(why) => imported.lose(&place, line.trim(), why),
                    }
                }
                _ if line.starts_with([' ', '\t']) => self.setting(line, place, imported),
                (Some("conn"), Some(name)) => {
                    self.open = Some(name.to_owned());
                    if !self.by_name.contains_key(name) {
                        self.order.push(name.to_owned());
                    }
                    self.by_name.entry(name.to_owned()).or_default().place = place;
                }
                (Some("config" | "ca"), Some(name)) => {
                    self.open = None;
                    imported.note(
                        &place,
                        &format!("section {name}"),
                        "it is the daemon's, which goes on with it",
                    );
                }
                (Some("version"), _) => {}
                _ => {
                    self.open = None;
                    imported.lose(
                        &place,
                        line,
                        "expected `conn NAME`, `config setup`, `ca NAME` or `include FILE`",
                    );
                }
            }
        }
    }

    /// A line of the section that is open.
    fn setting(&mut self, line: &str, place: Place, imported: &mut ImportedIke) {
        let Some(conn) = self.open.as_ref().and_then(|name| self.by_name.get_mut(name)) else { return };
        let Some((key, value)) = line.split_once('=') else {
            return imported.lose(&place, line.trim(), "expected `name=value`");
        };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().trim_matches('"').to_owned());
        match key.as_str() {
            // All inherit from `%default`.
            "also" if value.is_empty() || value == "%default" => {}
            "also" => conn.also.push((value, place)),
            _ => {
                conn.settings.insert(key, (value, place));
            }
        }
    }
}
