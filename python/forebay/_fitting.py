"""What :func:`forebay.fit` computes from a trace (numpy is required)."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Times = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.float64]
Bins = list[tuple[int, int]]


def size_bins(sizes: Integers, limit: int) -> tuple[Bins, Integers]:
    """Bins of sizes, and the number of the bin of each packet.

    Parameters
    ----------
    sizes : array
        Payload sizes in bytes.
    limit : int
        Maximum number of bins.
    """
    mean = max(float(sizes.mean()), 1.0)
    # By their ratios, so that frequent small sizes are told apart, and by their bytes, which make the mean.
    return _bins(sizes, limit, lambda values: values / mean + 2.0 * np.log(values + 20.0))


def gap_bins(gaps: Times, limit: int) -> tuple[Bins, Integers]:
    """Bins of gaps, and the number of the bin of each gap.

    Parameters
    ----------
    gaps : array
        Times between packets in picoseconds.
    limit : int
        Maximum number of bins.
    """
    # Gaps are compared by their ratios, from 1 ns on.
    return _bins(gaps, limit, lambda values: np.log(values + 1000.0))


def _bins(values: Integers | Times, limit: int, scale: Callable[[Any], Numbers]) -> tuple[Bins, Integers]:
    """Ranges in which values are taken as equally likely, and the number of the range of each value.

    The range with most to gain is divided first, where the sum of packets by length of both parts is least: a
    frequent value is soon a range of its own, and an empty stretch is in no range.
    """
    single, counts = np.unique(values, return_counts=True)
    scaled = scale(single)
    before = np.concatenate(([0], np.cumsum(counts)))
    heap = [_division(scaled, before, 0, len(single))]
    done: list[tuple[int, int]] = []
    while heap and len(heap) + len(done) < limit:
        gain, first, at, end = heapq.heappop(heap)
        if gain >= 0.0:
            done.append((first, end))
            continue
        heapq.heappush(heap, _division(scaled, before, first, at))
        heapq.heappush(heap, _division(scaled, before, at, end))
    ranges = sorted(done + [(first, end) for _, first, _, end in heap])
    bins = [(int(single[first]), int(single[end - 1])) for first, end in ranges]
    return bins, np.searchsorted(np.array([high for _, high in bins]), values)


def _division(scaled: Numbers, before: Integers, first: int, end: int) -> tuple[float, int, int, int]:
    """The best place to divide the values from `first` to `end`, after minus what is gained by it."""
    if end - first < 2:
        return 0.0, first, first, end
    left = before[first + 1 : end] - before[first]
    whole = int(before[end] - before[first])
    cost = left * (scaled[first : end - 1] - scaled[first])
    cost = cost + (whole - left) * (scaled[end - 1] - scaled[first + 1 : end])
    at = int(cost.argmin())
    gain = whole * (scaled[end - 1] - scaled[first]) - cost[at]
    return -float(gain), first, first + 1 + at, end


def transitions(states: Integers, sas: Integers | None, count: int) -> Integers:
    """How often each state follows each, of the same SA if SAs are given.

    The first packet counts as following the last one: the sums of the rows are the numbers of packets.
    """
    if sas is None:
        before, after = states, np.roll(states, -1)
    else:
        order = np.argsort(sas, kind="stable")
        before, of = states[order], sas[order]
        after = np.roll(before, -1)
        begins = np.flatnonzero(np.concatenate(([True], of[1:] != of[:-1])))
        ends = np.concatenate((begins[1:], [len(of)])) - 1
        after[ends] = before[begins]
    matrix = np.bincount(before * count + after, minlength=count * count)
    return matrix.reshape(count, count)


def sa_weights(sas: Integers) -> Integers:
    """Number of packets of each SA, in the order of their first packets."""
    numbers, firsts, counts = np.unique(sas, return_index=True, return_counts=True)
    del numbers
    ordered: Integers = counts[np.argsort(firsts)]
    return ordered


def sa_run_length(sas: Integers) -> float:
    """Mean number of draws that stay with one SA, if each draw is independent of the SA before.

    A run that ends is followed by the same SA with the probability that two packets are of one SA.
    """
    shares = sa_weights(sas) / len(sas)
    chance = float((shares**2).sum())
    same = float((sas[1:] == sas[:-1]).mean()) if len(sas) > 1 else 0.0
    if same <= chance:
        return 1.0
    return (1.0 - chance) / max(1.0 - same, 1.0 / len(sas))


def keys_of(
    sizes: Integers,
    times_ps: Times | None,
    sas: Integers | None,
    *,
    order: str,
    bins: int,
    gap_count: int,
) -> dict[str, Any]:
    """The keys of ``[traffic]`` that describe a trace."""
    keys: dict[str, Any] = {"source": "histogram"}
    ranges, states = size_bins(sizes, bins)
    weights = np.bincount(states, minlength=len(ranges))
    keys["bins"] = [[low, high, int(weight)] for (low, high), weight in zip(ranges, weights, strict=True)]
    if order != "none" and len(ranges) > 1:
        matrix = transitions(states, sas if order == "sa" else None, len(ranges))
        keys["transitions"] = matrix.tolist()
        keys["transitions_per"] = order
    if sas is not None:
        counts = sa_weights(sas)
        if len(counts) > 1:
            keys["sa_weights"] = counts.tolist()
            length = sa_run_length(sas)
            if length > 1.0:
                keys["sa_run_length"] = length
    if times_ps is not None and times_ps[-1] > times_ps[0]:
        gaps = np.diff(times_ps)
        spans, of_gap = gap_bins(gaps, gap_count)
        weights = np.bincount(of_gap, minlength=len(spans))
        keys["arrivals"] = "gaps"
        keys["gaps"] = [
            [low * 1e-12, high * 1e-12, int(weight)]
            for (low, high), weight in zip(spans, weights, strict=True)
        ]
        if len(spans) > 1:
            keys["gap_transitions"] = transitions(of_gap, None, len(spans)).tolist()
        # Uniform within a bin is not quite the trace's mean: the rate corrects it.
        keys["packet_rate"] = len(gaps) / (float(times_ps[-1] - times_ps[0]) * 1e-12)
    return keys
