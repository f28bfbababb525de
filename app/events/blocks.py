"""The blocks of the prefix cache: all that are resident, and what comes and goes.

What a busy server makes thousands of a second are msgspec structs, frozen as the dataclasses, and made in an eighth of
the time.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import msgspec

from ..ids import GroupIdx, Rank, RequestId, ServerId
from .envelope import Event


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
