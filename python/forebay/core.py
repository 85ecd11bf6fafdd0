"""Firmware on a simulated embedded core."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forebay.errors import ScenarioError
from forebay.run import Run
from forebay.scenario import Scenario

__all__ = ["Core"]


class Core:
    """An embedded core with its firmware (model ``"embedded"``).

    Parameters
    ----------
    source : str, os.PathLike, mapping or Scenario
        As for :class:`~forebay.Scenario`.
    """

    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any] | Scenario) -> None:
        self.scenario = source if isinstance(source, Scenario) else Scenario(source)

    def set(self, key: str, value: Any) -> Core:
        """A copy with another value of a key, as :meth:`Scenario.set`."""
        return Core(self.scenario.set(key, value))

    def run(self, capture: str | os.PathLike[str] | None = None) -> Run:
        """Execute the firmware on packets.

        Parameters
        ----------
        capture : str or os.PathLike, optional
            The packets (pcap or pcapng), in place of those of the scenario's key ``input.capture``.

        Returns
        -------
        Run
            Cycles and what they were spent on; ``run.figures`` has one entry per figure.
        """
        one = self.scenario
        if one.model != "embedded":
            raise ScenarioError(f'{one.name}: a core runs firmware (model = "embedded"), found model = "{one.model}"')
        if capture is not None:
            one = one.set("input.capture", str(Path(capture).resolve()))
        return one.simulate()

    def __repr__(self) -> str:
        return f"<forebay.Core {self.scenario.name}>"
