"""Runs a study's ``study.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forebay.study import files
from forebay.study.errors import Error, at_line, problem
from forebay.study.files import SCRIPT, StudyFiles
from forebay.study.findings import Findings
from forebay.study.modules import imported
from forebay.study.runs import Runner, cores
from forebay.study.study import Study

__all__ = ["run"]


def run(
    study: str | Path | StudyFiles,
    *,
    quick: bool = False,
    threads: int | None = None,
    out: str | Path | None = None,
    progress: bool = True,
) -> Findings:
    """Runs a study.

    Parameters
    ----------
    study
        A shipped study by its name, or a directory with a ``study.py``.
    quick
        Run a fiftieth of the packets, to test a study; figures are not meaningful.
    threads
        Runs at a time; default: one for each core. Their number changes no figure.
    out
        Directory for the report, the figures, the claims and every resolved scenario.
    progress
        Whether standard error says how far it is, if it is a terminal.

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
    bench = Study(found, Runner(quick, threads or cores(), progress))
    complete = True
    try:
        with imported(found) as module:
            function: Any = getattr(module, "study", None)
            if not callable(function):
                raise problem(
                    f"{found.path_of(SCRIPT)} has no function `study`", expected="def study(s: Study) -> None"
                )
            function(bench)
        unmeasured = [one.id for one in bench.claims if not one.is_measured]
        if unmeasured:
            raise problem(
                f"declared and never measured: {', '.join(unmeasured)}", hint="call `measured` of each claim"
            )
    except KeyboardInterrupt:
        complete = False
    except Error as error:
        _place(error, found)
        raise
    findings = Findings(found, bench.blocks, bench.claims, bench._runner.records, quick, complete)
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
