"""KV-cache events as vLLM 0.32 puts them on the wire: msgpack maps with a `type` key, in batches. Pure.

A batch is `[ts, [event, ...], data_parallel_rank]`; fields stand in vLLM's order, and defaults are left out.
"""

import msgspec

from .block_hash import low_64_bits
from .core import BlocksRemoved, BlocksStored, CacheEvent

MEDIUM = "GPU"
GROUP = 0
SPEC_KIND = "full_attention"


class _Event(msgspec.Struct, omit_defaults=True, tag_field="type", tag=True, gc=False):
    """The root of all events; the class's name is the `type`."""


class BlockStored(_Event, gc=False):
    """Blocks that became resident, or (full report) a reused prefix, from `parent_block_hash` on."""

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str
    lora_name: str | None
    extra_keys: list[list[str] | None]
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    session_id: str | None = None


class BlockRemoved(_Event, gc=False):
    """Blocks that were evicted."""

    block_hashes: list[int]
    medium: str
    group_idx: int | None = None


class AllBlocksCleared(_Event, gc=False):
    """The cache was reset."""


_encoder = msgspec.msgpack.Encoder()


def encode_batch(events: tuple[CacheEvent, ...], wall_s: float, rank: int = 0) -> bytes:
    """The payload of one message: one step's events. `wall_s` is seconds of the Unix epoch."""
    return _encoder.encode([wall_s, [_on_the_wire(event) for event in events], rank])


def _on_the_wire(event: CacheEvent) -> _Event:
    if isinstance(event, BlocksStored):
        parent = event.parent_block_hash
        return BlockStored(
            block_hashes=[low_64_bits(digest) for digest in event.block_hashes],
            parent_block_hash=None if parent is None else low_64_bits(parent),
            token_ids=list(event.token_ids),
            block_size=event.block_size,
            lora_id=None,
            medium=MEDIUM,
            lora_name=event.lora_name,
            extra_keys=[None if keys is None else list(keys) for keys in event.extra_keys],
            group_idx=GROUP,
            kv_cache_spec_kind=SPEC_KIND,
            session_id=event.session_id,
        )
    if isinstance(event, BlocksRemoved):
        return BlockRemoved([low_64_bits(digest) for digest in event.block_hashes], MEDIUM, GROUP)
    return AllBlocksCleared()
