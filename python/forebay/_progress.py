"""Progress on stderr, for what takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from forebay.errors import Interrupted

__all__ = ["Progress", "Watch"]

Watch = Callable[[int, int], "bool | None"]

_QUIET_S = 2.0
_WIDTH = 32


class Progress:
    """Gives the native module a function that it calls with what is done and the whole.

    Parameters
    ----------
    asked : callable or bool, optional
        The caller's own function; None: a bar if stderr is a terminal or a notebook's; True: a bar in any case; False: none.
    what : str
        The word before the bar.
    """

    def __init__(self, asked: Watch | bool | None, what: str) -> None:
        self._asked = asked
        self._what = what
        self._begun = time.monotonic()
        self._shown = False
        self._width = 0

    def __enter__(self) -> Watch | None:
        if callable(self._asked):
            return self._asked
        # A notebook shows stderr below its cell as a terminal does; the stream is ipykernel's there.
        seen = sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
        if self._asked is False or (self._asked is None and not seen):
            return None
        return self._show

    def _show(self, done: int, whole: int) -> bool:
        if time.monotonic() - self._begun >= _QUIET_S and whole > 0:
            share = min(1.0, done / whole)
            bar = "#" * round(share * _WIDTH)
            line = f"{self._what} [{bar:{_WIDTH}}] {100 * share:3.0f} % of {whole:,}"
            self._width = len(line)
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
            self._shown = True
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
        if kind is not None and issubclass(kind, KeyboardInterrupt) and not issubclass(kind, Interrupted):
            raise Interrupted(f"interrupted while {self._what}") from error
