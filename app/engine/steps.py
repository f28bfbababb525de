"""What goes into a core and what comes out of its steps: configuration, progress, gauges. Pure values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .block_hash import SHA256_CBOR, BlockHasher
from .cache_events import CacheEvent
from .cache_manager import COUNTED_ONCE, Counting
from .profiles import INSTANT, TimingProfile
from .request import CoreRequest

FinishReason = Literal["stop", "length"]

NextToken = Callable[[CoreRequest, int], int]
"""Supplies what is sampled: `next_token(request, position)` is the id of output token `position` (0 for the first).

It is asked once for each. Reuse never changes output, so it must not depend on anything but request and position.
"""


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """What the flags of a vLLM server decide. `num_gpu_blocks` counts the null block, which serves nobody."""

    num_gpu_blocks: int
    block_size: int
    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 256
    max_model_len: int = 32768
    enable_prefix_caching: bool = True
    profile: TimingProfile = INSTANT
    hasher: BlockHasher = SHA256_CBOR
    counting: Counting = COUNTED_ONCE
    unhashed_first: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """What one step did for one request.

    `cached_tokens` is what the lookup gave at first admission (constant from then on), `created_cache_tokens` what the
    request adds to the cache with its prompt, `scheduled_tokens` what this step computed, `computed_tokens` the sum so
    far with the reused ones. `token_id` is what was sampled at the step's end, None while the prompt isn't through.
    `output_tokens` counts the sampled ones so far, with this one. `first_scheduled` marks the end of the waiting.
    """

    request_id: str
    cached_tokens: int
    created_cache_tokens: int
    scheduled_tokens: int
    computed_tokens: int
    output_tokens: int
    token_id: int | None
    first_scheduled: bool
    finish_reason: FinishReason | None

    @property
    def finished(self) -> bool:
        """Whether the request ended with this step."""
        return self.finish_reason is not None


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step. Tokens and events become visible at `started_s + duration_ms / 1000`; events are one batch, or none."""

    started_s: float
    duration_ms: float
    events: tuple[CacheEvent, ...]
    progress: tuple[Progress, ...]
    preempted: tuple[str, ...]
    """Ids of the requests that lost their blocks in this step and wait again."""


@dataclass(frozen=True, slots=True)
class CoreGauges:
    """Where the core stood at the end of the last step: vLLM reports then, and nothing changes in between.

    The counters count since the core was made; queries, hits, prompt and generation tokens in tokens.
    """

    running: int = 0
    waiting: int = 0
    kv_cache_usage_ratio: float = 0.0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    preemptions: int = 0
    prompt_tokens: int = 0
    prompt_tokens_cached: int = 0
    generation_tokens: int = 0
