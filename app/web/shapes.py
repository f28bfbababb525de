"""What the HTTP API answers, as types: `openapi` describes them, and the routes name them. JSON keys are the fields.

Those of one request or block are made by the routes as mappings, from records of the contract and what stands beside.
"""

from dataclasses import dataclass

from ..doctor.findings import Diagnosis, Status
from ..events import Basis, BlockColumns, BlockTable, RequestRecord, Snapshot
from ..fleet.figures import Gap, Member, PooledRate
from ..fleet.residency import ResidencyMap
from ..fleet.whatif import WhatIf
from ..ids import Rank, RequestId, ServerId
from ..model.nearest import RankForecast
from ..model.ttft import TtftSample
from ..why.comparison import Difference, Recomputed
from ..why.examination import Finding
from ..why.glyphs import TokenGroup
from ..why.ruler import MessageRuler


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a call failed. code: a stable word for programs. hint: what to do; null where there is nothing to say."""

    code: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Error:
    """The one shape of every error."""

    error: Fault


@dataclass(frozen=True, slots=True)
class State:
    """The message that a websocket client gets first, and the run that it can resume: see EVENTS.md."""

    v: int
    seq: int
    at_ms: float
    server: ServerId | None
    rank: Rank | None
    type: str
    data: Snapshot
    instance: str


@dataclass(frozen=True, slots=True)
class RequestPage:
    """Requests, newest first. next: what `after` takes for those that follow; null at the end."""

    requests: list[RequestRecord]
    next: RequestId | None


@dataclass(frozen=True, slots=True)
class Request(RequestRecord):
    """One request: the fields of its record, and its block table; null where that isn't known."""

    block_table: BlockTable | None = None


@dataclass(frozen=True, slots=True)
class BlockList:
    """Resident blocks: one entry a server and rank."""

    blocks: list[BlockColumns]


@dataclass(frozen=True, slots=True)
class Block:
    """One block. tokens: how many; null where they aren't known. text_hidden: that its text may not be shown."""

    hash: str | None
    server: ServerId
    rank: Rank | None
    depth: int | None
    tokens: int | None
    text: str | None
    text_hidden: bool
    parent: str | None
    requests: tuple[RequestId, ...]
    copies: int
    reuses: int
    stored_ms: float | None


@dataclass(frozen=True, slots=True)
class Marked:
    """When the window `since_mark` began: milliseconds of the Unix epoch."""

    marked_ms: float


@dataclass(frozen=True, slots=True)
class Playing:
    """Whether the demo's scenario plays."""

    running: bool


@dataclass(frozen=True, slots=True)
class Version:
    """Which dashboard this is. instance: which run of it. protocol: of the live stream."""

    product: str
    version: str
    protocol: int
    instance: str
    demo: bool


@dataclass(frozen=True, slots=True)
class Diagnoses:
    """What each server lacks; status: the worst of them."""

    status: Status
    servers: list[Diagnosis]


@dataclass(frozen=True, slots=True)
class CacheReset:
    """Whether the server emptied its prefix cache; message: why not."""

    reset: bool
    message: str | None


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause that a verdict may have. anchor: the name of its explanation."""

    code: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Causes:
    """The closed list of causes."""

    causes: list[Cause]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The cached prompt that has most in common. request: null where none that is kept had it."""

    request: RequestId | None
    tokens: int
    resident_tokens: int


@dataclass(frozen=True, slots=True)
class Side:
    """Tokens `start` to `end` of one prompt. groups: null where their text is hidden, or the server tells none."""

    start: int
    end: int
    groups: list[TokenGroup] | None
    text_hidden: bool


@dataclass(frozen=True, slots=True)
class ComparisonAnswer:
    """A request beside the nearest prompt that was known when it was sent. there: null where there was none."""

    request: RequestId
    server: ServerId
    rank: Rank | None
    block_size: int | None
    prompt_tokens: int
    cached_tokens: int | None
    nearest: Nearest | None
    common_tokens: int
    common_blocks: int | None
    first_difference: Difference | None
    recomputed: Recomputed
    here: Side
    there: Side | None


@dataclass(frozen=True, slots=True)
class FirstTokenForecast:
    """When the first token would come. samples: how many requests this rests on."""

    about_ms: float
    early_ms: float
    late_ms: float
    samples: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """How a request would fare if it were sent now. messages: null where the server tells no tokens' strings."""

    tokens: int
    block_size: int | None
    blocks: int | None
    tail_tokens: int | None
    reusable_blocks: int | None
    cached_tokens: int | None
    ranks: tuple[RankForecast, ...]
    ttft: FirstTokenForecast | None
    messages: list[MessageRuler] | None


@dataclass(frozen=True, slots=True)
class Breakers:
    """What kept requests from sharing, and how they could be written instead."""

    breakers: list[Finding]


@dataclass(frozen=True, slots=True)
class FirstTokenFit:
    """First-token times against computed tokens. missing: what a line through them still lacks."""

    samples: tuple[TtftSample, ...]
    fit: dict[str, float | None] | None
    missing: str | None


@dataclass(frozen=True, slots=True)
class Observed:
    """What servers said of the recorded requests; null where none said anything."""

    requests: int
    prompt_tokens: int
    cached_tokens: int
    hit_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer(WhatIf):
    """The hit rates. unknown_prompts: kept requests whose tokens aren't known."""

    unknown_prompts: int
    observed: Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidencyAnswer(ResidencyMap):
    """The map. at_ms: when the replicas were looked at."""

    at_ms: float


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """The servers, their pooled rates, and what routing cost the requests of the last `window_s` seconds.

    basis: of `gap`.
    """

    members: tuple[Member, ...]
    rates: tuple[PooledRate, ...]
    window_s: float
    gap: Gap
    basis: Basis


@dataclass(frozen=True, slots=True)
class Health:
    """That the process answers, and how its inside does."""

    status: str
    observations_waiting: int
    observations_left_out: int
    batches_dropped: int
    clients: int


@dataclass(frozen=True, slots=True)
class Ready:
    """That the first server answers as a vLLM server."""

    status: str
    server: ServerId


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """Addresses, and the labels that Prometheus's HTTP service discovery takes with them."""

    targets: list[str]
    labels: dict[str, str]
