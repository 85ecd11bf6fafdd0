"""Runs: the command's figures, paths, replications, packets as Arrow."""

import io
import json
import math
import pickle
import sys
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import forebay as fb
from conftest import ROOT, forebay


def test_the_document_is_what_the_command_prints(host_file: Path) -> None:
    run = fb.Scenario(host_file).simulate()
    assert run.document + "\n" == forebay("simulate", host_file, "--json").stdout
    seeded = fb.Scenario(host_file).simulate(seed=11)
    assert seeded.document + "\n" == forebay("simulate", host_file, "--json", "--set", "seed=11").stdout
    assert (seeded.seed, seeded.version, seeded.scenario.name) == (11, fb.__version__, str(host_file))


@pytest.mark.parametrize("file", ["network-processor/markov.toml", "inline-card/video.toml"])
def test_pipelines_and_cards_have_the_documents_of_their_commands(file: str) -> None:
    path = ROOT / "studies" / file
    short = ["--set", "duration=0.1"]
    scenario = fb.Scenario(path).set("duration", 0.1)
    assert scenario.simulate().figures == json.loads(forebay("simulate", path, "--json", *short).stdout)
    assert scenario.solve().figures == json.loads(forebay("solve", path, "--json", *short).stdout)


def test_figures_have_paths(host: fb.Scenario) -> None:
    run = host.simulate()
    document = run.figures
    assert run["throughput_bps"] == document["throughput_bps"]
    assert run["bus.load"] == document["bus"]["load"]
    assert run["card.1.packets"] == document["processors"][2]["packets"]
    assert run["total_latency.p99_s"] == document["total_latency"]["p99_s"]
    assert set(run.flat()) == set(run.keys())
    assert all(path in run for path in run.keys())
    assert math.isnan(run.get("nothing"))


def test_an_unknown_path_is_a_key_error_that_lists_the_known_ones(host: fb.Scenario) -> None:
    run = host.simulate()
    with pytest.raises(KeyError) as caught:
        run["cpu.laod"]
    assert isinstance(caught.value, fb.FigureError)
    assert "did you mean `cpu.load`?" in str(caught.value)
    assert "total_latency.p99_s" in str(caught.value)


def test_replications_have_the_estimates_of_the_command(host_file: Path) -> None:
    runs = fb.Scenario(host_file).simulate(replications=4)
    assert isinstance(runs, fb.Replications)
    assert runs.seeds == [7, 8, 9, 10]
    document = json.loads(forebay("simulate", host_file, "--replications", 4, "--json").stdout)
    for path, name in [("throughput_bps", "throughput_bps"), ("cpu.load", "processor.cpu.load")]:
        estimate, said = runs.estimate(path), document["estimates"][name]
        assert (estimate.mean, estimate.half_width) == (said["mean"], said["half_width"])
    assert list(runs.to_pandas()["seed"]) == [7, 8, 9, 10]


def test_the_number_of_threads_changes_nothing(host: fb.Scenario) -> None:
    one = host.simulate(replications=5, threads=1)
    three = host.simulate(replications=5, threads=3)
    assert [run.document for run in one] == [run.document for run in three]
    assert one[2].document == host.simulate(seed=9).document


def test_replications_stop_when_the_estimate_is_narrow(host: fb.Scenario) -> None:
    wide = host.simulate(replications="until 50 %", threads=1)
    narrow = host.simulate(replications="until 1 % of total_latency.p99_s", threads=1)
    assert isinstance(wide, fb.Replications) and isinstance(narrow, fb.Replications)
    assert len(wide) == fb.Until().least
    assert len(narrow) > len(wide)
    assert narrow.estimate("total_latency.p99_s").relative <= 0.01
    several = host.simulate(replications="until 1 % of total_latency.p99_s", threads=3)
    assert isinstance(several, fb.Replications)
    assert [run.document for run in several] == [run.document for run in narrow]


def test_packets_are_those_of_the_command(host_file: Path, tmp_path: Path) -> None:
    run = fb.Scenario(host_file).simulate(packets=True)
    forebay("simulate", host_file, "--out", tmp_path / "out", "--columns=parquet")
    table = pyarrow.table(run.packets)
    said = pyarrow.parquet.read_table(tmp_path / "out" / "packets.parquet")
    assert table.column_names == said.column_names
    for name in said.column_names:
        assert table.column(name).to_pylist() == said.column(name).to_pylist()
    assert len(run.packets) == 3000


def test_packets_go_to_pandas_polars_and_numpy(host: fb.Scenario) -> None:
    packets = host.set("scheduler.input", 5).set("traffic.rate", "5 Gbit/s").simulate(packets=True).packets
    frame, other, arrays = packets.to_pandas(), packets.to_polars(), packets.to_numpy()
    assert isinstance(frame, pandas.DataFrame) and isinstance(other, polars.DataFrame)
    lost = frame["completed_ps"].isna()
    assert lost.any() and not lost.all()
    assert other["completed_ps"].null_count() == lost.sum()
    assert frame["processor"].isna().sum() == lost.sum()
    assert (frame["arrived_ps"].to_numpy() == arrays["arrived_ps"]).all()
    assert set(frame["processor"].dropna().unique()) <= {"cpu", "card.0", "card.1"}


def test_packets_can_be_read_several_times_and_outlive_the_run(host: fb.Scenario) -> None:
    packets = host.simulate(packets=True).packets
    first = pyarrow.table(packets)
    second = pyarrow.table(packets)
    del packets
    assert first.equals(second)


def test_packets_are_not_copied(host: fb.Scenario) -> None:
    packets = host.simulate(packets=True).packets
    first, second = pyarrow.table(packets), pyarrow.table(packets)
    for name in ("bytes", "arrived_ps", "completed_ps"):
        here, there = (table.column(name).chunk(0).buffers()[1].address for table in (first, second))
        assert here == there
    frame = first.to_pandas(split_blocks=True)
    address = frame["bytes"].to_numpy().__array_interface__["data"][0]
    assert address == first.column("bytes").chunk(0).buffers()[1].address


def test_a_run_without_packets_says_how_to_have_them(host: fb.Scenario) -> None:
    with pytest.raises(fb.FigureError, match="packets=True"):
        host.simulate().packets  # noqa: B018


def test_a_run_is_pickled_with_its_figures(host: fb.Scenario) -> None:
    run = host.simulate(packets=True)
    other = pickle.loads(pickle.dumps(run))
    assert (other.document, other.seed, other.scenario) == (run.document, run.seed, run.scenario)


def test_runs_are_equal_by_their_figures(host: fb.Scenario) -> None:
    run = host.simulate(packets=True)
    copied = pickle.loads(pickle.dumps(run))
    assert run == copied == host.simulate() != host.simulate(seed=8) and len({run, copied}) == 1
    with pytest.raises(fb.FigureError, match="pickled has left them behind"):
        _ = copied.packets
    several = host.simulate(replications=2)
    assert several == host.simulate(replications=2, threads=1) != host.simulate(replications=3)
    with pytest.raises(TypeError, match=r"estimate\('throughput_bps'\)"):
        _ = several["throughput_bps"]  # type: ignore[call-overload]
    assert several.to_polars()["seed"].to_list() == several.to_pandas()["seed"].tolist() == [7, 8]


def test_runs_are_shown_in_notebooks(host: fb.Scenario) -> None:
    run = host.simulate()
    assert "total_latency.p99_s" in run._repr_html_()
    assert "95 % confidence" in host.simulate(replications=2)._repr_html_()  # type: ignore[union-attr]
    assert "<pre>" in host._repr_html_()
    assert "bit/s" in repr(run)


def test_progress_is_told_and_may_end_the_run(host: fb.Scenario) -> None:
    told: list[tuple[int, int]] = []

    def watch(done: int, whole: int) -> bool:
        told.append((done, whole))
        return done == 0

    run = host.set("traffic.packets", 100_000_000).simulate(progress=watch)
    assert told and told[-1][1] == 100_000_000
    assert run.cut is not None and run.figures["interrupted_after"] == run.cut
    assert run["packets"] == run.cut == run.figures["resolved"]["traffic"]["packets"]


def test_what_a_watch_raises_ends_the_run(host: fb.Scenario) -> None:
    def watch(done: int, whole: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        host.set("traffic.packets", 100_000_000).simulate(progress=watch)


def test_a_run_without_figures_is_a_run_error(host: fb.Scenario) -> None:
    with pytest.raises(fb.RunError, match="more than 213 days"):
        host.set("traffic.rate", 1).set("traffic.packets", 100_000).simulate()
    with pytest.raises(fb.RunError, match="there is no solution"):
        host.solve()


def test_a_run_is_iterated_by_its_paths(host: fb.Scenario) -> None:
    run = host.set("traffic.packets", 100).simulate()
    assert list(run) == run.keys() and len(run) == len(run.keys())
    assert dict(zip(run, map(run.get, run))) == run.flat()


def test_seeds_that_are_none_are_refused(host: fb.Scenario) -> None:
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"seed is {seed}"):
            host.simulate(seed=seed)
        with pytest.raises(ValueError, match=f"seed is {seed}"):
            fb.sweep(host, {"traffic.packets": [10]}, seed=seed)


def test_progress_is_shown_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    from forebay import _progress

    monkeypatch.setattr(_progress, "_QUIET_S", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with _progress.Progress(None, "simulating") as watch:
        assert watch is None
    # The class that a notebook's kernel puts in the place of stderr.
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", stream)
    with _progress.Progress(None, "simulating") as watch:
        assert watch is not None and watch(1, 2)
    said = stream.getvalue()
    assert "50 % of 2" in said and said.endswith("\r") and "\x1b" not in said
