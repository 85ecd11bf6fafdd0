"""What methods take: quantities as numbers or text with units, settings, and what they refuse."""

import datetime
import signal
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from conftest import HOST

CARD = {
    "model": "inline-card", "payload": 1000, "offered": "100 Mbit/s", "buffer": 8, "duration": "50 ms",
    "resource": [{"name": "bus", "rate": "1 Gbit/s"}],
}  # fmt: skip
CORE = 'model = "embedded"\n[firmware]\npath = "ipsec-plain"\n[input]\ncapture = "demo"\npackets = 2\nsas = """\n' + (
    '[[sa]]\nname = "out"\ndirection = "out"\nspi = 0x1001\nprotocol = "esp"\nmode = "tunnel"\n'
    'proposal = "aes128-sha256"\nkey = "000102030405060708090a0b0c0d0e0f"\n'
    'auth_key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"\n'
    'local = "192.0.2.1"\nremote = "192.0.2.2"\n"""\n'
)


def test_what_a_file_lacks_can_be_set_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "norate.toml"
    path.write_text(HOST.replace('rate = "400 Mbit/s"\n', ""))
    with pytest.raises(fb.ScenarioError, match="no `rate`"):
        fb.Scenario(path)
    whole = fb.Scenario.parse(HOST)
    opened = fb.Scenario(path, set={"traffic.rate": "400 Mbit/s"})
    assert opened.simulate().figures == whole.simulate().figures
    with pytest.raises(fb.ScenarioError, match="unknown key `raet`"):
        fb.Scenario(path, set={"traffic.raet": 1})


def test_a_key_and_an_element_of_a_list_are_removed(host: fb.Scenario) -> None:
    alpha = host.set("processor.cpu.alpha", 9)
    assert alpha.set("processor.cpu.alpha", None).resolved == host.resolved
    assert [one["name"] for one in host.set("processor.card", None).resolved["processor"]] == ["cpu"]
    with pytest.raises(fb.ScenarioError, match="there is no `alhpa` to remove"):
        host.set("processor.cpu.alhpa", None).simulate()
    # Text without a character is text.
    with pytest.raises(fb.ScenarioError, match="``"):
        host.set("traffic.rate", "").simulate()


def test_values_of_the_standard_library_are_taken_and_bytes_are_not(host: fb.Scenario) -> None:
    def init(value: object) -> float:
        found: float = host.set("processor.cpu.init", value).resolved["processor"][0]["init"]
        return found

    us = [Decimal("0.000002"), Fraction(1, 500_000), datetime.timedelta(microseconds=2), "2 us", 2e-6]
    assert [init(one) for one in us] == [2e-6] * 5
    assert fb.Scenario(host.resolved, set={"traffic.suites": ["a"]}).set("name", Path("x")).sets[-1] == "name=x"
    for value in (b"2 us", bytearray(b"1"), 1j):
        with pytest.raises(TypeError, match="no place in a scenario"):
            host.set("processor.cpu.init", value)
    with pytest.raises(TypeError, match="a key is text"):
        host.set(3, 4)  # type: ignore[arg-type]


def test_bounds_of_the_highest_rate_are_text_or_numbers(host: fb.Scenario) -> None:
    host = host.set("scheduler.input", 100)
    assert fb.highest_rate(host, latency="500 us") == fb.highest_rate(host, latency=5e-4)
    assert fb.highest_rate(host, loss="1 %") == fb.highest_rate(host, loss=0.01)
    for bad in (float("nan"), -1, "5 Mbit/s", "soon", True):
        with pytest.raises(ValueError, match="latency is"):
            fb.highest_rate(host, latency=bad)
    for bad in (float("nan"), -0.1, "200 %", "5 us"):
        with pytest.raises(ValueError, match="loss is"):
            fb.highest_rate(host, loss=bad)


def test_a_chain_has_limits_and_a_card_has_none(pipeline_file: Path) -> None:
    chain = fb.Scenario(pipeline_file).set("overflow", "block")
    whole = chain.solve()
    assert chain.solve(memory="1 GiB", cycles=400) == whole == fb.Chain(chain).run(memory=1024)
    large = chain.set("stage.receive.buffer", 3000).set("stage.work.buffer", 3000)
    with pytest.raises(fb.RunError, match=r"more than the 1\.0 MiB allowed"):
        large.solve(memory=1)
    for bad in ("1 s", 0, -3, "much"):
        with pytest.raises(ValueError, match="memory is"):
            chain.solve(memory=bad)
    with pytest.raises(ValueError, match="cycles is"):
        chain.solve(cycles=0)
    with pytest.raises(fb.RunError, match="leave out cycles="):
        fb.Scenario(CARD).solve(cycles=3)
    with pytest.raises(fb.RunError, match="solved for its limits, not in closed form"):
        fb.Scenario(CARD).closed_form()


def test_buffers_are_sized_for_a_share_as_text(pipeline_file: Path) -> None:
    pipeline = fb.Scenario(pipeline_file).set("overflow", "block")
    assert fb.size_buffers(pipeline, "20 %") == fb.size_buffers(pipeline, 0.2)
    with pytest.raises(fb.RunError, match="leave out runs="):
        fb.size_buffers(pipeline, 0.2, runs=3)
    for options in ({"loss": "0 %"}, {"loss": "x"}, {"loss": 0.1, "most": 0}, {"loss": 0.1, "by": "simulation", "runs": 1}):
        with pytest.raises(ValueError, match="is .*; expected"):
            fb.size_buffers(pipeline, **options)  # type: ignore[arg-type]


def test_firmware_draws_nothing_and_a_core_runs_firmware(host: fb.Scenario) -> None:
    core = fb.Scenario.parse(CORE)
    for options in ({"seed": 3}, {"replications": 2}, {"replications": "until 1 %"}):
        with pytest.raises(fb.RunError, match="draws no random numbers"):
            core.simulate(**options)  # type: ignore[call-overload]
        with pytest.raises(fb.RunError, match="draws no random numbers"):
            fb.sweep(core, {"icache.size": [1024]}, **options)  # type: ignore[arg-type]
    with pytest.raises(fb.ScenarioError, match='found model = "host"'):
        fb.Core(host).run()


def test_numbers_that_are_none_are_refused_by_name(host: fb.Scenario) -> None:
    for options in (
        {"seed": -1}, {"seed": 1.5}, {"seed": "7"}, {"replications": 2.5}, {"replications": 0}, {"threads": -1},
    ):  # fmt: skip
        name = next(iter(options))
        with pytest.raises(ValueError, match=f"{name} is .*expected a whole number"):
            host.simulate(**options)  # type: ignore[call-overload]
    assert fb.Until("1 %", confidence="99 %") == fb.Until(0.01, confidence=0.99)
    with pytest.raises(TypeError, match="figure is 3"):
        fb.Until(figure=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="most is 2.5"):
        fb.Until(most=2.5)  # type: ignore[arg-type]


def test_figures_have_one_name_over_models(host: fb.Scenario, pipeline_file: Path) -> None:
    run, stages = host.simulate(), fb.Scenario(pipeline_file).simulate()
    assert stages["work.load"] == stages["work.utilisation"] and run["cpu.utilisation"] == run["cpu.load"]
    assert stages["total_latency.p99_s"] == stages["delay.p99_s"]
    assert run.get("delay.mean_s") == run["total_latency.mean_s"] and "work.load" in stages
    table = fb.sweep(fb.Scenario(pipeline_file), {"stage.work.buffer": [2, 3]})
    assert table["work.load"] == table["work.utilisation"]
    assert table["total_latency.mean_s"] == table["delay.mean_s"]
    assert fb.Scenario(pipeline_file).simulate(replications="until 9 % of work.load").converged


def test_several_designs_are_compared_at_once(host: fb.Scenario) -> None:
    designs = [host.set("processor.card.count", count) for count in (1, 2, 3)]
    two, three = fb.compare(*designs, "total_latency.mean_s", replications=5)
    assert two.figure == "total_latency.mean_s" and (two.n, three.n) == (5, 5)
    # Both intervals together hold with 95 %.
    assert two.confidence == three.confidence == pytest.approx(0.975)
    alone = fb.compare(designs[0], designs[2], figure="total_latency.mean_s", replications=5)
    assert alone.mean == three.mean and alone.half_width < three.half_width
    assert fb.compare(host, host, replications=2).figure == "throughput_bps"
    until = fb.compare(*designs[:2], replications=fb.Until(0.02, "total_latency.mean_s", least=3, most=60))
    assert 3 <= until.n < 60 and until.half_width <= 0.02 * until.a.mean
    assert until.n == 3 or fb.compare(*designs[:2], "total_latency.mean_s", replications=until.n - 1).half_width > (
        0.02 * until.a.mean
    )
    with pytest.raises(TypeError, match="at least two designs"):
        fb.compare(host, "throughput_bps")


def test_replications_are_drawn(host: fb.Scenario) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = host.simulate(replications=3).plot("cpu.load")
    assert axes.get_ylabel() == "cpu.load (%)" and len(axes.lines[0].get_xdata()) == 3


def test_a_fit_refuses_what_is_no_table_of_packets() -> None:
    pytest.importorskip("numpy")
    sizes = [100, 200, 300]
    for table, message in (
        ({"size": sizes, "time": [0, 1]}, "different numbers of rows: 3 in `size`, 2 in `time`"),
        ({"size": sizes, "tiem": [0, 1, 2]}, "no column `time`, but a column `tiem`"),
        ({"size": sizes, "Time": [0, 1, 2]}, "no column `time`, but a column `Time`"),
        ({"size": sizes, "SA": [0, 1, 2]}, "no column `sa`, but a column `SA`"),
        ({"size": sizes, "time": [0, -1, 2]}, "row 1 of column `time`: found -1"),
        ({"size": sizes, "time": [False, True, True]}, "type bool"),
        ({"size": [True, False, True]}, "type bool"),
        ({"size": sizes, "time": [0, 1, 2j]}, "type complex128"),
    ):
        with pytest.raises(fb.Error, match=message):
            fb.fit(table)
    assert fb.fit({"size": sizes, "time": [0.0, 2.0, 1.0], "source": [1, 1, 2]}).trace.times_ps is not None


def test_a_search_takes_units_and_refuses_what_is_no_number(host: fb.Scenario, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    host = host.set("traffic.packets", 200)
    options = {"maximise": "throughput_bps", "trials": 4}
    found = fb.search(host, {"traffic.rate": ("100 Mbit/s", "1 Gbit/s", "log")}, **options)  # type: ignore[arg-type]
    assert found.rows == fb.search(host, {"traffic.rate": (1e8, 1e9, "log")}, **options).rows  # type: ignore[arg-type]
    # One rate in three ways is one design.
    once = fb.search(host, {"traffic.rate": ["1 Gbit/s", "1000 Mbit/s", 1e9, "2 Gbit/s"]}, **options)  # type: ignore[arg-type]
    assert sorted(row["traffic.rate"] for row in once.rows) == ["1 Gbit/s", "2 Gbit/s"]
    for wrong in ({"batch": 0}, {"trials": -1}, {"trials": 2.5}, {"seed": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            fb.search(host, {"processor.card.count": range(1, 3)}, **{**options, **wrong})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected \\(low, high\\)"):
        fb.search(host, {"traffic.rate": ("1 us", "1 Gbit/s")}, **options)  # type: ignore[arg-type]
    for storage in ("search.db", f"sqlite:///{tmp_path}/absent/search.db"):
        with pytest.raises(fb.RunError, match="cannot be opened"):
            fb.search(host, {"processor.card.count": [1, 2]}, storage=storage, **options)  # type: ignore[arg-type]


def test_a_search_keeps_its_trials_whenever_it_is_interrupted(host: fb.Scenario) -> None:
    pytest.importorskip("optuna")
    host = host.set("traffic.packets", 100)

    def watch(done: int, whole: int) -> None:
        if done >= 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(fb.Interrupted) as caught:
        fb.search(host, {"processor.card.count": (1, 90)}, maximise="throughput_bps", trials=20, batch=2, progress=watch)
    assert len(caught.value.partial) == 4


INTERRUPTED = """
import os, sys, threading
import forebay as fb
pipeline = fb.Scenario(sys.argv[1])
run = pipeline.set("duration", "20 d")
drop = pipeline.set("duration", "20 s").set("arrivals.mean", "200 us")
for work in (run.simulate, lambda: fb.size_buffers(drop, 0.01, runs=200)):
    timer = threading.Timer(float(sys.argv[2]), os.kill, [os.getpid(), 2])
    timer.start()
    try:
        work()
        print("whole")
    except fb.Interrupted as interrupt:
        partial = interrupt.partial
        if isinstance(partial, fb.Run):
            shorter = fb.Scenario(partial.figures["resolved"])
            print("run", shorter.simulate().figures["fingerprint"] == partial.figures["fingerprint"])
        else:
            print("sizes", partial is None or "smallest" in partial)
    timer.cancel()
"""


def test_a_pipeline_and_its_buffers_keep_what_was_done(pipeline_file: Path) -> None:
    words = [sys.executable, "-c", INTERRUPTED, str(pipeline_file), "1.0"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
    lines = ended.stdout.splitlines()
    assert lines[0] == "run True" and lines[1] in ("sizes True", "whole"), ended.stderr


def test_a_dictionary_is_a_scenario_wherever_one_is_taken(tmp_path: Path) -> None:
    stage = {"name": "only", "time": "50 us", "buffer": 50}
    queue: dict[str, Any] = {
        "model": "pipeline", "service": "exponential", "duration": "200 ms", "arrivals": {"mean": "100 us"}, "stage": [stage],
    }
    assert len(fb.sweep(queue, {"stage.only.buffer": [5, 10]}).rows) == 2
    assert len(fb.search(queue, {"stage.only.buffer": [5, 10]}, minimise="delay.p99_s", trials=2).rows) == 2
    assert fb.compare(queue, queue, figure="delay.mean_s", replications=2).mean == 0
    card = {"name": "card", "kind": "accelerator", "queue": 50}
    traffic = {"source": "fixed", "value": 500, "packets": 1000, "rate": "1 Mbit/s"}
    found = fb.highest_rate({"model": "host", "traffic": traffic, "processor": [card], "scheduler": {"input": 50}})
    assert found is not None and found["throughput_bps"] > 1e8
    # Seeds have 64 bits.
    large = [1, 2**63, 2**64 - 1]
    assert list(fb.sweep(queue, {"seed": large}, out=tmp_path / "seeds").to_pandas()["seed"]) == large
