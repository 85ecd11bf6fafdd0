"""Sweeps on one machine: the command's bytes, folders that are resumed, interrupts, errors."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from forebay.stats import Until

HOST = """
model = "host"
seed = 7
[traffic]
source = "paper"
packets = 2000
rate = "1 Gbit/s"
overhead = 40
[[processor]]
name = "cpu"
kind = "cpu"
init = "1 us"
throughput = "110 Mbit/s"
throughput_size = 640
[[processor]]
name = "card"
kind = "accelerator"
count = 2
init = "1 us"
block = "440 ns"
"""
AXES = {"processor.cpu.alpha": [1, 2.5, 10], "traffic.rate": ["200 Mbit/s", "1 Gbit/s"]}
SWEEPS = ["--sweep", "processor.cpu.alpha=1,2.5,10", "--sweep", "traffic.rate=200 Mbit/s,1 Gbit/s"]


@pytest.fixture()
def host(tmp_path: Path) -> fb.Scenario:
    path = tmp_path / "host.toml"
    path.write_text(HOST)
    return fb.Scenario(path)


def command(folder: Path, *arguments: str) -> None:
    """Run the command of the package in a process of its own."""
    line = [sys.executable, "-m", "forebay", *arguments]
    subprocess.run(line, cwd=folder, check=True, capture_output=True)


def has_pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


needs_pyarrow = pytest.mark.skipif(not has_pyarrow(), reason="requires pyarrow")


@pytest.mark.parametrize("replications", [1, 4])
def test_points_are_the_bytes_of_the_command(host: fb.Scenario, tmp_path: Path, replications: int) -> None:
    command(
        tmp_path, "simulate", "host.toml", *SWEEPS, "--replications", str(replications), "--out", "command"
    )
    expected = (tmp_path / "command/points.jsonl").read_bytes()
    table = fb.sweep(host, AXES, replications=replications, threads=2)
    table.write(str(tmp_path / "points.jsonl"))
    assert (tmp_path / "points.jsonl").read_bytes() == expected
    # The points one by one, as a list.
    listed = [{key: row[key] for key in AXES} for row in table]
    assert fb.sweep(host, listed, replications=replications).lines == table.lines
    if has_pyarrow():
        fb.sweep(host, AXES, replications=replications, out=tmp_path / "out")
        assert (tmp_path / "out/points.jsonl").read_bytes() == expected


def test_rows_have_parameters_seeds_and_figures(host: fb.Scenario) -> None:
    table = fb.sweep(host, AXES)
    assert len(table) == 6 and table.complete and table.keys == tuple(AXES)
    row = table[3]
    assert (row["point"], row["processor.cpu.alpha"], row["traffic.rate"]) == (3, 2.5, "1 Gbit/s")
    run = host.set("processor.cpu.alpha", 2.5).set("traffic.rate", "1 Gbit/s").simulate()
    assert row["seed"] == run.seed == 7
    for path in ("throughput_bps", "cpu.load", "card.0.packets", "total_latency.p99_s", "bus.load"):
        assert row[path] == run[path] == table[path][3], path
    assert table["processor.cpu.load"] == table["cpu.load"]
    with pytest.raises(fb.FigureError, match="throughput_bps"):
        table["nothing"]


def test_replications_have_means_and_half_widths(host: fb.Scenario) -> None:
    row = fb.sweep(host, {"processor.cpu.alpha": [5]}, replications=6)[0]
    runs = host.set("processor.cpu.alpha", 5).simulate(replications=6)
    values = [run["throughput_bps"] for run in runs]
    assert row["replications"] == 6
    assert row["throughput_bps"] == pytest.approx(sum(values) / 6)
    assert row["throughput_bps.half_width"] == pytest.approx(fb.stats.estimate(values).half_width, rel=1e-3)


def test_sequential_stopping_replicates_each_point_as_often_as_it_requires(host: fb.Scenario) -> None:
    until = Until(0.02, "total_latency.mean_s", least=4, most=40)
    table = fb.sweep(host, {"traffic.packets": [500, 20_000]}, replications=until)
    few, many = table
    assert few["replications"] > many["replications"] >= 4
    for row in table:
        width = row["total_latency.mean_s.half_width"] / row["total_latency.mean_s"]
        assert row["converged"] == (width <= 0.02)
    assert (
        table.lines == fb.sweep(host, {"traffic.packets": [500, 20_000]}, replications=until, threads=1).lines
    )


def test_designs_are_compared_on_the_same_random_numbers(host: fb.Scenario) -> None:
    faster = host.set("processor.card.block", "430 ns")
    found = fb.compare(host, faster, "total_latency.mean_s", replications=6)
    assert found.n == 6 and found.significant and found.mean < 0
    assert found.correlation > 0.9 and found.half_width < found.a.half_width
    runs = host.simulate(replications=6), faster.simulate(replications=6)
    assert fb.compare(*runs, "total_latency.mean_s") == found
    with pytest.raises(ValueError, match="same seeds"):
        fb.compare(runs[0], faster.simulate(seed=99, replications=6))
    with pytest.raises(ValueError, match="at least 2"):
        fb.compare(host, faster, replications=1)


def test_the_warm_up_of_a_run_is_found_in_its_packets(host: fb.Scenario) -> None:
    pytest.importorskip("pandas")
    # 200 Mbit/s are carried: the queues fill from empty, and then the latency is stationary.
    found = fb.warm_up(host.set("traffic.rate", "200 Mbit/s").simulate(packets=True))
    assert 0 <= found.packets < 1000 and found.sufficient
    assert found.whole == pytest.approx(
        host.set("traffic.rate", "200 Mbit/s").simulate()["total_latency.mean_s"]
    )
    with pytest.raises(fb.FigureError, match="packets=True"):
        fb.warm_up(host.simulate())


def test_long_axes_are_taken_in_parts(host: fb.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = {"processor.card.count": [1, 2], "bus.width": [4, 8, 16], "seed": list(range(5))}
    whole = fb.sweep(host, axes, threads=2).lines
    monkeypatch.setattr(sys.modules["forebay._points"], "_AXES_MAX", 3)
    assert fb.sweep(host, axes, threads=2).lines == whole
    monkeypatch.setattr(sys.modules["forebay.sweep"], "_PART_S", 0.0)
    assert fb.sweep(host, axes, threads=2).lines == whole
    assert len(whole) == len(set(whole)) == 30


def test_other_models_are_swept_with_the_paths_of_their_runs(pipeline_file: Path) -> None:
    pipeline = fb.Scenario(pipeline_file)
    table = fb.sweep(pipeline, {"arrivals.mean": ["70 us", "140 us"]}, replications=3)
    row = table[1]
    runs = pipeline.set("arrivals.mean", "140 us").simulate(replications=3)
    for path in ("throughput_pps", "delay.p99_s", "receive.mean_queue", "core.utilisation"):
        assert row[path] == pytest.approx(runs.estimate(path).mean), path
    until = fb.sweep(pipeline, {"arrivals.mean": ["70 us"]}, replications="until 5 %")[0]
    assert until["converged"] and until["throughput_pps.half_width"] <= 0.05 * until["throughput_pps"]
    assert until["replications"] == len(
        pipeline.set("arrivals.mean", "70 us").simulate(replications="until 5 %")
    )


def test_values_are_validated_before_the_first_run(host: fb.Scenario) -> None:
    with pytest.raises(fb.ScenarioError) as caught:
        fb.sweep(host.set("traffic.packets", 10**12), {"processor.cpu.alpha": [1], "bus.width": [4, "wide"]})
    assert "bus.width" in str(caught.value)
    with pytest.raises(ValueError, match="at least one value"):
        fb.sweep(host, {"bus.width": []})
    with pytest.raises(TypeError, match="list of values"):
        fb.sweep(host, {"bus.width": "4"})
    with pytest.raises(ValueError, match="point 1"):
        fb.sweep(host, [{"bus.width": 4}, {"seed": 1}])


def test_tables_become_frames(host: fb.Scenario) -> None:
    pandas = pytest.importorskip("pandas")
    table = fb.sweep(host, AXES)
    frame = table.to_pandas()
    assert list(frame["processor.cpu.alpha"]) == [1, 1, 2.5, 2.5, 10, 10]
    assert pandas.api.types.is_float_dtype(frame["cpu.load"])
    assert "cpu.load" in table._repr_html_() or "point" in table._repr_html_()
    if has_pyarrow():
        assert table.to_arrow().num_rows == 6
        polars = pytest.importorskip("polars")
        assert table.to_polars().shape == (6, frame.shape[1])
        assert isinstance(table.to_polars(), polars.DataFrame)


@needs_pyarrow
def test_a_folder_that_is_whole_runs_nothing_again(host: fb.Scenario, tmp_path: Path) -> None:
    first = fb.sweep(host, AXES, out=tmp_path / "out")
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/points").rglob("*.parquet")}
    begun: list[int] = []
    again = fb.sweep(host, AXES, out=tmp_path / "out", progress=lambda done, all: begun.append(done) or True)
    assert again.lines == first.lines and not begun
    assert parts == {path: path.stat().st_mtime_ns for path in (tmp_path / "out/points").rglob("*.parquet")}
    assert again.to_pandas().shape[0] == 6
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["complete"] and manifest["runs"] == 6 and manifest["version"] == fb.__version__


@needs_pyarrow
def test_a_folder_of_another_sweep_is_refused(host: fb.Scenario, tmp_path: Path) -> None:
    fb.sweep(host, AXES, out=tmp_path / "out")
    for other, axes in ((host, {"bus.clock": ["66 MHz"]}), (host.set("seed", 8), AXES)):
        with pytest.raises(fb.RunError, match="another sweep"):
            fb.sweep(other, axes, out=tmp_path / "out")


@needs_pyarrow
def test_a_folder_grows_by_values_and_replications(host: fb.Scenario, tmp_path: Path) -> None:
    import pyarrow.dataset

    out = tmp_path / "out"
    first = {"traffic.packets": [1000, 1100], "bus.width": [4, 8]}
    fb.sweep(host, first, out=out, threads=1)
    # Values before, between and behind, of either key, and one less: only what is new is run.
    grown = {"traffic.packets": [900, 1000, 1050, 1100], "bus.width": [8, 16]}
    begun: list[int] = []
    table = fb.sweep(host, grown, out=out, threads=1, progress=lambda done, all: begun.append(done) or True)
    assert table.lines == fb.sweep(host, grown).lines and table.complete
    assert min(begun) >= 2, "the two points that were there are not run again"
    # A point is run again for more replications; the folder has the sweep that was asked for last.
    more = fb.sweep(host, grown, out=out, replications=2)
    assert more.lines == fb.sweep(host, grown, replications=2).lines
    numbers = pyarrow.dataset.dataset(out / "points", format="parquet").to_table(["point"])["point"]
    assert sorted(numbers.to_pylist()) == list(range(8)), "parts of sweeps before are gone"
    assert (out / "points.jsonl").read_text().splitlines() == more.lines


@needs_pyarrow
def test_an_empty_part_is_run_again_and_harms_no_other_reader(host: fb.Scenario, tmp_path: Path) -> None:
    import pyarrow.dataset

    out = tmp_path / "out"
    whole = fb.sweep(host, AXES, out=out).lines
    part = next((out / "points").rglob("part-*.parquet"))
    part.write_bytes(b"")
    # Of another division of the points, as a crash between two writers leaves one.
    stray = part.with_name("part-000000000000-000000000001-00000000.parquet")
    stray.write_bytes(b"")
    assert fb.sweep(host, AXES, out=out).lines == whole
    assert pyarrow.dataset.dataset(out / "points", format="parquet").to_table().num_rows == 6


@needs_pyarrow
def test_files_of_a_folder_are_on_the_disk_before_they_have_their_names(
    host: fb.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    renamed: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino) or fsync(file))

    def checked(old: Any, new: Any) -> None:
        assert os.stat(old).st_ino in synced, new
        renamed.append(Path(new).name)
        replace(old, new)

    monkeypatch.setattr(os, "replace", checked)
    fb.sweep(host, AXES, out=tmp_path / "out")
    assert {"manifest.json", "points.jsonl", "scenario.toml"} < set(renamed)
    assert any(name.endswith(".parquet") for name in renamed)
    assert (tmp_path / "out/points/group=00000").stat().st_ino in synced


@needs_pyarrow
@pytest.mark.skipif(os.name != "posix", reason="flock")
def test_one_sweep_at_a_time_has_a_folder(host: fb.Scenario, tmp_path: Path) -> None:
    script = tmp_path / "held.py"
    script.write_text(
        "import forebay as fb\n"
        "axes = {'traffic.packets': [4_000_000_000]}\n"
        "fb.sweep(fb.Scenario('host.toml'), axes, out='out', progress=lambda done, all: print(done, flush=True))\n"
    )
    child = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None and child.stdout.readline()
        with pytest.raises(fb.RunError, match="in use by another sweep"):
            fb.sweep(host, {"traffic.packets": [4_000_000_000]}, out=tmp_path / "out")
    finally:
        child.kill()
        child.wait()
    # The lock ends with its process.
    fb.sweep(host, {"traffic.packets": [1000]}, out=tmp_path / "out")
    fb.sweep(host, {"traffic.packets": [1000]}, out=tmp_path / "out")


@needs_pyarrow
def test_a_half_written_part_is_run_again(host: fb.Scenario, tmp_path: Path) -> None:
    axes = {"traffic.packets": list(range(1000, 1040))}
    whole = fb.sweep(host, axes).lines
    fb.sweep(host, axes, out=tmp_path / "out")
    parts = sorted((tmp_path / "out/points").rglob("*.parquet"))
    parts[0].write_bytes(parts[0].read_bytes()[:-9])
    beside = parts[0].with_name(f".{parts[0].name}.1")
    beside.write_bytes(b"PAR1")
    assert fb.sweep(host, axes, out=tmp_path / "out").lines == whole
    assert not beside.exists()


@needs_pyarrow
def test_a_sweep_that_was_killed_goes_on_where_it_stopped(host: fb.Scenario, tmp_path: Path) -> None:
    axes = {"traffic.packets": [50_000 + at for at in range(60)]}
    script = tmp_path / "killed.py"
    script.write_text(
        f"import forebay as fb\nfb.sweep(fb.Scenario('host.toml'), {axes!r}, out='out', threads=1)\n"
    )
    child = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path)
    try:
        wait_for(lambda: any((tmp_path / "out").rglob("part-*.parquet")) or child.poll() is not None)
    finally:
        child.kill()
        child.wait()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("part-*.parquet")}
    table = fb.sweep(host, axes, out=tmp_path / "out")
    assert before and all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert table.lines == fb.sweep(host, axes).lines


def wait_for(condition: "object", seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "nothing came"
        time.sleep(0.02)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupt_keeps_what_is_done(host: fb.Scenario, tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import forebay as fb\n"
        "import sys\n"
        "axes = {'traffic.packets': [2000] * 40 + [4_000_000_000]}\n"
        "try:\n"
        "    show = lambda done, all: print(done, flush=True)\n"
        "    fb.sweep(fb.Scenario('host.toml'), axes, threads=1, progress=show)\n"
        "except fb.Interrupted as interrupted:\n"
        "    print('kept', len(interrupted.partial), interrupted.partial.complete, interrupted)\n"
    )
    child = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= 4:
                break
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        last = child.communicate(timeout=60)[0].splitlines()[-1]
    finally:
        child.kill()
    kept, number, complete = last.split()[:3]
    assert kept == "kept" and 4 <= int(number) <= 40 and complete == "False", last


class Fastest(fb.Placement):
    """Chooses by the predicted finish time."""

    def choose(self, job, candidates):  # type: ignore[no-untyped-def]
        return min(candidates, key=lambda one: one.finish)


class Third(fb.Placement):
    """Raises at a size that only some points have."""

    def choose(self, job, candidates):  # type: ignore[no-untyped-def]
        if job.bytes == 1003:
            raise ZeroDivisionError("at 1003")
        return candidates[0]


def test_a_policy_in_python_places_the_jobs_of_all_points(host: fb.Scenario) -> None:
    pytest.importorskip("distributed")
    axes = {"traffic.packets": [300, 400, 500]}
    table = fb.sweep(host, axes, policy=Fastest(), threads=2)
    for row in table:
        run = host.set("traffic.packets", row["traffic.packets"]).simulate(policy=Fastest())
        assert (
            row["cpu.packets"] == run["cpu.packets"]
            and row["total_latency.mean_s"] == run["total_latency.mean_s"]
        )


@pytest.mark.parametrize("client", [None, "local:1", "local:2"])
def test_a_policy_that_raises_ends_the_sweep_and_loses_no_point(
    host: fb.Scenario, client: "str | None", monkeypatch: pytest.MonkeyPatch
) -> None:
    if client is None:
        monkeypatch.setattr(sys.modules["forebay.sweep"], "_has_dask", lambda: False)
    else:
        pytest.importorskip("distributed")
    axes = {"traffic.value": [1000, 1001, 1002, 1003]}
    sized = host.set("traffic.source", "fixed").set("traffic.value", 1000).set("traffic.overhead", 0)
    with pytest.raises(fb.PolicyError) as caught:
        fb.sweep(sized, axes, policy=Third(), client=client)
    shown = f"{caught.value!r} {caught.value.__cause__} {caught.value.traceback}"
    assert "ZeroDivisionError" in shown and "in choose" in shown
    partial = caught.value.partial  # type: ignore[attr-defined]
    done = [row["traffic.value"] for row in partial]
    # Of two workers one may be at an earlier point when the other's policy raises.
    assert done == [1000, 1001, 1002] if client != "local:2" else set(done) <= {1000, 1001, 1002}


def test_a_column_is_looked_up_once(host: fb.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fb.sweep(host, {"traffic.packets": list(range(10, 60))})
    calls: list[str] = []
    name = fb.Table.name
    monkeypatch.setattr(fb.Table, "name", lambda self, one: calls.append(one) or name(self, one))
    assert len(table["throughput_bps"]) == 50 and calls == ["throughput_bps"]


@needs_pyarrow
def test_a_folder_that_cannot_be_written_is_an_error_with_a_hint(host: fb.Scenario, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(fb.RunError, match="cannot write .*file/out") as caught:
        fb.sweep(host, {"traffic.packets": [10]}, out=tmp_path / "file/out")
    assert "folder" in caught.value.hint
