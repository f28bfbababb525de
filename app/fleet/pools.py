"""One pool, run request by request: under LRU as a server runs it, and under Belady's rule, which none can beat. Pure.

Imports only its own package.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from .stream import Lookup

NEVER = 1 << 60


class LruPool:
    """The cached blocks of one pool of `size` blocks, the null block not counted. Requests run one after another."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._blocks: dict[int, None] = {}
        """Resident blocks; those that go first come first."""

    def __len__(self) -> int:
        return len(self._blocks)

    def found(self, lookup: Lookup) -> int:
        """Blocks that the request would find, from its first on."""
        for count, block in enumerate(lookup.blocks[: lookup.reusable]):
            if block not in self._blocks:
                return count
        return lookup.reusable

    def run(self, lookup: Lookup) -> int:
        """Runs a request. Returns what it found. One that is larger than the pool never runs, and changes nothing."""
        if lookup.places > self._size:
            return 0
        found, blocks = self.found(lookup), self._blocks
        # Tail first: the ends of chains go before their heads.
        for block in reversed(lookup.blocks):
            blocks.pop(block, None)
            blocks[block] = None
        excess = len(blocks) + lookup.rest - self._size
        for block in [block for block, _ in zip(blocks, range(excess), strict=False)]:
            del blocks[block]
        return found


def best_possible(lookups: Sequence[Lookup], size: int) -> int:
    """Blocks hit in a pool of `size` that gives up what is needed again last (L. A. Belady, 1966): no order of
    eviction hits more, since none knows what comes."""
    uses: dict[int, list[int]] = {}
    # What is larger than the pool never runs: no use of a block counts there.
    lookups = [lookup for lookup in lookups if lookup.places <= size]
    for at, lookup in enumerate(lookups):
        for block in lookup.blocks:
            uses.setdefault(block, []).append(at)
    for later in uses.values():
        later.reverse()
    # The block needed last first; of those needed by the same request the deepest, which is of no use without the rest.
    heap: list[tuple[int, int, int]] = []
    next_use: dict[int, int] = {}
    hits = 0
    for lookup in lookups:
        for block in lookup.blocks[: lookup.reusable]:
            if block not in next_use:
                break
            hits += 1
        for depth, block in enumerate(lookup.blocks):
            uses[block].pop()
            next_use[block] = uses[block][-1] if uses[block] else NEVER
            heappush(heap, (-next_use[block], -depth, block))
        _shrink(next_use, heap, size - lookup.rest, frozenset(lookup.blocks))
        if len(heap) > 4 * len(next_use) + 1024:
            heap = [entry for entry in heap if next_use.get(entry[2]) == -entry[0]]
            heapify(heap)
    return hits


def _shrink(next_use: dict[int, int], heap: list[tuple[int, int, int]], size: int, held: frozenset[int]) -> None:
    """Gives up blocks, but none that the running request holds."""
    kept: list[tuple[int, int, int]] = []
    while len(next_use) > size:
        entry = heappop(heap)
        block = entry[2]
        if next_use.get(block) != -entry[0]:
            continue
        if block in held:
            kept.append(entry)
        else:
            del next_use[block]
    for entry in kept:
        heappush(heap, entry)
