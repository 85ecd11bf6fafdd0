"""The goodness of a fitted generator as plots and as a page (matplotlib is required)."""

from __future__ import annotations

import html
import io
from typing import TYPE_CHECKING, Any

import matplotlib.figure
import numpy as np

from forebay import _forebay, _goodness

if TYPE_CHECKING:
    from forebay.traffic import Goodness

# Okabe and Ito: told apart without seeing red and green, and by their dashes in print.
_TRACE: dict[str, Any] = {"color": "#0072b2", "linestyle": "-"}
_DRAWN: dict[str, Any] = {"color": "#d55e00", "linestyle": "--"}

_ROWS = (
    ("Mean size", "sizes_mean", "sizes_mean_drawn", "bytes"),
    ("Mean gap", "gaps_mean_s", "gaps_mean_s_drawn", "s"),
    ("Mean run of one SA", "sa_run", "sa_run_drawn", "packets"),
)
_DISTANCES = (
    ("Sizes, Kolmogorov-Smirnov distance", "sizes_ks"),
    ("Gaps, Kolmogorov-Smirnov distance", "gaps_ks"),
    ("Cumulative shares of the SAs, largest distance", "sa_shares_distance"),
)


def figure(goodness: Goodness) -> matplotlib.figure.Figure:
    """All plots in one figure."""
    plots = [_sizes, _order]
    if goodness.trace.sas is not None and goodness.drawn.sas is not None:
        plots += [_order_within, _shares]
    if goodness.trace.times_s is not None and goodness.drawn.times_s is not None:
        plots += [_gaps, _bursts]
    result = matplotlib.figure.Figure(figsize=(11, 3.4 * ((len(plots) + 1) // 2)), layout="constrained")
    for number, draw in enumerate(plots, 1):
        ax = result.add_subplot((len(plots) + 1) // 2, 2, number)
        draw(ax, goodness)
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
    return result


def _distribution(ax: Any, values: Any, label: str, style: dict[str, Any]) -> None:
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, 2000).astype(np.int64))
    ax.plot(ordered[at], (at + 1) / len(ordered), label=label, drawstyle="steps-post", **style)


def _sizes(ax: Any, goodness: Goodness) -> None:
    for trace, label, style in ((goodness.trace, "trace", _TRACE), (goodness.drawn, "generator", _DRAWN)):
        # A logarithmic axis has no place for 0.
        _distribution(ax, np.maximum(trace.sizes, 1), label, style)
    distance = _forebay.digits(goodness.figures["sizes_ks"])
    ax.set(
        title=f"Sizes (distance {distance})", xlabel="size (bytes; 0 at 1)", ylabel="share up to this size"
    )
    ax.set_xscale("log")


def _gaps(ax: Any, goodness: Goodness) -> None:
    for trace, label, style in ((goodness.trace, "trace", _TRACE), (goodness.drawn, "generator", _DRAWN)):
        gaps = trace.gaps_s
        if gaps is not None:
            _distribution(ax, np.maximum(gaps * 1e6, 1e-3), label, style)
    distance = _forebay.digits(goodness.figures["gaps_ks"])
    ax.set(title=f"Gaps (distance {distance})", xlabel="gap (us; 0 at 0.001)", ylabel="share up to this gap")
    ax.set_xscale("log")


def _order(ax: Any, goodness: Goodness) -> None:
    lags = np.arange(1, goodness.lags + 1)
    for trace, label, style in ((goodness.trace, "trace", _TRACE), (goodness.drawn, "generator", _DRAWN)):
        ax.plot(lags, _goodness.autocorrelation(trace.sizes, goodness.lags), label=label, **style)
    ax.set(title="Order of sizes, all packets", xlabel="lag (packets)", ylabel="autocorrelation")


def _order_within(ax: Any, goodness: Goodness) -> None:
    lags = np.arange(1, goodness.lags + 1)
    for trace, label, style in ((goodness.trace, "trace", _TRACE), (goodness.drawn, "generator", _DRAWN)):
        ax.plot(lags, _goodness.autocorrelation(trace.sizes, goodness.lags, trace.sas), label=label, **style)
    ax.set(title="Order of sizes within each SA", xlabel="lag (packets of the SA)", ylabel="autocorrelation")


def _shares(ax: Any, goodness: Goodness) -> None:
    for trace, label, style in ((goodness.trace, "trace", _TRACE), (goodness.drawn, "generator", _DRAWN)):
        if trace.sas is not None:
            shares = _goodness.shares(trace.sas)
            ax.plot(np.arange(1, len(shares) + 1), shares, label=label, **style)
    ax.set(title="Shares of the SAs", xlabel="SAs, the largest first", ylabel="share of packets")
    ax.set_xscale("log")


def _bursts(ax: Any, goodness: Goodness) -> None:
    times = goodness.trace.times_s
    if times is None:
        return
    mean = float(times[-1]) / len(times)
    windows = mean * np.logspace(0, 4, 17)
    for trace, label, style in ((goodness.trace, "trace", _TRACE), (goodness.drawn, "generator", _DRAWN)):
        if trace.times_s is not None:
            ax.plot(windows * 1e3, _goodness.dispersion(trace.times_s, windows), label=label, **style)
    ax.axhline(1.0, color="0.6", linewidth=0.8, label="Poisson process")
    ax.set(title="Bursts", xlabel="window (ms)", ylabel="index of dispersion for counts")
    ax.set_xscale("log")
    ax.set_yscale("log")


def page(goodness: Goodness) -> str:
    """A self-contained HTML page."""
    drawing = io.StringIO()
    figure(goodness).savefig(drawing, format="svg")
    svg = drawing.getvalue()
    figures = goodness.figures
    rows = "".join(
        _row(f"{name} ({unit})", figures[of], figures[drawn])
        for name, of, drawn, unit in _ROWS
        if of in figures
    )
    distances = "".join(_row(name, figures[key]) for name, key in _DISTANCES if key in figures)
    name = html.escape(goodness.trace.name)
    critical = _forebay.digits(figures["critical_5_percent"])
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Goodness of fit: {name}</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
td, th {{ padding: 0.2rem 0.8rem; border-bottom: 1px solid #ccc; text-align: right }}
td:first-child, th:first-child {{ text-align: left }}
svg {{ max-width: 100%; height: auto }}
</style></head><body>
<h1>Goodness of fit</h1>
<p>The trace {name} has {len(goodness.trace):,} packets. The generator that was fitted to it drew
{len(goodness.drawn):,}.</p>
<table><tr><th></th><th>trace</th><th>generator</th></tr>{rows}</table>
<table><tr><th>distance</th><th></th></tr>{distances}</table>
<p>Independent samples of one distribution exceed a Kolmogorov-Smirnov distance of {critical} in 5 % of cases.
Successive packets depend on each other, in the trace and in what is drawn: a perfect fit has larger distances too.</p>
{svg[svg.index("<svg") :]}
</body></html>
"""


def _row(name: str, *values: float) -> str:
    cells = "".join(f"<td>{_forebay.digits(value)}</td>" for value in values)
    return f"<tr><td>{name}</td>{cells}</tr>"
