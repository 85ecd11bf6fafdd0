"""Errors of studies, with their place in ``study.py``."""

from __future__ import annotations

from dataclasses import replace

from forebay.errors import Error, Finding, StudyError

__all__ = ["Error", "StudyError", "at_line", "problem"]


def problem(
    message: str, *, found: str | None = None, expected: str | None = None, hint: str = ""
) -> StudyError:
    """An error of a study; the place in ``study.py`` is added where the study is run.

    Parameters
    ----------
    message
        What is wrong, as one sentence without a full stop.
    found, expected, hint
        What stood there, what would be right, and what to do, where that helps.
    """
    return StudyError(message, [Finding(message, found=found, expected=expected, hint=hint)])


def at_line(error: Error, file: str, line: int) -> None:
    """Gives an error that names no file its place in ``study.py``; others keep theirs."""
    if error.file is None:
        first = error.findings[0] if error.findings else Finding(error.message, hint=error.hint)
        error.findings = (replace(first, file=file, line=line), *error.findings[1:])
        error.file, error.line = file, line
