"""Exact LRU stack distances: one pass over a stream gives the hits of every pool size at once. Pure.

A request's blocks go on top of the stack, the first of its chain uppermost, as a server frees a table tail first. In a
pool of C blocks just those are resident that lie less than C deep (R. L. Mattson and others, "Evaluation techniques for
storage hierarchies", 1970). A block that isn't full leaves a hole when its request ends: the server takes it first.
A hole lies in the stack as a block does, and a block that moves up past it swaps places with it: for pools that held
the block nothing changes, for smaller ones the hole is filled.

Requests run one after another here. A block that is computed again while it is resident (the last of a prompt of whole
blocks) counts once; a server keeps both. Imports only its own package.
"""

from collections import Counter
from collections.abc import Iterable

from .stream import Lookup


class Fenwick:
    """Counts of marked places in a row of `size`, by halves of halves: marking and counting take log2(size) steps."""

    def __init__(self, size: int) -> None:
        self._sums = [0] * (size + 1)
        self.total = 0

    def add(self, place: int, change: int) -> None:
        """Adds to the count of a place, from 0."""
        self.total += change
        sums, at = self._sums, place + 1
        while at < len(sums):
            sums[at] += change
            at += at & -at

    def above(self, place: int) -> int:
        """The sum of the counts behind a place."""
        sums, at, until = self._sums, place + 1, 0
        while at:
            until += sums[at]
            at &= at - 1
        return self.total - until


class LruStack:
    """The stack. Places count up to `places`: every block that goes on top takes a new one."""

    def __init__(self, places: int) -> None:
        self._marked = Fenwick(places)
        self._next = 0
        self._place_of: dict[int, int] = {}
        self._holes: list[int] = []
        """Places of holes, the uppermost last."""

    def depth(self, block: int) -> int | None:
        """How many blocks and holes lie above a block; None for one that never was."""
        place = self._place_of.get(block)
        return None if place is None else self._marked.above(place)

    def run(self, lookup: Lookup) -> list[int]:
        """Depths of the blocks that a request looks up and finds in a pool that is large enough, then the request
        itself."""
        depths: list[int] = []
        for block in lookup.blocks[: lookup.reusable]:
            depth = self.depth(block)
            if depth is None:
                break
            depths.append(depth)
        for block in reversed(lookup.blocks):
            self._push(block)
        if lookup.rest:
            self._fill_hole(None)
            self._holes.append(self._top())
        return depths

    def _push(self, block: int) -> None:
        self._fill_hole(self._place_of.get(block))
        self._place_of[block] = self._top()

    def _top(self) -> int:
        place = self._next
        self._next += 1
        self._marked.add(place, 1)
        return place

    def _fill_hole(self, place: int | None) -> None:
        """What lay at `place` (None: nowhere) goes up. The uppermost hole above it takes its place, or closes."""
        if self._holes and (place is None or self._holes[-1] > place):
            self._marked.add(self._holes.pop(), -1)
            if place is not None:
                self._holes.append(place)
                self._sink()
        elif place is not None:
            self._marked.add(place, -1)

    def _sink(self) -> None:
        """Brings the last hole to where it belongs among the others, which lie deeper nearly always."""
        holes = self._holes
        at = len(holes) - 1
        while at and holes[at - 1] > holes[at]:
            holes[at - 1], holes[at] = holes[at], holes[at - 1]
            at -= 1


def hits_by_depth(lookups: Iterable[Lookup]) -> Counter[int]:
    """How many blocks were found at each depth: a pool of C blocks hits those of depths below C."""
    known = tuple(lookups)
    stack = LruStack(sum(lookup.places for lookup in known))
    found: Counter[int] = Counter()
    for lookup in known:
        found.update(stack.run(lookup))
    return found
