"""Scrapes as they go out: pooled over a server's engines, and each engine for itself.

Imports only `ids`, `observations`, `events` and its own package.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..events import MetricsPoint
from ..ids import Rank
from ..observations import EngineSample
from .block_cache import BlockCache
from .pool import PoolParts, pool_parts, total
from .rank_book import RankBook

SUMMED = (
    "running", "waiting", "query_tokens", "hit_tokens", "prompt_tokens", "generation_tokens", "preemptions",
    "cached_prompt_tokens", "external_query_tokens", "external_hit_tokens", "swapped",
)  # fmt: skip
"""Readings of which those of several engines are added up; the names are those of EngineSample and MetricsPoint."""
MEANS = {"ttft_ms": ("ttft_s_sum", "ttft_count"), "tpot_ms": ("tpot_s_sum", "tpot_count")}
SHARES = ("kv_usage_ratio", "lifetime_hit_ratio")
"""Readings that are never added up."""


class MetricsBook:
    """One server's readings. `max_points` of them are kept."""

    def __init__(self, max_points: int) -> None:
        self.points: deque[MetricsPoint] = deque(maxlen=max_points)
        self._before: dict[str, EngineSample] = {}
        self._exported: set[str] = set()

    @property
    def not_exported(self) -> tuple[str, ...]:
        """Fields of a point that no reading ever had; empty before the first reading."""
        names = (*SUMMED, *SHARES, *MEANS)
        return tuple(name for name in names if name not in self._exported) if self.points else ()

    def restarted(self) -> None:
        """Another process answers, maybe of another release: what it exports is found out anew."""
        self._exported.clear()

    def take(
        self, engines: tuple[EngineSample, ...], at_ms: float, ranks: Mapping[Rank, RankBook]
    ) -> tuple[MetricsPoint, dict[str, MetricsPoint]]:
        """The reading pooled, which is kept, and by the name of the engine."""
        books = {sample.engine: _book(sample, engines, ranks) for sample in engines}
        parts = {sample.engine: pool_parts(sample, _cache(books[sample.engine])) for sample in engines}
        each = {sample.engine: _with_pool(self._point((sample,), at_ms), parts[sample.engine]) for sample in engines}
        point = _with_pool(self._point(engines, at_ms), total(parts.values()))
        self.points.append(point)
        self._exported |= {name for name in (*SUMMED, *SHARES) if getattr(point, name) is not None}
        self._exported |= {
            name for name, (_, count) in MEANS.items() if any(getattr(sample, count) is not None for sample in engines)
        }
        self._before = {sample.engine: sample for sample in engines}
        return point, each

    def _point(self, engines: tuple[EngineSample, ...], at_ms: float) -> MetricsPoint:
        ttft_ms, tpot_ms = (self._mean_ms(engines, *fields) for fields in MEANS.values())
        return replace(pooled(engines, at_ms), ttft_ms=ttft_ms, tpot_ms=tpot_ms)

    def _mean_ms(self, engines: tuple[EngineSample, ...], sum_name: str, count_name: str) -> float | None:
        """Since the reading before; None where nothing was counted, or a counter fell."""
        seconds = counted = 0.0
        for sample in engines:
            before = self._before.get(sample.engine)
            now_s, now_count = getattr(sample, sum_name), getattr(sample, count_name)
            if before is None or now_s is None or now_count is None:
                continue
            more_s, more = now_s - (getattr(before, sum_name) or 0.0), now_count - (getattr(before, count_name) or 0.0)
            if more_s >= 0 and more >= 0:
                seconds += more_s
                counted += more
        return seconds / counted * 1000 if counted > 0 else None


def engine_rank(engine: str) -> Rank | None:
    """The data-parallel rank that an `engine` label names; None where it names none."""
    number = engine.partition("{")[0]
    return Rank(int(number)) if number.isascii() and number.isdecimal() and len(number) < 7 else None


def _book(sample: EngineSample, engines: tuple[EngineSample, ...], ranks: Mapping[Rank, RankBook]) -> RankBook | None:
    if len(engines) == 1 and len(ranks) == 1:
        # One engine of many behind a balancer has its own number, and one stream.
        return next(iter(ranks.values()))
    rank = engine_rank(sample.engine)
    return ranks.get(rank) if rank is not None else None


def _cache(book: RankBook | None) -> BlockCache | None:
    return None if book is None or book.stream.coverage == "none" else book.cache


def _with_pool(point: MetricsPoint, parts: PoolParts) -> MetricsPoint:
    return replace(
        point,
        pool_blocks=parts.blocks,
        held_blocks=parts.held,
        cached_blocks=parts.cached,
        unwritten_blocks=parts.unwritten,
    )


@dataclass(slots=True)
class _Sum:
    total: float | None = None

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total = value if self.total is None else self.total + value


def pooled(engines: tuple[EngineSample, ...], at_ms: float) -> MetricsPoint:
    """Readings of all engines in one: sums, and for the share of the pool the mean weighted by pool size. Hit ratios
    of several engines can't be pooled without their counts."""
    sums = {name: _Sum() for name in SUMMED}
    for engine in engines:
        for name in SUMMED:
            sums[name].add(getattr(engine, name))
    totals: dict[str, Any] = {name: summed.total for name, summed in sums.items()}
    ratio = engines[0].lifetime_hit_ratio if len(engines) == 1 else None
    return MetricsPoint(at_ms=at_ms, kv_usage_ratio=_usage(engines), lifetime_hit_ratio=ratio, **totals)


def _usage(engines: tuple[EngineSample, ...]) -> float | None:
    known = [(engine.num_gpu_blocks, engine.kv_usage_ratio) for engine in engines if engine.kv_usage_ratio is not None]
    sized = all(blocks for blocks, _ in known)
    weight = share = 0.0
    for blocks, ratio in known:
        size = float(blocks or 1) if sized else 1.0
        weight += size
        share += size * ratio
    return share / weight if weight else None
