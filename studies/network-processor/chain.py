"""The Markov chain of [N], solved: figures 4 to 6, table I, and the run length in it."""

from __future__ import annotations

from typing import Any

from forebay.study import Study, StudyRun, StudyScenario, digits, percent, time

from .claims import RUNS
from .points import STAGES, TIMES_US, mean, means, us


def chain_run_length(s: Study, markov: StudyScenario) -> None:
    s.section("Run length in the chain")
    s.text(
        "Lin et al. tune the run length: longer runs need fewer switches. Markov chains with 4 packets per "
        "stage, runs that end at their length or for want of work, 0.07 ms between packets."
    )
    lengths = [10, 20, 50, 100, 200, 500, 1000, 5000]
    for stage in STAGES:
        markov = markov.set(f"stage.{stage}.buffer", 4)
    lines, gain = [], 0.0
    for delay in (0, 5, 20, 100):
        solved = s.sweep(
            markov.set("server.core.switch_delay", us(delay)).solved(),
            "server.core.run_length",
            [us(length) for length in lengths],
        )
        used = s.figures(solved, "core.utilisation", 100.0)
        lines.append(s.series(f"{delay} µs per switch", lengths, used))
        gain = max(gain, max(used) / min(used))
    waiting = s.run(markov.set("server.core.discipline", "busy-waiting").solved())
    lines.append(s.series("BW", lengths, [100.0 * waiting["core.utilisation"]] * len(lengths)))
    s.plot(
        "Share of the time that the core works",
        "run length (µs)",
        "utilisation (%)",
        lines,
        log_x=True,
        note="A run ends for want of work or of room after a few packets, so that longer ones bring nothing "
        "more.",
    )
    s.measured(
        "run-length",
        gain,
        found=f"up to {digits(gain)} times from runs of 10 µs to the best, with 100 µs per switch",
    )


def closed_forms(s: Study, waits: StudyScenario) -> None:
    s.section("Busy-waiting in closed form (figure 4, equations 1 to 4)")
    s.text(
        "Queues M/M/1 in a row, the core and its coprocessor as one server of 93.6 µs. Times are taken as "
        "exponential, so utilisations are exact and delays too long."
    )
    calm = [110, 120, 140, 170, 200, 300, 500]
    gaps = [us(gap) for gap in calm]
    long = waits.set("duration", "2 s").set("warm_up", "100 ms").set("runs", 3)
    closed = s.sweep(waits.closed(), "arrivals.mean", gaps)
    constant = s.sweep(long, "arrivals.mean", gaps)
    exponential = s.sweep(long.set("service", "exponential"), "arrivals.mean", gaps)
    span = "preprocess+crypto+ip.utilisation"
    s.plot(
        "Core of busy-waiting",
        "mean time between packets (µs)",
        "utilisation (%)",
        [
            s.series("CORE, equation 1", calm, s.figures(closed, span, 100.0)),
            s.series("core, equation 2", calm, s.figures(closed, span, 100.0 * 81.0 / 93.6)),
            s.series("coprocessor, equation 3", calm, s.figures(closed, span, 100.0 * 12.6 / 93.6)),
            s.series("core, simulated", calm, means(constant, "core.utilisation", 100.0)),
        ],
        counterpart="[N] figure 4",
    )
    s.plot(
        "Delay of busy-waiting",
        "mean time between packets (µs)",
        "mean delay (µs)",
        [
            s.series("M/M/1 in a row", calm, s.figures(closed, "mean_delay_s", 1e6)),
            s.series("simulated, exponential", calm, means(exponential, "delay_mean_s", 1e6)),
            s.series("simulated, constant", calm, means(constant, "delay_mean_s", 1e6)),
        ],
        log_y=True,
        note="Three exponential stages in a row vary less than one of their mean, constant ones not at all.",
    )


# States of the chain: packets at R, A, C, B, T, and PCS.
State = tuple[int, int, int, int, int, int]


def transitions(state: State, room: int) -> dict[str, State]:
    """The transitions of table I out of a state, by name."""
    r, a, c, b, t, pcs = state
    out: dict[str, State] = {}
    if r < room:
        out["arrival"] = (r + 1, a, c, b, t, pcs)
    if r > 0 and a < room:
        out["receiving departs"] = (r - 1, a + 1, c, b, t, pcs)
    if a > 0 and pcs == 0 and c < room:
        out["core A departs"] = (r, a - 1, c + 1, b, t, pcs)
    if c > 0 and b < room:
        out["coprocessor departs"] = (r, a, c - 1, b + 1, t, pcs)
    if b > 0 and pcs == 1 and t < room:
        out["core B departs"] = (r, a, c, b - 1, t + 1, pcs)
    if t > 0:
        out["transmission departs"] = (r, a, c, b, t - 1, pcs)
    if pcs == 0 and b > 0 and t < room:
        out["switch 0 to 2"] = (r, a, c, b, t, 2)
    if pcs == 1 and a > 0 and c < room:
        out["switch 1 to 3"] = (r, a, c, b, t, 3)
    if pcs == 2:
        out["switch 2 to 1"] = (r, a, c, b, t, 1)
    if pcs == 3:
        out["switch 3 to 0"] = (r, a, c, b, t, 0)
    return out


def table_one(s: Study, solved: StudyRun) -> None:
    """Table I with the rates of markov.toml, and the example of a state of figure 6."""
    rate = {name: f"{1e6 / value:,.0f} per second" for name, value in zip("RACBT", TIMES_US)}
    rows: list[list[Any]] = [
        ["receiving", "arrival", "R < bufR", "lambda", "14,286 per second"],
        ["", "departure", "A < bufA", "mu R", rate["R"]],
        ["core A", "departure", "PCS = 0, C < bufC", "mu A", rate["A"]],
        ["coprocessor", "departure", "B < bufB", "mu C", rate["C"]],
        ["core B", "departure", "PCS = 1, T < bufT", "mu B", rate["B"]],
        ["transmission", "departure", "none", "mu T", rate["T"]],
        ["PCS 0 to 2", "run length", "A > 0, B > 0", "lambda S1", "10,000 per second"],
        ["", "", "(A = 0, B > 0) or C = bufC", "infinite", "at once"],
        ["", "", "B = 0 or T = bufT", "0", "never"],
        ["PCS 2 to 1", "switched", "none", "lambda D", "at once: a switch takes 0 µs"],
        ["PCS 1 to 3", "run length", "A > 0, B > 0", "lambda S2", "10,000 per second"],
        ["", "", "(A > 0, B = 0) or T = bufT", "infinite", "at once"],
        ["", "", "A = 0 or C = bufC", "0", "never"],
        ["PCS 3 to 0", "switched", "none", "lambda D", "at once: a switch takes 0 µs"],
    ]
    s.table(
        "State transitions in the ID scheme",
        ["component", "transition", "condition", "rate", "in markov.toml"],
        rows,
        counterpart="[N] table I",
        note="Where two of the PCS's conditions hold, never goes before at once. Run length 100 µs, 0.07 ms "
        "between packets.",
    )
    rows = [
        [
            stage,
            TIMES_US[at],
            percent(solved[f"{stage}.utilisation"]),
            solved[f"{stage}.mean_occupancy"],
            percent(solved[f"{stage}.full"]),
        ]
        for at, stage in enumerate(STAGES)
    ]
    s.table(
        "The chain of table I solved",
        ["stage", "µs per packet", "utilised", "mean packets", "full"],
        rows,
        counterpart="[N] figure 5",
        note=f"3 packets per stage: {round(solved['states']):,} states, {solved['throughput_pps']:,.0f} "
        f"packets per second pass, {percent(solved['loss_probability'])} are lost.",
    )
    example: State = (2, 1, 1, 1, 3, 0)
    into = [
        (state, name) for state in states(3) for name, to in transitions(state, 3).items() if to == example
    ]
    rows = [["out of it", name, str(to)] for name, to in transitions(example, 3).items()]
    rows += [["into it", name, str(state)] for state, name in into]
    s.table(
        "Transitions of the state R 2, A 1, C 1, B 1, T 3, PCS 0",
        ["", "transition", "to or from"],
        rows,
        counterpart="[N] figure 6",
        note=f"{len(into)} transitions into it; the paper says five. T is full, so that the PCS does not go "
        "from 0 to 2, as the paper says of its example. Its other numbers are not in the text.",
    )


def states(room: int) -> list[State]:
    """All states of the chain."""
    places = range(room + 1)
    return [
        (r, a, c, b, t, pcs)
        for r in places
        for a in places
        for c in places
        for b in places
        for t in places
        for pcs in range(4)
    ]


def chain(s: Study, markov: StudyScenario) -> None:
    s.section("The Markov chain (figures 5 and 6, table I)")
    s.text(
        "Vanishing states are eliminated exactly. The simulation under the same assumptions (exponential "
        "times, a stage waits for room in the next) runs the same file."
    )
    table_one(s, s.run(markov.solved()))
    rows: list[list[Any]] = []
    worst = 0.0
    designs = [
        (gap, scheme) for gap in (60, 70, 85, 100, 150) for scheme in ("interrupt-driven", "busy-waiting")
    ]
    settings = [
        markov.set("arrivals.mean", us(gap)).set("server.core.discipline", scheme) for gap, scheme in designs
    ]
    exact = s.run([one.solved() for one in settings])
    found = s.run([one.set("runs", RUNS) for one in settings])
    for (gap, scheme), one, other in zip(designs, exact, found):
        for path in ("throughput_pps", "loss_probability"):
            half = other[f"replications.{path}.half_width"]
            worst = max(worst, abs(mean(other, path) - one[path]) / half)
        rows.append(
            [
                gap,
                scheme,
                one["throughput_pps"],
                mean(other, "throughput_pps"),
                percent(one["loss_probability"]),
                percent(mean(other, "loss_probability")),
                percent(one["core.utilisation"]),
                percent(mean(other, "core.utilisation")),
                time(one["mean_delay_s"]),
                time(mean(other, "delay_mean_s")),
            ]
        )
    s.table(
        "3 packets per stage: the chain, and 20 simulations of 2 s",
        [
            "µs between packets",
            "scheme",
            "packets/s, chain",
            "simulated",
            "lost, chain",
            "simulated",
            "core, chain",
            "simulated",
            "delay, chain",
            "simulated",
        ],
        rows,
    )
    s.measured(
        "chain",
        worst,
        found=f"throughput and loss of {len(rows)} designs differ by at most {digits(worst)} half widths of "
        "their 95 % intervals",
    )
