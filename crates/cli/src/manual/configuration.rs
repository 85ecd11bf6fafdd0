//! forebay.toml(5), from the schema that the reader of the file goes by.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use forebay_config::LIVE;
use forebay_config::schema::{Absent, Key, PARTS, Part};

use super::{see_also, tidy, title, typed, verbatim};

/// A whole gateway: two SAs under keys of their own, ESP in UDP.
const EXAMPLE: &str = include_str!("../../../../packaging/gateway.toml");

/// The page.
pub fn page(date: &str) -> String {
    let mut page = Roff::new();
    let name = "forebay.toml";
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - configuration of forebay-gateway(1)"))]);
    page.control("SH", ["SYNOPSIS"]).text([italic("/etc/forebay/gateway.toml")]);
    description(&mut page);
    let mut header = None;
    for part in PARTS.iter().filter(|part| !part.keys.is_empty()) {
        if header.replace(part.header()) != Some(part.header()) {
            let header =
                if part.section.is_empty() { "THE TOP OF THE FILE".to_owned() } else { part.header() };
            page.control("SH", [&*header]);
        }
        section(&mut page, part);
    }
    page.control("SH", ["SECURITY ASSOCIATIONS AND POLICIES"]);
    page.text(typed(
        "`[[sa]]` and `[[policy]]` stand in this file, or in one of their own that `sas` in `[keys]` names, \
         unless they come from the kernel (`source = \"xfrm\"`). Their keys are described in reference/sas.md \
         of the documentation.",
    ));
    page.control("SH", ["FILES"]);
    for (file, meaning) in [
        ("/etc/forebay/gateway.toml", "configuration file used by the systemd unit"),
        ("/etc/forebay/keys/", "the place for key files: mode 0640, of root and the group forebay"),
        ("/run/forebay/control.sock", "the control socket"),
        ("/var/lib/forebay/", "which IVs may have been used; to be kept as long as the keys are"),
        ("/usr/share/doc/forebay/", "documentation, examples, and a dashboard for Grafana"),
    ] {
        page.control("TP", []).text([italic(file)]).text([roman(meaning)]);
    }
    page.control("SH", ["EXAMPLES"]);
    verbatim(&mut page, EXAMPLE);
    see_also(&mut page, name);
    title(name, "5", date) + &tidy(&page.render())
}

fn description(page: &mut Roff) {
    page.control("SH", ["DESCRIPTION"]);
    page.text(typed(
        "The file, in TOML, from which forebay-gateway(1) takes everything: the interface that programs see, the \
         links to peers, where keys come from, processors and scheduling, limits and operation. `forebay check` says \
         all that is wrong with it.",
    ));
    page.control("PP", []).text(typed(
        "Bare numbers are in SI's base units: seconds, bytes, Hz. Strings carry their unit: \"20 s\" (d, h, m, s, \
         ms, us, ns), \"4 MiB\" (B, kB, MB, GB, KiB, MiB, GiB), \"66 MHz\". A list of one may be written without \
         brackets. Paths are relative to the directory of the file. Unknown keys are errors.",
    ));
    page.control("PP", []).text(typed(
        "`forebay reload` has a running gateway read it again. SAs, policies and the keys that say so below take \
         effect at once; what else changed is named, and waits for a restart.",
    ));
}

fn section(page: &mut Roff, part: &Part) {
    if !part.kind.is_empty() {
        let word = if part.section == "keys" { "source" } else { "kind" };
        page.control("SS", [&*format!("With {word} = {}", part.kind)]);
    }
    for key in part.keys {
        page.control("TP", []).text([bold(key.name)]);
        page.text(meaning(part, key));
    }
}

fn meaning(part: &Part, key: &Key) -> Vec<Inline> {
    let mut words = vec![];
    words.extend(typed(&format!("{}. Takes {}", capital(key.meaning), key.takes)));
    words.extend(typed(&match key.absent {
        Absent::Required => "; required.".to_owned(),
        Absent::Is(value) => format!("; `{value}` where absent."),
        Absent::Means(meaning) => format!("; absent: {meaning}."),
    }));
    let at_once =
        |&(section, name): &(&str, &str)| section == part.section && (name == key.name || name.is_empty());
    if LIVE.iter().any(at_once) {
        words.push(roman(" A reload applies changes."));
    }
    words.extend(typed(&format!(" Example: `{}`", key.line())));
    words
}

/// With a capital letter in front.
pub(super) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
