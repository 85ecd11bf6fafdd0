"""Buffers of pipelines."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from forebay import _forebay, _quantity
from forebay._progress import Progress, Watch
from forebay.errors import Interrupted
from forebay.scenario import Scenario

__all__ = ["size_buffers"]


def size_buffers(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    loss: float | str,
    most: int = 128,
    by: Literal["chain", "simulation"] | None = None,
    runs: int | None = None,
    threads: int | None = None,
    progress: Watch | bool | None = None,
) -> dict[str, Any]:
    """Find the smallest buffers of a pipeline for a loss ratio, and the maximum throughput of its own buffers.

    Parameters
    ----------
    scenario : Scenario, str, os.PathLike or mapping
        Model ``"pipeline"`` or ``"inline-card"``.
    loss : float or str
        Maximum loss ratio, above 0 and below 1; ``"1 %"`` is 0.01.
    most : int
        Largest buffer to try, in packets.
    by : {"chain", "simulation"}, optional
        How loss is found; by default the Markov chain if the model is solvable.
    runs : int, optional
        Runs per design if loss is found by simulation, at least 2; by default 5.
    threads : int, optional
        Threads for these runs, by default one per core.

    Returns
    -------
    dict
        The JSON document that ``forebay size-buffers --json`` prints; ``smallest`` is None if no buffers of up to
        ``most`` packets suffice.

    Raises
    ------
    Interrupted
        By Ctrl-C; its ``partial`` has the smallest buffers until then, None if none kept the bound yet.
    """
    loss = _quantity.share("loss", loss)
    if not 0.0 < loss < 1.0:
        raise ValueError(f"loss is {loss}; expected a ratio above 0 and below 1, such as 0.01")
    most = _quantity.count("most", most, 1, 2**32 - 1)
    runs = None if runs is None else _quantity.count("runs", runs, 2, 65_535)
    threads = None if threads is None else _quantity.count("threads", threads, 0)
    one = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
    with Progress(progress, "trying buffers") as watch:
        text, interrupted = _forebay.size_buffers(
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
    if interrupted:
        raise Interrupted("interrupted: there may be smaller buffers", sizes)
    return sizes
