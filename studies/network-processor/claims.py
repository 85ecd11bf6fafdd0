"""Claims of [N] and observations, with the parameters and the band of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forebay.study import Parameter, Study, StudyScenario, join

# Loads that Lin et al. have, in packets per second (section 6: "3 to 1000 packets per second").
LIN_RATES = [3, 10, 30, 100, 300, 1000]
RUNS = 20
# Single runs that a printed largest value is compared with.
SINGLE_RUNS = 100
# Engines that wait for memory: what inspection takes, and the shares of it at the memory that are compared.
INSPECTION_US = 49.0
MEMORY_LIGHT, MEMORY_HEAVY = 0.1, 0.6
MEMORY_RUNS = 4
BUFFERS_OF_LIN = [3, 10, 30, 100, 1000]


def declare(s: Study) -> None:
    """Declares all claims and observations, before the first run."""
    controls(s)
    claims = Claims(s)
    claims.load_claims()
    claims.queue_claims()
    claims.buffer_claims()
    claims.utilisation_claims()
    claims.conclusions()
    claims.delay_claims()
    claims.memory()
    claims.observations()


def controls(s: Study) -> None:
    """Wrong schemes and other systems, under which the claims that name them must fail, and the printed run length."""
    discipline, run_length = "server.core.discipline", "server.core.run_length"

    def one_scheme(one: StudyScenario) -> StudyScenario:
        return one.set(discipline, "busy-waiting") if one.value(discipline) is not None else one

    def all_turns(one: StudyScenario) -> StudyScenario:
        if one.value(discipline) != "busy-waiting":
            return one
        return one.set(discipline, "interrupt-driven").set(run_length, "40 us")

    def exponential(one: StudyScenario) -> StudyScenario:
        return one.set("service", "exponential") if one.value("overflow") == "drop" else one

    def fast_core(one: StudyScenario) -> StudyScenario:
        if one.value("stage.preprocess.time") is None:
            return one
        return one.set("stage.preprocess.time", "1 us").set("stage.ip.time", "1 us")

    def at(gap: str) -> Callable[[StudyScenario], StudyScenario]:
        return lambda one: one.set("arrivals.mean", gap) if one.value("arrivals.mean") is not None else one

    def one_thread(one: StudyScenario) -> StudyScenario:
        threads = one.value("server.inspection.contexts")
        return one.set("server.inspection.contexts", 1) if threads is not None else one

    def own_memory(one: StudyScenario) -> StudyScenario:
        return one.set("server.sdram.cores", 4) if one.value("server.sdram.cores") is not None else one

    def as_printed(one: StudyScenario) -> StudyScenario:
        fitted = one.value(discipline) == "interrupt-driven" and one.value(run_length) == 40e-6
        return one.set(run_length, "500 ms") if fitted else one

    s.control("one-scheme", says="Both schemes are busy-waiting.", change=one_scheme)
    s.control("all-turns", says="Busy-waiting is interrupt-driven too.", change=all_turns)
    s.control("exponential", says="Times are exponential and not constant.", change=exponential)
    s.control("fast-core", says="The core takes 1 µs for each of its stages.", change=fast_core)
    s.control("one-load", says="Packets come every 0.07 ms, whatever the load that the claim names.", change=at("70 us"))
    s.control("rare", says="Packets come every 0.2 ms, whatever the load that the claim names.", change=at("200 us"))
    s.control("one-thread", says="No engine has more than one thread.", change=one_thread)
    s.control("own-memory", says="Each engine has a memory of its own.", change=own_memory)
    s.reading(
        "the printed run length",
        says="The run length is 0.5 s, as section 6 prints it, and not the fitted 40 µs.",
        change=as_printed,
    )


class Claims:
    """The claims and observations, with their bands, and the parameters that several have."""

    def __init__(self, s: Study) -> None:
        self.s = s
        self.times = s.printed(
            "stage.*.time, stage.*.buffer, duration",
            "27.3, 32, 12.6, 49, 27.3 µs; 100 that wait; 0.5 s",
            "table II; section 4.2, queues M/M/1/100; section 5",
        )
        self.loads = s.printed("arrivals.mean", "0.07 to 0.1 ms by 0.005", "section 5")
        self.highest = s.assumed(
            "arrivals.mean", "0.07 ms", "the sentence names no load; the receiver is 60 % idle at the highest"
        )
        self.run_length = s.assumed(
            "server.core.run_length",
            "40 µs",
            "0.5 s is printed (section 6), the length of the experiment; figure 12 comes out with 33 to 48 "
            "µs",
        )
        self.switch = s.assumed("server.core.switch_delay", 0, "table II has no time for a switch")
        self.repeats = s.assumed(
            "runs", RUNS, "the paper has one run and names no seed; means of 20 are tested"
        )

    def base(self, *more: Parameter) -> list[Parameter]:
        """The parameters that all runs over the paper's loads have."""
        return [self.times, self.run_length, self.switch, self.repeats, *more]

    def load_claims(self) -> None:
        s = self.s
        s.claim(
            "id-processes-more",
            control="one-scheme",
            says="Interrupt-driven processes more packets than busy-waiting, at each of the loads at which the core of "
            "busy-waiting is full (its 93.6 µs for a packet are more than the time between packets).",
            quote="It is obvious from Figure (9) that the ID system has superior performance over BW.",
            where="[N] section 5, figure 9",
            parameters=self.base(self.loads),
            band=s.band(
                1.01,
                None,
                "times",
                "superior: a hundredth more, for no values are printed. At lower loads both process all that comes; until 26 "
                "November 2026 equality was enough, which two equal schemes have",
            ),
        )
        s.claim(
            "losses-rise",
            control="one-load",
            says="Both schemes lose more packets the shorter the mean time between packets is: losses fall over it, "
            "without a step upwards.",
            quote="the lost packets are increased by decreasing the mean value of the arriving packets",
            where="[N] section 5, figure 10",
            parameters=self.base(self.loads),
            band=s.band(
                0.0,
                0.01,
                "of the fall",
                "the largest step upwards; none is allowed, and 1 % is above the differences between runs. Until 26 November "
                "2026 losses that stay the same counted as rising",
            ),
        )
        s.claim(
            "bw-capacity",
            control="one-scheme",
            says="Busy-waiting loses more packets than interrupt-driven over the seven loads together, and fewer at none.",
            quote="The BW has lower capacity to accommodate the high arrival packets",
            where="[N] section 5, figure 10",
            parameters=self.base(self.loads),
            band=s.band(
                -0.01,
                None,
                "of the sum of differences",
                "lower capacity: the least difference BW less ID, of their sum, which must be above zero; 1 % is above the "
                "differences between runs. Until 26 November 2026 no difference at any load was enough",
            ),
        )

    def queue_claims(self) -> None:
        s = self.s
        level = s.band(
            0.05,
            None,
            "share",
            "the printed value is one run's: rejected below 5 %, the usual level of significance",
        )
        single = s.assumed(
            "seed", f"1 to {SINGLE_RUNS}", "single runs, as the paper's, at 0.07 ms where queues are longest"
        )
        s.claim(
            "fifo-1",
            control="rare",
            says="The largest number of packets in FIFO 1 is 4, in both schemes.",
            quote="fifo (1) has four as the highest number",
            where="[N] section 5, figures 11 and 12",
            parameters=[self.times, self.highest, single],
            band=level,
        )
        s.claim(
            "bw-fifo-2",
            control="fast-core",
            says="Busy-waiting: FIFO 2 holds the most packets of the three, at each of the seven loads.",
            quote="Due to the long processing time/packet of the Core, Fifo(2) has the highest number.",
            where="[N] section 5, figure 11",
            parameters=self.base(self.loads),
            band=s.band(1.0, None, "times", "the highest: FIFO 2 over the larger of FIFO 1 and 3"),
        )
        s.claim(
            "bw-overflow",
            control="all-turns",
            says="Busy-waiting: FIFO 2 reaches its limit of 100 packets at the highest load, and packets are "
            "lost.",
            quote="Because of this limitation some of the arriving packets discarded due to the overflow.",
            where="[N] section 5, figure 11",
            parameters=self.base(self.highest),
            band=s.band(100.0, 100.0, "packets", "printed: the maximum size of 100 packets"),
        )
        s.claim(
            "bw-fifo-3",
            control="exponential",
            says="Busy-waiting: FIFO 3 is empty at each of the seven loads.",
            quote="fifo (3) is always empty",
            where="[N] section 5, figure 11",
            parameters=self.base(self.loads),
            band=s.band(0.0, 0.0, "packets", "printed: always empty"),
        )
        s.claim(
            "id-fifo-4",
            basis="fitted",
            because="The run length of 40 µs was chosen because of this figure.",
            says="Interrupt-driven: FIFO 4 holds the most packets of the five, at each of the seven loads.",
            quote="The fifo(4) has the highest number of packets, because of the long processing time of "
            "CorB.",
            where="[N] section 5, figure 12",
            parameters=self.base(self.loads),
            band=s.band(1.0, None, "times", "the highest: FIFO 4 over the largest of the others"),
        )
        s.claim(
            "id-fifo-2",
            basis="fitted",
            because="The run length of 40 µs was chosen because of the figure in which this value is printed.",
            says="Interrupt-driven: the largest number of packets in FIFO 2 is 23.",
            quote="fifo (2) has 23 as the highest number",
            where="[N] section 5, figure 12",
            parameters=[
                self.times,
                self.run_length,
                self.switch,
                self.highest,
                single,
            ],
            band=level,
        )
        s.claim(
            "id-empty",
            control="exponential",
            says="Interrupt-driven: FIFO 3 and FIFO 5 are empty at each of the seven loads.",
            quote="fifo (3) and fifo (5) are always empty",
            where="[N] section 5, figure 12",
            parameters=self.base(self.loads),
            band=s.band(0.0, 0.0, "packets", "printed: always empty"),
        )

    def buffer_claims(self) -> None:
        s = self.s
        unseen = s.band(
            None, 0.001, "share of the packets", "no loss that figure 10 could show: one packet in 1000"
        )
        rows = {
            "bw-remove-3": (
                "Busy-waiting loses no more packets without FIFO 3.",
                "fifo (3) can be removed from the scheme",
                "figure 11",
                "transmit 1: no place but the one in service",
            ),
            "bw-cut-2": (
                "Busy-waiting loses no more packets with 4 places in FIFO 2.",
                "the size of fifo (2) can be reduced to four",
                "figure 11",
                "preprocess 5: 4 that wait, one in service",
            ),
            "id-remove": (
                "Interrupt-driven loses no more packets without FIFO 3 and FIFO 5.",
                "fifo (3) and fifo (5) can be removed from the scheme",
                "figure 12",
                "crypto 1, transmit 1",
            ),
            "id-adjust": (
                "Interrupt-driven loses no more packets with FIFO 2 and FIFO 1 cut to their highest numbers.",
                "the size of fifo (2) and fifo (1) can be adjusted",
                "figure 12",
                "preprocess 24, receive 5: the printed highest numbers, 23 and 4, and one in service",
            ),
        }
        for name, (says, quote, figure, buffers) in rows.items():
            cut = s.printed("stage.*.buffer", buffers, f"section 5, {figure}")
            s.claim(
                name,
                control="exponential",
                says=says,
                quote=quote,
                where=f"[N] section 5, {figure}",
                parameters=[
                    self.times,
                    self.loads,
                    self.run_length,
                    self.switch,
                    self.repeats,
                    cut,
                ],
                band=unseen,
            )

    def utilisation_claims(self) -> None:
        s = self.s
        fives = "the text's two shares, 60 and 65 %, are multiples of five: rounded to 2.5 points"
        half = "half a point for the one run of the paper"
        rows: list[tuple[str, str, str, str, Any]] = [
            (
                "receiver-idle",
                "The receiver is 60 % of the time idle, in both schemes.",
                "The receiver coprocessor is 60% of the time free and in the idle state",
                "figure 13",
                s.band(57.5, 62.5, "%", f"printed 60; {fives}"),
            ),
            (
                "transmitter-idle",
                "The transmitter is 65 % of the time idle, in both schemes.",
                "the sender is 65% of the time free for both ID and BW",
                "figure 14",
                s.band(62.5, 67.5, "%", f"printed 65; {fives}"),
            ),
            (
                "transmitter-equal",
                "The transmitter is idle for the same share of the time in both schemes.",
                "for both ID and BW",
                "figures 13 and 14",
                s.band(-2.5, 2.5, "points", f"one number is printed for both schemes; {fives}"),
            ),
            (
                "core-id",
                "Interrupt-driven: the core is 99.8 % utilised.",
                "the core is 99.8% utilized in the ID",
                "figure 15",
                s.band(99.3, 100.0, "%", f"printed 99.8, {half}"),
            ),
            (
                "core-bw",
                "Busy-waiting: the core is 86.3 % utilised.",
                "but just 86.3% for the BW",
                "figure 15",
                s.band(85.8, 86.8, "%", f"printed 86.3, {half}"),
            ),
        ]
        sums = {
            "receiver-idle": "27.3 of 70 µs are busy, by table II and the printed load.",
            "transmitter-idle": "27.3 µs for each packet that the core passes, by table II.",
            "transmitter-equal": "27.3 µs for each packet that the core passes, by table II.",
            "core-id": "The core has more work than time at the printed load: 81 µs every 70 µs.",
            "core-bw": "81 of the 93.6 µs for which a packet holds the core, by table II.",
        }
        for name, says, quote, figure, band in rows:
            where = f"[N] section 5, {figure}"
            s.claim(
                name,
                basis="arithmetic",
                because=sums[name],
                says=says,
                quote=quote,
                where=where,
                parameters=self.base(self.highest),
                band=band,
            )
        s.claim(
            "core-more",
            control="one-scheme",
            says="The core works for a larger share of the time in interrupt-driven over the seven loads together, and for a "
            "smaller one at none.",
            quote="the Core has more working time in the ID than in the BW",
            where="[N] section 5, figure 15",
            parameters=self.base(self.loads),
            band=s.band(
                -0.01,
                None,
                "of the sum of differences",
                "more: the least difference ID less BW, of their sum, which must be above zero; 1 % is above the differences "
                "between runs. Until 26 November 2026 no difference at any load was enough",
            ),
        )

    def conclusions(self) -> None:
        s = self.s
        lin = s.printed("arrivals.packet_rate", join(LIN_RATES), "section 6: 3 to 1000 packets per second")
        longer = s.assumed("duration", "20 s", "long enough for 60 packets at 3 packets per second")
        s.claim(
            "bw-average",
            control="one-load",
            says="Busy-waiting loses no packets at average rates.",
            quote="BW is easier than ID for implementation and works fine for an average rate network.",
            where="[N] section 6",
            parameters=[
                self.times,
                s.assumed(
                    "arrivals.packet_rate",
                    "1000, 2000, 5000, 10000",
                    "average is not defined: up to the lowest rate of the paper",
                ),
                self.repeats,
            ],
            band=s.band(
                None, 0.001, "share of the packets", "works fine: no more than one packet in 1000 is lost"
            ),
        )
        s.claim(
            "lin-bw",
            basis="fitted",
            because="Any time of a switch above zero gives it, and without one both delays are equal: the assumed 5 µs decide.",
            says="At the loads of Lin et al. busy-waiting delays packets less than interrupt-driven.",
            quote="reference number (11) recommends BW rather than ID contrary to this paper but for lower "
            "loads",
            where="[N] section 6",
            parameters=[
                self.times,
                lin,
                longer,
                self.run_length,
                s.assumed(
                    "server.core.switch_delay",
                    "5 µs",
                    "TD is in the model and has no printed value; without cost the delays are equal",
                ),
            ],
            band=s.band(1.0, None, "times", "better: the delay of ID over that of BW, at every load"),
        )
        s.claim(
            "lin-buffers",
            control="one-load",
            says="At 1000 packets per second, buffers of 3 to 1000 packets give the same throughput and "
            "delay.",
            quote="the change of buffer size from 3 to 1000 pkts has shown no effect on the performance",
            where="[N] section 6",
            parameters=[
                self.times,
                s.printed("stage.*.buffer", join(BUFFERS_OF_LIN), "section 6: 3 to 1000"),
                s.printed("arrivals.packet_rate", 1000, "section 6, the highest of Lin et al."),
                s.assumed("service", "exponential", "the times of the Markov chain of Lin et al."),
                longer,
            ],
            band=s.band(-1.0, 1.0, "%", "no effect: one per cent against buffers of 1000"),
        )
        s.claim(
            "buffers-by-rate",
            control="one-load",
            says="The longest queue of either scheme is longer at 0.07 ms than at 0.1 ms.",
            quote="good hint about the size of the buffers for the designer, which actually depends on the "
            "input packet rate",
            where="[N] section 6, figures 11 and 12",
            parameters=self.base(self.loads),
            band=s.band(1.1, None, "times", "depends: more than the spread of a mean of 20 runs, one tenth"),
        )

    def delay_claims(self) -> None:
        s = self.s
        s.claim(
            "id-total-delay",
            control="one-scheme",
            says="Interrupt-driven has the longer delay from arrival to transmission, at each of the seven "
            "loads.",
            quote="The ID has a total delay time for the packets higher than the BW",
            where="[N] section 6",
            parameters=self.base(self.loads),
            band=s.band(
                1.01,
                None,
                "times",
                "higher: the delay of ID over that of BW, at every load, by a hundredth; until 26 November 2026 equality was "
                "enough",
            ),
        )
        s.claim(
            "id-core-delay",
            control="one-scheme",
            says="Interrupt-driven takes longer from the core's first work for a packet to its last.",
            quote="that is because of the core time division between the processing of two packets in "
            "different stages",
            where="[N] section 6",
            parameters=self.base(
                self.loads,
                s.assumed(
                    "delay",
                    "in A, coprocessor and B, waits between them included",
                    "the reason that the paper gives acts there; the wait for A is before it",
                ),
            ),
            band=s.band(
                1.01,
                None,
                "times",
                "higher: the time of ID over that of BW, at every load, by a hundredth; until 26 November 2026 equality was "
                "enough",
            ),
        )

    def memory(self) -> None:
        s = self.s
        memory_parameters = [
            s.printed("stage.*.time", "27.3 and 49 µs, in two parts and an access", "table II"),
            s.printed("server.inspection.switch_delay", "7.5 ns", "section 2: a single cycle, of 133 MHz"),
            s.assumed(
                "stage.rules.time",
                f"{MEMORY_LIGHT:g} and {MEMORY_HEAVY:g} of the inspection",
                "the paper prints no time of memory: a little of it as with VPN, and most of it as with intrusion detection",
            ),
            s.assumed("stage.store.time, stage.load.time", "a tenth", "packets are moved once in each direction"),
            s.assumed("server.sdram.run_length", "1 µs", "an access is many short ones, and those of the engines alternate"),
            s.assumed("arrivals.mean", "20 µs", "more than any of the designs passes"),
        ]
        s.claim(
            "threads",
            control="one-thread",
            says="Four hardware threads gain more where an application is memory-intensive than where it is not.",
            quote="This technique is efficient only when memory-access intensive applications, such as DiffServ and IDP are "
            "executed.",
            where="[N] section 4.1",
            parameters=memory_parameters,
            band=s.band(
                1.1, None, "times", "more: the gain with much memory over that with little, by a tenth of it"
            ),
        )
        s.observation(
            "second-engine",
            control="own-memory",
            says="A second engine gains less where the inspection is memory-intensive, since both wait for one memory.",
            where="[N] section 6 asks how the delay of memory can be reduced",
            parameters=memory_parameters,
            band=s.band(
                1.1, None, "times", "less: the gain with little memory over that with much, by a tenth of it"
            ),
        )

    def observations(self) -> None:
        s = self.s
        s.observation(
            "half-second",
            says="With the stated run length of 0.5 s it is FIFO 2 that fills, not FIFO 4.",
            where="[N] section 6 against figure 12",
            band=s.band(1.0, None, "times", "FIFO 2 over FIFO 4, at every load"),
        )
        s.observation(
            "switch-limit",
            says="Interrupt-driven passes more at 14,000 packets per second if a switch costs less than 6.3 "
            "µs.",
            band=s.band(
                6.0, 8.0, "µs", "half of the coprocessor's 12.6 µs is 6.3, within the costs that were run"
            ),
        )
        s.observation(
            "run-length",
            says="Tuning the run length raises the core's utilisation where a switch costs 100 µs.",
            where="Lin et al. state 2.26 times; [N] does not repeat it",
            band=s.band(1.5, None, "times", "half as much again"),
        )
        s.observation(
            "empty-fifos-needed",
            says="With exponential times the buffers that constant times leave empty prevent losses.",
            band=s.band(
                1.1, None, "times", "loss with 1 packet over loss with 4 at the coprocessor and transmitter"
            ),
        )
        s.observation(
            "chain",
            says="The solved chain and the simulation of one description agree.",
            band=s.band(None, 1.7, "half widths", "1.7 half widths of a 95 % interval are one of 99.9 %"),
        )
