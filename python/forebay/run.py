"""The results of runs."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from forebay import _forebay
from forebay.errors import FigureError
from forebay.stats import Estimate, Until, estimate

if TYPE_CHECKING:
    import matplotlib.axes
    import numpy
    import pandas
    import polars

    from forebay.scenario import Scenario

__all__ = ["Packets", "Replications", "Run"]

# Lists whose elements have names, so that a path can go through them by name.
_LISTS = ("processors", "classes", "stages", "servers", "resources")
# Words of one meaning in paths of different models; each is an answer where the other one stands.
_SAME = (("load", "utilisation"), ("total_latency", "delay"))
# What a document has besides figures.
_REST = ("schema", "model", "notes", "warnings", "resolved", "runs", "bounds")


class Run:
    """The figures of one run, with everything that is required to repeat it.

    Attributes
    ----------
    scenario : Scenario
        The scenario that was run.
    seed : int
        The seed; 0 if nothing is drawn.
    version : str
        The version of Forebay.
    notes : list of str
        What the reader of the figures should know.
    cut : int or None
        The packets of a run that was broken off: its figures are those of a run of as many packets.

    Examples
    --------
    >>> run["cpu.load"], run["total_latency.p99_s"]     # doctest: +SKIP
    """

    __slots__ = ("_document", "_figures", "_packets", "cut", "notes", "scenario", "seed", "version")

    def __init__(self, scenario: Scenario, ran: _forebay.Ran) -> None:
        self.scenario: Scenario = scenario
        self.seed: int = ran.seed
        self.version: str = _forebay.version
        self.notes: list[str] = list(ran.notes)
        self.cut: int | None = ran.cut
        self._document: str = ran.document()
        self._figures: dict[str, Any] | None = None
        table = ran.packets()
        self._packets: Packets | None = None if table is None else Packets(table)

    @property
    def figures(self) -> dict[str, Any]:
        """All figures: the JSON document that ``forebay simulate --json`` or ``forebay solve --json`` prints."""
        if self._figures is None:
            self._figures = json.loads(self._document)
        return self._figures

    @property
    def document(self) -> str:
        """The same as text, byte for byte as the command prints it."""
        return self._document

    @property
    def packets(self) -> Packets:
        """Every packet of the run, if it was made with ``packets=True``."""
        if self._packets is None:
            raise FigureError(
                "the run has no packets",
                hint="simulate with packets=True (host model); a run that was pickled has left them behind",
            )
        return self._packets

    def __getitem__(self, path: str) -> float:
        """The figure at a path.

        Parameters
        ----------
        path : str
            ``"throughput_bps"``, ``"total_latency.p99_s"``, or one of a processor, service class, stage, server or
            resource by its name: ``"cpu.load"``, ``"card.0.packets"``, ``"receive.max_queue"``. ``load`` and
            ``total_latency`` are paths of all models, though documents of pipelines and cards say ``utilisation`` and
            ``delay``; these are answered of all models too.

        Returns
        -------
        float
            Not a number where the run has nothing that it could be of, such as the delay of no packet.

        Raises
        ------
        FigureError
            A KeyError that lists the figures that the run has.
        """
        value = _figure(self.figures, path)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            known = self.keys()
            if any(name in known for name in names_of(path)):
                return math.nan
            raise _unknown(path, known)
        return float(value)

    def __iter__(self) -> Iterator[str]:
        """The paths of all figures, as those of a mapping."""
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        known = self.keys() if _figure(self.figures, path) is None else [path]
        return any(name in known for name in names_of(path))

    def get(self, path: str, default: float = math.nan) -> float:
        """The figure at a path, or ``default`` if there is none."""
        return self[path] if path in self else default

    def keys(self) -> list[str]:
        """The paths of all figures."""
        return list(_paths(self.figures, ""))

    def flat(self) -> dict[str, float]:
        """All figures by their paths, for tables."""
        return {path: self[path] for path in self.keys()}

    def plot(self, **options: Any) -> matplotlib.axes.Axes:
        """Draw the loads or the latencies; the arguments are those of :func:`forebay.plots.run`."""
        from forebay import plots

        return plots.run(self, **options)

    def __eq__(self, other: object) -> bool:
        """Whether the other run has the same scenario, seed and figures."""
        if not isinstance(other, Run):
            return NotImplemented
        return (self._document, self.seed, self.cut) == (other._document, other.seed, other.cut)

    def __hash__(self) -> int:
        return hash((self._document, self.seed))

    def __getstate__(self) -> dict[str, Any]:
        # Packets stay: a table of a million rows is made again from scenario and seed.
        names = ("scenario", "seed", "version", "notes", "cut", "_document")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._figures = None
        self._packets = None

    def __repr__(self) -> str:
        return f"<forebay.Run of {self.scenario.name}, seed {self.seed}: {_headline(self)}>"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td style='text-align:left'>{escape(path)}</td><td>{escape(_forebay.digits(value))}</td></tr>"
            for path, value in self.flat().items()
            if path != "seed"  # in the summary
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        head = f"{escape(self.scenario.name)}, seed {self.seed}, Forebay {escape(self.version)}"
        return (
            f"<details open><summary><b>{escape(_headline(self))}</b> ({head})</summary>"
            f"<table><tbody>{rows}</tbody></table></details>{notes}"
        )


def _headline(run: Run) -> str:
    if "throughput_bps" in run:
        latency = run.get("total_latency.p99_s")
        text = _forebay.bits(run["throughput_bps"])
        return text if math.isnan(latency) else f"{text}, 99 % within {_forebay.time(latency)}"
    for path in ("throughput_pps", "payload_bps", "cycles"):
        if path in run:
            return f"{path} {_forebay.digits(run[path])}"
    return f"{len(run.keys())} figures"


class Replications(Sequence[Run]):
    """Runs of one scenario with the seeds s, s + 1, ..., in that order.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    until : Until or None
        What decided on the number of runs, if it was not given.
    converged : bool or None
        Whether the interval of `until` is narrow enough; False if its maximum number of runs or an interrupt ended
        it before; None without `until`.
    """

    def __init__(
        self, scenario: Scenario, runs: Sequence[Run], until: Until | None = None, converged: bool | None = None
    ) -> None:
        self.scenario = scenario
        self._runs = tuple(runs)
        self.until = until
        self.converged = converged

    @overload
    def __getitem__(self, at: int) -> Run: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Run, ...]: ...

    def __getitem__(self, at: int | slice) -> Run | tuple[Run, ...]:
        if isinstance(at, str):
            raise TypeError(f"several runs have no one figure: expected estimate({at!r}) or values({at!r})")
        return self._runs[at]

    def __eq__(self, other: object) -> bool:
        """Whether the other runs have the same scenario, seeds and figures."""
        return self._runs == other._runs if isinstance(other, Replications) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [run.seed for run in self._runs]

    def values(self, path: str) -> list[float]:
        """The figure at a path, of each run."""
        return [run[path] for run in self._runs]

    @property
    def confidence(self) -> float:
        """The confidence of intervals: that of `until`, and 0.95 without it."""
        return 0.95 if self.until is None else self.until.confidence

    def estimate(self, path: str, confidence: float | None = None) -> Estimate:
        """Mean and confidence interval of the figure at a path."""
        return estimate(self.values(path), self.confidence if confidence is None else confidence)

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Mean and confidence interval of every figure."""
        return {path: self.estimate(path) for path in (self._runs[0].keys() if self._runs else [])}

    def plot(self, figure: str | None = None, **options: Any) -> matplotlib.axes.Axes:
        """Draw a figure of each run with its mean; the arguments are those of :func:`forebay.plots.replications`."""
        from forebay import plots

        return plots.replications(self, figure, **options)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per run: its seed and all figures."""
        import pandas

        return pandas.DataFrame(self._rows())

    def to_polars(self) -> polars.DataFrame:
        """The same as a DataFrame of polars."""
        import polars

        return polars.DataFrame(self._rows())

    def _rows(self) -> list[dict[str, float]]:
        return [{"seed": run.seed} | run.flat() | {"seed": run.seed} for run in self._runs]

    def __repr__(self) -> str:
        return f"<forebay.Replications: {len(self)} runs of {self.scenario.name}{self._state()}>"

    def _state(self) -> str:
        return f"; {self.until}: not converged" if self.converged is False else ""

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td style='text-align:left'>{escape(path)}</td><td>{escape(_forebay.digits(one.mean))}</td>"
            f"<td>&plusmn; {escape(_forebay.digits(one.half_width))}</td></tr>"
            for path, one in self.estimates.items()
        )
        head = f"{len(self)} runs of {escape(self.scenario.name)}, mean and {100 * self.confidence:g} % confidence interval"
        head += escape(self._state())
        return f"<details open><summary>{head}</summary><table><tbody>{rows}</tbody></table></details>"


class Packets:
    """Every packet of a run as an Arrow table, in the order of arrival.

    Columns: ``packet``, ``bytes``, ``sa``, ``arrived_ps``, ``chosen_ps``, ``completed_ps`` (picoseconds of simulated
    time), ``processor``. Of a lost packet processor and later times are null. Any library that reads Arrow's C stream
    interface takes the object itself: ``pyarrow.table(packets)``, ``polars.DataFrame(packets)``.
    """

    __slots__ = ("_table",)

    def __init__(self, table: _forebay.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self._table.rows

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._table.columns

    def to_pandas(self) -> pandas.DataFrame:
        """The packets as a DataFrame (pandas and pyarrow are required); columns without nulls are not copied."""
        import pyarrow

        frame: pandas.DataFrame = pyarrow.table(self).to_pandas(split_blocks=True)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The packets as a DataFrame of polars, without a copy."""
        import polars

        return polars.DataFrame(self)

    def to_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """One array per column (pyarrow is required). Times with nulls are floats with NaN."""
        import pyarrow

        table = pyarrow.table(self)
        return {name: table.column(name).to_numpy() for name in table.column_names}

    def __repr__(self) -> str:
        return f"<forebay.Packets: {len(self):,} rows of {', '.join(self.columns)}>"


def names_of(path: str) -> Iterator[str]:
    """A path, and the same with the words that other models have for it."""
    yield path
    steps = path.split(".")
    for words in _SAME:
        for at, step in enumerate(steps):
            if step in words:
                other = words[1 - words.index(step)]
                yield ".".join([*steps[:at], other, *steps[at + 1 :]])
    # Of what is solved there are means only.
    means = ("total_latency.mean_s", "delay.mean_s", "mean_delay_s")
    yield from (one for one in means if path in means and one != path)


def _figure(figures: dict[str, Any], path: str) -> Any:
    for name in names_of(path):
        value = _at(figures, name)
        if isinstance(value, (int, float)):
            return value
    return None


def _at(value: Any, path: str) -> Any:
    """The value at a path. Names may have dots in them."""
    inside = _inside(value, path)
    if inside is not None:
        return inside
    dot = path.find(".")
    while dot >= 0:
        outer = _inside(value, path[:dot])
        if outer is not None:
            found = _at(outer, path[dot + 1 :])
            if found is not None:
                return found
        dot = path.find(".", dot + 1)
    return None


def _inside(value: Any, step: str) -> Any:
    if not isinstance(value, dict):
        return None
    if step in value and step not in _LISTS:
        return value[step]
    for name in _LISTS:
        for one in value.get(name) or ():
            if isinstance(one, dict) and one.get("name") == step:
                return one
    return None


def _paths(value: Any, path: str) -> Iterator[str]:
    def below(key: str) -> str:
        return f"{path}.{key}" if path else key

    if isinstance(value, dict):
        for key, one in value.items():
            if not path and key in _REST:
                continue
            if key in _LISTS:
                for element in one or ():
                    yield from _paths(element, below(str(element.get("name", "?"))))
            else:
                yield from _paths(one, below(key))
    elif (value is None and path) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        yield path


def _unknown(path: str, known: list[str]) -> FigureError:
    near = difflib.get_close_matches(path, known, n=1, cutoff=0.0)
    hint = f"did you mean `{near[0]}`? There are {', '.join(known)}" if near else "the run has no figures"
    return FigureError(f"no figure `{path}`", hint=hint)
