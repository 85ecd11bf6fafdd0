"""Arguments that are a quantity: a number in SI base units, or text with its unit."""

from __future__ import annotations

import math
from typing import Any

from forebay import _forebay, _toml

__all__ = ["count", "number", "seconds", "share"]


def number(value: Any) -> tuple[float, str] | None:
    """A quantity in SI base units and the word of what it measures, ``""`` of a bare number; None if it is none."""
    value = _toml.plain(value)
    if isinstance(value, str):
        return _forebay.quantity(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value), ""
    return None


def seconds(name: str, value: Any) -> float:
    """A time in seconds, at least 0.

    Raises
    ------
    ValueError
        If it is none.
    """
    found = number(value)
    if found is None or found[1] not in ("", "time") or not 0 <= found[0] < math.inf:
        raise ValueError(f'{name} is {value!r}; expected a time: "500 us", or a number of seconds from 0 on')
    return found[0]


def share(name: str, value: Any) -> float:
    """A ratio; text may be in percent.

    Raises
    ------
    ValueError
        If it is no number.
    """
    value = _toml.plain(value)
    text, factor = value, 1.0
    if isinstance(value, str) and value.rstrip().endswith("%"):
        text, factor = value.rstrip().removesuffix("%"), 0.01
    found = number(text)
    if found is None or found[1] != "":
        raise ValueError(f'{name} is {value!r}; expected a ratio such as 0.01, or "1 %"')
    return found[0] * factor


def count(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number.

    Raises
    ------
    ValueError
        If it is none, or out of range.
    """
    found = _toml.plain(value)
    whole = isinstance(found, int) and not isinstance(found, bool)
    if not whole or found < least or (most is not None and found > most):
        last = f"2^{most.bit_length()} - 1" if most is not None and most >= 2**32 - 1 else most
        limits = f", at least {least}" if most is None else f" from {least} to {last}"
        raise ValueError(f"{name} is {value!r}; expected a whole number{limits}")
    return int(found)
