//! The reader of configuration files.

use std::cell::RefCell;
use std::path::Path;

use forebay_diagnostics::{Findings, Place, Problem};
use forebay_riscv::{
    Branches, CacheConfig, Class, Config, Extension, Policy, Replacement, VLEN, VectorConfig, Xlen,
};
use forebay_scenario::idle::{self, Idle, Needs};
use forebay_scenario::schema::known;
use forebay_scenario::{Section, Table, Unit, Value, tables};
use serde_json::Value as Json;

use super::{Input, InstructionSource, LongPaths, SasSource, Setup};
use crate::builtin;
use crate::energy::Costs;
use crate::schema::PARTS;

/// Most cycles that anything may take: sums of them stay far from 64 bits.
const CYCLES_MAX: u64 = 10_000;
/// Instructions that may run unless the file says otherwise.
const LIMIT: u64 = 100_000_000_000;

/// Bits that a vector unit may compute at once.
const DATAPATH: [u32; 4] = [64, 128, 256, 512];

/// Keys that another one disables.
const IDLE: &[Idle] = &[
    Idle {
        section: "core",
        keys: &["long_paths"],
        by: "instructions",
        of: "core",
        default: "none",
        values: &["none"],
    },
    one_way("icache"),
    one_way("dcache"),
];

/// Keys that need an extension, or custom instructions.
const NEEDS: &[Needs] = &[
    needs("core", &["multiply", "divide"], &["m"]),
    needs("vector", &["length", "datapath"], &["zve64x"]),
    needs("vector", &["aes"], &["zvkned"]),
    needs("vector", &["ghash"], &["zvkg"]),
    needs("vector", &["sha2"], &["zvknha", "zvknhb"]),
    needs("energy", &["multiply", "divide"], &["m"]),
    needs("energy", &["bits"], &["zbb", "zbkb", "zbkc", "zbkx"]),
    needs("energy", &["crypto"], &["zkne", "zknd", "zknh"]),
    needs("energy", &["custom"], &["instructions"]),
    needs("energy", &["vector"], &["zve64x"]),
    needs("energy", &["vector_crypto"], &["zvkned", "zvkg", "zvknha", "zvknhb"]),
];

const fn needs(
    section: &'static str,
    keys: &'static [&'static str],
    parts: &'static [&'static str],
) -> Needs {
    Needs { section, keys, parts }
}

/// Of a cache that is direct-mapped: each line has one place.
const fn one_way(section: &'static str) -> Idle {
    Idle { section, keys: &["replacement", "seed"], by: "ways", of: section, default: "1", values: &["1"] }
}

pub(super) fn setup(table: &Table, folder: &Path, findings: &RefCell<Findings>) -> Option<Setup> {
    let start = Place { source: 0, span: 0..0 };
    let top = Section::new(table, "the file".to_owned(), start, &known(PARTS, ""), findings);
    match top.has("model") {
        true => _ = top.word("model", &["embedded"]),
        false => top.missing("model", "model = \"embedded\""),
    }
    let empty = Table::default();
    let section = |name: &'static str| {
        let found = tables(&top, name);
        if let [_, (_, second), ..] = found.as_slice() {
            let message = format!("`[{name}]` stands here for the second time");
            let help = "a core has one of each".to_owned();
            top.report(Problem::Conflict { message, help }, second.clone());
        }
        let (table, place) = found.into_iter().next().unwrap_or((&empty, top.place.clone()));
        Section::new(table, format!("[{name}]"), place, &known(PARTS, name), findings)
    };
    let base = Config::base();
    let firmware = section("firmware");
    let path = |section: &Section<'_>, key: &str| section.text(key).map(|text| folder.join(text));
    let executable = match firmware.has("path") {
        true => firmware.text("path").map(|text| match builtin::firmware(text) {
            Some(_) => text.into(),
            None => folder.join(text),
        }),
        false => {
            firmware.missing("path", "path = \"firmware.elf\"");
            None
        }
    };
    let core = section("core");
    let icache = cache(&section("icache"), base.icache);
    let data = section("dcache");
    let dcache = cache(&data, base.dcache);
    let buffer = section("write_buffer");
    let memory = section("memory");
    let vector = section("vector");
    let cycles = |section: &Section<'_>, key: &str, least: u64, most: u64, default: u32| {
        section.whole(key, Unit::None, least, most).map_or(default, |cycles| cycles as u32)
    };
    let config = Config {
        icache,
        dcache,
        policy: match data.word("policy", &["write-through", "write-back"]) {
            Some("write-back") => Policy::WriteBack,
            _ => Policy::WriteThrough,
        },
        write_slots: cycles(&buffer, "slots", 0, 256, base.write_slots),
        vector: VectorConfig {
            datapath: choice(&vector, "datapath", &DATAPATH, 8 * base.vector.datapath) / 8,
            aes: cycles(&vector, "aes", 1, CYCLES_MAX, base.vector.aes),
            ghash: cycles(&vector, "ghash", 1, CYCLES_MAX, base.vector.ghash),
            sha2: cycles(&vector, "sha2", 1, CYCLES_MAX, base.vector.sha2),
        },
        width: choice(&memory, "width", &[32, 64, 128], 8 * base.width) / 8,
        latency: cycles(&memory, "latency", 0, CYCLES_MAX, base.latency),
        write_latency: cycles(&memory, "write_latency", 0, CYCLES_MAX, base.write_latency),
        beat: cycles(&memory, "beat", 1, CYCLES_MAX, base.beat),
        multiply: cycles(&core, "multiply", 1, CYCLES_MAX, base.multiply),
        divide: cycles(&core, "divide", 1, CYCLES_MAX, base.divide),
        load_use: cycles(&core, "load_use", 0, 1, base.load_use),
        branch: cycles(&core, "branch", 0, CYCLES_MAX, base.branch),
        jump: cycles(&core, "jump", 0, CYCLES_MAX, base.jump),
        branches: match core.word("branches", &["not-taken", "backward"]) {
            Some("backward") => Branches::Backward,
            _ => Branches::NotTaken,
        },
    };
    let mut notes = Vec::new();
    idle::note(table, &top, IDLE, &mut notes);
    let xlen = match choice(&core, "xlen", &[32, 64], 32) {
        64 => Xlen::Rv64,
        _ => Xlen::Rv32,
    };
    let (extensions, instructions) = (extensions(&core), instructions(&core, folder));
    let vlen = choice(&vector, "length", &VLEN, VLEN[0]);
    if 8 * config.vector.datapath > vlen {
        let help = "a pass is of one register at most: lower `datapath`, or raise `length`";
        let message = format!("`datapath` has {} bits, and a register {vlen}", 8 * config.vector.datapath);
        vector.conflict("datapath", message, help);
    }
    of_one_width(&core, xlen, &extensions, &instructions);
    let has = |part: &str| match part {
        "instructions" => instructions != InstructionSource::None,
        _ => extensions.iter().any(|(name, _)| *name == part),
    };
    idle::note_needs(&top, NEEDS, has, &mut notes);
    let mut setup = Setup {
        firmware: executable?,
        functions: path(&firmware, "functions"),
        limit: firmware.whole("instructions", Unit::None, 1, u64::MAX).unwrap_or(LIMIT),
        input: input(&section("input"), folder),
        xlen,
        vlen,
        extensions,
        instructions,
        clock: core.whole("clock", Unit::Frequency, 1, 1_000_000_000_000),
        long_paths: match core.word("long_paths", &["clock", "latency"]) {
            Some("latency") => LongPaths::Latency,
            _ => LongPaths::Clock,
        },
        config,
        energy: energy(&section("energy")),
        notes,
        resolved: Json::Null,
    };
    setup.resolve();
    Some(setup)
}

/// What only one width of registers has.
fn of_one_width(
    core: &Section<'_>,
    xlen: Xlen,
    extensions: &[(&'static str, Extension)],
    instructions: &InstructionSource,
) {
    let vectors: Vec<&str> =
        extensions.iter().filter(|(_, one)| one.is_vector()).map(|(name, _)| *name).collect();
    let has = |extension| extensions.iter().any(|&(_, one)| one == extension);
    match (vectors.first(), xlen) {
        (Some(first), Xlen::Rv32) => {
            core.conflict("extensions", format!("`{first}` is of RV64 here"), "write `xlen = 64`");
        }
        (Some(first), _) if !has(Extension::Zve64x) => {
            let message = format!("`{first}` needs vector registers");
            core.conflict("extensions", message, "add `zve64x`");
        }
        _ => {}
    }
    if xlen == Xlen::Rv64 && *instructions != InstructionSource::None {
        let message = "custom instructions are of 32 bits".to_owned();
        core.conflict("instructions", message, "remove `instructions`, or set `xlen = 32`");
    }
}

/// The energies that are given.
fn energy(section: &Section<'_>) -> Costs {
    let joules = |key: &str| section.not_negative(key, Unit::Energy);
    Costs {
        instruction: joules("instruction"),
        classes: Class::ALL.map(|class| joules(&crate::energy::key(class))),
        icache: joules("icache"),
        dcache: joules("dcache"),
        memory: joules("memory"),
        idle: joules("idle"),
        static_w: section.not_negative("static_power", Unit::Power),
    }
}

fn input(section: &Section<'_>, folder: &Path) -> Input {
    let path = |key| section.text(key).map(|text| folder.join(text));
    let of_packets = |why: &str, help: &str| {
        for key in ["packets", "direction", "checksums"].into_iter().filter(|key| section.has(key)) {
            section.conflict(key, format!("`{key}` has no effect {why}"), help);
        }
    };
    if let Some(image) = path("image") {
        if section.has("capture") || section.has("sas") {
            section.conflict("image", "an image is given as well as what to make one of", "take one away");
        } else {
            of_packets("beside `image`, which the firmware is given as it is", "take it away");
        }
        return Input::Image(image);
    }
    let inbound = section.word("direction", &["out", "in"]) == Some("in");
    let capture = section.text("capture").map(|text| match text {
        builtin::CAPTURE => text.into(),
        _ if builtin::datagrams(text).is_some() => text.into(),
        _ => folder.join(text),
    });
    // A text has more than one line.
    let sas = section.text("sas").map(|text| match text.contains('\n') {
        true => SasSource::Text(text.to_owned()),
        false => SasSource::File(folder.join(text)),
    });
    match (capture, sas) {
        (Some(capture), Some(sas)) => {
            let packets = section.whole("packets", Unit::None, 1, 1_000_000).unwrap_or(1_000);
            Input::Packets {
                capture,
                sas,
                packets,
                inbound,
                checksums: section.flag("checksums").unwrap_or(true),
            }
        }
        (Some(_), None) => {
            section.missing("sas", "sas = \"sas.toml\"");
            Input::Nothing
        }
        (None, Some(_)) => {
            section.missing("capture", "capture = \"packets.pcap\"");
            Input::Nothing
        }
        (None, None) => {
            let help = "give `capture` and `sas`, or take it away";
            of_packets("without packets: neither `capture` nor `image` is given", help);
            Input::Nothing
        }
    }
}

fn extensions(core: &Section<'_>) -> Vec<(&'static str, Extension)> {
    let Some(names) = core.texts("extensions") else {
        return Extension::NAMES.into_iter().filter(|(name, _)| ["m", "c"].contains(name)).collect();
    };
    let mut found = Vec::new();
    // A list, or words in one string.
    for name in names.iter().flat_map(|one| one.split_whitespace()) {
        match Extension::NAMES.into_iter().find(|(known, _)| *known == name) {
            Some(one) => found.push(one),
            None => {
                let expected = Extension::NAMES.iter().map(|(known, _)| (*known).to_owned()).collect();
                let (key, found) = ("extensions".to_owned(), name.to_owned());
                core.report(Problem::UnknownWord { key, found, expected }, core.place_of("extensions"));
            }
        }
    }
    // One set is one set, however it is written.
    found.sort_by_key(|&(_, one)| one as u32);
    found.dedup();
    found
}

fn instructions(core: &Section<'_>, folder: &Path) -> InstructionSource {
    match core.text("instructions") {
        None | Some("none") => InstructionSource::None,
        Some("ipsec") => InstructionSource::Ipsec,
        Some("ipsec-keys") => InstructionSource::IpsecKeys,
        Some(path) if Path::new(path).extension().is_some() => InstructionSource::File(folder.join(path)),
        Some(other) => {
            let message = format!("unknown instructions `{other}`");
            core.conflict(
                "instructions",
                message,
                "expected `none`, `ipsec`, `ipsec-keys`, or a file, `mine.toml`",
            );
            InstructionSource::None
        }
    }
}

fn cache(section: &Section<'_>, base: CacheConfig) -> CacheConfig {
    let size = size(section, base.size);
    let ways = choice(section, "ways", &[1, 2, 4], base.ways);
    let line = choice(section, "line", &[16, 32, 64], base.line);
    let seed = section.whole("seed", Unit::None, 0, u32::MAX.into());
    let replacement = match section.word("replacement", &["lru", "fifo", "random"]) {
        Some("fifo") => Replacement::Fifo,
        Some("random") => Replacement::Random(seed.unwrap_or(1) as u32),
        _ => Replacement::Lru,
    };
    if seed.is_some() && !matches!(replacement, Replacement::Random(_)) {
        section.conflict(
            "seed",
            "nothing is drawn",
            "write `replacement = \"random\"`, or take the seed away",
        );
    }
    CacheConfig { size, ways, line, replacement }
}

/// A size in bytes, or "4 KiB", or "4 KB", which for a cache is the same.
fn size(section: &Section<'_>, default: u32) -> u32 {
    let Some(node) = section.node("size") else { return default };
    let kibi = match &node.value {
        Value::Text(text) => ["KiB", "KB", "kB"]
            .into_iter()
            .find_map(|unit| text.trim().strip_suffix(unit))
            .and_then(|number| number.trim().parse::<u64>().ok()),
        _ => None,
    };
    let bytes = match kibi {
        Some(kibi) => kibi.saturating_mul(1_024),
        None => match section.whole("size", Unit::Bytes, 0, u64::MAX) {
            Some(bytes) => bytes,
            None => return default,
        },
    };
    if bytes.is_power_of_two() && (1_024..=32_768).contains(&bytes) {
        return bytes as u32;
    }
    let near = bytes.clamp(1_024, 32_768);
    let below = 1 << near.ilog2();
    let expected = match near.is_power_of_two() {
        true => format!("caches have 1 to 32 KiB; the nearest is {near}"),
        false => format!("a cache has a power of two of bytes: {below} or {}", 2 * below),
    };
    let found = format!("{bytes} bytes");
    section.report(Problem::OutOfRange { key: "size".to_owned(), found, expected }, node.place.clone());
    default
}

/// One of a few numbers.
fn choice(section: &Section<'_>, key: &str, known: &[u32], default: u32) -> u32 {
    let Some(number) = section.whole(key, Unit::None, 0, u64::MAX) else { return default };
    if let Some(&found) = known.iter().find(|&&one| u64::from(one) == number) {
        return found;
    }
    let words: Vec<String> = known.iter().map(u32::to_string).collect();
    let expected = format!("expected one of {}", words.join(", "));
    let problem = Problem::OutOfRange { key: key.to_owned(), found: number.to_string(), expected };
    section.report(problem, section.place_of(key));
    default
}
