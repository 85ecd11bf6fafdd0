"""Searches: repeatable, resumable, the same on a cluster."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb
from test_sweep import HOST

optuna = pytest.importorskip("optuna")

SPACE = {"processor.cpu.alpha": (1.0, 100.0, "log"), "processor.card.count": (1, 4), "bus.width": [4, 8]}


@pytest.fixture()
def host() -> fb.Scenario:
    return fb.Scenario.parse(HOST.replace("packets = 2000", "packets = 500"))


def test_a_search_finds_what_a_sweep_would(host: fb.Scenario) -> None:
    found = fb.search(host, {"processor.card.count": (1, 8)}, maximise="throughput_bps", trials=16)
    # There are eight designs, none of which is tried twice.
    assert sorted(row["processor.card.count"] for row in found.rows) == list(range(1, 9))
    swept = fb.sweep(host, {"processor.card.count": list(range(1, 9))})
    assert found.best["throughput_bps"] == max(swept["throughput_bps"])
    assert found.best_scenario.simulate()["throughput_bps"] == found.best["throughput_bps"]
    assert "8 trials" in repr(found)


def test_the_same_seed_gives_the_same_trials_and_another_others(host: fb.Scenario) -> None:
    first = fb.search(host, SPACE, minimise="total_latency.p99_s", trials=12)
    again = fb.search(host, SPACE, minimise="total_latency.p99_s", trials=12)
    other = fb.search(host, SPACE, minimise="total_latency.p99_s", trials=12, seed=2)
    assert first.rows == again.rows != other.rows
    for row in first.rows:
        assert 1 <= row["processor.cpu.alpha"] <= 100 and row["bus.width"] in (4, 8)
        assert row["processor.card.count"] in range(1, 5)


def test_a_search_that_is_broken_off_and_resumed_is_one_that_was_not(
    host: fb.Scenario, tmp_path: Path
) -> None:
    options = {"minimise": "total_latency.p99_s", "trials": 16, "batch": 4}
    whole = fb.search(host, SPACE, **options)
    storage = f"sqlite:///{tmp_path}/search.db"
    with pytest.raises(fb.Interrupted) as caught:
        fb.search(host, SPACE, storage=storage, progress=lambda done, all: done < 8, **options)
    assert len(caught.value.partial) == 8
    # Two trials that were proposed, of which an interrupt has left no result.
    resumed = fb.search(host, SPACE, storage=storage, **options)
    assert resumed.rows == whole.rows
    with pytest.raises(fb.RunError, match="another scenario"):
        fb.search(host.set("seed", 9), SPACE, storage=storage, **options)


def test_an_error_without_a_storage_is_not_called_one_of_a_storage(
    host: fb.Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create_study(**_: object) -> None:
        raise TypeError("of another release")

    monkeypatch.setattr("optuna.create_study", create_study)
    with pytest.raises(TypeError, match="of another release"):
        fb.search(host, SPACE, minimise="total_latency.p99_s", trials=4)
    with pytest.raises(fb.RunError, match="cannot be opened"):
        fb.search(host, SPACE, minimise="total_latency.p99_s", trials=4, storage="sqlite:///x.db")


def test_several_objectives_have_a_front(host: fb.Scenario) -> None:
    found = fb.search(
        host, SPACE, minimise={"latency": "total_latency.p99_s"}, maximise=["throughput_bps"], trials=20
    )
    assert found.objectives == {"total_latency.p99_s": "minimize", "throughput_bps": "maximize"}
    front = found.front
    for one in found.rows:
        assert not any(
            other["total_latency.p99_s"] < one["total_latency.p99_s"]
            and other["throughput_bps"] > one["throughput_bps"]
            for other in found.rows
            if one in front
        )
    latencies = [row["total_latency.p99_s"] for row in front]
    assert latencies == sorted(latencies) and found.best == front[0]


def test_workers_change_no_trial(host: fb.Scenario) -> None:
    pytest.importorskip("distributed")
    options = {"maximise": "throughput_bps", "trials": 10}
    assert fb.search(host, SPACE, client="local:2", **options).rows == fb.search(host, SPACE, **options).rows


def test_bad_spaces_and_objectives_are_errors(host: fb.Scenario) -> None:
    with pytest.raises(ValueError, match="minimise= or maximise="):
        fb.search(host, SPACE)
    for bad in ((4, 1), (1,), (1, 2, "linear"), [], "4", ("1", "2")):
        with pytest.raises(ValueError, match="bus.width: expected"):
            fb.search(host, {"bus.width": bad}, maximise="throughput_bps")
    with pytest.raises(fb.FigureError, match="throughput_bps"):
        fb.search(host, {"bus.width": [4]}, maximise="nothing", trials=1)
    with pytest.raises(fb.ScenarioError):
        fb.search(host, {"bus.width": (0, 4)}, maximise="throughput_bps", trials=1)


KILLED = """
import os, sys
import forebay as fb
import optuna
from optuna.storages import RDBStorage
left = int(sys.argv[3])
def dying(name):
    call = getattr(RDBStorage, name)
    def counted(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return call(*arguments, **options)
    setattr(RDBStorage, name, counted)
for name in ("_create_new_trial", "set_trial_param", "set_trial_state_values"):
    dying(name)
host = fb.Scenario.parse(open(sys.argv[1]).read())
space = {"processor.cpu.alpha": (1.0, 100.0, "log"), "processor.card.count": (1, 4), "bus.width": [4, 8]}
fb.search(host, space, minimise="total_latency.p99_s", trials=10, batch=4, storage=sys.argv[2])
"""


def test_a_search_that_is_killed_anywhere_and_resumed_is_one_that_was_not(
    host: fb.Scenario, tmp_path: Path
) -> None:
    options = {"minimise": "total_latency.p99_s", "trials": 10, "batch": 4}
    whole = fb.search(host, SPACE, **options)
    file = tmp_path / "host.toml"
    file.write_text(HOST.replace("packets = 2000", "packets = 500"))
    # A write to the storage is the place of a kill: with proposals and results of three batches there are 20.
    for writes in (0, 1, 3, 4, 5, 7, 8, 10, 13, 17, 19):
        storage = f"sqlite:///{tmp_path}/killed-{writes}.db"
        line = [sys.executable, "-c", KILLED, str(file), storage, str(writes)]
        assert subprocess.run(line, check=False).returncode == 9
        assert fb.search(host, SPACE, storage=storage, **options).rows == whole.rows, writes


def test_no_design_is_tried_twice(host: fb.Scenario) -> None:
    space = {"processor.card.count": (1, 4), "bus.width": [4, 8], "scheduler.window": (1, 3)}
    found = fb.search(host, space, maximise="throughput_bps", trials=20)
    designs = [tuple(row[key] for key in space) for row in found.rows]
    assert len(designs) == len(set(designs)) == 20
    assert len(fb.search(host, space, maximise="throughput_bps", trials=40)) == 4 * 2 * 3


def test_spaces_take_numbers_of_numpy_and_a_figure_has_one_direction(host: fb.Scenario) -> None:
    np = pytest.importorskip("numpy")
    space = {"processor.card.count": (np.int64(1), np.int64(4)), "bus.width": [np.int64(4), np.int32(8)]}
    plain = {"processor.card.count": (1, 4), "bus.width": [4, 8]}
    options = {"maximise": "throughput_bps", "trials": 5}
    assert fb.search(host, space, **options).rows == fb.search(host, plain, **options).rows
    with pytest.raises(ValueError, match="throughput_bps: expected one of minimise= and maximise="):
        fb.search(host, plain, minimise="throughput_bps", maximise=["throughput_bps"])


def test_a_design_that_serves_no_packet_is_not_the_best() -> None:
    stage = {"name": "only", "time": "50 us", "buffer": 50}
    queue = fb.Scenario(
        {"model": "pipeline", "duration": "1 s", "arrivals": {"mean": "100 us"}, "stage": [stage]}
    )
    space = {"stage.only.time": ["50 s", "50 us", "60 us"]}
    found = fb.search(queue, space, minimise="delay.p99_s", trials=3)
    assert found.best["stage.only.time"] == "50 us"
    assert len(found.rows) == 2
    dead = queue.set("stage.only.time", "50 s").simulate()
    assert math.isnan(dead["delay.p99_s"]) and math.isnan(dead["total_latency.mean_s"])
    assert "delay.p99_s" in dead and "delay.p98_s" not in dead
    assert any("no packet left" in note for note in dead.notes)
    table = fb.sweep(queue, {"stage.only.time": ["50 s", "50 us"]}).to_pandas()
    assert list(table["delay.mean_s"].isna()) == [True, False]
    until = fb.sweep(queue, {"stage.only.time": ["50 s"]}, replications=fb.Until(relative=0.1, most=5))
    assert math.isnan(until.rows[0]["delay.mean_s"])
    with pytest.raises(ValueError, match="another key of the sweep"):
        fb.search(queue, {"stage.only.time": ["50 us"], "stage.0.time": ["60 us"]}, minimise="delay.p99_s", trials=1)
