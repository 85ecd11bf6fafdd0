"""Small packets: bundling those of one SA

Taddeo, Ferrante and Piuri, "Scheduling Small Packets in IPSec-based Systems", [S]: counterparts of its figures and
of its table, and a test of each claim at the point that its sentence names. Packets of one SA within a sliding
window of W packets go to a processor as one job (a multi-packet), which pays one setup time and one bus address
phase.

One card of about 230 Mbit/s and a CPU whose t_init is 3 times and whose t_block is 1 to 7 times the card's carry
500,000 packets at 1 Gbit/s. The paper does not print t_init (1 us here) nor the SAs of its trace, one for each
destination: 26 equiprobable SAs are assumed for the trace, because they give the printed 2.57 packets per
multi-packet. Latency counts from the moment at which a packet enters the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import correlation

from forebay.placement import Candidate, Job, Placement
from forebay.study import Claim, Parameter, Study, StudyRun, StudyScenario, digits, join, time

PATTERNS = ["exponential", "uniform", "0 B", "24 B", "472 B", "984 B", "trace"]
"""The paper's seven patterns, in the order of its section IV-A."""
MEAN = [471, 976, 0, 24, 472, 984, 256]
"""Their mean payloads in bytes: table I, and the fixed sizes."""
FIXED = [2, 3, 4, 5]
MIXED = [0, 1, 6]
TRACE = 6
TRACE_BINS = [[0, 162, 5010], [163, 517, 4285], [518, 1460, 705]]
"""Sizes with the trace's mean, median and deviation."""
TRACE_SAS = 26
RATIO = [1, 3, 5, 7]
"""The paper's values of T_enc-ratio."""
FIGURES = 3
"""T_enc-ratio of figures 4 to 6."""
WINDOWS = [10, 30]
BOUNDS = [64, 250, 500, 1000, 1500, 3000]
"""Bounds on a multi-packet in bytes."""
SAS = [1, 2, 5, 10, 20, 50, 100, 200]
INIT = [0, 0.25, 0.5, 1, 2, 4, 8]
"""t_init of the card, us."""
OFFERED = [50, 100, 150, 200, 250, 300, 400]
"""Offered loads below and above what is carried, Mbit/s."""
SAVED = -0.1
"""A saving of 0.1 %: runs with other seeds differ by less."""
STEP = 0.2
"""A step of 0.2 % upwards counts as none."""
SHORT = 50_000
"""Packets of the runs whose single jobs are looked at."""


@dataclass
class Bench:
    """The study while it runs: its claims by name, and the runs that several parts use."""

    s: Study
    hosts: list[StudyScenario]
    claims: dict[str, Claim]
    runs: dict[tuple[int, int], list[StudyRun]] = field(default_factory=dict)
    """By window and T_enc-ratio, one for each pattern."""

    def measured(self, name: str, value: float | Sequence[float], found: str, why: str = "") -> None:
        self.claims[name].measured(value, found=found, why=why)

    def at(self, window: int, ratio: int = FIGURES) -> list[StudyRun]:
        """The runs of all patterns with a window."""
        if (window, ratio) not in self.runs:
            hosts = [
                one.set("scheduler.window", window).set("processor.cpu.block_ratio", ratio)
                for one in self.hosts
            ]
            self.runs[window, ratio] = self.s.run(hosts)
        return self.runs[window, ratio]

    def by_ratio(self, pattern: int, window: int = 30) -> list[StudyRun]:
        """The runs of a pattern over T_enc-ratio."""
        return [self.at(window, ratio)[pattern] for ratio in RATIO]


def study(s: Study) -> None:
    claims = {**figure_claims(s), **usage_claims(s), **latency_claims(s), **observations(s)}
    host = s.scenario("host.toml")
    b = Bench(s, patterns(host), claims)
    model_and_patterns(b, host)
    windows(b)
    cpu_by_ratio(b)
    relative_figures(b)
    usage(b)
    throughput(b)
    latency(b)
    latency_by_ratio(b)
    jobs_of_processors(b)
    bounds(b)
    security_associations(b)
    setup_time(b, host)
    below_overload(b)


def patterns(host: StudyScenario) -> list[StudyScenario]:
    """The host with each of the paper's patterns."""
    common = {"packets": 500_000, "rate": "1 Gbit/s", "overhead": 40, "sas": 100}
    hosts = [
        host.set("traffic", {"source": "exponential", "min": 20, "max": 7065, "mean": 471, **common}),
        host.set("traffic", {"source": "uniform", "min": 0, "max": 1960, **common}),
    ]
    hosts += [host.set("traffic", {"source": "fixed", "value": size, **common}) for size in (0, 24, 472, 984)]
    return [*hosts, host.set("traffic.bins", TRACE_BINS).set("traffic.sas", TRACE_SAS)]


# ---- Claims


def common(s: Study, window: Sequence[int] | int, ratio: Sequence[int] | int = FIGURES) -> list[Parameter]:
    """The parameters of the overloaded host with all seven patterns."""
    return [
        s.printed("traffic.rate", "1 Gbit/s", "section IV-A"),
        s.printed("traffic.packets", 500_000, "section IV-A"),
        s.printed("traffic.source", PATTERNS, "table I, and fixed payloads in section IV-A"),
        s.printed("traffic.sas", 100, "section IV-A: random distribution of 100 SAs"),
        s.assumed("traffic.sas of the trace", TRACE_SAS, "the SAs of the trace are not printed; 26 "
                                                         "equiprobable ones give the printed 2.57 packets "
                                                         "per multi-packet"),
        s.assumed("sizes of the trace", "histogram", "the trace is not published; the histogram has the "
                                                     "mean, median and deviation of table I, and sizes in "
                                                     "independent order"),
        s.printed("scheduler.window", window if isinstance(window, int) else list(window), "section IV-B"),
        s.printed("processor.cpu.init_ratio", 3, "section IV-B"),
        s.printed("processor.cpu.block_ratio", ratio if isinstance(ratio, int) else list(ratio), "section IV-B"),
        s.assumed("processor.card.init", "1 us", "t_init is not printed"),
        s.assumed("processor.card.block", "440 ns", "not printed here; of the paper [H], by the same "
                                                    "authors, whose card has the same 230 Mbit/s"),
        s.assumed("queues", 1000, "not printed here; as in [H]"),
    ]  # fmt: skip


def claim_of(
    s: Study, name: str, says: str, quote: str, where: str, parameters: list[Parameter],
    band: tuple[float | None, float | None, str], source: str,
) -> Claim:  # fmt: skip
    return s.claim(
        name, says=says, quote=quote, where=f"[S] section IV-B{where}", parameters=parameters,
        band=s.band(*band, source),
    )  # fmt: skip


def figure_claims(s: Study) -> dict[str, Claim]:
    """Packets per job, figures 3 and 5."""
    wide, both, over = common(s, 30), common(s, WINDOWS), common(s, 30, RATIO)
    no_rise = "the sentence allows no rise; 0.2 % is the difference between seeds"
    claims = [
        claim_of(s, "bundle-1.33", "With W = 30 and 100 equiprobable SAs a job has 1.33 packets on average: "
                                   "so we read \"multi-packets per window\".",
                 "2.57 for the real trace and 1.33 for all other patterns", "", wide[:4] + wide[6:7],
                 (-0.005, 0.005, "packets above 1.33"), "printed 1.33, rounded to two places"),
        claim_of(s, "cpu-slower-less", "In every pattern the CPU has fewer packets the larger T_enc-ratio "
                                       "is.",
                 "CPU usage decreases for increasing values of Tenc-ratio", ", figure 3", over,
                 (None, STEP, "% per step"), no_rise),
        claim_of(s, "fixed-faster", "From T_enc-ratio 1 to 7 the CPU's share falls by a larger factor for "
                                    "each of the four fixed sizes than for each of the other patterns.",
                 "it does it faster for fix dimension patterns", ", figure 3", over, (None, 1, "times"),
                 "the slowest fixed pattern by the fastest other one: below 1 all fixed ones are faster"),
        claim_of(s, "throughput-up", "With W = 10 and with W = 30 throughput is higher in every pattern.",
                 "The sliding window system improves the overall system throughput", ", figure 5", both,
                 (0.1, None, "% more"), "no number is printed; 0.1 % is above the differences between "
                                         "seeds"),
        claim_of(s, "small-gain-most", "The gain falls with the payload over 0, 24, 472 and 984 bytes.",
                 "The greater throughput increment is for small packets.", ", figure 5", both,
                 (0.1, None, "percentage points from size to size"),
                 "no number is printed; 0.1 % is above the differences between seeds"),
        claim_of(s, "cpu-slower-throughput", "In every pattern throughput is lower the larger T_enc-ratio "
                                             "is.",
                 "throughput decreases for increasing values of the Tenc-ratio", "", over,
                 (None, STEP, "% per step"), no_rise),
        claim_of(s, "capability-500", "The highest throughput, with the fastest CPU, is about 500 Mbit/s.",
                 "processing capability is of 500Mbit/s", "", common(s, [1, 10, 30], 1), (450, 550, "Mbit/s"),
                 "printed 500, a tenth, for the card is of roughly 230 Mbit/s"),
        claim_of(s, "few-of-an-sa", "With 10 SAs instead of 100 the gain of W = 30 is more than twice as "
                                    "large.",
                 "in average very few packets were identified to be related to the same SAs inside the "
                 "sliding windows",
                 "", wide, (2, None, "times"), "no number is printed; the main reason makes most of the "
                                               "difference"),
    ]  # fmt: skip
    return {one.id: one for one in claims}


def usage_claims(s: Study) -> dict[str, Claim]:
    """Figure 4, and which jobs go to the CPU."""
    both, slow = common(s, WINDOWS), common(s, 30, RATIO[1:])
    save = "Our algorithm allows to save CPU usage by dispatching merged packets to the accelerator."
    saved = "no number is printed; 0.1 % is above the differences between seeds"
    claims = [
        claim_of(s, "cpu-packets-down", "With W = 10 and with W = 30 the CPU has fewer packets in every "
                                        "pattern. Figure 3 measures the CPU's load "
                                        "so.", save, ", figure 4", both, (None, SAVED, "%"), saved),
        claim_of(s, "cpu-time-down", "With W = 10 and with W = 30 the CPU is busy for a smaller part of the "
                                     "time in every "
                                     "pattern.", save, ", figure 4", both, (None, SAVED, "%"), saved),
        claim_of(s, "merged-to-card", "A multi-packet goes to the card more often than a single packet does.",
                 "the scheduler always tries to assign merged packets to the accelerator", "", slow,
                 (1.05, None, "times"), "no number is printed; a twentieth more often in every pattern"),
        claim_of(s, "singles-on-cpu", "Most of the CPU's jobs are single packets, in every pattern.",
                 "Only single small packets are usually sent to the "
                 "CPU", "", slow, (50, 100, "% of its jobs"),
                 "no number is printed; usually: more often than not"),
    ]  # fmt: skip
    return {one.id: one for one in claims}


def latency_claims(s: Study) -> dict[str, Claim]:
    """Figure 6."""
    wide, both = common(s, 30), common(s, WINDOWS)
    entry = s.assumed("begin of the latency", "the packet enters the window", "section IV-B counts from "
                                                                              "when a packet is scheduled "
                                                                              "and explains the increase by "
                                                                              "the time to fill the window, "
                                                                              "which is before")  # fmt: skip
    bounded = [*wide, s.assumed("scheduler.max_bytes", BOUNDS, "the paper does not print a bound")]
    claims = [
        claim_of(s, "latency-up", "With W = 10 and with W = 30 latency, the wait in the window included, is "
                                  "higher in every pattern.",
                 "Average processing latency increases due to the time that is needed to fill the sliding "
                 "window.",
                 ", figure 6", [*both, entry], (1.01, None, "times"), "no number is printed; 1 %"),
        claim_of(s, "latency-large", "Over the seven patterns latency grows more the larger the mean "
                                     "payload is.",
                 "is higher when traces with big average sizes of the packets are considered", ", figure 6",
                 [*both, entry], (0.8, 1, "rank correlation"),
                 "no number is printed; a rank correlation of 0.8 is usually called strong"),
        claim_of(s, "latency-ratio", "In every pattern, latency with W = 30 at T_enc-ratio 3, 5 and 7 is no "
                                     "more than that at 1.",
                 "the latency does not grow with increasing values of "
                 "Tenc-ratio", "", [*common(s, 30, RATIO), entry],
                 (None, 1.05, "times"), "printed: no growth; a twentieth, which a figure does not show"),
        claim_of(s, "latency-bound", "For every pattern there is a bound on the bytes of a multi-packet "
                                     "with which latency is that without a window.",
                 "The problem with latency increase can be solved by introducing an upper bound on time or "
                 "on total number of bytes for the sliding "
                 "window.", "", [*bounded, entry], (None, 1.05, "times"),
                 "printed: solved; a twentieth, as for latency-ratio"),
    ]  # fmt: skip
    return {one.id: one for one in claims}


def observations(s: Study) -> dict[str, Claim]:
    """What no sentence of the paper says."""
    claims = [
        s.observation(
            "trace-2.57", says="26 equiprobable SAs give the 2.57 packets per multi-packet that the paper "
                               "prints for its trace. The number of SAs is chosen by this.",
            band=s.band(-0.005, 0.005, "packets above 2.57", "printed 2.57, rounded to two places"),
        ),
        s.observation(
            "cpu-seconds", says="For the same 500,000 packets the CPU computes for a shorter time with a "
                                "window.",
            band=s.band(None, SAVED, "%", "as for cpu-time-down"), parameters=common(s, WINDOWS),
        ),
        s.observation(
            "window-share", says="The wait in the window is less than a tenth of the latency that a window "
                                 "adds; the rest is that a full queue holds as many jobs, which are longer.",
            band=s.band(0, 0.1, "of the increase", "less than a tenth"), parameters=common(s, WINDOWS),
        ),
    ]  # fmt: skip
    return {one.id: one for one in claims}


# ---- Helpers


def ratios(after: Sequence[float], before: Sequence[float]) -> list[float]:
    return [x / y for x, y in zip(after, before)]


def share(run: StudyRun) -> float:
    """The CPU's share of the packets, per cent."""
    return 100 * run["cpu.packets"] / run["packets"]


def in_window(run: StudyRun, window: int) -> float:
    """Mean wait in the window, seconds. Under overload the window is always full: Little's law."""
    return window * run["elapsed_s"] / run["packets"]


def latency_of(run: StudyRun, window: int) -> float:
    """Mean latency from entering the window, seconds, under overload."""
    return run["processing_latency.mean_s"] + in_window(run, window)


def added(b: Bench, window: int, ratio: int = FIGURES) -> list[float]:
    """Latency with a window by that without, for each pattern."""
    with_it = [latency_of(run, window) for run in b.at(window, ratio)]
    return ratios(with_it, [latency_of(run, 1) for run in b.at(1, ratio)])


def percents(after: Sequence[float], before: Sequence[float]) -> list[float]:
    """Changes in per cent."""
    return [100 * (ratio - 1) for ratio in ratios(after, before)]


def changes(percents: Sequence[float]) -> str:
    """Changes in per cent as text."""
    return ", ".join(f"{value:+.2f} %" for value in percents)


def ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [float(ordered.index(value)) for value in values]


def of_bins(bins: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Mean, median and standard deviation of a histogram."""
    weight = sum(one[2] for one in bins)
    middles = [(low + high) / 2 for low, high, _ in bins]
    mean = sum(one[2] * middle for one, middle in zip(bins, middles)) / weight
    square = (
        sum(w * (m * m + ((high - low + 1) ** 2 - 1) / 12) for (low, high, w), m in zip(bins, middles))
        / weight
    )
    below, median = 0.0, 0.0
    for low, high, one in bins:
        if below < weight / 2 <= below + one:
            median = low + (weight / 2 - below) / one * (high - low)
        below += one
    return mean, median, sqrt(square - mean * mean)


# ---- The page


def model_and_patterns(b: Bench, host: StudyScenario) -> None:
    """Figures 1 and 2, and table I."""
    s = b.s
    s.section("The model and the patterns")
    s.table(
        "Objects of the model",
        ["paper", "scenario"],
        [
            ["input queue with the sliding window (figures 1 and 2)", "scheduler.window = W"],
            ["reference: SA of the first packet in the window (figure "
             "2)", "traffic.sas: SAs drawn with equal probability"],
            ["multi-packet: packets of that SA in the window (figure "
             "2)", "one job: one t_init, one address phase"],
            ["scheduler (figure 1)", "[scheduler], policy finish-time"],
            ["CPU and accelerator with a queue each (figure 1)", "[[processor]] cpu and card, queue"],
            ["bus (figure 1)", "[bus]"],
        ],
        counterpart="[S] figure 1; [S] figure 2",
    )  # fmt: skip
    uniform, like = of_bins([[0, 1960, 1]]), of_bins(TRACE_BINS)
    exponential = (471.0, 20 + 451 * 0.6931, 451.0)
    s.table(
        "Payloads in bytes",
        ["pattern", "range", "mean", "printed", "median", "printed", "deviation", "printed"],
        [
            ["exponential", "20 to 7,065", exponential[0], 471, exponential[1], 326, exponential[2], 470],
            ["uniform", "0 to 1,960", uniform[0], 976, uniform[1], "not printed", uniform[2], 565],
            ["trace", "0 to 1,460", like[0], 256, like[1], 162, like[2], 259],
        ],
        counterpart="[S] table I",
    )


def windows(b: Bench) -> None:
    """Packets per job."""
    s, wide, plain = b.s, b.at(30), b.at(1)
    s.section("Packets per multi-packet")
    counts = s.figures(wide, "packets_per_job")
    s.plot("Packets per multi-packet, W = 30", "payload", "packets", [s.series("W = 30", PATTERNS, counts)],
           paper=[s.paper("printed: 1.33 and 2.57", PATTERNS, [1.33] * 6 + [2.57], "section IV-B")],
           note="The number of SAs of the trace is chosen so that its bar meets the printed value.")  # fmt: skip
    rows = [[name, run["throughput_bps"] / 1e6, 100 * run["cpu.load"], share(run), ten["packets_per_job"], count]
            for name, run, ten, count in zip(PATTERNS, plain, b.at(10), counts)]  # fmt: skip
    s.table("Without a window, and packets per multi-packet with it",
            ["payload", "Mbit/s", "CPU load (%)", "packets on the CPU (%)", "W = 10", "W = 30"], rows)  # fmt: skip
    b.measured(
        "bundle-1.33", [count - 1.33 for count in counts[:TRACE]],
        f"{min(counts[:TRACE]):.3f} to {max(counts[:TRACE]):.3f} packets.",
        "The reference meets 29 / 100 others of its SA among fresh packets, which would give 1.29. Packets "
        "that stay in the window are not of the last references' SAs, so that the next reference meets "
        "more.",
    )  # fmt: skip
    b.measured("trace-2.57", counts[TRACE] - 2.57, f"{counts[TRACE]:.3f} packets with {TRACE_SAS} SAs.")


def cpu_by_ratio(b: Bench) -> None:
    """Figure 3."""
    s = b.s
    s.section("The CPU's packets by its speed (figure 3)")
    shares = [[share(run) for run in b.by_ratio(at)] for at in range(len(PATTERNS))]
    rates = [[run["throughput_bps"] / 1e6 for run in b.by_ratio(at)] for at in range(len(PATTERNS))]
    s.plot("Packets processed by the CPU, W = 30", "T_enc-ratio", "% of the packets",
           [s.series(name, RATIO, row) for name, row in zip(PATTERNS, shares)], counterpart="[S] figure 3")  # fmt: skip
    s.plot("Throughput, W = 30", "T_enc-ratio", "throughput (Mbit/s)",
           [s.series(name, RATIO, row) for name, row in zip(PATTERNS, rates)],
           paper=[s.paper("printed: 500", [1], [500], "section IV-B")])  # fmt: skip
    b.measured(
        "cpu-slower-less", [step for row in shares for step in percents(row[1:], row[:-1])],
        f"Trace: {join(shares[TRACE])} %; 472 B: {join(shares[4])} % at T_enc-ratio {join(RATIO)}.",
    )  # fmt: skip
    last = [row[-1] / row[0] for row in shares]
    slowest, fastest = max(last[at] for at in FIXED), min(last[at] for at in MIXED)
    b.measured(
        "fixed-faster", slowest / fastest,
        f"The share at T_enc-ratio 7 is {join(last)} times that at 1 for {join(PATTERNS)}: at most "
        f"{digits(slowest)} for the fixed sizes, at least {digits(fastest)} for the others.",
    )  # fmt: skip
    b.measured(
        "cpu-slower-throughput", [step for row in rates for step in percents(row[1:], row[:-1])],
        f"Trace: {join(rates[TRACE])} Mbit/s; 472 B: {join(rates[4])} Mbit/s at T_enc-ratio {join(RATIO)}.",
    )  # fmt: skip
    best = max(run["throughput_bps"] / 1e6 for window in (1, *WINDOWS) for run in b.at(window, 1))
    b.measured("capability-500", best, f"{digits(best)} Mbit/s at T_enc-ratio 1.")


def bars(b: Bench, title: str, path: str, counterpart: str | None, note: str = "") -> None:
    """A figure relative to the host without a window, by pattern."""
    plain = b.s.figures(b.at(1), path)
    columns = [b.s.series(f"W = {window}", PATTERNS, ratios(b.s.figures(b.at(window), path), plain))
               for window in WINDOWS]  # fmt: skip
    b.s.plot(title, "payload", "times that without a window", columns, counterpart=counterpart, note=note)


def relative_figures(b: Bench) -> None:
    """Figures 4 to 6."""
    s = b.s
    s.section("What a window changes (figures 4 to 6)")
    s.text("""All values are relative to the same host without a window; T_init-ratio and T_enc-ratio are
        3. Figure 4 of the paper shows the "relative CPU usage", and figure 3 measures the CPU by packets.
        Here it is shown by packets, by time for the same packets, and by the part of the time in which the
        CPU is busy.""")
    bars(b, "CPU usage: packets on the CPU", "cpu.packets", "[S] figure 4")
    seconds = [ratios(cpu_seconds(b.at(window)), cpu_seconds(b.at(1))) for window in WINDOWS]
    s.plot("CPU usage: time for the 500,000 packets", "payload", "times that without a window",
           [s.series(f"W = {window}", PATTERNS, row) for window, row in zip(WINDOWS, seconds)])  # fmt: skip
    bars(
        b,
        "CPU usage: part of the time",
        "cpu.load",
        None,
        "Under overload there is always a packet for the CPU.",
    )
    bars(b, "Throughput", "throughput_bps", "[S] figure 5")
    s.plot("Mean latency, the wait in the window included", "payload", "times that without a window",
           [s.series(f"W = {window}", PATTERNS, added(b, window)) for window in WINDOWS],
           counterpart="[S] figure 6",
           note="From entering the window to completion. The trace has more packets per multi-packet.")  # fmt: skip
    bars(b, "Mean latency from the scheduler's choice", "processing_latency.mean_s", None)
    bars(b, "Mean latency from arrival", "total_latency.mean_s", None,
         "Under overload it follows the throughput, because packets wait in an input without limit.")  # fmt: skip


def cpu_seconds(runs: Sequence[StudyRun]) -> list[float]:
    """Time in which the CPU computes."""
    return [run["cpu.load"] * run["elapsed_s"] for run in runs]


def usage(b: Bench) -> None:
    """The CPU by packets and by time."""
    plain = b.at(1)
    by_packets = {
        w: percents([r["cpu.packets"] for r in b.at(w)], [r["cpu.packets"] for r in plain]) for w in WINDOWS
    }
    by_time = {w: percents([r["cpu.load"] for r in b.at(w)], [r["cpu.load"] for r in plain]) for w in WINDOWS}
    seconds = {w: percents(cpu_seconds(b.at(w)), cpu_seconds(plain)) for w in WINDOWS}
    words = {name: " and ".join(f"{changes(rows[w])} with W = {w}" for w in WINDOWS)
             for name, rows in (("packets", by_packets), ("time", by_time), ("seconds", seconds))}  # fmt: skip
    b.measured("cpu-packets-down", [*by_packets[10], *by_packets[30]],
               f"Packets on the CPU: {words['packets']}, for {join(PATTERNS)}.")  # fmt: skip
    below = b.s.run([b.hosts[at].set("scheduler.window", window).set("traffic.rate", f"{rate} Mbit/s")
                     for at, rate in ((2, 150), (3, 200), (TRACE, 250)) for window in (1, 30)])  # fmt: skip
    loads = [run["cpu.load"] for run in below]
    tried = [f"{name} {digits(loads[2 * at])} and {digits(loads[2 * at + 1])}"
             for at, name in enumerate(("0 B at 150 Mbit/s", "24 B at 200 Mbit/s", "trace at 250 Mbit/s"))]  # fmt: skip
    b.measured(
        "cpu-time-down", [*by_time[10], *by_time[30]],
        f"Part of the time in which the CPU is busy: {words['time']}, for {join(PATTERNS)}.",
        "It cannot fall at the paper's load: 1 Gbit/s are offered and half of it or less is carried, so "
        "that there is always a next packet for the CPU. Tried below overload, load without a window and "
        f"with W = 30: {join(tried)}. For the same packets the CPU computes for a shorter time "
        "(cpu-seconds).",
    )  # fmt: skip
    b.measured("cpu-seconds", [*seconds[10], *seconds[30]],
               f"Time on the CPU: {words['seconds']}, for {join(PATTERNS)}.")  # fmt: skip


def throughput(b: Bench) -> None:
    """Figure 5."""
    plain = [run["throughput_bps"] for run in b.at(1)]
    gain = {window: percents([run["throughput_bps"] for run in b.at(window)], plain) for window in WINDOWS}
    words = " and ".join(f"{changes(gain[window])} with W = {window}" for window in WINDOWS)
    b.measured("throughput-up", [*gain[10], *gain[30]], f"Throughput: {words}, for {join(PATTERNS)}.",
               "t_init and the address phase are paid once for each multi-packet.")  # fmt: skip
    fixed = {window: [row[at] for at in FIXED] for window, row in gain.items()}
    b.measured(
        "small-gain-most", [x - y for row in fixed.values() for x, y in zip(row, row[1:])],
        f"{changes(fixed[10])} with W = 10 and {changes(fixed[30])} with W = 30, for 0, 24, 472, 984 B.",
        "What is saved is the same for every packet; the rest grows with its size.",
    )  # fmt: skip


def latency(b: Bench) -> None:
    """Figure 6."""
    rows = {window: added(b, window) for window in WINDOWS}
    words = " and ".join(f"{join(rows[window])} with W = {window}" for window in WINDOWS)
    chosen = ratios(
        b.s.figures(b.at(30), "processing_latency.mean_s"), b.s.figures(b.at(1), "processing_latency.mean_s")
    )
    b.measured("latency-up", [*rows[10], *rows[30]], f"Latency times {words}, for {join(PATTERNS)}.",
               f"From the scheduler's choice, without the wait in the window, times {join(chosen)} with W = "
               "30.")  # fmt: skip
    parts = []
    for window in WINDOWS:
        for run, plain in zip(b.at(window), b.at(1)):
            more = latency_of(run, window) - latency_of(plain, 1)
            parts.append((in_window(run, window) - in_window(plain, 1)) / more)
    b.measured(
        "window-share", parts, f"{digits(100 * min(parts))} to {digits(100 * max(parts))} % of the increase."
    )
    even = {window: row[:TRACE] for window, row in rows.items()}
    hundred = b.s.run(
        [b.hosts[TRACE].set("traffic.sas", 100).set("scheduler.window", window) for window in (1, 30)]
    )
    like = latency_of(hundred[1], 30) / latency_of(hundred[0], 1)
    order = [correlation(ranks(MEAN), ranks(rows[window])) for window in WINDOWS]
    b.measured(
        "latency-large", order,
        f"Rank correlation {digits(order[0])} with W = 10 and {digits(order[1])} with W = 30. With W = 30 "
        f"latency is {join(rows[30])} times for mean payloads of {join(MEAN)} B.",
        "The trace stands out, because its multi-packets have 2.57 packets instead of 1.33. Tried: without "
        f"it the rank correlation is {digits(correlation(ranks(MEAN[:TRACE]), ranks(even[30])))}, and with "
        f"the trace's sizes and 100 SAs, {digits(like)} times, "
        f"{digits(correlation(ranks(MEAN), ranks([*even[30], like])))}.",
    )  # fmt: skip


def latency_by_ratio(b: Bench) -> None:
    """Latency over T_enc-ratio."""
    s = b.s
    rows = [[latency_of(run, 30) for run in b.by_ratio(at)] for at in range(len(PATTERNS))]
    s.plot("Mean latency by T_enc-ratio, W = 30", "T_enc-ratio", "times that at 1",
           [s.series(name, RATIO, ratios(row, [row[0]] * len(row))) for name, row in zip(PATTERNS, rows)])  # fmt: skip
    most = [max(row[1:]) / row[0] for row in rows]
    buffers = (("processor.card.write_buffer", 1), ("processor.card.prefetch", 1))
    tried = {
        "a write buffer and prefetch of one place": buffers,
        "these buffers and no window": (*buffers, ("scheduler.window", 1)),
        "sizes in runs of 20 packets": (("traffic.run_length", 20),),
        "these runs and buffers": (*buffers, ("traffic.run_length", 20)),
        "queues of 50": (("processor.card.queue", 50), ("processor.cpu.queue", 50)),
    }
    words = []
    for name, sets in tried.items():
        values = [growth(b, at, sets) for at in range(len(PATTERNS))]
        words.append(f"{join(values)} with {name}")
    b.measured(
        "latency-ratio", most,
        f"The highest latency at T_enc-ratio 3, 5 and 7 is {join(most)} times that at 1, for "
        f"{join(PATTERNS)}; for the trace {join(time(one) for one in rows[TRACE])} at {join(RATIO)}.",
        "From 3 to 7 it does not grow, from 1 to 3 it does. At 1 the CPU is as fast as the card and needs "
        "no bus, so that its queue empties sooner. Where sizes differ, a slower CPU gets the small packets, "
        f"and the 1000 jobs before the card are larger. Tried: {'; '.join(words)}.",
    )  # fmt: skip


def growth(b: Bench, pattern: int, sets: Sequence[tuple[str, float]]) -> float:
    """The highest latency over T_enc-ratio by that at 1, with other settings and a fifth of the packets."""
    host = b.hosts[pattern].set("scheduler.window", 30).set("traffic.packets", 2 * SHORT)
    for key, value in sets:
        host = host.set(key, value)
    window = next((int(value) for key, value in sets if key == "scheduler.window"), 30)
    waits = [latency_of(run, window) for run in b.s.sweep(host, "processor.cpu.block_ratio", RATIO)]
    return max(waits[1:]) / waits[0]


class Watched(Placement):
    """The scheduler of the paper, which notes the packets of each job."""

    def __init__(self) -> None:
        self.jobs: dict[int, list[int]] = {0: [], 1: []}

    def choose(self, job: Job, candidates: tuple[Candidate, ...]) -> Candidate:
        best = min(candidates, key=lambda one: (one.finish, one.index == 0))
        self.jobs[best.index].append(job.packets)
        return best


def jobs_of_processors(b: Bench) -> None:
    """Single packets and multi-packets on CPU and card."""
    s = b.s
    s.section("Which jobs go to the CPU")
    singles: list[list[float]] = []
    merged: list[list[float]] = []
    for host in b.hosts:
        singles.append([])
        merged.append([])
        for ratio in RATIO:
            watched = Watched()
            few = host.set("scheduler.window", 30).set("processor.cpu.block_ratio", ratio)
            few.set("traffic.packets", SHORT // 25 if s.quick else SHORT).simulate(policy=watched)
            cpu, card = watched.jobs[0], watched.jobs[1]
            singles[-1].append(100 * cpu.count(1) / max(len(cpu), 1))
            more = (len(cpu) - cpu.count(1), len(card) - card.count(1))
            of_merged = more[1] / max(sum(more), 1)
            of_singles = card.count(1) / max(cpu.count(1) + card.count(1), 1)
            merged[-1].append(of_merged / max(of_singles, 1e-9))
    s.plot("Single packets among the CPU's jobs, W = 30", "T_enc-ratio", "% of the CPU's jobs",
           [s.series(name, RATIO, row) for name, row in zip(PATTERNS, singles)])  # fmt: skip
    s.plot("Multi-packets to the card, W = 30", "T_enc-ratio", "share to the card, times that of single "
                                                               "packets",
           [s.series(name, RATIO, row) for name, row in zip(PATTERNS, merged)])  # fmt: skip
    b.measured(
        "merged-to-card", [one for row in merged for one in row[1:]],
        f"At T_enc-ratio 3 multi-packets go to the card {join(row[1] for row in merged)} times as often as "
        f"single packets, for {join(PATTERNS)}; at 1 {join(row[0] for row in merged)} times.",
    )  # fmt: skip
    b.measured(
        "singles-on-cpu", [one for row in singles for one in row[1:]],
        f"At T_enc-ratio 3 {join(row[1] for row in singles)} % of the CPU's jobs are single packets, at 7 "
        f"{join(row[3] for row in singles)} %, for {join(PATTERNS)}.",
        "With 100 SAs 75 % of all jobs are single packets, with the trace's 26 only 20 %, so that the CPU "
        f"does not get enough of them. Tried: the trace's sizes with 100 SAs give {digits(trace_singles(b))} "
        "% at T_enc-ratio 3.",
    )  # fmt: skip


def trace_singles(b: Bench) -> float:
    """Per cent of single packets among the CPU's jobs for the trace's sizes with 100 SAs."""
    watched = Watched()
    host = b.hosts[TRACE].set("traffic.sas", 100).set("scheduler.window", 30)
    host.set("traffic.packets", SHORT // 25 if b.s.quick else SHORT).simulate(policy=watched)
    return 100 * watched.jobs[0].count(1) / max(len(watched.jobs[0]), 1)


def bounds(b: Bench) -> None:
    """Bounds on the bytes of a multi-packet."""
    s = b.s
    s.section("A bound on the window")
    plain = b.at(1)
    waits: list[list[float]] = []
    gains: list[list[float]] = []
    for at, host in enumerate(b.hosts):
        runs = s.sweep(host.set("scheduler.window", 30), "scheduler.max_bytes", BOUNDS)
        waits.append([latency_of(run, 30) / latency_of(plain[at], 1) for run in runs])
        gains.append([run["throughput_bps"] / plain[at]["throughput_bps"] for run in runs])
    for title, rows in (("Latency", waits), ("Throughput", gains)):
        s.plot(f"{title} with a bound on multi-packets, W = 30", "bytes of a multi-packet, at most",
               "times that without a window", [s.series(name, BOUNDS, row) for name, row in zip(PATTERNS, rows)],
               log_x=True)  # fmt: skip
    timed = s.run(b.hosts[TRACE].set("scheduler.window", 30).set("scheduler.timeout", "10 us"))
    lost = [gain[wait.index(min(wait))] for gain, wait in zip(gains, waits)]
    b.measured(
        "latency-bound", [min(row) for row in waits],
        f"At the bound that suits it best, latency is {join(min(row) for row in waits)} times that without a "
        f"window, for {join(PATTERNS)}; throughput changes by {changes([100 * (one - 1) for one in lost])}.",
        "A bound that removes the added latency removes the gain, too, because both come from the same "
        "multi-packets. A bound on time changes nothing under overload, where the window is always full: "
        f"with 10 us the trace's latency is {digits(latency_of(timed, 30) / latency_of(plain[TRACE], 1))} "
        "times.",
    )  # fmt: skip


def security_associations(b: Bench) -> None:
    """Gains by the number of SAs."""
    s = b.s
    s.section("The number of SAs")
    plain = b.at(1)
    gains: list[list[float]] = []
    for at in range(len(PATTERNS)):
        runs = s.sweep(b.hosts[at].set("scheduler.window", 30), "traffic.sas", SAS)
        gains.append([run["throughput_bps"] / plain[at]["throughput_bps"] for run in runs])
        if at == TRACE:
            s.plot("Packets per multi-packet by SAs, W = 30", "equiprobable SAs", "packets",
                   [s.series("all patterns", SAS, s.figures(runs, "packets_per_job"))], log_x=True,
                   paper=[s.paper("printed: 1.33", [100], [1.33], "section IV-B"),
                          s.paper("printed: 2.57 (trace)", [TRACE_SAS], [2.57], "section IV-B")])  # fmt: skip
    s.plot("Throughput by SAs, W = 30", "equiprobable SAs", "times that without a window",
           [s.series(name, SAS, row) for name, row in zip(PATTERNS, gains)], log_x=True)  # fmt: skip
    ten, hundred = SAS.index(10), SAS.index(100)
    more = [(row[ten] - 1) / (row[hundred] - 1) for row in gains]
    b.measured("few-of-an-sa", more,
               f"The gain with 10 SAs is {join(more)} times that with 100, for {join(PATTERNS)}.")  # fmt: skip


def setup_time(b: Bench, host: StudyScenario) -> None:
    """Gains by t_init."""
    s = b.s
    s.section("How much t_init matters")
    lines = []
    for at in FIXED:
        few = b.hosts[at].set("traffic.packets", 2 * SHORT)
        hosts = [few.set("processor.card.init", f"{init} us") for init in INIT]
        bundled = s.run([one.set("scheduler.window", 30) for one in hosts])
        gain = ratios(s.figures(bundled, "throughput_bps"), s.figures(s.run(hosts), "throughput_bps"))
        lines.append(s.series(PATTERNS[at], INIT, gain))
    s.plot("Throughput with W = 30 by t_init", "t_init of the card (µs); the CPU's is 3 times that",
           "times that without a window", lines,
           note="Without t_init only the address phase is shared, and the gain is small.")  # fmt: skip


def below_overload(b: Bench) -> None:
    """The trace's pattern at lower loads."""
    s = b.s
    s.section("Below overload")
    s.text("""With full queues the CPU is always busy. Below that it is not, and the effect of a window on
        it can be seen. Latency from arrival includes the wait in the window, which grows as the load
        falls.""")
    hosts = [
        b.hosts[TRACE].set("traffic.rate", f"{rate} Mbit/s").set("traffic.packets", 2 * SHORT)
        for rate in OFFERED
    ]
    rows = {window: s.run([one.set("scheduler.window", window) for one in hosts]) for window in (1, *WINDOWS)}
    names = {1: "no window", 10: "W = 10", 30: "W = 30"}
    for title, unit, path, factor in (
        ("CPU load, trace", "CPU load (% of the time)", "cpu.load", 100.0),
        ("Latency from arrival, trace", "latency (µs)", "total_latency.mean_s", 1e6),
    ):
        s.plot(title, "offered (Mbit/s)", unit,
               [s.series(names[window], OFFERED, s.figures(runs, path, factor)) for window, runs in rows.items()],
               log_y=path != "cpu.load")  # fmt: skip
