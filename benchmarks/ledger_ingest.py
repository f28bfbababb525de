"""How many stored blocks a second the ledger takes in on one core, from the bytes of the wire to events for browsers.

    .venv/bin/python -m benchmarks.ledger_ingest

Two mixes, 16 tokens a block and 16 events a batch: prefill-like (64 blocks an event) and decode-like (one block an
event, each under the last one of its request, of which 64 run). "bare" is msgpack decoding with one dict insert a
block, measured in the same run: on a shared machine the ratio to it says more than the figure. "kept" is the ledger
with 50 requests that hold blocks, one of them running, so that each store is asked whose it may be. CPU time; the best
of many short runs, each on a new ledger.
"""

import random
import time

import msgspec

from app.events import Outgoing
from app.ids import GroupIdx, Rank, RequestId, ServerId
from app.model.ledger import Ledger, LedgerLimits
from app.observations import (
    BlockStored,
    KvBatch,
    RequestEnded,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from app.wire.kv_events import KvEventDecoder
from app.wire.live_protocol import encode_event

BLOCK = 16
EVENTS_A_BATCH = 16
RUNS = 60
REQUESTS, REQUEST_BLOCKS = 50, 8
SERVER = ServerId("http://127.0.0.1:8000")
WANTED = {64: 250_000, 1: 100_000}


def payloads(blocks: int, blocks_an_event: int) -> list[bytes]:
    """Batches of map events as vLLM 0.32 sends them."""
    chooser = random.Random(blocks_an_event)
    made = []
    per_batch = blocks_an_event * EVENTS_A_BATCH
    last: list[int | None] = [None] * 64
    slot = 0
    for number in range(blocks // per_batch):
        events = []
        for _ in range(EVENTS_A_BATCH):
            hashes = [chooser.getrandbits(64) for _ in range(blocks_an_event)]
            tokens = [chooser.randrange(150_000) for _ in range(blocks_an_event * BLOCK)]
            parent = last[slot] if blocks_an_event == 1 else None
            last[slot] = hashes[-1]
            slot = (slot + 1) % len(last)
            events.append(
                {
                    "type": "BlockStored", "block_hashes": hashes, "parent_block_hash": parent, "token_ids": tokens,
                    "block_size": BLOCK, "lora_id": None, "medium": "GPU", "lora_name": None,
                    "extra_keys": [None] * blocks_an_event, "group_idx": 0, "kv_cache_spec_kind": "full_attention",
                    "session_id": None,
                }
            )  # fmt: skip
        made.append(msgspec.msgpack.encode([1.0 + number, events, 0]))
    return made


def bare(batches: list[bytes]) -> float:
    """Seconds for decoding to plain values and one insert a block."""
    start = time.process_time()
    known: dict[int, int] = {}
    for payload in batches:
        for event in msgspec.msgpack.decode(payload)[1]:
            for block_hash in event["block_hashes"]:
                known[block_hash] = 1
    return time.process_time() - start


def keep_requests(taken: Ledger) -> None:
    """Requests with a block table each; the last of them runs."""
    chooser = random.Random(2)
    for number in range(REQUESTS):
        request, at_s = RequestId(f"r-{number}"), float(number)
        tokens = tuple(chooser.randrange(150_000) for _ in range(REQUEST_BLOCKS * BLOCK))
        hashes = tuple(chooser.getrandbits(64) for _ in range(REQUEST_BLOCKS))
        stored = BlockStored(hashes, None, tokens, BLOCK, None, "GPU", None, GroupIdx(0), "full_attention", None)
        taken.apply(RequestStarted(SERVER, request, "/v1/completions", "client", at_s, streamed=True))
        taken.apply(RequestPromptTokens(request, tokens, "response", at_s))
        taken.apply(KvBatch(SERVER, Rank(0), number, (stored,), at_s, False, "map"))
        if number < REQUESTS - 1:
            taken.apply(RequestUsage(request, len(tokens), 1, 0, at_s))
            taken.apply(RequestEnded(request, "ok", at_s))


def ledger(batches: list[bytes], *, encode: bool, kept: bool = False) -> float:
    """Seconds for decoding, the ledger, and with `encode` the JSON of every event; `kept`: it has requests."""
    taken = Ledger(LedgerLimits(), 0.0)
    first = 0
    if kept:
        keep_requests(taken)
        first = REQUESTS
    decoder = KvEventDecoder(b"k" * 32)
    start = time.process_time()
    for seq, payload in enumerate(batches, first):
        batch = decoder.decode(payload)
        out: list[Outgoing] = taken.apply(
            KvBatch(SERVER, Rank(0), seq, batch.events, float(seq), False, batch.wire_form, published_s=batch.ts)
        )
        if encode:
            for outgoing in out:
                encode_event(outgoing, seq)
    return time.process_time() - start


def main() -> None:
    """Prints a table."""
    print("blocks/event      bare     ledger   ratio   with JSON         kept      wanted")
    for blocks_an_event, blocks in ((64, 8_192), (1, 1_600)):
        batches = payloads(blocks, blocks_an_event)
        count = len(batches) * blocks_an_event * EVENTS_A_BATCH
        bare_s = ledger_s = encoded_s = kept_s = float("inf")
        for _ in range(RUNS):
            bare_s = min(bare_s, bare(batches))
            ledger_s = min(ledger_s, ledger(batches, encode=False))
            encoded_s = min(encoded_s, ledger(batches, encode=True))
            kept_s = min(kept_s, ledger(batches, encode=True, kept=True))
        print(
            f"{blocks_an_event:>12}  {count / bare_s:>8,.0f}/s {count / ledger_s:>8,.0f}/s  {bare_s / ledger_s:>5.2f}"
            f"  {count / encoded_s:>8,.0f}/s  {count / kept_s:>8,.0f}/s  {WANTED[blocks_an_event]:>7,}/s"
        )


if __name__ == "__main__":
    main()
