"""How long a snapshot holds the event loop, by resident blocks: making it, and the longest step of encoding it.

    .venv/bin/python -m benchmarks.ledger_snapshot

Blocks come 64 an event, each event a chain of its own; half as many again were evicted, a few hundred blocks a time, so
that slots are used again. 1,000 requests hold blocks, 200 are in the snapshot. CPU time; the median of many. Wanted:
under 20 ms for 50,000 blocks, to make it and for each step.
"""

import random
import statistics
import time

from app.events import Snapshot
from app.ids import GroupIdx, Rank, RequestId, ServerId
from app.model.ledger import Ledger, LedgerLimits
from app.observations import (
    BlockRemoved,
    BlockStored,
    KvBatch,
    RequestEnded,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from app.wire.live_protocol import snapshot_steps

BLOCK, CHAIN, EVICTED_AT_ONCE = 16, 64, 320
REQUESTS = 1_000
RUNS = 30
SERVER = ServerId("http://127.0.0.1:8000")


def filled(blocks: int) -> Ledger:
    """A ledger with `blocks` resident blocks."""
    chooser = random.Random(blocks)
    ledger = Ledger(LedgerLimits(), 1.8e12)
    resident: list[int] = []
    sent = 0
    for seq in range(blocks * 3 // 2 // CHAIN):
        hashes = tuple(chooser.getrandbits(64) for _ in range(CHAIN))
        tokens = tuple(chooser.randrange(150_000) for _ in range(CHAIN * BLOCK))
        name = RequestId(f"r-{seq}")
        now = float(seq)
        if sent < REQUESTS:
            sent += 1
            ledger.apply(RequestStarted(SERVER, name, "/v1/completions", "client", now, streamed=True))
            ledger.apply(RequestPromptTokens(name, (*tokens, 1), "response", now))
        stored = BlockStored(hashes, None, tokens, BLOCK, None, "GPU", None, GroupIdx(0), "full_attention", None)
        events: list[BlockStored | BlockRemoved] = [stored]
        resident.extend(hashes)
        if len(resident) > blocks:
            events.append(BlockRemoved(tuple(resident[:EVICTED_AT_ONCE]), "GPU", GroupIdx(0)))
            del resident[:EVICTED_AT_ONCE]
        ledger.apply(KvBatch(SERVER, Rank(0), seq, tuple(events), now))
        if ledger.request(name) is not None:
            ledger.apply(RequestUsage(name, len(tokens) + 1, 1, 0, now))
            ledger.apply(RequestEnded(name, "ok", now))
    return ledger


def encoded(snapshot: Snapshot) -> tuple[float, int]:
    """(milliseconds of the longest step, bytes) of its JSON."""
    longest = 0.0
    steps = snapshot_steps(snapshot, 0.0, 1)
    while True:
        began = time.process_time()
        try:
            next(steps)
        except StopIteration as done:
            return max(longest, (time.process_time() - began) * 1000), len(done.value)
        longest = max(longest, (time.process_time() - began) * 1000)


def main() -> None:
    """Prints a table."""
    print("  blocks    columns   snapshot     JSON   longest step    size")
    for blocks in (5_306, 50_000, 65_536):
        ledger = filled(blocks)
        columns_ms: list[float] = []
        snapshot_ms: list[float] = []
        json_ms: list[float] = []
        step_ms: list[float] = []
        size = 0
        for _ in range(RUNS):
            times = [time.process_time()]
            ledger.block_columns()
            times.append(time.process_time())
            snapshot = ledger.snapshot()
            times.append(time.process_time())
            longest, size = encoded(snapshot)
            times.append(time.process_time())
            step_ms.append(longest)
            for found, start, end in zip((columns_ms, snapshot_ms, json_ms), times[:-1], times[1:], strict=True):
                found.append((end - start) * 1000)
        medians = (statistics.median(found) for found in (columns_ms, snapshot_ms, json_ms, step_ms))
        columns, whole, json, step = medians
        print(
            f"{len(ledger.block_columns()[0].hash):>8,} {columns:>7.1f} ms {whole:>7.1f} ms {json:>5.1f} ms "
            f"{step:>10.1f} ms {size / 1e6:>6.1f} MB"
        )


if __name__ == "__main__":
    main()
