"""Sweeps: many points of a scenario on this machine's cores or on a cluster."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

from forebay import cluster
from forebay._parts import Parts, encode
from forebay._points import Plan, cores, plan, run
from forebay._progress import Progress
from forebay.errors import Error, Interrupted
from forebay.placement import Placement
from forebay.scenario import Source, taken
from forebay.stats import Until
from forebay.table import Table

__all__ = ["sweep"]

# Seconds of runs between two parts: what a crash may lose.
_PART_S = 1.0


def sweep(
    scenario: Source,
    points: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    replications: int | str | Until = 1,
    policy: Placement | str | None = None,
    seed: int | None = None,
    client: cluster.Client = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], bool | None] | bool | None = None,
) -> Table:
    """Run a scenario at many points.

    Parameters
    ----------
    scenario : Scenario
        The scenario, of any model.
    points : mapping of str to values, or list of mappings
        Values of each key, of which every combination is a point and the last key changes fastest; or the
        points themselves, each with a value for the same keys. Text may carry its unit, as in a scenario.
    replications : int, str or Until, default 1
        Runs of each point with the seeds s, s + 1, ...; or "until 1 %" (of the throughput), "until 2 % of
        total_latency.p99_s", or an `Until` with limits: as many as a 95 % confidence interval of that half
        width relative to the mean requires.
    policy : Placement, str or None
        How jobs are placed, an object or the name of a policy. Each run has its own copy of the object.
    seed : int, optional
        The seed of the first run in place of the scenario's. All points see the same random numbers.
    client : None, "local", "local:4", address, dask.distributed.Client or cluster
        Where the points run. None: on the cores of this machine, by the compiled pool; a policy in Python
        runs in one process for each core, if dask.distributed is installed. Otherwise see
        `forebay.cluster.connect`.
    out : path, optional
        Folder of the results, to which finished points are written as they come. The same call with the same
        folder goes on where the last one stopped; with more or other values of the same keys, points that are
        there are kept, and with other replications all points are run again. One sweep at a time can have a
        folder. pyarrow is required.
    threads : int, optional
        Threads with client=None; by default one for each core.
    progress : callable or bool, optional
        Called with the points that are done and their number; False breaks the sweep off. By default a bar on
        a terminal's stderr after two seconds; False: none.

    Returns
    -------
    Table
        One row for each point. The lines of ``points.jsonl`` are the same bytes whatever the client and the
        number of workers, and those of ``forebay simulate --sweep``.

    Raises
    ------
    Interrupted
        By Ctrl-C; its ``partial`` is the table of the points that were done.
    PolicyError, RunError
        The first error of a point. Its ``partial`` is the table of the points that were done.
    ScenarioError
        If a value is wrong; found before the first run.

    Examples
    --------
    >>> table = fb.sweep(host, {"processor.cpu.alpha": [1, 10, 100]}, replications=5)    # doctest: +SKIP
    """
    made = plan(taken(scenario), points, replications, policy, seed)
    return collect(made, client=client, out=out, threads=threads, progress=progress)


def collect(
    made: Plan,
    *,
    client: cluster.Client = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], bool | None] | bool | None = None,
) -> Table:
    """Run the points of a plan that are not in the folder yet, and give back all."""
    parts = Parts(out, made) if out is not None else None
    try:
        return _collect(made, _Results(made, parts), client, out, threads, progress)
    finally:
        if parts is not None:
            parts.close()


def _collect(
    made: Plan,
    results: _Results,
    client: cluster.Client,
    out: str | os.PathLike[str] | None,
    threads: int | None,
    progress: Callable[[int, int], bool | None] | bool | None,
) -> Table:
    before = made.count - sum(last - first for first, last in results.missing())
    try:
        with Progress(progress, "sweep") as show:

            def watch(done: int) -> None:
                if show is not None and show(before + done, made.count) is False:
                    raise KeyboardInterrupt

            if results.missing():
                _run(made, results, client, threads, watch)
    except KeyboardInterrupt:
        table = results.table()
        kept = "" if out is None else "; the same call goes on from there"
        raise Interrupted(
            f"interrupted: {len(table)} of {made.count} points are complete{kept}", table
        ) from None
    except Error as error:
        error.partial = results.table()
        raise
    return results.table()


def _run(
    made: Plan, results: _Results, client: cluster.Client, threads: int | None, watch: Callable[[int], None]
) -> None:
    with parallel(made, client, threads) as connected:
        if connected is None:
            run_here = _pool if made.compiled and made.axes is not None else _threads
            run_here(made, results, threads or cores(), watch)
            return
        cluster.execute(
            made,
            results.missing(),
            connected,
            results.result,
            watch,
            key=results.key,
            parts=results.parts is not None,
        )


@contextlib.contextmanager
def parallel(made: Plan, client: cluster.Client, threads: int | None = None) -> Iterator[Any]:
    """Connect to where the points of a plan run: a client of Dask; None for threads of this process."""
    if client is None and made.policy is not None and made.count > 1 and _has_dask():
        # Threads would run one after the other: a policy in Python holds the interpreter's lock.
        client = f"local:{min(threads or cores(), made.count)}"
    if client is None:
        yield None
        return
    with cluster.connect(client) as connected:
        yield connected


def _has_dask() -> bool:
    try:
        import cryptography  # noqa: F401
        import distributed  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


class _Results:
    """Where lines go: to the parts of a folder, or into memory."""

    def __init__(self, made: Plan, parts: Parts | None) -> None:
        self.plan = made
        self.parts = parts
        self.key = parts.key if parts is not None else made.key()
        self._lines: dict[int, str] = {}
        self._written = time.monotonic()

    def missing(self) -> list[tuple[int, int]]:
        return self.parts.missing() if self.parts is not None else [(0, self.plan.count)]

    def add(self, first: int, lines: list[str]) -> None:
        self._lines.update(enumerate(lines, first))
        if time.monotonic() - self._written > _PART_S:
            self.flush()

    def flush(self) -> None:
        """Write the lines to parts, one for each range without a gap."""
        if self.parts is None:
            return
        begin = None
        for number in sorted(self._lines):
            begin = number if begin is None else begin
            if number + 1 not in self._lines:
                lines = [self._lines[one] for one in range(begin, number + 1)]
                self.parts.write(begin, number + 1, encode(self.plan, self.key, begin, lines))
                begin = None
        self._lines.clear()
        self._written = time.monotonic()

    def result(self, result: cluster.Result) -> None:
        if result.part is not None and self.parts is not None:
            self.parts.write(result.first, result.last, result.part)
        else:
            self.add(result.first, result.lines or [])

    def table(self) -> Table:
        self.flush()
        if self.parts is not None:
            self.parts.finish()
        return Table(self.plan, self._lines, self.parts)


def _pool(made: Plan, results: _Results, threads: int, watch: Callable[[int], None]) -> None:
    """Run ranges by the compiled pool, each as long as a part should take."""
    before, size = 0, 4 * threads
    for first, end in results.missing():
        while first < end:
            begun = time.perf_counter()
            last = min(end, first + size)
            lines: list[str] = []

            def look(done: int, whole: int, base: int = before) -> bool:
                watch(base + done)
                return True

            try:
                run(made, first, last, lines.append, look, threads)
            finally:
                # By an interrupt or an error, too, what is done is kept.
                results.add(first, lines)
            before += last - first
            watch(before)
            took = max(time.perf_counter() - begun, 1e-3)
            size = max(threads, min(int((last - first) * _PART_S / took) + 1, 8 * (last - first)))
            first = last


def _threads(made: Plan, results: _Results, threads: int, watch: Callable[[int], None]) -> None:
    """Run single points on threads; a run leaves the interpreter's lock to the others."""
    numbers = [number for first, last in results.missing() for number in range(first, last)]
    if made.policy is not None:
        threads = 1
    waiting = iter(numbers)
    done = 0
    stopped = False

    def one_point(number: int) -> list[str]:
        lines: list[str] = []
        run(made, number, number + 1, lines.append, lambda done, whole: not stopped)
        return lines

    with ThreadPoolExecutor(threads) as pool:

        def begin() -> None:
            number = next(waiting, None)
            if number is not None:
                flight[pool.submit(one_point, number)] = number

        flight: dict[Any, int] = {}
        for _ in range(2 * threads):
            begin()
        try:
            while flight:
                ready, _ = wait(flight, timeout=0.1, return_when=FIRST_COMPLETED)
                for one in ready:
                    number = flight.pop(one)
                    results.add(number, one.result())
                    done += 1
                    begin()
                watch(done)
        finally:
            stopped = True
            for one, number in list(flight.items()):
                if not one.cancel() and one.exception() is None:
                    results.add(number, one.result())
