"""Traces and the generators fitted to them."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pyarrow = pytest.importorskip("pyarrow")

import forebay as fb  # noqa: E402
from forebay import _fitting, _goodness  # noqa: E402

ROWS = [(100, 10.5, "east"), (1460, 10.5001, "west"), (0, 11.0, "east")]
CHAINED: dict[str, Any] = {
    "source": "histogram",
    "bins": [[40, 40, 1], [576, 576, 1], [1400, 1400, 1]],
    "transitions": [[8, 1, 1], [3, 6, 1], [0, 1, 9]],
    "transitions_per": "sa",
    "sa_weights": [5, 3, 1, 1],
    "sa_run_length": 4,
    "arrivals": "gaps",
    "gaps": [["1 us", "2 us", 1], ["100 us", "200 us", 1]],
    "gap_transitions": [[19, 1], [1, 1]],
}


def host(**traffic: Any) -> dict[str, Any]:
    card = {"name": "card", "kind": "accelerator", "count": 2}
    return {"model": "host", "traffic": traffic, "processor": [card]}


def drawn(packets: int = 30_000) -> fb.Trace:
    """A trace whose order is known."""
    return fb.Traffic(CHAINED, fb.Trace(np.zeros(2, dtype=np.int64))).draw(packets)


def csv(path: pathlib.Path) -> pathlib.Path:
    path.write_text("size,time,sa\n" + "".join(f"{size},{time},{sa}\n" for size, time, sa in ROWS))
    return path


def assert_rows(trace: fb.Trace) -> None:
    assert trace.sizes.tolist() == [100, 1460, 0]
    assert trace.times_ps is not None and trace.times_ps.tolist() == [0, 100_000_000, 500_000_000_000]
    assert trace.sas is not None and trace.sas.tolist() == [0, 1, 0]


def test_csv_and_parquet_of_both_libraries_are_the_same_trace(tmp_path: pathlib.Path) -> None:
    assert_rows(fb.read_trace(csv(tmp_path / "trace.csv")))
    columns = {name: [row[at] for row in ROWS] for at, name in enumerate(("size", "time", "sa"))}
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(columns).to_parquet(tmp_path / "pandas.parquet")
    assert_rows(fb.read_trace(tmp_path / "pandas.parquet"))
    stamps = pandas.to_datetime(columns["time"], unit="s")
    pandas.DataFrame({**columns, "time": stamps}).to_parquet(tmp_path / "stamps.parquet")
    assert_rows(fb.read_trace(tmp_path / "stamps.parquet"))
    polars = pytest.importorskip("polars")
    polars.DataFrame(columns).write_parquet(tmp_path / "polars.parquet")
    assert_rows(fb.read_trace(tmp_path / "polars.parquet"))


def test_lines_of_the_archive_are_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lbl-pkt-4.tcp"
    path.write_text("0.010445 2 1 2436 23 2\n0.023775 1 2 23 2436 0\n")
    trace = fb.read_trace(path)
    assert trace.sizes.tolist() == [2, 0]
    assert trace.times_ps is not None and trace.times_ps.tolist() == [0, 13_330_000_000]


def test_wrong_trace_names_file_line_and_what_is_expected(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("size,time\n100,0\n100,soon\n")
    with pytest.raises(fb.ScenarioError) as raised:
        fb.read_trace(path)
    error = raised.value
    assert (error.file, error.line, error.found) == (str(path), 3, "soon")
    assert error.expected == "seconds from 0 on" and "Parquet" in error.hint
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"length": [1, 2]}).to_parquet(tmp_path / "trace.parquet")
    with pytest.raises(fb.ScenarioError, match="one named `size`"):
        fb.read_trace(tmp_path / "trace.parquet")


def test_parquet_trace_gives_the_figures_of_the_csv_trace(tmp_path: pathlib.Path) -> None:
    pandas = pytest.importorskip("pandas")
    csv(tmp_path / "trace.csv")
    pandas.read_csv(tmp_path / "trace.csv").to_parquet(tmp_path / "trace.parquet")
    figures = []
    for name in ("trace.csv", "trace.parquet"):
        run = fb.Scenario(host(source="file", path=name), directory=tmp_path).simulate()
        figures.append({path: value for path, value in run.flat().items()})
    assert figures[0] == figures[1]


def test_fit_finds_the_chain_that_a_trace_was_drawn_from() -> None:
    trace = drawn()
    traffic = fb.fit(trace, bins=4)
    assert [one[:2] for one in traffic.keys["bins"]] == [one[:2] for one in CHAINED["bins"]]
    weights = np.array(traffic.keys["transitions"], dtype=float)
    shares = weights / weights.sum(axis=1, keepdims=True)
    expected = np.array(CHAINED["transitions"]) / 10
    assert np.abs(shares - expected).max() < 0.02
    assert traffic.keys["sa_run_length"] == pytest.approx(4, rel=0.05)
    # SAs are numbered in the order of their first packets.
    assert sorted(traffic.keys["sa_weights"])[-1] / len(trace) == pytest.approx(0.5, abs=0.03)


def test_generator_reproduces_sizes_gaps_shares_and_order() -> None:
    traffic = fb.fit(drawn())
    goodness = traffic.goodness(seed=7)
    assert goodness.figures["sizes_ks"] < 0.03
    assert goodness.figures["gaps_ks"] < 0.03
    assert goodness.figures["sa_shares_distance"] < 0.03
    assert goodness.figures["sa_run_drawn"] == pytest.approx(goodness.figures["sa_run"], rel=0.05)
    assert goodness.figures["gaps_mean_s_drawn"] == pytest.approx(goodness.figures["gaps_mean_s"], rel=0.08)
    of = [_goodness.autocorrelation(one.sizes, 5, one.sas) for one in (goodness.trace, goodness.drawn)]
    assert np.abs(of[0] - of[1]).max() < 0.05
    alone = traffic.without("order").draw()
    assert of[0][0] > 0.5 and abs(_goodness.autocorrelation(alone.sizes, 1, alone.sas)[0]) < 0.05


def test_applied_traffic_leaves_the_rest_of_the_scenario() -> None:
    scenario = fb.Scenario(host(source="fixed", value=100, rate="1 Gbit/s", overhead=60, packets=5000))
    traffic = fb.fit(drawn(5000))
    applied = traffic.apply(scenario)
    now = applied.resolved["traffic"]
    assert (now["overhead"], now["packets"], now["source"]) == (60, 5000, "histogram")
    assert "rate" not in now and "value" not in now
    assert applied.simulate()["packets"] == 5000
    fast = traffic.at("2 Gbit/s").apply(scenario)
    assert fast.resolved["traffic"]["rate"] == 2e9 and "packet_rate" not in fast.resolved["traffic"]


def test_table_without_times_and_sas_is_fitted() -> None:
    traffic = fb.fit({"size": [40, 40, 40, 1500] * 50})
    assert traffic.keys["bins"] == [[40, 40, 150], [1500, 1500, 50]]
    assert traffic.keys["transitions"] == [[100, 50], [50, 0]]
    assert traffic.keys["transitions_per"] == "traffic" and "gaps" not in traffic.keys
    repeated = traffic.draw(1000).sizes
    assert not ((repeated[1:] == 1500) & (repeated[:-1] == 1500)).any()
    with pytest.raises(fb.Error, match="no column `size`"):
        fb.fit({"bytes": [1, 2]})
    with pytest.raises(fb.Error, match="at least 2"):
        fb.fit({"size": [1]})


@pytest.mark.parametrize("seed", range(20))
def test_bins_are_disjoint_ordered_and_hold_every_packet(seed: int) -> None:
    draw = np.random.default_rng(seed)
    sizes = np.concatenate(
        (draw.integers(0, 1500, 500), draw.choice([40, 52, 1500], 800), draw.geometric(0.01, 300))
    ).astype(np.int64)
    for limit in (4, 7, 32, 128):
        for find in (_fitting.size_bins, _fitting.gap_bins):
            bins, of = find(sizes, limit)
            assert 1 <= len(bins) <= limit
            assert all(low <= high for low, high in bins)
            assert all(first[1] < second[0] for first, second in zip(bins, bins[1:], strict=False))
            lows, highs = np.array(bins).T
            assert ((lows[of] <= sizes) & (sizes <= highs[of])).all()


def test_transitions_have_the_packets_of_each_state_as_sums() -> None:
    draw = np.random.default_rng(1)
    states, sas = draw.integers(0, 5, 1000), draw.integers(0, 7, 1000)
    for of in (None, sas):
        matrix = _fitting.transitions(states, of, 5)
        counts = np.bincount(states, minlength=5)
        assert (matrix.sum(axis=0) == counts).all() and (matrix.sum(axis=1) == counts).all()


def test_page_is_self_contained(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "fit.html"
    fb.fit(drawn(3000)).goodness().write(path)
    text = path.read_text()
    assert "<svg" in text and "Goodness of fit" in text
    assert "<script" not in text and "src=" not in text and "<?xml" not in text


def test_times_of_tables_are_read_in_their_units(tmp_path: pathlib.Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    np = pytest.importorskip("numpy")
    since = {unit: pandas.to_timedelta([3_000_000, 3_000_010], unit="us").as_unit(unit) for unit in ("us", "ns")}
    columns = {
        "numbers": [3.0, 3.00001],
        **{f"durations in {unit}": one for unit, one in since.items()},
        **{f"timestamps in {unit}": pandas.Timestamp("2020-01-01") + one for unit, one in since.items()},
        "timestamps of a zone": pandas.Timestamp("2020-01-01", tz="Europe/Berlin") + since["us"],
        "datetime64": np.datetime64("2020-01-01") + np.array([0, 10], "timedelta64[us]"),
        "timedelta64": np.array([0, 10], "timedelta64[us]"),
        "objects": np.array(list(since["us"].to_pytimedelta()), object),
    }
    for name, column in columns.items():
        fitted = fb.fit({"size": [100, 200], "time": column})
        assert fitted.trace.times_ps is not None and fitted.trace.times_ps.tolist() == [0, 10**7], name
    # The same from files, of both libraries that write them, in every unit that holds the time.
    for unit in ("us", "ns"):
        for name, column in (("duration", since[unit]), ("timestamp", pandas.Timestamp("2020-01-01") + since[unit])):
            frame = pandas.DataFrame({"size": [100, 200], "time": column})
            frame.to_parquet(tmp_path / "pandas.parquet")
            polars.from_pandas(frame).write_parquet(tmp_path / "polars.parquet")
            for file in ("pandas", "polars"):
                times = fb.read_trace(tmp_path / f"{file}.parquet").times_ps
                assert times is not None and times.tolist() == [0, 10**7], f"{file} {name} {unit}"
    pandas.DataFrame({"size": [1, 2], "time": pandas.to_timedelta([0, 2], unit="s").as_unit("s")}).to_parquet(
        tmp_path / "seconds.parquet"
    )
    times = fb.read_trace(tmp_path / "seconds.parquet").times_ps
    assert times is not None and times.tolist() == [0, 2 * 10**12]


def test_values_that_are_no_sizes_or_times_are_refused() -> None:
    nan = float("nan")
    for table, said in (
        ({"size": [100, -200]}, "row 1 of column `size`: found -200"),
        ({"size": [100, nan]}, "row 1 of column `size`: found nan"),
        ({"size": [100, 2.5]}, "row 1 of column `size`: found 2.5"),
        ({"size": ["a", "b"]}, "column `size`"),
        ({"size": [1, 2], "time": [0.0, nan]}, "row 1 of column `time`: found nan"),
        ({"size": [1, 2], "time": ["0 us", "1 us"]}, "column `time`"),
        ({"size": [1, 2], "sa": ["a", None]}, "row 1 of column `sa`: found None"),
        ({"size": [1, 2], "time": [0.0, 2e7]}, "213 days"),
    ):
        with pytest.raises(fb.Error, match=said):
            fb.fit(table)


def test_trace_of_more_than_106_days_has_no_negative_times(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("size,time\n100,0\n100,10800000\n100,10800001\n")
    trace = fb.read_trace(path)
    assert trace.times_s is not None and trace.times_s.tolist() == [0, 10_800_000, 10_800_001]
    assert trace.gaps_s is not None and (trace.gaps_s > 0).all()
    assert fb.fit(path).keys["packet_rate"] == pytest.approx(2 / 10_800_001)


def test_a_table_of_pyarrow_is_that_of_pandas() -> None:
    columns = {"size": [100, 200, 50, 60], "time": [0.0, 1e-3, 2e-3, 4e-3], "sa": ["a", "b", "a", "c"]}
    table = pyarrow.table(columns)
    assert fb.fit(table).keys == fb.fit(table.to_pandas()).keys == fb.fit(columns).keys
    with pytest.raises(TypeError, match="a table with the column `size`, found list"):
        fb.fit([100, 200])
