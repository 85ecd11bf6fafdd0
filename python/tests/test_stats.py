"""Statistics against scipy and against cases whose results are known."""

import math
import random

import pytest

import forebay as fb
from forebay import stats
from forebay.stats import Until


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 29, 100, 1000, 1001, 5000, 10**6])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_student_t_equals_that_of_scipy(freedom: int, confidence: float) -> None:
    t = pytest.importorskip("scipy.stats").t
    expected = t.ppf(0.5 + 0.5 * confidence, freedom)
    assert stats.student_t(confidence, freedom) == pytest.approx(expected, rel=1e-9)


def test_interval_equals_that_of_scipy() -> None:
    scipy = pytest.importorskip("scipy.stats")
    draw = random.Random(1)
    values = [draw.gauss(10, 3) for _ in range(17)]
    found = stats.estimate(values, 0.99)
    low, high = scipy.t.interval(0.99, 16, loc=sum(values) / 17, scale=scipy.sem(values))
    assert found.interval == pytest.approx((low, high), rel=1e-10)
    assert found.n == 17 and found.mean in found


def test_interval_covers_the_mean_as_often_as_it_claims() -> None:
    draw = random.Random(2)
    covered = sum(0.0 in stats.estimate([draw.gauss(0, 1) for _ in range(5)], 0.9) for _ in range(4000))
    # Four standard deviations of the binomial distribution around 90 %.
    assert abs(covered / 4000 - 0.9) < 4 * math.sqrt(0.09 / 4000)


def test_equal_values_have_no_width_and_one_value_an_infinite_one() -> None:
    assert stats.estimate([0.1] * 7).half_width == 0
    assert stats.estimate([0.1] * 7).relative == 0
    assert stats.estimate([3]).half_width == math.inf
    with pytest.raises(ValueError, match="at least one value"):
        stats.estimate([])


def test_until_reads_its_text_and_refuses_another() -> None:
    assert Until.parse("until 1 %") == Until(0.01)
    assert Until.parse("until 0.02") == Until(0.02)
    assert Until.parse("until 5% of cpu.load") == Until(0.05, "cpu.load")
    assert str(Until.parse("until 5 % of cpu.load")) == "until 5 % of cpu.load"
    for text in ("", "1 %", "until", "until -1 %", "until x"):
        with pytest.raises(ValueError):
            Until.parse(text)
    with pytest.raises(ValueError, match="least"):
        Until(least=1)


def test_sequential_stopping_ends_at_the_first_interval_that_is_narrow_enough() -> None:
    draw = random.Random(3)
    values = [draw.gauss(100, 5) for _ in range(1000)]
    until = Until(0.01)
    found = stats.sequential(lambda number: values[number], float, until)
    n = len(found)
    assert found == values[:n] and until.least < n < 1000
    assert stats.estimate(found).relative <= 0.01
    for fewer in range(until.least, n):
        assert stats.estimate(values[:fewer]).relative > 0.01


def test_sequential_stopping_has_a_least_and_a_most() -> None:
    same = stats.sequential(lambda number: 1.0, float, Until(0.01, least=3))
    assert same == [1.0] * 3
    wild = Until(0.01, most=7)
    values = stats.sequential(lambda number: (-1.0) ** number, float, wild)
    assert len(values) == 7 and not wild.converged(values)


def test_paired_differences_equal_those_of_scipy_and_are_narrower_with_common_random_numbers() -> None:
    scipy = pytest.importorskip("scipy.stats")
    draw = random.Random(4)
    common = [draw.gauss(50, 10) for _ in range(12)]
    a = [one + draw.gauss(0, 0.5) for one in common]
    b = [one + 1 + draw.gauss(0, 0.5) for one in common]
    found = stats.paired(a, b, "x", 0.95)
    interval = scipy.ttest_rel(b, a).confidence_interval(0.95)
    assert found.interval == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert found.significant and found.correlation > 0.99
    assert found.half_width < found.a.half_width / 5
    with pytest.raises(ValueError, match="same length"):
        stats.paired([1, 2], [1, 2, 3])


def _mser(series: list[float], batch: int) -> int:
    """MSER as the definition says it, slowly."""
    means = [sum(series[at : at + batch]) / batch for at in range(0, len(series) // batch * batch, batch)]
    found = []
    for cut in range(len(means) - 5):
        rest = means[cut:]
        mean = sum(rest) / len(rest)
        found.append((sum((one - mean) ** 2 for one in rest) / len(rest) ** 2, cut))
    return min(found)[1] * batch


@pytest.mark.parametrize("seed", range(20))
def test_warm_up_is_that_of_the_definition(seed: int) -> None:
    draw = random.Random(seed)
    series = [10 * math.exp(-at / 60) + draw.gauss(5, 1) for at in range(600)]
    found = stats.warm_up(series)
    assert found.packets == _mser(series, 5)
    assert 50 < found.packets < 400 and found.sufficient
    assert abs(found.mean - 5) < abs(found.whole - 5)


def test_warm_up_of_a_series_that_never_settles_is_insufficient() -> None:
    assert not stats.warm_up([float(at < 900) + at / 1e6 for at in range(1000)]).sufficient
    with pytest.raises(ValueError, match="at least 50 observations"):
        stats.warm_up([1.0] * 49)


def test_until_is_not_satisfied_by_a_figure_that_was_never_seen() -> None:
    until = stats.Until(relative=0.1, least=3, most=10)
    assert not until.converged([0.0, 0.0, 0.0]) and not until.enough([0.0, 0.0, 0.0])
    assert until.converged([5.0, 5.0, 5.0])
    with pytest.raises(ValueError, match="confidence"):
        stats.Until(confidence=95)


def test_replications_until_say_whether_they_converged_and_keep_their_confidence(host: fb.Scenario) -> None:
    few = host.set("traffic.packets", 500)
    runs = few.simulate(replications=fb.Until(relative=1e-9, most=6))
    assert (len(runs), runs.converged) == (6, False) and "not converged" in repr(runs)
    runs = few.simulate(replications=fb.Until(relative=0.5, confidence=0.99))
    assert runs.converged is True and runs.estimate("throughput_bps").confidence == 0.99
    assert all(one.confidence == 0.99 for one in runs.estimates.values())
    values = runs.values("throughput_bps")
    assert runs.estimate("throughput_bps") == stats.estimate(values, 0.99)
    assert few.simulate(replications=2).converged is None


def test_differences_until_say_whether_they_converged(host: fb.Scenario) -> None:
    few = host.set("traffic.packets", 500)
    designs = few, few.set("seed", 1)
    until = fb.Until(relative=1e-9, figure="total_latency.mean_s", most=6)
    found = fb.compare(few, few.set("bus.width", 8), replications=until)
    assert (found.n, found.converged) == (6, False) and "not converged" in str(found)
    assert fb.compare(*designs, replications=fb.Until(relative=0.5)).converged is True
    assert fb.compare(*designs, replications=2).converged is None
    # Runs are as many as they are, and may be too few.
    runs = few.simulate(replications=3)
    mixed = fb.compare(runs, few.set("bus.width", 8), replications=until)
    assert (mixed.n, mixed.converged) == (3, False)
