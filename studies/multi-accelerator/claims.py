"""Claims of [H] and observations, with the parameters and the band of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from forebay.study import Parameter, Study, StudyScenario

ALPHA = [1, 2.5, 5, 7.5, 10, 50, 100, 500]
"""The paper's values of alpha (section 4.1); the first five are its low ones."""
LOW = 5
BETA = ["0 ns", "17.6 us", "660 us", "6.6 ms"]
"""The paper's values of beta (table 1)."""
PLACES = [1, 2, 4, 8]
"""Sizes k of write buffer and prefetch buffer."""
INIT = [0, 0.25, 0.5, 0.75, 1, 1.5, 2, 4]
"""t_init of all processors, us."""
INIT_TESTED = 5
"""The first so many are those with which a card carries about 230 Mbit/s."""
FINE_ALPHA = [100, 200, 300, 400, 450, 500, 550, 600, 650, 700, 800, 1000]
FINE_BETA = [8, 8.5, 9, 9.25, 9.5, 9.75, 10, 10.25, 10.5, 11]
"""Values of beta in ms at which the CPU's load falls."""
STEP = 0.02
"""A step the other way of 2 % of the whole fall counts as none: another seed moves the load by 0.2 points of 100."""


def declare(s: Study) -> None:
    """Declares all claims and observations, before the first run."""
    controls(s)
    cpu_claims(s)
    figure_claims(s)
    queue_claims(s)
    card_claims(s)
    enhanced_claims(s)
    order_claims(s)
    observations(s)


def controls(s: Study) -> None:
    """Wrong rules and other hosts, under which the claims that name them must fail."""

    def by_rule(one: StudyScenario, policy: str) -> StudyScenario:
        return one.set("scheduler.policy", policy) if one.value("scheduler.policy") == "finish-time" else one

    def cards(one: StudyScenario) -> bool:
        """Whether the cards are one entry of the file, and not one each with a bus of its own."""
        return one.value("processor.card.count") is not None

    def never_aware(one: StudyScenario) -> StudyScenario:
        return one.set("scheduler.prefetch_aware", False)

    def replaced(key: str, old: object, new: object) -> Callable[[StudyScenario], StudyScenario]:
        return lambda one: one.set(key, new) if one.value(key) == old else one

    def queues(old: int, new: int) -> Callable[[StudyScenario], StudyScenario]:
        keys = ("processor.cpu.queue", "processor.card.queue")
        return lambda one: one.set(keys[0], new).set(keys[1], new) if one.value(keys[1]) == old else one

    def fast_bus(one: StudyScenario) -> StudyScenario:
        names = [f"bus.{name}" for name in "abcd"] if one.value("bus.a") is not None else ["bus"]
        for name in names:
            one = one.set(f"{name}.clock", "6.6 GHz")
        return one

    def all_to_card(one: StudyScenario) -> StudyScenario:
        if one.value("scheduler.policy") != "finish-time" or not cards(one):
            return one
        return one.set("scheduler.policy", "single").set("scheduler.processor", "card")

    def blind_by_turns(one: StudyScenario) -> StudyScenario:
        both = one.value("processor.card.prefetch") and one.value("processor.card.write_buffer")
        return one if one.value("scheduler.prefetch_aware") or not both else by_rule(one, "round-robin")

    s.control(
        "turns", says="The processors get packets in turns.", change=lambda one: by_rule(one, "round-robin")
    )
    s.control("card-only", says="The scheduler gives every packet to the card too.", change=all_to_card)
    s.control(
        "busy", says="450 Mbit/s are offered where the claim says 200.",
        change=replaced("traffic.rate", 200e6, "450 Mbit/s"),
    )  # fmt: skip
    s.control(
        "calm", says="200 Mbit/s are offered where the claim says 1 Gbit/s.",
        change=replaced("traffic.rate", 1e9, "200 Mbit/s"),
    )  # fmt: skip
    s.control("long-queues", says="Queues of 50 have 1000 places.", change=queues(50, 1000))
    s.control("one-place", says="Queues of 50 have one place.", change=queues(50, 1))
    s.control("fast-bus", says="A transfer takes a hundredth of its time.", change=fast_bus)
    s.control(
        "two-for-one", says="The host with one card has two.", change=replaced("processor.card.count", 1, 2)
    )
    s.control(
        "no-prefetch", says="The prefetch buffer has no effect.",
        change=lambda one: never_aware(one.set("processor.card.prefetch", 0) if cards(one) else one),
    )  # fmt: skip
    s.control(
        "blind-turns", says="The scheduler that does not count prefetched packets takes the processors in turns.",
        change=blind_by_turns,
    )  # fmt: skip
    s.control(
        "unkept", says="The order is not kept.", change=lambda one: one.set("scheduler.keep_order", False)
    )
    s.control(
        "never-aware", says="Both schedulers do not count prefetched packets.",
        change=never_aware,
    )  # fmt: skip


def common(
    s: Study, beta: Sequence[str] | str = BETA, alpha: Sequence[float] | float = ALPHA
) -> list[Parameter]:
    """The parameters of the overloaded host with queues of 1000."""
    return [
        s.printed("traffic.rate", "1 Gbit/s", "section 4.2"),
        s.printed("processor.card.queue", 1000, "section 4.2: 1000 elements on the accelerators"),
        s.assumed("processor.cpu.queue", 1000, "not printed; in figure 2 the CPU is one more accelerator "
                                               "object"),
        s.printed("processor.cpu.alpha", list(alpha) if isinstance(alpha, Sequence) else alpha, "section 4.1"),
        s.printed("processor.cpu.beta", beta if isinstance(beta, str) else list(beta), "table 1"),
        s.printed("processor.cpu.throughput", "110 Mbit/s", "section 4.1"),
        s.assumed("processor.cpu.throughput_size", 640, "the size is not printed; 640 bytes are those of "
                                                        "table 1"),
        s.assumed("processor.card.init", "1 us", "t_init is not printed"),
        s.assumed("traffic.source", "paper", "a trace of the Internet Traffic Archive, whose name is not "
                                             "printed; sizes with the mean, median and deviation that [S] "
                                             "prints for it, in independent order"),
    ]  # fmt: skip


def but(parameters: Iterable[Parameter], *others: Parameter) -> list[Parameter]:
    """Parameters with others in the place of those with the same key, and before the rest."""
    keys = {one.key for one in others}
    return [*others, *(one for one in parameters if one.key not in keys)]


def cpu_claims(s: Study) -> None:
    """Figure 3."""
    two = common(s)
    both = but(two, s.printed("processor.card.queue", [1000, 50], "section 4.2"),
               s.assumed("processor.cpu.queue", [1000, 50], "not printed; as the cards'"))  # fmt: skip
    steps = (
        "the largest step upwards; the sentence allows none, and 2 % of the fall is above the difference between seeds. "
        "Since 26 November 2026 a load that stays the same does not count as falling: until then the band was a step "
        "of at most 0.2 %, which round-robin met"
    )
    s.claim(
        "cpu-load-alpha",
        control="turns",
        says="At every beta at which it has any, with queues of 1000 and of 50, the CPU's load falls over alpha, "
        "without a step upwards.",
        quote="The higher α0, the lower the CPU load",
        where="[H] section 4.2, figure 3",
        parameters=both,
        band=s.band(0, STEP, "of the fall from alpha 1 to 500", steps),
    )
    s.claim(
        "cpu-packets-alpha",
        control="turns",
        says="At every beta the number of packets on the CPU falls over alpha, without a step upwards.",
        quote="(and thus the number of packets processed by the CPU itself)",
        where="[H] section 4.2, figure 3",
        parameters=two,
        band=s.band(0, STEP, "of the fall from alpha 1 to 500", steps),
    )
    s.claim(
        "cpu-packets-beta",
        control="turns",
        says="At alpha 1, 2.5 and 5 the CPU has fewer packets with the largest beta than without beta.",
        quote="The higher β0, the lower the number of packets processed by the CPU, even for low values "
        "of α0.",
        where="[H] section 4.2, figure 3",
        parameters=common(s, alpha=ALPHA[:3]),
        band=s.band(
            None, 0.99, "times", "no number is printed; 1 % is five times the difference between seeds"
        ),
    )
    s.claim(
        "cpu-control",
        control="turns",
        says="Alpha and beta together change the CPU's load by more than half of the time.",
        quote="CPU usage can be controlled through the α0 and β0 parameters.",
        where="[H] section 4.2, figure 3",
        parameters=two,
        band=s.band(50, None, "percentage points", "no number is printed; control means most of the range"),
    )


def figure_claims(s: Study) -> None:
    """Figures 4 to 6."""
    two = common(s)
    follow = "no number is printed; a correlation of 0.95 leaves 10 % of the variance unexplained"
    init = s.assumed(
        "processor.card.init", [f"{one} us" for one in INIT[:INIT_TESTED]],
        "not printed; with 0 to 1 us a card carries 228 to 218 Mbit/s of the 640 byte packets of table 1, "
        "transfers included, and the paper prints about 230 Mbit/s",
    )  # fmt: skip
    s.claim(
        "throughput-follows",
        control="turns",
        says="Over all alpha and beta, throughput and CPU load are correlated.",
        quote="throughput changes accordingly with the CPU load",
        where="[H] section 4.2, figure 4",
        parameters=two,
        band=s.band(0.95, None, "", follow),
    )
    s.claim(
        "throughput-500",
        control="turns",
        says="Two cards and the CPU carry slightly more than 500 Mbit/s, with every t_init for which a "
        "card carries about 230 Mbit/s.",
        quote="systems maximum throughput is slightly more than 500Mbit/s",
        where="[H] section 4.2, figure 4",
        parameters=but(common(s, BETA[0], ALPHA[0]), init),
        band=s.band(500, 550, "Mbit/s", "printed: slightly more than 500, taken as at most a tenth more"),
    )
    s.claim(
        "latency-minimum",
        control="turns",
        says="Mean processing latency is lowest between the point with the most work on the CPU (alpha "
        "1, no beta) and the one with none (largest alpha and beta).",
        quote="Average processing latency has a minimum corresponding to the best trade off",
        where="[H] section 4.2, figure 5",
        parameters=two,
        band=s.band(None, 0.95, "times the lower of both ends", "no number is printed; visible in a figure"),
    )
    s.claim(
        "global-latency",
        control="turns",
        says="Over all alpha and beta, global latency falls as throughput grows.",
        quote="the higher the throughput, the lower the global latency",
        where="[H] section 4.2, figure 6",
        parameters=two,
        band=s.band(None, -0.95, "", follow),
    )
    s.claim(
        "global-latency-packets",
        control="calm",
        says="Global latency grows each time that the number of packets is doubled.",
        quote="the global latency in a saturated network increases with the number of considered packets",
        where="[H] section 4.2",
        parameters=common(s, BETA[0], ALPHA[0]),
        band=s.band(
            1.1, None, "times", "no number is printed; a tenth is above all differences between seeds"
        ),
    )


def queue_claims(s: Study) -> None:
    """Queues of 50, and 200 Mbit/s."""
    fifty = but(common(s), s.printed("processor.card.queue", 50, "section 4.2"),
                s.assumed("processor.cpu.queue", 50, "not printed; as the cards'"))  # fmt: skip
    slow = but(common(s), s.printed("traffic.rate", "200 Mbit/s", "section 4.2"))
    s.claim(
        "queue-50-similar",
        control="one-place",
        says="At every alpha and beta, throughput, global latency and CPU load are the same with 50 and "
        "1000.",
        quote="the results obtained concerning throughput, global latency, and CPU usage are very similar",
        where="[H] section 4.2",
        parameters=fifty,
        band=s.band(0.9, 1.1, "times; CPU load: 1 + difference", "no number is printed; a tenth"),
    )
    s.claim(
        "queue-50-amplified",
        control="turns",
        says="Alpha and beta take more load off the CPU with queues of 50 than with 1000.",
        quote="the effects obtained by changing the parameters α0 and β0 are amplified",
        where="[H] section 4.2",
        parameters=fifty,
        band=s.band(1.05, None, "times", "no number is printed; a twentieth, visible in a figure"),
    )
    s.claim(
        "queue-50-latency",
        control="long-queues",
        says="At every alpha and beta, processing latency is less than half with queues of 50.",
        quote="its values are considerably lower in the second case",
        where="[H] section 4.2",
        parameters=fifty,
        band=s.band(None, 0.5, "times", "no number is printed; considerably: half"),
    )
    s.claim(
        "calm-cpu",
        control="turns",
        says="At 200 Mbit/s the CPU is busy for less than a twentieth of the time at all alpha and beta.",
        quote="the CPU is barely used",
        where="[H] section 4.2",
        parameters=slow,
        band=s.band(None, 5, "% of the time", "no number is printed; barely: a twentieth"),
    )
    s.claim(
        "calm-unchanged",
        control="busy",
        says="At 200 Mbit/s throughput and processing latency are the same at all alpha and beta.",
        quote="both latency and throughput do not change with α0 and β0",
        where="[H] section 4.2",
        parameters=slow,
        band=s.band(1, 1.01, "times, largest by smallest", "printed: no change; 1 % for the measurement"),
    )
    s.claim(
        "calm-cards",
        control="turns",
        says="At 200 Mbit/s the cards process all packets at all alpha and beta.",
        quote="in this situation, all data traffic is always processed by the accelerators",
        where="[H] section 4.2",
        parameters=slow,
        band=s.band(99.9, 100, "% of the packets", "printed: all; one in a thousand for another trace"),
    )


def card_claims(s: Study) -> None:
    """Four cards, and one."""
    four = [s.printed("processor.card.count", 4, "section 4.2"), *common(s, BETA[0], ALPHA[0])]
    one = [s.printed("processor.card.count", 1, "section 4.2"), *common(s)]
    fine = but(
        one,
        s.assumed("processor.cpu.alpha", FINE_ALPHA, "without beta; the paper's list has no value between "
                                                     "100 and 500, where the load falls with one card and "
                                                     "with two"),
        s.assumed("processor.cpu.beta", [f"{ms} ms" for ms in FINE_BETA], "at alpha 1; the paper's list "
                                                                          "ends below 9 ms, where the load "
                                                                          "falls"),
    )  # fmt: skip
    s.claim(
        "four-bus",
        control="fast-bus",
        says="Four cards carry more if each has a bus of its own.",
        quote="In this case throughput was really limited by bus contention.",
        where="[H] section 4.2",
        parameters=four,
        band=s.band(1.05, None, "times", "no number is printed; a twentieth more without contention"),
    )
    s.claim(
        "cards-idle",
        control="fast-bus",
        says="With four cards on the bus, cards do not compute for a tenth of the time more than one card alone, "
        "which waits for its own transfers only.",
        quote="Coprocessors got idle in many cases waiting for the opportunity to write back the "
        "results in memory or to fetch data to be processed.",
        where="[H] section 4.3",
        parameters=but(four, s.printed("processor.card.count", [1, 4], "section 4.2")),
        band=s.band(
            10, None, "percentage points", "no number is printed; in many cases: a tenth of the time. Until 26 "
            "November 2026 idle time itself was tested, of which one card alone has a fifth"
        ),
    )
    s.claim(
        "one-card-similar",
        control="turns",
        says="Over all alpha and beta, throughput and both latencies change with one card as with two.",
        quote="Results similar to the ones shown above are obtained for throughput and latency.",
        where="[H] section 4.2",
        parameters=one,
        band=s.band(
            0.9, None, "correlation", "no number is printed; 0.9 is usually called a strong correlation"
        ),
    )
    s.claim(
        "one-card-alpha",
        control="two-for-one",
        says="The alpha and the beta at which the CPU's load falls below half are higher with one card "
        "than with two.",
        quote="higher values of α0 and β0 are needed to decrease main CPU usage",
        where="[H] section 4.2",
        parameters=fine,
        band=s.band(1.01, None, "times", "no number is printed; 1 % is above the differences between seeds"),
    )


def enhanced_claims(s: Study) -> None:
    """Section 4.3: figures 7 and 8."""
    base = [s.printed("processor.card.count", 1, "section 4.3"), *common(s, "17.6 us")]
    low = [base[0], *common(s, "17.6 us", ALPHA[:LOW])]
    size = "not printed; the paper calls the size of the prefetch buffer k"
    place = [*base, s.assumed("processor.card.write_buffer", 1, "not printed; the smallest"),
             s.assumed("processor.card.prefetch", 1, size)]  # fmt: skip
    places = [*base, s.assumed("processor.card.write_buffer", PLACES, "not printed; as prefetch"),
              s.assumed("processor.card.prefetch", PLACES, size)]  # fmt: skip
    improves = ("The scheduling algorithm, especially for low values of the α0 parameter, improves "
                "processing capability in terms of latency and throughput.")  # fmt: skip
    closer = ("The higher is the value of α0, the closer is the performance of our system without the "
              "scheduling algorithm to the one with the scheduler.")  # fmt: skip
    closer_by = (
        "the largest step away; the sentence allows none, and 2 % is above the difference between seeds. Since 26 November "
        "2026 a distance that stays the same does not count as getting closer"
    )
    same = ("The same performance improvement can be obtained by adopting either the write buffer or data "
            "prefetch")  # fmt: skip
    (
        claim_of(
            s,
            "scheduling-throughput",
            "card-only",
            improves,
            "8",
            low,
            (1.05, None, "times"),
            "At alpha 1 to 10 throughput is higher with the scheduler than without.",
            "no number is printed; a twentieth, visible in a figure",
        ),
    )
    (
        claim_of(
            s,
            "scheduling-latency",
            "card-only",
            improves,
            "7",
            low,
            (None, 0.95, "times"),
            "At alpha 1 to 10 mean processing latency is lower with the scheduler than without.",
            "no number is printed; a twentieth, visible in a figure",
        ),
    )
    (
        claim_of(
            s,
            "alpha-none-throughput",
            "turns",
            closer,
            "8",
            base,
            (0, STEP, "of the whole approach"),
            "Over alpha the ratio of both throughputs comes nearer to 1, without a step away from it.",
            closer_by,
        ),
    )
    (
        claim_of(
            s,
            "alpha-none-latency",
            "turns",
            closer,
            "7",
            base,
            (0, STEP, "of the whole approach"),
            "Over alpha the ratio of both processing latencies comes nearer to 1, without a step away from it.",
            closer_by,
        ),
    )
    (
        claim_of(
            s,
            "buffer-or-prefetch",
            "no-prefetch",
            same,
            "7, figure 8",
            places,
            (0.95, 1.05, "times"),
            "At every alpha and k, throughput and processing latency with a write buffer are those "
            "with prefetch.",
            "printed: the same; a twentieth, which a figure does not show",
        ),
    )
    (
        claim_of(
            s,
            "both-more",
            "no-prefetch",
            "By adopting both of them we can achieve some further benefits.",
            "7, figure 8",
            place,
            (1.01, None, "times"),
            "At every alpha both together give more throughput and less latency than the better one alone.",
            "no number is printed; 1 % is above the differences between seeds",
        ),
    )
    (
        claim_of(
            s,
            "prefetch-aware",
            "blind-turns",
            "does not give any valuable benefit in term of throughput",
            "8",
            places,
            (None, 1.01, "times"),
            "At every alpha and k, a scheduler that counts prefetched packets gains less than 1 % of "
            "throughput.",
            "no number is printed; valuable: 1 %",
        ),
    )
    (
        claim_of(
            s,
            "aware-worse",
            "never-aware",
            "In some cases this also worsens the average processing latency.",
            "7",
            places,
            (1.01, None, "times"),
            "At some alpha and k, counting prefetched packets raises mean processing latency by 1 % or more.",
            "no number is printed; 1 % is five times the difference between seeds",
        ),
    )
    s.claim(
        "small-on-cpu",
        control="turns",
        says="At some alpha and beta the CPU's packets are on average less than half as large as the cards'.",
        quote="There are values of α0 and β0 for which packets scheduled on the CPU are the smallest ones.",
        where="[H] section 4.3",
        parameters=common(s),
        band=s.band(None, 0.5, "times", "no number is printed; half"),
    )
    s.claim(
        "overload-most",
        control="calm",
        says="The scheduler gains more throughput at 1 Gbit/s than at 200 Mbit/s.",
        quote="it can provide a performance enhancement especially when the overall system is overloaded",
        where="[H] section 5",
        parameters=but(
            common(s, "17.6 us", ALPHA[0]),
            s.printed("traffic.rate", ["200 Mbit/s", "1 Gbit/s"], "section 4.2"),
            s.assumed(
                "processor.card.count",
                1,
                "the sentence names no number of cards; without the scheduler one card is used",
            ),
        ),
        band=s.band(1.05, None, "times", "no number is printed; a twentieth"),
    )


def claim_of(
    s: Study, name: str, control: str, quote: str, figures: str, parameters: list[Parameter],
    band: tuple[float | None, float | None, str], says: str, source: str,
) -> None:  # fmt: skip
    """A claim of section 4.3 about figure 7 or 8."""
    where = f"[H] section 4.3, figure {figures}"
    s.claim(
        name, control=control, says=says, quote=quote, where=where, parameters=parameters,
        band=s.band(*band, source),
    )  # fmt: skip


def order_claims(s: Study) -> None:
    """Section 3.2.1: the order in which packets leave."""
    one = s.assumed(
        "traffic.sas", 1, "not printed; all packets in one SA are the case in which order matters most, as of one tunnel"
    )
    s.claim(
        "order-few",
        control="busy",
        says="At 200 Mbit/s, at all alpha and beta, at most 5 % of the packets leave after a later one.",
        quote="not too many of them are processed out of order in normal conditions",
        where="[H] section 3.2.1",
        parameters=but(common(s), one, s.printed("traffic.rate", "200 Mbit/s", "section 4.2: not overloaded")),
        band=s.band(0, 5, "% of the packets", "no number is printed; not too many: one of twenty"),
    )
    s.claim(
        "order-ipsec",
        control="turns",
        says="At 1 Gbit/s, with queues of 1000 and of 50, no packet is 64 or more behind a later one: a receiver with a replay "
        "window of 64 takes all of them.",
        quote="This is not a problem for IPSec per se.",
        where="[H] section 3.2.1",
        parameters=but(
            common(s, BETA[0], ALPHA[0]),
            one,
            s.assumed("replay window", 64, "RFC 2401, of the paper's time, and RFC 4303 have 64 as the default"),
        ),
        band=s.band(0, 0, "% of the packets", "no problem: none is rejected as too old"),
    )


def observations(s: Study) -> None:
    """What no sentence of the paper says."""
    s.observation(
        "t-init-border",
        says="Two cards and the CPU carry 500 Mbit/s up to a t_init of about 1 us: throughput-500 depends "
        "on it.",
        band=s.band(0.9, 1.2, "us", "interpolated between the runs"),
        parameters=common(s, BETA[0], ALPHA[0]),
    )
    s.observation(
        "order-kept",
        control="unkept",
        says="If each packet waits for those before it of its SA, as in Forebay's gateway, none leaves after a later one.",
        band=s.band(0, 0, "packets", "by construction; the wait is what it costs"),
        parameters=[s.assumed("scheduler.keep_order", True, "[H] does not keep the order")],
    )
    s.observation(
        "latency-order",
        says="At alpha 1 the scheduler does not raise latency if sizes come in runs of ten packets or more.",
        band=s.band(None, 1, "times", "latency with the scheduler by that without"),
        parameters=[s.assumed("traffic.run_length", [10, 20, 50, 100], "the order of sizes is not printed")],
    )
