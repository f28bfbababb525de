"""Servers as the dashboard knows them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..ids import ServerId
from .envelope import Event
from .sentences import Notice
from .streams import StreamHealth


@dataclass(frozen=True, slots=True)
class ForecastScore:
    """How often forecasts of one server's cached tokens were right, and what was learned of it.

    scored: requests whose forecast missed no history and whose outcome the server reported.
    right: those of them whose cached tokens were forecast to the token.
    wrong_in_a_row: forecasts wrong since the last right one.
    dropped_blocks: matched blocks that this server doesn't reuse at the end of a hit; 1 with EAGLE-type speculation.
    unit_tokens: hits are multiples of this; more than a block with some hybrid models.
    message: says that three forecasts or more were wrong in a row; null while they weren't.
    banner: three forecasts or more in a row were wrong; stays until one is right.
    last_drift_tokens: the last one's forecast less its outcome.
    drift_tokens: the same, summed over all scored.
    """

    scored: int
    right: int
    wrong_in_a_row: int
    dropped_blocks: int
    unit_tokens: int
    message: str | None = None
    banner: bool = False
    last_drift_tokens: int | None = None
    drift_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One server as the dashboard knows it.

    id: base URL.
    state: up, down, not_vllm (something else answers there), unauthorized, or unknown (not asked yet).
    message: what is wrong and what to do; null while all is well.
    version: vLLM's version.
    models: names it serves.
    adapters: those of them that are LoRA adapters.
    max_model_len: longest context in tokens.
    embedded: it is PrefixScope's embedded engine: exact block accounting, modelled timing.
    profile: the embedded engine's timing profile.
    block_size: tokens a block.
    num_gpu_blocks: blocks in the pool, the null block included.
    prefix_caching: whether prefix caching is on.
    usage_details: whether responses say their cached tokens; null until one was seen.
    metrics_state: ok, failed, or unknown (not read yet).
    metrics_message: why metrics can't be read, and what to do.
    metrics_at_ms: when they were last read.
    malformed_metrics: lines or pages of metrics that couldn't be read.
    malformed_sse: frames of proxied streams that couldn't be read, which were passed on all the same; and prompts whose
        tokens couldn't be asked for.
    streams: health of the KV-event stream of each rank.
    forecasts: forecasts against outcomes; null before the first outcome.
    shared_blocks: blocks not stored twice: for each resident block, the kept requests that hold it, but one; null
        without KV events.
    block_bytes: memory of a block on each GPU; null where the server doesn't say.
    shared_bytes: shared_blocks in memory; null where one of the two isn't known.
    saved_tokens: prompt tokens that proxied requests didn't have to compute since the dashboard began, by their usage;
        null before the first that said so.
    ranks_expected: data-parallel ranks whose events are looked for; null until known.
    ranks_heard: how many of them sent a batch and are connected.
    asleep: whether the server sleeps; null where it doesn't say.
    not_exported: fields of MetricsPoint that this server's /metrics doesn't have, "not exported by this server";
        empty before the first reading.
    notices: counter_contradicts_latency (params hit_tokens, query_tokens, cold_ttft_ms, warm_ttft_ms, ttft_ratio),
        clear_storm (clears, seconds, cached_tokens), prefix_below_block (shared_tokens, block_size),
        no_shared_prefix (block_size), tries_counted (query_tokens, prompt_tokens), exporters_alternate,
        connector_silent (external_hit_tokens), unit_is_no_block (scheduler_unit, block_size), adapter_reloaded
        (adapter, at, at_ms).
    """

    id: ServerId
    state: Literal["up", "down", "not_vllm", "unauthorized", "unknown"] = "unknown"
    message: str | None = None
    version: str | None = None
    models: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    max_model_len: int | None = None
    embedded: bool = False
    profile: str | None = None
    block_size: int | None = None
    num_gpu_blocks: int | None = None
    prefix_caching: bool | None = None
    usage_details: bool | None = None
    metrics_state: Literal["ok", "failed", "unknown"] = "unknown"
    metrics_message: str | None = None
    metrics_at_ms: float | None = None
    malformed_metrics: int = 0
    malformed_sse: int = 0
    streams: tuple[StreamHealth, ...] = ()
    forecasts: ForecastScore | None = None
    shared_blocks: int | None = None
    block_bytes: int | None = None
    shared_bytes: int | None = None
    saved_tokens: int | None = None
    ranks_expected: int | None = None
    ranks_heard: int = 0
    asleep: bool | None = None
    not_exported: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerChanged(Event):
    """What is known of a server changed.

    server: the server.
    """

    type: ClassVar[str] = "server.changed"
    server: ServerRecord
