//! The rules and discarded networks of the last start, as text. The host is closed by them before the configuration is read.
//!
//! ```text
//! forebay-guard 1
//! file /etc/forebay/gateway.toml
//! table forebay_fb0
//! inside fb0
//! port 4500
//! ways
//! local eth2
//! near lan 10.1.0.0-10.1.255.255
//! outside wan
//! discard 10.2.0.0/16
//! protect out 10.1.0.0/16 10.2.0.0/16 192.0.2.2
//! end
//! ```
//!
//! A line of a policy has its direction, `local_ts`, `remote_ts` and the peers' outer addresses, each with commas between
//! them and `-` for none. `ways` and what follows it are the interfaces of [`Ways`]. Policies for one interface are not saved: its number may be another one's after a boot.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::str::FromStr;

use forebay_crypto::Direction;
use forebay_ipsec::TrafficSelector;
use ipnet::IpNet;

use super::plan::Entry;
use super::rules::{Host, Ways};

const HEAD: &str = "forebay-guard 1";
/// The last line: without it the text is incomplete.
const END: &str = "end";

/// The rules and discarded networks of the last start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The gateway's file.
    pub file: String,
    /// The host, if there were rules.
    pub host: Option<Host>,
    /// Policies in their order of precedence.
    pub entries: Vec<Entry>,
    /// Networks that are not guarded.
    pub except: Vec<IpNet>,
    /// Networks with a blackhole route.
    pub discarded: Vec<IpNet>,
}

impl Display for Saved {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}\nfile {}", self.file.replace(['\n', '\r'], " "))?;
        if let Some(host) = &self.host {
            writeln!(f, "table {}", host.table)?;
            host.inside.iter().try_for_each(|name| writeln!(f, "inside {name}"))?;
            host.ports.iter().try_for_each(|port| writeln!(f, "port {port}"))?;
            if let Some(ways) = &host.ways {
                writeln!(f, "ways")?;
                ways.local.iter().try_for_each(|name| writeln!(f, "local {name}"))?;
                let near = |(name, (first, last)): &(_, (_, _))| writeln!(f, "near {name} {first}-{last}");
                ways.near.iter().try_for_each(near)?;
                ways.outside.iter().try_for_each(|name| writeln!(f, "outside {name}"))?;
            }
            self.except.iter().try_for_each(|net| writeln!(f, "except {net}"))?;
            for entry in self.entries.iter().filter(|entry| entry.interface.is_none()) {
                let word = if entry.bypasses { "bypass" } else { "protect" };
                let way = if entry.direction == Direction::Seal { "out" } else { "in" };
                let (local, remote) = (list(&entry.local_ts), list(&entry.remote_ts));
                writeln!(f, "{word} {way} {local} {remote} {}", list(&entry.peers))?;
            }
        }
        self.discarded.iter().try_for_each(|net| writeln!(f, "discard {net}"))?;
        writeln!(f, "{END}")
    }
}

fn list<T: Display>(of: &[T]) -> String {
    match of {
        [] => "-".to_owned(),
        of => of.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

/// A wrong line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// Its number, from 1 on.
    pub line: usize,
    /// What was expected.
    pub expected: &'static str,
    /// What was found.
    pub found: String,
}

impl Display for SavedError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}, found `{}`", self.line, self.expected, self.found)
    }
}

impl std::error::Error for SavedError {}

impl FromStr for Saved {
    type Err = SavedError;

    fn from_str(text: &str) -> Result<Saved, SavedError> {
        let mut saved = Saved::default();
        let mut host = Host { table: String::new(), inside: vec![], ports: vec![], ways: None };
        let mut last = "";
        for (place, line) in text.lines().enumerate() {
            let wrong = |expected| {
                let found = line.chars().take(80).collect();
                SavedError { line: place + 1, expected, found }
            };
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                _ if place == 0 && line == HEAD => {}
                _ if place == 0 => return Err(wrong("`forebay-guard 1`")),
                "file" => saved.file = rest.to_owned(),
                "table" if is_name(rest) => host.table = rest.to_owned(),
                "inside" if !rest.is_empty() => host.inside.push(rest.to_owned()),
                "port" => host.ports.push(rest.parse().map_err(|_| wrong("a port"))?),
                "ways" => host.ways = Some(Ways::default()),
                "local" | "near" | "outside" => {
                    let added = host.ways.as_mut().and_then(|ways| add_way(ways, word, rest));
                    added.ok_or_else(|| wrong("an interface behind `ways`"))?;
                }
                "except" => saved.except.push(rest.parse().map_err(|_| wrong("a network"))?),
                "discard" => saved.discarded.push(rest.parse().map_err(|_| wrong("a network"))?),
                "protect" | "bypass" => {
                    let entry = policy(word == "bypass", rest);
                    saved.entries.push(entry.ok_or_else(|| wrong("a policy"))?);
                }
                END => {}
                _ => return Err(wrong("a line of saved rules")),
            }
            last = line;
        }
        if last != END {
            let line = text.lines().count();
            return Err(SavedError { line, expected: "`end` as the last line", found: last.to_owned() });
        }
        saved.host = (!host.table.is_empty()).then_some(host);
        Ok(saved)
    }
}

/// Whether a name is one of the gateway's tables: rules of others must not be replaced.
fn is_name(name: &str) -> bool {
    let rest = name.strip_prefix("forebay_");
    rest.is_some_and(|rest| rest.chars().all(|one| one.is_ascii_alphanumeric() || one == '_'))
}

fn add_way(ways: &mut Ways, word: &str, rest: &str) -> Option<()> {
    match word {
        "near" => {
            let (name, range) = rest.split_once(' ')?;
            let (first, last) = range.split_once('-')?;
            ways.near.push((name.to_owned(), (first.parse().ok()?, last.parse().ok()?)));
        }
        _ if rest.is_empty() => return None,
        "local" => ways.local.push(rest.to_owned()),
        _ => ways.outside.push(rest.to_owned()),
    }
    Some(())
}

fn policy(bypasses: bool, text: &str) -> Option<Entry> {
    let mut words = text.split(' ');
    let direction = match words.next()? {
        "out" => Direction::Seal,
        "in" => Direction::Open,
        _ => return None,
    };
    let local_ts = parsed::<TrafficSelector>(words.next()?)?;
    let remote_ts = parsed::<TrafficSelector>(words.next()?)?;
    let peers = parsed::<IpAddr>(words.next()?)?;
    words.next().is_none().then_some(Entry {
        direction,
        bypasses,
        local_ts,
        remote_ts,
        interface: None,
        peers,
    })
}

fn parsed<T: FromStr>(list: &str) -> Option<Vec<T>> {
    if list == "-" { Some(vec![]) } else { list.split(',').map(|one| one.parse().ok()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> Saved {
        let ts = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let peers = vec!["192.0.2.2".parse().unwrap(), "2001:db8::2".parse().unwrap()];
        let entry = |direction, bypasses, local: &[&str], remote: &[&str]| Entry {
            direction,
            bypasses,
            local_ts: ts(local),
            remote_ts: ts(remote),
            interface: None,
            peers: if bypasses { vec![] } else { peers.clone() },
        };
        Saved {
            file: "/etc/forebay/a file.toml".to_owned(),
            host: Some(Host {
                table: "forebay_fb0".to_owned(),
                inside: vec!["fb0".to_owned(), "fb1".to_owned()],
                ports: vec![4500],
                ways: Some(Ways {
                    local: vec!["eth2".to_owned()],
                    near: vec![(
                        "lan".to_owned(),
                        ("10.1.0.0".parse().unwrap(), "10.1.255.255".parse().unwrap()),
                    )],
                    outside: vec!["wan".to_owned()],
                }),
            }),
            entries: vec![
                entry(Direction::Seal, false, &["10.1.0.0/16", "2001:db8:1::/48"], &["10.2.0.0/16[tcp/80]"]),
                entry(Direction::Open, true, &[], &["10.2.0.3-10.2.0.9", "any"]),
                entry(Direction::Open, false, &["10.1.0.0/16[icmp/8]"], &["::/0", "10.2.0.1[udp/5-9]"]),
            ],
            except: vec!["10.9.0.0/24".parse().unwrap()],
            discarded: vec!["10.2.0.0/16".parse().unwrap(), "2001:db8:2::/48".parse().unwrap()],
        }
    }

    #[test]
    fn saved_rules_are_read_as_they_were_written() {
        let saved = saved();
        assert_eq!(saved.to_string().parse(), Ok(saved.clone()), "{saved}");
        let none = Saved { file: "a".to_owned(), ..Saved::default() };
        assert_eq!(none.to_string().parse(), Ok(none));
        // For one interface: its number may have another meaning after a boot.
        let mut with = saved.clone();
        with.entries.push(Entry { interface: Some(7), ..saved.entries[1].clone() });
        assert_eq!(with.to_string().parse(), Ok(saved));
    }

    #[test]
    fn broken_text_is_refused_with_its_line() {
        let text = saved().to_string();
        for (old, new, line) in [
            ("forebay-guard 1", "forebay-guard 2", 1),
            ("table forebay_fb0", "table filter", 3),
            ("port 4500", "port many", 6),
            ("ways\n", "", 7),
            ("near lan 10.1.0.0-10.1.255.255", "near lan 10.1.0.0", 9),
            ("protect out", "protect both", 12),
            ("10.2.0.0/16[tcp/80]", "10.2.0.0/99", 12),
            ("discard 10.2.0.0/16", "discard all", 15),
            ("discard 10.2.0.0/16", "accept all", 15),
            ("\nend\n", "\n", 16),
        ] {
            let error = text.replacen(old, new, 1).parse::<Saved>().unwrap_err();
            assert_eq!(error.line, line, "{old} -> {new}: {error}");
        }
        for cut in 0..text.len() - 1 {
            assert!(text[..cut].parse::<Saved>().is_err(), "{}", &text[..cut]);
        }
    }
}
