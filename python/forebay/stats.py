"""Statistics of simulation runs: confidence intervals, sequential stopping, paired designs, warm-up.

All functions are pure: the same values give the same result on every machine, whatever computed the values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from forebay import _forebay, _quantity

__all__ = [
    "Difference",
    "Estimate",
    "Until",
    "Warmup",
    "compare",
    "estimate",
    "paired",
    "sequential",
    "student_t",
    "warm_up",
]


@dataclass(frozen=True)
class Estimate:
    """A mean with the half width of its confidence interval.

    Attributes
    ----------
    mean : float
        Mean of the values, in their unit.
    half_width : float
        The interval is mean - half_width to mean + half_width; infinite for a single value.
    confidence : float
        Probability with which the interval covers the true mean, such as 0.95.
    n : int
        Number of values.
    """

    mean: float
    half_width: float
    confidence: float
    n: int

    @property
    def relative(self) -> float:
        """Half width divided by the absolute mean; infinite if only the mean is 0, and 0 if both are 0."""
        if self.half_width == 0:
            return 0.0
        return self.half_width / abs(self.mean) if self.mean else math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper limit, in the unit of the values."""
        return self.mean - self.half_width, self.mean + self.half_width

    def __contains__(self, value: float) -> bool:
        return abs(value - self.mean) <= self.half_width

    def __str__(self) -> str:
        return f"{self.mean:.6g} +- {self.half_width:.2g} ({100 * self.confidence:g} %, n = {self.n})"


def student_t(confidence: float, freedom: int) -> float:
    """Return the t that a Student variable exceeds in absolute value with probability 1 - confidence.

    Parameters
    ----------
    confidence : float
        Two-sided confidence, above 0 and below 1; 0.95 gives the 97.5 % point of the distribution.
    freedom : int
        Degrees of freedom, at least 1.

    Notes
    -----
    Up to 1,000 degrees of freedom the distribution function is the finite sum of Abramowitz and
    Stegun 26.7.3 and 26.7.4, which is solved by bisection; above, the quantile is the expansion of 26.7.5,
    whose error is then below 1e-12. The commands take the same function.
    """
    if not 0 < confidence < 1 or freedom < 1:
        raise ValueError(f"expected 0 < confidence < 1 and freedom >= 1, found {confidence} and {freedom}")
    return _forebay.student_t(confidence, freedom)


def estimate(values: Iterable[float], confidence: float = 0.95) -> Estimate:
    """Return the mean of independent values with its confidence interval.

    Parameters
    ----------
    values : iterable of float
        One value for each replication.
    confidence : float, default 0.95
        Probability with which the interval covers the true mean.

    Notes
    -----
    half_width = t * sqrt(variance / n), with Student's t of n - 1 degrees of freedom and the
    unbiased variance (Law, Simulation Modeling and Analysis, 5th edition, equation 4.12).
    """
    sample = [float(value) for value in values]
    n = len(sample)
    if n == 0:
        raise ValueError("expected at least one value, found none")
    if not 0 < confidence < 1:
        raise ValueError(f"expected 0 < confidence < 1, found {confidence}")
    mean, half_width = _forebay.estimate(sample, confidence)
    return Estimate(mean, half_width, confidence, n)


_UNTIL = re.compile(r"until\s+([0-9.]+(?:e-?[0-9]+)?)\s*(%?)(?:\s+of\s+(\S+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Until:
    """Replicate until the confidence interval of a figure is narrow enough.

    Attributes
    ----------
    relative : float or str
        Maximum half width divided by the absolute mean, such as 0.01 or ``"1 %"``.
    figure : str or None
        Path of the figure, such as "total_latency.p99_s"; None: the main figure of the model, its throughput.
    least : int
        Minimum number of replications; an interval from fewer is not trusted.
    most : int
        Maximum number of replications; a point that reaches it is marked as not converged.
    confidence : float or str
        Confidence of the interval, such as 0.99 or ``"99 %"``.

    Notes
    -----
    The sequential procedure of Law, Simulation Modeling and Analysis, 5th edition, section 9.4.1,
    with the plain relative half width as the criterion. Each replication is tested in the order of the seeds,
    so the number of replications depends on the scenario and its seed only.
    """

    relative: float = 0.01
    figure: str | None = None
    least: int = 5
    most: int = 1000
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("relative", "confidence"):
            object.__setattr__(self, name, _quantity.share(name, getattr(self, name)))
        for name in ("least", "most"):
            object.__setattr__(self, name, _quantity.count(name, getattr(self, name), 0))
        if self.figure is not None and not isinstance(self.figure, str):
            raise TypeError(f"figure is {self.figure!r}; expected the path of a figure, such as \"cpu.load\"")
        if not 0 < self.relative < math.inf:
            raise ValueError(f"expected a relative half width above 0, found {self.relative}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"expected 0 < confidence < 1, found {self.confidence}")
        if not 2 <= self.least <= self.most:
            raise ValueError(f"expected 2 <= least <= most, found {self.least} and {self.most}")

    @classmethod
    def parse(cls, text: str) -> Until:
        """Read ``"until 1 %"``, ``"until 0.01"`` or ``"until 2 % of total_latency.mean_s"``."""
        match = _UNTIL.fullmatch(text.strip())
        if match is None:
            raise ValueError(f'expected "until 1 %" or "until 1 % of total_latency.mean_s", found "{text}"')
        number, percent, figure = match.groups()
        return cls(relative=float(number) / (100 if percent else 1), figure=figure)

    def enough(self, values: Sequence[float]) -> bool:
        """Return whether these values, one for each replication, end the procedure."""
        return len(values) >= self.least and (len(values) >= self.most or self.converged(values))

    def converged(self, values: Sequence[float]) -> bool:
        """Return whether the interval of these values is narrow enough.

        A figure that is 0 in every run, such as a rare loss that was not seen yet, has no relative half width.
        """
        found = estimate(values, self.confidence)
        return found.mean != 0 and found.relative <= self.relative

    def __str__(self) -> str:
        of = f" of {self.figure}" if self.figure else ""
        return f"until {100 * self.relative:g} %{of}"


def sequential(run: Callable[[int], Any], value: Callable[[Any], float], until: Until) -> list[Any]:
    """Call ``run(0)``, ``run(1)``, ... until the values of the results satisfy `until`; return all."""
    results: list[Any] = []
    values: list[float] = []
    while not values or not until.enough(values):
        results.append(run(len(results)))
        values.append(value(results[-1]))
    return results


@dataclass(frozen=True)
class Difference:
    """The difference of a figure between two designs that saw the same random numbers.

    Attributes
    ----------
    figure : str
        Path of the figure.
    mean, half_width, confidence, n
        As in `Estimate`, of the differences b - a of the pairs.
    a, b : Estimate
        The figure of each design alone.
    correlation : float
        Correlation of the pairs; the nearer to 1, the more the common random numbers have narrowed the
        interval.
    converged : bool or None
        Whether the interval is as narrow as an `Until` asks for; None without one.
    """

    figure: str
    mean: float
    half_width: float
    confidence: float
    n: int
    a: Estimate
    b: Estimate
    correlation: float
    converged: bool | None = None

    @property
    def significant(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        return abs(self.mean) > self.half_width

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper limit of the difference."""
        return self.mean - self.half_width, self.mean + self.half_width

    def __str__(self) -> str:
        verdict = "differs from 0" if self.significant else "is not distinguishable from 0"
        missed = "; not converged" if self.converged is False else ""
        return (
            f"{self.figure}: b - a = {self.mean:.6g} +- {self.half_width:.2g}, which {verdict} (n = {self.n}){missed}"
        )


def paired(a: Sequence[float], b: Sequence[float], figure: str = "", confidence: float = 0.95) -> Difference:
    """Return the mean difference b - a of paired values with its confidence interval.

    Notes
    -----
    The paired-t interval of Law, Simulation Modeling and Analysis, 5th edition, section 10.2.1; with common
    random numbers (section 11.2) the pairs are positively correlated, which narrows it.
    """
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"expected two lists of the same length of at least 2, found {len(a)} and {len(b)}")
    both = estimate([y - x for x, y in zip(a, b)], confidence)
    first, second = estimate(a, confidence), estimate(b, confidence)
    spread_a = math.fsum((x - first.mean) ** 2 for x in a)
    spread_b = math.fsum((y - second.mean) ** 2 for y in b)
    common = math.fsum((x - first.mean) * (y - second.mean) for x, y in zip(a, b))
    product = math.sqrt(spread_a * spread_b)
    correlation = common / product if product > 0 else math.nan
    return Difference(figure, both.mean, both.half_width, confidence, len(a), first, second, correlation)


@overload
def compare(
    a: Any,
    b: Any,
    figure: str | None = None,
    *,
    replications: int | str | Until = 10,
    seed: int | None = None,
    confidence: float | str = 0.95,
) -> Difference: ...


@overload
def compare(
    a: Any,
    b: Any,
    *more: Any,
    figure: str | None = None,
    replications: int | str | Until = 10,
    seed: int | None = None,
    confidence: float | str = 0.95,
) -> Any: ...


def compare(
    a: Any,
    b: Any,
    *more: Any,
    figure: str | None = None,
    replications: int | str | Until = 10,
    seed: int | None = None,
    confidence: float | str = 0.95,
) -> Any:
    """Compare designs on the same random numbers: each of the others with the first one.

    Parameters
    ----------
    a, b, *more : Scenario or sequence of Run
        Scenarios are run `replications` times each, with the same seeds; runs must have the same seeds
        already.
    figure : str, optional
        Path of the figure that is compared, also as the last argument without its name; by default the throughput.
    replications : int, str or Until, default 10
        Runs of each scenario, at least 2; beside runs, as many as those. ``"until 1 %"``: as many as make the half width
        of every difference at most 1 % of the mean of the first design, `Until.most` at most.
    seed : int or None
        Seed of the first replication; None: the seed of scenario `a`.
    confidence : float or str, default 0.95
        Confidence of the interval, of several differences that of all of them together; not used with an `Until`, which
        has its own.

    Returns
    -------
    Difference or tuple of Difference
        b - a, with its interval and whether it excludes 0; of more than two designs, one for each but the first.

    Raises
    ------
    Interrupted
        By Ctrl-C; its ``partial`` has the complete runs of each design, as a list.

    Notes
    -----
    Intervals of k differences have the confidence 1 - (1 - confidence) / k each, so that all of them hold together with
    at least the given confidence (Bonferroni; Law, Simulation Modeling and Analysis, 5th edition, section 10.3.1).
    """
    designs = [a, b, *more]
    if isinstance(designs[-1], str):
        if figure is not None:
            raise TypeError(f"the figure is given twice: {designs[-1]!r} and {figure!r}")
        figure = designs.pop()
    from forebay.scenario import Scenario

    designs = [Scenario(one) if isinstance(one, Mapping) else one for one in designs]
    if len(designs) < 2:
        raise TypeError("expected at least two designs")
    if isinstance(replications, str):
        replications = Until.parse(replications)
    until = replications if isinstance(replications, Until) else None
    if until is not None:
        confidence, figure = until.confidence, figure or until.figure
    share = _quantity.share("confidence", confidence)
    if not 0 < share < 1:
        raise ValueError(f"expected 0 < confidence < 1, found {share}")
    each = 1 - (1 - share) / (len(designs) - 1)
    runs: list[list[Any]] = [[] if hasattr(one, "simulate") else list(one) for one in designs]
    open_ = [at for at, one in enumerate(designs) if hasattr(one, "simulate")]
    from forebay._sequential import main_figure

    model = designs[0].model if open_ and open_[0] == 0 else runs[0][0].scenario.model if runs[0] else "host"
    path = figure or main_figure(model)

    def difference(first: list[float], other: list[float]) -> Difference:
        one = paired(first, other, path, each)
        if until is None:
            return one
        return replace(one, converged=one.half_width <= until.relative * abs(one.a.mean))

    def found() -> tuple[Difference, ...]:
        first = [float(run[path]) for run in runs[0]]
        return tuple(difference(first, [float(run[path]) for run in other]) for other in runs[1:])

    def add(count: int) -> None:
        given = [one for at, one in enumerate(runs) if at not in open_]
        begin = given[0][0].seed if given and given[0] else seed if seed is not None else designs[open_[0]].seed
        for at in open_:
            first = begin + len(runs[at])
            try:
                came = designs[at].simulate(seed=first % 2**64, replications=count)
            except KeyboardInterrupt as caught:
                if count > 1:
                    runs[at].extend(getattr(caught, "partial", None) or ())
                raise
            runs[at].extend([came] if count == 1 else came)

    try:
        if open_ and len(open_) < len(designs):
            add(len(next(one for at, one in enumerate(runs) if at not in open_)))
        elif until is not None and open_:
            add(until.least)
            while len(runs[0]) < until.most and not all(one.converged for one in found()):
                add(1)
        elif open_:
            add(_quantity.count("replications", replications, 2))
    except KeyboardInterrupt as caught:
        from forebay.errors import Interrupted

        raise Interrupted(f"interrupted: {min(map(len, runs))} runs of each design are complete", runs) from caught
    seeds = [[run.seed for run in one] for one in runs]
    for other in seeds[1:]:
        if other != seeds[0]:
            raise ValueError(f"expected runs with the same seeds, found {seeds[0][:3]}... and {other[:3]}...")
    differences = found()
    return differences[0] if len(differences) == 1 else differences


@dataclass(frozen=True)
class Warmup:
    """Where the warm-up of a run ends.

    Attributes
    ----------
    packets : int
        Number of observations at the beginning that belong to the warm-up.
    mean : float
        Mean of the observations after it, in their unit.
    whole : float
        Mean of all observations.
    sufficient : bool
        False if the statistic is smallest in the second half of the run: then the run is too short to tell.
    batch : int
        Observations in a batch.
    """

    packets: int
    mean: float
    whole: float
    sufficient: bool
    batch: int


def warm_up(data: Any, batch: int = 5) -> Warmup:
    """Find the end of the warm-up by MSER-5.

    Parameters
    ----------
    data : Run or iterable of float
        A run that was simulated with ``packets=True`` (its total latencies in the order of arrival are used),
        or any series of observations.
    batch : int, default 5
        Observations that are averaged into one batch; 5 gives MSER-5.

    Notes
    -----
    White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for
    simulation", Proceedings of the Winter Simulation Conference 2000: of k batch means Z_1 ... Z_k the first
    d are cut off that minimise sum over j > d of (Z_j - mean)^2 / (k - d)^2. The last five batches are no
    candidates, because the statistic of a handful of values is small by chance, and a d in the second half
    means that the run is too short (Hoad, Robinson and Davies, "Automating warm-up length estimation",
    Journal of the Operational Research Society 61, 2010).
    """
    series = _latencies(data)
    if batch < 1 or len(series) < 10 * batch:
        raise ValueError(f"expected at least {10 * max(batch, 1)} observations, found {len(series)}")
    count = len(series) // batch
    whole = math.fsum(series) / len(series)
    # Sums of the deviations from the whole mean: the squares of near-equal latencies would lose their digits.
    means = [math.fsum(series[at * batch : (at + 1) * batch]) / batch - whole for at in range(count)]
    total = square = 0.0
    cut, smallest = 0, math.inf
    # From the end, so that one pass has all sums.
    for at in range(count - 1, -1, -1):
        total += means[at]
        square += means[at] ** 2
        left = count - at
        if left > 5:
            statistic = max(square - total**2 / left, 0.0) / left**2
            if statistic <= smallest:
                cut, smallest = at, statistic
    packets = cut * batch
    return Warmup(
        packets, math.fsum(series[packets:]) / (len(series) - packets), whole, cut <= count // 2, batch
    )


def _latencies(data: Any) -> list[float]:
    """Total latencies of a run's packets in seconds, or the values themselves."""
    packets = getattr(data, "packets", None)
    if packets is None:
        if hasattr(data, "figures"):
            raise ValueError("the run has no packets; simulate it with packets=True")
        return [float(value) for value in data]
    frame = packets.to_pandas().dropna(subset=["completed_ps"])
    waited = frame["completed_ps"].astype("int64") - frame["arrived_ps"].astype("int64")
    return [float(value) * 1e-12 for value in waited.tolist()]
