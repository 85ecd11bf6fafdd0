"""The exceptions of the package, one family under :class:`Error`."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Error",
    "FigureError",
    "Finding",
    "GatewayError",
    "Interrupted",
    "PolicyError",
    "RunError",
    "ScenarioError",
    "StudyError",
]


@dataclass(frozen=True)
class Finding:
    """One problem of a file and its place.

    Attributes
    ----------
    message : str
        What is wrong, without file and line.
    file : str or None
        The file as it was given, or the setting (``--set key=value``).
    line, column : int or None
        The place, both from 1; None if the problem concerns the file as a whole or a setting.
    found : str or None
        The text of the file at that place.
    expected : str or None
        What could stand there instead.
    hint : str
        What to do; may be empty.
    """

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    found: str | None = None
    expected: str | None = None
    hint: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} ({self.hint})" if self.hint else text


class Error(Exception):
    """The base of all errors of this package.

    Parameters
    ----------
    message : str
        The operation and its cause.
    findings : sequence of Finding
        All problems that were found, in the order of the file.
    hint : str
        What to do, if there is no finding that says it.

    Attributes
    ----------
    file, line, column, found, expected, hint
        Those of the first finding (see :class:`Finding`); None where there is none.
    findings : tuple of Finding
        All problems that were found.
    partial : object
        What was done before the error, where that is kept: the finished points of a sweep.
    """

    partial: Any = None

    def __init__(self, message: str, findings: Sequence[Finding] = (), hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.findings: tuple[Finding, ...] = tuple(findings)
        first = self.findings[0] if self.findings else Finding(message, hint=hint)
        self.file: str | None = first.file
        self.line: int | None = first.line
        self.column: int | None = first.column
        self.found: str | None = first.found
        self.expected: str | None = first.expected
        self.hint: str = first.hint

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.message} ({self.hint})" if self.hint else self.message
        if len(self.findings) == 1:
            return str(self.findings[0])
        return "\n".join([f"{self.message}:", *(f"  {one}" for one in self.findings)])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, self.findings, self.hint, dict(self.__dict__))


def _restore(
    kind: type[Error], message: str, findings: tuple[Finding, ...], hint: str, state: dict[str, Any]
) -> Error:
    error = kind.__new__(kind)
    Error.__init__(error, message, findings, hint)
    error.__dict__.update(state)
    return error


class ScenarioError(Error):
    """A scenario file, or a setting of it, is wrong; ``findings`` has every problem."""


class RunError(Error):
    """A run has no figures: no packet beyond the warm-up, a chain that cannot be solved, and the like."""


class PolicyError(Error):
    """A policy in Python raised, or returned something that is no candidate.

    Its ``__cause__`` is the policy's own exception with its traceback. ``traceback`` is that traceback as text,
    which remains when the error is pickled.
    """

    traceback: str = ""


class StudyError(Error):
    """A study is wrong: no study of that name, a claim declared after a run, and the like."""


class GatewayError(Error):
    """A gateway does not answer on its control socket."""


class FigureError(Error, KeyError):
    """A run has no figure at a path; the message lists those that it has."""


def policy_error(policy: object, cause: BaseException) -> PolicyError:
    """The error for what a policy raised."""
    text = "".join(traceback.format_exception(type(cause), cause, cause.__traceback__))
    last = traceback.extract_tb(cause.__traceback__)[-1:]
    place = f" ({last[0].filename}, line {last[0].lineno})" if last else ""
    error = PolicyError(f"policy {type(policy).__qualname__}: {type(cause).__name__}: {cause}{place}")
    error.traceback = text
    error.__cause__ = cause
    return error


def not_a_candidate(policy: object, chosen: object) -> PolicyError:
    """The error for an answer that is none of the candidates."""
    found = f"{chosen!r} of type {type(chosen).__qualname__}"
    finding = Finding(
        f"{type(policy).__qualname__}.choose returned {found}, which is not one of this job's candidates",
        found=found,
        expected="one of the candidates, or None",
        hint="return one of the objects in `candidates`, or None for the predicted finish time",
    )
    return PolicyError(finding.message, [finding])


class Interrupted(KeyboardInterrupt):
    """An interrupt (Ctrl-C) that keeps what was done until then.

    Attributes
    ----------
    partial : object
        The result so far: a :class:`~forebay.Run` over the packets until the interrupt, or the complete runs.
    """

    def __init__(self, message: str = "interrupted", partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial
