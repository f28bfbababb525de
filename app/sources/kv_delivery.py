"""Hands the messages of one event stream on as observations, each once, and large ones in parts."""

import asyncio
from collections.abc import Callable

from ..errors import DecodeError
from ..ids import Rank, ServerId
from ..observations import KvBatch, KvDuplicate, KvGap, KvRestarted, Malformed, Observation
from ..wire.kv_events import DecodedBatch, KvEventDecoder
from ..wire.kv_frames import KvFrames
from ..wire.kv_values import WHOLE_BYTES
from .clock import Clock
from .kv_sequence import KvSequence


class KvDelivery:
    """Owns the position in the stream. What it emits is in sequence."""

    def __init__(
        self, server: ServerId, rank: Rank, emit: Callable[[Observation], None], clock: Clock, decoder: KvEventDecoder
    ) -> None:
        self.sequence = KvSequence()
        self.restarts = 0
        self._server = server
        self._rank = rank
        self._emit = emit
        self._clock = clock
        self._decoder = decoder

    @staticmethod
    def is_large(frames: KvFrames) -> bool:
        """Whether `deliver` lets other tasks have their turns in between: nothing else may be delivered meanwhile."""
        return len(frames.payload) > WHOLE_BYTES

    async def deliver(self, frames: KvFrames, *, replayed: bool) -> None:
        """Takes a message and hands its events on."""
        self.sequence.take(frames.seq, frames.payload)
        is_large = self.is_large(frames)
        batch: DecodedBatch | None = None
        number = 0
        try:
            for step in self._decoder.parts(frames.payload):
                if step is not None:
                    if batch is not None:
                        self._hand_on(frames.seq, batch, replayed, number, more=True)
                        number += 1
                    batch = step
                if is_large:
                    await asyncio.sleep(0)
        except DecodeError as error:
            # Its number is used up and its events are unknown: for whoever mirrors the cache that is a gap.
            self.malformed(error)
            self.gap(frames.seq, frames.seq, 0)
        if batch is not None:
            self._hand_on(frames.seq, batch, replayed, number, more=False)

    def _hand_on(self, seq: int, batch: DecodedBatch, replayed: bool, part: int, *, more: bool) -> None:
        self._emit(
            KvBatch(
                self._server, self._rank, seq, batch.events, self._clock.monotonic(), replayed, batch.wire_form,
                batch.malformed, batch.unknown_types, batch.ts, part, more,
            )
        )  # fmt: skip

    def restarted(self) -> None:
        """Another process publishes now."""
        self.sequence.restart()
        self.restarts += 1
        self._emit(KvRestarted(self._server, self._rank, self._clock.monotonic()))

    def gap(self, first: int, last: int, recovered: int) -> None:
        """Messages are missing; `recovered` of them are delivered next."""
        self._emit(KvGap(self._server, self._rank, first, last, recovered, self._clock.monotonic()))

    def duplicate(self, seq: int) -> None:
        """A live message came again."""
        self._emit(KvDuplicate(self._server, self._rank, seq, self._clock.monotonic()))

    def malformed(self, error: DecodeError) -> None:
        """A message can't be read."""
        self._emit(Malformed(self._server, "kv", error.message[:200], self._clock.monotonic(), self._rank))
