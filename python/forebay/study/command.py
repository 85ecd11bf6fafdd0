"""``python -m forebay.study list | run | copy``, which is also ``forebay study``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forebay.study import files
from forebay.study.errors import Error
from forebay.study.running import run

__all__ = ["main"]

OUT = "output directory for report.html, results.json, claims.json, manifest.json and every resolved scenario"
QUICK = "run a fiftieth of the packets, to test the study; its figures are not meaningful"
ONCE = "leave out the controls and the repetitions with other seeds"


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="forebay study",
        description="Run studies: scenarios and comparisons into figures, claims and a page.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the shipped studies")
    one = commands.add_parser("run", help="run a shipped study by name, or a directory with a study.py")
    one.add_argument("study", help="a shipped study (`forebay study list`), or a directory")
    one.add_argument("--out", metavar="DIR", type=Path, help=OUT)
    one.add_argument(
        "--json", action="store_true", help="print the claims and the figures of every run as JSON"
    )
    one.add_argument("--quick", action="store_true", help=QUICK)
    one.add_argument("--once", action="store_true", help=ONCE)
    one.add_argument(
        "--strict", action="store_true", help="exit with code 1 if a claim or an observation does not hold"
    )
    copy = commands.add_parser("copy", help="copy a shipped study to a directory, to change it")
    copy.add_argument("name", help="name of the study")
    copy.add_argument("directory", type=Path, help="the new directory")
    return parser


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _run(options: argparse.Namespace) -> int:
    found = files.find(options.study)
    if options.out is not None:
        found.keep_apart(options.out)
    findings = run(found, quick=options.quick, once=options.once)
    report = findings.keep(options.out) if options.out is not None else None
    if options.json:
        print(json.dumps(findings.document(), indent=2, ensure_ascii=False))
    else:
        print("\n".join(findings.lines()))
        if report is not None:
            print(report)
    if not findings.complete:
        return 130
    return 1 if options.strict and not findings.all_hold() else 0


def _copy(options: argparse.Namespace) -> int:
    try:
        files.find(options.name).copy_to(options.directory)
    except OSError as error:
        print(f"error: cannot write {options.directory}: {error}", file=sys.stderr)
        print("  help: the directory must not exist yet", file=sys.stderr)
        return 2
    print(f"forebay study run {options.directory}")
    return 0


def _say(error: Error) -> None:
    """An error with its hint; one of a scenario also with the place in the study that used it."""
    print(f"error: {error}", file=sys.stderr)
    for one in error.findings:
        if one.expected:
            print(f"  expected: {one.expected}", file=sys.stderr)
        if one.found:
            print(f"  found: {one.found}", file=sys.stderr)
    place = getattr(error, "study_place", None)
    if place is not None and place != (error.file, error.line):
        print(f"  at {place[0]}, line {place[1]}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0, 1 (a claim does not hold), 2 (an error) or 130 (interrupted)."""
    options = _arguments().parse_args(arguments)
    # A request to terminate keeps what is done, as an interrupt does; so does an interrupt of a background job, for which
    # a shell has it ignored.
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if options.command == "list":
            for name, study in files.shipped().items():
                print(f"{name:20} {study.title()}")
            return 0
        return _run(options) if options.command == "run" else _copy(options)
    except Error as error:
        _say(error)
        return 2
    except BrokenPipeError:
        sys.stdout = None
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception:
        _trace()
        return 2


def _trace() -> None:
    """The traceback of a study's own error, from study.py on."""
    kind, error, trace = sys.exc_info()
    inner = trace
    while inner is not None and not inner.tb_frame.f_code.co_filename.endswith(files.SCRIPT):
        inner = inner.tb_next
    traceback.print_exception(kind, error, inner or trace)
