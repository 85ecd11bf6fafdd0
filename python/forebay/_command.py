"""The command ``forebay``."""

from __future__ import annotations

import os
import signal
import sys

from forebay import _forebay

__all__ = ["main"]


def main() -> int:
    """Run the command by the arguments of the process, and return its exit code."""
    # The command handles interrupts itself; Python's handler would wait for an interpreter that is not running.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Studies are programs in Python, and this is the one that has the package.
    os.environ.setdefault("FOREBAY_PYTHON", sys.executable)
    return _forebay.main(["forebay", *sys.argv[1:]])
