//! The kinds of files, and what is said of each as a whole.

use forebay_config::{LIVE, schema};
use forebay_sas as sas;
use forebay_scenario::schema::Part;

/// A kind of file.
#[derive(Clone, Debug)]
pub struct File {
    /// The name of its page and schema.
    pub name: &'static str,
    /// What it is, as a heading.
    pub title: &'static str,
    /// What it is for, in Markdown.
    pub about: &'static str,
    /// Its sections, in the order of the reference.
    pub parts: Vec<Part>,
    /// Whether a section that may stand several times may also be written once, in single brackets.
    pub single: bool,
    /// Sections without which there is no such file.
    pub needed: &'static [&'static str],
    /// Keys that a reload applies: section and key, or an empty key for all of the section.
    pub live: &'static [(&'static str, &'static str)],
}

/// How numbers are written in most files.
pub(crate) const UNITS: &str = "**Bare numbers** are in SI base units: seconds, bytes, Hz, bit/s. **Strings** carry their \
    unit: `\"20 us\"` (d, h, m, s, ms, us, ns, ps), `\"4 MiB\"` (B, kB, MB, GB, KiB, MiB, GiB), `\"66 MHz\"`, \
    `\"1 Gbit/s\"`, `\"10 kpacket/s\"`. Paths are relative to the directory of the file. An unknown key or a wrong value is \
    an error with its line and a hint.";

/// How numbers are written in the SAs file.
const SAS_UNITS: &str = "**Durations** are seconds (`90`, `0.5`) or a string with a unit: d, h, m, s, ms, us, ns (`\"1h\"`, \
    `\"10ms\"`). **Amounts** are numbers or strings with k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (of 1024), with or \
    without a B (`\"10G\"`, `\"4 GiB\"`). **Numbers** may be decimal or `0x` hexadecimal. Paths are relative to the directory \
    of the file. An unknown key or a wrong value is an error with its line and a hint.";

impl File {
    /// How numbers are written in it.
    pub(crate) fn units(&self) -> &'static str {
        if self.name == "sas" { SAS_UNITS } else { UNITS }
    }

    /// The word by which a section has kinds.
    pub(crate) fn kind_word(part: &Part) -> &'static str {
        if part.section == "keys" { "source" } else { "kind" }
    }
}

/// Every kind of file that has keys.
pub fn files() -> Vec<File> {
    vec![
        File {
            name: "gateway",
            title: "Keys of the gateway configuration",
            about: "`forebay gateway --config FILE` reads this file. [Gateway configuration](../gateway.md) explains it, with an \
                    example. `[[sa]]` and `[[policy]]`, which may stand in it as well, are those of the \
                    [SAs file](sas.md). `forebay reload` applies SAs, policies and the keys marked ↻ at once; other changes \
                    wait for a restart.",
            parts: schema::PARTS.to_vec(),
            single: true,
            needed: &["outside"],
            live: LIVE,
        },
        File {
            name: "sas",
            title: "Keys of the SAs file",
            about: "`forebay seal`, `forebay open` and the gateway (`sas` in `[keys]`) read this file; its sections may also \
                    stand in the gateway configuration. [SAs and policies](../sas.md) explains it, with examples. Words are \
                    swanctl's where it has them.",
            parts: sas::PARTS.to_vec(),
            single: false,
            needed: &["sa"],
            live: &[],
        },
        scenario(
            "host",
            "Keys of host scenarios",
            "`forebay simulate FILE` runs a scenario with `model = \"host\"`: packets arrive at a host, and the gateway's \
             scheduler places them on processors. [Host scenarios](../simulation.md) explains the model, and its section \
             [Ties](../simulation.md#ties) the order of events at one instant.",
            forebay_sim::PARTS,
            &["traffic", "processor"],
        ),
        scenario(
            "pipeline",
            "Keys of pipeline scenarios",
            "`forebay simulate FILE` runs a scenario with `model = \"pipeline\"`: packets pass stages, each with a buffer and a \
             service time, and some stages share a server. `forebay solve FILE` computes the figures by the Markov chain or \
             by closed forms, and `forebay size-buffers FILE` finds buffers. The study `network-processor` has three \
             examples: `forebay study copy network-processor mine`.",
            forebay_pipeline::scenario::PARTS,
            &["arrivals", "stage"],
        ),
        scenario(
            "inline-card",
            "Keys of inline-card scenarios",
            "A scenario with `model = \"inline-card\"` is a chain of resources that every packet crosses: memory, buses, \
             processors. `forebay solve FILE` names the resource that limits the throughput, `forebay simulate FILE` adds \
             queues. The study `inline-card` has three examples: `forebay study copy inline-card mine`.",
            forebay_pipeline::scenario::CARD_PARTS,
            &["resource"],
        ),
        scenario(
            "embedded",
            "Keys of embedded cores",
            "`forebay explore run FILE` runs firmware on a simulated RISC-V core that a file with `model = \"embedded\"` \
             describes. [Embedded cores](../explore.md) explains it.",
            forebay_embedded::schema::PARTS,
            &["firmware"],
        ),
        File {
            single: false,
            ..scenario(
                "instructions",
                "Keys of custom instructions",
                "`instructions` in `[core]` of an [embedded core](embedded.md) names such a file. `semantics` is one assignment \
                 per line: `let x = word[0] ^ s[1]` names a value, `s[i] = rol32(x, 7)` sets a custom register, `rd = ...` is \
                 the result. Operators are C's without division; functions are `rol32(x, n)`, `ror32(x, n)`, `byte(x, n)`, \
                 `swap32(x)`, `low32(x)`. `crates/workbench/embedded/data/ipsec.toml` is a whole example.",
                forebay_embedded::schema::INSTRUCTION_PARTS,
                &[],
            )
        },
    ]
}

fn scenario(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    parts: &[Part],
    needed: &'static [&'static str],
) -> File {
    File { name, title, about, parts: parts.to_vec(), single: true, needed, live: &[] }
}
