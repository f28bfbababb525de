"""The embedded engine's heart: requests in, steps out. Pure: time is an argument, nothing here does IO.

A step is what vLLM does in one forward pass: schedule running and waiting requests within the token budget, allocate
and cache their blocks, compute, sample. `EngineCore.step` does all of it at once and says how long it would take;
whoever drives the core lets that time pass before it shows the step's tokens and events to anyone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .block_hash import BlockDigest
from .profiles import INSTANT, TimingProfile

FinishReason = Literal["stop", "length", "abort"]

NextToken = Callable[["CoreRequest", int], int]
"""Supplies what is sampled: `next_token(request, position)` is the id of output token `position` (0 for the first).

It must be deterministic: the same request and position give the same id, also after a preemption.
"""


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """What the flags of a vLLM server decide. `num_gpu_blocks` counts the null block, which serves nobody."""

    num_gpu_blocks: int
    block_size: int
    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256
    max_model_len: int = 32768
    enable_prefix_caching: bool = True
    profile: TimingProfile = INSTANT


@dataclass(frozen=True, slots=True)
class CoreRequest:
    """One request as the engine sees it: token ids.

    `full_report` is `kv_cache_report_mode: full`. `skip_reading_cache` (prompt_logprobs) looks nothing up but stores.
    A token of `stop_token_ids` ends the request once it is sampled; it counts as an output token.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    cache_salt: str | None = None
    lora_name: str | None = None
    lora_path: str | None = None
    session_id: str | None = None
    full_report: bool = False
    skip_reading_cache: bool = False
    stop_token_ids: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class BlocksStored:
    """New cached blocks, or (full report) reused ones; `extra_keys` has one entry a block, as events show them.

    Digests are the whole 32 bytes; `block_hash.low_64_bits` is what goes on the wire by default.
    """

    block_hashes: tuple[BlockDigest, ...]
    parent_block_hash: BlockDigest | None
    token_ids: tuple[int, ...]
    block_size: int
    lora_name: str | None
    extra_keys: tuple[tuple[str, ...] | None, ...]
    session_id: str | None


@dataclass(frozen=True, slots=True)
class BlocksRemoved:
    """One evicted block; vLLM sends one event a block. Another copy of the hash may live on."""

    block_hashes: tuple[BlockDigest, ...]


@dataclass(frozen=True, slots=True)
class BlocksCleared:
    """The cache was reset; comes out with the next step."""


CacheEvent: TypeAlias = BlocksStored | BlocksRemoved | BlocksCleared


@dataclass(frozen=True, slots=True)
class Progress:
    """What one step did for one request.

    `cached_tokens` is what the lookup gave at first admission (constant from then on), `scheduled_tokens` what this
    step computed, `computed_tokens` the sum so far with the reused ones. `token_id` is what was sampled at the step's
    end, None while the prompt isn't through. `output_tokens` counts the sampled ones so far, with this one.
    """

    request_id: str
    cached_tokens: int
    scheduled_tokens: int
    computed_tokens: int
    output_tokens: int
    token_id: int | None
    first_scheduled: bool
    finish_reason: FinishReason | None

    @property
    def finished(self) -> bool:
        """Whether the request ended with this step; its blocks are free again."""
        return self.finish_reason is not None


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step. Tokens and events become visible at `started_s + duration_ms / 1000`."""

    started_s: float
    duration_ms: float
    events: tuple[CacheEvent, ...]
    progress: tuple[Progress, ...]
    preempted: tuple[str, ...]
    """Ids of the requests that lost their blocks in this step and wait again."""


@dataclass(frozen=True, slots=True)
class CoreGauges:
    """Where the core stands now, and its counters since it was made (units: tokens for queries and hits)."""

    running: int
    waiting: int
    kv_cache_usage_ratio: float
    prefix_cache_queries: int
    prefix_cache_hits: int
    preemptions: int
    prompt_tokens: int
    prompt_tokens_cached: int
    generation_tokens: int


class EngineCore:
    """One engine: `add_request`, then `step` until it gives None. Not thread-safe; one owner drives it."""

    def __init__(self, config: CoreConfig, next_token: NextToken) -> None:
        self.config = config
        self._next_token = next_token

    def add_request(self, request: CoreRequest, now_s: float) -> None:
        """Queues a request. Raises ValueError for an empty prompt, a prompt that can never fit, or a known id."""
        raise NotImplementedError

    def abort_request(self, request_id: str, now_s: float) -> bool:
        """Ends a request and frees its blocks; False if it is not known (any more)."""
        raise NotImplementedError

    def has_work(self) -> bool:
        """Whether `step` would give a result: a request is queued or running, or events wait to be sent."""
        raise NotImplementedError

    def step(self, now_s: float) -> StepResult | None:
        """Runs one step that begins at `now_s`; None if there is nothing to do."""
        raise NotImplementedError

    def reset_prefix_cache(self) -> bool:
        """Empties the prefix cache; False, and no effect, while blocks are in use."""
        raise NotImplementedError

    def gauges(self) -> CoreGauges:
        """What `/metrics` shows."""
        raise NotImplementedError
