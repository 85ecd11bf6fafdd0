"""Pipelines with branches, laws of scipy, breakdowns, batch means and time series, from dictionaries."""

import math
from typing import Any

import pytest

import forebay as fb

scipy_stats = pytest.importorskip("scipy.stats")


def network() -> dict[str, Any]:
    """A stage that a tenth of its packets come back to, behind one that discards a fifth."""
    parse = {"name": "parse", "time": "20 us", "buffer": 10_000, "next": [{"stage": "crypto", "share": 0.8}]}
    crypto = {"name": "crypto", "time": "40 us", "buffer": 10_000, "next": [{"stage": "crypto", "share": 0.1}]}
    return {
        "model": "pipeline",
        "service": "exponential",
        "duration": "2 s",
        "arrivals": {"mean": "100 us"},
        "stage": [parse, crypto],
    }


def test_a_network_is_solved_and_simulated() -> None:
    scenario = fb.Scenario(network())
    closed = scenario.closed_form()
    # Jackson: 10,000 packets a second at the first stage, 8,000 / 0.9 at the second.
    visits, load = 0.8 / 0.9, 0.8 / 0.9 * 0.4
    assert math.isclose(closed["crypto.visits"], visits, rel_tol=1e-9)
    exact = 20e-6 / 0.8 + visits * 40e-6 / (1 - load)
    assert math.isclose(closed["mean_delay_s"], exact, rel_tol=1e-9)
    runs = scenario.simulate(replications=10)
    mean = runs.estimate("delay.mean_s")
    assert abs(mean.mean - exact) <= 2.5 * mean.half_width
    with pytest.raises(fb.Error, match="network with branches"):
        scenario.solve()
    # A sure way back never ends.
    with pytest.raises(fb.ScenarioError, match="never leave"):
        scenario.set("stage.crypto.next", [{"stage": "crypto", "share": 1.0}]).simulate()


@pytest.mark.parametrize(
    ("keys", "law"),
    [
        ({"distribution": "gamma", "a": 2.5, "scale": 10e-6}, scipy_stats.gamma(2.5, scale=10e-6)),
        ({"distribution": "lognorm", "s": 0.6, "scale": 30e-6}, scipy_stats.lognorm(0.6, scale=30e-6)),
        ({"distribution": "weibull_min", "c": 1.5, "scale": 30e-6}, scipy_stats.weibull_min(1.5, scale=30e-6)),
        ({"distribution": "pareto", "b": 4.0, "scale": 30e-6}, scipy_stats.pareto(4.0, scale=30e-6)),
        ({"distribution": "triang", "c": 0.3, "loc": 1e-5, "scale": 5e-5}, scipy_stats.triang(0.3, 1e-5, 5e-5)),
        ({"distribution": "uniform", "loc": 1e-5, "scale": 5e-5}, scipy_stats.uniform(1e-5, 5e-5)),
    ],
)
def test_laws_are_those_of_scipy(keys: dict[str, Any], law: Any) -> None:
    stage = {"name": "only", "buffer": 1, **keys}
    # One packet at a time: delays are the times themselves.
    scenario = fb.Scenario(
        {"model": "pipeline", "duration": "20 s", "arrivals": {"mean": "1 ms"}, "stage": [stage]}
    )
    run = scenario.simulate()
    assert math.isclose(run["delay.mean_s"], law.mean(), rel_tol=0.03)
    # Quantiles are kept to three digits.
    for path, share in [("delay.p50_s", 0.5), ("delay.p90_s", 0.9), ("delay.p99_s", 0.99)]:
        assert math.isclose(run[path], law.ppf(share), rel_tol=0.1)
    arrivals = 1e3
    waits = arrivals * (law.var() + law.mean() ** 2) / (2 * (1 - arrivals * law.mean()))
    assert math.isclose(scenario.closed_form()["general_delay_s"], law.mean() + waits, rel_tol=1e-5)


def test_breakdowns_batches_and_series_are_figures() -> None:
    document = network()
    document["stage"][1] |= {"mtbf": "5 ms", "mttr": "500 us"}
    document |= {"batches": 20, "series": "10 ms"}
    run = fb.Scenario(document).simulate()
    assert 0.05 < run["crypto.down"] < 0.15 and run["crypto.breakdowns"] > 100
    assert run["batch_means.delay_mean_s.mean"] == pytest.approx(run["delay.mean_s"])
    assert run["batch_means.delay_mean_s.half_width"] > 0
    series = run.figures["series"]
    assert len(series["end_s"]) == 200 and sum(series["generated"]) == run["generated"]
    assert sum(series["stages"][1]["lost"]) == run["crypto.lost"]
    # In a table a time series has no column.
    table = fb.sweep(fb.Scenario(document), {"stage.crypto.mttr": ["250 us", "500 us"]})
    assert not [name for name in table.rows[0] if name.startswith("series")]
    assert table["crypto.down"][0] < table["crypto.down"][1]
