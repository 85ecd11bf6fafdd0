"""Helpers over lists of figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["against", "correlation", "falls", "join", "ranks", "rises"]


def falls(values: Sequence[float], slack: float = 0.0) -> bool:
    """Whether no value exceeds the one before it by more than the share `slack`."""
    return all(after <= before * (1.0 + slack) for before, after in zip(values, values[1:], strict=False))


def rises(values: Sequence[float], slack: float = 0.0) -> bool:
    """Whether no value falls below the one before it by more than the share `slack`."""
    return all(after >= before * (1.0 - slack) for before, after in zip(values, values[1:], strict=False))


def join(values: Iterable[Any]) -> str:
    """The values as text, separated by commas; numbers with three digits."""
    from forebay.study.page import shown

    return ", ".join(shown(value) for value in values)


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Pearson's correlation; NaN where one of the lists does not vary, for then there is none."""
    if min(xs) == max(xs) or min(ys) == max(ys):
        return math.nan
    return statistics.correlation(xs, ys)


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value from 0, ties at their mean rank, for a rank correlation."""
    ordered = sorted(values)
    count = {value: ordered.count(value) for value in ordered}
    return [ordered.index(value) + (count[value] - 1) / 2 for value in values]


def against(values: Sequence[float]) -> float:
    """How far falling values go the other way: the largest step upwards over the fall from first to last.

    Infinite if there is no such fall, so that values that stay the same do not count as falling. For rising values give
    their negatives.
    """
    fall = values[0] - values[-1]
    if not fall > 0:
        return math.inf
    return max(0.0, *(after - before for before, after in zip(values, values[1:], strict=False))) / fall
