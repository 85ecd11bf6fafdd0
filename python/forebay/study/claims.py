"""Claims of a paper and observations: what is stated, for which parameters, the band that decides, and the control."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from forebay.stats import estimate
from forebay.study.errors import problem
from forebay.study.scenarios import StudyScenario

__all__ = ["BASES", "Band", "Basis", "Change", "Claim", "Control", "Interval", "Parameter", "Verdict"]

Basis = Literal["test", "arithmetic", "fitted", "consistency", "input"]
"""What a claim rests on: whether it is a test of its sentence, and if it is none, why."""

BASES: dict[str, str] = {
    "test": "tests of the paper's sentences",
    "arithmetic": "decided by numbers that the paper prints",
    "fitted": "a parameter was fitted to, or assumed for, the sentence",
    "consistency": "whether the paper's numbers agree with each other",
    "input": "what goes in comes out",
}
"""The kinds of claims in the order of the report, with their meaning."""

Verdict = Literal["holds", "fails", "not decided"]

Change = Callable[[StudyScenario], StudyScenario]
"""What a control changes: it is called with each scenario that is run, and returns it or another one."""


@dataclass(frozen=True)
class Control:
    """A wrong rule under which claims must fail, or another reading of the paper.

    Attributes
    ----------
    name : str
        A short name, unique in the study.
    says : str
        What is wrong, as one sentence.
    change : callable
        Changes each scenario before it is run.
    reading : bool
        Whether it is another reading of the paper, under which the claims are counted too, and not a wrong rule.
    """

    name: str
    says: str
    change: Change
    reading: bool = False


@dataclass(frozen=True)
class Interval:
    """Where the value of a claim that is nearest to the end of its band lies, over repetitions of the study.

    Attributes
    ----------
    over : str
        What differs between the repetitions: ``"seeds"``, ``"link orders"``.
    count : int
        How many there are.
    margin : float
        The mean distance of that value from the nearest end of the band, in its unit; negative outside of the band.
    half_width : float
        Half the width of the 95 % confidence interval of the margin.
    held : int
        In how many of them all values lie in the band.
    """

    over: str
    count: int
    margin: float
    half_width: float
    held: int

    @staticmethod
    def of(over: str, margins: Sequence[float]) -> Interval:
        """The interval of the margins of all repetitions, of which there are at least two."""
        held = sum(margin >= 0.0 for margin in margins)
        if not all(math.isfinite(one) for one in margins):
            return Interval(over, len(margins), math.nan, math.nan, held)
        found = estimate(margins)
        return Interval(over, len(margins), found.mean, found.half_width, held)

    def verdict(self) -> Verdict:
        """What the interval decides by itself."""
        if math.isnan(self.margin):
            # Some of the values are no finite numbers, as of a ratio to zero: no interval has them.
            if self.held in (0, self.count):
                return "holds" if self.held else "fails"
            return "not decided"
        if self.margin - self.half_width >= 0.0:
            return "holds"
        return "fails" if self.margin + self.half_width < 0.0 else "not decided"

    def document(self) -> dict[str, Any]:
        """The interval as in ``claims.json``."""
        return {
            "over": self.over,
            "count": self.count,
            "held": self.held,
            "margin": _finite(self.margin),
            "half_width": _finite(self.half_width),
        }


def _finite(value: float) -> float | None:
    """The number, or ``None`` for what JSON cannot say."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Parameter:
    """A parameter of a claim, and whose value it is.

    Attributes
    ----------
    key : str
        Key of the scenario (``"processor.cpu.queue"``), or a name of what the scenario calls otherwise.
    value : object
        The value: a number, text, or a list of them.
    whose : {"printed", "assumed"}
        Whether the paper prints the value, or it is assumed here.
    source : str
        Printed: where, as ``"figure 3"``. Assumed: why this value.
    """

    key: str
    value: Any
    whose: Literal["printed", "assumed"]
    source: str

    def document(self) -> dict[str, Any]:
        """The parameter as in ``claims.json``."""
        return {"key": self.key, "value": self.value, "whose": self.whose, "source": self.source}


@dataclass(frozen=True)
class Band:
    """The values for which a claim holds, both ends included.

    Attributes
    ----------
    low, high : float or None
        The ends, in `unit`; ``None``: there is no such end.
    unit : str
        Unit of the ends and of the measured values; ``""`` for ratios.
    source : str
        Where the ends come from: the printed value and the tolerance, with its reason.
    """

    low: float | None
    high: float | None
    unit: str
    source: str

    def __post_init__(self) -> None:
        ends = [end for end in (self.low, self.high) if end is not None]
        if not ends or any(math.isnan(end) for end in ends):
            raise problem("a band has no end", expected="a number as `low` or `high`")
        if len(ends) == 2 and ends[0] > ends[1]:
            raise problem(f"the band's `low`, {ends[0]}, is above its `high`, {ends[1]}")
        if not self.source.strip():
            raise problem(
                "a band has no source", hint='say where its limits come from, as "printed 4.1, ten per cent"'
            )

    def __contains__(self, value: float) -> bool:
        return not math.isnan(value) and not (
            (self.low is not None and value < self.low) or (self.high is not None and value > self.high)
        )

    def margin(self, values: Iterable[float]) -> float:
        """The least distance of a value from an end; negative if a value lies outside, NaN if one is no number."""
        ways: list[float] = []
        for value in values:
            if math.isnan(value):
                return math.nan
            ways.append(math.inf if self.low is None else value - self.low)
            ways.append(math.inf if self.high is None else self.high - value)
        return min(ways)

    def document(self) -> dict[str, Any]:
        """The band as in ``claims.json``."""
        return {"low": self.low, "high": self.high, "unit": self.unit, "source": self.source}


@dataclass(frozen=True)
class Since:
    """When the lines of a claim's band were written as they are.

    Attributes
    ----------
    date : str
        The day of the commit, as ``"2026-11-26"``.
    commit : str
        Its abbreviated name.
    """

    date: str
    commit: str

    def document(self) -> dict[str, Any]:
        """As in ``claims.json``."""
        return {"date": self.date, "commit": self.commit}


@dataclass
class UnderControl:
    """What a claim came to with changed scenarios."""

    control: Control
    holds: bool
    values: list[float]
    found: str

    def document(self) -> dict[str, Any]:
        """As in ``claims.json``."""
        return {
            "name": self.control.name,
            "says": self.control.says,
            "holds": self.holds,
            "values": [_finite(one) for one in self.values],
            "figure": self.found,
        }


@dataclass
class Claim:
    """A claim of a paper, or an observation, that `measured` decides by its band.

    Made by :meth:`Study.claim` and :meth:`Study.observation`. Its control and the repetitions of the study say whether
    the decision is worth something.
    """

    id: str
    kind: Literal["claim", "observation"]
    says: str
    quote: str
    where: str
    parameters: tuple[Parameter, ...]
    band: Band
    basis: Basis = "test"
    because: str = ""
    control: str = ""
    since: Since | None = None
    found: str = ""
    why: str = ""
    values: list[float] = field(default_factory=list)
    is_measured: bool = False
    under: UnderControl | None = None
    readings: list[UnderControl] = field(default_factory=list)
    interval: Interval | None = None

    @property
    def holds(self) -> bool:
        """Whether it was measured, and every value lies in the band."""
        return self.is_measured and all(value in self.band for value in self.values)

    @property
    def verdict(self) -> Verdict:
        """What its band, its repetitions and its control come to.

        It holds if every value lies in the band, the interval over the repetitions does too, and it fails under its
        control. It fails if a value lies outside of the band, and so does the interval. Else it is not decided.
        """
        by_band: Verdict = "holds" if self.holds else "fails"
        if self.interval is not None and self.interval.verdict() != by_band:
            return "not decided"
        if by_band == "holds" and self.under is not None and self.under.holds:
            return "not decided"
        return by_band

    @property
    def open(self) -> str:
        """Why it is not decided; empty if it is."""
        if self.verdict != "not decided":
            return ""
        if self.holds and self.under is not None and self.under.holds:
            return "it holds under its control too"
        return "its interval meets the end of the band"

    def margin(self) -> float:
        """The least distance of a measured value from an end of the band; negative outside."""
        return self.band.margin(self.values)

    def measured(self, value: float | Iterable[float], found: str, why: str = "") -> bool:
        """Records what was measured; every value must lie in the band for the claim to hold.

        Parameters
        ----------
        value
            A number or several, in the unit of the band.
        found
            A sentence with the figures.
        why
            The reason, or for a claim that fails the hypotheses that were tried, with their figures.

        Returns
        -------
        bool
            Whether all values lie in the band.
        """
        if self.is_measured:
            raise problem(f"`{self.id}` was measured already")
        if not found.strip():
            raise problem(f"`{self.id}` has no `found`", hint="give the figures in words")
        values = list(value) if isinstance(value, Iterable) else [value]
        if not values:
            raise problem(f"`{self.id}` has no values", expected="at least one number")
        for one in values:
            if isinstance(one, bool) or not isinstance(one, numbers.Real):
                raise problem(f"`{self.id}` is measured by numbers", found=repr(one), expected="a number")
        self.values = [float(one) for one in values]
        self.found, self.why, self.is_measured = found, why, True
        return self.holds

    def document(self) -> dict[str, Any]:
        """The claim as in ``claims.json``; a value that is no number is ``null``."""
        return {
            "id": self.id,
            "kind": self.kind,
            "claim": self.says,
            "quote": self.quote,
            "where": self.where,
            "parameters": [one.document() for one in self.parameters],
            "band": self.band.document(),
            "since": None if self.since is None else self.since.document(),
            "values": [_finite(one) for one in self.values],
            "figure": self.found,
            "holds": self.holds,
            "why": self.why,
            "basis": self.basis,
            "because": self.because,
            "verdict": self.verdict,
            "open": self.open,
            "control": None if self.under is None else self.under.document(),
            "readings": [one.document() for one in self.readings],
            "interval": None if self.interval is None else self.interval.document(),
        }
