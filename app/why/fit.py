"""A line through a server's first-token times against computed tokens, with intervals. Least squares by numpy.

numpy is loaded by the first fit, and only then: a dashboard without it shows no such figure, and says why. The
intervals come from drawing the samples again, many times: what a few outliers can do to the line is in them.
"""

from collections.abc import Sequence
from importlib.util import find_spec

from ..model.ttft import TtftFit, TtftSample

FEWEST_SAMPLES = 8
FEWEST_LENGTHS = 4
"""Different numbers of computed tokens, in steps of `STEP_TOKENS`, without which samples aren't spread out."""
STEP_TOKENS = 16
LEAST_SPREAD = 2.0
"""The longest sample is so many times the shortest."""
DRAWS = 200
SEED = 1
NO_NUMPY = "No line can be fitted without numpy: pip install numpy."


def missing(samples: Sequence[TtftSample]) -> str | None:
    """What a fit still lacks, in a sentence; None where nothing does."""
    if find_spec("numpy") is None:
        return NO_NUMPY
    if len(samples) < FEWEST_SAMPLES:
        return f"A fit needs {FEWEST_SAMPLES} requests that didn't wait; there are {len(samples)}."
    tokens = [sample.computed_tokens for sample in samples]
    lengths = {count // STEP_TOKENS for count in tokens}
    if len(lengths) < FEWEST_LENGTHS or max(tokens) < LEAST_SPREAD * max(min(tokens), STEP_TOKENS):
        return "The requests so far computed nearly the same number of tokens: a line needs short and long ones."
    return None


def fit_line(samples: Sequence[TtftSample]) -> TtftFit | None:
    """The line; None where `missing` says why there is none."""
    if missing(samples) is not None:
        return None
    import numpy

    tokens = numpy.array([sample.computed_tokens for sample in samples], dtype=float)
    times = numpy.array([sample.ttft_ms for sample in samples])
    slope, fixed = numpy.polyfit(tokens, times, 1)
    random = numpy.random.default_rng(SEED)
    slopes: list[float] = []
    for _ in range(DRAWS):
        drawn = random.integers(0, len(tokens), len(tokens))
        if numpy.ptp(tokens[drawn]) > 0:
            slopes.append(float(numpy.polyfit(tokens[drawn], times[drawn], 1)[0]))
    low, high = numpy.percentile(slopes, [2.5, 97.5])
    early, late = numpy.percentile(times - (fixed + slope * tokens), [10, 90])
    return TtftFit(
        fixed_ms=float(fixed),
        token_ms=float(slope),
        token_low_ms=float(min(low, slope)),
        token_high_ms=float(max(high, slope)),
        early_ms=float(early),
        late_ms=float(late),
        fewest_tokens=int(tokens.min()),
        most_tokens=int(tokens.max()),
        samples=len(samples),
    )
