"""The health of KV-event streams, and gaps in them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..ids import GroupIdx, Rank
from .envelope import Event
from .sentences import Notice


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
