"""Scenarios: from files, text and dictionaries; settings; errors with their places."""

import datetime
import json
import pickle
from pathlib import Path

import numpy
import pandas
import pytest

import forebay as fb
from conftest import HOST, ROOT, forebay


def test_a_file_is_read_and_resolved(host_file: Path) -> None:
    host = fb.Scenario(host_file)
    assert (host.model, host.seed, host.name) == ("host", 7, str(host_file))
    assert host.resolved["traffic"]["packets"] == 3000
    assert 'model = "host"' in host.toml
    assert {"processor.card.count", "traffic.rate", "scheduler.policy"} <= set(host.keys())


def test_every_resolved_key_can_be_set_to_its_value(host: fb.Scenario) -> None:
    def value(key: str) -> object:
        here: object = host.resolved
        for step in key.split("."):
            if isinstance(here, list):
                here = next(one for one in here if one["name"] == step)
            else:
                here = here[step]  # type: ignore[index]
        return here

    again = host
    for key in host.keys():
        again = again.set(key, value(key))
    assert again.resolved == host.resolved


def test_a_dictionary_is_a_scenario() -> None:
    card = {"name": "card", "kind": "accelerator", "count": 2, "init": "1 us", "block": "440 ns", "queue": 50}
    cpu = {"name": "cpu", "kind": "cpu", "init": 3e-6, "block": "920 ns"}
    built = fb.Scenario(
        {
            "processor": [cpu, card],
            "traffic": {"source": "exponential", "mean": 256, "packets": 3000, "rate": 4e8, "sas": 10},
            "bus": {"clock": "66 MHz", "width": 4, "address_cycles": 1},
            "model": "host",
            "seed": 7,
        }
    )
    assert built.resolved == fb.Scenario.parse(HOST).resolved
    assert built.simulate().figures == fb.Scenario.parse(HOST).simulate().figures


@pytest.mark.parametrize("value", [4, 4.0, numpy.int64(4), "4"])
def test_settings_take_numbers_of_python_and_numpy_and_text(host: fb.Scenario, value: object) -> None:
    assert host.set("processor.card.count", value).resolved["processor"][1]["count"] == 4


def test_settings_do_not_change_the_scenario(host: fb.Scenario) -> None:
    other = host.set("traffic.rate", "200 Mbit/s")
    assert host.resolved["traffic"]["rate"] == 400e6
    assert other.resolved["traffic"]["rate"] == 200e6
    assert other != host
    assert other == host.set("traffic.rate", "200 Mbit/s")
    assert len({host, other, host.set("traffic.rate", "200 Mbit/s")}) == 2


def test_dependent_keys_are_validated_together(host: fb.Scenario) -> None:
    wrong = host.set("traffic", {"source": "uniform", "packets": 2000, "rate": 4e8})
    with pytest.raises(fb.ScenarioError):
        wrong.simulate()
    right = wrong.set("traffic.min", 64).set("traffic.max", 1500)
    assert right.simulate()["packets"] == 2000


def test_a_scenario_is_pickled_with_its_settings(host: fb.Scenario) -> None:
    other = pickle.loads(pickle.dumps(host.set("seed", 9)))
    assert other == host.set("seed", 9)
    assert other.simulate().figures == host.set("seed", 9).simulate().figures


def test_an_error_has_the_place_and_all_findings(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(HOST.replace("queue", "quue").replace("sas =", "sass ="))
    with pytest.raises(fb.ScenarioError) as caught:
        fb.Scenario(path)
    error = caught.value
    assert isinstance(error, fb.Error)
    assert len(error.findings) == 2
    assert (error.file, error.line, error.column) == (str(path), 8, 1)
    assert (error.found, error.expected) == ("sass", "sas")
    assert "did you mean `sas`?" in error.hint
    assert error.findings[1].line == 24
    assert "quue" in str(error)


def test_the_error_is_that_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(HOST.replace("queue", "quue"))
    with pytest.raises(fb.ScenarioError) as caught:
        fb.Scenario(path)
    said = forebay("simulate", path, check=False)
    assert said.returncode == 2
    assert caught.value.findings[0].message in said.stderr


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("processor.card.cuont", 3, "cuont"),
        ("processor.crad.count", 3, "crad"),
        ("traffic.rate", "1 Gbit/h", "1 Gbit/h"),
        ("seed", -1, "-1"),
    ],
)
def test_a_wrong_setting_is_named(host: fb.Scenario, key: str, value: object, found: str) -> None:
    with pytest.raises(fb.ScenarioError) as caught:
        host.set(key, value).simulate()
    assert caught.value.found == found
    assert caught.value.file is not None and key in caught.value.file
    assert caught.value.line is None


def test_a_missing_file_and_a_value_without_a_place_in_toml(host: fb.Scenario, tmp_path: Path) -> None:
    with pytest.raises(fb.ScenarioError, match="cannot be read"):
        fb.Scenario(tmp_path / "none.toml")
    with pytest.raises(TypeError, match="has no place in a scenario"):
        host.set("seed", object())


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        (numpy.timedelta64(50, "ns"), 50e-9),
        (numpy.timedelta64(5, "10us"), 50e-6),
        (pandas.Timedelta(50_500, "ns"), 50.5e-6),
        (datetime.timedelta(days=1), 86400.0),
    ],
)
def test_spans_of_time_keep_their_unit(pipeline_file: Path, span: object, seconds: float) -> None:
    scenario = fb.Scenario(pipeline_file).set("stage.work.time", span)
    assert scenario.resolved["stage"][1]["time"] == seconds


def test_lists_of_numpy_and_pandas_are_lists(pipeline_file: Path) -> None:
    spans = pandas.Series(pandas.to_timedelta([30, 40], unit="us"))
    for times in (numpy.array([30e-6, 40e-6]), numpy.array([30, 40], dtype="m8[us]"), spans):
        stage = {"name": "only", "times": times, "buffer": 3}
        found = fb.Scenario({"model": "pipeline", "arrivals": {"mean": 1e-3}, "stage": [stage]}).resolved
        assert found["stage"][0]["times"] == [30e-6, 40e-6]


@pytest.mark.parametrize("value", [numpy.datetime64("2026-01-01", "ns"), numpy.timedelta64(1, "Y")])
def test_dates_and_years_are_no_times(pipeline_file: Path, value: object) -> None:
    with pytest.raises(TypeError, match="has no place in a scenario"):
        fb.Scenario(pipeline_file).set("stage.work.time", value)
    with pytest.raises(ValueError, match="NaT"):
        fb.Scenario(pipeline_file).set("stage.work.time", numpy.timedelta64("NaT", "us"))


def test_packets_of_a_pipeline_are_refused(pipeline_file: Path) -> None:
    with pytest.raises(fb.ScenarioError, match="has no effect in the model pipeline"):
        fb.Scenario(pipeline_file).simulate(packets=True)


def test_errors_are_pickled_whole() -> None:
    with pytest.raises(fb.ScenarioError) as caught:
        fb.Scenario.parse("model = 'host'\n[trafic]\n", name="a.toml")
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is fb.ScenarioError
    assert (error.findings, error.line, str(error)) == (
        caught.value.findings,
        caught.value.line,
        str(caught.value),
    )


def test_every_shipped_scenario_is_read() -> None:
    kinds = set()
    for path in sorted(ROOT.glob("studies/*/*.toml")):
        scenario = fb.Scenario(path)
        kinds.add(scenario.model)
        assert json.dumps(scenario.resolved)
    assert {"host", "pipeline", "inline-card", "embedded"} <= kinds
