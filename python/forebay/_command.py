"""The command ``forebay``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from forebay import _forebay

__all__ = ["main"]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of the command: studies are run by this Python, which has the package, unless another is named."""
    return {"FOREBAY_PYTHON": sys.executable, **given}


def main() -> int:
    """Run the command by the arguments of the process, and return its exit code."""
    # The command handles interrupts itself; Python's handler would wait for the interpreter, which does not run then.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.update(environment(os.environ))
    return _forebay.main(["forebay", *sys.argv[1:]])
