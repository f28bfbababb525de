"""Proxied requests: their records, their block tables, and what happens to them."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ..ids import Rank, RequestId, ServerId
from ..observations import Origin, Outcome
from .envelope import Basis, Event
from .sentences import Verdict

CellState = Literal["reused", "computed", "partial", "decode", "pending"]


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
class Routing:
    """A prompt against the replicas that could have served it, in whole blocks, as of the send.

    replicas: ranks of servers whose events tell what they hold.
    reusable_tokens: at most this many could be reused anywhere: reusable_blocks, in tokens.
    ceiling_tokens: were in some replica's cache at some time: what could be reused if nothing were ever evicted.
    best_tokens: were in the cache of the replica that held most.
    best_server: where that was; null where events don't tell, although the request reused so much.
    best_rank: the rank there.
    chosen_tokens: were in the cache of the replica that served it; null where that isn't known.
    delivered_tokens: were reused, as cached_tokens says.
    workload_lost_tokens: reusable, but nothing like it was ever there.
    eviction_lost_tokens: were there once, and are on no replica any more.
    placement_lost_tokens: another replica had them; null where it isn't known which one served the request.
    staleness_lost_tokens: the replica that served it should have had them by its events, which run behind; null as
        above.
    complete: no history of any of these replicas is missing.
    """

    replicas: int
    reusable_tokens: int
    ceiling_tokens: int
    best_tokens: int
    best_server: ServerId | None
    best_rank: Rank | None
    chosen_tokens: int | None
    delivered_tokens: int
    workload_lost_tokens: int
    eviction_lost_tokens: int
    placement_lost_tokens: int | None
    staleness_lost_tokens: int | None
    complete: bool


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
    routing: what the choice of a replica cost it; null where fewer than two could have served it, and where too little
        is known.
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
    routing: Routing | None = None
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
