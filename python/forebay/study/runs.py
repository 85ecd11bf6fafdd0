"""Runs of a study: in parallel, equal ones once, all of them recorded."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from forebay import _forebay
from forebay.errors import RunError
from forebay.run import Run
from forebay.scenario import Scenario
from forebay.study.errors import problem
from forebay.study.scenarios import StudyScenario, settings, way_of

__all__ = ["Runner", "StudyRun"]

# What every document has beside its figures; it stands elsewhere in a record.
_COMMON = ("schema", "seed", "notes", "warnings", "resolved")


class StudyRun(Run):
    """A run of a study: a :class:`forebay.Run` with its number; scenario and settings repeat it.

    Attributes
    ----------
    number : int
        From 1, in the order in which the study asked.
    """

    __slots__ = ("number", "resolved")

    def __init__(self, scenario: Scenario, ran: _forebay.Ran, number: int, resolved: str) -> None:
        super().__init__(scenario, ran)
        self.number = number
        self.resolved = resolved

    def record(self) -> dict[str, Any]:
        """The run as in ``results.json``."""
        return {
            "run": self.number,
            "scenario": self.scenario.name,
            "set": [[key, value] for key, value in settings(self.scenario).items()],
            "by": way_of(self.scenario),
            "seed": self.seed,
            "figures": {key: value for key, value in self.figures.items() if key not in _COMMON},
            "notes": self.notes,
        }


@dataclass
class _Wanted:
    """A run that is to be made."""

    key: str
    scenario: Scenario
    model: _forebay.Model
    ran: _forebay.Ran | None = None


@dataclass
class Runner:
    """Makes the runs of one study.

    Attributes
    ----------
    quick : bool
        Whether scenarios are cut down, to a fiftieth of their packets or a tenth of their time.
    threads : int
        Runs at a time; their number changes no figure.
    progress : bool
        Whether a line on standard error says how far it is, if that is a terminal.
    change : callable, optional
        Changes each scenario before it is run: a control, or a repetition with other seeds.
    """

    quick: bool
    threads: int
    progress: bool
    change: Callable[[StudyScenario], StudyScenario] | None = None
    records: list[StudyRun] = field(default_factory=list)
    _known: dict[str, StudyRun] = field(default_factory=dict)

    def changed(self, change: Callable[[StudyScenario], StudyScenario]) -> Runner:
        """A runner that changes every scenario; it knows the runs that were made, and records its own."""
        return Runner(self.quick, self.threads, self.progress, change, [], self._known)

    def actual(self, scenario: Scenario) -> Scenario:
        """The scenario that is run in the place of this one."""
        if self.change is None:
            return scenario
        return self.change(StudyScenario.of(scenario, way_of(scenario)))

    def model(self, scenario: Scenario) -> _forebay.Model:
        """The compiled scenario, cut down if that is wanted."""
        model = scenario._native()
        shorter = _forebay.study_quick(model, way_of(scenario)) if self.quick else []
        if not shorter:
            return model
        sets = (*scenario.sets, *shorter)
        return Scenario._of(scenario.text, scenario.name, scenario.directory, sets)._native()

    def run(self, scenarios: Sequence[Scenario]) -> list[StudyRun]:
        """The runs of scenarios, in their order; those that are not known yet are made, on all threads."""
        wanted: dict[str, _Wanted] = {}
        keys: list[str] = []
        for scenario in scenarios:
            if not isinstance(scenario, Scenario):
                raise problem(
                    "only a scenario can be run",
                    found=repr(scenario),
                    expected="what `s.scenario(file)` gives",
                )
            scenario = self.actual(scenario)
            model = self.model(scenario)
            key = f"{way_of(scenario)}\n{model.resolved()}"
            if key not in self._known and key not in wanted:
                wanted[key] = _Wanted(key, scenario, model)
            keys.append(key)
        try:
            self._make(list(wanted.values()))
        finally:
            for one in wanted.values():
                if one.ran is not None:
                    run = StudyRun(one.scenario, one.ran, len(self.records) + 1, one.model.resolved())
                    self._known[one.key] = run
                    self.records.append(run)
        return [self._known[key] for key in keys]

    def _make(self, wanted: list[_Wanted]) -> None:
        """Makes runs on threads; the first error ends the others, and an interrupt keeps what is done."""
        if not wanted:
            return
        stop = threading.Event()
        line = _Progress(self.progress, len(self.records), len(self.records) + len(wanted))
        pool = ThreadPoolExecutor(max_workers=min(self.threads, len(wanted)))
        futures: list[Future[None]] = [pool.submit(_run, one, stop) for one in wanted]
        try:
            pending = set(futures)
            while pending:
                done, pending = wait(pending, timeout=0.2)
                if any(future.exception() is not None for future in done):
                    stop.set()
                line.show(len(futures) - len(pending))
        finally:
            if any(not future.done() for future in futures):
                stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            line.clear()
        for future in futures:
            future.result()


def _run(one: _Wanted, stop: threading.Event) -> None:
    """Makes one run, unless all are to stop."""
    if stop.is_set():
        return
    try:
        ran = one.model.run(way_of(one.scenario), None, False, None, lambda done, whole: not stop.is_set())
    except (Exception, KeyboardInterrupt):
        if stop.is_set():
            return
        raise
    if stop.is_set():
        return
    if one.model.kind == "embedded":
        _passed(one.scenario, ran)
    one.ran = ran


def _passed(scenario: Scenario, ran: _forebay.Ran) -> None:
    """A core's figures count only if its firmware did what it should."""
    figures = json.loads(ran.document())
    code = figures.get("exit_code", 0.0)
    if code != 0 or figures["dropped"] > 0:
        ended = f"the firmware ended with {code:g}, {figures['dropped']:g} packets did not pass"
        raise RunError(f"{scenario.name}: {ended}")


class _Progress:
    """A line on standard error, after the first second."""

    def __init__(self, wanted: bool, before: int, total: int) -> None:
        self._on = wanted and sys.stderr.isatty()
        self._before, self._total = before, total
        self._since = time.monotonic()
        self._shown = False

    def show(self, done: int) -> None:
        if self._on and time.monotonic() - self._since > 1.0:
            self._shown = True
            sys.stderr.write(f"\r\x1b[Krunning: {self._before + done} of {self._total} runs")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
