"""Values of Python as TOML, for scenarios that are built in code and for settings."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import numbers
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


_UNITS = {"D": "d", "h": "h", "m": "m", "s": "s", "ms": "ms", "us": "us", "ns": "ns", "ps": "ps"}


def plain(value: Any) -> Any:
    """A value of numpy or pandas as one of Python: an array as a list, a span of time as text with its unit.

    Raises
    ------
    TypeError
        If it is a date, or a span of months or years.
    ValueError
        If it is no time (NaT).
    """
    if isinstance(value, datetime.timedelta):  # pandas' too, which has nanoseconds besides
        whole = value // datetime.timedelta(microseconds=1)
        return f"{1000 * int(whole) + getattr(value, 'nanoseconds', 0)} ns"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, numbers.Rational) and not isinstance(value, numbers.Integral):
        return float(value)
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind not in ("m", "M"):
        turned = getattr(value, "tolist", None) or getattr(value, "item", None)
        return turned() if callable(turned) and not isinstance(value, (str, Mapping)) else value
    import numpy

    array = numpy.asarray(value)
    unit, count = numpy.datetime_data(array.dtype)
    if kind == "M" or unit not in _UNITS:
        raise TypeError(f"a value of type {array.dtype} has no place in a scenario: {value!r}")
    if numpy.isnat(array).any():
        raise ValueError(f"no time (NaT) has no place in a scenario: {value!r}")
    spans = (array.astype("int64") * count).tolist()
    return (
        [f"{span} {_UNITS[unit]}" for span in spans]
        if isinstance(spans, list)
        else f"{spans} {_UNITS[unit]}"
    )


def inline(value: Any) -> str:
    """A value as it stands behind ``key =``.

    Raises
    ------
    TypeError
        If TOML has no such value.
    """
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's, but that of a slash, which json does not write.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key(name)} = {inline(one)}" for name, one in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return "[" + ", ".join(inline(one) for one in value) + "]"
    raise TypeError(f"a value of type {type(value).__name__} has no place in a scenario: {value!r}")


def setting(value: Any) -> str:
    """A value as it stands behind ``--set key=``: text as it is, anything else as TOML; nothing removes the key."""
    value = plain(value)
    if value is None:
        return ""
    # Text without a character would remove the key too.
    return value if isinstance(value, str) and value.strip() else inline(value)


def key(name: str) -> str:
    """A key, with quotes where it needs them."""
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _is_tables(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) > 0
        and all(isinstance(one, Mapping) for one in value)
    )


def document(root: Mapping[str, Any]) -> str:
    """A whole scenario: values first, then its tables and lists of tables."""
    lines: list[str] = []
    _table(root, "", lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(table: Mapping[str, Any], path: str, lines: list[str]) -> None:
    below: list[tuple[str, Any]] = []
    for name, value in table.items():
        if value is None:
            continue
        if isinstance(value, Mapping) or _is_tables(value):
            below.append((name, value))
        else:
            lines.append(f"{key(name)} = {inline(value)}")
    for name, value in below:
        full = f"{path}.{key(name)}" if path else key(name)
        for one in [value] if isinstance(value, Mapping) else value:
            lines.append(f"\n[{full}]" if isinstance(value, Mapping) else f"\n[[{full}]]")
            _table(one, full, lines)
