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
from math import inf, nan, sqrt

from forebay.placement import Candidate, Job, Placement
from forebay.study import Study, StudyRun, StudyScenario, against, correlation, digits, join, ranks, time

from .claims import BOUNDS, FIGURES, PATTERNS, RATIO, TRACE_SAS, WINDOWS, declare

MEAN = [471, 976, 0, 24, 472, 984, 256]
"""Their mean payloads in bytes: table I, and the fixed sizes."""
FIXED = [2, 3, 4, 5]
MIXED = [0, 1, 6]
TRACE = 6
TRACE_BINS = [[0, 162, 5010], [163, 517, 4285], [518, 1460, 705]]
"""Sizes with the trace's mean, median and deviation."""
SAS = [1, 2, 5, 10, 20, 50, 100, 200]
INIT = [0, 0.25, 0.5, 1, 2, 4, 8]
"""t_init of the card, us."""
OFFERED = [50, 100, 150, 200, 250, 300, 400]
"""Offered loads below and above what is carried, Mbit/s."""
SHORT = 50_000
"""Packets of the runs whose single jobs are looked at."""


@dataclass
class Bench:
    """The study while it runs: the runs that several parts use."""

    s: Study
    hosts: list[StudyScenario]
    runs: dict[tuple[int, int], list[StudyRun]] = field(default_factory=dict)
    """By window and T_enc-ratio, one for each pattern."""

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
    declare(s)
    host = s.scenario("host.toml")
    b = Bench(s, patterns(host))
    if s.wants():
        model_and_patterns(b, host)
    if s.wants("bundle-1.33", "trace-2.57"):
        windows(b)
    if s.wants("cpu-slower-less", "fixed-faster", "cpu-slower-throughput", "capability-500"):
        cpu_by_ratio(b)
    if s.wants():
        relative_figures(b)
    if s.wants("cpu-packets-down", "cpu-time", "cpu-seconds"):
        usage(b)
    if s.wants("throughput-up", "small-gain-most"):
        throughput(b)
    if s.wants("latency-up", "latency-cause", "latency-large"):
        latency(b)
    if s.wants("latency-ratio"):
        latency_by_ratio(b)
    if s.wants("merged-to-card", "singles-on-cpu"):
        jobs_of_processors(b)
    if s.wants("latency-bound"):
        bounds(b)
    if s.wants("few-of-an-sa"):
        security_associations(b)
    if s.wants():
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


# ---- Helpers


def ratios(after: Sequence[float], before: Sequence[float]) -> list[float]:
    return [quotient(x, y) for x, y in zip(after, before)]


def quotient(after: float, before: float) -> float:
    """NaN where there is nothing to divide by, as of a gain without a window."""
    return after / before if before else nan


def share(run: StudyRun) -> float:
    """The CPU's share of the packets, per cent."""
    return 100 * run["cpu.packets"] / run["packets"]


def in_window(run: StudyRun) -> float:
    """Mean wait in the window, seconds. Under overload the window is always full: Little's law."""
    return run.scenario.resolved["scheduler"]["window"] * run["elapsed_s"] / run["packets"]


def latency_of(run: StudyRun) -> float:
    """Mean latency from entering the window, seconds, under overload."""
    return run["processing_latency.mean_s"] + in_window(run)


def added(b: Bench, window: int, ratio: int = FIGURES) -> list[float]:
    """Latency with a window by that without, for each pattern."""
    with_it = [latency_of(run) for run in b.at(window, ratio)]
    return ratios(with_it, [latency_of(run) for run in b.at(1, ratio)])


def percents(after: Sequence[float], before: Sequence[float]) -> list[float]:
    """Changes in per cent."""
    return [100 * (ratio - 1) for ratio in ratios(after, before)]


def changes(percents: Sequence[float]) -> str:
    """Changes in per cent as text."""
    return ", ".join(f"{value:+.2f} %" for value in percents)


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
    b.s.measured(
        "bundle-1.33", [count - 1.33 for count in counts[:TRACE]],
        f"{min(counts[:TRACE]):.3f} to {max(counts[:TRACE]):.3f} packets.",
        "The reference meets 29 / 100 others of its SA among fresh packets, which would give 1.29. Packets "
        "that stay in the window are not of the last references' SAs, so that the next reference meets "
        "more.",
    )  # fmt: skip
    b.s.measured("trace-2.57", counts[TRACE] - 2.57, f"{counts[TRACE]:.3f} packets with {TRACE_SAS} SAs.")


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
    b.s.measured(
        "cpu-slower-less", [against(row) for row in shares],
        f"Trace: {join(shares[TRACE])} %; 472 B: {join(shares[4])} % at T_enc-ratio {join(RATIO)}.",
    )  # fmt: skip
    last = [quotient(row[-1], row[0]) for row in shares]
    slowest, fastest = max(last[at] for at in FIXED), min(last[at] for at in MIXED)
    b.s.measured(
        "fixed-faster", quotient(slowest, fastest),
        f"The share at T_enc-ratio 7 is {join(last)} times that at 1 for {join(PATTERNS)}: at most "
        f"{digits(slowest)} for the fixed sizes, at least {digits(fastest)} for the others.",
    )  # fmt: skip
    b.s.measured(
        "cpu-slower-throughput", [against(row) for row in rates],
        f"Trace: {join(rates[TRACE])} Mbit/s; 472 B: {join(rates[4])} Mbit/s at T_enc-ratio {join(RATIO)}.",
    )  # fmt: skip
    best = max(run["throughput_bps"] / 1e6 for window in (1, *WINDOWS) for run in b.at(window, 1))
    b.s.measured("capability-500", best, f"{digits(best)} Mbit/s at T_enc-ratio 1.")


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
    b.s.measured("cpu-packets-down", [*by_packets[10], *by_packets[30]],
               f"Packets on the CPU: {words['packets']}, for {join(PATTERNS)}.")  # fmt: skip
    below = b.s.run([b.hosts[at].set("scheduler.window", window).set("traffic.rate", f"{rate} Mbit/s")
                     for at, rate in ((2, 150), (3, 200), (TRACE, 250)) for window in (1, 30)])  # fmt: skip
    loads = [run["cpu.load"] for run in below]
    tried = [f"{name} {digits(loads[2 * at])} and {digits(loads[2 * at + 1])}"
             for at, name in enumerate(("0 B at 150 Mbit/s", "24 B at 200 Mbit/s", "trace at 250 Mbit/s"))]  # fmt: skip
    points = [
        100 * (run["cpu.load"] - other["cpu.load"]) for w in WINDOWS for run, other in zip(b.at(w), plain)
    ]
    b.s.measured(
        "cpu-time", points,
        f"Part of the time in which the CPU is busy: {words['time']}, for {join(PATTERNS)}.",
        "1 Gbit/s are offered and half of it or less is carried, so that there is always a next packet for the CPU. "
        f"Tried below overload, load without a window and with W = 30: {join(tried)}. For the same packets the CPU "
        "computes for a shorter time (cpu-seconds).",
    )  # fmt: skip
    b.s.measured("cpu-seconds", [*seconds[10], *seconds[30]],
               f"Time on the CPU: {words['seconds']}, for {join(PATTERNS)}.")  # fmt: skip


def throughput(b: Bench) -> None:
    """Figure 5."""
    plain = [run["throughput_bps"] for run in b.at(1)]
    gain = {window: percents([run["throughput_bps"] for run in b.at(window)], plain) for window in WINDOWS}
    words = " and ".join(f"{changes(gain[window])} with W = {window}" for window in WINDOWS)
    b.s.measured("throughput-up", [*gain[10], *gain[30]], f"Throughput: {words}, for {join(PATTERNS)}.",
               "t_init and the address phase are paid once for each multi-packet.")  # fmt: skip
    fixed = {window: [row[at] for at in FIXED] for window, row in gain.items()}
    b.s.measured(
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
    b.s.measured("latency-up", [*rows[10], *rows[30]], f"Latency times {words}, for {join(PATTERNS)}.",
               f"From the scheduler's choice, without the wait in the window, times {join(chosen)} with W = "
               "30.")  # fmt: skip
    parts = []
    for window in WINDOWS:
        for run, plain in zip(b.at(window), b.at(1)):
            more = latency_of(run) - latency_of(plain)
            parts.append(quotient(in_window(run) - in_window(plain), more))
    b.s.measured(
        "latency-cause", parts, f"The wait in the window is {digits(100 * min(parts))} to "
        f"{digits(100 * max(parts))} % of the increase.",
        "Under overload the window is full all the time, and a packet passes it within some tens of microseconds. The rest "
        "of the increase is that a full queue holds as many jobs as before, which are longer with a window.",
    )  # fmt: skip
    even = {window: row[:TRACE] for window, row in rows.items()}
    hundred = b.s.run(
        [b.hosts[TRACE].set("traffic.sas", 100).set("scheduler.window", window) for window in (1, 30)]
    )
    like = latency_of(hundred[1]) / latency_of(hundred[0])
    order = [correlation(ranks(MEAN), ranks(rows[window])) for window in WINDOWS]
    b.s.measured(
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
    rows = [[latency_of(run) for run in b.by_ratio(at)] for at in range(len(PATTERNS))]
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
    b.s.measured(
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
    waits = [latency_of(run) for run in b.s.sweep(host, "processor.cpu.block_ratio", RATIO)]
    return max(waits[1:]) / waits[0]


class Watched(Placement):
    """The scheduler of the paper, or one that takes turns, which notes the packets of each job."""

    def __init__(self, turns: bool) -> None:
        self.jobs: dict[int, list[int]] = {0: [], 1: []}
        self.turns = turns

    def choose(self, job: Job, candidates: tuple[Candidate, ...]) -> Candidate:
        if self.turns:
            best = candidates[(len(self.jobs[0]) + len(self.jobs[1])) % len(candidates)]
        else:
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
            watched = Watched(s.under == "turns")
            few = host.set("scheduler.window", 30).set("processor.cpu.block_ratio", ratio)
            s.simulate(few.set("traffic.packets", SHORT // 25 if s.quick else SHORT), watched)
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
    b.s.measured(
        "merged-to-card", [one for row in merged for one in row[1:]],
        f"At T_enc-ratio 3 multi-packets go to the card {join(row[1] for row in merged)} times as often as "
        f"single packets, for {join(PATTERNS)}; at 1 {join(row[0] for row in merged)} times.",
    )  # fmt: skip
    b.s.measured(
        "singles-on-cpu", [one for row in singles for one in row[1:]],
        f"At T_enc-ratio 3 {join(row[1] for row in singles)} % of the CPU's jobs are single packets, at 7 "
        f"{join(row[3] for row in singles)} %, for {join(PATTERNS)}.",
        "With 100 SAs 75 % of all jobs are single packets, with the trace's 26 only 20 %, so that the CPU "
        f"does not get enough of them. Tried: the trace's sizes with 100 SAs give {digits(trace_singles(b))} "
        "% at T_enc-ratio 3.",
    )  # fmt: skip


def trace_singles(b: Bench) -> float:
    """Per cent of single packets among the CPU's jobs for the trace's sizes with 100 SAs."""
    watched = Watched(b.s.under == "turns")
    host = b.hosts[TRACE].set("traffic.sas", 100).set("scheduler.window", 30)
    b.s.simulate(host.set("traffic.packets", SHORT // 25 if b.s.quick else SHORT), watched)
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
        waits.append([latency_of(run) / latency_of(plain[at]) for run in runs])
        gains.append([run["throughput_bps"] / plain[at]["throughput_bps"] for run in runs])
    for title, rows in (("Latency", waits), ("Throughput", gains)):
        s.plot(f"{title} with a bound on multi-packets, W = 30", "bytes of a multi-packet, at most",
               "times that without a window", [s.series(name, BOUNDS, row) for name, row in zip(PATTERNS, rows)],
               log_x=True)  # fmt: skip
    timed = s.run(b.hosts[TRACE].set("scheduler.window", 30).set("scheduler.timeout", "10 us"))
    lost = [gain[wait.index(min(wait))] for gain, wait in zip(gains, waits)]
    full = [run["throughput_bps"] / other["throughput_bps"] for run, other in zip(b.at(30), plain)]
    best = [
        min((wait for wait, gain in zip(*rows) if gain > 1 and gain - 1 >= (whole - 1) / 2), default=inf)
        for *rows, whole in zip(waits, gains, full)
    ]
    b.s.measured(
        "latency-bound", best,
        f"With the bounds that leave half of the gain latency is at least {join(best)} times that without a window, "
        f"for {join(PATTERNS)}. At the bound that suits it best it is {join(min(row) for row in waits)} times, and "
        f"throughput then changes by {changes([100 * (one - 1) for one in lost])}.",
        "A bound that removes the added latency removes the gain, too, because both come from the same "
        "multi-packets. A bound on time changes nothing under overload, where the window is always full: "
        f"with 10 us the trace's latency is {digits(latency_of(timed) / latency_of(plain[TRACE]))} "
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
    more = [quotient(row[ten] - 1, row[hundred] - 1) for row in gains]
    b.s.measured("few-of-an-sa", more,
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
