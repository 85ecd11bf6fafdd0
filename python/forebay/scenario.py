"""Scenarios: read, changed, and run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from forebay import _forebay, _quantity, _toml
from forebay._progress import Progress, Watch
from forebay._sequential import simulate_until
from forebay.errors import Interrupted, PolicyError, RunError, ScenarioError
from forebay.run import Replications, Run
from forebay.stats import Until

if TYPE_CHECKING:
    from forebay.placement import Placement

__all__ = ["Scenario", "highest_rate"]

Way = Literal["simulation", "solution", "closed-form"]


class Scenario:
    """A scenario of any model: ``"host"``, ``"pipeline"``, ``"inline-card"`` or ``"embedded"``.

    A scenario does not change: :meth:`set` returns another one. Two scenarios are equal if they have the same text,
    settings and directory. It can be pickled: its text and settings travel, the files that it names do not.

    Parameters
    ----------
    source : str, os.PathLike or mapping
        A file (TOML), or its content as a dictionary with the keys of the scenario reference.
    directory : str or os.PathLike, optional
        Where the files that a dictionary names lie, such as a trace; by default the current directory.
    set : mapping of str to values, optional
        Values of keys in place of those of the source, or that it lacks, as `Scenario.set` takes them; None removes a key.

    Raises
    ------
    ScenarioError
        With everything that is wrong with the scenario.

    Examples
    --------
    >>> host = Scenario("host.toml").set("processor.card.count", 4)     # doctest: +SKIP
    >>> host.simulate(seed=1)["throughput_bps"]                         # doctest: +SKIP
    """

    __slots__ = ("_directory", "_model", "_name", "_sets", "_text")

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any],
        directory: str | os.PathLike[str] | None = None,
        set: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(source, Mapping):
            text, name = _toml.document(source), "<dict>"
            place = Path(directory if directory is not None else ".")
        else:
            path = Path(source)
            text, name = _forebay.read_scenario(str(path)), str(path)
            place = path.parent
        sets = tuple(_setting(key, value) for key, value in (set or {}).items())
        self._fill(text, name, str(place.resolve()), sets)
        self._native()

    def _fill(self, text: str, name: str, directory: str, sets: tuple[str, ...]) -> None:
        self._text = text
        self._name = name
        self._directory = directory
        self._sets = sets
        self._model: _forebay.Model | None = None

    @classmethod
    def _of(cls, text: str, name: str, directory: str, sets: tuple[str, ...]) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._fill(text, name, directory, sets)
        return scenario

    @classmethod
    def parse(cls, text: str, name: str = "<text>", directory: str | os.PathLike[str] = ".") -> Scenario:
        """Read a scenario from text.

        Parameters
        ----------
        text : str
            The scenario as TOML.
        name : str
            Its name in errors.
        directory : str or os.PathLike
            Where the files that it names lie.
        """
        scenario = cls._of(text, name, str(Path(directory).resolve()), ())
        scenario._native()
        return scenario

    def set(self, key: str, value: Any) -> Scenario:
        """A copy with another value of a key.

        It is validated when it is used, so that keys that depend on each other can be set one after the other.

        Parameters
        ----------
        key : str
            The path of the key; in a list a step is a name or a number from 0: ``"processor.card.count"``.
        value : int, float, bool, str, list, dict or None
            A bare number is in SI base units; text may carry its unit, ``"200 Mbit/s"``. None removes the key, or the
            element of a list.
        """
        return self._of(self._text, self._name, self._directory, (*self._sets, _setting(key, value)))

    def _native(self) -> _forebay.Model:
        if self._model is None:
            self._model = _forebay.Model.parse(self._text, self._name, list(self._sets), self._directory)
        return self._model

    @property
    def name(self) -> str:
        """The file, or the name that was given to the text."""
        return self._name

    @property
    def directory(self) -> str:
        """The directory to which the paths in the scenario are relative."""
        return self._directory

    @property
    def text(self) -> str:
        """The text of the file, without the settings."""
        return self._text

    @property
    def sets(self) -> tuple[str, ...]:
        """The settings, ``key=value``, in their order."""
        return self._sets

    @property
    def model(self) -> str:
        """The model: ``"host"``, ``"pipeline"``, ``"inline-card"`` or ``"embedded"``."""
        return self._native().kind

    @property
    def seed(self) -> int:
        """The seed of the scenario; 0 if nothing is drawn."""
        return self._native().seed

    @property
    def resolved(self) -> dict[str, Any]:
        """The scenario with every default filled in, in the form of the file."""
        resolved: dict[str, Any] = json.loads(self._native().resolved_json())
        return resolved

    @property
    def toml(self) -> str:
        """The scenario with every default filled in, as TOML."""
        return self._native().resolved()

    def keys(self) -> list[str]:
        """The paths of all keys that have a value, as :meth:`set` takes them."""
        return list(_paths(self.resolved, ""))

    # A literal 1 is also an int: the first form that fits is taken, and is right.
    @overload
    def simulate(  # type: ignore[overload-overlap]
        self,
        seed: int | None = None,
        replications: Literal[1] = 1,
        policy: Placement | str | None = None,
        packets: bool = False,
        progress: Watch | bool | None = None,
        threads: int | None = None,
    ) -> Run: ...

    @overload
    def simulate(
        self,
        seed: int | None,
        replications: int | str | Until,
        policy: Placement | str | None = None,
        packets: bool = False,
        progress: Watch | bool | None = None,
        threads: int | None = None,
    ) -> Replications: ...

    @overload
    def simulate(
        self,
        seed: int | None = None,
        *,
        replications: int | str | Until,
        policy: Placement | str | None = None,
        packets: bool = False,
        progress: Watch | bool | None = None,
        threads: int | None = None,
    ) -> Replications: ...

    def simulate(
        self,
        seed: int | None = None,
        replications: int | str | Until = 1,
        policy: Placement | str | None = None,
        packets: bool = False,
        progress: Watch | bool | None = None,
        threads: int | None = None,
    ) -> Run | Replications:
        """Simulate the scenario in virtual time.

        Parameters
        ----------
        seed : int, optional
            The seed of the first run in place of the scenario's; not of an embedded core, which draws nothing.
        replications : int, str or Until
            Number of runs, with the seeds s, s + 1, ...; 1 of an embedded core; or ``"until 1 %"``: as many as are required for a 95 %
            confidence interval of the throughput within 1 % of its mean; ``"until 2 % of total_latency.p99_s"``.
        policy : Placement or str, optional
            How jobs are placed (host model): an object, or a word of the key ``scheduler.policy``.
        packets : bool
            Whether to keep every packet (host model, 34 bytes per packet): :attr:`Run.packets`.
        progress : callable or bool, optional
            Called some times per second with what is done and the whole; if it returns False, the run ends there.
            By default a bar on a terminal's stderr after two seconds; False: none.
        threads : int, optional
            Threads for several runs, by default one per core. Their number changes no figure.

        Returns
        -------
        Run or Replications
            A :class:`Run` if ``replications`` is 1.

        Raises
        ------
        Interrupted
            By Ctrl-C; its ``partial`` has what was done until then.
        PolicyError
            If the policy raises or chooses something that is no candidate.
        """
        scenario, chosen = self._with_policy(policy)
        if seed is not None:
            seed = _quantity.count("seed", seed, 0, 2**64 - 1)
        if threads is not None:
            threads = _quantity.count("threads", threads, 0)
        if packets and self.model != "host":
            raise ScenarioError(
                f"{self.name}: packets=True has no effect in the model {self.model}",
                hint="leave it out" + ("; a pipeline has a time series with `series`" * (self.model == "pipeline")),
            )
        if isinstance(replications, str):
            replications = Until.parse(replications)
        if self.model == "embedded" and (seed is not None or replications != 1):
            raise RunError(
                f"{self.name}: firmware on a core draws no random numbers", hint="leave out seed= and replications="
            )
        if isinstance(replications, Until):
            return simulate_until(scenario, replications, seed, chosen, packets, progress, threads)
        replications = _quantity.count("replications", replications, 1)
        if replications == 1:
            return scenario._run("simulation", seed, chosen, packets, progress)
        return scenario._replicate(seed, replications, chosen, packets, progress, threads)

    def _with_policy(self, policy: Placement | str | None) -> tuple[Scenario, Placement | None]:
        if isinstance(policy, str):
            return self.set("scheduler.policy", policy), None
        if policy is not None and not callable(getattr(policy, "choose", None)):
            found = type(policy).__qualname__
            raise PolicyError(
                f"a policy has a method choose(self, job, candidates); {found} has none",
                hint="derive a class from forebay.Placement, and pass an object of it",
            )
        return self, policy

    def solve(
        self,
        memory: int | str | None = None,
        cycles: int | None = None,
        progress: Watch | bool | None = None,
    ) -> Run:
        """Solve the Markov chain of a pipeline, or compute the limits of an inline card, without simulation.

        Parameters
        ----------
        memory : int or str, optional
            Maximum memory for the chain: MiB as ``--memory`` of the command has them, or text with its unit, ``"2 GiB"``;
            by default 4,096 MiB.
        cycles : int, optional
            Maximum number of iterations for the chain, by default 500.
        progress : callable or bool, optional
            As for :meth:`simulate`.
        """
        limits = {"memory": memory, "cycles": cycles}
        given = [name for name, value in limits.items() if value is not None]
        if given and self.model == "inline-card":
            raise RunError(
                f"{self.name}: an inline card is solved for its limits, without iterations",
                hint=f"leave out {' and '.join(f'{name}=' for name in given)}",
            )
        mib = 4096 if memory is None else _mebibytes(memory)
        count = 500 if cycles is None else _quantity.count("cycles", cycles, 1, 2**32 - 1)
        return self._run("solution", None, None, False, progress, (mib, count))

    def closed_form(self) -> Run:
        """Solve a pipeline in closed form, as though buffers were unlimited."""
        return self._run("closed-form", None, None, False, None)

    def _run(
        self,
        way: Way,
        seed: int | None,
        policy: Placement | None,
        packets: bool,
        progress: Watch | bool | None,
        limits: tuple[int, int] = (4096, 500),
    ) -> Run:
        with Progress(progress, "simulating" if way == "simulation" else "solving") as watch:
            ran = self._native().run(way, seed, packets, policy, watch, 1, *limits)
        run = Run(self, ran)
        if ran.interrupted:
            raise Interrupted(f"interrupted after {ran.cut} packets", run)
        return run

    def _replicate(
        self,
        seed: int | None,
        replications: int,
        policy: Placement | None,
        packets: bool,
        progress: Watch | bool | None,
        threads: int | None,
    ) -> Replications:
        first = self.seed if seed is None else seed
        threads = threads or os.cpu_count() or 1
        with Progress(progress, "simulating") as watch:
            all_ran, interrupted = self._native().replicate(
                first, replications, threads, packets, policy, watch
            )
        runs = Replications(self, [Run(self, ran) for ran in all_ran])
        if interrupted:
            raise Interrupted(f"interrupted: {len(runs)} of {replications} runs are complete", runs)
        return runs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[str, str, tuple[str, ...]]:
        return self._text, self._directory, self._sets

    def __reduce__(self) -> tuple[Any, ...]:
        return Scenario._of, (self._text, self._name, self._directory, self._sets)

    def __repr__(self) -> str:
        sets = "".join(f", {one}" for one in self._sets)
        return f"<forebay.Scenario {self._name}{sets}>"

    def _repr_html_(self) -> str:
        from html import escape

        sets = "".join(f"<br><code>{escape(one)}</code>" for one in self._sets)
        return (
            f"<details><summary><b>{escape(self._name)}</b> (model {escape(self.model)}){sets}</summary>"
            f"<pre>{escape(self.toml)}</pre></details>"
        )


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _paths(one, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        for number, one in enumerate(value):
            yield from _paths(one, f"{path}.{one.get('name', number)}")
    elif value is not None:
        yield path


def _setting(key: str, value: Any) -> str:
    """A setting as `--set` takes it."""
    if not isinstance(key, str):
        raise TypeError(f"a key is text, such as \"traffic.rate\"; found {key!r}")
    return f"{key}={_toml.setting(value)}"


def _mebibytes(memory: int | str) -> int:
    found = _quantity.number(memory)
    if isinstance(memory, str) and found is not None and found[1] == "bytes":
        found = (found[0] / 2**20, "")
    if found is None or found[1] or not 0 < found[0] < 2**44:
        raise ValueError(f'memory is {memory!r}; expected a number of MiB above 0, or text such as "2 GiB"')
    return max(1, int(found[0]))


Source = Scenario | str | os.PathLike[str] | Mapping[str, Any]


def taken(source: Source) -> Scenario:
    """A scenario, or that of a file or of a dictionary."""
    return source if isinstance(source, Scenario) else Scenario(source)


def highest_rate(
    scenario: Source,
    loss: float | str = 0.0,
    latency: float | str | None = None,
    progress: Watch | bool | None = None,
) -> Run | None:
    """Find the throughput (RFC 2544 26.1): the highest rate of traffic that a host carries within bounds.

    Parameters
    ----------
    scenario : Scenario, str, os.PathLike or mapping
        Of the host model; ``traffic.rate`` is searched for, to one part in 1,000.
    loss : float or str
        Maximum ratio of lost packets, from 0 to 1; ``"1 %"`` is 0.01.
    latency : float or str, optional
        Maximum 99 % quantile of the total latency, in seconds or as text, ``"500 us"``.
    progress : callable or bool, optional
        As for :meth:`Scenario.simulate`; called with the share done in thousandths and 1,000.

    Returns
    -------
    Run or None
        The run at that rate, whose figures also have ``highest_rate_bps``, ``above_bps``, ``bounds`` and
        ``complete``; None if the bounds are exceeded even at 100 kbit/s.
    """
    scenario = taken(scenario)
    loss = _quantity.share("loss", loss)
    if not 0 <= loss <= 1:
        raise ValueError(f"loss is {loss}; expected a ratio from 0 to 1")
    if latency is not None:
        latency = _quantity.seconds("latency", latency)
    with Progress(progress, "searching") as watch:
        ran = _forebay.highest_rate(scenario._native(), loss, latency, watch)
    if ran is None:
        return None
    run = Run(scenario, ran)
    if ran.interrupted:
        raise Interrupted("interrupted: the highest rate is at least that of `partial`", run)
    return run
