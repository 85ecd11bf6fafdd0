"""The points of a sweep: what they are, what identifies them, and how a range of them is run."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import math
import os
import pickle
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from forebay import _forebay, _quantity, _toml
from forebay._sequential import main_figure
from forebay.errors import Error, RunError, ScenarioError
from forebay.placement import Placement
from forebay.run import Run
from forebay.scenario import Scenario
from forebay.stats import Until, estimate, sequential


@dataclass(frozen=True)
class Plan:
    """A sweep as a value: the same plan gives the same lines on every machine.

    Attributes
    ----------
    scenario : Scenario
        The scenario with its settings.
    model : str
        Its model, such as "host".
    keys : tuple of str
        The swept keys.
    axes : tuple of tuples or None
        The values of each key, of which every combination is a point; the last key changes fastest.
    rows : tuple of tuples or None
        The values of each point, in place of axes.
    replications : int or Until
        Runs of each point, with the seeds s, s + 1, ...
    policy : bytes or None
        A pickled `Placement`.
    policy_key : str
        What identifies the policy.
    files : tuple of pairs of str
        The files that the scenario names, such as a trace, each with the digest of its content.
    """

    scenario: Scenario
    model: str
    keys: tuple[str, ...]
    axes: tuple[tuple[Any, ...], ...] | None
    rows: tuple[tuple[Any, ...], ...] | None
    replications: int | Until = 1
    policy: bytes | None = None
    policy_key: str = ""
    files: tuple[tuple[str, str], ...] = ()
    version: str = _forebay.version

    @property
    def count(self) -> int:
        """Number of points."""
        if self.rows is not None:
            return len(self.rows)
        return math.prod(len(axis) for axis in self.axes or ())

    @property
    def compiled(self) -> bool:
        """Whether the compiled sweep of the command runs the points."""
        return isinstance(self.replications, int)

    def values(self, number: int) -> tuple[Any, ...]:
        """The values of a point, in the order of the keys."""
        if self.rows is not None:
            return self.rows[number]
        values: list[Any] = []
        for axis in reversed(self.axes or ()):
            number, at = divmod(number, len(axis))
            values.append(axis[at])
        return tuple(reversed(values))

    def sets(self, number: int) -> list[str]:
        """The settings of a point, ``key=value``."""
        return [f"{key}={_toml.setting(value)}" for key, value in zip(self.keys, self.values(number))]

    def key(self) -> str:
        """The digest of everything that the lines depend on.

        That is what `base` has, the values and the replications.
        """
        values = self.rows if self.rows is not None else self.axes
        listed = json.dumps([[_toml.setting(one) for one in part] for part in values or ()])
        return _digest(self.base(), listed, "rows" if self.rows is not None else "axes", repr(self.replications))

    def base(self) -> str:
        """The digest of what the line of one point depends on besides its values and replications.

        That is the version, the resolved scenario, the content of the files that it names, the keys and the
        policy.
        """
        try:
            resolved = self.scenario.toml
        except Error:
            # The keys of a sweep may give what the scenario lacks.
            resolved = self.scenario.text + "\n" + "\n".join(self.scenario.sets)
        return _digest(
            self.version, resolved, json.dumps(self.files), json.dumps(list(self.keys)), self.policy_key
        )


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()[:32]


def plan(
    scenario: Scenario,
    points: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    replications: int | str | Until = 1,
    policy: Placement | str | None = None,
    seed: int | None = None,
) -> Plan:
    """Make a plan and check it: every value of every key is validated before the first run."""
    if isinstance(replications, str):
        replications = Until.parse(replications)
    if not isinstance(replications, Until):
        replications = _quantity.count("replications", replications, 1)
    if _is_embedded(scenario) and (seed is not None or replications != 1):
        hint = "leave out seed= and replications="
        raise RunError(f"{scenario.name}: firmware on a core draws no random numbers", hint=hint)
    if seed is not None:
        scenario = scenario.set("seed", _quantity.count("seed", seed, 0, 2**64 - 1))
    if isinstance(policy, str):
        scenario, policy = scenario.set("scheduler.policy", policy), None
    axes: tuple[tuple[Any, ...], ...] | None = None
    rows: tuple[tuple[Any, ...], ...] | None = None
    if isinstance(points, Mapping):
        keys = tuple(points)
        axes = tuple(_axis(key, values) for key, values in points.items())
    else:
        listed = list(points)
        keys = tuple(listed[0]) if listed else ()
        for number, one in enumerate(listed):
            if set(one) != set(keys):
                raise ValueError(
                    f"point {number}: expected values for {', '.join(keys)}, found {', '.join(one)}"
                )
        rows = tuple(tuple(_toml.plain(one[key]) for key in keys) for one in listed)
        if not rows:
            raise ValueError("expected at least one point, found none")
    draft = Plan(scenario, "host", keys, axes, rows, replications)
    model = _check(draft)
    pickled, policy_key = (None, "") if policy is None else (_pickled(policy), _identity(policy))
    files = tuple(_files(scenario))
    return Plan(scenario, model, keys, axes, rows, replications, pickled, policy_key, files)


def _is_embedded(scenario: Scenario) -> bool:
    try:
        return scenario.model == "embedded"
    except ScenarioError:
        # The keys of a sweep may give what the scenario lacks, and what is wrong is said of its first point.
        return False


def _axis(key: str, values: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{key}: expected a list of values, found {values!r}")
    axis = tuple(_toml.plain(value) for value in values)
    if not axis:
        raise ValueError(f"{key}: expected at least one value, found none")
    return axis


def _check(draft: Plan) -> str:
    """Validate the first point, and each further value of each key beside the first values of the others."""
    scenario = draft.scenario
    if draft.rows is not None:
        settings = [draft.sets(number) for number in range(min(draft.count, 1000))]
    else:
        settings = [draft.sets(0)]
        steps = [
            math.prod(len(axis) for axis in (draft.axes or ())[at + 1 :]) for at in range(len(draft.keys))
        ]
        for axis, step in zip(draft.axes or (), steps):
            settings.extend(draft.sets(step * at) for at in range(1, min(len(axis), 1000)))
    at = _forebay.replaced(scenario.text, [*scenario.sets, *settings[0]], len(scenario.sets))
    if at is not None:
        key = draft.keys[at - len(scenario.sets)]
        raise ValueError(f"{key}: another key of the sweep sets the same and replaces it; give one of them")
    model = ""
    for sets in settings:
        read = _forebay.Model.parse(scenario.text, scenario.name, [*scenario.sets, *sets], scenario.directory)
        model = model or read.kind
    return model


@lru_cache(maxsize=64)
def check_files(directory: str, files: tuple[tuple[str, str], ...]) -> None:
    """Refuse to run where a file that the scenario names is absent or another one."""
    for name, digest in files:
        path = Path(directory) / name
        place = f"on {platform.node()}"
        if not path.is_file():
            raise RunError(f"{path} is absent {place}", hint="files must have the same path on all machines")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise RunError(f"{path} has another content {place}", hint="copy the file to all machines")


def _files(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The files that the text of a scenario names, with the digest of their content."""
    directory = Path(scenario.directory)
    # Quoted words of the text are the only places where a path can stand; most of them are no file.
    for word in sorted(set((scenario.text + "\n".join(scenario.sets)).replace("'", '"').split('"'))):
        if "\n" in word or len(word) > 255 or not word.strip():
            continue
        path = directory / word
        if path.is_file():
            yield word, hashlib.sha256(path.read_bytes()).hexdigest()


def _pickled(policy: Placement) -> bytes:
    """The policy for other processes; a class of the user's own module travels as a value."""
    try:
        import cloudpickle  # type: ignore[import-untyped,unused-ignore]
    except ModuleNotFoundError:
        return pickle.dumps(policy)
    module = sys.modules.get(type(policy).__module__)
    file = getattr(module, "__file__", None)
    own = module is not None and file is not None and "site-packages" not in Path(file).parts
    if own and not type(policy).__module__.startswith("forebay."):
        cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(policy))
        finally:
            cloudpickle.unregister_pickle_by_value(module)
    return bytes(cloudpickle.dumps(policy))


def _identity(policy: Placement) -> str:
    """What the choices of a policy depend on: its source and its attributes."""
    kind = type(policy)
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        source = hashlib.sha256(_pickled(policy)).hexdigest()
    return f"{kind.__qualname__}\n{source}\n{sorted(vars(policy).items(), key=lambda item: item[0])!r}"


Watch = Callable[[int, int], "bool | None"]
# Values of all keys that a task makes into text; of more it takes those that it needs.
_AXES_MAX = 2_000


def run(
    plan: Plan,
    first: int,
    last: int,
    emit: Callable[[str], object],
    watch: Watch | None = None,
    threads: int = 1,
) -> bool:
    """Run the points from `first` to before `last`.

    `emit` is called with the line of ``points.jsonl`` of each point, without its end, in their order and as
    soon as it is there. `watch` is called some times per second with points that are done and points in all;
    once it has returned False, the rest is left. Returns whether all points were run.
    """
    count = 0

    def add(_: int, line: str) -> None:
        nonlocal count
        count += 1
        emit(line)

    policy = None if plan.policy is None else pickle.loads(plan.policy)
    if plan.compiled:
        for axes, begin, end in _blocks(plan, first, last):
            before = count
            look = _per_point(plan, watch, before, last - first)
            _sweep(plan, axes).run(begin, end, threads, look, add, policy)
            if count - before < end - begin:
                return False
        return True
    for number in range(first, last):
        line = _line(plan, number, policy, watch)
        if line is None:
            return False
        add(number, line)
    return True


_Axes = list[tuple[str, list[str]]]


def _blocks(plan: Plan, first: int, last: int) -> Iterator[tuple[_Axes, int, int]]:
    """The points of a range as ranges of compiled sweeps, for which short axes are made of long ones."""

    def axes(values: Iterable[Iterable[Any]]) -> _Axes:
        return [(key, [_toml.setting(one) for one in some]) for key, some in zip(plan.keys, values)]

    if plan.axes is not None and sum(len(axis) for axis in plan.axes) <= _AXES_MAX:
        yield axes(plan.axes), first, last
        return
    # Points between which the last key alone changes; of a list each point alone.
    run = len(plan.axes[-1]) if plan.axes else 1
    while first < last:
        end = min(last, (first // run + 1) * run)
        fixed = [[value] for value in plan.values(first)]
        if plan.axes:
            fixed[-1] = list(plan.axes[-1][first % run : first % run + end - first])
        yield axes(fixed), 0, end - first
        first = end


def _sweep(plan: Plan, axes: _Axes) -> _forebay.Sweep:
    """The compiled sweep over these axes."""
    one = plan.scenario
    assert isinstance(plan.replications, int)
    return _forebay.Sweep(one.text, one.name, list(one.sets), one.directory, axes, plan.replications)


def _per_point(plan: Plan, watch: Watch | None, before: int, points: int) -> Watch | None:
    """The watch of all points from one of the runs of some; `before`: points that were done before these."""
    replications = plan.replications
    if watch is None or not isinstance(replications, int):
        return watch
    return lambda done, whole: watch(before + done // replications, points)


class _Stopped(Exception):
    """A run that its watch has ended: its figures are those of other packets."""


def _line(plan: Plan, number: int, policy: Placement | None, watch: Watch | None) -> str | None:
    """A point with as many runs as an `Until` requires, in the form of the compiled sweep; None if it was stopped."""
    try:
        return _json(_document(plan, number, policy, watch))
    except _Stopped:
        return None


def _document(plan: Plan, number: int, policy: Placement | None, watch: Watch | None) -> dict[str, Any]:
    one = plan.scenario
    sets = plan.sets(number)
    model = _forebay.Model.parse(one.text, one.name, [*one.sets, *sets], one.directory)
    scenario = Scenario._of(one.text, one.name, one.directory, (*one.sets, *sets))

    def once(replication: int) -> Run:
        # A policy may have a state, which must not pass from one run to the next.
        seed = (model.seed + replication) % 2**64
        ran = model.run("simulation", seed, False, copy.deepcopy(policy), watch)
        if ran.interrupted:
            raise _Stopped
        return Run(scenario, ran)

    document: dict[str, Any] = {"schema": 1, "model": plan.model, "seed": model.seed}
    document["sweep"] = {key: _toml.setting(value) for key, value in zip(plan.keys, plan.values(number))}
    until = plan.replications
    assert isinstance(until, Until)
    figure = until.figure or main_figure(plan.model)
    runs = sequential(once, lambda run: run[figure], until)
    converged = until.converged([run[figure] for run in runs])
    document["until"] = {"relative": until.relative, "figure": figure, "converged": converged}
    confidence = until.confidence
    rows = [flat(run.figures) for run in runs]
    estimates = {}
    for name in rows[0]:
        found = estimate([row[name] for row in rows if name in row], confidence)
        values = {"mean": found.mean, "half_width": found.half_width}
        estimates[name] = {word: None if math.isnan(value) else value for word, value in values.items()}
    return document | {"replications": len(runs), "confidence": confidence, "estimates": estimates}


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_REST = (
    "schema",
    "model",
    "seed",
    "notes",
    "resolved",
    "interrupted_after",
    "replications",
    "rules",
    "warnings",
)
_ONE: dict[str, str] = {"processors": "processor", "buses": "bus", "classes": "class"}


def flat(figures: Mapping[str, Any]) -> dict[str, float]:
    """Figures as ``points.jsonl`` names them: ``bus.load``, ``processor.card.0.packets``."""
    found: dict[str, float] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, one in value.items():
                name = _ONE.get(str(key)) or str(key)
                if path:
                    walk(f"{path}.{name}", one)
                elif key not in _REST:
                    walk(name, one)
        elif isinstance(value, list):
            for one in value:
                name = one.get("name", "?") if isinstance(one, Mapping) else "?"
                walk(f"{path}.{name}", one)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[path] = float(value)
        elif value is None:
            found[path] = math.nan

    walk("", figures)
    return found


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
