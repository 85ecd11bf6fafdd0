"""The rule against others, and against the best possible

The host of [H] under every rule that the scheduler has: what the finish time brings against simpler
rules, what prediction of the bus, an alpha that follows the CPU's load and a window that follows the traffic
add, and how far all of them are from what no placement can beat. Nothing here is a sentence of a paper:
these are observations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from forebay.study import Claim, Series, Study, StudyRun, StudyScenario, bits, digits, join, percent, time

# Mbit/s offered.
RATES = [100, 200, 300, 350, 400, 450, 500, 550, 600, 800, 1000]
RULES = ["finish-time", "shortest-queue", "round-robin", "size-threshold", "single"]
SHARES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
SLOW = [25, 50, 100, 200, 300, 400, 600, 1000]
LOADS = [200, 300, 400, 450, 500, 550, 600, 800]
SMALL_RATES = [50, 100, 200, 400, 1000]
SEEDS = list(range(1, 41))
CLASSES = ["real-time", "interactive", "bulk"]
# The largest bulk packet on a card takes t_init, 97 blocks, and 386 bus cycles each way.
LARGEST_S = 1e-6 + 97 * 440e-9 + 2 * 386 / 66e6


def at_rates(scenario: StudyScenario, rates: Sequence[int]) -> list[StudyScenario]:
    return [scenario.set("traffic.rate", f"{rate} Mbit/s") for rate in rates]


def curves(
    s: Study,
    names: Sequence[str],
    xs: Sequence[float],
    runs: Sequence[Sequence[StudyRun]],
    path: str,
    factor: float,
) -> list[Series]:
    return [s.series(name, xs, s.figures(one, path, factor)) for name, one in zip(names, runs)]


def controls(s: Study) -> None:
    """Wrong rules, under which the observations that name them must fail."""
    policy, windowing = "scheduler.policy", "scheduler.windowing"

    def turns(one: StudyScenario) -> StudyScenario:
        return one.set(policy, "round-robin") if one.value(policy) == "finish-time" else one

    def fixed_alpha(one: StudyScenario) -> StudyScenario:
        return one.set(policy, "finish-time") if one.value(policy) == "adaptive-alpha" else one

    def adaptive_is(window: int) -> Callable[[StudyScenario], StudyScenario]:
        def change(one: StudyScenario) -> StudyScenario:
            adaptive = one.value(windowing) == "adaptive-window"
            return one.set(windowing, "fixed-window").set("scheduler.window", window) if adaptive else one

        return change

    def counted(one: StudyScenario) -> StudyScenario:
        return one.set("scheduler.predict_transfer", True) if one.value(policy) == "finish-time" else one

    def blind(one: StudyScenario) -> StudyScenario:
        return one.set("scheduler.by_class", False) if one.value("class") is not None else one

    def open_queues(one: StudyScenario) -> StudyScenario:
        return one.set("class.bulk.queue", 50) if one.value("class") is not None else one

    s.control("turns", says="The processors get packets in turns.", change=turns)
    s.control("fixed-alpha", says="Alpha stays at 1.", change=fixed_alpha)
    s.control("no-window", says="The adaptive window is none.", change=adaptive_is(1))
    s.control("full-window", says="The adaptive window is always 32.", change=adaptive_is(32))
    s.control("counted", says="The rule counts transfers.", change=counted)
    s.control("even", says="Packets come back to back.", change=lambda one: one.set("traffic.arrivals", "back-to-back"))
    s.control("blind", says="The scheduler does not distinguish classes.", change=blind)
    s.control("open-queues", says="Bulk may fill the processors' queues.", change=open_queues)


def declare(s: Study) -> dict[str, Claim]:
    """What is expected, before any run."""
    controls(s)
    one = s.observation
    expected = [
        one(
            "rule-loses-even",
            control="counted",
            says="Below overload, where packets come back to back, the shortest queue has the shorter latency: the rule does "
            "not count transfers.",
            band=s.band(
                1.05, None, "times", "mean latency of the rule over that of the shortest queue, at 400 and 450 Mbit/s"
            ),
        ),
        one(
            "rule-wins-poisson",
            control="even",
            says="Below overload with Poisson arrivals the rule has the shorter latency.",
            band=s.band(None, 0.98, "times", "the same ratio; 2 % is above the difference between seeds"),
        ),
        one(
            "rule-beats-simple",
            control="turns",
            says="Under overload the finish time carries more than simpler rules.",
            band=s.band(1.0, None, "times", "its throughput over that of the best of them; 1 Gbit/s offered"),
        ),
        one(
            "rule-near-bound",
            control="turns",
            says="Under overload the finish time comes within 5 % of what no placement can beat.",
            band=s.band(0.95, None, "", "its throughput over the bound, which may itself be out of reach"),
        ),
        one(
            "rule-near-optimum",
            control="turns",
            says="On eight packets at once the rule's mean latency is within a quarter of the optimum's.",
            band=s.band(
                1.0,
                1.25,
                "times",
                "mean over 40 seeds; the optimum knows all packets, the rule one at a time",
            ),
        ),
        one(
            "adaptive-alpha",
            control="fixed-alpha",
            says="The adaptive alpha leaves a CPU with other work the time for it.",
            band=s.band(
                None,
                101.0,
                "%",
                "crypto and other work together, for other work of 0 to 90 %; 1 % is the loop's",
            ),
        ),
        one(
            "adaptive-window",
            control="no-window",
            says="The adaptive window carries what the largest window does under overload.",
            band=s.band(
                0.97,
                None,
                "times",
                "throughput over that of W = 32 at 1 Gbit/s; 3 % for jobs that are cut short",
            ),
        ),
        one(
            "adaptive-window-idle",
            control="full-window",
            says="At low load the adaptive window waits for nothing.",
            band=s.band(None, 1.1, "times", "mean latency over that without a window, at 25 Mbit/s"),
        ),
        one(
            "classes-protect",
            control="blind",
            says="With classes, overload reaches real-time packets no further than the bulk in a "
            "processor's queue.",
            band=s.band(
                None,
                5e6 * LARGEST_S,
                "µs",
                "four bulk packets ahead and one in work, all the largest, on a card",
            ),
        ),
        one(
            "classes-lossless",
            control="blind",
            says="With classes no real-time packet is lost under overload.",
            band=s.band(0.0, 0.0, "packets", "800 Mbit/s offered, of which real-time is a small part"),
        ),
        one(
            "classes-places",
            control="open-queues",
            says="Places that bulk leaves free in the processors' queues at least halve the real-time "
            "packets' wait.",
            band=s.band(None, 0.5, "times", "99 % quantile with 4 places for bulk over that with 50"),
        ),
        one(
            "classes-cost",
            says="Classes cost no throughput.",
            band=s.band(
                0.97, None, "times", "throughput over that without classes, at 800 Mbit/s; 3 % is noise"
            ),
        ),
    ]
    return {claim.id: claim for claim in expected}


def rules(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("Rules")
    runs = [s.run(at_rates(host.set("scheduler.policy", rule), RATES)) for rule in RULES]
    bounds = [s.bound(one) for one in at_rates(host, RATES)]
    s.plot(
        "Throughput",
        x="offered (Mbit/s)",
        y="Mbit/s",
        series=[
            *curves(s, RULES, RATES, runs, "throughput_bps", 1e-6),
            s.series("bound", RATES, [one["throughput_bps"] * 1e-6 for one in bounds]),
        ],
        note="The bound is total work over total speed, bus included: no placement carries more.",
    )
    s.plot(
        "Processing latency",
        x="offered (Mbit/s)",
        y="mean (µs)",
        series=[
            *curves(s, RULES, RATES, runs, "processing_latency.mean_s", 1e6),
            s.series("bound", RATES, [one["total_latency_mean_s"] * 1e6 for one in bounds]),
        ],
        log_y=True,
        note="The bound is each packet's own best way through an empty host.",
    )
    first, *others = (one[-1]["throughput_bps"] for one in runs)
    names = join(["shortest queue", "round robin", "size threshold", "all to one card"])
    expected["rule-beats-simple"].measured(
        first / max(others),
        f"{bits(first)} against {join([bits(one) for one in others])} for {names}",
        "1 Gbit/s offered, two cards, queues of 50.",
    )
    bound = bounds[-1]["throughput_bps"]
    expected["rule-near-bound"].measured(
        first / bound, f"{percent(first / bound)} of the bound of {bits(bound)}"
    )


def small_cases(s: Study, near: Claim) -> None:
    s.section("Small cases, every placement tried")
    s.text(
        """Eight packets, a CPU and two unlike cards: the smallest possible makespan and mean latency by
        trying all placements and orders, over 40 seeds. The rule sees one packet at a time and keeps the
        order; the optimum knows all."""
    )
    tiny = s.scenario("tiny.toml")
    seeds = SEEDS[:4] if s.quick else SEEDS
    rows: list[list[object]] = []
    for rule in ("finish-time", "shortest-queue", "round-robin"):
        for rate in SMALL_RATES:
            one = tiny.set("traffic.rate", f"{rate} Mbit/s")
            runs = s.sweep(one.set("scheduler.policy", rule), "seed", seeds)
            spans: list[float] = []
            means: list[float] = []
            for seed, run in zip(seeds, runs):
                best = s.optimum(one.set("seed", seed))
                if best is not None:
                    spans.append(run["elapsed_s"] / best["elapsed_s"])
                    means.append(run["total_latency.mean_s"] / best["total_latency_mean_s"])
            if rule == "finish-time" and rate == SMALL_RATES[-1]:
                near.measured(
                    mean(means),
                    f"{digits(mean(means))} times on average, {digits(max(means))} times at worst",
                    "What is lost is order: the optimum serves short packets first, the rule in order of "
                    "arrival.",
                )
            rows.append([rule, rate, mean(spans), max(spans), mean(means), max(means)])
    head = ["rule", "offered (Mbit/s)", "makespan, mean", "worst", "latency, mean", "worst"]
    s.table("Times the optimum", head, rows)


def bus(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("Prediction that counts the bus")
    below_overload(s, host, expected)
    names = ["t_enc alone", "with transfers"]
    runs = [s.run(at_rates(one, RATES)) for one in (host, host.set("scheduler.predict_transfer", True))]
    for title, y, path, factor, log_y in (
        ("Processing latency", "mean (µs)", "processing_latency.mean_s", 1e6, True),
        ("Throughput", "Mbit/s", "throughput_bps", 1e-6, False),
        ("CPU load", "%", "cpu.load", 100.0, False),
    ):
        s.plot(
            title, x="offered (Mbit/s)", y=y, series=curves(s, names, RATES, runs, path, factor), log_y=log_y
        )


def below_overload(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    """Where the rule loses to the shortest queue, and what would mend it."""
    s.text(
        """Under overload the rule beats the shortest queue. Below it the rule loses where packets come back to back: it sends
        a packet to a card whose transfers wait for the bus, for it counts the cards' computation alone. With transfers counted
        (`predict_transfer`) both are alike. With Poisson arrivals queues differ more, and the rule wins."""
    )
    rows: list[list[object]] = []
    ratios: dict[str, list[float]] = {}
    for arrivals in ("back-to-back", "poisson"):
        ratios[arrivals] = []
        for rate in (350, 400, 450):
            one = host.set("traffic.arrivals", arrivals).set("traffic.rate", f"{rate} Mbit/s")
            ways = [one, one.set("scheduler.policy", "shortest-queue"), one.set("scheduler.predict_transfer", True)]
            rule, shortest, counting = (run["total_latency.mean_s"] for run in s.run(ways))
            if rate >= 400:
                ratios[arrivals].append(rule / shortest)
            rows.append([arrivals, rate, time(rule), time(shortest), time(counting)])
    head = ["arrivals", "offered (Mbit/s)", "the rule", "shortest queue", "the rule, transfers counted"]
    s.table("Mean latency below overload", head, rows)
    for name, arrivals in (("rule-loses-even", "back-to-back"), ("rule-wins-poisson", "poisson")):
        expected[name].measured(
            ratios[arrivals], f"{join(ratios[arrivals])} times that of the shortest queue, at 400 and 450 Mbit/s"
        )


def alpha(s: Study, host: StudyScenario, adaptive: Claim) -> None:
    s.section("An alpha that follows the CPU's load")
    s.text(
        """The CPU does other work for a share of its time and reports that; alpha rises while both together
        are above 90 % and falls below 70 %. 1 Gbit/s offered."""
    )
    key = "processor.cpu.others"
    names = ["alpha 1", "alpha 10", "alpha 50", "adaptive"]
    runs = [s.sweep(host.set("processor.cpu.alpha", one), key, SHARES) for one in (1, 10, 50)]
    runs.append(s.sweep(host.set("scheduler.policy", "adaptive-alpha"), key, SHARES))
    percents = [100.0 * share for share in SHARES]
    demands = [[100.0 * (run["cpu.load"] + share) for run, share in zip(one, SHARES)] for one in runs]
    s.plot(
        "Demand on the CPU: crypto and other work",
        x="other work (%)",
        y="demand (%)",
        series=[s.series(name, percents, demand) for name, demand in zip(names, demands)],
        note="Above 100 % is too much.",
    )
    throughput = curves(s, names, percents, runs, "throughput_bps", 1e-6)
    s.plot("Throughput", x="other work (%)", y="Mbit/s", series=throughput)
    adaptive.measured(
        demands[-1],
        f"demand {join(demands[-1])} % for other work of {join(percents)} %",
        "It is a loop with marks at 70 and 90 %: it holds the mean between them where crypto can give way.",
    )


def window(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("A window that follows the traffic")
    s.text(
        """t_init 3 µs on the CPU and 2 µs on the card, 8 SAs, payloads as in [H]; the fixed windows wait for
        ever unless a timeout is named."""
    )
    base = host.set("traffic.sas", 8).set("processor.card.init", "2 us").set("processor.cpu.init", "3 us")
    wide = base.set("scheduler.window", 32)
    setups = {
        "no window": base,
        "W = 8": base.set("scheduler.window", 8),
        "W = 32": wide,
        "W = 32, 50 µs": wide.set("scheduler.timeout", "50 us"),
        "adaptive to 32": wide.set("scheduler.windowing", "adaptive-window"),
    }
    names = list(setups)
    runs = [s.run(at_rates(one, SLOW)) for one in setups.values()]
    latency = curves(s, names, SLOW, runs, "total_latency.mean_s", 1e6)
    s.plot("Total latency", x="offered (Mbit/s)", y="mean (µs)", series=latency, log_x=True, log_y=True)
    throughput = curves(s, names, SLOW, runs, "throughput_bps", 1e-6)
    s.plot("Throughput", x="offered (Mbit/s)", y="Mbit/s", series=throughput, log_x=True)
    packets = curves(s, names, SLOW, runs, "packets_per_job", 1.0)
    s.plot("Packets in a job", x="offered (Mbit/s)", y="packets", series=packets, log_x=True)
    none, large, adaptive = runs[0], runs[2], runs[4]
    full = [one[-1]["throughput_bps"] for one in (adaptive, large, none)]
    expected["adaptive-window"].measured(
        full[0] / full[1],
        f"{bits(full[0])} against {bits(full[1])} with W = 32 and {bits(full[2])} without a window",
    )
    idle = [one[0]["total_latency.mean_s"] for one in (adaptive, large, none)]
    expected["adaptive-window-idle"].measured(
        idle[0] / idle[2],
        f"{time(idle[0])} against {time(idle[2])} without a window and {time(idle[1])} with W = 32",
    )


def classes(s: Study, expected: dict[str, Claim]) -> None:
    s.section("Service classes")
    s.text(
        """A fifth of the packets is real-time (160 bytes, strict), a tenth interactive and the rest bulk
        (IMIX), which share by 4 to 1. An input of 1000 packets for each class; without classes, one of 1000
        for all in the order of arrival."""
    )
    served = s.scenario("classes.toml")
    setups = {
        "no classes": served.set("scheduler.by_class", False),
        "classes": served.set("class.bulk.queue", 50),
        "classes, bulk has 4 places": served,
    }
    names = list(setups)
    runs = [s.run(at_rates(one, LOADS)) for one in setups.values()]
    for name in CLASSES:
        quantiles = curves(s, names, LOADS, runs, f"{name}.total_latency.p99_s", 1e6)
        title = f"Latency of {name} packets"
        s.plot(title, x="offered (Mbit/s)", y="99 % quantile (µs)", series=quantiles, log_y=True)
    throughput = curves(s, names, LOADS, runs, "throughput_bps", 1e-6)
    s.plot("Throughput", x="offered (Mbit/s)", y="Mbit/s", series=throughput)
    rows: list[list[object]] = []
    for name, one in zip(names, runs):
        for kind in CLASSES:
            latency = [time(one[-1][f"{kind}.total_latency.{which}_s"]) for which in ("mean", "p99")]
            rows.append([name, kind, one[-1][f"{kind}.packets"], one[-1][f"{kind}.lost"], *latency])
    s.table("At 800 Mbit/s", ["", "class", "packets", "lost", "mean", "99 %"], rows)
    class_claims(expected, *runs)


def class_claims(
    expected: dict[str, Claim], blind: list[StudyRun], open_queues: list[StudyRun], classed: list[StudyRun]
) -> None:
    path = "real-time.total_latency.p99_s"
    quiet, full = classed[0][path], classed[-1][path]
    expected["classes-protect"].measured(
        1e6 * full,
        f"99 % of them take {time(full)} at 800 Mbit/s offered ({time(quiet)} at 200 Mbit/s), "
        f"{time(blind[-1][path])} "
        "without classes",
        "Four bulk packets may wait ahead of one, and a fifth be computed.",
    )
    lost = [one[-1]["real-time.lost"] for one in (classed, blind)]
    expected["classes-lossless"].measured(
        lost[0], f"{digits(lost[0])} lost, without classes {digits(lost[1])}"
    )
    expected["classes-places"].measured(
        full / open_queues[-1][path],
        f"{time(full)} with 4 places for bulk, {time(open_queues[-1][path])} with 50",
        "An urgent packet passes bulk before the scheduler, never in a processor's queue.",
    )
    rates = [one[-1]["throughput_bps"] for one in (classed, blind)]
    expected["classes-cost"].measured(
        rates[0] / rates[1], f"{bits(rates[0])} against {bits(rates[1])} at 800 Mbit/s offered"
    )


def study(s: Study) -> None:
    expected = declare(s)
    host = s.scenario("papers.toml")
    if s.wants("rule-beats-simple", "rule-near-bound"):
        rules(s, host, expected)
    if s.wants("rule-near-optimum"):
        small_cases(s, expected["rule-near-optimum"])
    if s.wants("rule-loses-even", "rule-wins-poisson"):
        bus(s, host, expected)
    if s.wants("adaptive-alpha"):
        alpha(s, host, expected["adaptive-alpha"])
    if s.wants("adaptive-window", "adaptive-window-idle"):
        window(s, host, expected)
    if s.wants("classes-protect", "classes-lossless", "classes-places", "classes-cost"):
        classes(s, expected)
