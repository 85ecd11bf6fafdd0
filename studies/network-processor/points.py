"""Values of [N]'s system, and means over the runs of a point."""

from __future__ import annotations

from math import inf, nan

from forebay.study import StudyRun

STAGES = ["receive", "preprocess", "crypto", "ip", "transmit"]
TIMES_US = [27.3, 32.0, 12.6, 49.0, 27.3]


def us(number: float) -> str:
    """A time as scenarios take it."""
    return f"{number:g} us"


def mean(run: StudyRun, path: str) -> float:
    """The mean over the runs of a point."""
    return run[f"replications.{path}.mean"]


def means(runs: list[StudyRun], path: str, factor: float = 1.0) -> list[float]:
    """The mean of each point."""
    return [factor * mean(run, path) for run in runs]


def quotient(after: float, before: float) -> float:
    """A quotient: infinite over zero, and no number if both are zero. A queue may be empty under a control."""
    if before:
        return after / before
    return inf if after > 0 else nan
