//! `[[processor]]`, `[[bus]]`, `[scheduler]`, `[[class]]` and `[limits]`.

use forebay_processors::Backend;
use forebay_scenario::Unit;

use super::Absent::{Is, Means, Required};
use super::Takes::{Either, Flag, List, Number, Path, Text, Time, Whole, Word};
use super::{Key, Part, Takes, key, once, several};

/// Most processors, all of a `count` counted.
pub const PROCESSORS_MAX: u64 = 256;

const POLICIES: &[&str] =
    &["finish-time", "adaptive-alpha", "single", "round-robin", "shortest-queue", "size-threshold"];

/// Whole numbers in a list, or one.
const WHOLES: &[Takes] = &[WHOLE, List(&WHOLE)];
const WHOLE: Takes = Whole(Unit::None, 0, u32::MAX as u64);
/// Code points by number or name in a list, or one.
const CLASSES: &[Takes] = &[CLASS_WORD, List(&CLASS_WORD)];
const CLASS_WORD: Takes = Either("a code point", &[Text, Whole(Unit::None, 0, 63)]);

pub const PROCESSOR: Part = several(
    "processor",
    &[
        key(
            "kind",
            Word(&[forebay_processors::CORE]),
            Required,
            "`core`: a core of this machine; `card`: an emulated card, which does the crypto in the time of a given card",
            "\"core\"",
        ),
        key(
            "name",
            Text,
            Means("`core`, `card`, then `core-2`, `card-2`, ..."),
            "name in status and metrics; with `count` above 1, `.0`, `.1`, ... is appended",
            "\"card\"",
        ),
        key("count", Whole(Unit::None, 1, PROCESSORS_MAX), Is("1"), "number of such processors", "2"),
        key(
            "backend",
            Word(Backend::WORDS),
            Is("\"auto\""),
            "crypto library; `auto` is the fastest available, with another for suites that it does not support; `ipsec-mb` is for x86-64",
            "\"aws-lc\"",
        ),
        key(
            "alpha",
            Number(1.0, 1e6),
            Is("1"),
            "factor on the predicted finish time; values above 1 keep the processor free for other work",
            "1.5",
        ),
        key(
            "beta",
            Time("0 s", "1 s"),
            Is("0"),
            "time added to the predicted finish time before the factor is applied",
            "\"2 us\"",
        ),
    ],
);

pub const CORE: &[Key] = &[
    key(
        "pin",
        Either("CPU numbers, as many as `count`", WHOLES),
        Means("no affinity"),
        "CPU affinity of the threads; the first processor lists one CPU per worker thread (as many as queues), then one for each further core of `count`",
        "[0]",
    ),
    key("queue", Whole(Unit::None, 1, 65_536), Is("256"), "maximum queue length in jobs", "512"),
];

pub const BUS: Part = several(
    "bus",
    &[
        key("name", Text, Means("`bus-1`, `bus-2`, ... by position"), "name that cards refer to", "\"pci0\""),
        key(
            "clock",
            Whole(Unit::Frequency, 1, 1_000_000_000_000),
            Is("\"66 MHz\""),
            "clock rate",
            "\"133 MHz\"",
        ),
        key("width", Whole(Unit::Bytes, 1, 1 << 20), Is("4"), "bytes transferred per cycle", "8"),
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
            "policy that chooses the processor of a job",
            "\"adaptive-alpha\"",
        ),
        key(
            "window",
            Whole(Unit::None, 1, 65_536),
            Is("1"),
            "sliding window in packets: packets of one SA within it are bundled; 1 disables bundling",
            "16",
        ),
        key(
            "batch",
            Whole(Unit::None, 1, 4_096),
            Is("64"),
            "maximum number of jobs that are placed together, where the cost of each processor's share depends on its size; \
             1 places each job separately",
            "1",
        ),
        key(
            "timeout",
            Time("1 ns", "1 s"),
            Is("\"50 us\""),
            "maximum time that a packet waits for the window to fill",
            "\"20 us\"",
        ),
        key(
            "max_bytes",
            Whole(Unit::Bytes, 1, 1 << 30),
            Means("no limit"),
            "maximum size of a bundle",
            "4096",
        ),
        key(
            "order",
            Word(&["per-sa", "total"]),
            Is("\"per-sa\""),
            "order of departure: `per-sa`: the packets of each SA leave in order of arrival; `total`: all packets do",
            "\"total\"",
        ),
        key(
            "costs",
            Path,
            Means("costs are measured at start"),
            "file of processor costs, written by `forebay bench processors --save`",
            "\"costs.json\"",
        ),
        key(
            "lateness",
            Flag,
            Is("true"),
            "learns the tardiness of each processor (how much later than predicted its jobs complete) and adds it to predictions",
            "false",
        ),
        key(
            "processor",
            Text,
            Means("the first card, or the first processor"),
            "with `single`: the processor for every job that it supports",
            "\"card\"",
        ),
        key(
            "threshold",
            Whole(Unit::Bytes, 0, 1 << 30),
            Is("256"),
            "with `size-threshold`: minimum size of a large job",
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
            "with `adaptive-alpha`: utilization of the cores in percent above which alpha rises",
            "80",
        ),
        key(
            "alpha_lower",
            Whole(Unit::None, 0, 100),
            Is("70"),
            "with `adaptive-alpha`: utilization in percent below which alpha falls; at most `alpha_upper`",
            "60",
        ),
        key(
            "alpha_most",
            Whole(Unit::None, 1, 1_000_000),
            Is("500"),
            "with `adaptive-alpha`: maximum alpha",
            "100",
        ),
        key(
            "alpha_period",
            Time("1 us", "10 s"),
            Is("\"10 ms\""),
            "with `adaptive-alpha`: interval between two steps",
            "\"50 ms\"",
        ),
    ],
);

pub const CLASS: Part = several(
    "class",
    &[
        key("name", Text, Required, "name in the messages of `check`; each class has another", "\"voice\""),
        key(
            "dscp",
            Either("classes of traffic, as `classes` of an SA", CLASSES),
            Means("all code points of no other class"),
            "code points of the class's outbound packets; each belongs to one class only; inbound packets are of the first class, since \
             their sender has scheduled them",
            "[\"ef\", \"cs5\"]",
        ),
        key(
            "weight",
            Whole(Unit::None, 1, 65_536),
            Means("strict priority over all later classes"),
            "weight of the class, by bytes, in the capacity left by strict classes; strict classes come first",
            "4",
        ),
        key(
            "window",
            Whole(Unit::None, 1, 65_536),
            Means("as `[scheduler]`"),
            "as in `[scheduler]`, for this class",
            "16",
        ),
        key(
            "windowing",
            Word(&["fixed-window", "adaptive-window"]),
            Is("\"fixed-window\""),
            "`adaptive-window` adapts the window to the traffic, from 1 to `window`",
            "\"adaptive-window\"",
        ),
        key(
            "timeout",
            Time("1 ns", "1 s"),
            Means("as `[scheduler]`"),
            "as in `[scheduler]`, for this class",
            "\"5 us\"",
        ),
        key(
            "max_bytes",
            Whole(Unit::Bytes, 1, 1 << 30),
            Means("as `[scheduler]`"),
            "as in `[scheduler]`, for this class",
            "4096",
        ),
        key(
            "limit",
            Whole(Unit::None, 1, 1 << 20),
            Means("`in_flight` of `[limits]`"),
            "maximum number of packets of the class that wait for a processor, at least `window`; further packets are dropped",
            "256",
        ),
        key(
            "queue",
            Whole(Unit::None, 1, 65_536),
            Means("the processor's"),
            "jobs that may wait at a processor once one of this class has joined them",
            "32",
        ),
        key(
            "latency_bound",
            Time("1 ns", "1 s"),
            Means("none"),
            "time after a placement by which another processor than the running core has to be predicted to be done with \
             a job of the class, where any is: no job of the class waits for a large batch elsewhere",
            "\"200 us\"",
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
            "maximum number of packets in flight per engine; twice as many buffers are allocated",
            "8192",
        ),
        key(
            "packet_size",
            Whole(Unit::Bytes, 1280, 65_575),
            Is("2048"),
            "maximum size of an IP packet, including the IPsec headers",
            "9216",
        ),
        key(
            "burst",
            Whole(Unit::None, 1, 256),
            Is("32"),
            "jobs that the running core completes before it polls the other processors again",
            "64",
        ),
        key(
            "hold",
            Time("1 ms", "10 s"),
            Is("\"200 ms\""),
            "maximum time that a late job holds the packets behind it",
            "\"100 ms\"",
        ),
        key(
            "patience",
            Whole(Unit::None, 1, 1_000),
            Is("4"),
            "job deadline as a multiple of its predicted time",
            "8",
        ),
        key("slack", Time("0 s", "10 s"), Is("\"50 ms\""), "time added to the job deadline", "\"20 ms\""),
        key(
            "audit_every",
            Whole(Unit::None, 0, u64::MAX),
            Is("64"),
            "the running core checks one of this many results of another processor; 0 disables checks",
            "1024",
        ),
        key(
            "fragment_datagrams",
            Whole(Unit::None, 1, 1 << 20),
            Is("1024"),
            "maximum number of datagrams in reassembly",
            "4096",
        ),
        key(
            "fragment_bytes",
            Whole(Unit::Bytes, 1 << 16, 1 << 30),
            Is("\"4 MiB\""),
            "maximum size of all held fragments",
            "\"16 MiB\"",
        ),
        key(
            "fragment_bytes_per_source",
            Whole(Unit::Bytes, 1 << 12, 1 << 30),
            Is("\"512 KiB\""),
            "maximum size of the held fragments of one source",
            "\"1 MiB\"",
        ),
        key(
            "fragments",
            Whole(Unit::None, 2, 8_192),
            Is("64"),
            "maximum number of fragments per datagram",
            "128",
        ),
        key(
            "fragment_timeout",
            Time("1 ms", "120 s"),
            Is("\"60 s\""),
            "reassembly timeout, from the first fragment received",
            "\"30 s\"",
        ),
        key(
            "sas",
            Whole(Unit::None, 1, 1 << 20),
            Is("65536"),
            "maximum number of SAs, both directions together",
            "1000",
        ),
        key("policies", Whole(Unit::None, 1, 1 << 20), Is("65536"), "maximum number of policies", "1000"),
        key(
            "control_connections",
            Whole(Unit::None, 1, 1_024),
            Is("16"),
            "maximum number of connections to the control socket, and likewise to the metrics; beyond it an idle one is closed",
            "4",
        ),
    ],
);
