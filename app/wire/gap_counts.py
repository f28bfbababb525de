"""Counts of the pauses between arrivals of content in one stream: a small histogram. Imports only `observations`."""

from bisect import bisect_left

from ..observations import GAP_EDGES_MS

_EDGES_S = tuple(edge / 1000 for edge in GAP_EDGES_MS)


class GapCounts:
    """`arrived` for each read that brought content; tokens that come together are one arrival."""

    __slots__ = ("_counts", "_last_s")

    def __init__(self) -> None:
        self._last_s: float | None = None
        self._counts: list[int] = []

    def arrived(self, at_s: float) -> None:
        """Content came at `at_s`, monotonic seconds."""
        last_s = self._last_s
        self._last_s = at_s
        if last_s is not None:
            if not self._counts:
                self._counts = [0] * (len(_EDGES_S) + 1)
            self._counts[bisect_left(_EDGES_S, at_s - last_s)] += 1

    def counts(self) -> tuple[int, ...]:
        """One count for each of `GAP_EDGES_MS` and one for what is longer; () where there was no pause."""
        return tuple(self._counts)
