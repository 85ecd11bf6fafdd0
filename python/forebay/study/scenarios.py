"""A scenario of a study: a :class:`forebay.Scenario`, and how its figures are found."""

from __future__ import annotations

from typing import Any

from forebay.scenario import Scenario, Way

__all__ = ["StudyScenario", "Way", "settings", "way_of"]


class StudyScenario(Scenario):
    """A scenario file of a study with settings, and the way to its figures; it does not change.

    Made by :meth:`Study.scenario`.
    """

    __slots__ = ("_way",)

    _way: Way

    @classmethod
    def of(cls, scenario: Scenario, way: Way = "simulation") -> StudyScenario:
        """The same scenario with a way to its figures.

        Parameters
        ----------
        scenario
            Any scenario.
        way
            ``"simulation"``, ``"solution"`` or ``"closed-form"``.
        """
        one = cls.__new__(cls)
        one._fill(scenario.text, scenario.name, scenario.directory, scenario.sets)
        one._way = way
        return one

    @property
    def way(self) -> Way:
        """How figures are found: ``"simulation"``, ``"solution"`` or ``"closed-form"``."""
        return self._way

    def set(self, key: str, value: Any) -> StudyScenario:
        """A copy with another value of a key, as :meth:`forebay.Scenario.set`."""
        plain = Scenario._of(self.text, self.name, self.directory, self.sets)
        return StudyScenario.of(plain.set(key, value), self._way)

    def value(self, key: str) -> Any:
        """The value of a key, defaults filled in and in SI units, or ``None`` if it has none.

        Parameters
        ----------
        key
            The path of the key, as :meth:`set` takes it: ``"scheduler.policy"``, ``"processor.card.count"``.
        """
        value: Any = self.resolved
        for step in key.split("."):
            if isinstance(value, list):
                value = next((one for one in value if isinstance(one, dict) and one.get("name") == step), None)
            elif isinstance(value, dict):
                value = value.get(step)
            else:
                return None
        return value

    def solved(self) -> StudyScenario:
        """A copy that is solved: a pipeline by its Markov chain, an inline card by its limits."""
        return StudyScenario.of(self, "solution")

    def closed(self) -> StudyScenario:
        """A copy that is computed by closed forms, as though buffers had no limit; of pipelines."""
        return StudyScenario.of(self, "closed-form")

    def __reduce__(self) -> tuple[Any, ...]:
        return StudyScenario.of, (Scenario._of(self.text, self.name, self.directory, self.sets), self._way)


def way_of(scenario: Scenario) -> Way:
    """How a scenario's figures are found: by simulation, if it does not say."""
    return scenario.way if isinstance(scenario, StudyScenario) else "simulation"


def settings(scenario: Scenario) -> dict[str, str]:
    """What was set, the last value of each key."""
    pairs = (one.partition("=") for one in scenario.sets)
    return {key: value for key, _, value in pairs}
