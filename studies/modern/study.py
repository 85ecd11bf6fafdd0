"""Where does a card still pay?

Cores that encipher 7 to 33 million packets a second, cards behind PCIe 4.0 and 5.0, and 100 or 400 Gbit/s of
packets: by packet size and by the number of packets that go to the card together, how many cores a card is
worth, and which of the two is done sooner.

The core's figures are a line through two measured ones, bare AES-128-GCM on one machine with VAES: headers,
policy and memory are not in them. The cards' figures are assumed (see the files), and handing a job to a
card costs the core nothing in this model. Change both to yours: `forebay study copy modern DIR`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from forebay.study import Claim, Study, StudyScenario, digits, time

SIZES = [64, 128, 256, 512, 1024, 1408, 4096, 9000]
BUNDLES = [1, 2, 4, 8, 16, 32, 64]
CARDS = [
    ("PCIe 4.0 x16, 8 engines, 100 Gbit/s", "pcie4.toml"),
    ("PCIe 5.0 x16, 16 engines, 400 Gbit/s", "pcie5.toml"),
]
# Gbit/s, a line for each size; by card a line for each size with a value for each bundle.
Rates = list[float]
Carried = list[list[list[float]]]


def controls(s: Study) -> None:
    """Other cards and another core, under which the statements that name them must fail."""

    def card(change: Callable[[StudyScenario], StudyScenario]) -> Callable[[StudyScenario], StudyScenario]:
        return lambda one: one if one.value("processor.engine.count") is None else change(one)

    def half(one: StudyScenario) -> StudyScenario:
        return one.set("processor.engine.count", one.value("processor.engine.count") // 2)

    def slow_core(one: StudyScenario) -> StudyScenario:
        return one if one.value("processor.core.block") is None else one.set("processor.core.block", "12.27 ns")

    s.control("free-setup", says="A job costs a card no setup.", change=card(lambda one: one.set("processor.engine.init", 0)))
    s.control("no-bundles", says="Every job is one packet.", change=card(lambda one: one.set("scheduler.window", 1)))
    s.control("half-engines", says="A card has half of its engines.", change=card(half))
    s.control("slow-core", says="A block takes the core ten times as long, as without instructions for AES.", change=slow_core)


def declare(s: Study) -> dict[str, Claim]:
    """What is expected, before any run; nothing here is a sentence of a paper."""
    controls(s)
    return {
        "small-alone": s.observation(
            "small-alone",
            says="With one packet in a job neither card is worth one core at 64 bytes.",
            control="free-setup",
            band=s.band(None, 1.0, "cores", "a card that pays is worth at least one core"),
        ),
        "bundles": s.observation(
            "bundles",
            says="Bundles of 32 make either card worth more than one core at 64 bytes.",
            control="no-bundles",
            band=s.band(1.0, None, "cores", "as above"),
        ),
        "large": s.observation(
            "large",
            says="At 1408 bytes and one packet in a job, a card carries what its engines are sold for, "
            "less a fifth.",
            control="half-engines",
            band=s.band(0.8, 1.05, "", "share of 100 and of 400 Gbit/s; the rest is t_init and the bus"),
        ),
        "sooner": s.observation(
            "sooner",
            says="At 10 Gbit/s a core is done sooner than either card, at every size it can carry.",
            control="slow-core",
            band=s.band(
                1.0, None, "times", "mean latency of the card over that of the core, from 256 bytes on"
            ),
        ),
    }


def core_alone(s: Study) -> Rates:
    s.section("A core alone")
    rates = s.figures(s.sweep(s.scenario("core.toml"), "traffic.value", SIZES), "throughput_bps", 1e-9)
    rows = [
        [size, rate, rate * 1e3 / 8.0 / size, math.ceil(100.0 / rate), math.ceil(400.0 / rate)]
        for size, rate in zip(SIZES, rates)
    ]
    head = ["bytes", "Gbit/s", "Mpacket/s", "cores for 100 Gbit/s", "cores for 400 Gbit/s"]
    s.table("Bare AES-128-GCM on one core", head, rows)
    return rates


def worth(s: Study, rates: Rates) -> Carried:
    s.section("How many cores a card is worth")
    s.text(
        """Throughput of the card under overload as a multiple of one core's. The thick line is where a card
        is worth one core. The core works packet by packet, for its t_init is that of a packet; the card pays
        its own once for each job."""
    )
    carried: Carried = []
    for name, file in CARDS:
        grid = s.grid(s.scenario(file), "traffic.value", SIZES, "scheduler.window", BUNDLES)
        gbit = [s.figures(row, "throughput_bps", 1e-9) for row in grid]
        carried.append(gbit)
        ratios = [[one / rate for one in row] for row, rate in zip(gbit, rates)]
        s.heat(name, "packets in a job", "bytes", BUNDLES, SIZES, ratios)
    for (name, _), gbit in zip(CARDS, carried):
        lines = [s.series("one core", SIZES, rates)]
        for bundle in (1, 4, 16, 64):
            at = BUNDLES.index(bundle)
            lines.append(s.series(f"{bundle} in a job", SIZES, [row[at] for row in gbit]))
        s.plot(name, x="bytes of a packet", y="Gbit/s", series=lines, log_x=True, log_y=True)
    return carried


def cores_beside(s: Study, rates: Rates, carried: Carried) -> None:
    s.section("What it takes to carry 100 and 400 Gbit/s")

    def more(offered: float, card: float, core: float) -> int:
        return 0 if card >= offered else math.ceil((offered - card) / core)

    rows: list[list[object]] = []
    for offered in (100, 400):
        for which, (name, _) in enumerate(CARDS):
            for size in (64, 512, 1408):
                at = SIZES.index(size)
                alone, together = carried[which][at][0], carried[which][at][BUNDLES.index(32)]
                rows.append(
                    [
                        f"{offered} Gbit/s",
                        name,
                        size,
                        math.ceil(offered / rates[at]),
                        more(offered, alone, rates[at]),
                        more(offered, together, rates[at]),
                    ]
                )
    head = [
        "offered",
        "card",
        "bytes",
        "cores without it",
        "cores beside it, 1 packet in a job",
        "32 in a job",
    ]
    s.table("Cores", head, rows)


def who_is_sooner(s: Study, sooner: Claim) -> None:
    s.section("Who is done sooner")
    s.text("Latency from arrival at 10 Gbit/s of packets, which one core carries from 128 bytes on.")

    def at_10(file: str) -> list[float]:
        return latencies(s, file, 1)

    core = at_10("core.toml")
    lines = [s.series("one core", SIZES, core)]
    ratios: list[float] = []
    for (_, file), short in zip(CARDS, ("PCIe 4.0", "PCIe 5.0")):
        for bundle in (1, 8):
            found = latencies(s, file, bundle)
            lines.append(s.series(f"{short}, {bundle} in a job", SIZES, found))
            ratios += [card / own for size, card, own in zip(SIZES, found, core) if size >= 256]
    s.plot(
        "Total latency at 10 Gbit/s",
        x="bytes of a packet",
        y="mean (µs)",
        series=lines,
        log_x=True,
        log_y=True,
        note="Bundles wait at most 2 µs to fill.",
    )
    at = SIZES.index(1408)
    nearest = min(line.ys[at] for line in lines[1:])
    sooner.measured(
        ratios,
        f"1408 bytes: {time(core[at] * 1e-6)} on a core, {time(nearest * 1e-6)} on the card that is "
        "sooner; the ratio is "
        f"{digits(min(ratios))} to {digits(max(ratios))}",
        "A core takes 1.2 ns for a block and an engine 5 or 10: engines are many, not fast.",
    )


def latencies(s: Study, file: str, bundle: int) -> list[float]:
    """Mean latency in µs at 10 Gbit/s, for each size."""
    one = s.scenario(file).set("traffic.rate", "10 Gbit/s").set("traffic.arrivals", "poisson")
    if file != "core.toml":
        one = one.set("scheduler.window", bundle).set("scheduler.timeout", "2 us")
    return s.figures(s.sweep(one, "traffic.value", SIZES), "total_latency.mean_s", 1e6)


def study(s: Study) -> None:
    expected = declare(s)
    if s.wants("small-alone", "bundles", "large"):
        carrying(s, expected)
    if s.wants("sooner"):
        who_is_sooner(s, expected["sooner"])


def carrying(s: Study, expected: dict[str, Claim]) -> None:
    rates = core_alone(s)
    carried = worth(s, rates)
    alone = [gbit[0][0] / rates[0] for gbit in carried]
    expected["small-alone"].measured(alone, f"PCIe 4.0 {digits(alone[0])} cores, PCIe 5.0 {digits(alone[1])}")
    together = [gbit[0][BUNDLES.index(32)] / rates[0] for gbit in carried]
    expected["bundles"].measured(
        together, f"PCIe 4.0 {digits(together[0])} cores, PCIe 5.0 {digits(together[1])}"
    )
    at = SIZES.index(1408)
    shares = [carried[0][at][0] / 100.0, carried[1][at][0] / 400.0]
    bundled = [gbit[at][BUNDLES.index(32)] for gbit in carried]
    expected["large"].measured(
        shares,
        f"{digits(carried[0][at][0])} and {digits(carried[1][at][0])} Gbit/s",
        "t_init: 88 blocks take an engine of the first card 901 ns, and each job 500 ns before that. "
        "Tried: with 32 packets "
        f"in a job the cards carry {digits(bundled[0])} and {digits(bundled[1])} Gbit/s.",
    )
    cores_beside(s, rates, carried)
