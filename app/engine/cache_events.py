"""What the block pool tells the world: blocks stored, removed, cleared. Plain values; pure."""

from dataclasses import dataclass
from typing import TypeAlias

from .block_hash import BlockDigest, EventKey


@dataclass(frozen=True, slots=True)
class Lora:
    """An adapter: its name, its path (which enters hashes too), the number that events carry."""

    name: str
    path: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class BlocksStored:
    """New cached blocks, or (full report) reused ones; `extra_keys` has one entry a block, as events show them.

    Digests are the whole 32 bytes; `block_hash.low_64_bits` is what goes on the wire by default.
    """

    block_hashes: tuple[BlockDigest, ...]
    parent_block_hash: BlockDigest | None
    token_ids: tuple[int, ...]
    block_size: int
    lora: Lora | None
    extra_keys: tuple[tuple[EventKey, ...] | None, ...]
    session_id: str | None


@dataclass(frozen=True, slots=True)
class BlocksRemoved:
    """One evicted block; vLLM sends one event a block. Another copy of the hash may live on."""

    block_hashes: tuple[BlockDigest, ...]


@dataclass(frozen=True, slots=True)
class BlocksCleared:
    """The cache was reset; comes out with the next step, not at the reset itself."""


CacheEvent: TypeAlias = BlocksStored | BlocksRemoved | BlocksCleared
