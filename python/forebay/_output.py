"""Files that are written: the old or the new one in full, whenever the machine stops."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

__all__ = ["replace", "same"]


def replace(path: str | os.PathLike[str], content: str | bytes | Iterable[bytes], sync: bool = True) -> None:
    """Write a file under another name, and give it its own when it is complete and, with `sync`, on the disk.

    The file that a link points to is replaced, not the link; permissions stay as they were.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        # A device or a pipe has readers by its name.
        with open(path, "wb") as file:
            file.writelines(_lines(content))
        return
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}.{threading.get_ident()}")
    try:
        with open(beside, "wb") as file:
            if path.exists():
                os.chmod(beside, path.stat().st_mode & 0o7777)
            file.writelines(_lines(content))
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    if sync and hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def same(one: Path, other: Path) -> bool:
    """Whether two paths are one file that is there, by whatever names."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _lines(content: str | bytes | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(content, str):
        content = content.encode("utf-8")
    return [content] if isinstance(content, bytes) else content
