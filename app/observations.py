"""Frozen facts coming in: what a source saw, before anyone drew a conclusion.

Sources make them, `model.ledger.Ledger.apply` takes them, one at a time, in the order of arrival.
`at_s` is the dashboard's monotonic clock in seconds, read when the fact arrived. Token ids are tuples of int.
Imports only `ids`.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from .ids import BlockHash, GroupIdx, Rank, RequestId, SaltDigest, ServerId, SessionId

# --- KV events -------------------------------------------------------------------------------------------------------


class ExtraKeys(NamedTuple):
    """What makes equal tokens different blocks, without any secret: salts only as digests."""

    salt: SaltDigest | None
    lora_name: str | None
    other: str | None
    """A digest of whatever else the server lists for the block (multi-modal hashes, prompt embeddings)."""


class StorePart(NamedTuple):
    """Which part of one event a store is: large events come in several, lest one holds the event loop."""

    first: int
    """Blocks of the event before these."""
    whole: tuple[BlockHash, ...]
    """All hashes of the event."""


class BlockStored(NamedTuple):
    """Consecutive full blocks that are now in the prefix cache, or a report that a request reused them.

    A NamedTuple: a busy server sends thousands a second. `token_ids` has `len(block_hashes) * block_size` entries, or
    else the store is sparse: its hashes are resident, but which tokens they cover isn't known.
    `extra_keys` is None where no block has any, else one entry (or None) a block.
    """

    block_hashes: tuple[BlockHash, ...]
    parent_hash: BlockHash | None
    token_ids: tuple[int, ...]
    block_size: int
    lora_name: str | None
    medium: str
    """Upper case; "GPU" where the server named none."""
    extra_keys: tuple[ExtraKeys | None, ...] | None
    group_idx: GroupIdx
    kind: str | None
    """`kv_cache_spec_kind`: "full_attention" and others; None where the server doesn't say."""
    session_id: SessionId | None
    part: StorePart | None = None
    """None where it is whole. The first part is under the event's parent, each other one under the last block of the
    part before it."""


class BlockRemoved(NamedTuple):
    """One copy of each of these blocks left the prefix cache."""

    block_hashes: tuple[BlockHash, ...]
    medium: str
    group_idx: GroupIdx


class AllBlocksCleared(NamedTuple):
    """The prefix cache was emptied."""


KvEvent = BlockStored | BlockRemoved | AllBlocksCleared
WireForm = Literal["array", "map"]


@dataclass(frozen=True, slots=True)
class KvBatch:
    """One message of the event stream, in sequence: the subscriber has closed or reported every gap before it."""

    server: ServerId
    rank: Rank
    seq: int
    events: tuple[KvEvent, ...]
    at_s: float
    replayed: bool = False
    wire_form: WireForm | None = None
    """The form of the events in it; None where the batch is empty."""
    malformed: int = 0
    """Events of this batch that were left out because they can't be true."""
    unknown_types: int = 0
    published_s: float | None = None
    """The server's own clock when it published, in seconds of the epoch; None where it isn't known."""
    part: int = 0
    """Which of several batches of one `seq` this is: large messages come in parts, lest one holds the event loop."""
    more: bool = False
    """Another part of the message follows."""


StreamFault = Literal["not_enabled", "not_bound", "wrong_port", "wrong_topic", "rank_port", "unusable_address", "lost"]
"""Why no events come: nothing publishes there; the publisher connects instead of binding; something else listens
there; messages have other topics; another rank publishes on another port; the address can't be used; the connection
was lost."""


@dataclass(frozen=True, slots=True)
class KvStreamState:
    """The subscription changed: connected, lost, or never there."""

    server: ServerId
    rank: Rank
    state: Literal["connecting", "connected", "silent", "disconnected", "off"]
    endpoint: str | None
    message: str | None
    """What is wrong and what to do; None where nothing is."""
    at_s: float
    replay_available: bool | None = None
    fault: StreamFault | None = None
    """Which of the closed list of faults it is, where the source could tell."""


@dataclass(frozen=True, slots=True)
class KvDuplicate:
    """A message came that was taken before, number and bytes; it was left out."""

    server: ServerId
    rank: Rank
    seq: int
    at_s: float


@dataclass(frozen=True, slots=True)
class KvGap:
    """Batches `first_seq..last_seq` (inclusive) were missed. `recovered` of them follow as replayed batches."""

    server: ServerId
    rank: Rank
    first_seq: int
    last_seq: int
    recovered: int
    at_s: float


@dataclass(frozen=True, slots=True)
class KvRestarted:
    """The sequence went back: another process publishes now, and nothing that was known is resident."""

    server: ServerId
    rank: Rank
    at_s: float


@dataclass(frozen=True, slots=True)
class KvRanks:
    """The data-parallel ranks whose events are looked for, all of them together."""

    server: ServerId
    ranks: tuple[Rank, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class CacheReset:
    """Somebody had the server empty its prefix cache, or put it to sleep, through the dashboard. The event stream says
    so only with the server's next step."""

    server: ServerId
    at_s: float


# --- the server itself -----------------------------------------------------------------------------------------------


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
class Malformed:
    """Bytes that could not be decoded. Counted and shown; nothing else follows from it."""

    server: ServerId
    source: Literal["kv", "metrics", "sse", "tokenize"]
    detail: str
    at_s: float
    rank: Rank | None = None
    request: RequestId | None = None


# --- requests through the proxy --------------------------------------------------------------------------------------

Origin = Literal["page", "client", "scenario"]


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """The last byte of a request's body was sent to the server. Its cache forecast is as of this moment."""

    server: ServerId
    request: RequestId
    endpoint: str
    """The path: "/v1/chat/completions"."""
    origin: Origin
    at_s: float
    model: str | None = None
    streamed: bool = False
    max_tokens: int | None = None
    sequences: int = 1
    """`n` times the number of prompts: tokens and blocks can be joined exactly only where this is 1."""
    session_id: SessionId | None = None
    """Set only where the dashboard issued it for this request."""
    salt: SaltDigest | None = None
    salted_by_page: bool = False
    """The page made the salt, to be sure of a cold start."""
    skips_cache_read: bool = False
    """`prompt_logprobs` or echo with logprobs: the server doesn't look its prompt up."""
    has_images: bool = False
    lora_name: str | None = None
    label: str | None = None
    """The start of the last user message, where this request's text may be shown."""
    show_text: bool = False
    began_s: float | None = None
    """When the head of the client's request had been read."""
    received_s: float | None = None
    """When its last byte had: up to here the client's pace counts, from here to `at_s` the dashboard's own."""
    transfers_kv: bool = False
    """Its KV cache comes from a prefill node (`kv_transfer_params`): what counts as cached there is no prefix hit."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The response's status line and headers arrived."""

    request: RequestId
    status: int
    at_s: float


@dataclass(frozen=True, slots=True)
class RequestFirstToken:
    """The first event with content, reasoning, refusal or a tool-call fragment arrived completely."""

    request: RequestId
    at_s: float
    answer: bool = True
    """False for a reasoning token: the first token of the answer is still to come, and gets its own observation."""
    choice: int = 0
    """Which of several answers it belongs to; each of them gets an observation of its own."""


@dataclass(frozen=True, slots=True)
class RequestPromptTokens:
    """The prompt's token ids, from the response itself, the server's `/tokenize`, or the request, which gave them."""

    request: RequestId
    token_ids: tuple[int, ...]
    source: Literal["response", "tokenize", "request"]
    at_s: float
    packed: bytes | None = None
    """A long prompt's ids as unsigned 32-bit integers of this machine, in place of `token_ids`, which is ()."""


@dataclass(frozen=True, slots=True)
class RequestOutputTokens:
    """Token ids of the answer that came since they were last told (where the response carries them, and `sequences` is
    1). `start` is the place of the first of them in the answer: 0 tells the answer anew."""

    request: RequestId
    token_ids: tuple[int, ...]
    at_s: float
    start: int = 0


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """The last usage the response carried. A None is "didn't say", which is not 0."""

    request: RequestId
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    at_s: float
    created_cache_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RequestEngineTimes:
    """The server's own clock for this request (`metrics` in the response, 0.26 and later)."""

    request: RequestId
    at_s: float
    ttft_ms: float | None = None
    queue_ms: float | None = None
    generation_ms: float | None = None
    mean_itl_ms: float | None = None


GAP_EDGES_MS = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 500, 1000, 2000, 5000)
"""Upper edges, each included, of the counts of pauses between tokens; a last count is of what is longer."""

Outcome = Literal["ok", "client_gone", "http_error", "stream_error", "empty", "truncated", "timed_out", "server_gone"]


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """Nothing more comes of this request. Every started request ends exactly once."""

    request: RequestId
    outcome: Outcome
    at_s: float
    status: int | None = None
    error: str | None = None
    finish_reason: str | None = None
    content_chunks: int = 0
    """Events with content: a lower bound of completion tokens where the server sends no usage."""
    gap_counts: tuple[int, ...] = ()
    """Pauses between arrivals of content, counted by `GAP_EDGES_MS`; () where nothing was streamed."""
    client_wait_s: float = 0.0
    """How long the response waited for the client to take what had come."""


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


# --- the demo's scenario ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScenarioStepped:
    """The demo's own scenario took a step, or stopped (`running` false). translations: of the caption, by language."""

    step: int
    steps: int
    caption: str
    running: bool
    at_s: float
    translations: dict[str, str] | None = None


Observation = (
    KvBatch | KvStreamState | KvDuplicate | KvGap | KvRestarted | KvRanks | CacheReset | ServerProbed | MetricsSampled
    | MetricsFailed | Malformed | RequestStarted | RequestHead | RequestFirstToken | RequestPromptTokens
    | RequestOutputTokens | RequestUsage
    | RequestEngineTimes | RequestEnded | ScenarioStepped | TtftFitted
)  # fmt: skip
