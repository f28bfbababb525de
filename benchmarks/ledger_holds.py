"""How long one event holds the event loop, from its bytes to what goes out to browsers, and all of it together.

    .venv/bin/python -m benchmarks.ledger_holds

One event of 65,536 blocks of 16 tokens: stored; then, with it in the cache, reported as reused; then removed. It goes
the product's own way (delivery, writer, ledger, hub) beside another task. CPU time of one turn of the loop, so that a
busy machine doesn't count; wanted: under 20 ms. Garbage is
collected as the product does.
"""

import asyncio
import time

import msgspec

from app.events import Hello
from app.garbage import settle
from app.hub.fanout import Hub
from app.ids import Rank, ServerId
from app.model.ledger import Ledger, LedgerLimits
from app.sources.clock import SystemClock
from app.sources.kv_delivery import KvDelivery
from app.wire.kv_events import KvEventDecoder
from app.wire.kv_frames import KvFrames
from app.writer import Writer

from .loop_holds import LoopHolds

BLOCKS, BLOCK = 65_536, 16
SERVER = ServerId("http://127.0.0.1:8000")


def payloads() -> dict[str, bytes]:
    """By what happens."""
    hashes = [2**63 + index * 7919 for index in range(BLOCKS)]
    store = {
        "type": "BlockStored", "block_hashes": hashes, "parent_block_hash": None,
        "token_ids": [index * 31 % 150_000 for index in range(BLOCKS * BLOCK)], "block_size": BLOCK, "lora_id": None,
        "medium": "GPU", "lora_name": None, "extra_keys": [None] * BLOCKS, "group_idx": 0,
        "kv_cache_spec_kind": "full_attention", "session_id": None,
    }  # fmt: skip
    removal = {"type": "BlockRemoved", "block_hashes": hashes, "medium": "GPU", "group_idx": 0}
    return {
        name: msgspec.msgpack.encode([float(number), [event], 0])
        for number, (name, event) in enumerate({"stored": store, "reported": store, "removed": removal}.items())
    }


async def measure() -> None:
    """Prints a line a happening."""
    clock = SystemClock()
    ledger = Ledger(LedgerLimits(max_blocks=200_000), 0.0)
    hub = Hub(Hello("prefixscope", "0", "i", 20_000, False, False), 5_000, 15.0, ledger.snapshot, clock)
    writer = Writer(ledger, hub.publish, clock, 100_000)
    delivery = KvDelivery(SERVER, Rank(0), writer.emit, clock, KvEventDecoder(b"k" * 32))
    holds = LoopHolds()
    running = asyncio.create_task(writer.run())
    messages = payloads()
    settle()
    for seq, (name, payload) in enumerate(messages.items()):
        await asyncio.sleep(0.05)
        holds.start() if not seq else holds.reset()
        began_s = time.process_time()
        await delivery.deliver(KvFrames(b"", seq, payload), replayed=False)
        while writer.waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        spent_ms = (time.process_time() - began_s) * 1000
        print(
            f"{BLOCKS:,} blocks {name:<9} {spent_ms:6.0f} ms in all, the loop held for {holds.worst_ms:5.1f} ms at most"
        )
    running.cancel()


if __name__ == "__main__":
    asyncio.run(measure())
