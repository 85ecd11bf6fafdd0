"""Traces, and generators fitted to them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from forebay import _forebay, _output
from forebay.errors import Error
from forebay.scenario import Scenario

if TYPE_CHECKING:
    import matplotlib.figure
    import numpy as np
    import numpy.typing as npt
    import pandas

__all__ = ["Goodness", "Trace", "Traffic", "fit", "read_trace"]

Order = Literal["sa", "traffic", "none"]

# Keys of [traffic] that a fitted generator leaves as they are.
_KEPT = ("overhead", "packets", "suites", "warm_up")
_PS = 1e-12
_PS_OF = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12, "m": 60 * 10**12, "h": 3600 * 10**12}
_PS_OF["D"] = 24 * _PS_OF["h"]
# The largest size that a scenario takes.
_SIZE_MAX = 1 << 30


@dataclass(frozen=True, eq=False)
class Trace:
    """Packets in the order of their times.

    Attributes
    ----------
    sizes : numpy array of int
        Sizes in bytes: of a capture the lengths of the IP packets, of the Internet Traffic Archive's ``.tcp``
        and ``.udp`` files the data bytes, of other files the column ``size``.
    times_ps : numpy array of int, or None
        Times in picoseconds since the first packet.
    sas : numpy array of int, or None
        SAs, numbered in the order of their first packets: of captures and of the Archive's files the
        destinations.
    name : str
        The file.
    skipped : int
        Records of the file that are no IP packets.
    """

    sizes: npt.NDArray[np.int64]
    times_ps: npt.NDArray[np.uint64] | None = None
    sas: npt.NDArray[np.int64] | None = None
    name: str = "trace"
    skipped: int = 0

    @property
    def times_s(self) -> npt.NDArray[np.float64] | None:
        """Times in seconds since the first packet."""
        if self.times_ps is None:
            return None
        return cast("npt.NDArray[np.float64]", self.times_ps * _PS)

    @property
    def gaps_s(self) -> npt.NDArray[np.float64] | None:
        """Times between successive packets in seconds."""
        times = self.times_s
        return None if times is None else times[1:] - times[:-1]

    def __len__(self) -> int:
        return len(self.sizes)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per packet: ``size`` (bytes) and, where the trace has them, ``time`` (s) and ``sa``."""
        import pandas

        columns = {"size": self.sizes, "time": self.times_s, "sa": self.sas}
        return pandas.DataFrame({name: values for name, values in columns.items() if values is not None})

    def __repr__(self) -> str:
        sas = "" if self.sas is None else f", {int(self.sas.max()) + 1:,} SAs"
        times = self.times_s
        length = "" if times is None else f", {_forebay.time(float(times[-1]))}"
        return f"<forebay.Trace {self.name}: {len(self):,} packets{sas}{length}>"


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace of any kind that the key ``traffic.path`` takes.

    Parameters
    ----------
    path : str or os.PathLike
        A capture (pcap, pcapng), a CSV or Parquet file with the columns ``size[,time][,sa][,class]`` (bytes,
        seconds), or text of the Internet Traffic Archive (``sanitize-tcp``, ``sanitize-udp``, ``BC``).

    Raises
    ------
    ScenarioError
        If the file is no trace, with file, line, what was found and what is expected.
    """
    np = _numpy()
    table, skipped = _forebay.read_trace(os.fspath(path))
    columns = _arrays(table)
    # Times of up to 213 days are beyond 64 bits with a sign.
    whole = {name: values.astype(np.uint64 if name == "time_ps" else np.int64) for name, values in columns.items()}
    return Trace(whole["size"], whole.get("time_ps"), whole.get("sa"), os.fspath(path), skipped)


@dataclass(frozen=True, eq=False)
class Traffic:
    """A generator fitted to a trace, as keys of ``[traffic]`` of the host model.

    Attributes
    ----------
    keys : dict
        The keys: a histogram of sizes with its transitions, weights of the SAs and the mean run of one SA, a
        histogram of gaps with its transitions and the mean rate.
    trace : Trace
        What it was fitted to.
    """

    keys: dict[str, Any]
    trace: Trace = field(repr=False)

    def apply(self, scenario: Scenario) -> Scenario:
        """A copy of a host scenario with this traffic.

        Its overhead, number of packets, suites and warm-up remain.
        """
        now = scenario.resolved.get("traffic", {})
        kept = {key: now[key] for key in _KEPT if key in now}
        return scenario.set("traffic", {**kept, **self.keys})

    def at(self, rate: float | str) -> Traffic:
        """The same with another mean rate; all gaps are multiplied by one factor.

        Parameters
        ----------
        rate : float or str
            Offered load of payload and overhead in bit/s, or with its unit: ``"200 Mbit/s"``.
        """
        keys = {key: value for key, value in self.keys.items() if key != "packet_rate"}
        return replace(self, keys={**keys, "rate": rate})

    def without(self, *names: Literal["order", "sa_runs", "gap_order"]) -> Traffic:
        """The same without a part of the order, to see what depends on it.

        Parameters
        ----------
        *names : str
            ``"order"``: sizes are drawn independently; ``"sa_runs"``: so are SAs; ``"gap_order"``: so are
            gaps.
        """
        of = {"order": ("transitions", "transitions_per"), "sa_runs": ("sa_run_length",)}
        of["gap_order"] = ("gap_transitions",)
        gone = {key for name in names for key in of[name]}
        return replace(self, keys={key: value for key, value in self.keys.items() if key not in gone})

    def draw(self, packets: int | None = None, seed: int = 1) -> Trace:
        """Draw packets, as a simulation does.

        Parameters
        ----------
        packets : int, optional
            How many; by default as many as the trace has.
        seed : int
            The seed.
        """
        np = _numpy()
        count = len(self.trace) if packets is None else packets
        keys = {"rate": "1 Gbit/s", **self.keys} if "arrivals" not in self.keys else self.keys
        card = {"name": "card", "kind": "accelerator", "init": "1 ps", "block": "1 ps"}
        host = {"model": "host", "traffic": {**keys, "packets": count, "overhead": 0}, "processor": [card]}
        run = Scenario(host).simulate(seed=seed, packets=True, progress=False)
        columns = run.packets.to_numpy()
        times = columns["arrived_ps"].astype(np.uint64) if "arrivals" in self.keys else None
        sas = columns["sa"].astype(np.int64) if "sa_weights" in self.keys else None
        return Trace(columns["bytes"].astype(np.int64), times, sas, "fitted generator")

    def goodness(self, packets: int | None = None, seed: int = 1, lags: int = 50) -> Goodness:
        """Compare packets that are drawn with the trace.

        Parameters
        ----------
        packets : int, optional
            How many to draw; by default as many as the trace has.
        seed : int
            The seed.
        lags : int
            Largest lag of the autocorrelation in packets.
        """
        _numpy()
        from forebay import _goodness

        drawn = self.draw(packets, seed)
        trace = self.trace
        figures = {
            "sizes_ks": _goodness.kolmogorov_smirnov(trace.sizes, drawn.sizes),
            "sizes_mean": float(trace.sizes.mean()),
            "sizes_mean_drawn": float(drawn.sizes.mean()),
            "critical_5_percent": _goodness.critical(len(trace), len(drawn)),
        }
        if trace.gaps_s is not None and drawn.gaps_s is not None:
            figures["gaps_ks"] = _goodness.kolmogorov_smirnov(trace.gaps_s, drawn.gaps_s)
            figures["gaps_mean_s"] = float(trace.gaps_s.mean())
            figures["gaps_mean_s_drawn"] = float(drawn.gaps_s.mean())
        if trace.sas is not None and drawn.sas is not None:
            of_trace, of_drawn = _goodness.shares(trace.sas), _goodness.shares(drawn.sas)
            common = min(len(of_trace), len(of_drawn))
            figures["sa_shares_distance"] = float(abs(of_trace[:common] - of_drawn[:common]).max())
            figures["sa_run"] = _goodness.run_lengths(trace.sas)
            figures["sa_run_drawn"] = _goodness.run_lengths(drawn.sas)
        return Goodness(trace, drawn, figures, lags)

    def __repr__(self) -> str:
        sas = len(self.keys.get("sa_weights", [0]))
        order = self.keys.get("transitions_per", "none")
        return (
            f"<forebay.Traffic of {self.trace.name}: {len(self.keys['bins'])} bins of sizes, "
            f"order per {order}, {sas:,} SAs, {len(self.keys.get('gaps', []))} bins of gaps>"
        )


@dataclass(frozen=True, eq=False)
class Goodness:
    """How well a fitted generator reproduces its trace.

    Attributes
    ----------
    trace, drawn : Trace
        The packets that are compared.
    figures : dict of str to float
        ``sizes_ks`` and ``gaps_ks``: two-sample Kolmogorov-Smirnov distances; ``critical_5_percent``: what
        independent samples of one distribution exceed in 5 % of cases; ``sa_shares_distance``: largest
        distance of the cumulative shares of the SAs; ``sa_run``: mean number of successive packets of one SA.
    lags : int
        Largest lag of the autocorrelation in packets.
    """

    trace: Trace
    drawn: Trace
    figures: dict[str, float]
    lags: int = 50

    def plot(self) -> matplotlib.figure.Figure:
        """Draw distributions, autocorrelations, dispersion and shares of trace and generator (matplotlib)."""
        from forebay import _goodness_page

        return _goodness_page.figure(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page with the figures and plots (matplotlib is required).

        Parameters
        ----------
        path : str or os.PathLike
            The file.
        """
        from forebay import _goodness_page

        _output.replace(path, _goodness_page.page(self))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{name}</td><td>{_forebay.digits(value)}</td></tr>"
            for name, value in self.figures.items()
        )
        return f"<table><tbody>{rows}</tbody></table>"


def fit(
    source: str | os.PathLike[str] | Trace | Mapping[str, Any] | Any,
    *,
    order: Order | None = None,
    bins: int = 64,
    gap_bins: int = 32,
) -> Traffic:
    """Fit a generator to a trace: sizes and their order, SAs, gaps (numpy and pyarrow are required).

    Sizes are an empirical histogram whose bins follow each other by a first-order Markov chain; SAs are drawn
    by their shares in runs of geometric length; gaps are an empirical histogram, also with a chain, which
    keeps bursts. SAs share one chain: that one flow has only large packets and another only small ones is not
    kept, nor is a dependence of gaps on sizes. :meth:`Traffic.goodness` measures what that costs.

    Parameters
    ----------
    source : str, os.PathLike, Trace, or mapping of columns
        A file as :func:`read_trace` takes it; or a table (a DataFrame, a table of pyarrow, or a dictionary of arrays) with the
        column ``size`` (bytes) and optionally ``time`` (seconds, or timestamps or durations of numpy, pandas or
        polars) and ``sa``.
    order : {"sa", "traffic", "none"}, optional
        On what the size of a packet depends: the preceding packet of the same SA, that of all traffic, or
        nothing. By default ``"sa"`` for a trace of several SAs, and ``"traffic"`` otherwise.
    bins, gap_bins : int
        Maximum number of bins of sizes and of gaps, 4 to 128.

    Returns
    -------
    Traffic
        The generator; ``fit(capture).apply(host)`` is the scenario with that traffic.

    Raises
    ------
    ScenarioError
        If the file is no trace.
    Error
        If the trace has fewer than two packets, or numpy is not installed.
    """
    np = _numpy()
    for name, count in (("bins", bins), ("gap_bins", gap_bins)):
        if not 4 <= count <= 128:
            raise ValueError(f"{name} is {count}; expected 4 to 128")
    if isinstance(source, (str, os.PathLike)):
        trace = read_trace(source)
    elif isinstance(source, Trace):
        trace = source
    else:
        trace = _of_table(source)
    if len(trace) < 2:
        raise Error(f"{trace.name} has {len(trace)} packets; a generator is fitted to at least 2")
    from forebay import _fitting

    several = trace.sas is not None and bool(np.any(trace.sas != trace.sas[0]))
    if order is None:
        order = "sa" if several else "traffic"
    if order == "sa" and trace.sas is None:
        raise Error(f"{trace.name} has no SAs", hint="fit with order='traffic'")
    sas = trace.sas if several else None
    per = "traffic" if order == "sa" and not several else order
    keys = _fitting.keys_of(trace.sizes, trace.times_ps, sas, order=per, bins=bins, gap_count=gap_bins)
    return Traffic(keys, trace)


def _of_table(table: Any) -> Trace:
    """A trace of the columns of a table."""
    np = _numpy()
    if hasattr(table, "column_names"):
        # Of pyarrow, whose `columns` are no names.
        table = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    if not isinstance(table, Mapping) and not hasattr(table, "columns"):
        raise TypeError(f"expected a file, a trace or a table with the column `size`, found {type(table).__name__}")
    names = list(table.keys()) if isinstance(table, Mapping) else list(table.columns)
    if "size" not in names:
        hint = "rename the column with the sizes in bytes"
        raise Error(f"the table has no column `size`, only {', '.join(map(str, names))}", hint=hint)
    for known in {"time", "sa"} - set(names):
        for name in names:
            word = str(name).strip().lower()
            if difflib.SequenceMatcher(None, known, word).ratio() > (0.7 if known == "time" else 0.9):
                hint = f"rename it to `{known}`, or leave it out"
                raise Error(f"the table has no column `{known}`, but a column `{name}`", hint=hint)
    lengths = {name: len(table[name]) for name in ("size", "time", "sa") if name in names}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{count} in `{name}`" for name, count in lengths.items())
        raise Error(f"the columns have different numbers of rows: {found}")
    sizes = _sizes(table["size"])
    order = np.arange(len(sizes))
    times = None
    if "time" in names and len(sizes):
        order, times = _times(table["time"])
    sas = None
    if "sa" in names:
        _complete("sa", table["sa"])
        sas = np.unique(np.asarray(table["sa"])[order], return_inverse=True)[1].astype(np.int64)
    return Trace(sizes[order], times, sas, "table")


def _complete(column: str, values: Any) -> None:
    """Refuse a column with a missing value: NaN, None, NaT."""
    np = _numpy()
    found = np.asarray(values)
    if found.dtype.kind in "biuSU":
        return
    rows = np.flatnonzero(np.isnan(found)) if found.dtype.kind == "f" else range(len(found))
    for row in rows:
        # NaN, NaT and pandas.NA, whose comparison has no truth value.
        if (value := found[row]) is None or str(value) in ("nan", "NaT", "<NA>"):
            raise Error(f"row {row} of column `{column}`: found {value}, expected a value")


def _numbers(column: str, values: Any, expected: str) -> None:
    """Refuse what numpy would make numbers of: truth values and complex numbers."""
    found = _numpy().asarray(values)
    if found.dtype.kind in "bc" or any(isinstance(one, (bool, complex)) for one in found[:1].tolist()):
        raise Error(f"column `{column}` has values of type {found.dtype}", hint=f"give {expected}")


def _sizes(values: Any) -> Any:
    """Sizes in bytes, as a scenario takes them."""
    np = _numpy()
    _numbers("size", values, "whole numbers of bytes")
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise Error(f"column `size`: {error}", hint="give whole numbers of bytes") from None
    wrong = np.flatnonzero(~((found >= 0) & (found <= _SIZE_MAX) & (found == np.floor(found))))
    if len(wrong):
        row = int(wrong[0])
        raise Error(f"row {row} of column `size`: found {found[row]:g}, expected a whole number of bytes from 0 on")
    return found.astype(np.int64)


def _times(values: Any) -> tuple[Any, Any]:
    """The order of the packets, and picoseconds since the first one, of seconds, timestamps or durations."""
    np = _numpy()
    found = np.asarray(values)
    kind = found.dtype.kind
    if kind not in "mM":
        _complete("time", found)
        if hasattr(found[0], "total_seconds") or hasattr(found[0], "timestamp"):
            # Timestamps may be of a zone: only differences count.
            found = np.array([one - found[0] for one in found], "timedelta64[ns]")
    if found.dtype.kind in "mM":
        missing = np.flatnonzero(np.isnat(found))
        ticks = found.astype(np.int64)
        unit, steps = np.datetime_data(found.dtype)
        if unit not in _PS_OF:
            raise Error(f"column `time` is in the unit `{unit}`", hint="give seconds, or a unit from days to picoseconds")
        scale: int = steps * _PS_OF[unit]
    else:
        _numbers("time", found, "seconds as numbers, or timestamps or durations")
        try:
            ticks = found.astype(np.float64)
        except (TypeError, ValueError) as error:
            hint = "give seconds as numbers, or timestamps or durations"
            raise Error(f"column `time`: {error}", hint=hint) from None
        missing, scale = np.flatnonzero(~np.isfinite(ticks)), 10**12
    if len(missing):
        row = int(missing[0])
        raise Error(f"row {row} of column `time`: found {found[row]}, expected a time")
    early = np.flatnonzero(ticks < 0)
    # Of timestamps only differences count.
    if len(early) and (kind == "m" or found.dtype.kind not in "mM"):
        row = int(early[0])
        raise Error(f"row {row} of column `time`: found {found[row]}, expected a time from 0 on")
    order = np.argsort(ticks, kind="stable")
    since = ticks[order] - ticks[order[0]]
    if int(since[-1]) * scale >= 2**64:
        raise Error("the times of the table are further apart than 213 days", hint="divide the trace")
    if since.dtype.kind == "f":
        return order, np.round(since / _PS).astype(np.uint64)
    return order, since.astype(np.uint64) * np.uint64(scale)


def _arrays(table: _forebay.Table) -> dict[str, Any]:
    try:
        import pyarrow
    except ImportError as missing:
        raise Error("a trace is read by pyarrow", hint="pip install pyarrow") from missing
    columns = pyarrow.table(table)
    return {name: columns.column(name).to_numpy() for name in columns.column_names}


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as missing:
        raise Error("traces are fitted by numpy", hint="pip install numpy") from missing
    return numpy
