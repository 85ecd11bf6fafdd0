"""The parts of a study's page, as the compiled module draws them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forebay.study import units
from forebay.study.errors import problem

__all__ = ["Series", "heat", "plot", "shown", "table"]


@dataclass(frozen=True)
class Series:
    """A line of a plot over numbers, or bars over names; or a paper's values, drawn as marks.

    Attributes
    ----------
    name : str
        Its name in the legend.
    xs : tuple
        Numbers, or names.
    ys : tuple of float
        As many values; what is not finite is left out.
    spread : tuple of float
        Half the width of each value's confidence interval, or empty.
    where : str
        Of a paper's values: where they are printed; else empty.
    """

    name: str
    xs: tuple[Any, ...]
    ys: tuple[float, ...]
    spread: tuple[float, ...] = ()
    where: str = ""

    def document(self) -> dict[str, Any]:
        """The series for the page."""
        names = any(isinstance(x, str) for x in self.xs)
        return {
            "name": self.name,
            "xs": [shown(x) if names else float(x) for x in self.xs],
            "ys": [finite(y) for y in self.ys],
            "spread": [finite(half) for half in self.spread],
            "where": self.where,
        }


def finite(value: Any) -> float | None:
    """The number, or ``None`` in the place of what JSON cannot say."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise problem("a value of a plot is a number", found=repr(value))
    return float(value) if math.isfinite(value) else None


def series(name: str, xs: Sequence[Any], ys: Sequence[float], spread: Sequence[float], where: str) -> Series:
    """A series whose places and values are as many."""
    if len(xs) != len(ys):
        raise problem(f"series `{name}` has {len(xs)} places and {len(ys)} values")
    if spread and len(spread) != len(ys):
        raise problem(f"series `{name}` has {len(ys)} values and {len(spread)} half widths")
    return Series(name, tuple(xs), tuple(ys), tuple(spread), where)


def shown(value: Any) -> str:
    """A value as text for a cell or an axis: numbers with three digits, of which zeros behind the point stay
    unless the number ends there."""
    if isinstance(value, str):
        return value
    if value is None:
        return "–"
    if hasattr(value, "item"):
        value = value.item()  # numpy's scalars
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real):
        text = units.digits(float(value))
        if "." not in text or "e" in text or "×" in text:
            return text
        short = text.rstrip("0").rstrip(".")
        return short if math.isclose(float(short), value, rel_tol=1e-12) else text
    return str(value)


def plot(
    title: str,
    x: str,
    y: str,
    lines: Sequence[Series],
    paper: Sequence[Series],
    *,
    log_x: bool,
    log_y: bool,
    note: str,
    counterpart: str,
) -> dict[str, Any]:
    """A plot for the page."""
    if not all(isinstance(one, Series) for one in [*lines, *paper]):
        raise problem(f"plot `{title}`: expected lists of what `s.series` and `s.paper` give")
    if not lines:
        raise problem(f"plot `{title}` has no series")
    return {
        "plot": {
            "title": title,
            "x": x,
            "y": y,
            "series": [one.document() for one in lines],
            "paper": [one.document() for one in paper],
            "log_x": log_x,
            "log_y": log_y,
            "note": note,
            "counterpart": counterpart,
        }
    }


def table(
    title: str, head: Sequence[Any], rows: Sequence[Sequence[Any]], note: str, counterpart: str
) -> dict[str, Any]:
    """A table for the page."""
    for row in rows:
        if len(row) != len(head):
            raise problem(f"table `{title}`: a row has {len(row)} cells for {len(head)} columns")
    cells = [[shown(cell) for cell in row] for row in rows]
    heads = [shown(cell) for cell in head]
    return {"table": {"title": title, "head": heads, "rows": cells, "note": note, "counterpart": counterpart}}


def heat(
    title: str,
    x: str,
    y: str,
    columns: Sequence[Any],
    rows: Sequence[Any],
    values: Sequence[Sequence[float]],
    note: str,
    counterpart: str,
) -> dict[str, Any]:
    """A map of ratios for the page."""
    if len(values) != len(rows) or any(len(row) != len(columns) for row in values):
        raise problem(f"map `{title}`: expected {len(rows)} rows of {len(columns)} values")
    return {
        "heat": {
            "title": title,
            "x": x,
            "y": y,
            "columns": [shown(one) for one in columns],
            "rows": [shown(one) for one in rows],
            "values": [[finite(one) for one in row] for row in values],
            "note": note,
            "counterpart": counterpart,
        }
    }
