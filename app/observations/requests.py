"""What happens to a request on its way through the proxy."""

from dataclasses import dataclass
from typing import Literal

from ..ids import RequestId, SaltDigest, ServerId, SessionId

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
