"""Runs a study's ``study.py``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from forebay.study import files
from forebay.study.claims import Change, Claim, Control, Interval, UnderControl
from forebay.study.errors import Error, at_line, problem
from forebay.study.files import SCRIPT, StudyFiles
from forebay.study.findings import Findings
from forebay.study.modules import imported
from forebay.study.runs import Runner, cores
from forebay.study.scenarios import StudyScenario
from forebay.study.study import Enough, Study

__all__ = ["SEEDS", "run"]

SEEDS = 4
"""Repetitions with other seeds, beside the study as it is."""
STEP = 1_000
"""Seeds of a repetition are greater by this: studies count them up by ones."""


def run(
    study: str | Path | StudyFiles,
    *,
    quick: bool = False,
    threads: int | None = None,
    out: str | Path | None = None,
    progress: bool = True,
    once: bool = False,
) -> Findings:
    """Runs a study, then once more under each of its controls, and with other seeds.

    Parameters
    ----------
    study
        A shipped study by its name, or a directory with a ``study.py``.
    quick
        Run a fiftieth of the packets, and one repetition, to test a study; figures are not meaningful.
    threads
        Runs at a time; default: one for each core. Their number changes no figure.
    out
        Directory for the report, the figures, the claims and every resolved scenario.
    progress
        Whether standard error says how far it is, if it is a terminal.
    once
        Leave out controls and repetitions: verdicts are then those of a single run of each scenario.

    Returns
    -------
    Findings
        Claims, runs and page. After a KeyboardInterrupt within the study ``complete`` is false.

    Raises
    ------
    StudyError
        If the study is wrong; ``file`` and ``line`` name the place in ``study.py``.
    """
    found = study if isinstance(study, StudyFiles) else files.find(study)
    if out is not None:
        found.keep_apart(Path(out))
    passes = Passes(found, Runner(quick, threads or cores(), progress))
    complete = True
    try:
        with imported(found) as module:
            function: Any = getattr(module, "study", None)
            if not callable(function):
                raise problem(
                    f"{found.path_of(SCRIPT)} has no function `study`", expected="def study(s: Study) -> None"
                )
            passes.first(function)
            if not once:
                passes.controls(function)
                passes.repetitions(function)
    except KeyboardInterrupt:
        complete = False
    except Error as error:
        _place(error, found)
        raise
    bench, runner = passes.bench, passes.runner
    findings = Findings(
        found, bench.blocks, bench.claims, runner.records, quick, complete, passes.ran, passes.repeated
    )
    if out is not None:
        findings.keep(out)
    return findings


def _place(error: Error, found: StudyFiles) -> None:
    """Notes the place in the study at which an error came up, the innermost one."""
    paths = {found.path_of(file) for file in found.files if file.endswith(".py")}
    trace = error.__traceback__
    place: tuple[str, int] | None = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in paths:
            place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    error.study_place = place  # type: ignore[attr-defined]
    if place is not None:
        at_line(error, *place)


class Passes:
    """The runs of a study: as it is, under each control, and its repetitions.

    Attributes
    ----------
    bench : Study
        The study as it is, whose claims get what the other passes come to.
    ran : list of Control
        The controls and readings that were run.
    repeated : str
        What differed between repetitions; empty without any.
    """

    def __init__(self, found: StudyFiles, runner: Runner) -> None:
        self.found, self.runner = found, runner
        self.bench = Study(found, runner)
        self.ran: list[Control] = []
        self.repeated = ""

    def first(self, function: Callable[[Study], None]) -> None:
        """The study as it is."""
        function(self.bench)
        unmeasured = [one.id for one in self.bench.claims if not one.is_measured]
        if unmeasured:
            raise problem(
                f"declared and never measured: {', '.join(unmeasured)}", hint="call `measured` of each claim"
            )
        named = {one.control for one in self.bench.claims}
        idle = [one.name for one in self.bench.controls if not one.reading and one.name not in named]
        if idle:
            raise problem(
                f"no claim names the control {', '.join(idle)}", hint="give it to a claim, or take it away"
            )

    def controls(self, function: Callable[[Study], None]) -> None:
        """The study under each control, for the claims that name it, and under each reading, for all."""
        for control in self.bench.controls:
            claims = [
                one
                for one in self.bench.claims
                if one.control == control.name or (control.reading and one.kind == "claim")
            ]
            there = self._again(function, control.change, {one.id for one in claims}, control.name)
            for claim in claims:
                other = there[claim.id]
                found = UnderControl(control, other.holds, other.values, other.found)
                if control.reading:
                    claim.readings.append(found)
                else:
                    claim.under = found
            self.ran.append(control)

    def repetitions(self, function: Callable[[Study], None]) -> None:
        """The study with other seeds, or with what it says to change, for the intervals of its claims."""
        claims = [one for one in self.bench.claims if one.basis in ("test", "fitted")]
        if not claims:
            return
        changes = self.bench.changes or [_seeds(STEP * (at + 1)) for at in range(SEEDS)]
        margins = {one.id: [one.margin()] for one in claims}
        for change in changes[:1] if self.runner.quick else changes:
            for id, other in self._again(function, change, set(margins)).items():
                margins[id].append(other.margin())
        for claim in claims:
            found = margins[claim.id]
            # Where nothing is drawn, there is no interval.
            if any(repr(one) != repr(found[0]) for one in found):
                claim.interval = Interval.of(self.bench.repeated_over, found)
        self.repeated = self.bench.repeated_over

    def _again(
        self, function: Callable[[Study], None], change: Change, wanted: set[str], under: str = ""
    ) -> dict[str, Claim]:
        """The claims that are wanted, as they come out with changed scenarios."""
        again = Study(self.found, self.runner.changed(change))
        again.wanted, again.under = wanted, under
        try:
            function(again)
        except Enough:
            pass
        found = {one.id: one for one in again.claims if one.id in wanted}
        left = [id for id, one in found.items() if not one.is_measured]
        if left:
            raise problem(
                f"not measured {f'under `{under}`' if under else 'in a repetition'}: {', '.join(left)}",
                hint="`s.wants` leaves out a part that measures a claim which it does not name",
            )
        return found


def _seeds(more: int) -> Change:
    """Other seeds for whatever is drawn."""

    def change(one: StudyScenario) -> StudyScenario:
        drawn = one.way == "simulation" and one.model != "embedded"
        return one.set("seed", one.seed + more) if drawn else one

    return change
