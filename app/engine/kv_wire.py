"""KV-cache events as vLLM puts them on the wire: msgpack maps with a `type` key, or older releases' arrays. Pure.

A batch is `[ts, [event, ...], data_parallel_rank]`; fields stand in vLLM's order, and defaults are left out: of an
array only those at its end.
"""

from typing import Any

import msgspec

from .block_hash import BlockDigest, low_64_bits
from .core import BlocksRemoved, BlocksStored, CacheEvent
from .imitation import Imitation

MEDIUM = "GPU"
GROUP = 0
SPEC_KIND = "full_attention"
_REQUIRED_STORE_FIELDS, _REQUIRED_REMOVE_FIELDS = 7, 2

_Hash = int | bytes


class _Event(msgspec.Struct, omit_defaults=True, tag_field="type", tag=True, gc=False):
    """The root of all events; the class's name is the `type`."""


class BlockStored(_Event, gc=False):
    """Blocks that became resident, or (full report) a reused prefix, from `parent_block_hash` on."""

    block_hashes: list[_Hash]
    parent_block_hash: _Hash | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str
    lora_name: str | None
    extra_keys: list[list[Any] | None]
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    kv_cache_spec_sliding_window: int | None = None
    locality: str | None = None
    ownership: str | None = None
    session_id: str | None = None


class BlockRemoved(_Event, gc=False):
    """Blocks that were evicted."""

    block_hashes: list[_Hash]
    medium: str
    group_idx: int | None = None


class AllBlocksCleared(_Event, gc=False):
    """The cache was reset."""


_encoder = msgspec.msgpack.Encoder()


class EventEncoder:
    """Batches of one rank, in the form of one release."""

    def __init__(self, rank: int = 0, imitation: Imitation | None = None) -> None:
        self._rank = rank
        self._as = imitation or Imitation()
        self._hash = _whole if self._as.bytes_hashes else low_64_bits

    def batch(self, events: tuple[CacheEvent, ...], wall_s: float) -> bytes:
        """The payload of one message: one step's events. `wall_s` is seconds of the Unix epoch."""
        shown = [self._on_the_wire(event) for event in events]
        if self._as.array_events:
            return _encoder.encode([wall_s, [self._array(event) for event in shown], self._rank])
        return _encoder.encode([wall_s, shown, self._rank])

    def _on_the_wire(self, event: CacheEvent) -> _Event:
        if isinstance(event, BlocksStored):
            return self._stored(event)
        if isinstance(event, BlocksRemoved):
            return BlockRemoved([self._hash(digest) for digest in event.block_hashes], MEDIUM, GROUP)
        return AllBlocksCleared()

    def _stored(self, event: BlocksStored) -> BlockStored:
        parent, lora = event.parent_block_hash, event.lora
        return BlockStored(
            block_hashes=[self._hash(digest) for digest in event.block_hashes],
            parent_block_hash=None if parent is None else self._hash(parent),
            token_ids=list(event.token_ids),
            block_size=event.block_size,
            lora_id=lora.number if lora else None,
            medium=MEDIUM,
            lora_name=lora.name if lora else None,
            extra_keys=[None if keys is None else list(keys) for keys in event.extra_keys],
            group_idx=GROUP,
            kv_cache_spec_kind=SPEC_KIND,
            session_id=event.session_id if self._as.session_ids else None,
        )

    def _array(self, event: _Event) -> list[Any]:
        values: list[Any] = list(msgspec.structs.astuple(event))
        required = 0
        if isinstance(event, BlockStored):
            values, required = values[: self._as.store_fields], _REQUIRED_STORE_FIELDS
        elif isinstance(event, BlockRemoved):
            values, required = values[: self._as.remove_fields], _REQUIRED_REMOVE_FIELDS
        while len(values) > required and values[-1] is None:
            values.pop()
        return [type(event).__name__, *values]


def _whole(digest: BlockDigest) -> bytes:
    return digest
