#!/usr/bin/env python3
"""One host model in six simulators, on the same packets: lines of model code, speed, agreement of the figures.

    tests/peers/compare.py FOREBAY [--packets N] [--rounds N] [--cards N] [--json FILE] [--require NAME]...

The model is the host of studies/multi-accelerator: a CPU, accelerators behind one bus, queues of 1000, placement by
predicted finish time, 1 Gbit/s offered. Each peer is a file of this directory (SystemC: tests/systemc/host.cpp), written
as its users write models. A peer that is not installed is left out, with a line that says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
SYSTEMC = HERE.parent / "systemc" / "host.cpp"
RATE = 1_000_000_000
QUEUE = 1000
# The trace's substitute, source `paper`: bins of payload sizes with their weights.
SIZES = ((0, 162, 5010), (163, 517, 4285), (518, 1460, 705))
# Agreement of models that say the same: rounding of printed digits.
SAME = 1e-9
# Ciw's model adds floating-point seconds, and leaves out that accelerators wait for each other's transfers.
FLOATING = 1e-6
WITHOUT_CONTENTION = 0.1
FIGURES = ("throughput_bps", "bus_load", "processing_mean_s", "total_mean_s")


@dataclass(frozen=True)
class Peer:
    """A simulator, the file of its model, and how far its figures may be from ours."""

    name: str
    model: pathlib.Path
    tolerance: float
    missing: Callable[[], str | None]
    build: Callable[[pathlib.Path], list[str]]


def module(name: str) -> Callable[[], str | None]:
    return lambda: None if importlib.util.find_spec(name) else f"pip install {name}"


def library(header: str, package: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        if shutil.which("c++") is None:
            return f"apt-get install g++ {package}"
        command = ["c++", "-std=c++17", "-x", "c++", "-fsyntax-only", "-"]
        source = f"#include <{header}>\n"
        if "systemc" in header:
            source += "int sc_main(int, char **) { return 0; }\n"
        done = subprocess.run(command, input=source, text=True, capture_output=True)
        return f"apt-get install {package}" if done.returncode else None

    return missing


def python(model: pathlib.Path) -> Callable[[pathlib.Path], list[str]]:
    return lambda run: [sys.executable, str(model)]


def compiled(model: pathlib.Path, *options: str) -> Callable[[pathlib.Path], list[str]]:
    def build(run: pathlib.Path) -> list[str]:
        program = run / model.stem
        command = ["c++", "-O3", "-march=native", "-DNDEBUG", "-std=c++17", str(model), "-o", str(program), *options]
        subprocess.run(command, check=True)
        return [str(program)]

    return build


def peers(cards: int) -> list[Peer]:
    def python_peer(name: str, tolerance: float = SAME) -> Peer:
        model = HERE / f"host_{name.lower()}.py"
        return Peer(name, model, tolerance, module(name.lower()), python(model))

    ns3 = HERE / "host_ns3.cc"
    host = ("-DCPU_INIT_PS=1000000", "-DCPU_BLOCK_PS=1138636", "-lsystemc")
    return [
        Peer("SystemC", SYSTEMC, SAME, library("systemc", "libsystemc-dev"), compiled(SYSTEMC, *host)),
        Peer("ns-3", ns3, SAME, library("ns3/core-module.h", "libns3-dev"), compiled(ns3, "-lns3-core")),
        python_peer("SimPy"),
        python_peer("salabim"),
        python_peer("Ciw", FLOATING if cards < 2 else WITHOUT_CONTENTION),
    ]


def lines(model: pathlib.Path) -> int:
    """Lines of code, without blank lines, comments and docstrings."""
    text = model.read_text()
    if model.suffix != ".py":
        code = (line.strip() for line in text.splitlines())
        return sum(bool(line) and not line.startswith(("//", "#")) or line.startswith("#include") for line in code)
    counted: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        docstring = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL)
        if token.type not in skipped and not docstring:
            counted.update(range(token.start[0], token.end[0] + 1))
        before = token.type
    return len(counted)


def write_sizes(path: pathlib.Path, packets: int) -> None:
    draw = random.Random(1)
    bins = draw.choices(SIZES, weights=[weight for _, _, weight in SIZES], k=packets)
    path.write_text("size\n" + "".join(f"{draw.randint(low, high)}\n" for low, high, _ in bins))


def ours(forebay: str, run: pathlib.Path, cards: int) -> dict:
    scenario = run / "host.toml"
    scenario.write_text((HERE / "host.toml").read_text())
    command = [forebay, "simulate", str(scenario), "--set", f"processor.card.count={cards}", "--json", "--timing"]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {
        "packets_per_s": figures["timing"]["packets_per_s"],
        "throughput_bps": figures["throughput_bps"],
        "bus_load": figures["bus"]["load"],
        "processing_mean_s": figures["processing_latency"]["mean_s"],
        "total_mean_s": figures["total_latency"]["mean_s"],
        "processor_packets": [processor["packets"] for processor in figures["processors"]],
    }


def theirs(command: list[str], run: pathlib.Path, cards: int, *more: str) -> dict:
    arguments = [str(run / "sizes.csv"), str(RATE), str(cards), str(QUEUE), *more]
    return json.loads(subprocess.run([*command, *arguments], check=True, capture_output=True, text=True).stdout)


def difference(mine: dict, other: dict) -> float:
    """The largest relative difference of the figures that both have."""
    pairs = [(mine[name], other[name]) for name in FIGURES if other[name] is not None]
    pairs += list(zip(mine["processor_packets"], other["processor_packets"], strict=True))
    return max(abs(a / b - 1) if b else float(a != b) for a, b in pairs)


def compare(forebay: str, packets: int, rounds: int, cards: int, required: list[str]) -> tuple[list[dict], list[str]]:
    """One row per simulator, and what is wrong."""
    rows, wrong = [], []
    with tempfile.TemporaryDirectory() as directory:
        run = pathlib.Path(directory)
        write_sizes(run / "sizes.csv", packets)
        mine = ours(forebay, run, cards)
        commands = {}
        for peer in peers(cards):
            missing = peer.missing()
            if missing is None:
                commands[peer] = peer.build(run)
                continue
            print(f"peers: {peer.name} is left out: {missing}", file=sys.stderr)
            if peer.name.lower() in required:
                wrong.append(f"{peer.name} is not installed")
        # In turns, so that a machine that changes its speed changes it for all.
        speeds: dict[str, list[float]] = {"Forebay": []}
        figures = {}
        for _ in range(rounds):
            speeds["Forebay"].append(ours(forebay, run, cards)["packets_per_s"])
            for peer, command in commands.items():
                if sys.stderr.isatty():
                    print(f"peers: {peer.name}", file=sys.stderr)
                figures[peer] = theirs(command, run, cards)
                speeds.setdefault(peer.name, []).append(figures[peer]["packets_per_s"])
        for peer, command in commands.items():
            if peer.name == "SystemC":
                # Speed without, figures with the models' order of what happens at one instant.
                figures[peer] = theirs(command, run, cards, "ties")
        own = lines(HERE / "host.toml")
        rows.append({"name": "Forebay", "lines": own, "speed": statistics.median(speeds["Forebay"]), "difference": 0.0})
        for peer in commands:
            apart = difference(mine, figures[peer])
            speed = statistics.median(speeds[peer.name])
            rows.append({"name": peer.name, "lines": lines(peer.model), "speed": speed, "difference": apart})
            if apart > peer.tolerance:
                wrong.append(f"{peer.name} differs by {apart:.1e}, more than {peer.tolerance:.0e}")
    return rows, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forebay", help="the command")
    parser.add_argument("--packets", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cards", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path, help="also write the rows to this file")
    parser.add_argument("--require", action="append", default=[], metavar="NAME", help="fail without this peer")
    arguments = parser.parse_args()
    required = [name.lower() for name in arguments.require]
    forebay = str(pathlib.Path(arguments.forebay).resolve())
    rows, wrong = compare(forebay, arguments.packets, arguments.rounds, arguments.cards, required)
    print(f"{arguments.packets} packets, accelerators: {arguments.cards}, rounds in turns: {arguments.rounds}")
    print(f"{'simulator':12} {'lines of model':>15} {'packets/s of CPU time':>22} {'largest difference':>19}")
    for row in rows:
        apart = "" if row["name"] == "Forebay" else f"{row['difference']:.1e}"
        print(f"{row['name']:12} {row['lines']:15} {row['speed']:22,.0f} {apart:>19}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    for what in wrong:
        print(f"peers: {what}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
