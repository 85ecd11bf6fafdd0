//! The page of a study's functions.

use std::fmt::Write;

use forebay_study::FUNCTIONS;

use crate::markdown::GENERATED;

const ABOUT: &str = "A study is a directory with scenario files and `study.rhai`, a script in \
[Rhai](https://rhai.rs/book/), whose comments at the head are the title and the introduction of the report. \
`forebay study run DIRECTORY --out OUT` runs it and writes `report.html`, `results.json` and every run; \
`forebay study copy NAME DIRECTORY` copies one of the built-in studies to begin with. The tutorial \
[A claim, a copy, a comparison](../tutorial-researcher.md) shows how. Besides the language of Rhai (variables, `if`, \
`for`, `fn`, lists, maps, string templates) a script has the functions below. `s` is a scenario, `run` a run, `runs` a \
list of them; a number is an integer or a float, and a float argument is written with a point: `0.0`. An error names \
file, line and column.";

const EXAMPLE: &str = "```rust,ignore
// One card or four
let s = scenario(\"host.toml\").set(\"traffic.packets\", 50_000);
let cards = [1, 2, 3, 4];
let runs = sweep(s, \"processor.card.count\", cards);
let gbit = figure(runs, \"throughput_bps\", 1e-9);
plot(\"Throughput\", \"cards\", \"Gbit/s\", [series(\"finish-time\", cards, gbit)]);
claim(\"four-cards\", \"Four cards carry more than one.\", join(gbit), gbit[3] > gbit[0], \"\");
```";

/// The page.
pub(crate) fn page() -> String {
    let mut page = format!("# Functions of study scripts\n\n{GENERATED}\n\n{ABOUT}\n\n{EXAMPLE}\n");
    let mut group = "";
    for one in FUNCTIONS {
        if one.group != group {
            group = one.group;
            write!(page, "\n## {group}\n\n| Call | Arguments | Value | Meaning |\n|---|---|---|---|\n")
                .unwrap();
        }
        writeln!(page, "| `{}` | {} | {} | {} |", one.call, one.takes, one.gives, one.meaning).unwrap();
    }
    page
}
