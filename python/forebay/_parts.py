"""The folder of a sweep: a Parquet dataset that is written part by part, and what is made of it at the end.

A part has the points of a range. It is written beside its place, brought to the disk and renamed, so that a part
that is there is whole; its name and metadata say which sweep and which points it has. A range that is there is not
run again. One process at a time has the folder, by a lock that ends with it. What is no part of the sweep among
the parts is removed, so that any reader of Parquet takes the dataset.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay import _toml
from forebay._output import replace
from forebay._points import Plan, cores
from forebay.errors import RunError
from forebay.stats import Until

if TYPE_CHECKING:
    import pyarrow

_NAME = re.compile(r"part-(\d{12})-(\d{12})-([0-9a-f]{8})\.parquet")
# Points of a directory of parts, so that no directory grows without limit.
_GROUP = 100_000
_METADATA = b"forebay"
# Points of a part that are taken over from a sweep with other values.
_TAKEN = 10_000


def row(plan: Plan, number: int, line: str) -> dict[str, Any]:
    """A point as the row of a table."""
    document = json.loads(line)
    found: dict[str, Any] = {"point": number, **dict(zip(plan.keys, plan.values(number)))}
    found["seed"] = document["seed"]
    found["replications"] = document.get("replications", 1)
    if "until" in document:
        found["converged"] = document["until"]["converged"]
    for name, value in document.get("figures", {}).items():
        found.setdefault(path(name), _number(value))
    for name, value in document.get("estimates", {}).items():
        found.setdefault(path(name), _number(value["mean"]))
        found.setdefault(f"{path(name)}.half_width", _number(value["half_width"]))
    return found


def _number(value: float | None) -> float:
    """A figure of a line: what no run had, such as the delay of no packet, is not a number."""
    return math.nan if value is None else value


_LISTS = ("processor.", "class.", "stages.", "servers.", "resources.")


def path(name: str) -> str:
    """A name of ``points.jsonl`` as a path of `Run`, which does not name the list."""
    for prefix in _LISTS:
        name = name.removeprefix(prefix)
    return name


def columns(plan: Plan, numbers: Sequence[int], lines: Sequence[str]) -> dict[str, Any]:
    """The rows of some points as Arrow arrays; the parameters have the types of all values of the sweep."""
    import pyarrow

    rows = [row(plan, number, line) for number, line in zip(numbers, lines)]
    whole = {"point": pyarrow.int64(), "seed": pyarrow.uint64(), "replications": pyarrow.int32()}
    whole["converged"] = pyarrow.bool_()
    whole |= {key: _type(plan, at) for at, key in enumerate(plan.keys)}
    found = {}
    for name in dict.fromkeys(key for one in rows for key in one):
        values = [one.get(name) for one in rows]
        kind = whole.get(name, pyarrow.float64())
        if name in plan.keys and kind == pyarrow.string():
            values = [_toml.setting(value) for value in values]
        found[name] = pyarrow.array(values, type=kind)
    return found


def _type(plan: Plan, at: int) -> Any:
    import pyarrow

    values = plan.axes[at] if plan.axes is not None else [one[at] for one in plan.rows or ()]
    if all(isinstance(value, bool) for value in values):
        return pyarrow.bool_()
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        # Seeds may be beyond 63 bits.
        large = any(value >= 2**63 for value in values) and all(0 <= value < 2**64 for value in values)
        small = all(-(2**63) <= value < 2**63 for value in values)
        return pyarrow.uint64() if large else pyarrow.int64() if small else pyarrow.float64()
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return pyarrow.float64()
    return pyarrow.string()


def encode(plan: Plan, key: str, first: int, lines: Sequence[str]) -> bytes:
    """A part with these lines, from point `first` on, as the bytes of a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    numbers = range(first, first + len(lines))
    table = pyarrow.table(
        {**columns(plan, numbers, lines), "document": pyarrow.array(lines, pyarrow.string())}
    )
    about = {
        "version": plan.version,
        "sweep": key,
        "scenario": plan.scenario.name,
        "keys": list(plan.keys),
        "replications": _replications(plan),
        "first": first,
        "last": first + len(lines),
    }
    table = table.replace_schema_metadata({_METADATA: json.dumps(about).encode()})
    sink = pyarrow.BufferOutputStream()
    # A column of doubles that is written once gains nothing by a dictionary.
    pyarrow.parquet.write_table(
        table, sink, compression="zstd", use_dictionary=False, write_page_checksum=True
    )
    return bytes(sink.getvalue())


def _replications(plan: Plan) -> int | str:
    return str(plan.replications) if isinstance(plan.replications, Until) else plan.replications


class Parts:
    """The folder of a sweep."""

    def __init__(self, directory: str | os.PathLike[str], plan: Plan) -> None:
        try:
            import pyarrow  # noqa: F401
        except ModuleNotFoundError:
            raise RunError("out= requires pyarrow", hint="pip install pyarrow") from None
        self.directory = Path(directory)
        self.plan = plan
        self.key = plan.key()
        self._ranges: dict[tuple[int, int], Path] = {}
        self._lock: int | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.directory)
            self._open()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                hint = "name a folder that can be written"
                raise RunError(f"cannot write {self.directory}: {error.strerror or error}", hint=hint) from error
            raise

    def close(self) -> None:
        """Let another process have the folder; what is there can still be read."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _open(self) -> None:
        manifest = self.directory / "manifest.json"
        grown: dict[str, str] = {}
        if manifest.exists():
            found = json.loads(manifest.read_text(encoding="utf-8"))
            if found.get("key") != self.key:
                if found.get("base") != self.plan.base():
                    raise RunError(
                        f"{self.directory} has another sweep: found {found.get('key') or 'no key'}, "
                        f"expected {self.key}",
                        hint="name another folder, or remove this one; a sweep is resumed by the same version, "
                        "scenario, keys and policy",
                    )
                # Of other values, or of more replications: what is the same is taken over.
                self._find(found["key"])
                if found["replications"] == _replications(self.plan):
                    grown = {_swept(line): line for _, line in self.lines()}
                self._ranges.clear()
                self._take_over(grown)
                # From here on the parts of the other sweep are what is left over.
                self._manifest()
            self._find(self.key)
        self._manifest()
        replace(self.directory / "scenario.toml", self.plan.scenario.text.encode())

    def _take_over(self, lines: dict[str, str]) -> None:
        """Write the lines of another sweep of these keys that are points of this one."""
        if not lines:
            return
        begin = 0
        taken: list[str] = []
        for number in range(self.plan.count + 1):
            line = lines.get(_point(self.plan, number)) if number < self.plan.count else None
            if line is not None and len(taken) < _TAKEN:
                taken.append(line)
                continue
            if taken:
                self.write(begin, number, encode(self.plan, self.key, begin, taken))
            begin, taken = (number + 1, []) if line is None else (number, [line])

    def _find(self, key: str) -> None:
        """Take the parts of a sweep that are whole; anything else among them is removed."""
        import pyarrow.parquet

        self._ranges.clear()
        end = 0
        for path in sorted(self.directory.glob("points/*/*")):
            match = _NAME.fullmatch(path.name)
            if match is None:
                if path.name.startswith(".part-"):
                    path.unlink(missing_ok=True)
                continue
            first, last = int(match[1]), int(match[2])
            try:
                about = json.loads(pyarrow.parquet.read_schema(path).metadata[_METADATA])
            except (OSError, KeyError, TypeError, ValueError):
                # Of a crash of the machine: whatever reads the dataset would fail at it.
                path.unlink(missing_ok=True)
                continue
            # Ranges depend on how fast points are, so that those of two attempts may overlap.
            if about["sweep"] == key and (about["first"], about["last"]) == (first, last) and first >= end:
                self._ranges[first, last] = path
                end = last
            elif key == self.key:
                path.unlink(missing_ok=True)

    @property
    def count(self) -> int:
        """Number of points that are there."""
        return sum(last - first for first, last in self._ranges)

    def missing(self) -> list[tuple[int, int]]:
        """The ranges of points that are not there."""
        found, at = [], 0
        for first, last in [*sorted(self._ranges), (self.plan.count, self.plan.count)]:
            if at < first:
                found.append((at, first))
            at = last
        return found

    def write(self, first: int, last: int, part: bytes) -> None:
        """Add a part of the points from `first` to before `last`."""
        folder = self.directory / "points" / f"group={first // _GROUP:05}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"part-{first:012}-{last:012}-{self.key[:8]}.parquet"
        replace(folder / name, part)
        self._ranges[first, last] = folder / name

    def lines(self) -> Iterator[tuple[int, str]]:
        """Each point's number and line, in the order of the points."""
        import pyarrow.parquet

        for span in sorted(self._ranges):
            with pyarrow.parquet.ParquetFile(self._ranges[span], page_checksum_verification=True) as file:
                table = file.read(["point", "document"], use_threads=False)
            yield from zip(table["point"].to_pylist(), table["document"].to_pylist())

    def to_arrow(self) -> pyarrow.Table:
        """All points without their lines."""
        import pyarrow
        import pyarrow.parquet

        tables = []
        for span in sorted(self._ranges):
            with pyarrow.parquet.ParquetFile(self._ranges[span], page_checksum_verification=True) as file:
                names = [name for name in file.schema_arrow.names if name != "document"]
                tables.append(file.read(names))
        if not tables:
            return pyarrow.table({})
        return pyarrow.concat_tables(tables, promote_options="default").replace_schema_metadata(None)

    def finish(self) -> None:
        """Write ``points.jsonl`` from the parts that are there, and the manifest."""
        replace(self.directory / "points.jsonl", (f"{line}\n".encode() for _, line in self.lines()))
        self._manifest()

    def _manifest(self) -> None:
        plan = self.plan
        axes = zip(plan.keys, plan.axes or ())
        runs = plan.replications if isinstance(plan.replications, int) else None
        document = {
            "schema": 1,
            "version": plan.version,
            "key": self.key,
            "base": plan.base(),
            "scenario": plan.scenario.name,
            "set": list(plan.scenario.sets),
            "sweep": [f"{key}={','.join(_toml.setting(one) for one in values)}" for key, values in axes],
            "keys": list(plan.keys),
            "replications": _replications(plan),
            "policy": plan.policy_key.split("\n", 1)[0] or None,
            "host": f"{platform.machine()}, {cores()} cores",
            "python": platform.python_version(),
            "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "points": self.count,
            "points_wanted": plan.count,
            "runs": None if runs is None else self.count * runs,
            "runs_wanted": None if runs is None else plan.count * runs,
            "complete": self.count == plan.count,
        }
        replace(self.directory / "manifest.json", (json.dumps(document, indent=2) + "\n").encode())


def _swept(line: str) -> str:
    """The values of a point, by its line."""
    return json.dumps(json.loads(line)["sweep"], sort_keys=True)


def _point(plan: Plan, number: int) -> str:
    """The same by its number."""
    values = zip(plan.keys, plan.values(number))
    return json.dumps({key: _toml.setting(value) for key, value in values}, sort_keys=True)


def _lock(directory: Path) -> int:
    """Take a folder for this process; the lock ends with its descriptor, by a crash too."""
    found = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        import fcntl

        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ModuleNotFoundError:
        pass  # only where there are no such locks
    except BlockingIOError:
        os.close(found)
        raise RunError(
            f"{directory} is in use by another sweep", hint="wait until it ends, or name another folder"
        ) from None
    return found
