"""The result of a sweep: one row for each point, its parameters and figures as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from forebay import _output
from forebay._parts import Parts, columns, path, row
from forebay._points import Plan
from forebay.errors import FigureError
from forebay.run import names_of

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import polars
    import pyarrow

__all__ = ["Table"]


class Table(Sequence[dict[str, Any]]):
    """The points of a sweep in their order.

    A row has the number of the point, the swept keys with the values that were given, the seed of the first
    run, the number of replications, and every figure under the path that `Run` takes, in SI units. With
    several replications a figure is the mean over them, and ``figure.half_width`` the half width of its
    confidence interval.

    Attributes
    ----------
    keys : tuple of str
        The swept keys.
    complete : bool
        Whether all points of the sweep are there; False after an interrupt or an error.
    version : str
        Version of Forebay that ran the points.
    path : str or None
        The folder of the sweep, if it has one.
    """

    def __init__(self, plan: Plan, lines: dict[int, str], parts: Parts | None = None) -> None:
        self._plan = plan
        self._lines = lines
        self._numbers = sorted(lines)
        self._parts = parts
        self._cached: list[dict[str, Any]] | None = None
        self._columns: dict[str, None] | None = None
        self.keys = plan.keys
        self.version = plan.version
        self.path = None if parts is None else str(parts.directory)
        self.points = plan.count
        self.complete = len(self) == plan.count

    def __len__(self) -> int:
        return self._parts.count if self._parts is not None else len(self._lines)

    def __getitem__(self, at: Any) -> Any:
        """Row `at`, or the column of a parameter or figure as a list: ``table["cpu.load"]``."""
        if isinstance(at, str):
            column = self.name(at)
            return [one.get(column) for one in self.rows]
        return self.rows[at]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each point."""
        if self._cached is None:
            if self._parts is not None:
                self._cached = [row(self._plan, number, line) for number, line in self._parts.lines()]
            else:
                self._cached = [row(self._plan, number, self._lines[number]) for number in self._numbers]
        return self._cached

    @property
    def lines(self) -> list[str]:
        """The lines of ``points.jsonl``: what ``forebay simulate --sweep --json`` prints of each point."""
        if self._parts is not None:
            return [line for _, line in self._parts.lines()]
        return [self._lines[number] for number in self._numbers]

    def name(self, name: str) -> str:
        """The column of a parameter or figure, also by its name in ``points.jsonl``: ``processor.cpu.load``.

        Raises
        ------
        FigureError
            If there is no such column; the message names those that there are.
        """
        if self._columns is None:
            self._columns = dict.fromkeys(key for one in self.rows for key in one)
        known = self._columns
        for one in names_of(name):
            for column in (one, path(one)):
                if column in known:
                    return column
        raise FigureError(f"no column `{name}`", hint=f"there are {', '.join(known)}")

    def to_arrow(self) -> pyarrow.Table:
        """The rows as an Arrow table (pyarrow is required)."""
        if self._parts is not None:
            return self._parts.to_arrow()
        import pyarrow

        table = columns(self._plan, self._numbers, [self._lines[number] for number in self._numbers])
        return pyarrow.table(table)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a DataFrame of pandas."""
        if self._parts is not None:
            frame: pandas.DataFrame = self.to_arrow().to_pandas()
            return frame
        import pandas

        return pandas.DataFrame(self.rows)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a DataFrame of polars."""
        import polars

        if self._parts is not None:
            return polars.DataFrame(self.to_arrow())
        return polars.DataFrame(self.rows, infer_schema_length=None)

    def write(self, path: str) -> None:
        """Write the lines of ``points.jsonl`` to a file."""
        _output.replace(path, (f"{line}\n".encode() for line in self.lines))

    def plot(self, x: str, y: str, **options: Any) -> matplotlib.axes.Axes:
        """Draw a figure over a parameter; the arguments are those of `forebay.plots.table`."""
        from forebay import plots

        return plots.table(self, x, y, **options)

    def __repr__(self) -> str:
        state = "" if self.complete else f" of {self.points:,}, incomplete"
        return f"<forebay.Table: {len(self):,} points{state}; {', '.join(self.keys)}>"

    def _repr_html_(self) -> str:
        from html import escape

        shown = self.rows[:20]
        heads = list(dict.fromkeys(key for one in shown for key in one))[: len(self.keys) + 12]

        def cell(value: Any) -> str:
            return escape(f"{value:.6g}" if isinstance(value, float) else str(value))

        body = "".join(
            "<tr>" + "".join(f"<td>{cell(one.get(head, ''))}</td>" for head in heads) + "</tr>"
            for one in shown
        )
        head = "".join(f"<th>{escape(one)}</th>" for one in heads)
        note = escape(repr(self).strip("<>"))
        return (
            f"<table><caption>{note}, Forebay {escape(self.version)}</caption><tr>{head}</tr>{body}</table>"
        )

    def documents(self) -> list[dict[str, Any]]:
        """The lines of ``points.jsonl``, read."""
        return [json.loads(line) for line in self.lines]
