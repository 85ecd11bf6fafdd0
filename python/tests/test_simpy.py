"""Services that wait for several packets, and engines that share a memory, against models of the same in SimPy."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import forebay as fb

simpy = pytest.importorskip("simpy")

US = 1_000_000
PACKETS = 3000


def arrivals(mean_us: float) -> list[int]:
    """Times of packets in picoseconds: whole nanoseconds, none of them twice."""
    draw = random.Random(7)
    times, now = [], 0
    for _ in range(PACKETS):
        now += 1000 * max(1, round(draw.expovariate(1 / mean_us) * 1000))
        times.append(now)
    return times


def scenario(tmp_path: Path, times: list[int], rest: dict[str, Any]) -> fb.Scenario:
    """A pipeline to which packets come at these times."""
    lines = "".join(f"100,{at // 10**12}.{at % 10**12:012}\n" for at in times)
    path = tmp_path / "times.csv"
    path.write_text("size,time\n" + lines)
    return fb.Scenario({"model": "pipeline", "arrivals": {"path": str(path)}, **rest})


def gathered(times: list[int], least: int, most: int, timeout: int, setup: int, each: int) -> list[int]:
    """Delays of packets that are served together: SimPy."""
    env = simpy.Environment()
    waiting: deque[int] = deque()
    delays: list[int] = []
    came = env.event()

    def source() -> Generator[Any]:
        nonlocal came
        for at in times:
            yield env.timeout(at - env.now)
            waiting.append(at)
            came.succeed()
            came = env.event()

    def server() -> Generator[Any]:
        while True:
            while len(waiting) < least and not (waiting and waiting[0] + timeout <= env.now):
                until = [came]
                if waiting:
                    until.append(env.timeout(waiting[0] + timeout - env.now))
                yield env.any_of(until)
            taken = [waiting.popleft() for _ in range(min(most, len(waiting)))]
            yield env.timeout(setup + each * len(taken))
            delays.extend(env.now - at for at in taken)

    env.process(source())
    env.process(server())
    env.run(until=times[-1] + 10**12)
    return delays


@pytest.mark.parametrize(("least", "most", "mean_us"), [(1, 1, 30), (4, 4, 30), (4, 8, 9), (8, 8, 60), (3, 64, 12)])
def test_a_service_that_waits_for_several_packets(tmp_path: Path, least: int, most: int, mean_us: float) -> None:
    times = arrivals(mean_us)
    stage = {
        "name": "only",
        "time": "5.3 us",
        "setup": "7.1 us",
        "batch": most,
        "batch_min": least,
        "batch_timeout": "100.7 us",
        "buffer": 100_000,
    }
    run = scenario(tmp_path, times, {"stage": [stage]}).simulate()
    delays = gathered(times, least, most, 1007 * US // 10, 71 * US // 10, 53 * US // 10)
    assert len(delays) == PACKETS == run["processed"]
    assert run["delay.mean_s"] == pytest.approx(sum(delays) / PACKETS * 1e-12, rel=1e-12)
    assert run["delay.max_s"] == pytest.approx(max(delays) * 1e-12, rel=1e-12)


def through_engines(times: list[int], parts: list[tuple[int, int, int]], contexts: int) -> list[int]:
    """Delays of packets through engines that compute, wait for one memory, and compute again: SimPy."""
    env = simpy.Environment()
    memory = simpy.Resource(env)
    # A context is held through the engine, its core only while it computes.
    engines = [(simpy.Resource(env, contexts), simpy.Resource(env)) for _ in parts]
    delays: list[int] = []

    def packet(at: int) -> Generator[Any]:
        yield env.timeout(at)
        for (before, access, after), (context, core) in zip(parts, engines):
            with context.request() as held:
                yield held
                for resource, time in ((core, before), (memory, access), (core, after)):
                    with resource.request() as turn:
                        yield turn
                        yield env.timeout(time)
        delays.append(env.now - at)

    for at in times:
        env.process(packet(at))
    env.run()
    return delays


@pytest.mark.parametrize("contexts", [1, 3])
def test_engines_that_share_a_memory(tmp_path: Path, contexts: int) -> None:
    # Whole nanoseconds that hardly ever coincide.
    parts = [(7_013_000, 9_001_000, 5_003_000), (4_007_000, 11_003_000, 6_011_000)]
    times = arrivals(26)
    servers: list[dict[str, Any]] = [{"name": "memory", "discipline": "interrupt-driven", "run_length": "1 s"}]
    stages: list[dict[str, Any]] = []
    for number, (before, access, after) in enumerate(parts):
        engine = f"engine{number}"
        servers.append({"name": engine, "discipline": "busy-waiting", "contexts": contexts})
        for name, server, time in (("a", engine, before), ("m", "memory", access), ("b", engine, after)):
            stage = {"name": f"{name}{number}", "server": server, "time": time * 1e-12, "buffer": 100_000}
            stages.append(stage)
    run = scenario(tmp_path, times, {"server": servers, "stage": stages}).simulate()
    delays = through_engines(times, parts, contexts)
    assert run["processed"] == PACKETS
    assert run["delay.mean_s"] == pytest.approx(sum(delays) / PACKETS * 1e-12, rel=1e-9)
    busy = PACKETS * sum(part[1] for part in parts) * 1e-12 / run["elapsed_s"]
    assert run["memory.utilisation"] == pytest.approx(busy, rel=1e-9)
    assert run["engine0.waiting"] > 0.1
