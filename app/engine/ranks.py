"""Data-parallel ranks: several step loops, each with a pool of its own, behind one HTTP server.

Where a request goes is decided as vLLM's own balancer does: to the rank with the fewest unfinished requests, where a
queue counts more on a rank whose blocks are nearly all taken; of equals, to the next one in turn. The answers of one
request (`n`), and its prompts, are placed one by one.
"""

from collections.abc import Sequence

from .fields import ApiError
from .loop import EngineLoop
from .metrics_page import MetricsPage
from .outputs import OutputStream, Submission, submit

PRESSURE_FROM = 0.5
"""Share of blocks in use above which waiting requests weigh more."""
PRESSURE_WEIGHT = 6.0


class EngineRanks:
    """The loops in order of rank, all of one configuration."""

    def __init__(self, loops: Sequence[EngineLoop], page: MetricsPage) -> None:
        self.loops = tuple(loops)
        self.page = page
        self._first_looked_at = 0

    def now_s(self) -> float:
        """The clock of all ranks."""
        return self.loops[0].now_s()

    def submit(self, submissions: Sequence[Submission], arrived_s: float, rank: int | None = None) -> OutputStream:
        """Queues requests, all or none, on `rank` or where the balancer puts them.

        Raises ApiError for a rank that isn't there, ValueError for a request that a core can't take.
        """
        if rank is not None and not 0 <= rank < len(self.loops):
            raise ApiError(f"data_parallel_rank {rank} is out of range [0, {len(self.loops)}).")
        return submit(submissions, lambda _: self.loops[self._choose() if rank is None else rank], arrived_s)

    def abort_all(self) -> None:
        """Ends every request; their streams give None."""
        for loop in self.loops:
            loop.abort_all()

    def reset_prefix_cache(self) -> bool:
        """Empties every rank's cache that has no block in use; the answer is rank 0's, as vLLM gives it."""
        done = [loop.reset_prefix_cache() for loop in self.loops]
        return done[0]

    def _choose(self) -> int:
        count = len(self.loops)
        order = [(self._first_looked_at + step) % count for step in range(count)]
        self._first_looked_at = (self._first_looked_at + 1) % count
        return min(order, key=self._load)

    def _load(self, rank: int) -> float:
        loop = self.loops[rank]
        gauges = loop.core.gauges()
        pressure = max(0.0, gauges.kv_cache_usage_ratio - PRESSURE_FROM)
        return max(loop.unfinished, gauges.running + gauges.waiting) + gauges.waiting * PRESSURE_WEIGHT * pressure
