"""Event encoding: the recorded payloads of a real server, made again byte for byte."""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.engine.cache_events import Lora
from app.engine.core import BlocksCleared, BlocksRemoved, BlocksStored, CacheEvent
from app.engine.kv_wire import EventEncoder

RECORDINGS = sorted((Path(__file__).parents[2] / "fixtures" / "recordings").glob("*.jsonl"))


def digest(low: int) -> bytes:
    return bytes(24) + low.to_bytes(8, "big")


def plain(event: dict[str, Any]) -> CacheEvent:
    """The event that the core would give."""
    if event["type"] == "AllBlocksCleared":
        return BlocksCleared()
    hashes = tuple(map(digest, event["block_hashes"]))
    if event["type"] == "BlockRemoved":
        return BlocksRemoved(hashes)
    parent = event["parent_block_hash"]
    return BlocksStored(
        block_hashes=hashes,
        parent_block_hash=None if parent is None else digest(parent),
        token_ids=tuple(event["token_ids"]),
        block_size=event["block_size"],
        lora=Lora(event["lora_name"], number=event["lora_id"]) if event["lora_name"] else None,
        extra_keys=tuple(None if keys is None else tuple(keys) for keys in event["extra_keys"]),
        session_id=event.get("session_id"),
    )


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recorded_batches_come_out_byte_for_byte(path: Path) -> None:
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "kv_frames":
            payload = base64.b64decode(entry["b64"][2])
            wall_s, events, rank = msgspec.msgpack.decode(payload)
            assert EventEncoder(rank).batch(tuple(map(plain, events)), wall_s) == payload
