//! Every target over its seeds and over twenty thousand changed copies of them, with any Rust: a few
//! seconds that find what is broken badly. `RUNS=10000000 make soak` is the same at length, with `MAX_S` at most
//! so many seconds for each target, with `SEED` other inputs; `run.sh` is the same guided by coverage.

#![allow(clippy::disallowed_methods, reason = "says how long it took")]

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_fuzz::{TARGETS, must_fail, tally};

/// Changed copies without `RUNS`.
const MUTATIONS: usize = 20_000;
/// Seeds are cut to this many bytes, so that large captures do not take all the time.
const SEED_MAX: usize = 2_048;
/// Inputs from outside this project; read where they are.
const CORPORA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora");

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// Changes `data` in a few places, most of them near its begin.
    fn mutate(&mut self, data: &mut Vec<u8>, other: &[u8]) {
        const INTERESTING: [u8; 12] = [0, 1, 4, 6, 17, 41, 43, 44, 50, 59, 0x7f, 0xff];
        for _ in 0..=self.below(4) {
            let reach = if self.below(2) == 0 { data.len().min(64) } else { data.len() };
            let at = self.below(reach);
            let byte = self.next() as u8;
            match self.below(8) {
                _ if data.is_empty() => data.push(byte),
                0 | 1 => data[at] ^= 1 << (byte & 7),
                2 => data[at] = byte,
                3 => data[at] = INTERESTING[self.below(INTERESTING.len())],
                4 => data.truncate(at),
                5 => {
                    let len = self.below(16);
                    let end = (at + len).min(data.len());
                    data.drain(at..end);
                }
                6 => {
                    let len = self.below(16);
                    data.splice(at..at, std::iter::repeat_n(byte, len));
                }
                _ => {
                    let from = self.below(other.len());
                    let part = &other[from..(from + self.below(64)).min(other.len())];
                    data.splice(at..at, part.iter().copied());
                }
            }
        }
    }
}

/// All files of a folder, each cut; none where there is no such folder.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder that can be read").path()).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.is_file())
        .map(|path| {
            let mut data = std::fs::read(path).expect("a file that can be read");
            data.truncate(SEED_MAX);
            data
        })
        .collect()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut seeds = files(&own);
    assert!(!seeds.is_empty(), "{} is empty", own.display());
    if target == "capture" {
        let folder = Path::new(CORPORA).join("malformed");
        let found = files(&folder);
        if found.is_empty() {
            eprintln!("without the captures of {}, which is not here", folder.display());
        }
        seeds.extend(found);
    }
    seeds
}

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// What a target was found to do.
struct Found {
    runs: usize,
    /// By how many pages the process has grown since the first runs.
    grown: usize,
    /// The first input that fails, and its number.
    failing: Option<(usize, Vec<u8>)>,
}

/// Runs `body` over changed copies of `seeds`: so many, or for so many seconds.
fn hunt(body: fn(&[u8]), seeds: &[Vec<u8>], runs: usize, limit_s: u64, mut random: Random) -> Found {
    let begin = Instant::now();
    let mut data = Vec::new();
    let (mut resident, mut done) = (None, 0);
    for n in 0..runs {
        if n % 1_024 == 0 && begin.elapsed().as_secs() >= limit_s {
            break;
        }
        data.clear();
        data.extend_from_slice(&seeds[random.below(seeds.len())]);
        let other = random.below(seeds.len());
        random.mutate(&mut data, &seeds[other]);
        done = n + 1;
        if catch_unwind(|| body(&data)).is_err() {
            return Found { runs: done, grown: 0, failing: Some((n, data)) };
        }
        // After the first runs every table has its size; what grows from then on grows for ever.
        if n == MUTATIONS / 2 {
            resident = Some(resident_pages());
        }
    }
    let grown = resident.map_or(0, |resident| resident_pages().saturating_sub(resident));
    Found { runs: done, grown, failing: None }
}

fn run(target: &str) {
    let (_, body) = TARGETS.into_iter().find(|(name, _)| *name == target).expect("a target");
    let begin = Instant::now();
    let seeds = seeds(target);
    seeds.iter().for_each(|seed| body(seed));
    body(&[]);
    let runs = setting("RUNS").map_or(MUTATIONS, |runs| runs as usize);
    let limit_s = setting("MAX_S").unwrap_or(u64::MAX);
    let name = target.bytes().fold(0, |seed, byte| seed * 31 + u64::from(byte));
    let random = Random(name ^ setting("SEED").unwrap_or(0).rotate_left(32));
    let Found { runs, grown, failing } = hunt(body, &seeds, runs, limit_s, random);
    if let Some((n, data)) = failing {
        panic!("{target} fails on mutation {n}: {}", data.escape_ascii());
    }
    assert!(grown < GROWTH_MAX, "{target} grew by {grown} pages over {runs} runs");
    eprintln!("{target}: {runs} runs in {} s, grown by {grown} pages", begin.elapsed().as_secs());
    // Each test has a thread of its own.
    let tally = tally();
    let drops: Vec<_> = tally.drops.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    if tally.delivered > 0 || !drops.is_empty() {
        eprintln!("{target}: {} packets delivered; dropped: {}", tally.delivered, drops.join(", "));
    }
}

/// Most pages that the process may grow by while inputs go through it: all targets run in one process.
const GROWTH_MAX: usize = 64 << 20 >> 12;

/// Memory of this process, in pages; 0 where the system does not say.
fn resident_pages() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

#[test]
fn wire_ip() {
    run("wire_ip");
}

#[test]
fn capture() {
    run("capture");
}

#[test]
fn sas_file() {
    run("sas_file");
}

#[test]
fn gateway_file() {
    run("gateway_file");
}

#[test]
fn imports() {
    run("imports");
}

#[test]
fn http_head() {
    run("http_head");
}

#[test]
fn netlink() {
    run("netlink");
}

#[test]
fn words() {
    run("words");
}

#[test]
fn esp_open() {
    run("esp_open");
}

#[test]
fn esp_seal() {
    run("esp_seal");
}

#[test]
fn ah_open() {
    run("ah_open");
}

#[test]
fn ah_seal() {
    run("ah_seal");
}

#[test]
fn nested() {
    run("nested");
}

#[test]
fn bursts() {
    run("bursts");
}

#[test]
fn policies() {
    run("policies");
}

#[test]
fn path_mtu() {
    run("path_mtu");
}

#[test]
fn iptfs() {
    run("iptfs");
}

#[test]
fn fragments() {
    run("fragments");
}

#[test]
fn aggfrag() {
    run("aggfrag");
}

#[test]
fn offload() {
    run("offload");
}

#[test]
fn the_target_that_must_fail_fails() {
    must_fail(b"alive");
    assert!(catch_unwind(|| must_fail(b"dead or alive")).is_err());
}

/// The same for the hunt in this file: what it must find is one change away.
#[test]
fn a_dead_hunt_is_seen() {
    let found = hunt(must_fail, &[b"dexd".to_vec(), b"a".to_vec()], 1_000_000, 60, Random(1));
    let (_, data) = found.failing.expect("the hunt is alive");
    assert!(data.starts_with(b"dead"));
}
