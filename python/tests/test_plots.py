"""Plots: what is drawn, in which units, and the paper's values beside it."""

import pytest

import forebay as fb
from test_sweep import HOST

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture()
def host() -> fb.Scenario:
    return fb.Scenario.parse(HOST)


def test_a_table_has_a_line_for_each_hue_and_marks_for_the_paper(host: fb.Scenario) -> None:
    table = fb.sweep(
        host, {"processor.card.count": [1, 2], "processor.cpu.alpha": [10, 1, 100]}, replications=3
    )
    paper = {1: [(1, 300.0), (10, 280.0)]}
    axes = table.plot(
        "processor.cpu.alpha", "throughput_bps", hue="processor.card.count", paper=paper, log_x=True
    )
    line, _, _ = axes.containers[0]
    assert list(line.get_xdata()) == [1, 10, 100]
    rows = [row for row in table if row["processor.card.count"] == 1]
    by_alpha = {row["processor.cpu.alpha"]: row["throughput_bps"] / 1e6 for row in rows}
    assert list(line.get_ydata()) == pytest.approx([by_alpha[1], by_alpha[10], by_alpha[100]])
    marks = axes.lines[-1]
    assert list(marks.get_ydata()) == [300, 280] and marks.get_linestyle() == "None"
    assert marks.get_color() == line.get_color()
    assert axes.get_ylabel() == "throughput_bps (Mbit/s)" and axes.get_xscale() == "log"
    assert list(axes.get_xticks()) == [1, 10, 100] and not list(axes.get_xticks(minor=True))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["paper, 1", "processor.card.count = 1", "processor.card.count = 2"] or len(labels) == 3


def test_values_that_are_no_numbers_stand_side_by_side(host: fb.Scenario) -> None:
    table = fb.sweep(host, {"traffic.rate": ["200 Mbit/s", "1 Gbit/s"]})
    axes = table.plot("traffic.rate", "cpu.load", paper=[("1 Gbit/s", 70.0)])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["200 Mbit/s", "1 Gbit/s"]
    assert axes.get_ylabel() == "cpu.load (%)"
    assert list(axes.lines[-1].get_xdata()) == [1]
    with pytest.raises(fb.FigureError):
        table.plot("traffic.rate", "nothing")


def test_a_run_shows_its_loads_or_its_latencies(host: fb.Scenario) -> None:
    run = host.simulate(packets=True)
    axes = run.plot(paper={"cpu": 80.0})
    assert len(axes.patches) == len([path for path in run.keys() if path.endswith(".load")])
    latency = run.plot(kind="latency")
    shares = latency.lines[0].get_ydata()
    assert shares[-1] == 1 and list(shares) == sorted(shares)
    times = latency.lines[0].get_xdata()
    assert times[-1] >= 1e6 * run["total_latency.p999_s"]
    quantiles = fb.plots.run(host.simulate(), kind="latency").lines[0]
    assert list(quantiles.get_ydata()) == [0.5, 0.9, 0.99, 0.999]
    with pytest.raises(ValueError, match="kind"):
        fb.plots.run(run, kind="other")


def test_a_search_shows_its_best_so_far_and_its_front(host: fb.Scenario) -> None:
    pytest.importorskip("optuna")
    space = {"processor.cpu.alpha": (1.0, 10.0)}
    one = fb.search(host, space, minimise="total_latency.mean_s", trials=5).plot()
    best = list(one.lines[1].get_ydata())
    assert best == sorted(best, reverse=True) and one.get_ylabel() == "total_latency.mean_s (us)"
    two = fb.search(host, space, minimise="total_latency.mean_s", maximise="throughput_bps", trials=5).plot()
    assert two.get_xlabel() == "total_latency.mean_s (us)" and two.get_ylabel() == "throughput_bps (Mbit/s)"


def test_a_table_of_two_keys_has_a_line_for_each_value_of_the_other(host: fb.Scenario) -> None:
    table = fb.sweep(host, {"processor.cpu.alpha": [1, 10], "processor.card.count": [1, 2, 3]})
    axes = table.plot("processor.card.count", "throughput_bps")
    assert [list(one[0].get_xdata()) for one in axes.containers] == [[1, 2, 3], [1, 2, 3]]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["processor.cpu.alpha = 1", "processor.cpu.alpha = 10"]


def test_lists_are_values_of_an_axis_and_of_a_hue(host: fb.Scenario) -> None:
    bins = [[[64, 1]], [[64, 1], [1500, 1]]]
    host = host.set("traffic", {"source": "histogram", "bins": bins[0], "rate": "1 Gbit/s", "packets": 200})
    table = fb.sweep(host, {"traffic.bins": bins, "processor.card.count": [1, 2]})
    axes = table.plot("traffic.bins", "throughput_bps", hue="processor.card.count")
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(one) for one in bins]
    assert len(table.plot("processor.card.count", "throughput_bps", hue="traffic.bins").containers) == 2
