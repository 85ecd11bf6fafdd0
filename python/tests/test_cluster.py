"""Sweeps on a Dask cluster of processes on loopback: the same bytes, whatever becomes of the workers.

Only processes that a test has started are ended, by their own handles.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from forebay import _points
from forebay import cluster as cluster_module
from test_sweep import HOST, SWEEPS, command, wait_for

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

AXES = {
    "processor.cpu.alpha": [1, 2.5, 10],
    "traffic.rate": ["200 Mbit/s", "1 Gbit/s"],
    "seed": list(range(20)),
}


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        # A test that hangs ends with the error of a lost cluster.
        self.limit = threading.Timer(500, self.close)
        self.limit.start()
        self.workers: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file))
        wait_for(lambda: self.file.exists() and self.file.stat().st_size > 0)
        # The process leads no group of ours; its address is in the file that it has written.
        import json

        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, what: str, *arguments: str) -> "subprocess.Popen[bytes]":
        line = [sys.executable, "-m", "dask", what, "--no-dashboard", *arguments]
        log = open(self.folder / f"{what}.log", "ab")
        process = subprocess.Popen(line, stdout=log, stderr=log, cwd=self.folder)
        log.close()
        self.processes.append(process)
        return process

    def add(self) -> None:
        """Start one more worker, without waiting for it."""
        options = [
            "--host",
            "127.0.0.1",
            "--nthreads",
            "1",
            "--no-nanny",
            "--local-directory",
            str(self.folder),
        ]
        self.workers.append(self._start("worker", self.address, *options))

    def kill(self) -> None:
        """End the oldest worker as a crash would."""
        self.workers.pop(0).kill()

    def close(self) -> None:
        self.limit.cancel()
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture()
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture()
def host(tmp_path: Path) -> fb.Scenario:
    (tmp_path / "host.toml").write_text(HOST.replace("packets = 2000", "packets = 60_000"))
    return fb.Scenario(tmp_path / "host.toml")


def test_the_bytes_are_those_of_the_command_with_any_workers(
    host: fb.Scenario, cluster: Cluster, tmp_path: Path
) -> None:
    seeds = ["--sweep", "seed=" + ",".join(str(seed) for seed in AXES["seed"])]
    command(tmp_path, "simulate", "host.toml", *SWEEPS, *seeds, "--out", "command")
    expected = (tmp_path / "command/points.jsonl").read_bytes()

    def swept(name: str, begun: Callable[[], None] = lambda: None) -> bytes:
        """The file of a sweep; `begun` is called once, after the first result."""
        calls = [begun]

        def progress(done: int, whole: int) -> bool:
            if calls:
                assert done < whole
                calls.pop()()
            return True

        table = fb.sweep(host, AXES, client=cluster.address, out=tmp_path / name, progress=progress)
        assert table.complete and not calls
        return (tmp_path / name / "points.jsonl").read_bytes()

    fb.sweep(host, AXES, out=tmp_path / "alone")
    assert (tmp_path / "alone/points.jsonl").read_bytes() == expected
    cluster.add()
    assert swept("one") == expected
    # The second joins while the sweep runs.
    assert swept("two", cluster.add) == expected
    cluster.add()
    cluster.add()
    with distributed.Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(4, timeout=120)
    assert swept("four", cluster.kill) == expected
    # Lines without a folder, and replications.
    table = fb.sweep(host, {"seed": [1, 2]}, replications=3, client=cluster.address)
    assert table.lines == fb.sweep(host, {"seed": [1, 2]}, replications=3).lines


def test_a_sweep_that_loses_its_cluster_keeps_its_points_and_goes_on_elsewhere(
    host: fb.Scenario, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add()
    axes = {"seed": list(range(30))}

    def stop(done: int, whole: int) -> bool:
        return done < 3

    with pytest.raises(fb.Interrupted) as caught:
        fb.sweep(host, axes, client=cluster.address, out=tmp_path / "out", progress=stop)
    table = caught.value.partial
    assert 3 <= len(table) < 30 and not table.complete
    assert (tmp_path / "out/points.jsonl").read_text().splitlines() == table.lines
    cluster.close()
    whole = fb.sweep(host, axes, out=tmp_path / "out")
    assert whole.complete and whole.lines == fb.sweep(host, axes).lines


def test_a_file_that_is_another_one_on_a_worker_is_refused(
    host: fb.Scenario, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add()
    (tmp_path / "sizes.csv").write_text("size\n" + "100\n" * 50)
    traced = tmp_path / "traced.toml"
    traced.write_text(HOST.replace('source = "paper"\npackets = 2000', 'source = "file"\npath = "sizes.csv"'))
    plan = _points.plan(fb.Scenario(traced), {"bus.width": [4, 8]})
    assert [name for name, _ in plan.files] == ["sizes.csv"]
    key = plan.key()
    (tmp_path / "sizes.csv").write_text("size\n" + "200\n" * 50)
    assert _points.plan(fb.Scenario(traced), {"bus.width": [4, 8]}).key() != key
    with pytest.raises(fb.RunError, match="another content"):
        sys.modules["forebay.sweep"].collect(plan, client=cluster.address)


class OfThisFile(fb.Placement):
    """A class that no worker can import: this file is no module of theirs."""

    def choose(self, job, candidates):  # type: ignore[no-untyped-def]
        return candidates[-1]


def test_a_policy_of_the_users_own_module_travels_to_the_workers(host: fb.Scenario, cluster: Cluster) -> None:
    cluster.add()
    few = host.set("traffic.packets", 500)
    table = fb.sweep(few, {"seed": [1, 2, 3]}, policy=OfThisFile(), client=cluster.address)
    assert [row["cpu.packets"] for row in table] == [
        few.simulate(seed=seed, policy=OfThisFile())["cpu.packets"] for seed in (1, 2, 3)
    ]


def test_a_cluster_without_workers_and_no_cluster_are_errors(
    host: fb.Scenario, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fb.cluster, "_FIRST_WORKER_S", 0.5)
    with pytest.raises(fb.RunError, match="dask worker"):
        fb.sweep(host, {"seed": [1, 2]}, client=cluster.address)
    monkeypatch.setattr(fb.cluster, "_CONNECT_S", 1)
    with pytest.raises(fb.RunError, match="dask scheduler"):
        fb.sweep(host, {"seed": [1, 2]}, client="tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="local:4"):
        fb.sweep(host, {"seed": [1, 2]}, client="local:many")


def test_tasks_are_longer_than_the_scheduler_needs_for_them() -> None:
    plan = _points.Plan.__new__(_points.Plan)
    work = cluster_module._Work(plan, [(0, 100_000)], threads=10)
    assert work.take() == (0, 5000)
    work.took(150, 0.15)
    work.give_back(150, 5000)
    sizes = []
    while (span := work.take()) is not None:
        sizes.append(span[1] - span[0])
        work.took(sizes[-1], 0.001 * sizes[-1])
    # 1 ms a point: 0.15 s or more, but for the last ones, which are divided among all threads.
    assert sum(sizes) == 99_850 and sizes[0] > 2000
    assert all(size >= 149 for size in sizes[:-60])
    assert len(sizes) < 10 * 40


def test_tasks_do_not_outlive_a_minute() -> None:
    work = cluster_module._Work(_points.Plan.__new__(_points.Plan), [(0, 10_000_000)], threads=100)
    work.took(1, 0.5)
    assert work.take() == (0, 120)
    begun = time.perf_counter()
    assert work.take() == (120, 240) and time.perf_counter() - begun < 60


def test_processes_of_this_machine_take_no_one_without_their_key(host: fb.Scenario) -> None:
    pytest.importorskip("cryptography")
    from distributed.security import Security

    from forebay.cluster import local_cluster

    with local_cluster(1) as local, distributed.Client(local, set_as_default=False) as own:
        own.wait_for_workers(1, timeout=60)
        nannies = [one["nanny"] for one in own.scheduler_info()["workers"].values()]
        addresses = [local.scheduler_address, *own.scheduler_info()["workers"], *nannies]
        assert len(addresses) == 3 and all(one.startswith("tls://127.0.0.1:") for one in addresses)

        async def call(address: str, security: Any) -> Any:
            arguments = security.get_connection_args("client") if security else {}
            async with distributed.rpc(address, timeout=5, connection_args=arguments) as remote:
                return await remote.identity()

        for address in addresses:
            assert own.sync(call, address, local.security)["type"]
            # Another key, and no key at all.
            for security, scheme in ((Security.temporary(), "tls"), (None, "tcp")):
                with pytest.raises(OSError):
                    own.sync(call, address.replace("tls:", f"{scheme}:"), security)
        folder = Path(local.forebay_credentials.name)
        assert folder.stat().st_mode & 0o77 == 0
        assert all(file.stat().st_mode & 0o77 == 0 for file in folder.iterdir())
        # What every user of the machine sees of a process has no key in it.
        key = (folder / "key.pem").read_text().splitlines()[1]
        lines = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
        assert lines and not any(key.encode() in line for line in lines)
    assert not [name for name in os.environ if name.startswith("DASK_DISTRIBUTED__COMM__TLS")]
    axes = {"traffic.packets": [100, 200, 300]}
    assert fb.sweep(host, axes, client="local:1").lines == fb.sweep(host, axes).lines


def test_an_address_without_tls_is_warned_of(host: fb.Scenario, cluster: Cluster) -> None:
    cluster.add()
    with pytest.warns(RuntimeWarning, match="tcp://.* is not authenticated"):
        fb.sweep(host, {"traffic.packets": [100]}, client=cluster.address)
