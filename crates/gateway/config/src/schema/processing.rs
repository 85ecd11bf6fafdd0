//! `[[processor]]`, `[[bus]]`, `[scheduler]`, `[[class]]` and `[limits]`.

use forebay_processors::{Backend, WORDS};
use forebay_scenario::Unit;

use super::Absent::{Is, Means, Required};
use super::Takes::{Flag, Number, Other, Path, Text, Time, Whole, Word};
use super::{Key, Part, key, once, several};

/// Most processors, all of a `count` counted.
pub const PROCESSORS_MAX: u64 = 256;

const POLICIES: &[&str] =
    &["finish-time", "adaptive-alpha", "single", "round-robin", "shortest-queue", "size-threshold"];

pub const PROCESSOR: Part = several(
    "processor",
    &[
        key(
            "kind",
            Word(WORDS),
            Required,
            "a core of this machine, or an emulated card: real crypto that takes the time of a card",
            "\"core\"",
        ),
        key(
            "name",
            Text,
            Means("`core`, `card`, with `-2`, ... from the second on"),
            "for people and figures; `.0`, `.1`, ... is put behind it where `count` is above 1",
            "\"card\"",
        ),
        key("count", Whole(Unit::None, 1, PROCESSORS_MAX), Is("1"), "how many of these there are", "2"),
        key(
            "backend",
            Word(Backend::WORDS),
            Is("\"auto\""),
            "the crypto library; `auto` is the fastest of this machine, and another for suites that it lacks",
            "\"aws-lc\"",
        ),
        key(
            "alpha",
            Number(1.0, 1e6),
            Is("1"),
            "factor on predicted finishing times: above 1 keeps a processor free for other work",
            "1.5",
        ),
        key("beta", Time("0 s", "1 s"), Is("0"), "time added to them before the factor", "\"2 us\""),
    ],
);

pub const CORE: &[Key] = &[
    key(
        "pin",
        Other("CPU numbers, as many as `count`"),
        Means("the system chooses"),
        "the CPUs that the cores' threads stay on, from 0; of the first processor those of all that move packets, as many as there are queues, then those of what `count` is above 1",
        "[0]",
    ),
    key("queue", Whole(Unit::None, 1, 65_536), Is("256"), "jobs that may wait there", "512"),
];

pub const BUS: Part = several(
    "bus",
    &[
        key("name", Text, Means("`bus-1`, `bus-2`, ... by place"), "for cards to refer to", "\"pci0\""),
        key(
            "clock",
            Whole(Unit::Frequency, 1, 1_000_000_000_000),
            Is("\"66 MHz\""),
            "cycles a second",
            "\"133 MHz\"",
        ),
        key("width", Whole(Unit::Bytes, 1, 1 << 20), Is("4"), "moved in a cycle", "8"),
        key("address_cycles", Whole(Unit::None, 0, 65_536), Is("1"), "cycles before the first byte", "2"),
    ],
);

pub const SCHEDULER: Part = once(
    "scheduler",
    &[
        key(
            "policy",
            Word(POLICIES),
            Is("\"finish-time\""),
            "how the place of a job is chosen",
            "\"adaptive-alpha\"",
        ),
        key(
            "window",
            Whole(Unit::None, 1, 65_536),
            Is("1"),
            "packets among which those of one SA are bundled; 1 bundles nothing",
            "16",
        ),
        key(
            "batch",
            Whole(Unit::None, 1, 4_096),
            Is("64"),
            "maximum number of jobs that are placed together, each processor's share at a price that depends on its \
             size; 1 places them one by one",
            "1",
        ),
        key(
            "timeout",
            Time("1 ns", "1 s"),
            Is("\"50 us\""),
            "longest wait of a packet for the window to fill",
            "\"20 us\"",
        ),
        key(
            "max_bytes",
            Whole(Unit::Bytes, 1, 1 << 30),
            Means("no limit"),
            "most bytes that are bundled",
            "4096",
        ),
        key(
            "order",
            Word(&["per-sa", "total"]),
            Is("\"per-sa\""),
            "which packets leave in the order in which they came: those of an SA, or all",
            "\"total\"",
        ),
        key(
            "costs",
            Path,
            Means("they are measured at start"),
            "costs of the processors, as `forebay bench processors --save` writes them",
            "\"costs.json\"",
        ),
        key(
            "lateness",
            Flag,
            Is("true"),
            "whether it is learnt by how much jobs are done later than predicted, and added to predictions",
            "false",
        ),
        key(
            "processor",
            Text,
            Means("the first card, or the first processor"),
            "with `single`: the processor that does all it can",
            "\"card\"",
        ),
        key(
            "threshold",
            Whole(Unit::Bytes, 0, 1 << 30),
            Is("256"),
            "with `size-threshold`: from which size on a job is large",
            "512",
        ),
        key(
            "small",
            Text,
            Means("the first core"),
            "with `size-threshold`: the processor for small jobs",
            "\"core\"",
        ),
        key(
            "large",
            Text,
            Means("as `processor`"),
            "with `size-threshold`: the processor for large jobs",
            "\"card\"",
        ),
        key(
            "alpha_upper",
            Whole(Unit::None, 0, 100),
            Is("90"),
            "with `adaptive-alpha`: load of the cores in per cent above which alpha rises",
            "80",
        ),
        key(
            "alpha_lower",
            Whole(Unit::None, 0, 100),
            Is("70"),
            "with `adaptive-alpha`: load below which it falls; not above `alpha_upper`",
            "60",
        ),
        key(
            "alpha_most",
            Whole(Unit::None, 1, 1_000_000),
            Is("500"),
            "with `adaptive-alpha`: the largest alpha",
            "100",
        ),
        key(
            "alpha_period",
            Time("1 us", "10 s"),
            Is("\"10 ms\""),
            "with `adaptive-alpha`: time between two steps",
            "\"50 ms\"",
        ),
    ],
);

pub const CLASS: Part = several(
    "class",
    &[
        key("name", Text, Required, "for people and figures", "\"voice\""),
        key(
            "dscp",
            Other("classes of traffic, as `classes` of an SA"),
            Means("all that no other class has"),
            "the code points of the class; each in one class only",
            "[\"ef\", \"cs5\"]",
        ),
        key(
            "weight",
            Whole(Unit::None, 1, 65_536),
            Means("strict: goes before all classes behind it"),
            "its share of what strict classes leave, by bytes; strict classes stand first",
            "4",
        ),
        key(
            "window",
            Whole(Unit::None, 1, 65_536),
            Means("as `[scheduler]`"),
            "as in `[scheduler]`, of this class",
            "16",
        ),
        key(
            "windowing",
            Word(&["fixed-window", "adaptive-window"]),
            Is("\"fixed-window\""),
            "whether the window follows the traffic, from 1 up to `window`",
            "\"adaptive-window\"",
        ),
        key(
            "timeout",
            Time("1 ns", "1 s"),
            Means("as `[scheduler]`"),
            "as in `[scheduler]`, of this class",
            "\"5 us\"",
        ),
        key(
            "max_bytes",
            Whole(Unit::Bytes, 1, 1 << 30),
            Means("as `[scheduler]`"),
            "as in `[scheduler]`, of this class",
            "4096",
        ),
        key(
            "limit",
            Whole(Unit::None, 1, 1 << 20),
            Means("`in_flight` of `[limits]`"),
            "packets of the class that may wait for a processor, at least `window`; others are dropped",
            "256",
        ),
        key(
            "queue",
            Whole(Unit::None, 1, 65_536),
            Means("the processor's"),
            "jobs that may wait at a processor once one of this class has joined them",
            "32",
        ),
    ],
);

pub const LIMITS: Part = once(
    "limits",
    &[
        key(
            "in_flight",
            Whole(Unit::None, 64, 1 << 20),
            Is("4096"),
            "packets under way in each engine; twice as many buffers are set aside",
            "8192",
        ),
        key(
            "packet_size",
            Whole(Unit::Bytes, 1280, 65_575),
            Is("2048"),
            "largest IP packet, with the headers that protection adds",
            "9216",
        ),
        key(
            "burst",
            Whole(Unit::None, 1, 256),
            Is("32"),
            "jobs that the running core does before it looks at the others again",
            "64",
        ),
        key(
            "hold",
            Time("1 ms", "10 s"),
            Is("\"200 ms\""),
            "longest that one late job may hold the packets behind it",
            "\"100 ms\"",
        ),
        key(
            "patience",
            Whole(Unit::None, 1, 1_000),
            Is("4"),
            "how many times its predicted time a job is given...",
            "8",
        ),
        key("slack", Time("0 s", "10 s"), Is("\"50 ms\""), "...and how much on top", "\"20 ms\""),
        key(
            "audit_every",
            Whole(Unit::None, 0, u64::MAX),
            Is("64"),
            "of how many packets of another processor the running core checks one; 0: none",
            "1024",
        ),
        key(
            "fragment_datagrams",
            Whole(Unit::None, 1, 1 << 20),
            Is("1024"),
            "fragmented packets of peers that are put together at a time",
            "4096",
        ),
        key(
            "fragment_bytes",
            Whole(Unit::Bytes, 1 << 16, 1 << 30),
            Is("\"4 MiB\""),
            "fragments held in all",
            "\"16 MiB\"",
        ),
        key(
            "fragment_bytes_per_source",
            Whole(Unit::Bytes, 1 << 12, 1 << 30),
            Is("\"512 KiB\""),
            "of them from one source",
            "\"1 MiB\"",
        ),
        key("fragments", Whole(Unit::None, 2, 8_192), Is("64"), "fragments of one packet", "128"),
        key(
            "fragment_timeout",
            Time("1 ms", "120 s"),
            Is("\"60 s\""),
            "how long fragments are kept, from the first that arrived",
            "\"30 s\"",
        ),
        key(
            "sas",
            Whole(Unit::None, 1, 1 << 20),
            Is("65536"),
            "SAs at a time, both directions together",
            "1000",
        ),
        key("policies", Whole(Unit::None, 1, 1 << 20), Is("65536"), "policies at a time", "1000"),
        key(
            "control_connections",
            Whole(Unit::None, 1, 1_024),
            Is("16"),
            "connections to the control socket at a time, those to metrics likewise",
            "4",
        ),
    ],
);
