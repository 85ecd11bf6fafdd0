"""Runs ranges of points on Dask (dask.distributed): on processes of this machine, or on a cluster.

A task runs some points, as many as take about 0.15 s; while much is left, more, so that a large sweep is not
limited by the scheduler. Which worker runs which points changes nothing in their lines. A worker that is lost
takes with it the tasks that it had, and the scheduler gives them to others; workers that join get
tasks at once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay import _forebay
from forebay._parts import encode
from forebay._points import Plan, check_files, cores, run
from forebay.errors import Error, RunError

if TYPE_CHECKING:
    import distributed

__all__ = ["connect", "local_cluster"]

Client = Any
"""What ``client=`` takes: None, "local", "local:4", an address, a scheduler file, or an object of Dask."""

# Seconds that a task should take: long beside the millisecond that the scheduler spends on it.
_TASK_S = 0.15
_TASK_LEAST_S = 0.05
_TASK_MAX_S = 60.0
# CPU time of client and scheduler for a task, as `python/benches/sweep.py` measures it.
_TASK_COST_S = 0.008
# Tasks that each thread should still get while much is left: guided self-scheduling (Polychronopoulos and
# Kuck, IEEE Transactions on Computers C-36, 1987).
_SHARES = 4
# Tasks in flight per thread: one that runs and one that waits, so that no thread waits for the network.
_IN_FLIGHT = 2
_ASK_S = 0.5
_FIRST_WORKER_S = 60.0
_CONNECT_S = 30.0


@dataclass
class Result:
    """What a task gives back: points in their order, and the error that ended it, if one did."""

    first: int
    last: int
    lines: list[str] | None
    part: bytes | None
    seconds: float
    error: bytes | None = None
    trace: str = ""


class _Remote(Exception):
    """The traceback of another process, as text."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def task(plan: Plan, key: str, first: int, last: int, whole: bool, aim_s: float | None = None) -> Result:
    """Run the points of a task; `whole` gives them back as a part of a dataset, otherwise as lines.

    With `aim_s` it runs as many of them as take about so many seconds, and at least one.
    """
    if plan.version != _forebay.version:
        found = f"the worker {platform.node()} has Forebay {_forebay.version}, the client {plan.version}"
        raise RunError(found, hint="install the same version on all machines")
    check_files(plan.scenario.directory, plan.files)
    begun = time.perf_counter()
    lines: list[str] = []
    error, trace = None, ""
    try:
        if aim_s is not None and last - first > 1:
            run(plan, first, first + 1, lines.append)
            each = max(time.perf_counter() - begun, 1e-6)
            last = min(last, first + 1 + int(aim_s / each))
        run(plan, first + len(lines), last, lines.append)
    except Exception as caught:
        # An error ends the sweep, but not what this task has finished.
        trace = traceback.format_exc()
        try:
            error = pickle.dumps(caught)
        except Exception:
            error = pickle.dumps(RunError(f"{type(caught).__name__}: {caught}"))
    part = encode(plan, key, first, lines) if whole and lines else None
    seconds = time.perf_counter() - begun
    return Result(first, first + len(lines), None if whole else lines, part, seconds, error, trace)


def local_cluster(workers: int | None = None) -> Any:
    """Start worker processes on this machine, one for each core or as many as `workers`.

    The processes are started by a command line and not by multiprocessing, so that a script requires no
    ``if __name__ == "__main__"``. Close the cluster, or use it in a ``with`` statement.

    All connections are TLS with a key that was made for this cluster, in files that only this user reads: who else
    reaches the ports, another user of the machine for example, is refused.
    """
    distributed = _distributed()
    security, files = _credentials()
    import distributed.deploy.spec as spec
    from distributed.deploy.subprocess import SubprocessWorker

    count = workers or cores()
    options = {"host": "127.0.0.1", "protocol": "tls", "nthreads": 1, "dashboard": False, "death_timeout": 60}
    worker = {
        "cls": SubprocessWorker,
        "options": {"worker_class": "distributed.Nanny", "worker_kwargs": options},
    }
    # Any port that is free, that of the scheduler's status too.
    serving = {"host": "127.0.0.1", "protocol": "tls", "security": security, "port": 0, "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": distributed.Scheduler, "options": serving}
    with _environment(_settings(Path(files.name))):
        cluster: Any = spec.SpecCluster
        made = cluster(
            scheduler=scheduler,
            workers={number: worker for number in range(count)},
            worker=worker,
            security=security,
            name="forebay",
            silence_logs=40,
        )
    # A worker that is started anew reads them again: they go with the cluster.
    made.forebay_credentials = files
    return made


def _credentials() -> tuple[Any, tempfile.TemporaryDirectory[str]]:
    """Temporary credentials, and a directory of this user alone with their files.

    Workers are given the paths by their environment: what is on a command line is seen by every user.
    """
    import distributed.security

    try:
        made: Any = distributed.security.Security
        security = made.temporary()
    except ImportError:
        hint = "pip install cryptography"
        raise RunError("processes of this machine are connected by TLS, which requires cryptography", hint=hint) from None
    files = tempfile.TemporaryDirectory(prefix="forebay-")
    for name, text in (("key.pem", security.tls_worker_key), ("cert.pem", security.tls_worker_cert)):
        with open(os.open(Path(files.name) / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    return security, files


def _settings(directory: Path) -> dict[str, str]:
    """The environment of workers: their credentials, and that they log errors only."""
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    return {
        "DASK_LOGGING__DISTRIBUTED": os.environ.get("DASK_LOGGING__DISTRIBUTED", "error"),
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
        f"{tls}CA_FILE": str(directory / "cert.pem"),
        f"{tls}WORKER__KEY": str(directory / "key.pem"),
        f"{tls}WORKER__CERT": str(directory / "cert.pem"),
    }


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Processes that are started meanwhile have these settings."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _distributed() -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        raise RunError("client= requires dask.distributed", hint="pip install dask distributed cloudpickle cryptography") from None
    return distributed


@contextlib.contextmanager
def connect(client: Client) -> Iterator[distributed.Client]:
    """Connect to a cluster; what was not given as an object is closed at the end.

    Parameters
    ----------
    client : str, distributed.Client or cluster
        "local" or "local:4" starts processes on this machine; "tcp://host:8786" is the address of a
        scheduler (tls:// is authenticated and encrypted; of tcp:// there is a warning); another text is the path of a scheduler file; a client or cluster of Dask is used as it is.
    """
    distributed = _distributed()
    with contextlib.ExitStack() as stack:
        if isinstance(client, distributed.Client):
            yield client
            return
        target: Any = client
        if isinstance(client, str) and client.partition(":")[0] == "local":
            number = client.partition(":")[2]
            if number and not (number.isdigit() and int(number) > 0):
                raise ValueError(f'expected "local" or "local:4", found "{client}"')
            target = stack.enter_context(local_cluster(int(number) if number else None))
        options = {"set_as_default": False, "timeout": _CONNECT_S}
        if isinstance(target, str) and "://" not in target and os.path.exists(target):
            connected = distributed.Client(scheduler_file=target, **options)
        else:
            try:
                connected = distributed.Client(target, **options)
            except (OSError, TimeoutError, ValueError) as error:
                raise RunError(
                    f"cannot connect to the Dask scheduler at {target}: {error}",
                    hint="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
                ) from error
        given = isinstance(client, str) and target is client
        if given and connected.scheduler.address.startswith("tcp://"):
            warnings.warn(
                f"{connected.scheduler.address} is not authenticated: whoever reaches the scheduler or a worker runs code "
                "in them; start them with TLS and give a tls:// address (docs/clusters.md)",
                RuntimeWarning,
                stacklevel=2,
            )
        yield stack.enter_context(connected)


def execute(
    plan: Plan,
    ranges: list[tuple[int, int]],
    client: Any,
    deliver: Callable[[Result], None],
    watch: Callable[[int], None] = lambda done: None,
    *,
    key: str | None = None,
    parts: bool = False,
) -> None:
    """Run the points of some ranges on a cluster.

    Each result is passed to `deliver` as it comes, in any order; `watch` is called with the number of points
    that were delivered. An error of a point, or an interrupt, is raised after everything that is done was
    delivered.
    """
    distributed = _distributed()
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER_S)
    except TimeoutError:
        raise RunError(
            f"no worker at {client.scheduler.address} after {_FIRST_WORKER_S:.0f} s",
            hint="start workers with `dask worker ADDRESS`",
        ) from None
    key = key or plan.key()
    # A task, and not scattered data: the scheduler makes it again if the workers that hold it are lost.
    shared = client.submit(_same, plan, key=f"forebay-plan-{key}", pure=True)
    work = _Work(plan, list(ranges), _threads(client))
    flight: dict[Any, tuple[int, int]] = {}
    done, ask = 0, 0.0
    failed: Result | None = None
    finished = distributed.as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def fill() -> None:
        while len(flight) < work.wanted() and (span := work.take()):
            aim_s = None if work.point_s is not None else _TASK_S
            name = f"forebay-points-{key}-{span[0]}-{span[1]}-{'part' if parts else 'lines'}-{aim_s}"
            future = client.submit(task, shared, key, *span, parts, aim_s, key=name, pure=True)
            flight[future] = span
            finished.add(future)

    def receive(future: Any, result: Any) -> None:
        nonlocal done, failed
        last = flight.pop(future)[1]
        if future.status != "finished":
            raise _lost(future, result)
        if result.last > result.first:
            deliver(result)
            done += result.last - result.first
            work.took(result.last - result.first, result.seconds)
            watch(done)
        if result.error is not None:
            failed = failed or result
        elif result.last < last:
            work.give_back(result.last, last)

    try:
        fill()
        for future, result in finished:
            receive(future, result)
            if failed is not None:
                break
            # Asked for now and then only: it is a request to the scheduler.
            if time.monotonic() >= ask:
                work.threads, ask = _threads(client), time.monotonic() + _ASK_S
            fill()
    finally:
        for future in list(flight):
            if future.status == "finished":
                with contextlib.suppress(Exception):
                    receive(future, future.result())
        if flight:
            client.cancel(list(flight))
    if failed is not None and failed.error is not None:
        raise pickle.loads(failed.error) from _Remote(failed.trace)


def _same(plan: Plan) -> Plan:
    return plan


def _threads(client: Any) -> int:
    return max(1, int(sum(client.nthreads().values())))


def _lost(future: Any, result: Any) -> Exception:
    """What became of a task without a result: an error of Dask or of ours."""
    if isinstance(result, tuple) and len(result) == 3 and isinstance(result[1], Exception):
        result = result[1]
    if isinstance(result, Error):
        return result
    return RunError(
        f"the task {future.key} was lost: {type(result).__name__}: {result}",
        hint="look at the logs of scheduler and workers; the same call with out= goes on where it stopped",
    )


class _Work:
    """Divides ranges of points into tasks by how long points have taken so far."""

    def __init__(self, plan: Plan, ranges: list[tuple[int, int]], threads: int) -> None:
        self.ranges = ranges[::-1]
        self.left = sum(last - first for first, last in ranges)
        self.threads = threads
        self.point_s: float | None = None

    def wanted(self) -> int:
        """Number of tasks that should be in flight."""
        return _IN_FLIGHT * self.threads

    def took(self, points: int, seconds: float) -> None:
        """Learn how long some points took."""
        each = seconds / points
        # The mean of the past and this one: points of a sweep become slower or faster along an axis.
        self.point_s = each if self.point_s is None else 0.5 * (self.point_s + each)

    def give_back(self, first: int, last: int) -> None:
        """Take back points that a task has not run."""
        self.ranges.append((first, last))
        self.left += last - first

    def take(self) -> tuple[int, int] | None:
        """The range of the next task."""
        if not self.ranges:
            return None
        # Before the first result nothing is known of the time of a point: these tasks end by time.
        size = -(-self.left // self.wanted())
        if self.point_s is not None:
            # All threads together must not end more tasks than client and scheduler can handle.
            cost_s = self.threads * _TASK_COST_S
            share_s = self.left * self.point_s / (self.threads * _SHARES)
            aim_s = min(max(share_s, _TASK_S, cost_s), _TASK_MAX_S)
            # At the end every thread gets the same, even if its task is short then.
            point_s = max(self.point_s, 1e-6)
            size = min(int(aim_s / point_s), -(-self.left // self.threads))
            size = max(size, int(max(_TASK_LEAST_S, 0.5 * cost_s) / point_s))
        first, last = self.ranges.pop()
        middle = min(last, first + max(size, 1))
        if middle < last:
            self.ranges.append((middle, last))
        self.left -= middle - first
        return first, middle
