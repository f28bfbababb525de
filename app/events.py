"""Frozen dashboard events going out: the contract with the browser and with other programs.

`EVENTS.md` is generated from these classes: each docstring's `name: meaning` lines describe its fields, and a test
checks that none is left out. Adding an optional field keeps `PROTOCOL_VERSION`; changing a meaning raises it.
None goes out as null and always means "unknown" or "not applicable", never 0. Hashes are text (`ids.hash_text`).
Shares are ratios, 0 to 1. `at_ms` is in milliseconds of the Unix epoch; durations come from a monotonic clock.
What a busy server makes thousands of a second are msgspec structs, frozen as the dataclasses, and made in an eighth of
the time. Imports only `ids`, `observations` and msgspec.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import msgspec

from .ids import GroupIdx, Rank, RequestId, ServerId
from .observations import Origin, Outcome

PROTOCOL_VERSION = 1

Basis = Literal["engine", "counter", "usage", "clock", "inferred", "modelled"]
"""Where a figure comes from: the server said so for this request (engine), its counters, the response's usage, the
dashboard's own clock, hashes that the dashboard matched (inferred), or the embedded engine's timing (modelled)."""

CellState = Literal["reused", "computed", "partial", "decode", "pending"]

# --- records: what requests, servers and rates look like wherever they appear -----------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence on what happened to a request's prefix, and the numbers in it.

    code: which of the closed list of causes it is.
    text: the sentence, in English.
    detail: a second, smaller sentence: why, or what to change; null where there is nothing to add.
    params: the numbers and words of the sentence by name, for other languages.
    translations: [text, detail] by language code: zh (Simplified Chinese).
    others: codes of causes that hold as well; `code`, or params.loss of a part that missed, is the first that explains
        the loss.
    basis: where the cause is read from; null where nothing is known of it.
    anchor: name of its explanation: why-<code>.
    """

    code: str
    text: str
    detail: str | None = None
    params: dict[str, int | float | str | None] = field(default_factory=dict)
    translations: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    basis: Basis | None = None
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know of a server or of one of its streams, with its numbers.

    code: which of the closed list it is (see where it stands).
    text: a sentence or two, in English: what is wrong, and what to do.
    params: the numbers and words of the text by name, for other languages.
    """

    code: str
    text: str
    params: dict[str, int | float | str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FirstTokenParts:
    """What a time to first token is made of. The parts that aren't null add up to ttft_ms.

    front_ms: to the response's head, by the dashboard's clock: network, and what the server does before it queues the
        request (its template, its tokenizer); null where that can't be told from what follows.
    queue_ms: in the server's waiting queue, by its own clock.
    prefill_ms: from there to the first token, by the server's own clock: prefill, and the first decode with it.
    rest_ms: what none of these names.
    """

    front_ms: float | None = None
    queue_ms: float | None = None
    prefill_ms: float | None = None
    rest_ms: float | None = None


@dataclass(frozen=True, slots=True)
class TokenGaps:
    """Pauses between arrivals of content within one response. Tokens that come together are one arrival.

    upper_ms: upper edges, each included, in milliseconds.
    counts: pauses up to each edge and above the one before; one more count for those above the last edge.
    """

    upper_ms: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One proxied request. Flat; null where unknown.

    id: issued by the dashboard.
    server: base URL of the server it went to.
    rank: data-parallel engine that served it.
    model: as the client named it.
    at_ms: when its last byte was sent to the server.
    origin: who sent it: the page, another client, or the demo's scenario.
    endpoint: path it was sent to.
    streamed: whether the client asked for a stream.
    label: start of the last user message, where this request's text may be shown.
    outcome: how it ended; null while it runs.
    status: HTTP status of the response.
    error: what went wrong, in a sentence; null where nothing did.
    prompt_tokens: length of the prompt in tokens.
    cached_tokens: prompt tokens taken from the prefix cache.
    predicted_cached_tokens: forecast of cached_tokens, as of the send.
    predicted_is_lower_bound: some history of the server's blocks is missing, so that more may hit than forecast.
    completion_tokens: tokens generated.
    block_size: tokens a block.
    prompt_blocks: blocks of the prompt, the partial tail included ("of M blocks").
    reusable_blocks: at most this many can be reused: floor((prompt_tokens - 1) / block_size).
    reused_blocks: blocks taken from the prefix cache ("N of M").
    ttft_ms: time to first token by the dashboard's clock, from the last byte sent to the server: the first text of an
        answer or of reasoning, refusal or piece of a tool call; null for calls that are not streamed, and for answers
        without any, as of an end mark alone.
    answer_ttft_ms: time to the first token of the answer, where reasoning came before it.
    choice_ttft_ms: ttft_ms of each answer, where several were asked for; null for one without text.
    engine_ttft_ms: time to first token by the server's own clock, which starts after queue_ms.
    queue_ms: time in the server's waiting queue.
    ttft_parts: what ttft_ms is made of.
    token_gaps: pauses between tokens.
    upload_ms: time that the client took to send its request, before ttft_ms starts.
    proxy_ms: time from there to when the server had it: the dashboard's own, and what a connection takes.
    head_ms: time to the response's status and headers, by the dashboard's clock.
    client_wait_ms: how long the response waited for the client to take it; part of e2e_ms.
    e2e_ms: time to the end of the response, by the dashboard's clock.
    salted: whether the request carries a cache salt.
    cold: whether the page made that salt, to be sure of a cold start.
    transferred: its KV cache came from a prefill node: its cached_tokens are no prefix hit, and count in no hit rate.
    reported_by_router: its usage is as a router in front of the servers reported it: of a split into prefill and
        decode nodes it may be the decode node's, whose prompt came whole from the other.
    server_closed_ms: when the dashboard closed the server's connection because the client had left. Whether the server
        stopped at once is its own affair: see its running requests.
    reference_id: the request to compare this one's first-token time with: cold, and of about the same length.
    reference_ttft_ms: that request's ttft_ms.
    verdict: one sentence; null until there is enough to say.
    basis: by field, where its figure comes from.
    """

    id: RequestId
    server: ServerId
    rank: Rank | None
    model: str | None
    at_ms: float
    origin: Origin
    endpoint: str
    streamed: bool
    label: str | None = None
    outcome: Outcome | None = None
    status: int | None = None
    error: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    predicted_cached_tokens: int | None = None
    predicted_is_lower_bound: bool = False
    completion_tokens: int | None = None
    block_size: int | None = None
    prompt_blocks: int | None = None
    reusable_blocks: int | None = None
    reused_blocks: int | None = None
    ttft_ms: float | None = None
    answer_ttft_ms: float | None = None
    choice_ttft_ms: tuple[float | None, ...] | None = None
    engine_ttft_ms: float | None = None
    queue_ms: float | None = None
    ttft_parts: FirstTokenParts | None = None
    token_gaps: TokenGaps | None = None
    upload_ms: float | None = None
    proxy_ms: float | None = None
    head_ms: float | None = None
    client_wait_ms: float | None = None
    e2e_ms: float | None = None
    salted: bool = False
    cold: bool = False
    transferred: bool = False
    reported_by_router: bool = False
    server_closed_ms: float | None = None
    reference_id: RequestId | None = None
    reference_ttft_ms: float | None = None
    verdict: Verdict | None = None
    basis: dict[str, Basis] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BlockTable:
    """A request's logical block table, columnar, in the order of the prompt: one entry a block.

    block_size: tokens a full block.
    hash: block hash; null for the partial tail and where the hash isn't known.
    tokens: tokens in the block.
    state: reused, computed, partial (the tail, never cached), decode (filled by generated tokens), or pending.
    basis: where the states come from.
    """

    block_size: int
    hash: tuple[str | None, ...]
    tokens: tuple[int, ...]
    state: tuple[CellState, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """A request in a snapshot: its record and its block table.

    record: the request.
    block_table: its blocks; null where they aren't known.
    """

    record: RequestRecord
    block_table: BlockTable | None


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """Every resident block of one server and rank, columnar, without text.

    server: base URL.
    rank: data-parallel engine.
    block_size: tokens a block; null while no block is known.
    event_seq: sequence number of the last KV-event batch in it; null where none came.
    hash: block hash.
    parent_row: row of the parent block in these columns; null for a first block and where the parent isn't resident.
    depth: position in the prompt, in blocks, from 0; null where the chain's start isn't known.
    tokens: tokens in the block; null for a sparse block, of which only the hash is known.
    group: KV cache group.
    medium: where it lies: "GPU", "CPU" or another tier.
    copies: copies of it, as far as events tell.
    requests: kept requests whose block table holds it.
    reuses: times that a request reused it.
    stored_ms: when it was stored.
    """

    server: ServerId
    rank: Rank
    block_size: int | None
    event_seq: int | None
    hash: tuple[str, ...] = ()
    parent_row: tuple[int | None, ...] = ()
    depth: tuple[int | None, ...] = ()
    tokens: tuple[int | None, ...] = ()
    group: tuple[GroupIdx, ...] = ()
    medium: tuple[str, ...] = ()
    copies: tuple[int, ...] = ()
    requests: tuple[int, ...] = ()
    reuses: tuple[int, ...] = ()
    stored_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """One KV cache group on one tier, as events tell of it.

    group: its index.
    medium: tier: "GPU", "CPU" or another.
    kind: vLLM's word for it: "full_attention", "sliding_window" and others; null where the server doesn't say.
    block_size: tokens a block; null where no block said.
    blocks: resident blocks, each hash once.
    copies: the same with every copy.
    walked: forecasts are made from this group; at most one a rank is.
    """

    group: GroupIdx
    medium: str
    kind: str | None
    block_size: int | None
    blocks: int
    copies: int
    walked: bool


@dataclass(frozen=True, slots=True)
class StreamHealth:
    """The health of one rank's KV-event stream.

    rank: data-parallel engine.
    state: connecting, connected, silent (nothing heard although prompts flow), disconnected, off.
    coverage: complete, partial (some history is missing), or none: how far the block picture can be trusted.
    endpoint: address subscribed to.
    message: what is wrong and what to do; null while all is well.
    wire_form: the form of the events: array or map.
    last_seq: sequence number of the last batch.
    last_batch_ms: when it came.
    batches: batches applied.
    blocks_stored: blocks announced as stored or reused.
    blocks_removed: blocks announced as removed.
    gaps: times that a sequence number was missed.
    replayed: batches recovered by replay.
    lost: batches that replay couldn't recover.
    orphans: resident blocks whose chain's start isn't known.
    unknown_removes: removals of blocks that weren't resident.
    malformed: KV-event messages or events that couldn't be decoded.
    unknown_types: events of a type that isn't known.
    restarts: times that the sequence went back to its start.
    replay_available: whether the replay socket answers; null until tried.
    diagnosis: why no events come, once that was noticed: not_enabled, not_bound (the publisher connects instead of
        binding), wrong_port, wrong_topic, rank_port (data-parallel rank r publishes on port + r), unusable_address,
        lost, or unexplained (connected, and none of them is sure); params: endpoint, rank. Null while events come or
        nothing is wrong.
    duplicates: messages that came again, and were left out.
    batches_per_s: batches applied a second, over the last ten seconds; null until known.
    blocks_per_s: blocks stored or removed a second, over the last ten seconds; null until known.
    since_ms: since when the block picture is what `coverage` says; null where it is none.
    groups: KV cache groups by tier, and what is resident in them.
    unconfirmed_clear: the server was told to empty its cache, and its events don't say so yet: nothing counts as
        resident.
    """

    rank: Rank
    state: Literal["connecting", "connected", "silent", "disconnected", "off"]
    coverage: Literal["complete", "partial", "none"]
    endpoint: str | None = None
    message: str | None = None
    wire_form: Literal["array", "map"] | None = None
    last_seq: int | None = None
    last_batch_ms: float | None = None
    batches: int = 0
    blocks_stored: int = 0
    blocks_removed: int = 0
    gaps: int = 0
    replayed: int = 0
    lost: int = 0
    orphans: int = 0
    unknown_removes: int = 0
    malformed: int = 0
    unknown_types: int = 0
    restarts: int = 0
    replay_available: bool | None = None
    diagnosis: Notice | None = None
    duplicates: int = 0
    batches_per_s: float | None = None
    blocks_per_s: float | None = None
    since_ms: float | None = None
    groups: tuple[CacheGroup, ...] = ()
    unconfirmed_clear: bool = False


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
        connector_silent (external_hit_tokens), unit_is_no_block (scheduler_unit, block_size).
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
class RateReading:
    """One hit rate by one reading, with its numerator and denominator.

    window: last_request, since_mark, last_minute, last_1000_requests, or lifetime (the server's).
    basis: counter, usage, or inferred (the forecast).
    hit_tokens: prompt tokens that hit.
    query_tokens: prompt tokens that were looked up.
    ratio: hit_tokens / query_tokens; null where nothing was looked up.
    requests: requests in it, where the reading knows.
    since_ms: start of the window.
    """

    window: Literal["last_request", "since_mark", "last_minute", "last_1000_requests", "lifetime"]
    basis: Basis
    hit_tokens: int
    query_tokens: int
    ratio: float | None
    requests: int | None = None
    since_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ReadingsDifference:
    """Two readings of one hit rate that disagree by more than a block a request.

    window: as in RateReading; both readings are over the same requests.
    first: basis of the one reading: counter or usage.
    second: basis of the other: usage or inferred (the forecast).
    hit_tokens: tokens that hit by the first, less those by the second.
    query_tokens: tokens looked up by the first, less those by the second.
    requests: requests compared.
    cause: the first of `causes`; null where no known cause fits.
    text: all that in a sentence or two, in English.
    causes: every known cause that fits: retries_counted (an older vLLM counts each try), preemption_rereads,
        prompt_logprobs (those requests' lookups are counted by one reading only), transferred (KV from a prefill node
        counts as cached), elsewhere (requests that didn't go through the dashboard), partial_history, uncertain_copies.
    """

    window: Literal["last_request", "since_mark", "last_minute", "last_1000_requests", "lifetime"]
    first: Basis
    second: Basis
    hit_tokens: int
    query_tokens: int
    requests: int
    cause: str | None
    text: str
    causes: tuple[str, ...] = ()


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
class ScenarioState:
    """Where the demo's own scenario is.

    step: step being shown, from 1; 0 before the first.
    steps: steps in all.
    caption: what happens in it.
    running: false once it ended or a person stopped it.
    translations: the caption in other languages than English, by language.
    """

    step: int
    steps: int
    caption: str
    running: bool
    translations: dict[str, str] | None = None


# --- events ----------------------------------------------------------------------------------------------------------


class Event:
    """The base of all events. `type` is its name on the wire, a noun and a past participle."""

    type: ClassVar[str]
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Hello(Event):
    """The first message on every connection.

    product: "prefixscope".
    version: the dashboard's version.
    instance: changes with every start of the dashboard; sequence numbers count within one.
    backlog_events: events kept for a client that resumes from a sequence number.
    demo: whether this is the demo, with the embedded engine.
    show_prompts: whether the text of every request is shown, not only of the page's own.
    redact: whether no text is shown at all.
    """

    type: ClassVar[str] = "hello"
    product: str
    version: str
    instance: str
    backlog_events: int
    demo: bool
    show_prompts: bool
    redact: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot(Event):
    """Everything that is known, as of the envelope's seq; later events build on it.

    servers: every server.
    requests: kept requests, newest first, at most as many as the settings allow in a snapshot.
    blocks: resident blocks, an entry for each server and rank.
    rates: hit rates by server.
    differences: readings that disagree, by server.
    metrics: recent scrapes by server, oldest first.
    scenario: the demo's scenario; null where there is none.
    """

    type: ClassVar[str] = "snapshot"
    servers: tuple[ServerRecord, ...]
    requests: tuple[RequestSummary, ...]
    blocks: tuple[BlockColumns, ...]
    rates: dict[ServerId, tuple[RateReading, ...]]
    metrics: dict[ServerId, tuple[MetricsPoint, ...]]
    scenario: ScenarioState | None
    differences: dict[ServerId, tuple[ReadingsDifference, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestStartedEvent(Event):
    """A request was sent to the server.

    record: the request.
    """

    type: ClassVar[str] = "request.started"
    record: RequestRecord


@dataclass(frozen=True, slots=True)
class RequestFirstTokenEvent(Event):
    """A request's first token arrived.

    record: the request.
    """

    type: ClassVar[str] = "request.first_token"
    record: RequestRecord


@dataclass(frozen=True, slots=True)
class RequestJoined(Event):
    """A request's block table became known, or changed.

    record: the request.
    block_table: its blocks.
    """

    type: ClassVar[str] = "request.joined"
    record: RequestRecord
    block_table: BlockTable


@dataclass(frozen=True, slots=True)
class RequestFinished(Event):
    """A request ended well; its record is final, its block table too.

    record: the request.
    block_table: its blocks; null where they aren't known.
    """

    type: ClassVar[str] = "request.finished"
    record: RequestRecord
    block_table: BlockTable | None = None


@dataclass(frozen=True, slots=True)
class RequestFailed(Event):
    """A request ended in any other way: `record.outcome` and `record.error` say how.

    record: the request.
    block_table: its blocks; null where they aren't known.
    """

    type: ClassVar[str] = "request.failed"
    record: RequestRecord
    block_table: BlockTable | None = None


class BlocksStored(Event, msgspec.Struct, frozen=True, gc=False):
    """Consecutive blocks are now in the prefix cache. Columnar.

    hash: block hashes, in the order of the prompt.
    parent: hash of the block before the first of them; null where the first is a prompt's first block.
    depth: position of the first of them in the prompt, in blocks, from 0; null where it isn't known.
    tokens: tokens in each block; null for a sparse store, of which only the hashes are known.
    group: KV cache group.
    medium: where they lie.
    copies: copies of each block after this event.
    request: the request that caused it, where it is known.
    event_seq: sequence number of the KV-event batch, or of the last one before a correction; null where none came.
    """

    type: ClassVar[str] = "blocks.stored"
    hash: tuple[str, ...]
    parent: str | None
    depth: int | None
    tokens: int | None
    group: GroupIdx
    medium: str
    copies: tuple[int, ...]
    request: RequestId | None
    event_seq: int | None


class BlocksReused(Event, msgspec.Struct, frozen=True, gc=False):
    """A request took blocks from the prefix cache.

    request: the request.
    hash: block hashes, in the order of the prompt.
    """

    type: ClassVar[str] = "blocks.reused"
    request: RequestId | None
    hash: tuple[str, ...]


class BlocksRemoved(Event, msgspec.Struct, frozen=True, gc=False):
    """A copy of each of these blocks left the prefix cache.

    hash: block hashes, in the order of removal.
    copies: copies of each that are left; 0: the block is gone.
    group: KV cache group.
    medium: where they lay.
    event_seq: sequence number of the KV-event batch, or of the last one before a correction; null where none came.
    """

    type: ClassVar[str] = "blocks.removed"
    hash: tuple[str, ...]
    copies: tuple[int, ...]
    group: GroupIdx
    medium: str
    event_seq: int | None


@dataclass(frozen=True, slots=True)
class BlocksCleared(Event):
    """No block of this server and rank is resident any more.

    reason: reset (the server emptied its cache), restarted, disconnected, or resynced (a fresh picture follows).
    blocks: blocks that were resident until now.
    """

    type: ClassVar[str] = "blocks.cleared"
    reason: Literal["reset", "restarted", "disconnected", "resynced"]
    blocks: int


@dataclass(frozen=True, slots=True)
class MetricsSampledEvent(Event):
    """The server's metrics were read.

    point: the reading, pooled over the server's engines.
    engines: the same for each `engine` label.
    """

    type: ClassVar[str] = "metrics.sampled"
    point: MetricsPoint
    engines: dict[str, MetricsPoint]


@dataclass(frozen=True, slots=True)
class HitRateUpdated(Event):
    """Hit rates changed.

    rates: every reading of every window that has one.
    differences: readings that disagree by more than a block a request.
    """

    type: ClassVar[str] = "hit_rate.updated"
    rates: tuple[RateReading, ...]
    differences: tuple[ReadingsDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerChanged(Event):
    """What is known of a server changed.

    server: the server.
    """

    type: ClassVar[str] = "server.changed"
    server: ServerRecord


@dataclass(frozen=True, slots=True)
class StreamGapped(Event):
    """KV-event batches were missed.

    first_seq: first batch missed.
    last_seq: last batch missed.
    recovered: how many of them replay brings back.
    """

    type: ClassVar[str] = "stream.gapped"
    first_seq: int
    last_seq: int
    recovered: int


@dataclass(frozen=True, slots=True)
class StreamResynced(Event):
    """The block picture is complete again after a gap.

    last_seq: last batch applied.
    """

    type: ClassVar[str] = "stream.resynced"
    last_seq: int


@dataclass(frozen=True, slots=True)
class ScenarioAdvanced(Event):
    """The demo's own scenario took a step or stopped.

    scenario: where it is.
    """

    type: ClassVar[str] = "scenario.advanced"
    scenario: ScenarioState


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """An event on its way to the hub, with what its envelope says besides. The hub numbers it.

    at_ms: when.
    server: whose event it is; null for the dashboard's own.
    rank: which of the server's engines; null where it is the whole server's.
    basis: where the event's claims come from, where one word says it.
    """

    event: Event
    at_ms: float
    server: ServerId | None = None
    rank: Rank | None = None
    basis: Basis | None = None


EVENT_TYPES: dict[str, type[Event]] = {
    event_class.type: event_class
    for event_class in (
        Hello, Snapshot, RequestStartedEvent, RequestFirstTokenEvent, RequestJoined, RequestFinished, RequestFailed,
        BlocksStored, BlocksReused, BlocksRemoved, BlocksCleared, MetricsSampledEvent, HitRateUpdated, ServerChanged,
        StreamGapped, StreamResynced, ScenarioAdvanced,
    )
}  # fmt: skip
