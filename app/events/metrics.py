"""What servers say of themselves in their metrics, over time."""

from dataclasses import dataclass
from typing import ClassVar

from .envelope import Event


@dataclass(frozen=True, slots=True)
class MetricsPoint:
    """One scrape, pooled over the server's engines. Null: not exported by this server.

    at_ms: when it was read.
    running: requests running.
    waiting: requests waiting.
    kv_usage_ratio: share of the pool held by running requests (blocks that are only cached don't count).
    query_tokens: lifetime prompt tokens looked up.
    hit_tokens: lifetime prompt tokens that hit.
    prompt_tokens: lifetime prompt tokens.
    generation_tokens: lifetime tokens generated.
    preemptions: lifetime preemptions.
    cached_prompt_tokens: lifetime prompt tokens taken from any cache.
    external_query_tokens: lifetime prompt tokens looked up in a KV connector; never to be added to query_tokens.
    external_hit_tokens: lifetime prompt tokens that a KV connector gave.
    lifetime_hit_ratio: the gauge of servers that count no tokens; never mixed with counters.
    ttft_ms: mean time to first token since the point before, by the server's histogram.
    tpot_ms: mean time per output token since the point before, likewise.
    swapped: requests swapped out.
    pool_blocks: blocks of the pool that can hold anything (the null block can't); basis counter.
    held_blocks: blocks that running requests hold, cached or not; basis counter (the usage gauge).
    cached_blocks: blocks that nobody holds and that can be reused; basis inferred (the mirror), a lower bound while
        coverage isn't complete.
    unwritten_blocks: the rest of the pool: never written, or freed without a hash; basis inferred.
    """

    at_ms: float
    running: float | None = None
    waiting: float | None = None
    kv_usage_ratio: float | None = None
    query_tokens: float | None = None
    hit_tokens: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    preemptions: float | None = None
    cached_prompt_tokens: float | None = None
    external_query_tokens: float | None = None
    external_hit_tokens: float | None = None
    lifetime_hit_ratio: float | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    swapped: float | None = None
    pool_blocks: int | None = None
    held_blocks: int | None = None
    cached_blocks: int | None = None
    unwritten_blocks: int | None = None


@dataclass(frozen=True, slots=True)
class MetricsSampledEvent(Event):
    """The server's metrics were read.

    point: the reading, pooled over the server's engines.
    engines: the same for each `engine` label.
    """

    type: ClassVar[str] = "metrics.sampled"
    point: MetricsPoint
    engines: dict[str, MetricsPoint]
