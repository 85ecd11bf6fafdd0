"""Helpers over lists of figures, and the figures of a core as paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["core_figures", "falls", "join", "rises"]


def core_figures(figures: dict[str, Any]) -> dict[str, float]:
    """The figures of firmware on a core as one flat mapping, in a fixed order.

    Parameters
    ----------
    figures
        The key ``figures`` of what ``forebay explore run --json`` prints.

    Returns
    -------
    dict
        ``cycles``, ``cause.NAME``, ``group.NAME``, ``group.NAME.CAUSE``, ``side.NAME``, ``class.NAME.cycles``,
        ``function.NAME``, ``total.NAME`` (of a function with all that it calls), ``code.NAME`` (bytes of a group's
        code that ran), ``windows.32.overflows`` (what register windows would have done), ``area.NAME`` (thousand
        gate equivalents), ``memory.loads`` and others; cycles but where the name says else.
    """
    row = {key: float(one) for key, one in figures.items() if isinstance(one, (int, float)) and key != "code"}
    for list_name, word in (("causes", "cause"), ("groups", "group"), ("sides", "side")):
        row.update({f"{word}.{one['name']}": float(one["cycles"]) for one in figures[list_name]})
    causes = [one["name"] for one in figures["causes"]]
    for one in figures["groups"]:
        row.update({f"group.{one['name']}.{cause}": float(each) for cause, each in zip(causes, one["causes"], strict=True)})
        row[f"code.{one['name']}"] = float(one["code_bytes"])
    for one in figures["windows"]:
        for key in ("overflows", "underflows"):
            row[f"windows.{one['registers']}.{key}"] = float(one[key])
    for one in figures["classes"]:
        for key in ("instructions", "cycles", "protocol_cycles", "crypto_cycles"):
            short = key.removesuffix("_cycles")
            row[f"class.{one['name']}.{short}"] = float(one[key])
    row.update({f"function.{one['name']}": float(one["cycles"]) for one in figures["functions"]})
    row.update({f"total.{one['name']}": float(one["total_cycles"]) for one in figures["functions"]})
    row.update({f"area.{one['name']}": float(one["kge"]) for one in figures["area"]})
    row.update({f"memory.{key}": float(one) for key, one in figures["memory"].items()})
    return row


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
