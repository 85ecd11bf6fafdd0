//! What a host scenario may hold: the lists from which its reader takes the names of keys, and the reference
//! (`docs/reference/host.md`) and the schema for editors take the rest.

use forebay_scenario::Unit;
use forebay_scenario::schema::Absent::{Is, Means, Required};
use forebay_scenario::schema::Takes::{
    Either, Flag, List, Number, Path, Positive, Quantity, Text, Time, Whole, Word,
};
use forebay_scenario::schema::{Key, Part, TEXTS, Takes, key};

/// Every section of a host scenario.
pub const PARTS: &[Part] = &[
    Part::once("", TOP),
    Part::once("traffic", TRAFFIC),
    Part::several("bus", BUS),
    Part::several("processor", PROCESSOR),
    Part::once("cores", CORES),
    Part::once("scheduler", SCHEDULER),
    Part::several("class", CLASS),
];

/// Longest time that a file can name.
const LONG: &str = "213 d";
const COUNT: u64 = u32::MAX as u64;
const SIZE_MAX: u64 = 1 << 30;
const TIME: Takes = Time("0 s", LONG);
const SIZES: &[&str] = &["exponential", "uniform", "fixed", "imix", "histogram", "paper"];
const SOURCES: &[&str] = &["file", "exponential", "uniform", "fixed", "imix", "histogram", "paper"];
const POLICIES: &[&str] =
    &["finish-time", "adaptive-alpha", "single", "round-robin", "shortest-queue", "size-threshold", "split"];
const WINDOWING: Takes = Word(&["fixed-window", "adaptive-window"]);
const WEIGHT: Takes = Whole(Unit::None, 1, 1 << 32);
const SHARE: Takes = Whole(Unit::None, 0, u16::MAX as u64);
const POINT: Takes = Either("a code point", &[Text, Whole(Unit::None, 0, 63)]);
const BIN: Takes = List(&Whole(Unit::Bytes, 0, 1 << 32));
const GAP: Takes = List(&Either("a time, or a weight", &[TIME, Whole(Unit::None, 1, 1 << 32)]));
const WEIGHTS: Takes = List(&Whole(Unit::None, 0, 1 << 32));
/// A processor by name or by number.
const NAMED: Takes = Either("the name or the number of a processor", &[Text, Whole(Unit::None, 0, COUNT)]);

const TOP: &[Key] = &[
    key("model", Word(&["host"]), Required, "the model that the file is a scenario of", "\"host\""),
    key(
        "seed",
        Whole(Unit::None, 0, u64::MAX),
        Is("1"),
        "seed of all random streams; the same file with the same seed gives the same figures on every machine",
        "7",
    ),
];

/// Mean, limits and lists of sizes, which `[traffic]` and `[[class]]` share.
const MEAN: Key = key(
    "mean",
    Positive(Unit::Bytes),
    Means("required with `exponential`"),
    "with source `exponential`: mean payload size between `min` and `max` of what is drawn, well below the middle of both",
    "256",
);
const MIN: Key = key(
    "min",
    Whole(Unit::Bytes, 0, SIZE_MAX),
    Is("0"),
    "with sources `exponential` and `uniform`: smallest payload",
    "64",
);
const MAX: Key = key(
    "max",
    Whole(Unit::Bytes, 0, SIZE_MAX),
    Means("required with `uniform`; 65535 with `exponential`"),
    "with sources `exponential` and `uniform`: largest payload",
    "1460",
);
const VALUE: Key = key(
    "value",
    Whole(Unit::Bytes, 0, SIZE_MAX),
    Means("required with `fixed`"),
    "with source `fixed`: payload of every packet",
    "472",
);
const BINS: Key = key(
    "bins",
    Either("a list of `[size, weight]` or `[smallest, largest, weight]`", &[List(&BIN)]),
    Means("required with `histogram`"),
    "with source `histogram`: payload sizes with their weights (1 to 2^32); sizes within a range are equally likely",
    "[[64, 28], [65, 570, 16]]",
);
const IMIX: Key = key(
    "imix",
    Word(&["pktgen", "csit"]),
    Is("\"pktgen\""),
    "with source `imix`: mix of sizes; `pktgen`: 40, 576 and 1500 bytes as 7:4:1; `csit`: 64, 570 and 1518 bytes as 28:16:4",
    "\"csit\"",
);

const TRAFFIC: &[Key] = &[
    key(
        "source",
        Word(SOURCES),
        Required,
        "source of the payload sizes: a trace, or a distribution to draw from; `paper` is the distribution of the papers' trace",
        "\"imix\"",
    ),
    key(
        "path",
        Path,
        Means("required with `file`"),
        "with source `file`: CSV or Parquet file with the columns `size[,time][,sa][,class]`, packet capture (pcap, \
         pcapng), or text of the Internet Traffic Archive",
        "\"trace.csv\"",
    ),
    key(
        "packets",
        Whole(Unit::None, 1, u64::MAX),
        Means("1000000 to draw; of a file, all"),
        "number of packets to draw, or maximum number taken from the file",
        "50_000",
    ),
    MEAN,
    MIN,
    MAX,
    VALUE,
    BINS,
    IMIX,
    key(
        "run_length",
        Number(1.0, f64::MAX),
        Is("1"),
        "mean number of successive packets with the same drawn size; not with source `file`",
        "8",
    ),
    key(
        "transitions",
        Either("a row of weights for each bin of `bins`", &[List(&WEIGHTS)]),
        Means("each size is drawn alone"),
        "with source `histogram`: first-order Markov chain of the bins (at most 128); row i holds the weights of the \
         bins that follow bin i, and the weights in `bins` are those of the first packet",
        "[[9, 1], [2, 3]]",
    ),
    key(
        "transitions_per",
        Word(&["traffic", "sa"]),
        Is("\"traffic\""),
        "packet on which the next bin depends: the preceding packet of all traffic, or of the same SA",
        "\"sa\"",
    ),
    key(
        "rate",
        Positive(Unit::Rate),
        Means("required, unless the file has times or `packet_rate` is given"),
        "offered load, payload and `overhead` together",
        "\"1 Gbit/s\"",
    ),
    key(
        "packet_rate",
        Positive(Unit::PacketRate),
        Means("`rate` applies"),
        "with arrivals `poisson` and `gaps`: offered load in packets, in place of `rate`",
        "\"100 kpacket/s\"",
    ),
    key(
        "arrivals",
        Word(&["back-to-back", "poisson", "on-off", "gaps", "stamps"]),
        Means(
            "`stamps` for a file with times and without `rate`; `gaps` with `gaps`; `poisson` with `packet_rate`; \
             otherwise `back-to-back`",
        ),
        "spacing of the packets: each behind the one before at `rate`, a Poisson process, bursts at `rate` with pauses \
         between them, gaps drawn from a table, or the times of the file",
        "\"poisson\"",
    ),
    key(
        "gaps",
        Either("a list of `[shortest, longest, weight]`", &[List(&GAP)]),
        Means("required with arrivals `gaps`"),
        "with arrivals `gaps`: times between packets with their weights (1 to 2^32); times within a range are equally \
         likely; with `rate` or `packet_rate` all are multiplied by the factor that gives this mean rate",
        "[[\"1 us\", \"2 us\", 3], [\"1 ms\", \"2 ms\", 1]]",
    ),
    key(
        "gap_transitions",
        Either("a row of weights for each bin of `gaps`", &[List(&WEIGHTS)]),
        Means("each gap is drawn alone"),
        "with arrivals `gaps`: first-order Markov chain of the bins of `gaps`, as `transitions` is of `bins`",
        "[[9, 1], [2, 3]]",
    ),
    key(
        "on",
        Positive(Unit::Time),
        Means("required with `on-off`"),
        "with arrivals `on-off`: mean length of a burst",
        "\"1 ms\"",
    ),
    key(
        "off",
        Positive(Unit::Time),
        Means("required with `on-off`"),
        "with arrivals `on-off`: mean length of a pause",
        "\"1 ms\"",
    ),
    key(
        "sas",
        Whole(Unit::None, 1, 1 << 24),
        Means("those of the file, otherwise one"),
        "number of SAs, drawn with equal probability",
        "100",
    ),
    key(
        "sa_weights",
        Either("a list of whole numbers from 1 on", &[List(&WEIGHT)]),
        Means("`sas` applies"),
        "one weight for each SA, in place of `sas`: SAs are drawn in proportion",
        "[3, 1, 1]",
    ),
    key(
        "sa_run_length",
        Number(1.0, f64::MAX),
        Is("1"),
        "mean number of successive packets with the same drawn SA",
        "4",
    ),
    key(
        "suites",
        Either("words, at most 64", TEXTS),
        Is("[\"any\"]"),
        "cipher suites of the SAs, in turn; a processor's `suites` refer to these words",
        "[\"aes\", \"3des\"]",
    ),
    key(
        "passes",
        Either("2 to 8 words", TEXTS),
        Means("one pass, by `suites`"),
        "cipher suites of the passes that every packet needs one after the other, in place of `suites`, each pass at the cost \
         of its processor; `dependent` in `[scheduler]` says where the later ones go",
        "[\"aes\", \"sha1\"]",
    ),
    key(
        "dependent_sas",
        Whole(Unit::None, 0, COUNT),
        Is("0"),
        "SAs with numbers below this, counted from 0, depend on themselves: each of their packets needs the result of the one \
         before, as records of TLS 1.0 do; `dependent` in `[scheduler]` says what is done",
        "10",
    ),
    key(
        "overhead",
        Whole(Unit::Bytes, 0, 65_535),
        Is("40"),
        "bytes added to each payload, for headers; the default is a TCP/IPv4 header",
        "0",
    ),
    key(
        "warm_up",
        Whole(Unit::None, 0, u64::MAX),
        Is("0"),
        "packets at the beginning that are left out of the figures; fewer than `packets`",
        "1000",
    ),
];

const BUS: &[Key] = &[
    key("name", Text, Means("required if there are several"), "name that processors refer to", "\"pci0\""),
    key(
        "clock",
        Whole(Unit::Frequency, 1, u64::MAX),
        Is("\"66 MHz\""),
        "clock rate of a parallel bus",
        "\"133 MHz\"",
    ),
    key(
        "width",
        Whole(Unit::Bytes, 1, 1 << 20),
        Is("4"),
        "bytes that a parallel bus transfers per cycle",
        "8",
    ),
    key(
        "address_cycles",
        Whole(Unit::None, 0, COUNT),
        Is("1"),
        "cycles of a parallel bus before the first byte of each transfer",
        "2",
    ),
    key(
        "bandwidth",
        Whole(Unit::Rate, 1, u64::MAX),
        Means("a parallel bus with a clock"),
        "rate of a serial link, in place of `clock`, `width` and `address_cycles`",
        "\"64 Gbit/s\"",
    ),
    key(
        "transfer_overhead",
        TIME,
        Is("0"),
        "with `bandwidth`: time of each transfer besides its bytes",
        "\"100 ns\"",
    ),
    key(
        "full_duplex",
        Flag,
        Is("false"),
        "fetches and write-backs use separate lines and do not wait for each other",
        "true",
    ),
    key(
        "energy_per_byte",
        Quantity(Unit::Energy),
        Means("not counted"),
        "energy of each byte that crosses the bus, in either direction; not for several `passes` that are jobs of their own",
        "\"40 pJ\"",
    ),
];

const PROCESSOR: &[Key] = &[
    key(
        "name",
        Text,
        Means("`cpu`, `card`"),
        "name in the figures and for `--set`; with `count` above 1, `.0`, `.1`, ... is appended",
        "\"card\"",
    ),
    key(
        "kind",
        Word(&["cpu", "accelerator"]),
        Required,
        "`accelerator`: fetches its jobs over a bus and writes them back; `cpu`: works in memory",
        "\"accelerator\"",
    ),
    key("count", Whole(Unit::None, 1, 1_024), Is("1"), "number of such processors, 1024 in all", "2"),
    key(
        "init",
        TIME,
        Means("1 us, or by `init_ratio`"),
        "setup time per job, before its first block (t_init)",
        "\"3 us\"",
    ),
    key(
        "block",
        TIME,
        Means("440 ns for an accelerator, or by `block_ratio` or `throughput`; required for a CPU"),
        "time per block of 16 bytes (t_block)",
        "\"920 ns\"",
    ),
    key(
        "init_ratio",
        Positive(Unit::None),
        Means("`init` applies"),
        "`init` as a multiple of that of the first accelerator",
        "3",
    ),
    key(
        "block_ratio",
        Positive(Unit::None),
        Means("`block` applies"),
        "`block` as a multiple of that of the first accelerator",
        "2",
    ),
    key(
        "throughput",
        Positive(Unit::Rate),
        Means("`block` applies"),
        "throughput with packets of `throughput_size`, from which `block` is computed",
        "\"110 Mbit/s\"",
    ),
    key(
        "throughput_size",
        Whole(Unit::Bytes, 1, 1 << 30),
        Means("required with `throughput`"),
        "packet size to which `throughput` applies",
        "640",
    ),
    key(
        "alpha",
        Number(1.0, 9_007_199_254_740_991.0),
        Is("1"),
        "factor on the predicted finish time; values above 1 keep the processor free for other work",
        "1.5",
    ),
    key(
        "beta",
        TIME,
        Is("0"),
        "time added to the predicted finish time before the factor is applied",
        "\"2 us\"",
    ),
    key(
        "queue",
        Whole(Unit::None, 1, COUNT),
        Is("1000"),
        "maximum number of waiting jobs; the job in service is not counted",
        "50",
    ),
    key(
        "write_buffer",
        Whole(Unit::None, 0, 1 << 20),
        Is("0"),
        "accelerator: completed jobs that can wait for the bus while the next is computed",
        "2",
    ),
    key(
        "prefetch",
        Whole(Unit::None, 0, 1 << 20),
        Is("0"),
        "accelerator: jobs, with `burst` whole submissions, that are fetched while another is computed",
        "2",
    ),
    key("bus", Text, Means("the first"), "accelerator: name of its bus", "\"pci0\""),
    key(
        "suites",
        Either("words of the traffic's `suites`", TEXTS),
        Means("all"),
        "cipher suites that the processor supports",
        "[\"aes\"]",
    ),
    key(
        "others",
        Number(0.0, 1.0),
        Is("0"),
        "CPU: share of its time that other work takes, as reported to policy `adaptive-alpha`; the crypto is not slowed",
        "0.3",
    ),
    key(
        "packet",
        TIME,
        Is("0"),
        "time per packet of a job, one packet after the other whatever `lanes` is",
        "\"20 ns\"",
    ),
    key(
        "submit",
        TIME,
        Is("0"),
        "time per submission, that is, once for all jobs handed over together",
        "\"300 ns\"",
    ),
    key(
        "wake",
        TIME,
        Is("0"),
        "time from the handover until an idle processor begins; a processor is idle if no job waits, is computed, or \
         crosses the bus",
        "\"5 us\"",
    ),
    key(
        "lanes",
        Whole(Unit::None, 1, 1 << 20),
        Is("1"),
        "jobs of a submission that are computed side by side; a group takes as long as its longest job; no effect with \
         `burst = 1`",
        "8",
    ),
    key(
        "answers",
        Word(&["batch", "each"]),
        Is("\"batch\""),
        "`batch`: a submission completes as a whole, and a card writes it back in one transfer; `each`: every group of \
         `lanes` jobs completes when it ends",
        "\"each\"",
    ),
    key(
        "active_power",
        Quantity(Unit::Power),
        Means("`idle_power`"),
        "power of the processor while it computes, for the figures `energy_per_packet_j` and `average_power_w`; a running core is \
         active while it moves packets too",
        "\"15 W\"",
    ),
    key(
        "idle_power",
        Quantity(Unit::Power),
        Is("0"),
        "power of the processor while it does not compute",
        "\"2 W\"",
    ),
    key(
        "key_slots",
        Whole(Unit::None, 1, COUNT),
        Means("no limit"),
        "SAs whose keys the processor holds; those that were used the longest time ago make room; requires `key_load`",
        "16",
    ),
    key(
        "key_load",
        TIME,
        Is("0"),
        "time of a job whose SA's keys the processor does not hold, besides all else",
        "\"2 us\"",
    ),
    key(
        "session",
        TIME,
        Is("0"),
        "time of the first job of each SA at the processor, besides `key_load` and all else",
        "\"20 us\"",
    ),
    key(
        "move",
        TIME,
        Means("this processor is not the running core"),
        "makes this CPU the running core, which spends this time on each packet besides crypto; requires `poll`",
        "\"250 ns\"",
    ),
    key(
        "feed",
        TIME,
        Is("0"),
        "time that the running core spends on each packet that it hands to this processor and collects; requires `poll`",
        "\"80 ns\"",
    ),
    key(
        "feed_block",
        TIME,
        Is("0"),
        "the same per block of 16 bytes, for the copy; requires `poll`",
        "\"1 ns\"",
    ),
];

const CORES: &[Key] = &[
    key(
        "burst",
        Whole(Unit::None, 1, 1 << 16),
        Is("64"),
        "maximum number of packets that a core takes at once",
        "32",
    ),
    key(
        "take",
        TIME,
        Is("0"),
        "serial time of each burst to be taken and prepared: one core at a time",
        "\"100 ns\"",
    ),
    key("take_packet", TIME, Is("0"), "the same for each packet of a burst", "\"20 ns\""),
    key(
        "complete",
        TIME,
        Is("0"),
        "serial time of each burst to be completed and sent: one core at a time",
        "\"100 ns\"",
    ),
    key("complete_packet", TIME, Is("0"), "the same for each packet of a burst", "\"20 ns\""),
    key(
        "ordered",
        Flag,
        Is("true"),
        "bursts of an SA are completed in the order in which they were taken",
        "false",
    ),
    key(
        "shared",
        Flag,
        Is("false"),
        "taking and completing are one serial stage, in which one core at a time does either",
        "true",
    ),
];

const SCHEDULER: &[Key] = &[
    key(
        "policy",
        Word(POLICIES),
        Is("\"finish-time\""),
        "policy that chooses the processor of a job",
        "\"round-robin\"",
    ),
    key(
        "window",
        Whole(Unit::None, 1, 1 << 16),
        Is("1"),
        "sliding window in packets: packets of one SA within it are bundled into one job; 1 disables bundling",
        "16",
    ),
    key(
        "timeout",
        TIME,
        Means("no limit"),
        "maximum time that the first packet waits for the window to fill",
        "\"50 us\"",
    ),
    key("max_bytes", Whole(Unit::Bytes, 1, u64::MAX), Means("no limit"), "maximum size of a bundle", "4096"),
    key(
        "input",
        Whole(Unit::None, 1, COUNT),
        Means("no limit"),
        "maximum number of packets that wait for the scheduler, at least `window`; further packets are lost; with `poll`, \
         those that the running core has not taken",
        "1000",
    ),
    key(
        "full_queue",
        Word(&["wait", "pass"]),
        Is("\"wait\""),
        "with `burst = 1`: what a job does whose chosen queue is full. `wait`: it waits for that very queue, and all jobs of \
         its class behind it wait too, though other processors may be idle (the papers' rule). `pass`: it goes to the \
         processor with the smallest finish time among those with room, as shares of a burst do",
        "\"pass\"",
    ),
    key(
        "prefetch_aware",
        Flag,
        Is("false"),
        "prefetched jobs count as waiting; not with `burst` above 1 or `poll`",
        "true",
    ),
    key(
        "keep_order",
        Flag,
        Is("false"),
        "packets of an SA leave in the order in which they came: one whose job is done waits for those before it, as \
         in the gateway; the figures `order` say for how long; not with `poll`, which always keeps it",
        "true",
    ),
    key(
        "dependent",
        Word(&["when-ready", "same-processor"]),
        Is("\"when-ready\""),
        "jobs that need the result of another one (`dependent_sas`, `passes`). `when-ready`: they come to the end of the input \
         when that one is done. `same-processor`: packets of such an SA go to the processor of its first one, and all passes of \
         a packet are one job, which crosses the bus once in each direction",
        "\"same-processor\"",
    ),
    key(
        "affinity",
        Flag,
        Is("false"),
        "all packets of an SA go to the processor that was chosen for its first one; not with `burst` above 1 or `poll`",
        "true",
    ),
    key(
        "all_idle",
        Word(&["finish-time", "accelerator"]),
        Is("\"finish-time\""),
        "where a job goes that finds every processor without work: `finish-time`: by the rule, as at any time; `accelerator`: to the \
         accelerator that does it fastest, the first of several, even if a CPU would be done earlier; not with `burst` above 1 \
         or `poll`",
        "\"accelerator\"",
    ),
    key(
        "by_class",
        Flag,
        Is("true"),
        "the scheduler distinguishes the classes; if false, only the figures do; requires `[[class]]`",
        "false",
    ),
    key("predict_transfer", Flag, Is("false"), "predictions include both transfers over the bus", "true"),
    key(
        "processor",
        NAMED,
        Means("the first accelerator"),
        "with policy `single`: the processor for every job",
        "\"card\"",
    ),
    key(
        "threshold",
        Whole(Unit::Bytes, 0, u64::MAX),
        Is("256"),
        "with policy `size-threshold`: minimum size of a large job",
        "512",
    ),
    key(
        "small",
        NAMED,
        Means("the first CPU"),
        "with policy `size-threshold`: the processor for small jobs",
        "\"cpu\"",
    ),
    key(
        "large",
        NAMED,
        Means("the first accelerator"),
        "with policy `size-threshold`: the processor for large jobs",
        "\"card\"",
    ),
    key(
        "weights",
        Either("a list of whole numbers, 0 to 65535", &[List(&SHARE)]),
        Means("equal weights"),
        "with policy `split`: each processor's share of the packets, for at most the first eight",
        "[3, 1]",
    ),
    key(
        "windowing",
        WINDOWING,
        Is("\"fixed-window\""),
        "`adaptive-window` adapts the window to the traffic, from 1 to `window`",
        "\"adaptive-window\"",
    ),
    key(
        "alpha_upper",
        Whole(Unit::None, 0, 100),
        Is("90"),
        "with policy `adaptive-alpha`: utilization of the CPUs in percent above which alpha rises",
        "80",
    ),
    key(
        "alpha_lower",
        Whole(Unit::None, 0, 100),
        Is("70"),
        "with policy `adaptive-alpha`: utilization in percent below which alpha falls; at most `alpha_upper`",
        "60",
    ),
    key(
        "alpha_most",
        Whole(Unit::None, 1, COUNT),
        Is("500"),
        "with policy `adaptive-alpha`: maximum alpha",
        "100",
    ),
    key(
        "alpha_period",
        Positive(Unit::Time),
        Is("\"10 ms\""),
        "with policy `adaptive-alpha`: interval between two steps",
        "\"50 ms\"",
    ),
    key(
        "burst",
        Whole(Unit::None, 1, 1 << 16),
        Is("1"),
        "maximum number of waiting jobs that are placed together, each processor's share at the cost of a batch; 1 places \
         each job separately, as in the papers",
        "32",
    ),
    key(
        "poll",
        Flag,
        Is("false"),
        "the running core, the processor with `move`, is a polling loop through which every packet goes",
        "true",
    ),
];

const CLASS: &[Key] = &[
    key("name", Text, Means("`class0`, `class1`, ... by position"), "name in the figures", "\"voice\""),
    key(
        "service",
        Word(&["strict", "weighted"]),
        Is("\"strict\""),
        "`strict`: priority over all later classes; `weighted`: a share of what the strict classes leave; strict classes \
         come first",
        "\"weighted\"",
    ),
    key(
        "weight",
        Whole(Unit::None, 1, COUNT),
        Is("1"),
        "with service `weighted`: weight of the class, by bytes",
        "4",
    ),
    key(
        "queue",
        Whole(Unit::None, 1, COUNT),
        Means("no limit besides the processor's"),
        "jobs that may wait at a processor once one of this class has joined them",
        "4",
    ),
    key(
        "latency_bound",
        TIME,
        Means("none"),
        "time after a placement by which another processor than the host has to be predicted to be done with a job of the \
         class, where any is; with a `batch` above 1",
        "\"200 us\"",
    ),
    key(
        "window",
        Whole(Unit::None, 1, 1 << 16),
        Means("as `[scheduler]`"),
        "as in `[scheduler]`, for this class",
        "16",
    ),
    key(
        "windowing",
        WINDOWING,
        Means("as `[scheduler]`"),
        "as in `[scheduler]`, for this class",
        "\"adaptive-window\"",
    ),
    key("timeout", TIME, Means("as `[scheduler]`"), "as in `[scheduler]`, for this class", "\"5 us\""),
    key(
        "max_bytes",
        Whole(Unit::Bytes, 1, u64::MAX),
        Means("as `[scheduler]`"),
        "as in `[scheduler]`, for this class",
        "4096",
    ),
    key(
        "input",
        Whole(Unit::None, 1, COUNT),
        Means("as `[scheduler]`"),
        "as in `[scheduler]`, for this class",
        "1000",
    ),
    key(
        "share",
        Positive(Unit::None),
        Means("classes are read from the trace"),
        "the class of each packet is drawn; this class's share, relative to those of the others",
        "0.25",
    ),
    key(
        "dscp",
        Either("a list of code points by name or number, 0 to 63", &[List(&POINT)]),
        Means(
            "with three classes and none that has the key, the grouping of RFC 4594; otherwise code points of no class \
               belong to the last",
        ),
        "code points of the class, for packets from a capture",
        "[\"EF\", \"CS5\", 44]",
    ),
    key(
        "source",
        Word(SIZES),
        Means("as `[traffic]`"),
        "with `share`: distribution of the payload sizes of this class, in place of that of `[traffic]`",
        "\"fixed\"",
    ),
    MEAN,
    MIN,
    MAX,
    VALUE,
    BINS,
    IMIX,
];
