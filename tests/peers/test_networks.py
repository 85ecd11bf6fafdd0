"""Random networks of stages, with branches, feedback, losses and breakdowns, beside a model in SimPy.

FOREBAY=target/release/forebay pytest tests/peers/test_networks.py
"""

from __future__ import annotations

import json
import math
import pathlib
import random
import statistics
import subprocess

import pytest
from test_peers import forebay

CASES = 20
RUNS = 8
PACKETS = 2500
# Standard errors of the difference of two times eight runs: some 110 figures are compared, with seeds that stay the same.
TOLERANCE = 4.5


def law(draw: random.Random, mean: float):
    """A law as the file says it, and as Python's random draws it."""
    kind = draw.choice(["exponential", "gamma", "lognorm", "weibull_min", "uniform", "hyperexponential"])
    if kind == "gamma":
        a = draw.choice([0.5, 2.0, 4.0])
        return f'distribution = "gamma"\na = {a}\ntime = {mean}', lambda r: r.gammavariate(a, mean / a)
    if kind == "lognorm":
        s = draw.choice([0.3, 0.8])
        middle = math.log(mean) - s * s / 2
        return f'distribution = "lognorm"\ns = {s}\ntime = {mean}', lambda r: r.lognormvariate(middle, s)
    if kind == "weibull_min":
        c = draw.choice([0.8, 1.5, 3.0])
        scale = mean / math.gamma(1 + 1 / c)
        return f'distribution = "weibull_min"\nc = {c}\nscale = {scale}', lambda r: r.weibullvariate(scale, c)
    if kind == "uniform":
        low = mean / 4
        return f'distribution = "uniform"\nloc = {low}\ntime = {mean}', lambda r: r.uniform(low, 2 * mean - low)
    if kind == "hyperexponential":
        means = [mean / 2, mean * 3]
        text = f"times = {means}\nshares = [0.8, 0.2]"
        return text, lambda r: r.expovariate(1 / means[r.random() >= 0.8])
    return f'distribution = "exponential"\ntime = {mean}', lambda r: r.expovariate(1 / mean)


def ways(draw: random.Random, at: int, count: int) -> list[tuple[int, float]]:
    """To the next stage, and perhaps to others, also back; something always leaves."""
    to = {at + 1, *(draw.randrange(count) for _ in range(draw.randrange(3)))} & set(range(count))
    weights = {one: draw.uniform(0.5, 2.0) for one in sorted(to)}
    whole = sum(weights.values()) / draw.uniform(0.4, 0.8)
    return [(one, round(weight / whole, 3)) for one, weight in weights.items()]


def case(number: int):
    """A scenario file, and the stages for SimPy."""
    network_simpy = pytest.importorskip("network_simpy")
    draw = random.Random(1000 + number)
    count = draw.randint(1, 4)
    gap, breaks = 100e-6, number % 3 == 2
    lines = ['model = "pipeline"', f"duration = {PACKETS * gap * 1.1}", f"warm_up = {PACKETS * gap * 0.1}", f"seed = {number + 1}"]
    lines += ["[arrivals]", f"mean = {gap}"]
    makers = []
    for at in range(count):
        units = draw.choice([1, 1, 2, 3])
        text, time = law(draw, units * gap * draw.uniform(0.2, 0.7))
        buffer, next_ = draw.choice([units + 1, units + 4, 1000]), ways(draw, at, count)
        mtbf = mttr = None
        if breaks and at == 0:
            units, mtbf, mttr = 1, gap * draw.uniform(20, 60), gap * draw.uniform(3, 8)
        lines += ["[[stage]]", f'name = "s{at}"', text, f"buffer = {buffer}", f"units = {units}"]
        lines += [f"mtbf = {mtbf}", f"mttr = {mttr}"] if mtbf else []
        branches = ", ".join(f'{{ stage = "s{to}", share = {share} }}' for to, share in next_)
        lines.append(f"next = [{branches}]")
        makers.append((time, buffer, units, next_, mtbf, mttr))
    warm_up, until = PACKETS * gap * 0.1, PACKETS * gap * 1.1

    def one(seed: int) -> dict[str, float]:
        network = network_simpy.Network(seed, gap, [network_simpy.Stage(*maker) for maker in makers])
        network.run(warm_up, until)
        return network.figures()

    return "\n".join(lines), one


def figure(document: dict, path: str) -> float:
    """A figure of a document by the path that SimPy's model names it by."""
    first, _, rest = path.partition(".")
    if first[0] == "s" and first[1:].isdigit():
        return next(stage for stage in document["stages"] if stage["name"] == first)[rest]
    return document[first][rest] if rest else document[first]


@pytest.mark.parametrize("number", range(CASES))
def test_a_random_network_is_that_of_simpy(tmp_path: pathlib.Path, number: int) -> None:
    pytest.importorskip("simpy")
    text, one = case(number)
    file = tmp_path / "network.toml"
    theirs = [one(100 * number + run) for run in range(RUNS)]
    ours = []
    for seed in range(RUNS):
        file.write_text(text.replace(f"seed = {number + 1}", f"seed = {seed + 1}"))
        said = subprocess.run([forebay(), "simulate", file, "--json"], check=True, capture_output=True, text=True)
        ours.append(json.loads(said.stdout))
    for path in theirs[0]:
        mine, other = [figure(run, path) for run in ours], [run[path] for run in theirs]
        error = math.sqrt((statistics.variance(mine) + statistics.variance(other)) / RUNS)
        off = abs(statistics.mean(mine) - statistics.mean(other))
        assert off <= TOLERANCE * error + 1e-9, f"{path}: {statistics.mean(mine)}, by SimPy {statistics.mean(other)}\n{text}"
