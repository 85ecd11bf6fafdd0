"""How many cores does one SA use?

One SA's packets go through a gateway of 1, 2, 4, 8 and 16 cores under overload. One core moves every packet:
it receives, prepares, hands over, completes and sends. Crypto goes to whichever core is predicted to finish
it first, in batches, and the packets leave in their order. More cores help until the running core does
nothing but move.

All costs are placeholders: cores.toml has those of moving and handing over, COSTS those of the suites.
Replace both by what `forebay bench processors --save` measures on your machine: `forebay study copy scaling
DIR`.
"""

from __future__ import annotations

from forebay.study import Claim, Study, StudyRun, StudyScenario, digits, percent, rises

# Suite, t_init and t_block in seconds, and jobs that are computed side by side.
COSTS = [
    ("3des-sha1", 1e-6, 2.02e-6, 16),
    ("aes256-sha512", 1.2e-6, 130e-9, 8),
    ("aes128gcm16", 25e-9, 1.2e-9, 1),
]
SIZES = [1408, 64]
CORES = [1, 2, 4, 8, 16]
ALPHAS = [1, 2, 3, 5]
# A running core that does other things than crypto for more than this share of its time is the limit.
LIMIT = 0.95


def of_suite(scenario: StudyScenario, cost: tuple[str, float, float, int]) -> StudyScenario:
    for name in ("core", "worker"):
        scenario = (
            scenario.set(f"processor.{name}.init", cost[1])
            .set(f"processor.{name}.block", cost[2])
            .set(f"processor.{name}.lanes", cost[3])
        )
    return scenario


def of_all(s: Study, scenario: StudyScenario) -> list[StudyRun]:
    """Runs of all numbers of cores; where there is one, nothing is placed on the worker of the file."""
    one = scenario.set("scheduler.policy", "single").set("scheduler.processor", "core")
    more = [scenario.set("processor.worker.count", count - 1) for count in CORES[1:]]
    return s.run([one, *more])


def controls(s: Study) -> None:
    """Wrong rules and another host, under which the statements that name them must fail."""

    def ruled(one: StudyScenario) -> bool:
        """Whether the rule places packets, and not what the runs of one core say."""
        return bool(one.value("scheduler.policy") == "finish-time")

    def turns(one: StudyScenario) -> StudyScenario:
        return one.set("scheduler.policy", "round-robin") if ruled(one) else one

    def alone(one: StudyScenario) -> StudyScenario:
        return one.set("scheduler.policy", "single").set("scheduler.processor", "core") if ruled(one) else one

    def free(one: StudyScenario) -> StudyScenario:
        for key in ("core.move", "worker.submit", "worker.wake", "worker.feed", "worker.feed_block"):
            one = one.set(f"processor.{key}", 0)
        return one

    def swapped(one: StudyScenario) -> StudyScenario:
        alpha = one.value("processor.core.alpha")
        return one.set("processor.worker.alpha", alpha).set("processor.core.alpha", 1)

    s.control("alone", says="The running core keeps every packet.", change=alone)
    s.control("free", says="Moving packets and handing them over costs nothing and takes no time.", change=free)
    s.control("turns", says="The cores get packets in turns.", change=turns)
    s.control("swapped", says="The alpha is that of the other cores.", change=swapped)


def declare(s: Study) -> dict[str, Claim]:
    """What is expected, before any run; nothing here is a sentence of a paper."""
    controls(s)
    return {
        "slow-crypto": s.observation(
            "slow-crypto",
            says="Where crypto takes most of the time, 16 cores carry at least 8 times what one does.",
            control="alone",
            band=s.band(8.0, None, "times", "3des-sha1, 1408 bytes: half of the cores' number"),
        ),
        "fast-crypto": s.observation(
            "fast-crypto",
            says="Where handing over costs more than enciphering, other cores do not help.",
            control="free",
            band=s.band(
                0.9, 1.1, "times", "aes128gcm16, 64 bytes, the best number of cores over one; 10 % is noise"
            ),
        ),
        "monotonic": s.observation(
            "monotonic",
            says="No further core makes the gateway slower by more than 5 %.",
            control="turns",
            band=s.band(
                0.95, None, "times", "throughput over that of half as many cores, every suite and size"
            ),
        ),
        "alpha": s.observation(
            "alpha",
            says="An alpha of 3 on the running core makes slow crypto on 16 cores no slower.",
            control="swapped",
            band=s.band(1.0, None, "times", "3des-sha1, 1408 bytes, alpha 3 over alpha 1"),
        ),
    }


def by_size(s: Study, size: int, summary: list[list[object]]) -> dict[str, list[float]]:
    """Throughput in Gbit/s by suite, for each number of cores."""
    s.section(f"Packets of {size} bytes")
    found: dict[str, list[float]] = {}
    rows: list[list[object]] = []
    lines, moving = [], []
    for cost in COSTS:
        runs = of_all(s, of_suite(s.scenario("cores.toml").set("traffic.value", size), cost))
        rates = s.figures(runs, "throughput_bps", 1e-9)
        moves, feeds = s.figures(runs, "running_core.moving"), s.figures(runs, "running_core.feeding")
        holds = s.figures(runs, "running_core.reorder_hold.mean_s", 1e6)
        busy = [move + feed for move, feed in zip(moves, feeds)]
        for at, count in enumerate(CORES):
            packets = rates[at] * 1e3 / 8.0 / size
            times = rates[at] / rates[0]
            rows.append(
                [cost[0], count, rates[at], packets, times, percent(moves[at]), percent(feeds[at]), holds[at]]
            )
        lines.append(s.series(cost[0], CORES, rates))
        moving.append(s.series(cost[0], CORES, [100.0 * share for share in busy]))
        best = max(rates)
        limit = next((count for count, share in zip(CORES, busy) if share > LIMIT), None)
        if limit is not None:
            where = f"from {limit} cores on"
        else:
            where = "with one core: it keeps the packets" if best < 1.02 * rates[0] else "beyond 16 cores"
        summary.append([cost[0], size, rates[0], best, best / rates[0], where])
        found[cost[0]] = rates
    s.plot(f"{size} bytes: throughput by cores", x="cores", y="Gbit/s", series=lines, log_x=True, log_y=True)
    s.plot(
        f"{size} bytes: time of the running core for other things than crypto",
        x="cores",
        y="share of its time (%)",
        series=moving,
        log_x=True,
    )
    head = [
        "suite",
        "cores",
        "Gbit/s",
        "Mpacket/s",
        "times one core",
        "moving",
        "handing over",
        "mean wait for the order (µs)",
    ]
    s.table(f"{size} bytes", head, rows)
    return found


def alphas(s: Study) -> dict[str, list[list[float]]]:
    """Gbit/s by suite: a list for each alpha, with a value for each number of cores."""
    s.section("A running core that gives more away")
    s.text(
        """While the running core computes, it hands nothing over, and the other cores run out of work. The
        papers' alpha keeps it free: its finish times count alpha times. That helps under overload where
        crypto is what takes the time; where handing a packet over costs more than enciphering it, it costs
        throughput."""
    )
    found: dict[str, list[list[float]]] = {}
    rows: list[list[object]] = []
    for cost in COSTS:
        base = of_suite(s.scenario("cores.toml"), cost)
        rates = [
            s.figures(of_all(s, base.set("processor.core.alpha", alpha)), "throughput_bps", 1e-9)
            for alpha in ALPHAS
        ]
        found[cost[0]] = rates
        rows += [[cost[0], count, *(one[at] for one in rates)] for at, count in enumerate(CORES)]
    head = ["suite", "cores", *(f"alpha {alpha}" for alpha in ALPHAS)]
    s.table("1408 bytes: Gbit/s by alpha of the running core", head, rows)
    return found


def throughput(s: Study, expected: dict[str, Claim]) -> None:
    summary: list[list[object]] = []
    found = {size: by_size(s, size, summary) for size in SIZES}
    slow = found[1408]["3des-sha1"]
    expected["slow-crypto"].measured(
        slow[-1] / slow[0], f"{digits(slow[-1])} against {digits(slow[0])} Gbit/s"
    )
    fast = found[64]["aes128gcm16"]
    expected["fast-crypto"].measured(
        max(fast) / fast[0], f"{digits(max(fast))} against {digits(fast[0])} Gbit/s"
    )
    steps = [
        after / before
        for one in found.values()
        for rates in one.values()
        for before, after in zip(rates, rates[1:])
    ]
    every = all(rises(rates, 0.05) for one in found.values() for rates in one.values())
    expected["monotonic"].measured(
        steps,
        f"the least is {digits(min(steps))} times",
        "" if every else "A core that is handed packets costs the running core more than it takes off it.",
    )
    s.section("The limit")
    s.text(
        """The running core is the limit where it does nothing but move packets and hand them over; where
        handing over costs more than enciphering, it keeps the packets, and others do not help."""
    )
    head = [
        "suite",
        "bytes",
        "Gbit/s on one core",
        "Gbit/s at most",
        "times",
        "the running core is the limit",
    ]
    s.table("One SA over 1 to 16 cores", head, summary)


def study(s: Study) -> None:
    expected = declare(s)
    if s.wants("slow-crypto", "fast-crypto", "monotonic"):
        throughput(s, expected)
    if s.wants("alpha"):
        three = alphas(s)["3des-sha1"]
        first, third = three[ALPHAS.index(1)][-1], three[ALPHAS.index(3)][-1]
        expected["alpha"].measured(third / first, f"{digits(third)} against {digits(first)} Gbit/s on 16 cores")
