"""Events as bytes, in the forms that vLLM writes them: maps since 0.26, arrays before. And back."""

from typing import Any

import msgspec

from app.observations import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, WireForm
from app.wire.kv_events import DecodedBatch, KvEventDecoder

SALT_KEY = b"k" * 32
FORMS: tuple[WireForm, ...] = ("map", "array")
STORED = (
    "type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
    "extra_keys", "group_idx", "kv_cache_spec_kind", "session_id",
)  # fmt: skip
REMOVED = ("type", "block_hashes", "medium", "group_idx")
ARRAYS_END = STORED.index("session_id")
"""No server that writes arrays names sessions."""


def through_the_wire(events: tuple[KvEvent, ...], form: WireForm, rank: int = 0, ts: float = 1.0) -> DecodedBatch:
    """What the subscriber makes of a batch with these events. Salts stand in them as their own text."""
    payload = msgspec.msgpack.encode([ts, [as_plain(event, form) for event in events], rank])
    return KvEventDecoder(SALT_KEY).decode(payload)


def as_plain(event: KvEvent, form: WireForm) -> Any:
    """The event as the server packs it."""
    if isinstance(event, AllBlocksCleared):
        return {"type": "AllBlocksCleared"} if form == "map" else ["AllBlocksCleared"]
    if isinstance(event, BlockRemoved):
        values = ["BlockRemoved", list(event.block_hashes), event.medium, event.group_idx]
        return dict(zip(REMOVED, values, strict=True)) if form == "map" else values
    values = _stored(event)
    return dict(zip(STORED, values, strict=True)) if form == "map" else values[:ARRAYS_END]


def _stored(event: BlockStored) -> list[Any]:
    keys = None
    if event.extra_keys is not None:
        keys = [
            None if key is None else [[key.other, 0]] if key.other else [["cache_salt", key.salt]]
            for key in event.extra_keys
        ]
    return [
        "BlockStored", list(event.block_hashes), event.parent_hash, list(event.token_ids), event.block_size, None,
        event.medium, event.lora_name, keys, event.group_idx, event.kind, event.session_id,
    ]  # fmt: skip
