"""The one writer: takes observations in order of arrival, hands them to the ledger, and publishes what follows.

Sources call `emit` from the event loop; it appends and returns. Nothing else changes the ledger, so there are no locks.
The work is cut into slices, so that a flood of events never holds the loop that also carries chat streams.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from .events import Outgoing
from .observations import KvBatch, KvGap, Observation
from .sources.clock import Clock

SLICE_S = 0.0015
"""Longest time that the writer holds the event loop, one observation apart."""
TICK_S = 1.0
LOGGED_IN_FULL = 20
"""Faults written out one by one; after them every thousandth, so that a flood can't fill the log."""
Taken = TypeVar("Taken")
logger = logging.getLogger(__name__)


class Applies(Protocol):
    """The side of the ledger that changes it."""

    def apply(self, observation: Observation) -> list[Outgoing]:
        """Takes a fact in; what follows from it."""
        ...

    def tick(self, at_s: float) -> list[Outgoing]:
        """Once a second: windows that move with time; what follows."""
        ...


class Writer:
    """Owns the queue between sources and ledger.

    `max_kv_batches`: event batches that may wait; above it the newest is dropped and reported as a gap, so that the
    block picture calls itself partial. Other observations are few and are never dropped.
    """

    def __init__(
        self,
        ledger: Applies,
        publish: Callable[[list[Outgoing]], None],
        clock: Clock,
        max_kv_batches: int,
        tick_s: float = TICK_S,
    ) -> None:
        self.poisoned = 0
        """Observations that made the ledger fail: logged, left out, and no reason to stop."""
        self.dropped_batches = 0
        self._ledger = ledger
        self._publish = publish
        self._clock = clock
        self._max_kv_batches = max_kv_batches
        self._tick_s = tick_s
        self._queue: deque[Observation] = deque()
        self._kv_batches = 0
        self._wake = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Observations that haven't been applied yet."""
        return len(self._queue)

    def emit(self, observation: Observation) -> None:
        """Queues an observation. Never blocks, never raises; to be called on the event loop."""
        if isinstance(observation, KvBatch):
            if self._kv_batches >= self._max_kv_batches:
                self._drop(observation)
                return
            self._kv_batches += 1
        self._queue.append(observation)
        self._wake.set()

    async def run(self) -> None:
        """Applies until cancelled."""
        next_tick_s = self._clock.monotonic() + self._tick_s
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wait(next_tick_s - self._clock.monotonic())
            self._apply_slice()
            now = self._clock.monotonic()
            if now >= next_tick_s:
                next_tick_s = max(next_tick_s + self._tick_s, now)
                self._guarded(self._ledger.tick, now)
            # Another turn of the loop for the streams before the next slice.
            await asyncio.sleep(0)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._wake.wait()
        except TimeoutError:
            return

    def _apply_slice(self) -> None:
        end_s = self._clock.monotonic() + SLICE_S
        while self._queue and self._clock.monotonic() <= end_s:
            observation = self._queue.popleft()
            if isinstance(observation, KvBatch):
                self._kv_batches -= 1
            self._guarded(self._ledger.apply, observation)

    def _guarded(self, step: Callable[[Taken], list[Outgoing]], taken: Taken) -> None:
        try:
            self._publish(step(taken))
        except Exception:
            # A fault in the model costs one observation, never the picture and never a chat stream.
            self.poisoned += 1
            if self.poisoned <= LOGGED_IN_FULL or self.poisoned % 1000 == 0:
                logger.exception("%s no. %d left out: it can't be applied", type(taken).__name__, self.poisoned)

    def _drop(self, batch: KvBatch) -> None:
        self.dropped_batches += 1
        gap = KvGap(batch.server, batch.rank, batch.seq, batch.seq, 0, batch.at_s)
        last = self._queue[-1]
        if (
            isinstance(last, KvGap)
            and (last.server, last.rank, last.last_seq + 1) == (gap.server, gap.rank, gap.first_seq)
            and not last.recovered
        ):
            self._queue[-1] = replace(last, last_seq=gap.last_seq)
        else:
            self._queue.append(gap)
