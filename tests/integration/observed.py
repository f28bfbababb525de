"""What a source emits while it runs, for tests to look at and to wait for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from app.observations import Observation

TIMEOUT_S = 20.0


class Observed:
    """Collects what a source emits, and waits for conditions on it."""

    def __init__(self) -> None:
        self.all: list[Observation] = []
        self._changed = asyncio.Event()

    def emit(self, observation: Observation) -> None:
        self.all.append(observation)
        self._changed.set()

    def of(self, *kinds: type) -> list[Any]:
        return [observation for observation in self.all if isinstance(observation, kinds)]

    async def until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not seen in {TIMEOUT_S} s; instead: {self.all}") from None


@asynccontextmanager
async def in_background(run: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Runs a source until the block is left; raises what it failed with."""

    async def until_cancelled() -> None:
        await run()

    task = asyncio.create_task(until_cancelled())
    try:
        yield
    finally:
        task.cancel()
        (end,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(end, Exception):
        raise end
