"""Pipelines, buffers, highest rates, firmware, and running gateways."""

import json
import socket
import threading
from pathlib import Path

import pytest

import forebay as fb
from conftest import ROOT, forebay
from forebay import _forebay


def test_a_chain_has_the_document_of_solve(pipeline_file: Path) -> None:
    chain = fb.Chain(pipeline_file)
    assert chain.solve() == json.loads(forebay("solve", pipeline_file, "--json").stdout)
    changed = chain.set("stage.work.buffer", 8)
    assert changed.run()["loss_probability"] < chain.run()["loss_probability"]
    closed = chain.scenario.closed_form().figures
    assert closed == json.loads(forebay("solve", pipeline_file, "--json", "--unlimited").stdout)


def test_buffers_are_those_of_the_command(pipeline_file: Path) -> None:
    sizes = fb.size_buffers(pipeline_file, 0.01)
    assert sizes == json.loads(forebay("size-buffers", pipeline_file, "--loss", 0.01, "--json").stdout)
    assert sizes["smallest"]["loss_probability"] <= 0.01
    with pytest.raises(ValueError, match="above 0 and below 1"):
        fb.size_buffers(pipeline_file, 1.0)


def test_buffers_of_a_host_are_an_error(host: fb.Scenario) -> None:
    with pytest.raises(fb.ScenarioError) as caught:
        fb.size_buffers(host, 0.01)
    assert caught.value.findings


def test_the_highest_rate_is_that_of_the_command(host_file: Path) -> None:
    found = fb.highest_rate(fb.Scenario(host_file), latency=1e-3)
    assert found is not None
    said = forebay("simulate", host_file, "--highest-rate", "--latency", "1 ms", "--json").stdout
    assert found.figures == json.loads(said)
    assert found["highest_rate_bps"] > 0


def test_a_highest_rate_without_a_bound_is_an_error(host: fb.Scenario, pipeline_file: Path) -> None:
    with pytest.raises(fb.RunError, match="unlimited input queue") as caught:
        fb.highest_rate(host)
    assert "scheduler.input" in caught.value.hint
    with pytest.raises(fb.RunError, match="host model"):
        fb.highest_rate(fb.Scenario(pipeline_file), latency=1e-3)
    assert fb.highest_rate(host, latency=1e-9) is None


def test_limits_are_above_what_is_reached(host: fb.Scenario) -> None:
    bound = _forebay.bound(host._native())
    assert host.simulate()["throughput_bps"] <= bound["throughput_bps"]
    few = host.set("traffic.packets", 5)
    optimum = _forebay.optimum(few._native())
    assert optimum is not None and optimum["elapsed_s"] <= few.simulate()["elapsed_s"]
    assert _forebay.optimum(host._native()) is None


def test_a_core_runs_firmware() -> None:
    core = fb.Core(ROOT / "studies" / "embedded-ipsec" / "esp.toml").set("input.packets", 5)
    run = core.run()
    assert run["cycles"] > run["instructions"] > 0
    with pytest.raises(fb.Error, match="nothing.pcap"):
        core.run("nothing.pcap")


def test_a_gateway_is_asked_over_its_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "control.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        asked: list[bytes] = []

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(b'{"response":"sas","schema":1,"sas":[]}\n')

        thread = threading.Thread(target=answer)
        thread.start()
        assert fb.Gateway(path).sas() == {"schema": 1, "sas": []}
        thread.join()
    assert json.loads(asked[0]) == {"request": "sas"}


def test_a_gateway_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(fb.GatewayError) as caught:
        fb.Gateway(tmp_path / "none.sock").status()
    assert "none.sock" in str(caught.value)
    assert "start the gateway" in caught.value.hint
