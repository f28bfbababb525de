"""What several experiments conclude in the same way. Pure."""

from collections.abc import Iterable, Sequence

from .findings import Figure, Series
from .sample import Sample
from .statistics import Estimate, median, outliers


def times(samples: Iterable[Sample], arm: str, x: float | None = None, *, total: bool = False) -> list[float]:
    """First-token times (or those of whole answers) of an arm, at one x or at all."""
    found = [s for s in samples if s.arm == arm and s.counts and (x is None or s.x == x)]
    return [t for s in found if (t := s.total_ms if total else s.ttft_ms) is not None]


def time_at(samples: Iterable[Sample], arm: str, x: float | None = None, *, total: bool = False) -> float | None:
    """Their median."""
    estimate = median(times(samples, arm, x, total=total))
    return estimate.value if estimate else None


def estimated(key: str, text: str, estimate: Estimate | None, unit: str, basis: str = "clock") -> Figure:
    """A figure of an estimate."""
    if estimate is None:
        return Figure(key, text, None, unit, basis)
    return Figure(key, text, estimate.value, unit, basis, estimate.low, estimate.high, estimate.level, estimate.method)


def cached_sum(samples: Iterable[Sample], arm: str) -> tuple[int, int]:
    """(cached, prompt) tokens of an arm, of the requests where both are known."""
    known = [s for s in samples if s.arm == arm and s.counts and s.cached_tokens is not None]
    return sum(s.cached_tokens or 0 for s in known), sum(s.prompt_tokens or 0 for s in known)


def exactness(samples: Sequence[Sample]) -> tuple[Figure, ...]:
    """How many requests reused exactly what block accounting says, of those where both are known."""
    both = [s for s in samples if s.expected_cached is not None and s.cached_tokens is not None and s.error is None]
    if not both:
        return ()
    equal = sum(s.cached_tokens == s.expected_cached for s in both)
    text = "requests whose cached tokens equal block accounting"
    return (Figure("accounting_exact", text, equal, "requests", "usage", expected=len(both)),)


def medians(name: str, samples: Sequence[Sample], arm: str, xs: Sequence[float], *, total: bool = False) -> Series:
    """A line of medians with their intervals."""
    estimates = [median(times(samples, arm, x, total=total)) for x in xs]
    return Series(
        name, list(xs), [e.value if e else None for e in estimates], "both",
        [e.low if e else None for e in estimates], [e.high if e else None for e in estimates],
    )  # fmt: skip


def cloud(name: str, samples: Sequence[Sample], arm: str) -> Series:
    """Every single measurement."""
    found = [s for s in samples if s.arm == arm and s.counts and s.ttft_ms is not None]
    return Series(name, [s.x for s in found], [s.ttft_ms for s in found], "points")


def outlying(samples: Sequence[Sample]) -> list[Sample]:
    """Samples whose first-token time lies far from the others of their arm and x."""
    groups: dict[tuple[str, str, float | None], list[Sample]] = {}
    for sample in samples:
        if sample.counts and sample.ttft_ms is not None:
            groups.setdefault((sample.arm, sample.label, sample.x), []).append(sample)
    return [group[place] for group in groups.values() for place in outliers([s.ttft_ms or 0.0 for s in group])]
