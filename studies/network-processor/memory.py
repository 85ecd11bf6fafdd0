"""Engines that wait for memory: hardware threads, a second engine, and a memory of its own for each."""

from __future__ import annotations

from forebay.study import Study, StudyRun, StudyScenario, digits, percent

from .claims import INSPECTION_US, MEMORY_HEAVY, MEMORY_LIGHT, MEMORY_RUNS
from .points import mean, us

SHARES = [0.0, 0.1, 0.3, 0.6, 0.8]
# Servers of the scenario, and how the inspection has more of them.
ONE, THREADS, ENGINES = "one engine, one thread", "one engine, four threads", "two engines, one thread each"


def at_share(one: StudyScenario, share: float) -> StudyScenario:
    """The scenario with this share of the inspection's time at the memory."""
    half = us(INSPECTION_US * (1 - share) / 2)
    return (
        one.set("stage.parse.time", half)
        .set("stage.judge.time", half)
        .set("stage.rules.time", us(INSPECTION_US * share))
    )


def memory(s: Study, base: StudyScenario) -> None:
    """How threads and engines gain where memory is little, and where it is most of the time."""
    s.section("Engines that wait for memory (section 6, future work)")
    s.text(
        "Section 4.1 models one thread in each engine, since VPN is not memory-intensive, and says that threads are efficient "
        "where an application is. Here three engines share one SDRAM: receiving, inspection of the packets, and transmission. Each "
        "stops at its access. More packets come than any of the designs passes; what part of the inspection is access is varied. "
        "No time of a memory is printed: the shares are assumed."
    )
    base = base.set("runs", MEMORY_RUNS)
    designs = {
        ONE: base,
        THREADS: base.set("server.inspection.contexts", 4),
        ENGINES: base.set("server.inspection.cores", 2).set("server.inspection.contexts", 2),
    }
    runs = {name: s.run([at_share(one, share) for share in SHARES]) for name, one in designs.items()}
    s.plot(
        "Packets passed at overload",
        "share of the inspection at the memory",
        "packets per second",
        [
            s.series(name, SHARES, [mean(run, "throughput_pps") for run in of])
            for name, of in runs.items()
        ],
        note="50,000 packets per second come. Threads and the second engine have the same limit where the memory is full.",
    )
    light, heavy = SHARES.index(MEMORY_LIGHT), SHARES.index(MEMORY_HEAVY)

    def row(name: str, run: StudyRun) -> list[object]:
        return [
            name,
            mean(run, "throughput_pps"),
            percent(mean(run, "inspection.utilisation")),
            percent(mean(run, "inspection.waiting")),
            percent(mean(run, "sdram.utilisation")),
        ]

    s.table(
        "Where the engines' time goes",
        ["design, share at the memory", "packets per second", "inspection computes", "waits", "memory busy"],
        [
            row(f"{name}, {percent(SHARES[at])}", of[at])
            for at in (light, heavy)
            for name, of in runs.items()
        ],
    )

    def gain(name: str, at: int) -> float:
        return mean(runs[name][at], "throughput_pps") / mean(runs[ONE][at], "throughput_pps")

    threads = [gain(THREADS, heavy), gain(THREADS, light)]
    s.measured(
        "threads",
        threads[0] / threads[1],
        found=f"four threads pass {digits(threads[0])} times as much with {percent(MEMORY_HEAVY)} of the time at the memory, "
        f"and {digits(threads[1])} times with {percent(MEMORY_LIGHT)}",
    )
    engines = [gain(ENGINES, light), gain(ENGINES, heavy)]
    s.measured(
        "second-engine",
        engines[0] / engines[1],
        found=f"a second engine passes {digits(engines[0])} times as much with {percent(MEMORY_LIGHT)} of the time at the "
        f"memory, and {digits(engines[1])} times with {percent(MEMORY_HEAVY)}",
    )
