//! What configurations of cores and files of custom instructions may hold: the lists from which the readers take the
//! names of keys, and the reference (`docs/reference/`) and the schemas for editors take the rest.

use forebay_scenario::Unit;
use forebay_scenario::schema::Absent::{Is, Means, Required};
use forebay_scenario::schema::Takes::{Either, Flag, List, Number, Path, Quantity, Text, Whole, Word};
use forebay_scenario::schema::{Key, Part, TEXTS, Takes, key};

/// Every section of a core's configuration.
pub const PARTS: &[Part] = &[
    Part::once("", TOP),
    Part::once("firmware", FIRMWARE),
    Part::once("input", INPUT),
    Part::once("core", CORE),
    Part::once("vector", VECTOR),
    Part::once("icache", &CACHE),
    Part::once("dcache", &DATA_CACHE),
    Part::once("write_buffer", WRITE_BUFFER),
    Part::once("memory", MEMORY),
    Part::once("energy", ENERGY),
];

/// Every section of a file of custom instructions.
pub const INSTRUCTION_PARTS: &[Part] = &[
    Part::several("register", REGISTER),
    Part::several("table", TABLE),
    Part::several("instruction", INSTRUCTION),
];

/// Maximum of whatever is counted in cycles: sums of them stay far from 64 bits.
const CYCLES_MAX: u64 = 10_000;

const TOP: &[Key] = &[key(
    "model",
    Word(&["embedded"]),
    Required,
    "the model that the file is a configuration of",
    "\"embedded\"",
)];

const FIRMWARE: &[Key] = &[
    key(
        "path",
        Path,
        Required,
        "executable for RV32 or RV64 (ELF), or one that is built in: `ipsec-plain`, `ipsec-custom` (with the instructions \
         `ipsec`), `ipsec-zk` (with the scalar crypto extensions); `ipsec-rv64`, `ipsec-rv64-zk` and `ipsec-rv64-vector` \
         (with the vector crypto extensions) for `xlen = 64`; `ipsec-reference` and `ipsec-reference-custom` (with \
         `ipsec-keys`) are written as an embedded stack of 2004 was; with `-order-1` to `-order-10` behind these two the \
         same objects are linked in other orders",
        "\"ipsec-plain\"",
    ),
    key(
        "functions",
        Path,
        Means("the groups of the built-in firmware"),
        "file that groups the functions of the firmware for reports",
        "\"functions.toml\"",
    ),
    key(
        "instructions",
        Whole(Unit::None, 1, u64::MAX),
        Is("100_000_000_000"),
        "maximum number of instructions of a run; a run that needs more ends with an error",
        "1_000_000",
    ),
];

const INPUT: &[Key] = &[
    key(
        "image",
        Path,
        Means("made of `capture` and `sas`; without these the firmware gets no input"),
        "memory image that the firmware is given as it is",
        "\"input.bin\"",
    ),
    key(
        "capture",
        Path,
        Means("required with `sas`"),
        "packet capture to process, or one that is built in: `demo`, or `udp:64` for datagrams of one size",
        "\"demo\"",
    ),
    key(
        "sas",
        Text,
        Means("required with `capture`"),
        "SAs file, or the text of one (more than one line)",
        "\"sas.toml\"",
    ),
    key("packets", Whole(Unit::None, 1, 1_000_000), Is("1000"), "maximum number of packets", "200"),
    key(
        "direction",
        Word(&["out", "in"]),
        Is("\"out\""),
        "`out`: the firmware protects the packets of the capture; `in`: they are protected, and the firmware opens them; \
         packets that are built in are protected first, with the same SAs",
        "\"in\"",
    ),
    key(
        "checksums",
        Flag,
        Is("true"),
        "the firmware also computes TCP and UDP checksums, as at an end of a connection",
        "false",
    ),
];

const CORE: &[Key] = &[
    key(
        "xlen",
        Either("32, 64 bits", &[Whole(Unit::None, 32, 64)]),
        Is("32"),
        "width of the integer registers: RV32I or RV64I",
        "64",
    ),
    key(
        "extensions",
        Either(
            "names in a list, or in one string with spaces: `m`, `c`, `zbb`, `zbkb`, `zbkc`, `zbkx`, `zkne`, `zknd`, `zknh`; \
             for `xlen = 64` also `zve64x` (a part of it) and, with it, `zvkb`, `zvkned`, `zvkg`, `zvknha`, `zvknhb`",
            TEXTS,
        ),
        Is("[\"m\", \"c\"]"),
        "extensions of RV32I or RV64I that the core has",
        "\"m c zbb\"",
    ),
    key(
        "instructions",
        Path,
        Is("\"none\""),
        "custom instructions, for `xlen = 32`: `none`, `ipsec` or `ipsec-keys` (built in; with the second, instructions bring AES round keys \
         into custom registers), or a file of them",
        "\"mine.toml\"",
    ),
    key(
        "clock",
        Whole(Unit::Frequency, 1, 1_000_000_000_000),
        Means("as fast as the longest path allows"),
        "clock frequency that is asked for; an error if a path is too long for it",
        "\"150 MHz\"",
    ),
    key(
        "long_paths",
        Word(&["clock", "latency"]),
        Is("\"clock\""),
        "what becomes of custom instructions with a longer path than the core: they lower the clock, or take more cycles",
        "\"latency\"",
    ),
    key("multiply", Whole(Unit::None, 1, CYCLES_MAX), Is("3"), "cycles of a multiplication", "1"),
    key("divide", Whole(Unit::None, 1, CYCLES_MAX), Is("37"), "cycles of a division", "20"),
    key(
        "load_use",
        Whole(Unit::None, 0, 1),
        Is("1"),
        "cycles lost by an instruction that uses the result of the load just before it",
        "0",
    ),
    key(
        "branch",
        Whole(Unit::None, 0, CYCLES_MAX),
        Is("2"),
        "cycles lost by a mispredicted branch or an indirect jump",
        "3",
    ),
    key("jump", Whole(Unit::None, 0, CYCLES_MAX), Is("1"), "cycles lost by a direct jump", "0"),
    key(
        "branches",
        Word(&["not-taken", "backward"]),
        Is("\"not-taken\""),
        "static prediction: no branch is taken, or backward branches are",
        "\"backward\"",
    ),
];

const VECTOR: &[Key] = &[
    key(
        "length",
        Either("128, 256, 512, 1024 bits", &[Whole(Unit::None, 128, 1_024)]),
        Is("128"),
        "length of a vector register (VLEN)",
        "256",
    ),
    key(
        "datapath",
        Either("64, 128, 256, 512 bits, up to `length`", &[Whole(Unit::None, 64, 512)]),
        Is("128"),
        "bits of elements that are computed, loaded or stored in one pass",
        "64",
    ),
    key(
        "aes",
        Whole(Unit::None, 1, CYCLES_MAX),
        Is("4"),
        "cycles per pass of an AES round (Zvkned); with a `datapath` of 128 a pass is one element group",
        "1",
    ),
    key(
        "ghash",
        Whole(Unit::None, 1, CYCLES_MAX),
        Is("4"),
        "cycles per pass of GHASH's multiplication (Zvkg)",
        "1",
    ),
    key(
        "sha2",
        Whole(Unit::None, 1, CYCLES_MAX),
        Is("2"),
        "cycles per pass of two rounds of SHA-2 or of four words of its schedule (Zvknha, Zvknhb)",
        "1",
    ),
];

const SIZE: Key = key(
    "size",
    Either("1024 to 32768 bytes, a power of two", &[Whole(Unit::Bytes, 1_024, 32_768), CACHE_SIZE]),
    Is("1024"),
    "size of the cache",
    "\"4 KiB\"",
);
/// For a cache KB and kB are KiB.
const CACHE_SIZE: Takes = Word(&[
    "1 KB", "2 KB", "4 KB", "8 KB", "16 KB", "32 KB", "1 kB", "2 kB", "4 kB", "8 kB", "16 kB", "32 kB",
]);
const WAYS: Key = key(
    "ways",
    Either("1, 2, 4", &[Whole(Unit::None, 1, 4)]),
    Is("1"),
    "associativity; 1 is direct-mapped",
    "2",
);
const LINE: Key =
    key("line", Either("16, 32, 64 bytes", &[Whole(Unit::None, 16, 64)]), Is("16"), "length of a line", "32");
const REPLACEMENT: Key = key(
    "replacement",
    Word(&["lru", "fifo", "random"]),
    Is("\"lru\""),
    "line that is replaced: the least recently used, the oldest, or a random one",
    "\"fifo\"",
);
const CACHE_SEED: Key = key(
    "seed",
    Whole(Unit::None, 0, u32::MAX as u64),
    Is("1"),
    "with replacement `random`: seed of the random numbers",
    "7",
);
const CACHE: [Key; 5] = [SIZE, WAYS, LINE, REPLACEMENT, CACHE_SEED];
const DATA_CACHE: [Key; 6] = [
    SIZE,
    WAYS,
    LINE,
    REPLACEMENT,
    CACHE_SEED,
    key(
        "policy",
        Word(&["write-through", "write-back"]),
        Is("\"write-through\""),
        "whether each write goes to memory, or only a changed line that is replaced",
        "\"write-back\"",
    ),
];

const WRITE_BUFFER: &[Key] = &[key(
    "slots",
    Whole(Unit::None, 0, 256),
    Is("4"),
    "writes that can wait for memory while the core continues",
    "16",
)];

const MEMORY: &[Key] = &[
    key(
        "width",
        Either("32, 64, 128 bits", &[Whole(Unit::None, 32, 128)]),
        Is("32"),
        "width of memory",
        "64",
    ),
    key(
        "latency",
        Whole(Unit::None, 0, CYCLES_MAX),
        Is("8"),
        "cycles from a read's request until its first word",
        "20",
    ),
    key(
        "write_latency",
        Whole(Unit::None, 0, CYCLES_MAX),
        Is("4"),
        "cycles from a write's request until its first word is written",
        "10",
    ),
    key("beat", Whole(Unit::None, 1, CYCLES_MAX), Is("1"), "cycles per word of `width`", "2"),
];

const fn of_class(name: &'static str, meaning: &'static str) -> Key {
    key(name, Quantity(Unit::Energy), Means("`instruction`"), meaning, "\"25 pJ\"")
}

/// Without any of these keys no energy is reported.
const ENERGY: &[Key] = &[
    key(
        "instruction",
        Quantity(Unit::Energy),
        Means("not counted"),
        "energy of an instruction of a class that has no key of its own, in the core without its caches",
        "\"20 pJ\"",
    ),
    of_class("alu", "energy of an instruction of arithmetic or logic"),
    of_class("load", "energy of a load, without the cache"),
    of_class("store", "energy of a store, without the cache"),
    of_class("branch", "energy of a conditional branch"),
    of_class("jump", "energy of a jump, call or return"),
    of_class("multiply", "energy of a multiplication, all of its cycles together"),
    of_class("divide", "energy of a division, all of its cycles together"),
    of_class("bits", "energy of an instruction of Zbb, Zbkb, Zbkc or Zbkx"),
    of_class("crypto", "energy of an instruction of Zkne, Zknd or Zknh"),
    of_class("custom", "energy of a custom instruction, all of its cycles together"),
    of_class(
        "vector",
        "energy of a vector instruction other than of cryptography, all of its passes together",
    ),
    of_class("vector_crypto", "energy of an instruction of vector cryptography, all of its passes together"),
    of_class("system", "energy of an instruction of the system: counters, fences, calls"),
    key(
        "icache",
        Quantity(Unit::Energy),
        Means("not counted"),
        "energy of a fetch from the instruction cache, one for each instruction",
        "\"5 pJ\"",
    ),
    key(
        "dcache",
        Quantity(Unit::Energy),
        Means("not counted"),
        "energy of an access of the data cache: one per load and store, one per line of a vector load, one per word of `width` of a wider store",
        "\"8 pJ\"",
    ),
    key(
        "memory",
        Quantity(Unit::Energy),
        Means("not counted"),
        "energy of a word of `width` that memory reads or writes",
        "\"400 pJ\"",
    ),
    key(
        "idle",
        Quantity(Unit::Energy),
        Means("not counted"),
        "energy of a cycle in which the core waits: no instruction begins, and none computes on",
        "\"3 pJ\"",
    ),
    key(
        "static_power",
        Quantity(Unit::Power),
        Means("not counted"),
        "power that the core takes at any time, at the clock that it reaches",
        "\"200 uW\"",
    ),
];

const NAME: Key = key("name", Text, Required, "name, unique in its section", "\"acc\"");

const REGISTER: &[Key] = &[
    NAME,
    key("bits", Whole(Unit::None, 1, 64), Is("32"), "width in bits", "64"),
    key(
        "count",
        Whole(Unit::None, 1, 256),
        Is("1"),
        "number of registers of this name, `s[0]`, `s[1]`, ...; 256 registers in all",
        "4",
    ),
];

const TABLE: &[Key] = &[
    NAME,
    key(
        "values",
        Either("a list of 1 to 65536 whole numbers", &[List(&Whole(Unit::None, 0, u64::MAX))]),
        Means("required, unless `made` is given"),
        "values of the table",
        "[7, 12, 17, 22]",
    ),
    key(
        "made",
        Word(&["aes-sbox", "aes-inverse-sbox", "aes-encrypt", "aes-decrypt"]),
        Means("`values` applies"),
        "built-in table: AES's S-box, its inverse, or either with the column mixing in it",
        "\"aes-sbox\"",
    ),
];

const INSTRUCTION: &[Key] = &[
    NAME,
    key(
        "opcode",
        Word(&["custom-0", "custom-1", "custom-2", "custom-3"]),
        Required,
        "major opcode of the encoding",
        "\"custom-0\"",
    ),
    key("funct3", Whole(Unit::None, 0, 7), Required, "minor opcode of 3 bits", "0"),
    key(
        "funct7",
        Either(
            "0 to 127, or a range `[first, last]`",
            &[Whole(Unit::None, 0, 127), List(&Whole(Unit::None, 0, 127))],
        ),
        Is("[0, 127]"),
        "minor opcode of 7 bits; with a range, `semantics` reads it as `i`",
        "[0, 63]",
    ),
    key("latency", Whole(Unit::None, 1, 10_000), Is("1"), "cycles until the result is there", "3"),
    key(
        "words",
        Whole(Unit::None, 0, 16),
        Is("0"),
        "words that it loads from memory, from the address in `rs1` on",
        "4",
    ),
    key("gates", Number(0.0, f64::MAX), Is("0"), "gate equivalents, for the estimate of the area", "613"),
    key(
        "hardware",
        Text,
        Means("none; `gates` counts"),
        "synthesized module that computes it (`hardware/synth.py`), with its gates and its longest path",
        "\"md5_iteration\"",
    ),
    key(
        "steps",
        Whole(Unit::None, 1, 10_000),
        Is("1"),
        "how often it passes that module, one after the other",
        "4",
    ),
    key(
        "semantics",
        Text,
        Required,
        "what the instruction computes: one assignment per line, from `rs1`, `rs2`, `i`, `word[n]`, registers and tables",
        "\"rd = rs1 ^ rs2\"",
    ),
];
