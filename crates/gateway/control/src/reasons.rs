//! The meaning and remedy of each drop reason: those of the engine ([`DropReason`]), the one that the service counts, and those
//! of links. docs/troubleshooting.md has the same text.

use forebay_drops::DropReason;

/// A reason as a person reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its name in counters.
    pub name: &'static str,
    /// What it means.
    pub explanation: &'static str,
    /// What an operator does about it.
    pub remedy: &'static str,
}

const fn reason(name: &'static str, explanation: &'static str, remedy: &'static str) -> Reason {
    Reason { name, explanation, remedy }
}

/// Of the service.
const NO_LINK: Reason = reason(
    "out_no_link",
    "no link carries the protocol of the SA",
    "add a `[[outside]]` of the right kind and IP version, or change `encapsulation`; `forebay check` warns of this",
);

const FULL: (&str, &str) =
    ("the kernel's or the link's queue is full", "raise `buffer` of the link; reduce the load");

/// Of packets that a link did not send.
const OF_LINKS: [Reason; 8] = [
    reason(
        "too_big",
        "the packet is larger than the MTU of the path, and must not be fragmented",
        "normal while the path MTU is learnt; otherwise lower `mtu` of the SAs",
    ),
    reason("no_buffers", FULL.0, FULL.1),
    reason("queue_full", FULL.0, FULL.1),
    reason(
        "unreachable",
        "no route to the peer, the peer's host or network is down, or its port is closed",
        "`ip route get PEER`",
    ),
    reason("down", "the interface is down or gone", "`ip link`"),
    reason(
        "refused",
        "a firewall of this host, or a local address that is not assigned",
        "look at the output rules, and at `listen` and `local`",
    ),
    reason(
        "unfit",
        "the link cannot send this packet: another IP version, protocol or port",
        "compare `[[outside]]` with `local`, `remote` and `encapsulation` of the SA",
    ),
    reason("failed", "any other error", "look at the log"),
];

/// The reasons of the engine and of the service.
pub fn of_engine() -> impl Iterator<Item = Reason> {
    let listed = DropReason::ALL.iter().map(|one| reason(one.name(), one.explanation(), one.remedy()));
    listed.chain([NO_LINK])
}

/// The reasons of links.
pub fn of_links() -> impl Iterator<Item = Reason> {
    OF_LINKS.into_iter()
}

/// What a reason means; of a link's as of an unknown one nothing.
pub fn explanation(name: &str) -> &'static str {
    of_engine().find(|one| one.name == name).map_or("", |one| one.explanation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, meaning and remedy of the rows of a section's table.
    fn rows<'a>(document: &'a str, section: &str) -> Vec<(&'a str, &'a str, &'a str)> {
        let (_, rest) = document.split_once(&format!("\n## {section}\n")).expect("the section");
        let rest = rest.split("\n## ").next().unwrap_or_default();
        let rows = rest.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
        rows.map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            (cells[0], cells[1], cells[cells.len() - 1])
        })
        .collect()
    }

    #[test]
    fn the_document_for_operators_says_the_same() {
        let document = include_str!("../../../../docs/troubleshooting.md");
        let engine = rows(document, "Drop reasons");
        assert_eq!(engine.len(), of_engine().count());
        for (one, (name, explanation, remedy)) in of_engine().zip(engine) {
            assert_eq!(
                (one.name, one.explanation, one.remedy),
                (name.trim_end_matches('`'), explanation, remedy)
            );
        }
        let links = rows(document, "Packets that a link did not send");
        for one in of_links() {
            let row = links
                .iter()
                .find(|row| row.0.split("`, `").any(|name| name.trim_end_matches('`') == one.name));
            let &(_, explanation, remedy) = row.expect(one.name);
            assert_eq!((one.explanation, one.remedy), (explanation, remedy));
        }
    }
}
