"""Claims of a paper and observations: what is stated, for which parameters, and the band that decides."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from forebay.study.errors import problem

__all__ = ["Band", "Claim", "Parameter"]


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

    def document(self) -> dict[str, Any]:
        """The band as in ``claims.json``."""
        return {"low": self.low, "high": self.high, "unit": self.unit, "source": self.source}


@dataclass
class Claim:
    """A claim of a paper, or an observation, that `measured` decides by its band.

    Made by :meth:`Study.claim` and :meth:`Study.observation`.
    """

    id: str
    kind: Literal["claim", "observation"]
    says: str
    quote: str
    where: str
    parameters: tuple[Parameter, ...]
    band: Band
    found: str = ""
    why: str = ""
    values: list[float] = field(default_factory=list)
    is_measured: bool = False

    @property
    def holds(self) -> bool:
        """Whether it was measured, and every value lies in the band."""
        return self.is_measured and all(value in self.band for value in self.values)

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
            Whether the claim holds.
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
            "values": [one if math.isfinite(one) else None for one in self.values],
            "figure": self.found,
            "holds": self.holds,
            "why": self.why,
        }
