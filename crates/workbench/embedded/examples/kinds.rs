//! Prints the tables of docs/explore.md, "Kinds of cores": cycles per byte of ESP's suites on each kind of core, of UDP
//! packets of 1408 bytes.
//!
//! `cargo run --release -p forebay-embedded --example kinds`
//!
//! Each row is a line of `studies/embedded-ipsec/kinds.points`, which `forebay explore sweep --points` takes too.

use std::path::Path;

use forebay_embedded::report::{Point, best};
use forebay_embedded::{Figures, Prepared, Setup};

const NAMES: [&str; 8] = [
    "RV32, base",
    "RV32, custom instructions",
    "RV32, scalar crypto",
    "RV64, base",
    "RV64, scalar crypto",
    "RV64, vectors: VLEN 128, default costs",
    "RV64, vectors: VLEN 128, one cycle a group",
    "RV64, vectors: VLEN 512, four groups a cycle",
];
const SUITES: [(&str, [&str; 2]); 2] = [("gcm.toml", ["aes", "ghash"]), ("sha.toml", ["aes", "sha"])];
/// The study's best caches and memory.
const BEST: [&str; 7] = [
    "icache.size=4096",
    "icache.ways=4",
    "icache.line=64",
    "dcache.size=4096",
    "dcache.line=64",
    "write_buffer.slots=32",
    "memory.width=128",
];

fn figures(study: &Path, file: &str, sets: &[String]) -> Figures {
    let setup = Setup::load(&study.join(file), sets).unwrap_or_else(|error| panic!("{error:?}"));
    let prepared = Prepared::new(&setup).unwrap_or_else(|error| panic!("{error:?}"));
    let ran = forebay_embedded::run(&prepared.job, &[setup.config], &mut |_| true);
    let (done, accounts) = ran.unwrap_or_else(|error| panic!("{:?}", prepared.report(&error)));
    assert_eq!(done.code, 0, "the firmware ends well");
    prepared.figures(&setup, &done, &accounts[0])
}

/// Cycles of a group of functions per byte of the packets.
fn per_byte(figures: &Figures, group: &str) -> f64 {
    let found = figures.groups.iter().find(|one| one.name == group);
    found.map_or(0.0, |one| one.cycles as f64 / figures.bytes as f64)
}

fn main() {
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies/embedded-ipsec");
    let points = std::fs::read_to_string(study.join("kinds.points")).expect("the kinds of cores");
    let points: Vec<&str> =
        points.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    assert_eq!(points.len(), NAMES.len(), "each kind has a name");
    for (title, caches) in [("Base caches", &[][..]), ("Best caches", &BEST[..])] {
        println!("{title}:\n");
        println!("| core | AES-GCM | AES | GHASH | AES-CBC, SHA-256 | AES | SHA-256 | kGE | MHz | us |");
        println!("|---|---|---|---|---|---|---|---|---|---|");
        let mut rows = Vec::new();
        let mut suites: [Vec<Point>; 2] = [Vec::new(), Vec::new()];
        for (name, point) in NAMES.iter().zip(&points) {
            let mut cells = Vec::new();
            for (number, (file, groups)) in SUITES.iter().enumerate() {
                let sets =
                    ["input.capture=udp:1408"].iter().chain(caches).copied().chain(point.split_whitespace());
                let sets: Vec<String> = sets.map(str::to_owned).collect();
                let one = figures(&study, file, &sets);
                cells.push(one.cycles_per_byte);
                cells.extend(groups.iter().map(|group| per_byte(&one, group)));
                suites[number].push(Point { name: (*name).to_owned(), values: Vec::new(), figures: one });
            }
            rows.push(cells);
        }
        let frontiers = suites.each_ref().map(|points| best(points));
        for (number, cells) in rows.iter().enumerate() {
            let cells: Vec<String> = cells
                .iter()
                .enumerate()
                .map(|(at, value)| {
                    let on = at % 3 == 0 && frontiers[at / 3].contains(&number);
                    if on { format!("**{value:.1}**") } else { format!("{value:.1}") }
                })
                .collect();
            let one = &suites[0][number].figures;
            println!(
                "| {} | {} | {:.0} | {:.0} | {:.0} |",
                NAMES[number],
                cells.join(" | "),
                one.area_kge,
                one.clock.mhz,
                one.us_per_packet
            );
        }
        println!();
    }
}
