"""Follows every data-parallel rank of one server: a subscriber each, as many as its metrics name or a person says.

vLLM's rank r publishes on port + r, and `/metrics` labels each engine with its rank.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from ..ids import Rank, ServerId
from ..observations import EngineSample, KvRanks, KvStreamState, Observation
from .clock import Clock

MAX_RANKS = 256
ONLY = (Rank(0),)


class Subscriber(Protocol):
    """What `KvSubscriber` is to this module."""

    async def run(self) -> None:
        """Follows the stream until cancelled."""
        ...

    def tell_failed(self, message: str) -> None:
        """Shows that `run` ended by a fault."""
        ...


class KvRankSubscribers:
    """`make` gives the subscriber of a rank. `ranks` None: rank 0, and then those that `heard_engines` hears of."""

    def __init__(
        self,
        server: ServerId,
        make: Callable[[Rank], Subscriber],
        emit: Callable[[Observation], None],
        clock: Clock,
        ranks: int | None = None,
    ) -> None:
        self._server = server
        self._make = make
        self._emit = emit
        self._clock = clock
        self._is_given = ranks is not None
        self._wanted: tuple[Rank, ...] = ONLY if ranks is None else tuple(map(Rank, range(min(ranks, MAX_RANKS))))
        self._subscribers: dict[Rank, Subscriber] = {}
        self._running: dict[Rank, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Follows the ranks until cancelled. A subscriber that fails ends all, and raises."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._changed.clear()
                    self._adjust(tasks)
                    await self._changed.wait()
        finally:
            self._running.clear()

    def heard_engines(self, engines: Iterable[EngineSample]) -> None:
        """The engines that a scrape named. One engine alone has one stream, whatever its number; once several were
        named, one that a scrape leaves out isn't given up."""
        numbers = (sample.engine.partition("{")[0] for sample in engines)
        found = {Rank(int(number)) for number in numbers if number.isascii() and number.isdecimal()}
        if self._is_given or len(found) < 2 or found <= set(self._wanted):
            return
        known = set(self._wanted) if len(self._wanted) > 1 else set()
        self._wanted = tuple(sorted(rank for rank in found | known if rank < MAX_RANKS))
        self._changed.set()

    def tell_failed(self, message: str) -> None:
        """For whoever runs this: `run` ended by a fault, and `message` says so to people."""
        for subscriber in self._subscribers.values():
            subscriber.tell_failed(message)

    def _adjust(self, tasks: asyncio.TaskGroup) -> None:
        self._emit(KvRanks(self._server, self._wanted, self._clock.monotonic()))
        for rank in [rank for rank in self._running if rank not in self._wanted]:
            self._running.pop(rank).cancel()
            del self._subscribers[rank]
            self._emit(KvStreamState(self._server, rank, "off", None, None, self._clock.monotonic()))
        for rank in self._wanted:
            if rank not in self._running:
                subscriber = self._subscribers.setdefault(rank, self._make(rank))
                self._running[rank] = tasks.create_task(subscriber.run(), name=f"KV events, rank {rank}")
