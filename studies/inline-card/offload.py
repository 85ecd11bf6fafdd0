"""What the card has or could have beside its chain: interrupts, transfers, chained modes, hashes, reconfiguration."""

from __future__ import annotations

from forebay.study import Study, StudyScenario, bits, digits, join, percent, time

from .claims import CHAINED_DEPTH, MTU

GROUPS = [1, 2, 4, 8, 16, 32, 64]
STREAMS = [1, 2, 3, 4]
TRANSFERS_OF = [1, 2, 3, 6, 12, 24]
SHORT = 1500
# The longest wait for an interrupt that is tried.
TIMEOUT = "200 us"
RUN_LENGTHS_MS = [2, 5, 10, 20, 50, 100, 200]
# HMAC with SHA-512, its states behind the key kept: half a block of padding in the mean, and a block of the outer hash.
HMAC_BYTES = 64 + 128


def offload(s: Study, video: StudyScenario) -> None:
    """All sections, in the order of docs/models.md."""
    mitigation(s)
    transfers(s)
    chained(s, video)
    hashes(s)
    receiving(s, video)
    reconfiguration(s)


def mitigation(s: Study) -> None:
    s.section("Interrupts for several packets (sections 15.3.1 and 15.8)")
    base = s.scenario("mitigation.toml")
    # 200 Mbit/s: packets of 1500 bytes at the video's rate would take more than all of the processors.
    light = base.set("offered", "200 Mbit/s")
    sizes = s.run([light.set("payload", size - 58).solved() for size in (SHORT, MTU)])
    rates = [run["cpu.interrupts_per_s"] for run in sizes]
    s.measured(
        "less-frequent",
        rates[0] / rates[1],
        found=f"{digits(rates[0])} interrupts per second with {SHORT} bytes, {digits(rates[1])} with {MTU}",
    )
    grouped = s.sweep(base, "resource.cpu.interrupt_packets", GROUPS)
    within = s.sweep(
        base.set("resource.cpu.interrupt_timeout", TIMEOUT), "resource.cpu.interrupt_packets", GROUPS
    )
    named = [("until there are enough", grouped), (f"or after {TIMEOUT}", within)]
    s.plot(
        "Idle processors under the video",
        "packets for an interrupt",
        "idle (%)",
        [s.series(name, GROUPS, [100 * (1 - run["cpu.utilisation"]) for run in of]) for name, of in named],
        log_x=True,
        note="8 µs of an interrupt and 22.44 µs of each packet are assumed; with one for each packet they are the 38 % of "
        "figure 15.3.",
    )
    s.plot(
        "Delay of a packet under the video",
        "packets for an interrupt",
        "mean delay (µs)",
        [s.series(name, GROUPS, s.figures(of, "delay.mean_s", 1e6)) for name, of in named],
        log_x=True,
    )
    one, eight = grouped[0], grouped[GROUPS.index(8)]
    longer = eight["delay.mean_s"] - one["delay.mean_s"]
    solved = s.run(base.set("resource.cpu.interrupt_packets", 8).solved())
    # The seven packets that are handled before it, and those that come until the interrupt is raised.
    exact = solved["cpu.interrupt_wait_s"] + 7 * 22.44e-6
    s.measured(
        "mitigation",
        longer / exact,
        found=f"with 8 packets for an interrupt {percent(1 - eight['cpu.utilisation'])} are idle instead of "
        f"{percent(1 - one['cpu.utilisation'])}, and a packet takes {time(longer)} longer; {time(exact)} by hand",
    )


def transfers(s: Study) -> None:
    s.section("Transfers larger than the MTU (section 15.8)")
    base = s.scenario("transfers.toml")
    runs = s.sweep(base, "transfer_packets", TRANSFERS_OF)
    limits = s.sweep(base.solved(), "transfer_packets", TRANSFERS_OF)
    s.plot(
        f"Payload with packets of {SHORT} bytes",
        "packets in a transfer",
        "Mbit/s",
        [
            s.series("limit", TRANSFERS_OF, s.figures(limits, "limit_bps", 1e-6)),
            s.series("carried of the video, simulated", TRANSFERS_OF, s.figures(runs, "payload_bps", 1e-6)),
            s.series("limit of the processors", TRANSFERS_OF, s.figures(limits, "cpu.limit_bps", 1e-6)),
        ],
        log_x=True,
        note="All of the processors' work is assumed to be by the transfer.",
    )
    run = s.run(base)
    alone = runs[0]
    s.measured(
        "transfers",
        run["payload_bps"] / 890e6,
        found=f"{bits(run['payload_bps'])} with 6 packets in a transfer, {bits(alone['payload_bps'])} with one",
    )


def chained(s: Study, video: StudyScenario) -> None:
    s.section("A chained mode in a core with a pipeline (section 15.3.2)")
    # Of the core alone: nothing else is to limit it.
    fast = {f"resource.{name}.rate": "100 Gbit/s" for name in ("memory", "pci", "io", "mac")}
    core = video.set("resource.cpu.busy", 1e-6).set("offered", "10 Gbit/s")
    for key, rate in fast.items():
        core = core.set(key, rate)
    runs: dict[int, list[float]] = {}
    for depth in (1, CHAINED_DEPTH, 4):
        points = s.run(
            [
                core.set("resource.core.depth", depth).set("resource.core.streams", streams).solved()
                for streams in STREAMS
            ]
        )
        runs[depth] = s.figures(points, "limit_bps", 1e-6)
    s.plot(
        "Payload that the core alone would carry",
        "streams (SAs) interleaved",
        "Mbit/s",
        [s.series(f"{depth} blocks in the pipeline", STREAMS, values) for depth, values in runs.items()],
        note="Counter mode is one block: no block depends on another. With CBC encryption each stream has one block in the "
        "pipeline at a time. Decryption does not depend on the block before.",
    )
    two = runs[CHAINED_DEPTH]
    s.measured(
        "two-streams",
        [two[1] / runs[1][0], two[0] / two[1]],
        found=f"{digits(two[0])} Mbit/s with one stream, {digits(two[1])} with two, {digits(two[2])} with three",
    )
    chained_video = s.run(video.set("resource.core.depth", CHAINED_DEPTH))
    s.measured(
        "counter-mode",
        chained_video["payload_bps"] / 1e6,
        found=f"{bits(chained_video['payload_bps'])} of one stream with CBC, "
        f"{bits(s.run(video)['payload_bps'])} with counter mode",
    )


def hashes(s: Study) -> None:
    s.section("HMAC with SHA-512 beside AES (section 15.8, figure 15.4)")
    base = (
        s.scenario("auth.toml")
        .set("offered", "890 Mbit/s")
        .set("resource.hash.rate", "0.67 Gbit/s")
        .set("resource.hash.overhead_bytes", HMAC_BYTES)
    )
    units = [1, 2, 3]
    runs = s.sweep(base.solved(), "resource.hash.units", units)
    s.table(
        "The video with SHA-512 cores of figure 15.4",
        ["cores", "limit of the hash, Mbit/s", "carried, Mbit/s"],
        [[at, run["hash.limit_bps"] / 1e6, run["payload_bps"] / 1e6] for at, run in zip(units, runs)],
        note=f"HMAC adds {HMAC_BYTES} bytes to each packet in the mean: padding, and a block of the outer hash. One stream "
        "cannot use several cores for one packet, and uses them for several packets.",
    )
    s.measured(
        "sha-512",
        [890e6 / runs[0]["payload_bps"], runs[1]["payload_bps"] / 890e6],
        found=f"{bits(runs[0]['payload_bps'])} with one core, {bits(runs[1]['payload_bps'])} with two",
    )


def receiving(s: Study, video: StudyScenario) -> None:
    s.section("The receive side (sections 15.2 and 15.7.1)")
    base = s.scenario("transfers.toml")
    both = s.run([one.set("direction", way) for one in (video, base) for way in ("send", "receive")])
    s.table(
        "Sending and receiving, simulated",
        ["scenario, direction", "carried, Mbit/s", "CPUs busy", "memory busy", "mean delay"],
        [
            [
                name,
                run["payload_bps"] / 1e6,
                percent(run["cpu.utilisation"]),
                percent(run["memory.utilisation"]),
                time(run["delay.mean_s"]),
            ]
            for name, run in zip(("video, send", "video, receive", "transfers, send", "transfers, receive"), both)
        ],
        note="The transfers of memory on the receiving side are not printed: six are taken, as on the other. Where the card joins "
        "packets to transfers, a packet has crossed the line before it waits for the others.",
    )
    s.measured(
        "receive",
        [abs(100 * (both[at]["cpu.utilisation"] - both[at + 1]["cpu.utilisation"])) for at in (0, 2)],
        found=join(percent(run["cpu.utilisation"]) for run in both) + " of the processors busy",
    )


def fluid(times: list[float], rate: float, delay: float, run: float) -> float:
    """Packets per second of an FPGA that stays with each suite for up to `run` s, by cycles of work and loading.

    `times` are those of a packet of each suite, `rate` is that of all packets.
    """
    each = rate / len(times)
    cycle = len(times) * delay
    for _ in range(10_000):
        cycle = len(times) * delay + sum(min(run, each * time * cycle) for time in times)
    return sum(min(run / time, each * cycle) for time in times) / cycle


def reconfiguration(s: Study) -> None:
    s.section("Run-time reconfiguration (sections 15.3.1 and 15.8)")
    base = s.scenario("reconfiguration.toml")
    lengths = [f"{length} ms" for length in RUN_LENGTHS_MS]
    light = s.sweep(base, "server.fpga.run_length", lengths)
    # 850 Mbit/s: more than any of these run lengths carries.
    heavy = s.sweep(base.set("arrivals.mean", "85 us"), "server.fpga.run_length", lengths)

    def exact(gap: float, length: float) -> float:
        times = [MTU * 8 / rate for rate in (1.06e9, 1.69e9)]
        return fluid(times, 1 / gap, 15e-3, length * 1e-3) * MTU * 8

    def carried(runs: list[float]) -> list[float]:
        return [one * MTU * 8 / 1e6 for one in runs]

    found = [carried(s.figures(runs, "throughput_pps", 1.0)) for runs in (light, heavy)]
    told = [[exact(gap, length) / 1e6 for length in RUN_LENGTHS_MS] for gap in (180e-6, 85e-6)]
    s.plot(
        "Two suites in turns",
        "time with one suite while the other waits (ms)",
        "Mbit/s",
        [
            s.series("400 Mbit/s offered, simulated", RUN_LENGTHS_MS, found[0]),
            s.series("cycle of work and loading", RUN_LENGTHS_MS, told[0]),
            s.series("847 Mbit/s offered, simulated", RUN_LENGTHS_MS, found[1]),
            s.series("cycle of work and loading", RUN_LENGTHS_MS, told[1]),
        ],
        log_x=True,
        note="15 ms to load a core are assumed.",
    )
    s.plot(
        "Delay at 400 Mbit/s",
        "time with one suite while the other waits (ms)",
        "mean delay (ms)",
        [s.series("simulated", RUN_LENGTHS_MS, s.figures(light, "delay.mean_s", 1e3))],
        log_x=True,
    )
    off = [one / other for ones, others in zip(found, told) for one, other in zip(ones, others)]
    s.measured(
        "cycle",
        [min(off), max(off)],
        found=f"{digits(min(off))} to {digits(max(off))} times what a cycle of work and loading carries",
    )
    at = RUN_LENGTHS_MS.index(50)
    s.measured(
        "on-demand",
        found[0][at] / 400,
        found=f"{digits(found[0][at])} of 400 Mbit/s with turns of 50 ms, at a delay of "
        f"{time(light[at]['delay.mean_s'])}; {digits(found[0][0])} with turns of {RUN_LENGTHS_MS[0]} ms",
    )
