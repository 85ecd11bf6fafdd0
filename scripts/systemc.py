"""Runs forebay simulate and the SystemC host in turns on the same packets; see systemc.sh."""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

SCENARIO = """model = "host"
[traffic]
source = "file"
path = "sizes.csv"
rate = {rate}
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
[[processor]]
name = "card"
kind = "accelerator"
count = {cards}
init = "1 us"
block = "440 ns"
"""

DRAWN = """model = "host"
[traffic]
source = "exponential"
mean = 471
min = 20
max = 7065
packets = {packets}
rate = {rate}
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
[[processor]]
name = "card"
kind = "accelerator"
count = {cards}
init = "1 us"
block = "440 ns"
"""


def output(command):
    """What a command prints, and how long it took."""
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, time.perf_counter() - begin


def peak(command):
    """Seconds on the wall, processor seconds and peak memory in MiB of a command."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    usage = wait4(child)
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def wait4(child):
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit(f"{child.args[0]} failed")
    return usage


def compare(forebay, run, packets, rounds, cards, rate, tolerance):
    draw = random.Random(1)
    sizes = (min(7065, max(20, round(draw.expovariate(1 / 471)))) for _ in range(packets))
    (run / "sizes.csv").write_text("size\n" + "".join(f"{size}\n" for size in sizes))
    (run / "scenario.toml").write_text(SCENARIO.format(rate=rate, cards=cards))
    ours = [forebay, "simulate", str(run / "scenario.toml"), "--json", "--timing"]
    theirs = [str(run / "host"), str(run / "sizes.csv"), str(rate), str(cards)]
    speeds = []
    for _ in range(rounds):
        mine = json.loads(output(ours)[0])
        other = json.loads(output(theirs)[0])
        speeds.append((mine["timing"]["packets_per_s"], other["packets_per_s"]))
    # Speed without, figures with the models' order of what happens at one instant.
    other = json.loads(output([*theirs, "1000", "ties"])[0])
    median = [statistics.median(column) for column in zip(*speeds)]
    ratios = [a / b for a, b in speeds]
    print(f"{packets} packets, accelerators: {cards}, {rate / 1e6:.0f} Mbit/s, rounds in turns: {rounds}; packets per second of processor time:")
    print("  round    forebay    SystemC  ratio")
    for number, (a, b) in enumerate(speeds, 1):
        print(f"  {number:5} {a:10.0f} {b:10.0f} {a / b:6.2f}")
    print(f" median {median[0]:10.0f} {median[1]:10.0f} {statistics.median(ratios):6.2f}")
    print(f"  {'figure':24} {'forebay':>18} {'SystemC':>18} {'difference':>11}")
    pairs = [
        ("throughput_bps", mine["throughput_bps"], other["throughput_bps"]),
        ("bus load", mine["bus"]["load"], other["bus_load"]),
        ("processing latency, s", mine["processing_latency"]["mean_s"], other["processing_mean_s"]),
        ("total latency, s", mine["total_latency"]["mean_s"], other["total_mean_s"]),
    ]
    pairs += [
        (f"packets, {one['name']}", one["packets"], count)
        for one, count in zip(mine["processors"], other["processor_packets"])
    ]
    far = []
    for name, a, b in pairs:
        difference = a / b - 1 if b else float(a != b)
        print(f"  {name:24} {a:18.9g} {b:18.9g} {difference:11.1e}")
        if abs(difference) > tolerance:
            far.append(name)
    return far


def linearity(forebay, run, cards, rate):
    print("time and memory by packets (drawn; up to 2 million packets keep 16 bytes each for exact quantiles):")
    print("     packets       s   CPU s  M packets/s   peak MiB")
    for exponent in range(4, 8):
        packets = 10**exponent
        scenario = run / f"drawn-{exponent}.toml"
        scenario.write_text(DRAWN.format(packets=packets, rate=rate, cards=cards))
        wall, cpu, memory = peak([forebay, "simulate", str(scenario), "--json"])
        print(f"  {packets:10} {wall:7.2f} {cpu:7.2f} {packets / cpu / 1e6:12.2f} {memory:10.1f}")


def main():
    forebay, run, packets, rounds, cards, rate = sys.argv[1:]
    run = pathlib.Path(run)
    # First, because a child's peak memory counts from what this program had when it began it.
    linearity(forebay, run, int(cards), int(rate))
    far = compare(forebay, run, int(packets), 1, 1, int(rate), 1e-9)
    far += compare(forebay, run, int(packets), int(rounds), int(cards), int(rate), 1e-9)
    if far:
        sys.exit(f"the figures are too far apart: {', '.join(far)}")


main()
