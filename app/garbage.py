"""When Python looks for reference cycles: never in full while a stream runs. Imports nothing of the project.

A full collection walks every object that lives: of a ledger that is full, tens of milliseconds in which no chat stream
moves. Collections of the young stay as they are, only larger and rarer: a busy proxy makes thousands of objects a
second, nearly all of them free of cycles.
"""

import asyncio
import gc
from collections.abc import Callable

YOUNG_OBJECTS = 5_000
"""A collection of so many takes well under a millisecond."""
NEVER = 1_000_000
"""Of collections of the second generation, before Python starts a full one by itself."""
EVERY_S = 30.0
ALL_EVERY_S = 3600.0
"""So often, what was seen alive before is looked at again; and a proxy that is never idle is collected all the same."""


def settle() -> None:
    """Once, when the program is up: what was made until then isn't looked at again before `ALL_EVERY_S`."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, NEVER)


async def collect_when_idle(busy: Callable[[], bool], now: Callable[[], float]) -> None:
    """Collects what came since the last time, while nothing is proxied; until cancelled."""
    last_s = all_s = now()
    while True:
        await asyncio.sleep(EVERY_S)
        if busy() and now() - last_s < ALL_EVERY_S:
            continue
        last_s = now()
        if last_s - all_s >= ALL_EVERY_S:
            all_s = last_s
            gc.unfreeze()
        gc.collect()
        gc.freeze()
