"""The residency map put to work: looks at one replica after another, and reckons in a thread."""

import asyncio

from .fleet.residency import ResidencyMap, ResidencySurvey
from .model.ledger import Ledger
from .model.resident_view import ReplicaView
from .sources.clock import Clock

KEPT_S = 1.0
REST = 4.0
"""A map is kept for at least so many times as long as it took: the thread takes turns with the event loop."""
MOST_ROWS = 500


class FleetWatch:
    """Makes one map at a time, and keeps it for a while, however many ask."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._survey = ResidencySurvey()
        self._turn = asyncio.Lock()
        self._made: tuple[float, ResidencyMap] | None = None
        self._kept_until_s = 0.0

    async def map(self) -> tuple[float, ResidencyMap]:
        """When the replicas were looked at, in milliseconds of the epoch, and what they hold."""
        async with self._turn:
            if self._made is None or self._clock.monotonic() >= self._kept_until_s:
                at_ms, began_s = self._clock.wall_ms(), self._clock.monotonic()
                views: list[ReplicaView] = []
                for server, rank in self._ledger.replicas():
                    view = self._ledger.replica_view(server, rank)
                    if view is not None:
                        views.append(view)
                    # Copying one is short. Others have their turn between two.
                    await asyncio.sleep(0)
                self._made = at_ms, await asyncio.to_thread(self._survey.survey, views, MOST_ROWS)
                now_s = self._clock.monotonic()
                self._kept_until_s = now_s + max(KEPT_S, REST * (now_s - began_s))
            return self._made
