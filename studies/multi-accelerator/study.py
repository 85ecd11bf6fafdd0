"""Two cards and a CPU: placing packets by finish time

Castanier, Ferrante and Piuri, "A Packet Scheduling Algorithm for IPSec Multi-Accelerator Based Systems" (ASAP
2004), [H]: counterparts of its figures and of its table, and a test of each claim at the point that its sentence
names. The scheduler sends a packet to the processor with the earliest predicted finish time. The CPU's prediction
is increased by alpha and beta, f0 = alpha (w0 + p0 + beta), which keeps the CPU free for other work.

The paper does not print the setup time of a job (t_init: 1 us here unless a plot says otherwise), the length of
the CPU's queue (as that of the cards here), the order of sizes in its trace (each size is drawn independently from
a distribution with the published mean, median and deviation), or the sizes of write buffers and prefetch buffers
(1, 2, 4 and 8 places here). Each claim lists which of its parameters are printed and which are assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, nan
from statistics import fmean

from forebay.study import (
    Series,
    Study,
    StudyRun,
    StudyScenario,
    against,
    bits,
    correlation,
    digits,
    join,
    percent,
    time,
)

from .claims import ALPHA, BETA, FINE_ALPHA, FINE_BETA, INIT, INIT_TESTED, LOW, PLACES, declare

BETA_SECONDS = [0.0, 17.6e-6, 660e-6, 6.6e-3]
BETA_BYTES = [0, 640, 24_000, 240_000]
"""What a card enciphers in beta, as table 1 prints it."""
BLOCK = 440e-9
"""A card's time per block, seconds: from table 1, 640 bytes in 17.6 us."""
CARDS = [1, 2, 3, 4, 6, 8]
QUEUES = [10, 20, 50, 100, 200, 500, 1000, 2000]
SHORT = 300_000
"""Packets of the runs that are beside the paper's figures: another seed changes the mean latency by 0.2 %."""

TWO_CARDS = [
    "cpu-load-alpha", "cpu-packets-alpha", "cpu-packets-beta", "cpu-control", "throughput-follows", "global-latency",
]  # fmt: skip
"""Claims that are measured on the paper's host with two cards."""

Grid = list[list[StudyRun]]


@dataclass
class Bench:
    """The study while it runs: the runs that several parts use."""

    s: Study
    host: StudyScenario
    grids: dict[str, Grid] = field(default_factory=dict)
    """Made by `enhanced`: with and without the scheduler, by architecture."""

    def grid(self, name: str) -> Grid:
        """Runs over all alpha and beta: with queues of 1000 and of 50, calm, and with one card."""
        if name not in self.grids:
            short = self.host.set("traffic.packets", SHORT)
            host = {
                "1000": self.host,
                "50": queue_of(self.host, 50),
                "calm": short.set("traffic.rate", "200 Mbit/s"),
                "one": short.set("processor.card.count", 1),
            }[name]
            self.grids[name] = self.s.grid(host, "processor.cpu.beta", BETA, "processor.cpu.alpha", ALPHA)
        return self.grids[name]


def study(s: Study) -> None:
    declare(s)
    b = Bench(s, s.scenario("host.toml"))
    if s.wants():
        scheme_and_printed(b)
        two_cards(b)
    if s.wants(*TWO_CARDS):
        two_card_measures(b)
    if s.wants("latency-minimum", "global-latency-packets"):
        latency_measures(b)
    if s.wants("queue-50-similar", "queue-50-amplified", "queue-50-latency"):
        queues(b)
    if s.wants("throughput-500", "t-init-border"):
        setup_time(b)
    if s.wants("calm-cpu", "calm-unchanged", "calm-cards"):
        calm(b)
    if s.wants("four-bus", "cards-idle"):
        card_count(b, s.scenario("buses.toml"))
    if s.wants("one-card-similar", "one-card-alpha"):
        one_card(b)
    if s.wants("scheduling-throughput", "scheduling-latency", "alpha-none-throughput", "alpha-none-latency", "overload-most"):
        enhanced(b)
        enhanced_measures(b)
    if s.wants("buffer-or-prefetch", "both-more", "prefetch-aware", "aware-worse"):
        buffer_places(b)
    if s.wants("order-few", "order-ipsec", "order-kept"):
        order(b)
    if s.wants("latency-order"):
        latency_at_alpha_1(b)
    if s.wants("small-on-cpu"):
        small_on_cpu(b)


# ---- Helpers


def queue_of(host: StudyScenario, places: int) -> StudyScenario:
    """All queues with so many places."""
    return host.set("processor.cpu.queue", places).set("processor.card.queue", places)


def single(host: StudyScenario) -> StudyScenario:
    """Without the scheduler: every packet to the card."""
    return host.set("scheduler.policy", "single").set("scheduler.processor", "card")


def flat(grid: Grid, path: str) -> list[float]:
    return [run[path] for row in grid for run in row]


def ratios(after: Sequence[float], before: Sequence[float]) -> list[float]:
    """Quotients; that of two zeros is 1."""
    return [x / y if y else 1.0 if x == 0 else nan for x, y in zip(after, before)]


def ratio(after: float, before: float) -> float:
    """A quotient, as of :func:`ratios`: a control may leave the CPU or a card without packets."""
    return ratios([after], [before])[0]


def change(value: float) -> str:
    """A ratio near 1 as a change in per cent."""
    return f"{100 * (value - 1):+.2f} %"


def upward(grid: Grid, path: str) -> list[float]:
    """In each row in which it is not zero from the begin, the largest step upwards by the fall of the row."""
    rows = [[run[path] for run in row] for row in grid]
    return [against(row) for row in rows if row[0] > 0.001 * max(max(one) for one in rows)] or [inf]


def crossing(xs: Sequence[float], ys: Sequence[float], level: float) -> float:
    """Where falling values pass a level, interpolated; not a number if they do not."""
    for at in range(1, len(xs)):
        if ys[at - 1] >= level > ys[at]:
            share = (ys[at - 1] - level) / (ys[at - 1] - ys[at])
            return xs[at - 1] + share * (xs[at] - xs[at - 1])
    return nan


def lines(s: Study, grid: Grid, path: str, factor: float) -> list[Series]:
    """A line over alpha for each beta."""
    return [s.series(f"beta {beta}", ALPHA, s.figures(row, path, factor)) for beta, row in zip(BETA, grid)]


# ---- Figures 1 to 6


def scheme_and_printed(b: Bench) -> None:
    """Figures 1 and 2, table 1, and numbers in the text."""
    s = b.s
    s.section("The model, and what the paper prints")
    s.table(
        "Objects of the model",
        ["paper", "scenario"],
        [
            ["fifo for the input data (figures 1 and 2)", "[traffic]; input without limit"],
            ["scheduler (figures 1 and 2)", "[scheduler], policy finish-time"],
            ["N + 1 fifo_accel, one queue per processor", "processor.cpu.queue, processor.card.queue"],
            ["accelerator 0: the CPU", "[[processor]] cpu, with alpha and beta"],
            ["accelerators 1 to N", "[[processor]] card, count = N"],
            ["bus (PCI, 32 bit, 66 MHz), first come first served", "[bus]"],
        ],
        counterpart="[H] figure 1; [H] figure 2",
    )
    s.table(
        "Bytes that a card enciphers in beta, with t_block 440 ns",
        ["beta", "bytes, here", "bytes, printed"],
        [[time(one), digits(one / BLOCK * 16), printed] for one, printed in zip(BETA_SECONDS, BETA_BYTES)],
        counterpart="[H] table 1",
    )
    fixed = {"source": "fixed", "value": 600, "packets": 50_000, "rate": "1 Gbit/s", "overhead": 40}
    card = single(b.host.set("processor.card.count", 1))
    cpu = b.host.set("scheduler.policy", "single").set("scheduler.processor", "cpu")
    alone = s.run([one.set("traffic", fixed) for one in (card, cpu)])
    best = b.grid("1000")[0][0]
    s.table(
        "Throughput",
        ["", "here", "printed"],
        [
            [
                "one card, packets of 640 bytes, transfers included",
                bits(alone[0]["throughput_bps"]),
                "about 230 Mbit/s",
            ],
            ["the CPU, packets of 640 bytes", bits(alone[1]["throughput_bps"]), "110 Mbit/s"],
            ["two cards and the CPU, alpha 1", bits(best["throughput_bps"]), "slightly more than 500 Mbit/s"],
        ],
    )


def two_cards(b: Bench) -> None:
    """Figures 3 to 6, with queues of 1000 and of 50."""
    s = b.s
    s.section("Two cards, 1 Gbit/s offered")
    s.text("""The paper shows queues of 1000 jobs. Under overload the cards' queues are full, so that a job
        waits about 9 ms for a card with queues of 1000, and about half a millisecond with 50. The
        scheduler chooses an idle CPU as long as alpha (p0 + beta) is less than that; p0 is about 20 µs.
        With 1000 jobs alpha therefore has an effect from some hundreds on, with 50 from some tens on.""")
    for queue in ("1000", "50"):
        grid = b.grid(queue)
        of = {"1000": "[H] figure {}", "50": None}[queue]
        printed = [s.paper("printed: slightly more than 500 Mbit/s", [1], [500_000], "section 4.2")]
        for number, title, unit, path, factor in (
            (3, "CPU load", "CPU load (% of the time)", "cpu.load", 100.0),
            (4, "Throughput", "throughput (kbit/s)", "throughput_bps", 1e-3),
            (5, "Average processing latency", "processing latency (ms)", "processing_latency.mean_s", 1e3),
            (6, "Average global latency", "global latency (s)", "total_latency.mean_s", 1.0),
        ):
            s.plot(
                f"{title}, queues of {queue}", "alpha", unit, lines(s, grid, path, factor),
                paper=printed if number == 4 else [], log_x=True,
                counterpart=of.format(number) if of else None,
            )  # fmt: skip


def two_card_measures(b: Bench) -> None:
    grid = b.grid("1000")
    loads, rates = flat(grid, "cpu.load"), flat(grid, "throughput_bps")
    totals = flat(grid, "total_latency.mean_s")
    first = [run["cpu.load"] for run in grid[0]]
    short = b.grid("50")
    b.s.measured(
        "cpu-load-alpha", [*upward(grid, "cpu.load"), *upward(short, "cpu.load")],
        f"Without beta and with queues of 1000 the load is {join(percent(x) for x in first)} at alpha "
        f"{join(ALPHA)}; with beta 17.6 us it ends at {percent(grid[1][-1]['cpu.load'])}. With queues of 50 "
        f"it is {join(percent(run['cpu.load']) for run in short[0])}.",
        "Up to alpha 100 the load hardly changes: an idle CPU is chosen until alpha p0 exceeds the time of "
        "a full card queue. Most of the fall lies between alpha 100 and 500, and with beta before it.",
    )  # fmt: skip
    moved = ratio(grid[0][1]["cpu.bytes"], grid[0][0]["cpu.bytes"])
    own = b.s.run(one_step(b, 600))
    b.s.measured(
        "cpu-packets-alpha", upward(grid, "cpu.packets"),
        f"Without beta the CPU has {join(run['cpu.packets'] for run in grid[0])} packets at alpha "
        f"{join(ALPHA)}: {digits(100 * (ratio(grid[0][1]['cpu.packets'], grid[0][0]['cpu.packets']) - 1))} % more "
        "at 2.5 than at 1.",
        "At alpha 1 the CPU's queue is full, and packets of all sizes wait for it. From 2.5 on it gets "
        f"smaller ones ({digits(grid[0][1]['cpu.mean_size'])} B instead of "
        f"{digits(grid[0][0]['cpu.mean_size'])} B on average) and is as busy as before. Tried: the CPU's "
        f"bytes fall, to {digits(moved)} times at 2.5; with 600 places in the CPU's queue alone it has "
        f"{digits(ratio(own[1]['cpu.packets'], own[0]['cpu.packets']))} times the packets.",
    )  # fmt: skip
    low = [ratio(grid[-1][at]["cpu.packets"], grid[0][at]["cpu.packets"]) for at in range(3)]
    half = b.s.sweep(queue_of(b.host, 500).set("traffic.packets", SHORT), "processor.cpu.beta", BETA)
    b.s.measured(
        "cpu-packets-beta", low,
        f"With beta 6.6 ms the CPU has {join(low)} times the packets that it has without, at alpha 1, 2.5 "
        "and 5.",
        "At alpha 1 beta counts against the time of a full card queue, 9 to 13 ms, and the largest beta is "
        "6.6 ms: it shortens the CPU's queue and does not change its load. Tried: with queues of 500 and "
        f"alpha 1 it is {digits(ratio(half[-1]['cpu.packets'], half[0]['cpu.packets']))} times, with queues of 50 "
        f"{digits(ratio(b.grid('50')[-1][0]['cpu.packets'], b.grid('50')[0][0]['cpu.packets']))} times.",
    )  # fmt: skip
    b.s.measured(
        "cpu-control", 100 * (max(loads) - min(loads)),
        f"The CPU's load is {percent(min(loads))} to {percent(max(loads))} over alpha and beta.",
    )  # fmt: skip
    b.s.measured(
        "throughput-follows", correlation(loads, rates),
        f"{bits(min(rates))} at a CPU load of {percent(min(loads))}, {bits(max(rates))} at "
        f"{percent(max(loads))}; correlation {digits(correlation(loads, rates))} over {len(loads)} points.",
    )  # fmt: skip
    b.s.measured(
        "global-latency", correlation(rates, totals),
        f"{time(max(totals))} at {bits(min(rates))}, {time(min(totals))} at {bits(max(rates))}; correlation "
        f"{digits(correlation(rates, totals))} over {len(rates)} points.",
        "Packets wait in an input without limit.",
    )  # fmt: skip


def one_step(b: Bench, queue: int) -> list[StudyScenario]:
    """Alpha 1 and 2.5 with another length of the CPU's queue."""
    host = b.host.set("traffic.packets", SHORT).set("processor.cpu.queue", queue)
    return [host.set("processor.cpu.alpha", alpha) for alpha in ALPHA[:2]]


def latency_measures(b: Bench) -> None:
    grid = b.grid("1000")
    waits = [[run["processing_latency.mean_s"] for run in row] for row in grid]
    best = min(min(row) for row in waits)
    at = next(
        (beta, alpha) for beta, row in zip(BETA, waits) for alpha, one in zip(ALPHA, row) if one == best
    )
    ends = (waits[0][0], waits[-1][-1])
    b.s.measured(
        "latency-minimum", best / min(ends),
        f"{time(ends[0])} with the most work on the CPU, {time(ends[1])} with none, {time(best)} at alpha "
        f"{at[1]} and beta {at[0]}. Lowest over alpha for each beta: "
        + join(f"{time(min(row))} at alpha {ALPHA[row.index(min(row))]} (beta "
               f"{beta})" for beta, row in zip(BETA, waits))
        + ".",
        "With beta 6.6 ms the minimum is at alpha 1, the end of the list: from 2.5 on the CPU has nothing "
        "to do.",
    )  # fmt: skip
    numbers = [125_000, 250_000, 500_000, 1_000_000]
    runs = b.s.sweep(b.host, "traffic.packets", numbers)
    totals = b.s.figures(runs, "total_latency.mean_s")
    b.s.measured(
        "global-latency-packets", ratios(totals[1:], totals[:-1]),
        f"{join(time(x) for x in totals)} for {join(numbers)} packets.",
    )  # fmt: skip


def queues(b: Bench) -> None:
    """Queues of 50 against 1000."""
    s, long, short = b.s, b.grid("1000"), b.grid("50")
    s.section("Queues of 50 and of 1000")
    runs = s.run([queue_of(b.host, queue).set("traffic.packets", SHORT) for queue in QUEUES])
    s.plot("Processing latency by queue, alpha 1", "places in every queue", "processing latency (ms)",
           [s.series("mean", QUEUES, s.figures(runs, "processing_latency.mean_s", 1e3))], log_x=True, log_y=True)  # fmt: skip
    s.plot("Throughput by queue, alpha 1", "places in every queue", "throughput (Mbit/s)",
           [s.series("throughput", QUEUES, s.figures(runs, "throughput_bps", 1e-6))], log_x=True)  # fmt: skip
    rate = ratios(flat(short, "throughput_bps"), flat(long, "throughput_bps"))
    total = ratios(flat(short, "total_latency.mean_s"), flat(long, "total_latency.mean_s"))
    load = [1 + x - y for x, y in zip(flat(short, "cpu.load"), flat(long, "cpu.load"))]
    near = [row * len(ALPHA) + at for row in range(2) for at in range(LOW)]
    zero = [f"{bits(short[0][at]['throughput_bps'])} instead of {bits(long[0][at]['throughput_bps'])} at "
            f"alpha {ALPHA[at]}" for at in (0, 4, 5, 6)]  # fmt: skip
    b.s.measured(
        "queue-50-similar", [*rate, *total, *load],
        f"Without beta {join(zero)}. Over all points throughput is {digits(min(rate))} to "
        f"{digits(max(rate))} times, global latency {digits(min(total))} to {digits(max(total))} times that "
        "with queues of 1000.",
        "Tried: at alpha up to 10 and beta up to 17.6 us throughput is "
        f"{digits(min(rate[at] for at in near))} to {digits(max(rate[at] for at in near))} times. Beyond, "
        "the CPU is idle with queues of 50 and busy with 1000; the paper's next sentence says that effects "
        "of alpha and beta are amplified, and that is what is seen.",
    )  # fmt: skip
    falls = [fmean(grid[0][0]["cpu.load"] - x for x in flat(grid, "cpu.load")) for grid in (short, long)]
    b.s.measured(
        "queue-50-amplified", ratios(falls[:1], falls[1:]),
        f"On average over alpha and beta the load is {digits(100 * falls[0])} percentage points below that "
        f"at alpha 1 without beta with queues of 50, and {digits(100 * falls[1])} with 1000.",
    )  # fmt: skip
    wait = ratios(flat(short, "processing_latency.mean_s"), flat(long, "processing_latency.mean_s"))
    b.s.measured(
        "queue-50-latency", wait,
        f"{digits(min(wait))} to {digits(max(wait))} times that with queues of 1000; at alpha 1 without beta "
        f"{time(short[0][0]['processing_latency.mean_s'])} instead of "
        f"{time(long[0][0]['processing_latency.mean_s'])}.",
    )  # fmt: skip


def setup_time(b: Bench) -> None:
    """What t_init does."""
    s = b.s
    s.section("What t_init does")
    s.text("""The formula of the paper has a setup time t_init that is not printed. It determines how much
        small packets cost, and with it the maximum throughput.""")
    hosts = [
        b.host.set("processor.card.init", f"{one} us").set("processor.cpu.init", f"{one} us") for one in INIT
    ]
    runs = s.run(hosts)
    rates = s.figures(runs, "throughput_bps", 1e-6)
    fixed = {"source": "fixed", "value": 600, "packets": 50_000, "rate": "1 Gbit/s", "overhead": 40}
    alone = s.figures(s.run([single(one.set("processor.card.count", 1)).set("traffic", fixed) for one in hosts]),
                      "throughput_bps", 1e-6)  # fmt: skip
    s.plot("Two cards and the CPU, alpha 1", "t_init of all processors (µs)", "throughput (Mbit/s)",
           [s.series("two cards and the CPU", INIT, rates), s.series("one card, 640 bytes", INIT, alone)],
           paper=[s.paper("printed: slightly more than 500", INIT[:INIT_TESTED], [500] * INIT_TESTED, "section 4.2"),
                  s.paper("printed: about 230", INIT[:INIT_TESTED], [230] * INIT_TESTED, "section 4.1")],
           note="The printed values stand at those t_init for which the claim is tested.")  # fmt: skip
    tested = rates[:INIT_TESTED]
    b.s.measured(
        "throughput-500", tested,
        f"{join(tested)} Mbit/s with t_init {join(INIT[:INIT_TESTED])} us; {join(rates[INIT_TESTED:])} with "
        f"{join(INIT[INIT_TESTED:])} us. One card alone carries {join(alone[:INIT_TESTED])} Mbit/s.",
        "Table 1 makes 640 bytes last exactly 40 blocks, without any t_init, and a card then carries the "
        "printed 230 Mbit/s nearly: small values of t_init are the likely ones.",
    )  # fmt: skip
    border = crossing(INIT, rates, 500)
    b.s.measured("t-init-border", border, f"500 Mbit/s are passed at a t_init of {digits(border)} us.")


def calm(b: Bench) -> None:
    """200 Mbit/s."""
    s, grid = b.s, b.grid("calm")
    s.section("200 Mbit/s offered: no overload")
    loads, waits = flat(grid, "cpu.load"), flat(grid, "processing_latency.mean_s")
    rates = flat(grid, "throughput_bps")
    shares = [100 * (1 - run["cpu.packets"] / run["packets"]) for row in grid for run in row]
    s.plot(
        "CPU load at 200 Mbit/s",
        "alpha",
        "CPU load (% of the time)",
        lines(s, grid, "cpu.load", 100.0),
        log_x=True,
    )
    s.plot("Processing latency at 200 Mbit/s", "alpha", "processing latency (µs)",
           lines(s, grid, "processing_latency.mean_s", 1e6), log_x=True)  # fmt: skip
    b.s.measured("calm-cpu", [100 * x for x in loads],
               f"The CPU is busy {percent(min(loads))} to {percent(max(loads))} of the time.")  # fmt: skip
    b.s.measured("calm-unchanged", [max(rates) / min(rates), max(waits) / min(waits)],
               f"{bits(min(rates))} to {bits(max(rates))}, {time(min(waits))} to {time(max(waits))}.")  # fmt: skip
    b.s.measured(
        "calm-cards",
        shares,
        f"The cards have {digits(min(shares))} to {digits(max(shares))} % of the packets.",
    )


# ---- Numbers of cards


def card_count(b: Bench, apart: StudyScenario) -> None:
    """One to eight cards on the bus; four with a bus each."""
    s = b.s
    s.section("One, two, four cards")
    runs = s.sweep(b.host.set("traffic.packets", SHORT), "processor.card.count", CARDS)
    cards = [[one["load"] for one in run.figures["processors"] if one["name"] != "cpu"] for run in runs]
    idle = [100 * (1 - fmean(loads)) for loads in cards]
    s.plot("Throughput by cards", "cards on one bus", "throughput (Mbit/s)",
           [s.series("throughput", CARDS, s.figures(runs, "throughput_bps", 1e-6))],
           paper=[s.paper("printed: slightly more than 500", [2], [500], "section 4.2")])  # fmt: skip
    s.plot("Bus and cards", "cards on one bus", "% of the time",
           [s.series("bus busy", CARDS, s.figures(runs, "bus.load", 100.0)),
            s.series("cards not computing", CARDS, idle)])  # fmt: skip
    four, own = runs[CARDS.index(4)], s.run(apart.set("traffic.packets", SHORT))
    b.s.measured(
        "four-bus", own["throughput_bps"] / four["throughput_bps"],
        f"{bits(four['throughput_bps'])} with four cards on one bus, {percent(four['bus.load'])} busy; "
        f"{bits(own['throughput_bps'])} with a bus for each.",
        "The bus is not busy all the time, because a card without buffers uses it only when it does not "
        "compute; but transfers wait for each other.",
    )  # fmt: skip
    b.s.measured(
        "cards-idle", idle[CARDS.index(4)] - idle[0],
        f"Cards do not compute for {join(idle)} % of the time with {join(CARDS)} cards.",
    )  # fmt: skip


def thresholds(b: Bench, cards: int) -> tuple[float, float]:
    """The alpha, and the beta in ms, at which the CPU's load falls below half."""
    host = b.host.set("traffic.packets", SHORT).set("processor.card.count", cards)
    alpha = b.s.sweep(host, "processor.cpu.alpha", FINE_ALPHA)
    beta = b.s.sweep(host, "processor.cpu.beta", [f"{ms} ms" for ms in FINE_BETA])
    return (crossing(FINE_ALPHA, b.s.figures(alpha, "cpu.load"), 0.5),
            crossing(FINE_BETA, b.s.figures(beta, "cpu.load"), 0.5))  # fmt: skip


def one_card(b: Bench) -> None:
    """One card against two."""
    s, one, two = b.s, b.grid("one"), b.grid("1000")
    s.section("One card instead of two")
    for title, unit, path, factor in (
        ("CPU load, one card", "CPU load (% of the time)", "cpu.load", 100.0),
        ("Throughput, one card", "throughput (kbit/s)", "throughput_bps", 1e-3),
        ("Average processing latency, one card", "processing latency (ms)", "processing_latency.mean_s", 1e3),
    ):
        s.plot(title, "alpha", unit, lines(s, one, path, factor), log_x=True)
    paths = ("throughput_bps", "processing_latency.mean_s", "total_latency.mean_s")
    alike = [correlation(flat(one, path), flat(two, path)) for path in paths]
    b.s.measured("one-card-similar", alike,
               f"Correlations over 32 points: throughput {digits(alike[0])}, processing latency "
               f"{digits(alike[1])}, global latency {digits(alike[2])}.")  # fmt: skip
    at_one, at_two = thresholds(b, 1), thresholds(b, 2)
    slower = (
        b.host.set("traffic.packets", SHORT).set("traffic.rate", "400 Mbit/s").set("processor.cpu.alpha", 2.5)
    )
    loads = s.run([queue_of(slower, 50).set("processor.card.count", count) for count in (1, 2)])
    b.s.measured(
        "one-card-alpha", ratios(at_one, at_two),
        f"The load falls below half at alpha {digits(at_one[0])} with one card and {digits(at_two[0])} with "
        f"two, and at a beta of {digits(at_one[1])} ms with one and {digits(at_two[1])} ms with two.",
        "Under overload every card's queue is full, and the CPU is chosen until alpha (w0 + p0 + beta) "
        "exceeds its time, which depends little on the number of cards. Beta behaves as the paper says, "
        "alpha does not: with large alpha only small packets go to the CPU, and with one card fewer of them "
        "pass per second. Tried: at 400 Mbit/s, alpha 2.5 and queues of 50 the CPU's load is "
        f"{percent(loads[0]['cpu.load'])} with one card and {percent(loads[1]['cpu.load'])} with two, as the "
        "paper says; it does not print another rate for this case.",
    )  # fmt: skip


# ---- Figures 7 and 8


def architectures(b: Bench, places: int, queue: int = 1000) -> dict[str, StudyScenario]:
    """One card without and with buffers of so many places."""
    base = queue_of(b.host, queue).set("traffic.packets", SHORT)
    base = base.set("processor.card.count", 1).set("processor.cpu.beta", "17.6 us")
    buffer = base.set("processor.card.write_buffer", places)
    both = buffer.set("processor.card.prefetch", places)
    return {
        "plain": base,
        "write buffer": buffer,
        "prefetch": base.set("processor.card.prefetch", places),
        "both": both,
        "both, aware": both.set("scheduler.prefetch_aware", True),
    }


def enhanced(b: Bench) -> None:
    """Figures 7 and 8 as columns: the paper's alphas and no-sched."""
    s = b.s
    s.section("One card with write buffer and prefetch")
    s.text("""Columns for each alpha, and without the scheduler: "no-sched", every packet to the card. beta
        is 17.6 µs, queues have 1000 places, write buffer and prefetch one place each. Aware: prefetched packets count
        as waiting. With one place that changes hardly anything, so that the last two columns are alike; the third plot
        has more places.""")
    setups = architectures(b, 1)
    for name, host in setups.items():
        b.grids[name] = [s.sweep(host, "processor.cpu.alpha", ALPHA), [s.run(single(host))]]
    names = [*(f"{alpha:g}" for alpha in ALPHA), "no-sched"]
    for number, title, unit, path, factor in (
        (
            7,
            "Average processing latency, one card",
            "processing latency (ms)",
            "processing_latency.mean_s",
            1e3,
        ),
        (8, "Throughput, one card", "throughput (kbit/s)", "throughput_bps", 1e-3),
    ):
        columns = [s.series(name, names, s.figures([*b.grids[name][0], *b.grids[name][1]], path, factor))
                   for name in setups]  # fmt: skip
        s.plot(
            f"{title}, with and without buffers", "alpha", unit, columns, counterpart=f"[H] figure {number}"
        )


def enhanced_measures(b: Bench) -> None:
    rule, none = b.grids["plain"][0], b.grids["plain"][1][0]
    rate = [run["throughput_bps"] / none["throughput_bps"] for run in rule]
    wait = [run["processing_latency.mean_s"] / none["processing_latency.mean_s"] for run in rule]
    b.s.measured(
        "scheduling-throughput", rate[:LOW],
        f"{join(rate[:LOW])} times at alpha {join(ALPHA[:LOW])}; {bits(rule[0]['throughput_bps'])} against "
        f"{bits(none['throughput_bps'])} at alpha 1.",
    )  # fmt: skip
    b.s.measured("scheduling-latency", wait[:LOW], *latency_words(b, wait))
    for name, values in (("throughput", rate), ("latency", wait)):
        far = [abs(one - 1) for one in values]
        b.s.measured(
            f"alpha-none-{name}", against(far),
            f"With the scheduler {join(values)} times that without, at alpha {join(ALPHA)}.",
            "" if name == "throughput" else "Latency first falls below that without the scheduler, because "
                                            "the CPU gets fewer large packets, and is equal to it only when "
                                            "the CPU gets none. Tried: with queues of 50 it is "
                                            f"{join(short_queue_latency(b))} times.",
        )  # fmt: skip
    slow = b.s.run([one.set("traffic.rate", "200 Mbit/s") for one in
                    (architectures(b, 1)["plain"], single(architectures(b, 1)["plain"]))])  # fmt: skip
    calm_gain = slow[0]["throughput_bps"] / slow[1]["throughput_bps"]
    b.s.measured("overload-most", rate[0] / calm_gain,
               f"{digits(rate[0])} times the throughput at 1 Gbit/s, {digits(calm_gain)} times at 200 "
               "Mbit/s, at alpha 1.")  # fmt: skip


def short_queue_latency(b: Bench) -> list[float]:
    """Latency with the scheduler by that without, over alpha, with queues of 50."""
    host = architectures(b, 1, 50)["plain"]
    none = b.s.run(single(host))["processing_latency.mean_s"]
    return [run["processing_latency.mean_s"] / none for run in b.s.sweep(host, "processor.cpu.alpha", ALPHA)]


def latency_words(b: Bench, wait: Sequence[float]) -> tuple[str, str]:
    """Found and tried for scheduling-latency."""
    host = architectures(b, 1)["plain"]
    fixed = {"source": "fixed", "value": 216, "packets": SHORT, "rate": "1 Gbit/s", "overhead": 40}
    inits = host.set("processor.card.init", "4 us").set("processor.cpu.init", "4 us")
    tried = {
        "the CPU's queue of 600": host.set("processor.cpu.queue", 600),
        "the CPU's queue of 400": host.set("processor.cpu.queue", 400),
        "sizes in runs of ten packets": host.set("traffic.run_length", 10),
        "packets of one size": host.set("traffic", fixed),
        "t_init 4 us": inits,
        "300 Mbit/s offered": host.set("traffic.rate", "300 Mbit/s"),
    }
    words = join(f"{digits(latency_ratio(b, setup))} with {name}" for name, setup in tried.items())
    rule, none = b.grids["plain"][0][0], b.grids["plain"][1][0]
    return (
        f"{join(wait[:LOW])} times at alpha {join(ALPHA[:LOW])}, and {join(wait[LOW:])} at "
        f"{join(ALPHA[LOW:])}.",
        "It fails at alpha 1 and holds at the other low values. Under overload processing latency is the "
        "time of a full queue. At alpha 1 the scheduler fills the CPU's queue too, and leaves the larger "
        f"packets to the card ({digits(rule['card.mean_size'])} B instead of "
        f"{digits(none['card.mean_size'])} B on average), whose 1000 jobs take longer. Tried at alpha 1: "
        f"{words}.",
    )


def latency_ratio(b: Bench, host: StudyScenario) -> float:
    """Processing latency with the scheduler by that without."""
    runs = b.s.run([host, single(host)])
    return runs[0]["processing_latency.mean_s"] / runs[1]["processing_latency.mean_s"]


def over_places(b: Bench, queue: int) -> dict[tuple[str, int], list[StudyRun]]:
    """Runs over alpha for each architecture and number of places."""
    runs: dict[tuple[str, int], list[StudyRun]] = {}
    for places in PLACES:
        for name, host in architectures(b, places, queue).items():
            runs[name, places] = b.s.sweep(host, "processor.cpu.alpha", ALPHA)
    return runs


def buffer_places(b: Bench) -> None:
    """Buffers of 1, 2, 4 and 8 places."""
    s = b.s
    runs = {queue: over_places(b, queue) for queue in (1000, 50)}

    def compare(queue: int, name: str, other: str, path: str) -> dict[int, list[float]]:
        pairs = runs[queue]
        return {k: [x[path] / y[path] for x, y in zip(pairs[name, k], pairs[other, k])] for k in PLACES}

    rate, wait = "throughput_bps", "processing_latency.mean_s"
    aware = compare(1000, "both, aware", "both", wait)
    s.plot("What counting prefetched packets changes, queues of 1000", "alpha", "change of processing latency (%)",
           [s.series(f"k = {k}", ALPHA, [100 * (x - 1) for x in row]) for k, row in aware.items()],
           log_x=True, note="k: places of write buffer and prefetch buffer.")  # fmt: skip

    def every(rows: dict[int, list[float]]) -> list[float]:
        return [x for row in rows.values() for x in row]

    alike = [every(compare(1000, "write buffer", "prefetch", path)) for path in (rate, wait)]
    alike_short = every(compare(50, "write buffer", "prefetch", wait))
    b.s.measured(
        "buffer-or-prefetch", [*alike[0], *alike[1]],
        f"With a write buffer instead of prefetch throughput differs by {change(min(alike[0]))} to "
        f"{change(max(alike[0]))}, latency by {change(min(alike[1]))} to {change(max(alike[1]))}, for "
        "k = 1, 2, 4, 8.",
        "Each hides one of two equal transfers behind the computation. With queues of 50 latency differs "
        f"more, by {change(min(alike_short))} to {change(max(alike_short))}: prefetched packets wait beside "
        "the queue.",
    )  # fmt: skip
    plain = runs[1000]
    further = [plain["both", 1][at][rate] / max(plain[one, 1][at][rate] for one in ("write buffer", "prefetch"))
               for at in range(len(ALPHA))]  # fmt: skip
    less = [min(plain[one, 1][at][wait] for one in ("write buffer", "prefetch")) / plain["both", 1][at][wait]
            for at in range(len(ALPHA))]  # fmt: skip
    single_gain = [x[rate] / y[rate] for x, y in zip(plain["write buffer", 1], plain["plain", 1])]
    b.s.measured(
        "both-more", [*further, *less],
        f"{digits(min(further))} to {digits(max(further))} times the throughput of the better one alone, "
        f"which gives {digits(min(single_gain))} to {digits(max(single_gain))} times that of the plain card; "
        f"latency is lower by a factor of {digits(min(less))} to {digits(max(less))}.",
    )  # fmt: skip
    gain = {queue: every(compare(queue, "both, aware", "both", rate)) for queue in (1000, 50)}
    b.s.measured(
        "prefetch-aware", gain[1000],
        f"At most {change(max(gain[1000]))} of throughput, over alpha and k = 1, 2, 4, 8; with queues of 50 "
        f"at most {change(max(gain[50]))}.",
    )  # fmt: skip
    slower = {queue: compare(queue, "both, aware", "both", wait) for queue in (1000, 50)}
    worse = {queue: {k: max(row) for k, row in rows.items()} for queue, rows in slower.items()}
    b.s.measured(
        "aware-worse", max(worse[1000].values()),
        f"At most {join(change(x) for x in worse[1000].values())} of latency with k = {join(PLACES)} and "
        f"queues of 1000; {join(change(x) for x in worse[50].values())} with queues of 50.",
        "It is alpha 1 with k from 2 on: the card seems fuller by k jobs, and the CPU gets more packets.",
    )  # fmt: skip


def order(b: Bench) -> None:
    """Section 3.2.1: the order in which packets leave, and what it costs to keep it."""
    s = b.s
    s.section("The order in which packets leave (section 3.2.1)")
    s.text("""The rule sends each packet where it is predicted to be done first, so that packets of an SA overtake
        each other. The paper says that this is no problem for IPsec. A receiver however rejects what is as far behind
        the latest sequence number as its replay window is long (RFC 4303 3.4.3), 64 by default. Forebay's gateway keeps
        the order: a packet whose job is done waits for those before it of its SA.""")
    calm = [100 * share for share in flat(b.grid("calm"), "order.late_share")]
    s.measured(
        "order-few", calm,
        f"{digits(min(calm))} to {digits(max(calm))} % of the packets leave after a later one, at most "
        f"{digits(max(flat(b.grid('calm'), 'order.distance_max')))} behind.",
    )  # fmt: skip
    hosts = {
        "200 Mbit/s, queues of 1000": b.host.set("traffic.rate", "200 Mbit/s"),
        "400 Mbit/s, queues of 1000": b.host.set("traffic.rate", "400 Mbit/s"),
        "1 Gbit/s, queues of 50": queue_of(b.host, 50),
        "1 Gbit/s, queues of 1000": b.host,
    }
    rows: list[list[object]] = []
    beyond, late = [], []
    for name, host in hosts.items():
        for sas in (1, 10, 100):
            one = host.set("traffic.packets", SHORT).set("traffic.sas", sas)
            free, kept = s.run([one, one.set("scheduler.keep_order", True)])
            if sas == 1 and name.startswith("1 Gbit/s"):
                beyond.append(100 * free["order.beyond_64_share"])
            late.append(kept["order.late"])
            rows.append([
                name, sas, percent(free["order.late_share"]), free["order.distance_max"],
                percent(free["order.beyond_64_share"]), time(free["total_latency.mean_s"]),
                time(kept.get("order.hold.mean_s")), time(kept.get("order.hold.p99_s")),
            ])  # fmt: skip
    head = [
        "host", "SAs", "late", "farthest behind", "64 or more behind", "mean latency", "wait for the order, mean", "99 %",
    ]  # fmt: skip
    s.table("Packets that leave after a later one of their SA, alpha 1, two cards", head, rows)
    s.measured(
        "order-ipsec", beyond,
        f"{join(beyond)} % of the packets of one SA are 64 or more behind with queues of 50 and of 1000.",
        "Processors with queues of 1000 jobs of other sizes are that far apart. Tried: with 100 SAs the same packets are "
        f"{rows[-1][4]} beyond such a window, because each SA has a hundredth of them in the queues.",
    )  # fmt: skip
    s.measured(
        "order-kept", late,
        f"{join(late)} packets leave after a later one; the wait is in the table.",
        "Under overload it is about the time of a full queue, for the packets that were faster.",
    )  # fmt: skip


def latency_at_alpha_1(b: Bench) -> None:
    """Why latency is higher with the scheduler at alpha 1."""
    s = b.s
    s.section("Why one card without the scheduler has the lower latency at alpha 1")
    s.text("""Processing latency counts from the choice of a processor, so under overload it is the time
        that a full queue takes. The scheduler sends small packets to the CPU and leaves large ones to the
        card, whose 1000 waiting jobs then take longer. Where sizes come in runs, as in TCP flows, there is
        less to sort. Below what card and CPU carry together, queues are short with the scheduler and full
        without.""")
    host = architectures(b, 1)["plain"]
    run_lengths = [1, 2, 5, 10, 20, 50, 100]
    by_run = [latency_ratio(b, host.set("traffic.run_length", length)) for length in run_lengths]
    s.plot("Latency with the scheduler by that without, alpha "
           "1", "packets in a row of one size, on average", "times",
           [s.series("latency", run_lengths, by_run)], log_x=True)  # fmt: skip
    ordered = by_run[run_lengths.index(10) :]
    b.s.measured(
        "latency-order", ordered, f"{join(by_run)} times with runs of {join(run_lengths)} packets on average."
    )
    cpu_queues = [100, 200, 400, 600, 700, 800, 1000]
    by_queue = [latency_ratio(b, host.set("processor.cpu.queue", places)) for places in cpu_queues]
    s.plot("The same by the CPU's queue", "places in the CPU's queue; the card's has 1000", "times",
           [s.series("latency", cpu_queues, by_queue)])  # fmt: skip
    offered = [150, 200, 250, 280, 300, 320, 340, 400, 600, 1000]
    hosts = [host.set("traffic.rate", f"{rate} Mbit/s") for rate in offered]
    path = "processing_latency.mean_s"
    s.plot("Processing latency by offered load, alpha 1", "offered (Mbit/s)", "processing latency (ms)",
           [s.series("scheduler", offered, s.figures(s.run(hosts), path, 1e3)),
            s.series("card only", offered, s.figures(s.run([single(one) for one in hosts]), path, 1e3))],
           log_y=True)  # fmt: skip


def small_on_cpu(b: Bench) -> None:
    """Sizes of packets on the CPU."""
    s, grid = b.s, b.grid("1000")
    s.section("Which packets go to the CPU")
    s.plot("Mean size of the CPU's packets, queues of 1000", "alpha", "bytes (0: it has none)",
           lines(s, grid, "cpu.mean_size", 1.0), log_x=True)  # fmt: skip
    s.plot("Mean size of the CPU's packets, queues of 50", "alpha", "bytes (0: it has none)",
           lines(s, b.grid("50"), "cpu.mean_size", 1.0), log_x=True)  # fmt: skip
    found = []
    for beta, row in zip(BETA, grid):
        for alpha, run in zip(ALPHA, row):
            if run["cpu.packets"] > 0.001 * run["packets"]:
                found.append((ratio(run["cpu.mean_size"], run["card.0.mean_size"]), alpha, beta, run))
    least, alpha, beta, run = min(found, key=lambda one: one[0])
    b.s.measured(
        "small-on-cpu", least,
        f"{digits(run['cpu.mean_size'])} B on the CPU and {digits(run['card.0.mean_size'])} B on a card at "
        f"alpha {alpha}, beta {beta}; points where the CPU has less than 0.1 % of the packets are left out.",
        "alpha multiplies p0, which grows with the packet: near the border only small packets go to the CPU.",
    )  # fmt: skip
