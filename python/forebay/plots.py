"""Plots with one call each (matplotlib). Each draws into `ax` or a new figure; it returns the Axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay.errors import RunError

if TYPE_CHECKING:
    import matplotlib.axes

    from forebay.run import Replications, Run
    from forebay.search import Search
    from forebay.table import Table

__all__ = ["replications", "run", "search", "table"]

Printed = Sequence[tuple[float, float]] | Mapping[Any, Sequence[tuple[float, float]]]

# Units of the last part of a path, and the factor to the unit of the axis.
_UNITS = {"bps": ("Mbit/s", 1e-6), "s": ("us", 1e6), "pps": ("packets/s", 1.0), "load": ("%", 100.0)}
# Okabe and Ito: colours that are told apart without seeing red and green.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")


def table(
    data: Table,
    x: str,
    y: str,
    *,
    hue: str | None = None,
    paper: Printed | None = None,
    ax: matplotlib.axes.Axes | None = None,
    log_x: bool = False,
    log_y: bool = False,
    title: str | None = None,
) -> matplotlib.axes.Axes:
    """Draw a figure over a parameter, one line for each value of another parameter.

    Parameters
    ----------
    data : Table
        The points. With several replications the half widths of the confidence intervals are drawn as bars.
    x : str
        The swept key of the horizontal axis. Values that are no numbers are placed side by side.
    y : str
        Path of the figure. Times are drawn in us, rates in Mbit/s and loads in %.
    hue : str, optional
        The swept key that tells the lines apart; None: every other swept key with more than one value.
    paper : list of (x, y), or mapping of a value of `hue` or a name to such a list, optional
        Values printed in a paper, in the units of the axes; they are drawn as marks beside ours.
    ax : matplotlib Axes, optional
        Where to draw.
    log_x, log_y : bool
        Logarithmic axes.
    title : str, optional
        Title of the plot.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = _axes(ax)
    name = data.name(y)
    unit, factor = _unit(name)
    places: dict[Any, float] = {}
    names = [name for name in (x, hue) if name is not None]
    for one in names:
        data.name(one)
    rows = [row for row in data if row.get(name) is not None]
    others = [key for key in data.keys if key != x and len({_word(row.get(key)) for row in rows}) > 1]
    keys = [hue] if hue else others
    groups: dict[Any, list[tuple[float, float, float]]] = {}
    for row in rows:
        place = _place(row[x], places)
        width = row.get(f"{name}.half_width", 0.0)
        group = _plain_value(row[hue]) if hue else ", ".join(f"{key} = {_word(row[key])}" for key in others)
        groups.setdefault(group, []).append((place, factor * row[name], factor * width))
    colours = {group: _COLOURS[at % len(_COLOURS)] for at, group in enumerate(groups)}
    for group, points in groups.items():
        points.sort()
        xs, ys, widths = zip(*points)
        label = f"{hue} = {group}" if hue else group or "simulated"
        bars = list(widths) if any(widths) else None
        axes.errorbar(
            xs, ys, yerr=bars, marker="o", markersize=4, capsize=3, color=colours[group], label=label
        )
    _paper(axes, paper, colours, places)
    if places:
        axes.set_xticks(list(places.values()), [str(one) for one in places])
    _finish(axes, x, f"{name} ({unit})" if unit else name, title)
    if log_x:
        axes.set_xscale("log")
        _plain(axes.xaxis)
        simulated = sorted({point[0] for points in groups.values() for point in points})
        if not places and len(simulated) <= _TICKS:
            axes.set_xticks(simulated)
            axes.set_xticks([], minor=True)
    if log_y:
        axes.set_yscale("log")
        _plain(axes.yaxis)
    if keys or paper:
        axes.legend(frameon=False)
    return axes


_TICKS = 12
"""Most simulated values that stand as ticks on a logarithmic axis, which has few of its own."""


def _plain(axis: Any) -> None:
    """Numbers as on the other axes, 100 and not 10 to the power of 2."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def _place(value: Any, places: dict[Any, float]) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return places.setdefault(_word(value), float(len(places)))


def _word(value: Any) -> str:
    """A value as a label; lists have no place in a set."""
    return value if isinstance(value, str) else str(value)


def _plain_value(value: Any) -> Any:
    """A value as the key of a line: as it is, a list as its text."""
    return _word(value) if isinstance(value, (list, tuple, dict)) else value


def _paper(
    axes: matplotlib.axes.Axes, paper: Printed | None, colours: Mapping[Any, str], places: dict[Any, float]
) -> None:
    """Marks without a line, in the colour of the line that they belong to."""
    if paper is None:
        return
    series: Iterable[tuple[Any, Sequence[tuple[Any, float]]]]
    series = paper.items() if isinstance(paper, Mapping) else [(None, paper)]
    for name, points in series:
        colour = colours.get(name, "#000000")
        label = "paper" if name is None else f"paper, {name}"
        xs = [_place(point[0], places) for point in points]
        ys = [point[1] for point in points]
        options: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.5, "markersize": 8}
        axes.plot(xs, ys, linestyle="none", marker="D", color=colour, label=label, zorder=3, **options)


def run(
    data: Run, *, kind: str | None = None, paper: Mapping[Any, float] | None = None, ax: Any = None
) -> matplotlib.axes.Axes:
    """Draw a run.

    Parameters
    ----------
    data : Run
        The run.
    kind : "load", "latency" or None
        "load": the load of each processor, server or stage in %. "latency": the distribution of the total
        latency; of a run without packets, its quantiles. None: "load" if the run has loads, else "latency".
    paper : mapping, optional
        Printed values: of "load" in % by name, of "latency" in us by share (0 to 1).
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = _axes(ax)
    loads = {path.rpartition(".")[0]: 100 * value for path, value in data.flat().items() if _is_load(path)}
    if kind is None:
        kind = "load" if loads else "latency"
    if kind == "load":
        if not loads:
            raise RunError("the run has no loads", hint='use kind="latency"')
        axes.bar(list(loads), list(loads.values()), color=_COLOURS[0], width=0.6, label="simulated")
        if paper:
            options: dict[str, Any] = {"markerfacecolor": "none", "markersize": 9}
            axes.plot(list(paper), list(paper.values()), "D", color=_COLOURS[1], label="paper", **options)
            axes.legend(frameon=False)
        axes.tick_params(axis="x", rotation=30 if len(loads) > 4 else 0)
        return _finish(axes, "", "load (%)", data.scenario.name)
    if kind != "latency":
        raise ValueError(f'kind: expected "load" or "latency", found "{kind}"')
    times, shares = _latency(data)
    axes.plot(times, shares, color=_COLOURS[0], label="simulated", marker="o" if len(times) < 10 else "")
    if paper:
        options = {"markerfacecolor": "none", "markersize": 9}
        shown = [float(share) for share in paper]
        axes.plot(list(paper.values()), shown, "D", color=_COLOURS[1], label="paper", **options)
        axes.legend(frameon=False)
    return _finish(axes, "total latency (us)", "share of packets", data.scenario.name)


def replications(
    data: Replications, figure: str | None = None, *, ax: matplotlib.axes.Axes | None = None
) -> matplotlib.axes.Axes:
    """Draw a figure of each run over its seed, with the mean and its confidence interval as a band.

    Parameters
    ----------
    data : Replications
        The runs.
    figure : str, optional
        Path of the figure; None: that of `until`, else the main figure of the model, its throughput.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from forebay._sequential import main_figure

    if not len(data):
        raise RunError("there is no complete run to draw")
    name = figure or (data.until.figure if data.until else None) or main_figure(data.scenario.model)
    unit, factor = _unit(name)
    values, mean = data.values(name), data.estimate(name)
    axes = _axes(ax)
    axes.plot([str(seed) for seed in data.seeds], [factor * one for one in values], "o", color=_COLOURS[5], label="run")
    axes.axhline(factor * mean.mean, color=_COLOURS[0], label="mean")
    if len(data) > 1:
        low, high = mean.interval
        label = f"{100 * mean.confidence:g} % confidence interval"
        axes.axhspan(factor * low, factor * high, color=_COLOURS[0], alpha=0.15, label=label)
    if len(data) > _TICKS:
        axes.set_xticks([])
    axes.legend(frameon=False)
    return _finish(axes, "seed", f"{name} ({unit})" if unit else name, data.scenario.name, zero=False)


def _is_load(path: str) -> bool:
    return path.endswith((".load", ".utilisation"))


def _latency(data: Run) -> tuple[list[float], list[float]]:
    """Latencies in us and the share of packets that have at most these."""
    from forebay.stats import _latencies

    if getattr(data, "_packets", None) is not None:
        times = sorted(1e6 * one for one in _latencies(data))
        step = max(1, len(times) // 2000)
        ranks = [*range(0, len(times), step), len(times) - 1]
        return [times[rank] for rank in ranks], [(rank + 1) / len(times) for rank in ranks]
    quantiles = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99, "p999_s": 0.999}
    there = {f"total_latency.{name}": share for name, share in quantiles.items()}  # of pipelines it is named `delay`
    found = [(1e6 * data[path], share) for path, share in there.items() if path in data]
    if not found:
        raise RunError("the run has no latencies", hint='use kind="load"')
    return [time for time, _ in found], [share for _, share in found]


def search(data: Search, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Draw a search: one objective over the trials; of several the first two with their Pareto front."""
    axes = _axes(ax)
    rows = data.rows
    paths = list(data.objectives)
    units = [_unit(path) for path in paths]
    labels = [f"{path} ({unit})" if unit else path for path, (unit, _) in zip(paths, units)]
    if len(paths) == 1:
        values = [units[0][1] * row[paths[0]] for row in rows]
        pick = min if data.objectives[paths[0]] == "minimize" else max
        best = [pick(values[: at + 1]) for at in range(len(values))]
        axes.plot([row["trial"] for row in rows], values, "o", color=_COLOURS[5], markersize=4, label="trial")
        axes.plot([row["trial"] for row in rows], best, color=_COLOURS[0], label="best so far")
        axes.legend(frameon=False)
        return _finish(axes, "trial", labels[0], None)

    def points(some: list[dict[str, Any]]) -> list[list[float]]:
        return [[units[at][1] * row[paths[at]] for row in some] for at in (0, 1)]

    axes.plot(*points(rows), "o", color=_COLOURS[5], markersize=4, label="trial")
    axes.plot(*points(data.front), "o-", color=_COLOURS[0], markersize=5, label="Pareto front")
    axes.legend(frameon=False)
    return _finish(axes, labels[0], labels[1], None, zero=False)


def _axes(ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as pyplot
    except ModuleNotFoundError:
        raise RunError("plots require matplotlib", hint="pip install matplotlib") from None
    axes: matplotlib.axes.Axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    return axes


def _unit(path: str) -> tuple[str, float]:
    """Unit and factor of a path, from its name."""
    last = path.rpartition(".")[2]
    ending = last if last in ("load", "utilisation") else last.rpartition("_")[2]
    return _UNITS.get("load" if ending == "utilisation" else ending, ("", 1.0))


def _finish(
    axes: matplotlib.axes.Axes, x: str, y: str, title: str | None, zero: bool = True
) -> matplotlib.axes.Axes:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if zero and axes.get_ylim()[0] >= 0:
        axes.set_ylim(bottom=0)
    axes.grid(True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title)
    return axes
