"""How fast KV-event messages are decoded on one core: `python -m benchmarks.kv_decode`.

Prefill-like events (64 blocks of 16 tokens each, 8 events a message) and single-block events (64 a message), as maps
and as arrays, decoded to observations, by CPU time; beside it the bare decoding to plain values, which is the floor.
"""

import random
import time
from typing import Any

import msgspec

from app.wire.kv_events import KvEventDecoder

BLOCK_SIZE = 16
MIN_SECONDS = 1.0


def message(events: int, blocks: int, form: str, source: random.Random) -> bytes:
    """A payload of `events` stores of `blocks` blocks each, with hashes and tokens as a real server's are."""
    stores: list[Any] = []
    for _ in range(events):
        store = {
            "type": "BlockStored",
            "block_hashes": [source.getrandbits(64) for _ in range(blocks)],
            "parent_block_hash": source.getrandbits(64),
            "token_ids": [source.randrange(150_000) for _ in range(blocks * BLOCK_SIZE)],
            "block_size": BLOCK_SIZE,
            "lora_id": None,
            "medium": "GPU",
            "lora_name": None,
            "extra_keys": [None] * blocks,
            "group_idx": 0,
            "kv_cache_spec_kind": "full_attention",
        }
        stores.append(store if form == "map" else list(store.values()))
    return msgspec.msgpack.encode([time.time(), stores, 0])


def blocks_per_second(payloads: list[bytes], blocks: int, decode: Any) -> float:
    """Decodes `payloads` in turn for about a second of CPU; `blocks` is how many all of them hold."""
    rounds = 0
    began = time.process_time()
    while (elapsed := time.process_time() - began) < MIN_SECONDS:
        for payload in payloads:
            decode(payload)
        rounds += 1
    return rounds * blocks / elapsed


def main() -> None:
    """Prints one line a shape and form."""
    decoder = KvEventDecoder(b"benchmark")
    for name, events, blocks in (("64 blocks an event", 8, 64), ("1 block an event", 64, 1)):
        for form in ("map", "array"):
            source = random.Random(7)
            payloads = [message(events, blocks, form, source) for _ in range(50)]
            total = len(payloads) * events * blocks
            full = blocks_per_second(payloads, total, decoder.decode)
            bare = blocks_per_second(payloads, total, msgspec.msgpack.decode)
            print(f"{name}, {form}: {full:,.0f} blocks/s (plain values alone {bare:,.0f})")


if __name__ == "__main__":
    main()
