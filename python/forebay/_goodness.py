"""Statistics that compare a trace with what is drawn in its place (numpy is required)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def kolmogorov_smirnov(first: npt.NDArray[np.number], second: npt.NDArray[np.number]) -> float:
    """Largest distance between the distribution functions of two samples."""
    a, b = np.sort(first), np.sort(second)
    at = np.concatenate((a, b))
    of_a = np.searchsorted(a, at, side="right") / len(a)
    of_b = np.searchsorted(b, at, side="right") / len(b)
    return float(np.abs(of_a - of_b).max())


def critical(first: int, second: int) -> float:
    """The distance that 5 % of independent samples of one distribution exceed."""
    return 1.358 * math.sqrt((first + second) / (first * second))


def autocorrelation(values: npt.NDArray[np.number], lags: int, groups: Integers | None = None) -> Numbers:
    """Autocorrelation at the lags 1 to `lags`; if groups are given, of the packets of each group."""
    x = values.astype(np.float64)
    x = x - x.mean()
    variance = float((x * x).mean())
    result = np.zeros(lags)
    if variance == 0.0:
        return result
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        x, groups = x[order], groups[order]
    for lag in range(1, min(lags, len(x) - 1) + 1):
        products = x[:-lag] * x[lag:]
        if groups is not None:
            products = products[groups[:-lag] == groups[lag:]]
        result[lag - 1] = float(products.mean()) / variance if len(products) else 0.0
    return result


def dispersion(times_s: Numbers, windows: Numbers) -> Numbers:
    """Index of dispersion for counts: variance by mean of the packets per window, for each length in seconds.

    It is 1 for a Poisson process with any window, and grows with the window where packets come in bursts.
    """
    result = np.full(len(windows), np.nan)
    for at, window in enumerate(windows):
        count = int((times_s[-1] - times_s[0]) / window)
        if count < 10:
            continue
        of_packet = ((times_s - times_s[0]) / window).astype(np.int64)
        counts = np.bincount(of_packet[of_packet < count], minlength=count)
        result[at] = float(counts.var() / counts.mean())
    return result


def shares(sas: Integers) -> Numbers:
    """Cumulative shares of the SAs, the largest first."""
    counts = np.sort(np.bincount(np.unique(sas, return_inverse=True)[1]))[::-1]
    cumulative: Numbers = np.cumsum(counts) / len(sas)
    return cumulative


def run_lengths(sas: Integers) -> float:
    """Mean number of successive packets of one SA."""
    return len(sas) / (1 + int((sas[1:] != sas[:-1]).sum()))
