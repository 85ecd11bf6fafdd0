"""Helpers over lists of figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["falls", "join", "rises"]


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
