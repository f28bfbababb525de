"""What a server says of itself, in its answers and its metrics."""

from dataclasses import dataclass
from typing import Literal

from ..ids import Rank, RequestId, ServerId


@dataclass(frozen=True, slots=True)
class ServerProbed:
    """What a server says of itself. A None is "didn't say"."""

    server: ServerId
    state: Literal["up", "down", "not_vllm", "unauthorized"]
    message: str | None
    """What is wrong and what to do; None while all is well."""
    at_s: float
    version: str | None = None
    models: tuple[str, ...] = ()
    max_model_len: int | None = None
    embedded: bool = False
    """It names itself as PrefixScope's embedded engine in `/version`."""
    profile: str | None = None
    """The embedded engine's timing profile."""
    adapters: tuple[str, ...] = ()
    """Those of `models` that are LoRA adapters of another."""
    adapter_roots: tuple[str | None, ...] = ()
    """Where the weights of each are from; None where the server doesn't say."""


@dataclass(frozen=True, slots=True)
class AdapterLoaded:
    """The server was told through the dashboard to load an adapter, and did."""

    server: ServerId
    name: str
    at_s: float


@dataclass(frozen=True, slots=True)
class EngineSample:
    """The cache-related readings of one `engine` label. A None is "not exported by this server"."""

    engine: str
    model_name: str | None = None
    running: float | None = None
    waiting: float | None = None
    kv_usage_ratio: float | None = None
    """0 to 1: blocks held by running requests only."""
    query_tokens: float | None = None
    hit_tokens: float | None = None
    prompt_tokens: float | None = None
    cached_prompt_tokens: float | None = None
    generation_tokens: float | None = None
    preemptions: float | None = None
    block_size: int | None = None
    num_gpu_blocks: int | None = None
    prefix_caching: bool | None = None
    hash_algo: str | None = None
    lifetime_hit_ratio: float | None = None
    """The gauge of servers that count no tokens (`gpu_prefix_cache_hit_rate`); never mixed with counters."""
    counters_created_s: float | None = None
    """When the query counter was made, in seconds since 1970: a later moment is another process."""
    external_query_tokens: float | None = None
    external_hit_tokens: float | None = None
    """Of a KV connector. Older servers look the whole prompt up there, later ones what missed locally: these are never
    added to the local counters."""
    ttft_s_sum: float | None = None
    ttft_count: float | None = None
    tpot_s_sum: float | None = None
    tpot_count: float | None = None
    swapped: float | None = None
    asleep: bool | None = None
    """Whether it sleeps (`engine_sleep_state`): its cache was emptied then."""
    block_bytes: int | None = None
    """Memory of a block on each GPU, from the size of the cache and its number of blocks."""


@dataclass(frozen=True, slots=True)
class MetricsSampled:
    """One good scrape of `/metrics`."""

    server: ServerId
    engines: tuple[EngineSample, ...]
    at_s: float
    malformed_lines: int = 0


@dataclass(frozen=True, slots=True)
class MetricsFailed:
    """A scrape that gave no reading. The last good values stay, with their age."""

    server: ServerId
    reason: str
    status: int | None
    at_s: float


@dataclass(frozen=True, slots=True)
class TtftFitted:
    """A line was fitted through a server's first-token times; the fields are those of `model.ttft.TtftFit`.

    The dashboard's own arithmetic, made outside of the ledger because it takes a library and a while.
    """

    server: ServerId
    fixed_ms: float
    token_ms: float
    token_low_ms: float
    token_high_ms: float
    early_ms: float
    late_ms: float
    fewest_tokens: int
    most_tokens: int
    samples: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that could not be decoded. Counted and shown; nothing else follows from it."""

    server: ServerId
    source: Literal["kv", "metrics", "sse", "tokenize"]
    detail: str
    at_s: float
    rank: Rank | None = None
    request: RequestId | None = None
