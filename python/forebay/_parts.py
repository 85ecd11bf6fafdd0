"""The folder of a sweep: a Parquet dataset that is written part by part, and what is made of it at the end.

A part has the points of a range. It is written beside its place and renamed, so that a part that is there is
whole; its name and metadata say which sweep and which points it has. A range that is there is not run again.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay import _toml
from forebay._points import Plan, cores
from forebay.errors import RunError
from forebay.stats import Until

if TYPE_CHECKING:
    import pyarrow

_NAME = re.compile(r"part-(\d{12})-(\d{12})-([0-9a-f]{8})\.parquet")
# Points of a directory of parts, so that no directory grows without limit.
_GROUP = 100_000
_METADATA = b"forebay"


def row(plan: Plan, number: int, line: str) -> dict[str, Any]:
    """A point as the row of a table."""
    document = json.loads(line)
    found: dict[str, Any] = {"point": number, **dict(zip(plan.keys, plan.values(number)))}
    found["seed"] = document["seed"]
    found["replications"] = document.get("replications", 1)
    if "until" in document:
        found["converged"] = document["until"]["converged"]
    for name, value in document.get("figures", {}).items():
        found.setdefault(path(name), value)
    for name, value in document.get("estimates", {}).items():
        found.setdefault(path(name), value["mean"])
        found.setdefault(f"{path(name)}.half_width", value["half_width"])
    return found


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
        return pyarrow.int64()
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
            raise RunError("out= requires pyarrow", hint='pip install "forebay[dask]"') from None
        self.directory = Path(directory)
        self.plan = plan
        self.key = plan.key()
        self._ranges: dict[tuple[int, int], Path] = {}
        self._open()

    def _open(self) -> None:
        manifest = self.directory / "manifest.json"
        if manifest.exists():
            found = json.loads(manifest.read_text(encoding="utf-8")).get("key")
            if found != self.key:
                raise RunError(
                    f"{self.directory} has another sweep: found {found or 'no key'}, expected {self.key}",
                    hint="name another folder, or remove this one; a sweep is resumed by the same version, "
                    "scenario, values, replications and policy",
                )
            self._find()
        self._manifest()
        scenario = self.directory / "scenario.toml"
        scenario.write_text(self.plan.scenario.text, encoding="utf-8")

    def _find(self) -> None:
        """Take the parts that are whole; what a crash has left half-written is removed."""
        import pyarrow.parquet

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
                continue
            # Ranges depend on how fast points are, so that those of two attempts may overlap.
            if (
                about["sweep"] == self.key
                and (about["first"], about["last"]) == (first, last)
                and first >= end
            ):
                self._ranges[first, last] = path
                end = last

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
        beside = folder / f".{name}.{os.getpid()}"
        with open(beside, "wb") as file:
            file.write(part)
        os.replace(beside, folder / name)
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
        beside = self.directory / f".points.jsonl.{os.getpid()}"
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for _, line in self.lines())
        os.replace(beside, self.directory / "points.jsonl")
        self._manifest()

    def _manifest(self) -> None:
        plan = self.plan
        axes = zip(plan.keys, plan.axes or ())
        runs = plan.replications if isinstance(plan.replications, int) else None
        document = {
            "schema": 1,
            "version": plan.version,
            "key": self.key,
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
        self.directory.mkdir(parents=True, exist_ok=True)
        beside = self.directory / f".manifest.json.{os.getpid()}"
        beside.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        os.replace(beside, self.directory / "manifest.json")
