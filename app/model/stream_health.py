"""The health of one rank's KV-event stream, and how far the block picture can be trusted.

Coverage is complete from the stream's start (batch 0 seen), or from the moment at which the cache was emptied; a loss
makes it partial until then. Imports only `ids`, `observations` and `events`.
"""

from collections import deque
from typing import Literal

from ..events import CacheGroup, Notice, StreamHealth
from ..ids import Rank
from ..observations import KvBatch, KvGap, KvStreamState, StreamFault
from .flow import Flow

OFFSETS = 64
"""Live batches of which the fastest tells how far the server's clock is from the dashboard's."""
Coverage = Literal["complete", "partial", "none"]


class StreamBook:
    """Follows one stream. Durations in seconds of the dashboard's clock."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.state: Literal["connecting", "connected", "disconnected", "off"] = "connecting"
        self.silent: str | None = None
        """Why nothing is heard, once that was noticed."""
        self.last_seq: int | None = None
        self.last_batch_s: float | None = None
        self.connected_s: float | None = None
        self.restarted_s: float | None = None
        self.blocks_stored = 0
        self.blocks_removed = 0
        self.malformed = 0
        self.batches = 0
        self.duplicates = 0
        self.flow = Flow()
        self.cleared_s = -1e9
        """When `blocks.cleared` last went out."""
        self.unconfirmed_clear = False
        """The server was told to empty its cache, and its events haven't said so yet."""
        self._offsets: deque[float] = deque(maxlen=OFFSETS)
        self._history: Coverage = "none"
        self._recovering_to: int | None = None
        self._accepted_seq: int | None = None
        """The batch of which further parts may come."""
        self._endpoint: str | None = None
        self._message: str | None = None
        self._wire_form: Literal["array", "map"] | None = None
        self._gaps = self._replayed = self._lost = self._unknown_types = self._restarts = 0
        self._replay_available: bool | None = None
        self._fault: StreamFault | None = None
        self._noted: tuple[Coverage, float] = ("none", 0.0)
        """Coverage as it was last noted, and since when it is that."""

    @property
    def coverage(self) -> Coverage:
        """Complete, partial or none. While the connection is lost, nobody knows what goes by."""
        if self._history == "complete" and self.state in ("disconnected", "off"):
            return "partial"
        return self._history

    def take_state(self, observed: KvStreamState) -> None:
        """The subscription changed. "silent" is the source's own diagnosis."""
        if observed.state == "silent":
            self.state, self.silent = "connected", observed.message or "No events came."
        else:
            self.state, self.silent = observed.state, None
        if observed.state == "connected":
            self.connected_s = observed.at_s
        self._endpoint = observed.endpoint
        self._message, self._fault = observed.message, observed.fault
        if observed.replay_available is not None:
            self._replay_available = observed.replay_available

    def take_gap(self, gap: KvGap) -> None:
        """Batches were missed; `recovered` of them follow."""
        missed = gap.last_seq - gap.first_seq + 1
        self._gaps += 1
        lost = max(missed - gap.recovered, 0)
        self._lost += lost
        if lost:
            self._history = "partial"
            self._recovering_to = None
        else:
            self._recovering_to = gap.last_seq
        if lost == missed:
            self.last_seq = max(gap.last_seq, -1 if self.last_seq is None else self.last_seq)
        elif lost:
            # The newest ones are kept longest by the server: the lost ones are the oldest.
            self.last_seq = max(gap.first_seq + lost - 1, -1 if self.last_seq is None else self.last_seq)

    def published_s(self, batch: KvBatch) -> float | None:
        """When the batch was published, by the dashboard's clock: late by the fastest message's way, never early
        unless a clock was set. None where the server doesn't say or nothing compares.

        Messages are held up at times, so that what a request caused arrives after the next one was sent.
        """
        if batch.published_s is None:
            return None
        if not batch.replayed:
            self._offsets.append(batch.at_s - batch.published_s)
        return batch.published_s + min(self._offsets) if self._offsets else None

    def take_batch(self, batch: KvBatch) -> bool:
        """Whether the batch is to be applied: a number that was applied already isn't."""
        if batch.part:
            if self._accepted_seq == batch.seq:
                self._count(batch)
            return self._accepted_seq == batch.seq
        self._accepted_seq = None
        if self.last_seq is not None and batch.seq <= self.last_seq:
            self.duplicates += 1
            return False
        expected = 0 if self.last_seq is None else self.last_seq + 1
        if batch.seq > expected:
            self._gaps += 1
            self._lost += batch.seq - expected
            self._history = "partial"
        elif self._history == "none":
            self._history = "complete"
        self.last_seq = self._accepted_seq = batch.seq
        self.batches += 1
        self.silent = None
        self._replayed += batch.replayed
        self._count(batch)
        if self.state in ("connecting", "disconnected"):
            self.state = "connected"
        return True

    def _count(self, batch: KvBatch) -> None:
        self.last_batch_s = batch.at_s
        self.malformed += batch.malformed
        self._unknown_types += batch.unknown_types
        if batch.malformed:
            # What a malformed event stored or removed isn't known.
            self._history = "partial"
        if batch.wire_form is not None:
            self._wire_form = batch.wire_form

    def resynced(self) -> bool:
        """Whether the batch just applied closes a gap that replay recovered in full. True once."""
        if self._recovering_to is None or self.last_seq is None or self.last_seq < self._recovering_to:
            return False
        self._recovering_to = None
        return self._history == "complete"

    def emptied(self) -> bool:
        """The cache was emptied: what was missed before is gone. Returns whether that made the picture complete."""
        was, self._history = self._history, "complete"
        return was == "partial"

    def confirm_clear(self, *, told: bool) -> None:
        """Events came after the server was told to empty its cache. They begin with the clear, or else what is thought
        to be gone may be there."""
        self.unconfirmed_clear = False
        if not told:
            self._history = "partial"

    def incomplete(self) -> None:
        """Something that was announced isn't kept."""
        self._history = "partial"

    def restarted(self, at_s: float, *, sequence: bool) -> None:
        """Another process publishes now; with `sequence`, its numbers start anew."""
        self.restarted_s = at_s
        self.unconfirmed_clear = False
        self._history = "complete"
        self._recovering_to = None
        self._offsets.clear()
        if sequence:
            self._restarts += 1
            self.last_seq = None

    def note_coverage(self, at_s: float) -> None:
        """To be called after each change: remembers since when the coverage is what it is."""
        if self._noted[0] != self.coverage:
            self._noted = (self.coverage, at_s)

    def health(
        self, wall_offset_ms: float, orphans: int, unknown_removes: int, groups: tuple[CacheGroup, ...] = ()
    ) -> StreamHealth:
        """As it goes out."""
        return StreamHealth(
            rank=self.rank,
            state="silent" if self.silent and self.state == "connected" else self.state,
            coverage=self.coverage,
            endpoint=self._endpoint,
            message=self.silent or self._message,
            wire_form=self._wire_form,
            last_seq=self.last_seq,
            last_batch_ms=None if self.last_batch_s is None else wall_offset_ms + self.last_batch_s * 1000,
            batches=self.batches,
            blocks_stored=self.blocks_stored,
            blocks_removed=self.blocks_removed,
            gaps=self._gaps,
            replayed=self._replayed,
            lost=self._lost,
            orphans=orphans,
            unknown_removes=unknown_removes,
            malformed=self.malformed,
            unknown_types=self._unknown_types,
            restarts=self._restarts,
            replay_available=self._replay_available,
            diagnosis=self._diagnosis(),
            duplicates=self.duplicates,
            batches_per_s=self.flow.batches_per_s,
            blocks_per_s=self.flow.blocks_per_s,
            since_ms=None if self.coverage == "none" else wall_offset_ms + self._noted[1] * 1000,
            groups=groups,
            unconfirmed_clear=self.unconfirmed_clear,
        )

    def _diagnosis(self) -> Notice | None:
        params: dict[str, int | float | str | None] = {"endpoint": self._endpoint, "rank": self.rank}
        if self.silent and self.state == "connected":
            return Notice("unexplained", self.silent, params)
        if self._fault is not None and self._message is not None:
            return Notice(self._fault, self._message, params)
        return None
