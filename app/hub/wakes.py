"""Wakes whoever waits for news: at most once a tick, and a few at a time, so that a thousand never hold the event loop.

One event loop, no locks. Knows nothing of what the news is.
"""

import asyncio
from collections import deque

TICK_S = 0.01
"""Between two wakes: what is published in between goes out together."""
AT_ONCE = 32
"""Woken in one turn of the loop: about a millisecond of sending."""


class Wakes:
    """Those who wait. `heartbeat_s`: after so long without news they are woken all the same."""

    def __init__(self, heartbeat_s: float, tick_s: float = TICK_S, at_once: int = AT_ONCE) -> None:
        self._heartbeat_s = heartbeat_s
        self._tick_s = tick_s
        self._at_once = at_once
        self._waiting: list[asyncio.Future[bool]] = []
        self._due: deque[asyncio.Future[bool]] = deque()
        self._next_s = 0.0
        """When the next wake may begin, by the loop's clock."""
        self._wake: asyncio.Handle | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._heard_s = 0.0

    async def wait(self) -> bool:
        """Waits for the next wake: True for news, False for silence."""
        loop = asyncio.get_running_loop()
        if self._beat is None:
            self._heard_s = loop.time()
            self._beat = loop.call_later(self._heartbeat_s, self._silence, loop)
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(future)
        return await future

    def wake(self) -> None:
        """There is news. Never blocks; to be called on the event loop. Without anyone who waits it does nothing."""
        if self._wake is not None or not self._waiting:
            return
        loop = self._waiting[0].get_loop()
        self._heard_s = loop.time()
        self._wake = loop.call_at(max(self._next_s, self._heard_s), self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake = None
        self._next_s = loop.time() + self._tick_s
        self._release(loop, news=True)

    def _silence(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beat = None
        if not self._waiting and not self._due:
            return
        left_s = self._heard_s + self._heartbeat_s - loop.time()
        if left_s <= 0:
            self._heard_s = loop.time()
            self._release(loop, news=False)
            left_s = self._heartbeat_s
        self._beat = loop.call_later(left_s, self._silence, loop)

    def _release(self, loop: asyncio.AbstractEventLoop, *, news: bool) -> None:
        is_going_on = bool(self._due)
        self._due.extend(self._waiting)
        self._waiting.clear()
        if not is_going_on:
            self._some(loop, news)

    def _some(self, loop: asyncio.AbstractEventLoop, news: bool) -> None:
        for _ in range(min(self._at_once, len(self._due))):
            future = self._due.popleft()
            if not future.done():
                future.set_result(news)
        if self._due:
            # Behind what those just woken have to do, and behind whatever else is ready.
            loop.call_soon(self._some, loop, news)
