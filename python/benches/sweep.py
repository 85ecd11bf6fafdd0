"""What a sweep costs beside its runs: speed on two workers beside one, CPU time and bytes per point, time per task.

    python python/benches/sweep.py [--points 1000] [--packets 10000] [--rounds 3]

Wall times want a machine with two free cores; CPU times do not.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

import forebay as fb
from forebay import _parts, _points, study


def cpu_s(process: psutil.Process) -> float:
    """User and system time of a process, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def swept(host: fb.Scenario, points: int, client: Any, folder: Path) -> tuple[float, float, float]:
    """Wall time of a sweep, CPU time of its workers, and CPU time of this process, in seconds."""
    workers = [psutil.Process(pid) for pid in client.run(lambda: __import__("os").getpid()).values()]
    before = [cpu_s(one) for one in workers], time.process_time(), time.perf_counter()
    table = fb.sweep(host, {"seed": range(points)}, client=client, out=folder)
    wall = time.perf_counter() - before[2]
    assert table.complete
    spent = sum(cpu_s(one) - then for one, then in zip(workers, before[0]))
    return wall, spent, time.process_time() - before[1]


def on_workers(host: fb.Scenario, points: int, rounds: int, folder: Path) -> None:
    """Two workers beside one, in turn."""
    walls: dict[int, list[float]] = {1: [], 2: []}
    with fb.cluster.connect("local:1") as one, fb.cluster.connect("local:2") as two:
        for client, number in ((one, 1), (two, 2)):
            client.wait_for_workers(number)
            swept(host, 20, client, folder / f"warm-{number}")
        for turn in range(rounds):
            for client, number in ((one, 1), (two, 2)):
                wall, workers, here = swept(host, points, client, folder / f"{turn}-{number}")
                walls[number].append(wall)
                print(
                    f"{number} workers: {points / wall:8.1f} points/s; CPU per point: "
                    f"workers {1e3 * workers / points:.3f} ms, client and scheduler {1e3 * here / points:.3f} ms"
                )
        ratio = [first / second for first, second in zip(walls[1], walls[2])]
        limit = statistics.median(pool(host, points) for _ in range(rounds))
        print(
            f"two workers beside one: {statistics.median(ratio):.2f} times as fast (median of {rounds}); "
            f"two threads of the compiled pool beside one: {limit:.2f} times"
        )
        begun, tasks = time.perf_counter(), 2000
        two.gather([two.submit(pow, 2, number, pure=False) for number in range(tasks)])
        print(f"an empty task: {1e3 * (time.perf_counter() - begun) / tasks:.3f} ms")


def pool(host: fb.Scenario, points: int) -> float:
    """How many times as fast two threads of the compiled pool are as one: what the machine has to give."""
    plan = _points.plan(host, {"seed": range(points)})
    took = []
    for threads in (1, 2):
        begun = time.perf_counter()
        _points.run(plan, 0, points, lambda line: None, threads=threads)
        took.append(time.perf_counter() - begun)
    return took[0] / took[1]


def alone(host: fb.Scenario, points: int, folder: Path) -> None:
    """Time and bytes of each step, in this process."""
    plan = _points.plan(host, {"seed": range(points)})
    lines: list[str] = []
    begun = time.process_time()
    _points.run(plan, 0, points, lines.append)
    print(
        f"run by the compiled pool, one thread: {1e3 * (time.process_time() - begun) / points:.3f} ms per point"
    )
    key = plan.key()
    for size in (1, 20, 100, 500):
        size = min(size, points)
        begun = time.process_time()
        parts = [_parts.encode(plan, key, at, lines[at : at + size]) for at in range(0, points, size)]
        encoded = time.process_time() - begun
        store = _parts.Parts(folder / f"parts-{size}", plan)
        begun = time.perf_counter()
        for number, part in enumerate(parts):
            store.write(number * size, min(points, number * size + size), part)
        written = time.perf_counter() - begun
        begun = time.perf_counter()
        store.finish()
        print(
            f"parts of {size:4} points: {sum(map(len, parts)) / points:7.0f} bytes per point; "
            f"encoding {1e6 * encoded / points:6.1f} us per point; writing {1e3 * written / len(parts):.2f} ms per "
            f"part; points.jsonl {1e6 * (time.perf_counter() - begun) / points:.1f} us per point"
        )
    print(f"a line of points.jsonl: {sum(map(len, lines)) / points + 1:.0f} bytes")


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--packets", type=int, default=10_000, help="packets of a point")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    host = fb.Scenario.parse(study.shipped()["multi-accelerator"].files["host.toml"]).set(
        "traffic.packets", asked.packets
    )
    folder = Path(tempfile.mkdtemp())
    try:
        print(f"{asked.points} points of {asked.packets} packets; Forebay {fb.__version__}")
        print("load average", *(f"{one:.1f}" for one in psutil.getloadavg()))
        alone(host, asked.points, folder)
        on_workers(host, asked.points, asked.rounds, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
