"""Carries numbered events to any number of browsers, and lets none of them slow another, the ledger or the proxy.

Every event is encoded once, into one shared ring. A browser is a place in that ring, so a slow one costs nothing but
its distance. Where the distance grows over the bound, what it missed is dropped and a fresh snapshot takes its place.
Knows nothing of blocks, and nothing of sockets.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..events import Hello, Outgoing, Snapshot
from ..sources.clock import Clock
from ..wire.live_protocol import encode_event, snapshot_steps
from .backlog import Backlog
from .wakes import Wakes

HEARTBEAT = b'{"type":"heartbeat"}'
HELLO_SEQ = 0
START_SEQ = 1
"""The number of the empty beginning: a first snapshot counts higher than the hello before it."""
SNAPSHOT_SHARED_FOR_S = 0.5
"""A snapshot this young serves other browsers too, with the events since: a thousand reconnects encode one."""
SNAPSHOT_COST_RATIO = 0.05
"""The most of the event loop's time that snapshots for browsers take: a costly one is shared for longer."""
MESSAGES_AT_ONCE = 32
"""Messages handed to a socket without a pause: about a millisecond of the event loop."""


_NOTHING: list[bytes] = []


class Hub:
    """Numbers, encodes and keeps events, and hands them to subscriptions. One event loop, no locks.

    `queue_events` is how far a browser may fall behind. `snapshot` is called between two events, never in one.
    """

    def __init__(
        self,
        hello: Hello,
        queue_events: int,
        heartbeat_s: float,
        snapshot: Callable[[], Snapshot],
        clock: Clock,
    ) -> None:
        self.hello = hello
        self.queue_events = queue_events
        self.heartbeat_s = heartbeat_s
        self.clients = 0
        self.snapshots_encoded = 0
        self._snapshot = snapshot
        self._clock = clock
        self._backlog = Backlog(hello.backlog_events, START_SEQ + 1)
        self._wakes = Wakes(heartbeat_s)
        self._kept: _KeptSnapshot | None = None
        self._encoding = asyncio.Lock()
        self._batch: tuple[int, int, list[bytes]] = (0, 0, [])
        """The last messages handed out, from which number to which: browsers that keep up share one list."""

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return self._backlog.next_seq - 1

    def publish(self, outgoing: Iterable[Outgoing]) -> None:
        """Numbers and encodes events, in order, and wakes whoever waits for them. Never blocks."""
        backlog = self._backlog
        before = backlog.next_seq
        for event in outgoing:
            backlog.append(encode_event(event, backlog.next_seq))
        if backlog.next_seq != before:
            self._wakes.wake()

    def subscribe(self, after: int | None = None, instance: str | None = None) -> "Subscription":
        """A place in the stream: after event `after` of run `instance` where that can be, else at a snapshot."""
        resumes = after is not None and instance == self.hello.instance and after >= START_SEQ
        cursor = after if resumes and after is not None and self._backlog.holds_all_since(after) else None
        return Subscription(self, cursor)

    def hello_message(self) -> bytes:
        """The first message of a connection."""
        return encode_event(Outgoing(self.hello, self._clock.wall_ms()), HELLO_SEQ)

    async def snapshot_message(self, at_least: int) -> tuple[int, bytes]:
        """A snapshot's number, `at_least` or more (at most `seq`), and its message: of now, or young enough.

        It is taken at once and encoded in steps, so that events go out meanwhile.
        """
        async with self._encoding:
            began_s = self._clock.monotonic()
            kept = self._kept
            if kept and kept.seq >= at_least and self._can_share(kept, began_s):
                return kept.seq, kept.message
            seq = self.seq
            steps = snapshot_steps(self._snapshot(), self._clock.wall_ms(), seq)
            spent_s = self._clock.monotonic() - began_s
            while True:
                step_s = self._clock.monotonic()
                try:
                    next(steps)
                except StopIteration as done:
                    message: bytes = done.value
                    break
                spent_s += self._clock.monotonic() - step_s
                await asyncio.sleep(0)
            self.snapshots_encoded += 1
            shared_for_s = max(SNAPSHOT_SHARED_FOR_S, spent_s / SNAPSHOT_COST_RATIO)
            self._kept = _KeptSnapshot(seq, message, self._clock.monotonic() + shared_for_s)
            return seq, message

    def _can_share(self, kept: "_KeptSnapshot", now_s: float) -> bool:
        behind = self.behind(kept.seq)
        return now_s <= kept.shared_until_s and behind is not None and behind <= self.queue_events

    def behind(self, cursor: int) -> int | None:
        """Events that a browser at `cursor` hasn't had; None where some of them are no longer kept."""
        return self.seq - cursor if self._backlog.holds_all_since(cursor) else None

    def since(self, cursor: int) -> list[bytes]:
        """The next few messages after `cursor`: the same list for all who ask from there. Not to be changed."""
        seq = self.seq
        if cursor == seq:
            # Whoever has had all comes again at once, and before the others have had theirs: those still share it.
            return _NOTHING
        if self._batch[:2] != (cursor, seq):
            self._batch = (cursor, seq, self._backlog.since(cursor, MESSAGES_AT_ONCE))
        return self._batch[2]

    async def wait_for_news(self) -> bool:
        """Waits until something is published; False where nothing was for `heartbeat_s`."""
        return await self._wakes.wait()


class _KeptSnapshot(NamedTuple):
    """The last snapshot that was encoded, its number, and until when others may have it too."""

    seq: int
    message: bytes
    shared_until_s: float


class Subscription:
    """One browser's place. `async for messages in subscription` gives lists of messages, to be sent in order.

    First the hello, then a snapshot or the events since; then events as they come, and a heartbeat in silence.
    """

    def __init__(self, hub: Hub, cursor: int | None) -> None:
        self._hub = hub
        self._cursor = cursor
        self._greeted = False
        self._just_had_snapshot = False

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> list[bytes]:
        return await self.take()

    async def take(self) -> list[bytes]:
        """The next messages, at least one; waits for them."""
        if not self._greeted:
            self._greeted = True
            return [self._hub.hello_message()]
        while True:
            if self._cursor is None or self._overflowed(self._cursor):
                # The number grows on a connection, whatever is sent: a shared snapshot must be newer than the cursor.
                self._cursor, message = await self._hub.snapshot_message(
                    START_SEQ if self._cursor is None else self._cursor + 1
                )
                self._just_had_snapshot = True
                return [message]
            messages = self._hub.since(self._cursor)
            if messages:
                self._cursor += len(messages)
                self._just_had_snapshot &= self._cursor < self._hub.seq
                return messages
            self._just_had_snapshot = False
            if not await self._hub.wait_for_news():
                return [HEARTBEAT]

    def _overflowed(self, cursor: int) -> bool:
        behind = self._hub.behind(cursor)
        if behind is None:
            return True
        # What piles up while a snapshot crosses a slow link must not call for another one: then only the ring bounds.
        return behind > self._hub.queue_events and not self._just_had_snapshot
