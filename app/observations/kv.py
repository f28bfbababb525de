"""What a server's KV events say, and what became of the stream that they come in."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..ids import BlockHash, GroupIdx, Rank, SaltDigest, ServerId, SessionId


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
