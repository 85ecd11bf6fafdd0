"""Unlike cards: suites, empty queues, packets that depend on each other, and keys

[H] writes its rule for accelerators that differ in speed and in the algorithms that they have, and tests it with like
ones. This study runs it with three unlike cards, two suites and 20 SAs. It also tests sentences that the figures of
[H] leave out: that a packet goes to the first fastest accelerator when all queues are empty, and that packets which
depend on each other can go always to the same processor, or wait until all data are there. At the end up to 10,000 SAs
share cards that have to load keys: should an SA stay at one card?

The CPU and the first card are those of [H]; the other cards, the suites, the SAs and the keys are assumed.
"""

from __future__ import annotations

from forebay.study import Claim, Study, StudyRun, StudyScenario, bits, digits, join, percent, time

# Mbit/s offered.
RATES = [100, 200, 300, 400, 500, 600, 800, 1000]
RULES = ["finish-time", "shortest-queue", "round-robin"]
# Setup times of the cards in us; the CPU's is 1 us.
INITS = [1, 2, 5, 10]
SAS = [1, 2, 5, 20, 100, 1000]
# SAs of 20 whose packets depend on each other.
DEPENDENT = [0, 1, 2, 5, 10, 20]
# SAs that share the cards' key slots.
TUNNELS = [10, 100, 1_000, 3_000, 10_000]
CARDS = ("card_a", "card_b", "card_c", "card_d")
BOTH = ["when-ready", "same-processor"]


def declare(s: Study) -> dict[str, Claim]:
    """What is expected, before any run."""

    def turns(one: StudyScenario) -> StudyScenario:
        return one.set("scheduler.policy", "round-robin") if one.value("scheduler.policy") == "finish-time" else one

    def rule_only(one: StudyScenario) -> StudyScenario:
        return one.set("scheduler.all_idle", "finish-time") if one.value("scheduler.all_idle") else one

    def all_suites(one: StudyScenario) -> StudyScenario:
        if one.value("traffic.passes") is None:
            return one
        return one.set("processor.aes.suites", ["aes", "3des"]).set("processor.3des.suites", ["aes", "3des"])

    def few(one: StudyScenario) -> StudyScenario:
        return one.set("traffic.sas", 10) if one.value("traffic.sas") in TUNNELS[1:] else one

    def free_keys(one: StudyScenario) -> StudyScenario:
        for card in CARDS if one.value("processor.card_a.key_load") else ():
            one = one.set(f"processor.{card}.key_load", 0).set(f"processor.{card}.session", 0)
        return one

    s.control("turns", says="The processors get packets in turns.", change=turns)
    s.control("free", says="Packets of an SA go to any processor.", change=lambda one: one)
    s.control("rule-only", says="Empty queues make no difference.", change=rule_only)
    s.control("all-suites", says="Every card has both suites.", change=all_suites)
    s.control("few-tunnels", says="There are ten SAs.", change=few)
    s.control("free-keys", says="Keys are loaded in no time.", change=free_keys)
    s.control(
        "slow-setup", says="The cards' setup takes 10 µs.",
        change=lambda one: one.set("processor.aes.init", "10 us").set("processor.both.init", "10 us")
        .set("processor.3des.init", "10 us"),
    )  # fmt: skip
    host = [
        s.assumed("processors", "CPU 110 Mbit/s; cards with t_block 440, 880 and 660 ns", "[H] prints the first two"),
        s.assumed("traffic.suites", ["aes", "3des"], "[H] names neither suites nor shares: half of the SAs each"),
        s.assumed("traffic.sas", 20, "not printed"),
    ]
    keys = [
        s.assumed("processor.*.key_slots", 1024, "in [H] keys cost nothing"),
        s.assumed("processor.*.key_load", "3 us", "in [H] keys cost nothing"),
        s.assumed("processor.*.session", "20 us", "in [H] keys cost nothing"),
    ]
    declared = [
        s.claim(
            "pinned-order",
            says="If all packets of an SA go to one processor, none leaves after a later one of its SA.",
            quote="the first one consists of scheduling the packets that show interdependencies always on the same "
            "accelerator. In this way precedence problems are automatically resolved.",
            where="[H] section 3.2.1",
            parameters=host,
            band=s.band(0, 0, "packets", "printed: resolved"),
            control="free",
        ),
        s.observation(
            "pinned-cost",
            says="With 20 SAs pinning them costs throughput under overload, because they do not fit the processors evenly.",
            band=s.band(None, 0.98, "times", "throughput over that of the rule at 1 Gbit/s; 2 % is above noise"),
            parameters=host,
            control="free",
        ),
        s.claim(
            "ready-order",
            says="If a packet is placed when the one before it of its SA is done, none leaves after a later one of its SA.",
            quote="The second, simpler, solution is to schedule a packet only when all data that are needed are available.",
            where="[H] section 3.2.1",
            parameters=host,
            band=s.band(0, 0, "packets", "by construction of the rule; the control shows that it is needed"),
            control="free",
        ),
        s.claim(
            "dependent-many",
            says="If the packets of all SAs depend on each other, either solution loses a tenth of the throughput under overload.",
            quote="If many packets exhibit data interdependencies, the scheduling algorithm may need to be radically changed.",
            where="[H] section 3.2.1",
            parameters=host,
            band=s.band(
                None, 0.9, "times", "throughput of the better solution over that without dependence, at 1 Gbit/s; no number is "
                "printed; a tenth"
            ),
            control="free",
        ),
        s.observation(
            "dependent-few",
            says="Where one SA of 20 depends on itself, at 200 Mbit/s, both solutions carry the traffic.",
            band=s.band(0.98, 1.02, "times", "throughput of the worse solution over that without dependence; 2 % is above noise"),
            parameters=host,
        ),
        s.observation(
            "passes-apart",
            says="With two passes of a packet and cards for one of them each, placing the second pass when the first is done "
            "carries half as much again as keeping both at one processor, which leaves out the cards that have one suite.",
            band=s.band(1.5, None, "times", "throughput of when-ready over that of same-processor, at 1 Gbit/s"),
            parameters=host,
            control="all-suites",
        ),
        s.observation(
            "keys-cost",
            says="With 10,000 SAs the rule carries less than 0.9 times what it carries where keys cost nothing.",
            band=s.band(None, 0.9, "times", "throughput over that without costs for keys; a tenth"),
            parameters=keys,
            control="few-tunnels",
        ),
        s.observation(
            "keys-affinity",
            says="With 3,000 SAs, which all four cards hold together and no card alone, staying at one card carries a twentieth more "
            "than the rule, although the rule knows which keys a card holds.",
            band=s.band(1.05, None, "times", "throughput with affinity over that of the rule, under overload"),
            parameters=keys,
            control="free-keys",
        ),
        s.observation(
            "keys-ten-thousand",
            says="With 10,000 SAs, more than all cards hold, staying at one card carries as much as the rule.",
            band=s.band(0.95, 1.05, "times", "throughput with affinity over that of the rule, under overload; a twentieth"),
            parameters=keys,
        ),
        s.observation(
            "empty-same",
            says="On this host it makes no difference that an empty system gives a packet to the fastest accelerator, for "
            "no packet would go to the CPU.",
            where="[H] section 3.2: the first fastest accelerator when all of the queues are empty",
            band=s.band(0.999, 1.001, "times", "mean latency over that of the rule, at 100 Mbit/s"),
            parameters=host,
            control="slow-setup",
        ),
        s.observation(
            "empty-slower",
            says="Where the cards' setup takes 10 µs, the sentence taken as a rule of its own costs latency, because the CPU "
            "would have been faster for small packets.",
            where="[H] section 3.2: the first fastest accelerator when all of the queues are empty",
            band=s.band(1.02, None, "times", "mean latency over that of the rule, at 100 Mbit/s"),
            parameters=host,
            control="rule-only",
        ),
        s.observation(
            "unlike-turns",
            says="With unlike cards and two suites the rule carries half as much again under overload as taking turns does.",
            band=s.band(1.5, None, "times", "throughput over that of round-robin, at 1 Gbit/s"),
            parameters=host,
            control="turns",
        ),
        s.observation(
            "unlike-shortest",
            says="The shortest queue carries as much under overload as the rule, for then it sends work to whatever is done "
            "first as well.",
            band=s.band(
                0.98, 1.02, "times", "throughput of the rule over that of the shortest queue, at 1 Gbit/s. Before the first run "
                "2 % more were expected of the rule, which did not come out: it was 1.005 times"
            ),
            parameters=host,
            control="turns",
        ),
    ]
    return {one.id: one for one in declared}


def rules(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("Rules")
    runs: dict[str, list[StudyRun]] = {}
    for rule in RULES:
        runs[rule] = s.sweep(host.set("scheduler.policy", rule), "traffic.rate", [f"{rate} Mbit/s" for rate in RATES])
    for title, unit, path, factor, log in (
        ("Throughput", "Mbit/s", "throughput_bps", 1e-6, False),
        ("Mean latency", "µs", "total_latency.mean_s", 1e6, True),
    ):
        lines = [s.series(rule, RATES, s.figures(runs[rule], path, factor)) for rule in RULES]
        s.plot(title, x="offered (Mbit/s)", y=unit, series=lines, log_y=log)
    last = runs["finish-time"][-1]
    names = ["cpu", "aes", "3des", "both"]
    rows = [[name, percent(last[f"{name}.load"]), last[f"{name}.packets"], last[f"{name}.mean_size"]] for name in names]
    s.table("The rule at 1 Gbit/s", ["processor", "busy", "packets", "mean size"], rows)
    rates = [runs[rule][-1]["throughput_bps"] for rule in RULES]
    found = f"{join(bits(rate) for rate in rates)} for {join(RULES)}"
    expected["unlike-turns"].measured(rates[0] / rates[2], found)
    expected["unlike-shortest"].measured(rates[0] / rates[1], found)


def empty_queues(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("When all queues are empty")
    s.text(
        """The rule compares finish times, and among equal ones prefers a card. [H] says besides that the first fastest
        accelerator gets the packet when all queues are empty. The two differ only where the CPU is the fastest for some
        packet, as with cards whose setup takes long."""
    )
    calm = host.set("traffic.rate", "100 Mbit/s")

    def latencies(one: StudyScenario) -> list[float]:
        runs = s.run([one, one.set("scheduler.all_idle", "accelerator")])
        return [run["total_latency.mean_s"] for run in runs]

    ratios = []
    rows: list[list[object]] = []
    for init in INITS:
        one = calm
        for card in ("aes", "3des", "both"):
            one = one.set(f"processor.{card}.init", f"{init} us")
        found = latencies(one)
        ratios.append(found[1] / found[0])
        rows.append([init, *(time(value) for value in found), ratios[-1]])
    s.table("Mean latency at 100 Mbit/s", ["t_init of the cards (µs)", "the rule", "with the sentence", "times"], rows)
    plain = latencies(calm)
    expected["empty-same"].measured(plain[1] / plain[0], f"{time(plain[1])} against {time(plain[0])}")
    expected["empty-slower"].measured(
        ratios[-1], f"{join(ratios)} times with a setup of {join(INITS)} µs"
    )


def needing(s: Study, host: StudyScenario, sas: int, solution: str) -> StudyScenario:
    """A host in which the first SAs depend on themselves."""
    if sas == 0 or s.under == "free":
        return host
    return host.set("traffic.dependent_sas", sas).set("scheduler.dependent", solution)


def dependent(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("Packets that depend on each other")
    s.text(
        """[H] names two solutions for protocols whose packets depend on each other. The first sends them always to the same
        processor. The second places a packet when all data are there, that is after the one before it is done. What belongs
        together is an SA here."""
    )
    rows: list[list[object]] = []
    found = {}
    for sas in SAS:
        one = host.set("traffic.sas", sas)
        three = s.run([one, *(needing(s, one, sas, way) for way in BOTH)])
        found[sas] = three
        rows.append([
            sas, *(run["throughput_bps"] / 1e6 for run in three),
            *(percent(run["order.late_share"]) for run in three), three[0]["order.distance_max"],
        ])  # fmt: skip
    head = [
        "SAs", "Mbit/s, free", *BOTH, "late, free", *BOTH, "farthest behind, free",
    ]  # fmt: skip
    s.table("All SAs depend on themselves, 1 Gbit/s offered", head, rows)
    free, ready, same = found[20]
    for name, run in (("pinned-order", same), ("ready-order", ready)):
        expected[name].measured(
            run["order.late"],
            f"{digits(run['order.late'])} of {digits(run['packets'])} packets, and {digits(free['order.late'])} without",
        )
    expected["pinned-cost"].measured(
        same["throughput_bps"] / free["throughput_bps"],
        f"{bits(same['throughput_bps'])} against {bits(free['throughput_bps'])}",
        "The processor of an SA is chosen with its first packet, when nothing is known of how much will come.",
    )
    both = [run["throughput_bps"] / free["throughput_bps"] for run in (ready, same)]
    alone = [run["throughput_bps"] / found[1][0]["throughput_bps"] for run in found[1][1:]]
    expected["dependent-many"].measured(
        max(both), f"{join(both)} times for {join(BOTH)}",
        "While a packet waits for the one before it, packets of the other SAs keep the processors busy. With one SA both "
        f"solutions carry {join(alone)} times as much as without dependence.",
    )
    some(s, host, expected)


def some(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    """Not all SAs depend on themselves."""
    for rate in ("200 Mbit/s", "1 Gbit/s"):
        rows: list[list[object]] = []
        few = []
        for sas in DEPENDENT:
            one = host.set("traffic.rate", rate)
            runs = s.run([needing(s, one, sas, way) for way in BOTH])
            if sas == 0:
                free = runs[0]["throughput_bps"]
            if sas == 1:
                few = [run["throughput_bps"] / free for run in runs]
            rows.append([
                sas, *(run["throughput_bps"] / 1e6 for run in runs), *(time(run["total_latency.mean_s"]) for run in runs),
            ])  # fmt: skip
        s.table(f"{rate} offered, 20 SAs", ["dependent SAs", "Mbit/s, when ready", "same processor",
                                            "mean latency, when ready", "same processor"], rows)  # fmt: skip
        if rate == "200 Mbit/s":
            expected["dependent-few"].measured(
                max(few, key=lambda ratio: abs(ratio - 1)), f"{join(few)} times for {join(BOTH)}"
            )


def passes(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("Packets with two passes")
    s.text(
        """A packet needs the suite aes and then 3des, as encryption and authentication would be. Two of the cards have one of
        them each. When the data are there, the second pass goes where it is done first. At the same processor both passes are
        one job, which crosses the bus once in each direction, and cards with one suite have nothing to do."""
    )
    rows: list[list[object]] = []
    for rate in RATES:
        runs = s.run([host.set("traffic.rate", f"{rate} Mbit/s").set("scheduler.dependent", way) for way in BOTH])
        rows.append([
            rate, *(run["throughput_bps"] / 1e6 for run in runs), *(time(run["total_latency.mean_s"]) for run in runs),
            *(percent(run["bus.load"]) for run in runs),
        ])  # fmt: skip
    s.table("Both solutions", ["Mbit/s offered", *BOTH, *(f"mean latency, {way}" for way in BOTH),
                               *(f"bus, {way}" for way in BOTH)], rows)  # fmt: skip
    rates = [run["throughput_bps"] for run in runs]
    expected["passes-apart"].measured(rates[0] / rates[1], f"{join(bits(rate) for rate in rates)} for {join(BOTH)}")


def keys(s: Study, host: StudyScenario, expected: dict[str, Claim]) -> None:
    s.section("Keys of up to 10,000 SAs")
    s.text(
        """Each of four cards holds the keys of 1024 SAs, fetches others in 3 µs in the place of those that it used the longest
        time ago, and creates a session for the first packet of an SA. The rule knows what a card will find. With affinity an
        SA stays at the card of its first packet. The first 50,000 packets are not counted."""
    )

    def free(one: StudyScenario) -> StudyScenario:
        for card in CARDS:
            one = one.set(f"processor.{card}.key_load", 0).set(f"processor.{card}.session", 0)
        return one

    ways = {
        "the rule": host, "affinity": host.set("scheduler.affinity", True),
        "in turns": host.set("scheduler.policy", "round-robin"), "the rule, keys cost nothing": free(host),
    }  # fmt: skip
    runs = {way: s.sweep(one, "traffic.sas", TUNNELS) for way, one in ways.items()}
    for title, unit, path, factor, log in (
        ("Throughput, 2 Gbit/s offered", "Mbit/s", "throughput_bps", 1e-6, False),
        ("Mean processing latency", "µs", "processing_latency.mean_s", 1e6, True),
    ):
        lines = [s.series(way, TUNNELS, s.figures(of, path, factor)) for way, of in runs.items()]
        s.plot(title, x="SAs", y=unit, series=lines, log_x=True, log_y=log)
    rows = [
        [sas, *(of[at]["throughput_bps"] / 1e6 for of in runs.values())] for at, sas in enumerate(TUNNELS)
    ]
    s.table("Mbit/s carried of 2 Gbit/s", ["SAs", *runs], rows)
    calm = {way: s.sweep(one.set("traffic.rate", "500 Mbit/s"), "traffic.sas", TUNNELS) for way, one in ways.items()}
    rows = [
        [sas, *(time(of[at]["total_latency.mean_s"]) for of in calm.values()),
         *(time(of[at]["total_latency.p99_s"]) for of in list(calm.values())[:2])]
        for at, sas in enumerate(TUNNELS)
    ]  # fmt: skip
    s.table("Latency at 500 Mbit/s", ["SAs", *(f"mean, {way}" for way in calm), "99 %, the rule", "99 %, affinity"], rows)

    def ratio(way: str, other: str, sas: int) -> tuple[float, str]:
        at = TUNNELS.index(sas)
        rates = [runs[one][at]["throughput_bps"] for one in (way, other)]
        return rates[0] / rates[1], f"{bits(rates[0])} against {bits(rates[1])}"

    expected["keys-cost"].measured(*ratio("the rule", "the rule, keys cost nothing", 10_000))
    expected["keys-affinity"].measured(*ratio("affinity", "the rule", 3_000))
    expected["keys-ten-thousand"].measured(
        *ratio("affinity", "the rule", 10_000),
        "Before the first run no difference was expected. Of the 2500 SAs that stay at a card it holds 1024, four in ten.",
    )


def study(s: Study) -> None:
    expected = declare(s)
    host = s.scenario("host.toml")
    if s.wants("unlike-turns", "unlike-shortest"):
        rules(s, host, expected)
    if s.wants("empty-same", "empty-slower"):
        empty_queues(s, host, expected)
    if s.wants("pinned-order", "pinned-cost", "ready-order", "dependent-many", "dependent-few"):
        dependent(s, host, expected)
    if s.wants("passes-apart"):
        passes(s, s.scenario("passes.toml"), expected)
    if s.wants("keys-cost", "keys-affinity", "keys-ten-thousand"):
        keys(s, s.scenario("tunnels.toml"), expected)
