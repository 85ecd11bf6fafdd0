//! What scenarios of pipelines and of inline cards may hold: the lists from which the readers take the names of keys,
//! and the reference (`docs/reference/`) and the schemas for editors take the rest.

use forebay_scenario::Unit;
use forebay_scenario::schema::Absent::{Is, Means, Required};
use forebay_scenario::schema::Takes::{
    Either, List, Number, Path, Positive, Quantity, Text, Time, Whole, Word,
};
use forebay_scenario::schema::{Key, Part, Takes, key};

/// Every section of a pipeline's scenario.
pub const PARTS: &[Part] = &[
    Part::once("", TOP),
    Part::once("arrivals", ARRIVALS),
    Part::several("server", SERVER),
    Part::several("stage", STAGE),
    Part::several("stage.next", BRANCH),
];

/// Every section of an inline card's scenario.
pub const CARD_PARTS: &[Part] = &[Part::once("", CARD), Part::several("resource", RESOURCE)];

const COUNT: u64 = u32::MAX as u64;
/// What works at once has a place in memory from the beginning, and the closed form of interrupts counts their packets one by one.
pub(super) const WORKERS: u64 = 65_536;
const BYTES_MAX: u64 = 1 << 30;
const TIME: Takes = Time("0 s", "213 d");

const SEED: Key = key(
    "seed",
    Whole(Unit::None, 0, u64::MAX),
    Is("1"),
    "seed of all random streams; the same file with the same seed gives the same figures on every machine",
    "7",
);
const DURATION: Key = key(
    "duration",
    Positive(Unit::Time),
    Means("500 ms; with a trace, until its last packet has left"),
    "simulated time of a run, longer than `warm_up`",
    "\"2 s\"",
);
const WARM_UP: Key = key(
    "warm_up",
    TIME,
    Is("0"),
    "time at the beginning of a run that is left out of the figures",
    "\"50 ms\"",
);
const RUNS: Key = key(
    "runs",
    Whole(Unit::None, 1, 100_000),
    Is("1"),
    "number of runs, with the seeds `seed`, `seed + 1`, ...; from two on, figures have confidence intervals",
    "20",
);

const MTBF: Key = key(
    "mtbf",
    Positive(Unit::Time),
    Means("none breaks down"),
    "mean time between failures: from the beginning, or a repair, to the next breakdown of a unit or core, whether it works or \
     not. What it worked on goes on where it stopped, with the first one that is free",
    "\"10 s\"",
);
const MTTR: Key = key(
    "mttr",
    Positive(Unit::Time),
    Means("required with `mtbf`"),
    "mean time to repair: from a breakdown on",
    "\"200 ms\"",
);
const BREAKDOWNS: Key = key(
    "breakdowns",
    Word(&["exponential", "constant"]),
    Is("\"exponential\""),
    "distribution of the times between breakdowns and of repairs; each unit or core breaks down by itself",
    "\"constant\"",
);

const ACTIVE_POWER: Key = key(
    "active_power",
    Quantity(Unit::Power),
    Means("`idle_power`"),
    "power of each unit or core while it works, for the figures `energy_per_packet_j` and `average_power_w`; a core is active too \
     while it changes to another stage or context, or is held by a packet for which another unit works or the next stage has no \
     room",
    "\"15 W\"",
);
const IDLE_POWER: Key = key(
    "idle_power",
    Quantity(Unit::Power),
    Is("0"),
    "power of each unit or core at any other time",
    "\"2 W\"",
);

const TOP: &[Key] = &[
    key("model", Word(&["pipeline"]), Required, "the model that the file is a scenario of", "\"pipeline\""),
    SEED,
    DURATION,
    WARM_UP,
    RUNS,
    key(
        "batches",
        Whole(Unit::None, 10, 1_000),
        Means("no intervals from one run"),
        "number of equal parts into which the time that counts is divided for confidence intervals from one run (batch means); \
         20 to 40 are usual, and a warning says that they are too short",
        "20",
    ),
    key(
        "series",
        Positive(Unit::Time),
        Means("no time series"),
        "length of the intervals of a time series: packets in each stage, losses and delay in each; at most 100000",
        "\"10 ms\"",
    ),
    key(
        "overflow",
        Word(&["drop", "block", "block-after-service"]),
        Is("\"drop\""),
        "fate of a packet for which the next stage has no room. `drop`: it is lost after its service. `block` (blocking \
         before service, the rule of the Markov chain): its service does not begin before there is room. \
         `block-after-service` (manufacturing blocking): it is served and then keeps its unit of the stage until there is \
         room; simulated only, and the chain that `solve` solves is that of `block`. With both only the first stage loses \
         packets",
        "\"block\"",
    ),
    key(
        "service",
        Word(&["constant", "exponential"]),
        Is("\"constant\""),
        "distribution of the service times of stages that have no `distribution` of their own; a file with exponential \
         times throughout and `overflow = \"block\"` is simulated by the rules of the Markov chain",
        "\"exponential\"",
    ),
    key(
        "packet_bytes",
        Whole(Unit::Bytes, 0, BYTES_MAX),
        Is("0"),
        "size of packets that are not from a trace, for stages with a `rate`",
        "1500",
    ),
];

const ARRIVALS: &[Key] = &[
    key(
        "mean",
        Positive(Unit::Time),
        Means("required, unless `packet_rate` or a trace is given"),
        "mean time between packets",
        "\"70 us\"",
    ),
    key(
        "packet_rate",
        Positive(Unit::PacketRate),
        Means("`mean` applies, or the times of the trace"),
        "mean rate of packets, in place of `mean`; with a trace, the rate at which its packets are sent, evenly spaced",
        "\"14 kpacket/s\"",
    ),
    key(
        "distribution",
        Word(&["exponential", "constant", "trace"]),
        Means("`trace` with `path`, otherwise `exponential`"),
        "distribution of the times between packets",
        "\"constant\"",
    ),
    key(
        "path",
        Path,
        Means("required with `trace`"),
        "with `trace`: CSV file with the header `size[,time]`, or a packet capture",
        "\"trace.csv\"",
    ),
    key(
        "packets",
        Whole(Unit::None, 1, u64::MAX),
        Means("all"),
        "with `trace`: maximum number of packets taken from it",
        "1000",
    ),
    key(
        "rate",
        Positive(Unit::Rate),
        Means("the times of the trace"),
        "with `trace`: sends its packets back to back at this rate, in place of its times",
        "\"1 Gbit/s\"",
    ),
];

const SERVER: &[Key] = &[
    key(
        "name",
        Text,
        Means("`server0`, `server1`, ... by position"),
        "name in the figures, and for stages to refer to",
        "\"core\"",
    ),
    key(
        "cores",
        Whole(Unit::None, 1, 1_024),
        Is("1"),
        "number of cores; a stage can run on all of them at once",
        "2",
    ),
    key(
        "discipline",
        Word(&["busy-waiting", "interrupt-driven"]),
        Required,
        "how stages share the server; `busy-waiting`: a packet holds a context from the first of the server's stages to the \
         last; `interrupt-driven`: stages take turns",
        "\"interrupt-driven\"",
    ),
    key(
        "run_length",
        Positive(Unit::Time),
        Is("\"100 us\""),
        "interrupt-driven: maximum time that a stage runs while another is ready",
        "\"500 ms\"",
    ),
    key(
        "switch_delay",
        TIME,
        Is("0"),
        "time that a core takes to change from one stage, or busy-waiting from one context, to another",
        "\"2 us\"",
    ),
    key(
        "distribution",
        Word(&["constant", "exponential"]),
        Is("\"constant\""),
        "distribution of `run_length` and `switch_delay`",
        "\"exponential\"",
    ),
    key(
        "run_ends",
        Word(&["packet", "slice"]),
        Is("\"packet\""),
        "interrupt-driven: end of a run; `packet`: with the packet in service, or at `run_length` if another stage is ready; \
         `slice`: when the stage has no work, or at `run_length` if another stage is ready",
        "\"slice\"",
    ),
    key(
        "grant",
        Word(&["first-asked", "round-robin", "priority", "preemptive-priority"]),
        Is("\"first-asked\""),
        "interrupt-driven: which ready stage runs next: the one that has been ready longest, the next in the order of the \
         chain, the one of the largest `priority`, or that one at once, interrupting a stage of smaller priority",
        "\"round-robin\"",
    ),
    key(
        "contexts",
        Whole(Unit::None, 1, WORKERS),
        Is("1"),
        "busy-waiting: packets that can hold the server at once (hardware threads)",
        "4",
    ),
    MTBF,
    MTTR,
    BREAKDOWNS,
    ACTIVE_POWER,
    IDLE_POWER,
];

const STAGE: &[Key] = &[
    key(
        "name",
        Text,
        Means("`stage0`, `stage1`, ... by position"),
        "name in the figures; the random stream of the stage depends on it",
        "\"receive\"",
    ),
    key(
        "server",
        Text,
        Means("units of its own"),
        "name of the server whose cores work for this stage",
        "\"core\"",
    ),
    key(
        "next",
        Either("the name of a stage, or a list of branches", &[Text]),
        Means("the next stage of the file"),
        "name of the stage that packets go to next; if all `next` of a file are names, every packet passes every stage once. \
         A list, `[[stage.next]]`, draws the way of each packet: the first stage of the file is where packets begin, they may \
         come back to a stage, and what lacks to 1 in the sum of the shares leaves the pipeline; `next = []`: all leave",
        "\"transmit\"",
    ),
    key(
        "time",
        TIME,
        Means("required, unless `times`, `rate` or `scale` is given"),
        "service time of a packet; its mean, if it is drawn",
        "\"32 us\"",
    ),
    key(
        "buffer",
        Whole(Unit::None, 1, COUNT),
        Required,
        "maximum number of packets in the stage, including those in service: 101 is one in service and 100 that wait",
        "101",
    ),
    key(
        "distribution",
        Word(super::laws::WORDS),
        Means(
            "by the keys that are given: `rate`, `empirical` with `times`, `hyperexponential` with `times` and `shares`, \
             `erlang` with `phases`, otherwise `service`",
        ),
        "distribution of the service time. `uniform` to `triang` are those of scipy.stats, with its parameters; \
         `hyperexponential` is one of several exponentials",
        "\"exponential\"",
    ),
    key(
        "scale",
        TIME,
        Means("such that the mean is `time`"),
        "with `uniform` to `triang`: scipy's `scale`, in place of `time`",
        "\"10 us\"",
    ),
    key("loc", TIME, Is("0"), "with `uniform` to `triang`: scipy's `loc`, the least time", "\"5 us\""),
    key(
        "a",
        Positive(Unit::None),
        Means("required with `gamma`"),
        "with distribution `gamma`: its shape",
        "2.5",
    ),
    key(
        "s",
        Positive(Unit::None),
        Means("required with `lognorm`"),
        "with distribution `lognorm`: standard deviation of the logarithm",
        "0.5",
    ),
    key(
        "c",
        Number(0.0, f64::MAX),
        Means("required with `weibull_min` and `triang`"),
        "with distribution `weibull_min`: its shape, above 0; with `triang`: where its top is, from 0 to 1",
        "1.5",
    ),
    key(
        "b",
        Positive(Unit::None),
        Means("required with `pareto`"),
        "with distribution `pareto`: its exponent, above 1; up to 2 its variance is infinite",
        "3",
    ),
    key(
        "shares",
        List(&Number(0.0, 1.0)),
        Means("required with `hyperexponential`"),
        "with distribution `hyperexponential`: probability of each of `times`; their sum is 1",
        "[0.9, 0.1]",
    ),
    key(
        "phases",
        Whole(Unit::None, 1, 10_000),
        Means("required with `erlang`"),
        "with distribution `erlang`: number of phases; more phases vary less",
        "4",
    ),
    key(
        "times",
        Either("a list of times", &[List(&TIME)]),
        Means("required with `empirical` and `hyperexponential`"),
        "with distribution `empirical`: measured service times, drawn with equal probability; with `hyperexponential`: the \
         means of the exponentials",
        "[\"30 us\", \"35 us\"]",
    ),
    key(
        "rate",
        Positive(Unit::Rate),
        Means("required with `rate`"),
        "with distribution `rate`: the service time is that of the packet's bytes and `overhead_bytes` at this rate",
        "\"1 Gbit/s\"",
    ),
    key(
        "overhead_bytes",
        Whole(Unit::Bytes, 0, BYTES_MAX),
        Is("0"),
        "with distribution `rate`: bytes added to each packet",
        "38",
    ),
    key(
        "units",
        Whole(Unit::None, 1, WORKERS),
        Is("1"),
        "number of the stage's own units, which work in parallel; not with `server`",
        "2",
    ),
    key(
        "batch",
        Whole(Unit::None, 1, COUNT),
        Is("1"),
        "maximum number of packets served together; their times add up, and `setup` is spent once",
        "32",
    ),
    key(
        "batch_min",
        Whole(Unit::None, 1, COUNT),
        Is("1"),
        "number of packets that must wait for a service to begin, at most `batch`; fewer are served when the first of them has \
         waited for `batch_timeout`",
        "8",
    ),
    key(
        "batch_timeout",
        TIME,
        Means("required with `batch_min` above 1"),
        "longest time that the first packet of a service waits for others to come",
        "\"100 us\"",
    ),
    key("setup", TIME, Is("0"), "time of each service besides that of its packets", "\"2 us\""),
    key(
        "priority",
        Whole(Unit::None, 0, COUNT),
        Is("0"),
        "priority on a server that grants by priority; larger is served first",
        "1",
    ),
    MTBF,
    MTTR,
    BREAKDOWNS,
    ACTIVE_POWER,
    IDLE_POWER,
];

const BRANCH: &[Key] = &[
    key(
        "stage",
        Text,
        Required,
        "name of the stage that packets go to, also this stage itself",
        "\"crypto\"",
    ),
    key(
        "share",
        Number(0.0, 1.0),
        Required,
        "probability that a packet takes this branch, above 0; a stage with branches draws from a random stream of its own",
        "0.7",
    ),
];

const CARD: &[Key] = &[
    key(
        "model",
        Word(&["inline-card"]),
        Required,
        "the model that the file is a scenario of",
        "\"inline-card\"",
    ),
    SEED,
    DURATION,
    WARM_UP,
    RUNS,
    key(
        "payload",
        Whole(Unit::Bytes, 1, BYTES_MAX),
        Required,
        "bytes of each packet that count as carried",
        "8942",
    ),
    key(
        "headers",
        Whole(Unit::Bytes, 0, BYTES_MAX),
        Is("0"),
        "bytes besides the payload that cross every resource with each packet",
        "58",
    ),
    key("offered", Positive(Unit::Rate), Required, "offered load of payload", "\"893 Mbit/s\""),
    key(
        "distribution",
        Word(&["constant", "exponential"]),
        Is("\"constant\""),
        "distribution of the times between packets",
        "\"exponential\"",
    ),
    key(
        "memory_transfers",
        Number(0.0, f64::MAX),
        Means("`crossings` of the resource `memory` applies"),
        "number of times that each packet crosses the resource named `memory`",
        "6",
    ),
    key(
        "buffer",
        Whole(Unit::None, 1, COUNT),
        Is("64"),
        "for `forebay simulate`: maximum number of packets in each resource, including the one in service",
        "128",
    ),
    key(
        "transfer_packets",
        Whole(Unit::None, 1, COUNT),
        Is("1"),
        "number of packets that the card cuts out of each transfer of the host, or joins to one where it receives; resources with \
         `takes = \"transfer\"` have `headers` and their overheads once for each transfer, and wait for all of its packets",
        "7",
    ),
    key(
        "direction",
        Word(&["send", "receive"]),
        Is("\"send\""),
        "`send`: packets cross the resources in the order of the file; `receive`: in the reverse order. For `forebay simulate`; \
         limits do not depend on it",
        "\"receive\"",
    ),
];

const RESOURCE: &[Key] = &[
    key(
        "name",
        Text,
        Means("`resource0`, `resource1`, ... by position"),
        "name in the figures; `memory` is the one that `memory_transfers` refers to",
        "\"mac\"",
    ),
    key(
        "rate",
        Positive(Unit::Rate),
        Means("required, unless `seen` and `busy` are given"),
        "rate of the resource",
        "\"1 Gbit/s\"",
    ),
    key(
        "crossings",
        Number(0.0, f64::MAX),
        Means("1; of `memory`, `memory_transfers`"),
        "number of times that each packet crosses the resource",
        "2",
    ),
    key(
        "overhead_bytes",
        Whole(Unit::Bytes, 0, BYTES_MAX),
        Is("0"),
        "bytes added to each packet at this resource, besides `headers`, such as framing",
        "38",
    ),
    key("overhead", TIME, Is("0"), "time of each crossing besides that of the bytes", "\"1 us\""),
    key(
        "seen",
        Positive(Unit::Rate),
        Means("`rate` applies"),
        "measured payload rate at which the resource was busy for the share `busy`; in place of `rate` and its overheads",
        "\"893 Mbit/s\"",
    ),
    key(
        "busy",
        Positive(Unit::None),
        Means("required with `seen`"),
        "share of its time that the resource was busy at the rate `seen`",
        "0.38",
    ),
    key(
        "takes",
        Word(&["packet", "transfer"]),
        Is("\"packet\""),
        "what crosses the resource: packets, or whole transfers of `transfer_packets`",
        "\"transfer\"",
    ),
    key(
        "units",
        Whole(Unit::None, 1, 4_096),
        Is("1"),
        "number of equal units of this rate, which work on different packets in parallel",
        "2",
    ),
    key(
        "depth",
        Whole(Unit::None, 1, 4_096),
        Means("one stream fills the core"),
        "for a core with a pipeline in a chained mode, such as encryption with CBC: number of blocks that its pipeline holds. \
         One stream fills one place of it, so that its rate is `rate` / `depth`",
        "2",
    ),
    key(
        "streams",
        Whole(Unit::None, 1, 4_096),
        Is("1"),
        "with `depth`: number of independent streams (SAs) whose packets are interleaved; up to `depth` of them are encrypted at a time",
        "2",
    ),
    key(
        "interrupt",
        TIME,
        Means("no interrupts"),
        "time of each interrupt, besides that of the packets",
        "\"5 us\"",
    ),
    key(
        "interrupt_packets",
        Whole(Unit::None, 1, WORKERS),
        Is("1"),
        "with `interrupt`: number of packets that an interrupt waits for and is for (interrupt mitigation), at most `buffer`",
        "8",
    ),
    key(
        "interrupt_timeout",
        TIME,
        Means("until there are enough packets"),
        "with `interrupt`: longest time that the first packet waits for its interrupt",
        "\"100 us\"",
    ),
];
