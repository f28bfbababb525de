"""Medians, intervals, lines and outliers, by scipy. Pure.

An interval has its own level with it: of five values no exact 95 % interval of the median exists, and the one from the
smallest to the largest (93.75 %) is said to be what it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from scipy import stats

LEVEL = 0.95
RESAMPLES = 2000
OUTLYING = 3.5
"""Modified z-scores beyond this are outliers (Iglewicz and Hoaglin)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an interval that has it within. `level` is what the interval covers, or what it was made for."""

    value: float
    low: float | None
    high: float | None
    level: float | None
    method: str
    count: int


def median(values: Sequence[float]) -> Estimate | None:
    """With the exact interval of order statistics; None of nothing.

    The narrowest symmetric pair of values that covers the median with at least `LEVEL`; where there is none, the
    smallest and the largest with the level that they have. One value has no interval.
    """
    if not values:
        return None
    ordered = numpy.sort(numpy.asarray(values, dtype=float))
    count = len(ordered)
    middle = float(numpy.median(ordered))
    if count == 1:
        return Estimate(middle, None, None, None, "one value", 1)
    chosen = 1
    for rank in range(1, count // 2 + 1):
        if _covered(rank, count) < LEVEL:
            break
        chosen = rank
    return Estimate(
        middle,
        float(ordered[chosen - 1]),
        float(ordered[count - chosen]),
        _covered(chosen, count),
        "exact, order statistics",
        count,
    )


def _covered(rank: int, count: int) -> float:
    """How surely the median lies between the `rank`-th smallest and the `rank`-th largest."""
    return float(1 - 2 * stats.binom.cdf(rank - 1, count, 0.5))


def compared(
    first: Sequence[float], second: Sequence[float], of: Callable[[float, float], float], seed: int
) -> Estimate | None:
    """`of(median of first, median of second)`, with a percentile bootstrap interval."""
    if not first or not second:
        return None
    value = of(float(numpy.median(first)), float(numpy.median(second)))
    if min(len(first), len(second)) < 2:
        return Estimate(value, None, None, None, "one value", min(len(first), len(second)))

    def statistic(one: Any, other: Any, axis: int = -1) -> Any:
        return numpy.vectorize(of)(numpy.median(one, axis=axis), numpy.median(other, axis=axis))

    interval = stats.bootstrap(
        (numpy.asarray(first, float), numpy.asarray(second, float)), statistic, vectorized=True,
        n_resamples=RESAMPLES, confidence_level=LEVEL, method="percentile", rng=numpy.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    low, high = min(float(interval.low), value), max(float(interval.high), value)
    return Estimate(value, low, high, LEVEL, f"bootstrap, {RESAMPLES} draws", min(len(first), len(second)))


def proportion(successes: int, trials: int) -> Estimate | None:
    """A share with the exact interval of Clopper and Pearson."""
    if not trials:
        return None
    interval = stats.binomtest(successes, trials).proportion_ci(LEVEL, method="exact")
    return Estimate(successes / trials, float(interval.low), float(interval.high), LEVEL, "Clopper-Pearson", trials)


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope * x by least squares; 95 % intervals by Student's t.

    bend_p: how likely a bend as large as the one seen is where the truth is a straight line (lack-of-fit F test
    against the scatter of repeats); None without repeats.
    """

    slope: float
    slope_low: float
    slope_high: float
    intercept: float
    intercept_low: float
    intercept_high: float
    r_squared: float
    residuals: tuple[float, ...]
    largest_residual_ratio: float
    bend_p: float | None
    count: int


def line(x: Sequence[float], y: Sequence[float]) -> Line | None:
    """None of fewer than three points or a single x."""
    xs, ys = numpy.asarray(x, dtype=float), numpy.asarray(y, dtype=float)
    if len(xs) < 3 or numpy.ptp(xs) == 0:
        return None
    fit = stats.linregress(xs, ys)
    reach = float(stats.t.ppf((1 + LEVEL) / 2, len(xs) - 2))
    predicted = fit.intercept + fit.slope * xs
    residuals = ys - predicted
    largest = float(numpy.max(numpy.abs(residuals) / numpy.maximum(numpy.abs(ys), 1e-9)))
    return Line(
        float(fit.slope), float(fit.slope - reach * fit.stderr), float(fit.slope + reach * fit.stderr),
        float(fit.intercept), float(fit.intercept - reach * fit.intercept_stderr),
        float(fit.intercept + reach * fit.intercept_stderr),
        float(fit.rvalue**2), tuple(map(float, residuals)), largest, _bend(xs, ys, predicted), len(xs),
    )  # fmt: skip


def _bend(xs: Any, ys: Any, predicted: Any) -> float | None:
    places, where = numpy.unique(xs, return_inverse=True)
    scatter_df, bend_df = len(xs) - len(places), len(places) - 2
    if scatter_df < 1 or bend_df < 1:
        return None
    means = numpy.array([ys[where == index].mean() for index in range(len(places))])[where]
    scatter = float(numpy.sum((ys - means) ** 2)) / scatter_df
    bend = float(numpy.sum((means - predicted) ** 2)) / bend_df
    return None if scatter == 0 else float(stats.f.sf(bend / scatter, bend_df, scatter_df))


def slope_reduction(
    x: Sequence[float], on: Sequence[Sequence[float]], off: Sequence[Sequence[float]], seed: int
) -> Estimate | None:
    """1 - slope(on) / slope(off) over the medians at each x; the bootstrap draws within each x."""
    if len(x) < 3 or not all(on) or not all(off):
        return None
    random = numpy.random.default_rng(seed)
    xs = numpy.asarray(x, dtype=float)

    def slope(groups: Sequence[Sequence[float]], drawn: bool) -> float:
        medians = [numpy.median(random.choice(group, len(group)) if drawn else group) for group in groups]
        return float(numpy.polyfit(xs, medians, 1)[0])

    value = 1 - slope(on, False) / slope(off, False)
    draws = [1 - slope(on, True) / slope(off, True) for _ in range(RESAMPLES // 4)]
    low, high = numpy.percentile(draws, [100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2])
    return Estimate(value, min(float(low), value), max(float(high), value), LEVEL, "bootstrap within lengths", len(x))


def outliers(values: Sequence[float]) -> list[int]:
    """Places of values far from the others, by the median absolute deviation. They are shown, and stay in."""
    if len(values) < 4:
        return []
    array = numpy.asarray(values, dtype=float)
    spread = float(stats.median_abs_deviation(array, scale="normal"))
    if spread == 0:
        return []
    return [int(place) for place in numpy.flatnonzero(numpy.abs(array - numpy.median(array)) / spread > OUTLYING)]


def percentile(values: Sequence[float], percent: float) -> float | None:
    """None of nothing."""
    return float(numpy.percentile(numpy.asarray(values, dtype=float), percent)) if values else None
