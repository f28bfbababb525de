"""How much comes over a stream a second, measured over the last ten seconds. Imports nothing of the project."""

from collections import deque

WINDOW_S = 10.0
LEAST_S = 0.5


class Flow:
    """Totals as they stood at each `measure`, and what follows. None until two of them are far enough apart."""

    def __init__(self) -> None:
        self.batches_per_s: float | None = None
        self.blocks_per_s: float | None = None
        self.clears = 0
        """Times that the cache was emptied, ever."""
        self.recent_clears = 0
        """The same within the window."""
        self._totals: deque[tuple[float, int, int, int]] = deque()

    def measure(self, at_s: float, batches: int, blocks: int) -> None:
        """Takes the totals of this moment in; to be called about once a second."""
        totals = self._totals
        totals.append((at_s, batches, blocks, self.clears))
        while len(totals) > 2 and totals[1][0] <= at_s - WINDOW_S:
            totals.popleft()
        start_s, first_batches, first_blocks, first_clears = totals[0]
        seconds = at_s - start_s
        if seconds < LEAST_S:
            return
        self.batches_per_s = round((batches - first_batches) / seconds, 3)
        self.blocks_per_s = round((blocks - first_blocks) / seconds, 3)
        self.recent_clears = self.clears - first_clears
