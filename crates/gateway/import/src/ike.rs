//! The part of an IKE daemon's configuration that a gateway needs, and the gateway configuration for it. The daemon continues to
//! run, and the gateway takes SAs and policies from the kernel (`source = "xfrm"`).
//!
//! The daemon's file stays in use, so that what is only the daemon's (identities, secrets, lifetimes) is not looked at and not
//! repeated. What a gateway cannot do, and what has to be changed in the daemon's file, is a remark with its line.

use std::fmt::Write;
use std::net::IpAddr;

use forebay_crypto::Suite;

use super::include::Place;
use super::{Remark, shown, shown_value};

/// The mark that is proposed: no packet carries it, so that the kernel keeps SAs and policies and matches nothing.
const MARK: u32 = 0x4642;

/// A child of a connection: the SAs of one pair of networks.
#[derive(Debug, Default)]
pub(super) struct Child {
    pub(super) name: String,
    /// Where it begins.
    pub(super) place: Place,
    /// The networks on either side, as they are written.
    pub(super) local_ts: Vec<String>,
    pub(super) remote_ts: Vec<String>,
    /// The peer, as it is written.
    pub(super) remote: Vec<String>,
    /// The proposals for ESP and AH, as they are written, and where each stands.
    pub(super) proposals: Vec<(Place, String)>,
    /// Whether ESP is always in UDP.
    pub(super) encap: bool,
    /// How its file says that it has a mark, with `MARK` in the place of the number.
    pub(super) how_to_mark: &'static str,
    /// The marks of policies, and whether the inbound SA has one.
    pub(super) marks: [Option<u32>; 2],
    pub(super) marks_sa: bool,
    /// Whether it cannot be served: why is remarked.
    pub(super) is_refused: bool,
}

impl Child {
    /// The mark of its policies in both directions, if that is one.
    fn mark(&self) -> Option<u32> {
        self.marks[0].filter(|_| self.marks[0] == self.marks[1])
    }
}

/// What was taken over of a daemon's configuration.
#[derive(Debug, Default)]
pub struct ImportedIke {
    pub(super) children: Vec<Child>,
    /// What was not, and what has to be changed, in the order of the text.
    pub remarks: Vec<Remark>,
}

impl ImportedIke {
    /// How many children the gateway can serve.
    pub fn children(&self) -> usize {
        self.children.iter().filter(|child| !child.is_refused).count()
    }

    pub(super) fn lose(&mut self, place: &Place, text: &str, reason: impl Into<String>) {
        self.remark(place, text, reason.into(), true);
    }

    pub(super) fn note(&mut self, place: &Place, text: &str, reason: impl Into<String>) {
        self.remark(place, text, reason.into(), false);
    }

    fn remark(&mut self, place: &Place, text: &str, reason: String, lost: bool) {
        let file = place.file.as_deref().map(ToOwned::to_owned);
        self.remarks.push(Remark { file, line: place.line, text: shown(text), reason, lost });
    }

    /// Adds a child, with remarks on its proposals.
    pub(super) fn push(&mut self, mut child: Child) {
        let title = child.name.clone();
        let mut known = 0;
        for (place, word) in child.proposals.clone() {
            match suite_of(&word) {
                Some(Ok(_)) => known += 1,
                Some(Err(why)) => self.lose(&place, &word, why),
                None => known += 1,
            }
        }
        if known == 0 && !child.proposals.is_empty() {
            self.lose(
                &child.place,
                &title,
                "none of its proposals can be served: the gateway would discard its packets",
            );
            child.is_refused = true;
        }
        self.children.push(child);
    }

    /// The mark of the gateway's file: that of the first child that has one, else the one that is proposed.
    fn mark(&self) -> u32 {
        let mut served = self.children.iter().filter(|child| !child.is_refused);
        served.find_map(Child::mark).unwrap_or(MARK)
    }

    pub(super) fn finish(mut self) -> ImportedIke {
        let mark = self.mark();
        let served = self.children.iter().filter(|child| !child.is_refused);
        let others: Vec<(Place, String, Option<u32>, &str)> = served
            .filter(|child| child.mark() != Some(mark) || !child.marks_sa)
            .map(|child| (child.place.clone(), child.name.clone(), child.mark(), child.how_to_mark))
            .collect();
        for (place, name, own, how_to_mark) in others {
            let how = how_to_mark.replace("MARK", &format!("{mark:#x}"));
            match own {
                Some(own) if own != mark => {
                    let reason = format!(
                        "its mark is {own:#x}, and a gateway synchronizes the SAs of one mark, {mark:#x}: give it that one ({how})"
                    );
                    self.lose(&place, &name, reason);
                }
                _ => self.note(&place, &name, format!("give it a mark that no packet carries: {how}")),
            }
        }
        self.remarks.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        self.remarks.dedup();
        self
    }

    /// The gateway's file; `origin` is said in its first line.
    pub fn write(&self, origin: &str) -> String {
        let mut text = format!(
            "# For the connections of {}: the daemon goes on, and this gateway processes their packets.\n",
            origin.replace(char::is_control, " ")
        );
        for remark in &self.remarks {
            let what = if remark.lost { "NOT SERVED" } else { "to do" };
            let (place, words, reason) = (remark.place(), &remark.text, &remark.reason);
            let line = format!("# {what}, {place}: {words}: {reason}").replace(char::is_control, " ");
            push(&mut text, format_args!("{line}\n"));
        }
        for child in self.children.iter().filter(|child| !child.is_refused) {
            let list = |words: &[String], nothing: &str| {
                let words: Vec<_> = words.iter().map(|word| shown_value(word)).collect();
                if words.is_empty() { nothing.to_owned() } else { words.join(", ") }
            };
            let networks = |words: &[String]| list(words, "what IKE negotiates");
            let (here, there) = (networks(&child.local_ts), networks(&child.remote_ts));
            let peer = list(&child.remote, "any peer");
            let line = format!("# {}: {here} here, {there} behind {peer}", child.name)
                .replace(char::is_control, " ");
            push(&mut text, format_args!("{line}\n"));
        }
        push(&mut text, format_args!("\n[inside]\nname = \"forebay0\"\n"));
        let is_raw = self.children.iter().any(|child| !child.is_refused && !child.encap);
        if is_raw {
            push(&mut text, format_args!("\n[[outside]]\nkind = \"raw\"\n"));
        }
        // Where a NAT is found, daemons put ESP into UDP whatever the file says.
        push(&mut text, format_args!("\n[[outside]]\nkind = \"udp\"\nbeside_ike = true\n"));
        push(&mut text, format_args!("\n[keys]\nsource = \"xfrm\"\nmark = {:#x}\n", self.mark()));
        text
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(arguments);
}

/// The suite of a proposal, without groups for key exchange and words for sequence numbers; `None` for the daemon's default, which has
/// suites that can be served.
fn suite_of(proposal: &str) -> Option<Result<Suite, String>> {
    let proposal = proposal.trim().trim_end_matches('!').to_ascii_lowercase();
    if proposal.is_empty() || proposal == "default" {
        return None;
    }
    let is_of_ike = |word: &&str| {
        [
            "modp", "ecp", "curve", "x25519", "x448", "dh", "ke", "mlkem", "prf", "esn", "noesn", "ntru",
            "newhope",
        ]
        .iter()
        .any(|begin| word.starts_with(begin))
    };
    // libreswan writes the group behind a semicolon, strongSwan everything with dashes.
    let words = proposal.split([';', '-']).map(str::trim);
    let words: Vec<String> = words
        .filter(|word| !word.is_empty() && !is_of_ike(word))
        .map(|word| word.replace("aes_gcm_c_", "aes_gcm_").replace("aes_gcm_c", "aes_gcm").replace('_', ""))
        .map(|word| {
            word.replace("sha2256", "sha256").replace("sha2384", "sha384").replace("sha2512", "sha512")
        })
        .map(|word| match word.as_str() {
            "aesgcm" | "aesgcm16" => "aes128gcm16".to_owned(),
            "aesgcm128" => "aes128gcm16".to_owned(),
            "aesgcm256" => "aes256gcm16".to_owned(),
            "aes" => "aes128".to_owned(),
            other => other.to_owned(),
        })
        .filter(|word| word != "null" || proposal.starts_with("null"))
        .collect();
    Some(words.join("-").parse::<Suite>().map_err(|error| error.to_string()))
}

/// Whether a word is an address or a name, and not a pattern for any.
pub(super) fn peers(words: &str) -> Vec<String> {
    let any = |word: &&str| !["%any", "%any4", "%any6", "0.0.0.0/0", "::/0", ""].contains(word);
    words.split([',', ' ']).map(str::trim).filter(any).map(ToOwned::to_owned).collect()
}

/// Networks of traffic selectors, as they are written.
pub(super) fn networks(words: &str) -> Vec<String> {
    words.split(',').map(str::trim).filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

/// A mark as daemons write it, of which all bits count: without a mask, or with one of all bits.
pub(super) fn mark(text: &str) -> Option<u32> {
    let number = |text: &str| match text.trim().strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    };
    match text.split_once('/') {
        Some((value, mask)) => number(value).filter(|_| number(mask) == Some(u32::MAX)),
        None => number(text),
    }
}

/// Whether a word says yes.
pub(super) fn yes(word: &str) -> bool {
    ["yes", "true", "1", "enabled"].contains(&word.to_ascii_lowercase().as_str())
}

/// Whether a peer is given by addresses alone.
pub(super) fn is_address(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_of_daemons_are_suites() {
        let served = [
            "aes128gcm16",
            "aes128gcm16-x25519",
            "aes256gcm16-modp2048-esn",
            "aes256-sha256-ecp256",
            "aes128-sha2_256",
            "chacha20poly1305-curve25519",
            "AES_GCM_16-ECP_256",
            "aes_gcm256-null",
            "aes_gcm256-null;dh31",
            "aes256-sha2_512;modp4096",
            "3des-sha1",
            "aes256gcm128-ke1_mlkem768!",
            "null-sha256",
        ];
        for word in served {
            assert!(matches!(suite_of(word), Some(Ok(_))), "{word}: {:?}", suite_of(word));
        }
        assert!(suite_of("default").is_none());
        for word in ["cast128-sha1", "camellia256-sha256", "aes128-ripemd160-modp1024", "blowfish"] {
            assert!(matches!(suite_of(word), Some(Err(_))), "{word}");
        }
    }

    /// The gateway's file, and what is said to each child of a swanctl.conf with these marks.
    fn imported(marks: &[[Option<u32>; 2]]) -> (String, Vec<String>) {
        let mut imported = ImportedIke::default();
        for (at, marks) in marks.iter().enumerate() {
            let how_to_mark = "`mark_in = MARK`";
            imported.push(Child {
                name: format!("net-{at}"),
                marks: *marks,
                marks_sa: true,
                how_to_mark,
                ..Child::default()
            });
        }
        let imported = imported.finish();
        (
            imported.write("swanctl.conf"),
            imported.remarks.iter().map(|one| format!("{}: {}", one.text, one.reason)).collect(),
        )
    }

    /// Who does as the remarks say has one mark in both files.
    #[test]
    fn the_mark_that_is_proposed_is_that_of_the_gateway_s_file() {
        let (text, said) = imported(&[[Some(0x2a), None], [None, None]]);
        assert!(text.contains("\nmark = 0x4642\n"), "{text}");
        assert!(said.iter().all(|one| one.ends_with("`mark_in = 0x4642`")) && said.len() == 2, "{said:?}");
        let (text, said) = imported(&[[None, None], [Some(0x2a); 2], [Some(0x2b); 2]]);
        assert!(text.contains("\nmark = 0x2a\n"), "{text}");
        assert!(
            said[0].starts_with("net-0: give it a mark") && said[0].ends_with("`mark_in = 0x2a`"),
            "{said:?}"
        );
        assert!(said[1].starts_with("net-2: its mark is 0x2b") && said.len() == 2, "{said:?}");
    }

    #[test]
    fn a_mark_counts_with_all_of_its_bits() {
        assert_eq!((mark("0x4642"), mark("42"), mark("42/0xffffffff")), (Some(0x4642), Some(42), Some(42)));
        assert_eq!((mark("42/0xff"), mark("%unique"), mark("")), (None, None, None));
    }
}
