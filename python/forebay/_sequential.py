"""Replications until an estimate is narrow enough."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forebay._progress import Progress, Watch
from forebay.errors import Interrupted
from forebay.run import Replications, Run
from forebay.stats import Until

if TYPE_CHECKING:
    from forebay.placement import Placement
    from forebay.scenario import Scenario

__all__ = ["simulate_until"]

# The figure that is looked at unless another one is named.
MAIN = {"host": "throughput_bps", "pipeline": "throughput_pps", "inline-card": "throughput_pps"}


def main_figure(model: str) -> str:
    """The path of the main figure of a model."""
    return MAIN.get(model, "cycles")


def simulate_until(
    scenario: Scenario,
    until: Until,
    seed: int | None,
    policy: Placement | None,
    packets: bool,
    progress: Watch | bool | None,
    threads: int | None,
) -> Replications:
    """Run a scenario with the seeds s, s + 1, ... until its estimate is narrow enough.

    Runs are made several at a time, but those beyond the first that suffice are dropped, so that the number of
    threads changes nothing.
    """
    figure = until.figure or main_figure(scenario.model)
    first = scenario.seed if seed is None else seed
    at_once = threads or os.cpu_count() or 1
    runs: list[Run] = []
    values: list[float] = []
    with Progress(progress, "simulating") as watch:
        try:
            while len(runs) < until.most:
                count = min(max(at_once, until.least - len(runs)), until.most - len(runs))
                ran, interrupted = scenario._native().replicate(
                    first + len(runs), count, at_once, packets, policy, None
                )
                for one in ran:
                    runs.append(Run(scenario, one))
                    values.append(runs[-1][figure])
                    if until.enough(values):
                        return Replications(scenario, runs, until, until.converged(values))
                if interrupted:
                    raise KeyboardInterrupt
                if watch is not None and watch(len(runs), until.most) is False:
                    break
        except KeyboardInterrupt:
            # Of short runs, an interrupt comes between two calls as often as in one.
            partial = Replications(scenario, runs[: len(values)], until, False)
            message = f"interrupted after {len(values)} runs; the estimate is not narrow enough"
            raise Interrupted(message, partial) from None
    return Replications(scenario, runs, until, False)
