"""The statistics, against scipy and against data with known answers."""

import random

import numpy
import pytest
from scipy import stats

from app.lab import statistics


def test_the_median_of_nine_has_the_textbook_interval() -> None:
    estimate = statistics.median([9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0])
    assert estimate is not None
    # Of nine values the second and the eighth cover the median with 1 - 2 * (1 + 9) / 512.
    assert (estimate.value, estimate.low, estimate.high) == (5.0, 2.0, 8.0)
    assert estimate.level == pytest.approx(1 - 20 / 512)


def test_five_values_say_that_they_have_no_interval_of_95_percent() -> None:
    estimate = statistics.median([1.0, 2.0, 3.0, 4.0, 100.0])
    assert estimate is not None
    assert (estimate.value, estimate.low, estimate.high, estimate.level) == (3.0, 1.0, 100.0, 0.9375)


def test_one_value_has_no_interval_and_none_has_no_median() -> None:
    one = statistics.median([4.0])
    assert one is not None and (one.value, one.low, one.high, one.level) == (4.0, None, None, None)
    assert statistics.median([]) is None


def test_the_interval_of_a_median_covers_as_often_as_it_says() -> None:
    draw = random.Random(3)
    covered, level = 0, 0.0
    for _ in range(1500):
        estimate = statistics.median([draw.gauss(0, 1) for _ in range(12)])
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        covered += estimate.low <= 0 <= estimate.high
        level = estimate.level or 0.0
    assert covered / 1500 == pytest.approx(level, abs=0.02)


def test_a_line_is_scipys() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0, 5.0], [2.1, 3.9, 6.2, 7.8, 10.1]
    fit, theirs = statistics.line(x, y), stats.linregress(x, y)
    assert fit is not None
    reach = stats.t.ppf(0.975, 3) * theirs.stderr
    assert fit.slope == pytest.approx(theirs.slope)
    assert [fit.slope_low, fit.slope_high] == pytest.approx([theirs.slope - reach, theirs.slope + reach])
    assert fit.r_squared == pytest.approx(theirs.rvalue**2)
    assert sum(fit.residuals) == pytest.approx(0, abs=1e-9)


def test_the_published_table_has_the_slopes_that_least_squares_gives() -> None:
    lengths = [0.353, 0.681, 1.337, 2.649, 3.961]
    off = statistics.line(lengths, [111.4, 168.7, 279.4, 574.0, 852.7])
    on = statistics.line(lengths, [36.7, 43.0, 45.1, 56.1, 62.8])
    assert off is not None and on is not None
    assert (round(off.slope, 1), round(off.intercept, 1)) == (207.6, 24.3)
    assert (round(on.slope, 2), round(on.intercept, 1)) == (6.94, 36.3)
    assert 0.1 < off.largest_residual_ratio < 0.15
    assert off.bend_p is None


def test_a_bend_is_told_from_scatter() -> None:
    draw = random.Random(5)
    x = [float(place) for place in (1, 2, 3, 4, 5) for _ in range(6)]
    straight = statistics.line(x, [3 * place + draw.gauss(0, 1) for place in x])
    bent = statistics.line(x, [place**2 + draw.gauss(0, 1) for place in x])
    assert straight is not None and straight.bend_p is not None and straight.bend_p > 0.05
    assert bent is not None and bent.bend_p is not None and bent.bend_p < 0.001


def test_no_line_through_one_place_or_two_points() -> None:
    assert statistics.line([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert statistics.line([1.0, 2.0], [1.0, 2.0]) is None


def test_a_comparison_covers_the_true_difference_and_repeats_with_its_seed() -> None:
    generator = numpy.random.default_rng(2)
    one, other = list(generator.normal(100, 5, 40)), list(generator.normal(60, 5, 40))
    found = statistics.compared(one, other, lambda a, b: 1 - b / a, seed=7)
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < 0.4 < found.high and found.high - found.low < 0.1
    assert found == statistics.compared(one, other, lambda a, b: 1 - b / a, seed=7)
    assert statistics.compared([], other, lambda a, b: a - b, seed=1) is None


def test_a_reduction_of_the_slope_is_found() -> None:
    x = [1.0, 2.0, 3.0, 4.0]
    on, off = [[place + 5, place + 5.1] for place in x], [[10 * place + 5, 10 * place + 5.2] for place in x]
    found = statistics.slope_reduction(x, on, off, seed=1)
    assert found is not None and found.value == pytest.approx(0.9)
    assert found.low is not None and found.high is not None and found.low <= 0.9 <= found.high


def test_a_share_has_the_exact_interval() -> None:
    found = statistics.proportion(48, 48)
    assert found is not None and found.value == 1.0
    # For all of n the lower end is the n-th root of 0.025.
    assert found.low == pytest.approx(0.025 ** (1 / 48)) and found.high == 1.0
    assert statistics.proportion(0, 0) is None


def test_outliers_are_found_and_only_they() -> None:
    assert statistics.outliers([10.0, 11.0, 10.5, 9.8, 60.0]) == [4]
    assert statistics.outliers([10.0, 10.0, 10.0, 10.0, 60.0]) == []
    assert statistics.outliers([1.0, 50.0]) == []


def test_percentiles_are_numpys() -> None:
    values = [float(value) for value in range(1, 101)]
    assert statistics.percentile(values, 99) == pytest.approx(numpy.percentile(values, 99))
    assert statistics.percentile([], 50) is None
