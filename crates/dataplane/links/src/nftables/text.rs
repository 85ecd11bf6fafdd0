//! A table as nft(8) reads it.

use std::fmt::{self, Display, Formatter};

use super::table::{Chain, End, Hook, Match, Rule, Set, Table, Verdict};

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "table inet {} {{", self.name)?;
        for counter in &self.counters {
            writeln!(f, "\tcounter {counter} {{ }}")?;
        }
        self.sets.iter().try_for_each(|set| set.fmt(f))?;
        self.chains.iter().try_for_each(|chain| chain.fmt(f))?;
        writeln!(f, "}}")
    }
}

impl Display for Set {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = if self.v6 { "ipv6_addr" } else { "ipv4_addr" };
        writeln!(f, "\tset {} {{\n\t\ttype {kind}\n\t\tflags interval", self.name)?;
        for (place, range) in self.ranges.iter().enumerate() {
            let before = if place == 0 { "\t\telements = { " } else { ",\n\t\t\t" };
            write!(f, "{before}{}", Range(*range))?;
        }
        writeln!(f, "{}\t}}", if self.ranges.is_empty() { "" } else { " }\n" })
    }
}

impl Display for Chain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\tchain {} {{", self.name)?;
        if let Some(hook) = self.hook {
            let hook = match hook {
                Hook::Prerouting => "prerouting",
                Hook::Forward => "forward",
                Hook::Postrouting => "postrouting",
            };
            writeln!(f, "\t\ttype filter hook {hook} priority raw; policy accept;")?;
        }
        self.rules.iter().try_for_each(|rule| writeln!(f, "\t\t{rule}"))?;
        writeln!(f, "\t}}")
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut ip = "ip";
        for one in &self.matches {
            if let Match::V6(v6) = one {
                ip = if *v6 { "ip6" } else { "ip" };
            }
            one.write(f, ip)?;
        }
        match self.verdict {
            Verdict::Accept => f.write_str("accept"),
            Verdict::Drop(counter) => write!(f, "counter name \"{counter}\" drop"),
            Verdict::Goto(chain) => write!(f, "goto {chain}"),
        }
    }
}

impl Match {
    /// `ip` is the word for the header of the packet's version.
    fn write(&self, f: &mut Formatter<'_>, ip: &str) -> fmt::Result {
        match self {
            Match::ArrivesBy(name) => write!(f, "iifname \"{name}\" "),
            Match::LeavesBy(name) => write!(f, "oifname \"{name}\" "),
            Match::ArrivesByIndex(index) => write!(f, "iif {index} "),
            Match::LeavesByIndex(index) => write!(f, "oif {index} "),
            Match::V6(v6) => write!(f, "meta nfproto {} ", if *v6 { "ipv6" } else { "ipv4" }),
            Match::InSet(end, set) => write!(f, "{ip} {} @{set} ", end.address()),
            Match::InRange(end, first, last) => {
                write!(f, "{ip} {} {} ", end.address(), Range((*first, *last)))
            }
            Match::IsLocal(end) => write!(f, "fib {} type local ", end.address()),
            Match::IsBroadcast => f.write_str("fib daddr . iif type broadcast "),
            Match::Protocol(protocol) => write!(f, "meta l4proto {protocol} "),
            Match::Port(end, first, last) => {
                let end = if *end == End::Source { "sport" } else { "dport" };
                write!(f, "th {end} {} ", Range((*first, *last)))
            }
            Match::Type(first, last) => write!(f, "@th,0,8 {} ", Range((*first, *last))),
            Match::TypeAndCode(first, last) => write!(f, "@th,0,16 {} ", Range((*first, *last))),
            Match::FromLink => f.write_str("ip6 hoplimit 255 "),
            Match::LaterFragment { v6: false } => f.write_str("ip frag-off & 0x1fff != 0 "),
            Match::LaterFragment { v6: true } => f.write_str("frag frag-off != 0 "),
        }
    }
}

impl End {
    fn address(self) -> &'static str {
        if self == End::Source { "saddr" } else { "daddr" }
    }
}

/// From one to another; one alone where they are the same.
struct Range<T>((T, T));

impl<T: Display + PartialEq> Display for Range<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (first, last) = &self.0;
        if first == last { first.fmt(f) } else { write!(f, "{first}-{last}") }
    }
}
