"""Pipelines by their Markov chain."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from forebay.run import Run
from forebay.scenario import Scenario

__all__ = ["Chain"]


class Chain:
    """A pipeline or an inline card that is solved and not simulated.

    Parameters
    ----------
    source : str, os.PathLike, mapping or Scenario
        As for :class:`~forebay.Scenario`; model ``"pipeline"`` or ``"inline-card"``.
    """

    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any] | Scenario) -> None:
        self.scenario = source if isinstance(source, Scenario) else Scenario(source)

    def set(self, key: str, value: Any) -> Chain:
        """A copy with another value of a key, as :meth:`Scenario.set`."""
        return Chain(self.scenario.set(key, value))

    def run(self, memory: int | str | None = None, cycles: int | None = None) -> Run:
        """The solution as a :class:`~forebay.Run`, whose figures have paths; parameters as for :meth:`Scenario.solve`."""
        return self.scenario.solve(memory, cycles)

    def solve(self, memory: int | str | None = None, cycles: int | None = None) -> dict[str, Any]:
        """The solution: the JSON document that ``forebay solve --json`` prints."""
        return self.run(memory, cycles).figures

    def __repr__(self) -> str:
        return f"<forebay.Chain {self.scenario.name}>"
