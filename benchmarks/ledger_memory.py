"""Memory of a full ledger: 50,000 resident blocks and 10,000 requests, and what a snapshot costs.

    .venv/bin/python -m benchmarks.ledger_memory

Requests have 1,024 prompt tokens in blocks of 16 and share prefixes of 32 blocks in groups of 100. Resident set size
from /proc, of which the interpreter with its libraries is printed apart.
"""

import random
import time
from pathlib import Path

import msgspec

from app.events import Outgoing
from app.ids import GroupIdx, Rank, RequestId, ServerId
from app.model.ledger import Ledger, LedgerLimits
from app.observations import (
    BlockStored,
    KvBatch,
    RequestEnded,
    RequestFirstToken,
    RequestHead,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from app.wire.live_protocol import encode_event

BLOCK = 16
SHARED, OWN = 32, 32
BLOCKS, REQUESTS, GROUP = 50_000, 10_000, 100
SERVER = ServerId("http://127.0.0.1:8000")
WANTED_MB = 300


def resident_mb() -> float:
    """Resident set size of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def store(hashes: tuple[int, ...], parent: int | None, tokens: tuple[int, ...]) -> BlockStored:
    """A store as events carry it."""
    return BlockStored(hashes, parent, tokens, BLOCK, None, "GPU", None, GroupIdx(0), "full_attention", None)


def fill(ledger: Ledger) -> None:
    """Requests with their blocks until both counts are reached."""
    chooser = random.Random(1)
    prefix: tuple[int, ...] = ()
    prefix_hashes: tuple[int, ...] = ()
    stored = seq = 0
    now = 1.0
    for number in range(REQUESTS):
        now += 0.05
        events = []
        if number % GROUP == 0:
            prefix = tuple(chooser.randrange(150_000) for _ in range(SHARED * BLOCK))
            prefix_hashes = tuple(chooser.getrandbits(64) for _ in range(SHARED))
            events.append(store(prefix_hashes, None, prefix))
        own = tuple(chooser.randrange(150_000) for _ in range(OWN * BLOCK))
        if stored < BLOCKS:
            hashes = tuple(chooser.getrandbits(64) for _ in range(OWN))
            events.append(store(hashes, prefix_hashes[-1], own))
        name = RequestId(f"r-{number}")
        ledger.apply(
            RequestStarted(SERVER, name, "/v1/chat/completions", "client", now, streamed=True, label="A question")
        )
        ledger.apply(RequestPromptTokens(name, prefix + own, "response", now))
        if events:
            stored += sum(len(event.block_hashes) for event in events)
            ledger.apply(KvBatch(SERVER, Rank(0), seq, tuple(events), now))
            seq += 1
        ledger.apply(RequestHead(name, 200, now + 0.01))
        ledger.apply(RequestFirstToken(name, now + 0.02))
        cached = 0 if number % GROUP == 0 else SHARED * BLOCK
        ledger.apply(RequestUsage(name, len(prefix) + len(own), 64, cached, now + 0.03))
        ledger.apply(RequestEnded(name, "ok", now + 0.04))


def main() -> None:
    """Prints what memory and snapshot take."""
    before = resident_mb()
    ledger = Ledger(LedgerLimits(max_blocks=2 * BLOCKS), 0.0)
    start = time.process_time()
    fill(ledger)
    filled_s = time.process_time() - start
    after = resident_mb()
    blocks = sum(len(columns.hash) for columns in ledger.block_columns())
    requests = len(ledger.requests(REQUESTS, None)[0])
    print(f"{blocks:,} resident blocks, {requests:,} requests: {after:,.0f} MB in all (wanted: {WANTED_MB} MB),")
    print(f"  {after - before:,.0f} MB of it the ledger's; filled in {filled_s:.1f} s of CPU")
    start = time.process_time()
    columns = ledger.block_columns()
    columns_s = time.process_time() - start
    start = time.process_time()
    snapshot = ledger.snapshot()
    snapshot_s = time.process_time() - start
    start = time.process_time()
    size = len(encode_event(Outgoing(snapshot, 0.0), 1))
    encode_s = time.process_time() - start
    print(
        f"block columns {columns_s * 1000:.0f} ms, snapshot {snapshot_s * 1000:.0f} ms, its JSON {encode_s * 1000:.0f} "
        f"ms and {size / 1e6:.1f} MB ({len(msgspec.json.encode(columns)) / 1e6:.1f} MB of blocks)"
    )


if __name__ == "__main__":
    main()
