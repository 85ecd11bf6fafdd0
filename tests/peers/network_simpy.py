"""A pipeline with branches, feedback and breakdowns as one would write it in SimPy: the oracle of test_networks.py."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import simpy


@dataclass
class Stage:
    """A stage with units of its own; times in seconds."""

    time: Callable[[random.Random], float]
    buffer: int
    units: int
    ways: list[tuple[int, float]]
    mtbf: float | None = None
    mttr: float | None = None
    waiting: deque[float] = field(default_factory=deque)
    inside: int = 0
    lost: int = 0
    busy: float = 0.0
    down: float = 0.0
    # What each unit does, and since when.
    doing: dict[int, tuple[str, float]] = field(default_factory=dict)


class Network:
    """One run: packets come in a Poisson stream to the first stage."""

    def __init__(self, seed: int, gap: float, stages: list[Stage]) -> None:
        self.env = simpy.Environment()
        self.random = random.Random(seed)
        self.gap = gap
        self.stages = stages
        self.bells: list[list[simpy.Event]] = [[] for _ in stages]
        self.came = self.left = 0
        self.delays = 0.0
        self.begin = 0.0

    def run(self, warm_up: float, until: float) -> None:
        self.env.process(self.arrivals())
        for at, stage in enumerate(self.stages):
            for unit in range(stage.units):
                self.env.process(self.unit(at, unit))
        self.env.run(warm_up)
        self.came = self.left = 0
        self.delays = 0.0
        self.begin = warm_up
        for stage in self.stages:
            stage.lost, stage.busy, stage.down = 0, 0.0, 0.0
        self.env.run(until)

    def arrivals(self):
        while True:
            yield self.env.timeout(self.random.expovariate(1 / self.gap))
            self.came += 1
            self.enter(0, self.env.now)

    def enter(self, at: int, packet: float) -> None:
        stage = self.stages[at]
        if stage.inside >= stage.buffer:
            stage.lost += 1
            return
        stage.inside += 1
        stage.waiting.append(packet)
        if self.bells[at]:
            self.bells[at].pop().succeed()

    def unit(self, at: int, unit: int):
        stage, env = self.stages[at], self.env
        fails = float("inf") if stage.mtbf is None else self.random.expovariate(1 / stage.mtbf)
        left, packet = 0.0, None
        while True:
            if packet is None and stage.waiting:
                packet, left = stage.waiting.popleft(), stage.time(self.random)
            if packet is None:
                bell = env.event()
                self.bells[at].append(bell)
                if fails == float("inf"):
                    yield bell
                else:
                    yield bell | env.timeout(max(fails - env.now, 0.0))
                    if bell in self.bells[at]:
                        self.bells[at].remove(bell)
            elif env.now + left <= fails:
                stage.doing[unit] = ("busy", env.now)
                yield env.timeout(left)
                self.count(stage, unit)
                stage.inside -= 1
                self.go_on(stage, packet)
                packet = None
            else:
                began = env.now
                stage.doing[unit] = ("busy", began)
                yield env.timeout(max(fails - env.now, 0.0))
                left -= env.now - began
                self.count(stage, unit)
            if env.now >= fails:
                stage.doing[unit] = ("down", env.now)
                yield env.timeout(self.random.expovariate(1 / stage.mttr))
                self.count(stage, unit)
                fails = env.now + self.random.expovariate(1 / stage.mtbf)

    def count(self, stage: Stage, unit: int) -> None:
        what, began = stage.doing.pop(unit)
        setattr(stage, what, getattr(stage, what) + max(self.env.now - max(began, self.begin), 0.0))

    def go_on(self, stage: Stage, packet: float) -> None:
        number = self.random.random()
        for to, share in stage.ways:
            number -= share
            if number < 0:
                self.enter(to, packet)
                return
        self.left += 1
        self.delays += self.env.now - packet

    def figures(self) -> dict[str, float]:
        elapsed = self.env.now - self.begin
        for stage in self.stages:
            for unit in list(stage.doing):
                self.count(stage, unit)
        figures = {
            "delay.mean_s": self.delays / self.left,
            "loss_probability": sum(stage.lost for stage in self.stages) / self.came,
            "throughput_pps": self.left / elapsed,
        }
        for at, stage in enumerate(self.stages):
            figures[f"s{at}.utilisation"] = stage.busy / elapsed / stage.units
            if stage.mtbf is not None:
                figures[f"s{at}.down"] = stage.down / elapsed / stage.units
        return figures
