"""Runs a study's ``study.py``."""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path
from typing import Any

from forebay.study import files
from forebay.study.errors import Error, at_line, problem
from forebay.study.files import SCRIPT, StudyFiles
from forebay.study.findings import Findings
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
    bench = Study(found, Runner(quick, threads or cores(), progress))
    path = found.script_path()
    complete = True
    try:
        _call(found, path, bench)
        unmeasured = [one.id for one in bench.claims if not one.is_measured]
        if unmeasured:
            raise problem(
                f"declared and never measured: {', '.join(unmeasured)}", hint="call `measured` of each claim"
            )
    except KeyboardInterrupt:
        complete = False
    except Error as error:
        _place(error, path)
        raise
    findings = Findings(found, bench.blocks, bench.claims, bench._runner.records, quick, complete)
    if out is not None:
        findings.keep(out)
    return findings


def _call(found: StudyFiles, path: str, bench: Study) -> None:
    """Executes the script as a module and calls its function ``study``."""
    text = found.files[SCRIPT]
    module = types.ModuleType(f"forebay_study_{found.name.replace('-', '_')}")
    module.__file__ = path
    # Tracebacks show lines of a study that is in no file.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, path, "exec"), module.__dict__)
        function: Any = getattr(module, "study", None)
        if not callable(function):
            raise problem(f"{path} has no function `study`", expected="def study(s: Study) -> None")
        function(bench)
    finally:
        sys.modules.pop(module.__name__, None)


def _place(error: Error, path: str) -> None:
    """Notes the line of ``study.py`` at which an error came up."""
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    error.study_line = line  # type: ignore[attr-defined]
    at_line(error, path, line)
