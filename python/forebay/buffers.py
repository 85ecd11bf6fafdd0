"""Buffers of pipelines."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from forebay import _forebay
from forebay._progress import Progress, Watch
from forebay.scenario import Scenario

__all__ = ["size_buffers"]


def size_buffers(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    loss: float,
    most: int = 128,
    by: Literal["chain", "simulation"] | None = None,
    runs: int = 5,
    threads: int | None = None,
    progress: Watch | bool | None = None,
) -> dict[str, Any]:
    """Find the smallest buffers of a pipeline for a loss ratio, and the maximum throughput of its own buffers.

    Parameters
    ----------
    scenario : Scenario, str, os.PathLike or mapping
        Model ``"pipeline"`` or ``"inline-card"``.
    loss : float
        Maximum loss ratio, above 0 and below 1.
    most : int
        Largest buffer to try, in packets.
    by : {"chain", "simulation"}, optional
        How loss is found; by default the Markov chain if the model is solvable.
    runs : int
        Runs per design if loss is found by simulation, at least 2.
    threads : int, optional
        Threads for these runs, by default one per core.

    Returns
    -------
    dict
        The JSON document that ``forebay size-buffers --json`` prints; ``smallest`` is None if no buffers of up to
        ``most`` packets suffice.
    """
    if not 0.0 < loss < 1.0:
        raise ValueError(f"loss is {loss}; expected a ratio above 0 and below 1, such as 0.01")
    if most < 1 or runs < 2:
        raise ValueError("expected most of at least 1 and runs of at least 2")
    one = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
    with Progress(progress, "trying buffers") as watch:
        text = _forebay.size_buffers(
            one.text,
            one.name,
            list(one.sets),
            one.directory,
            loss,
            most,
            by,
            runs,
            threads or os.cpu_count() or 1,
            watch,
        )
    sizes: dict[str, Any] = json.loads(text)
    return sizes
