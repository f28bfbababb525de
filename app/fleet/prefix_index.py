"""Which blocks of several replicas are the same: nodes of one tree of prefixes, numbered, parents first. Pure.

Servers may hash differently: a block is known by its content below its parent, and found by its hash once that was
seen. Imports only `ids` and `model`.
"""

from ..ids import BlockHash
from ..model.resident_view import TierView

ROOT = 0


class PrefixIndex:
    """Grows only; whoever keeps it makes a new one when most of it is dead. One for each model and block size: other
    models have equal hashes for equal tokens."""

    def __init__(self) -> None:
        self.parent = [ROOT]
        self.depth = [-1]
        """Block's place in its prompt from 0; below a block whose own place isn't known, as if that were the first."""
        self._of_hash: dict[BlockHash, int] = {}
        self._of_content: dict[tuple[object, ...], int] = {}

    def __len__(self) -> int:
        return len(self.parent) - 1

    def nodes(self, tier: TierView) -> list[int]:
        """The node of each block, row by row."""
        found = list(map(self._of_hash.get, tier.hashes))
        if None in found:
            row_of = {tier.hashes[row]: row for row, node in enumerate(found) if node is None}
            for block_hash in list(row_of):
                self._place(tier, block_hash, row_of)
            found = list(map(self._of_hash.get, tier.hashes))
        return [ROOT if node is None else node for node in found]

    def _place(self, tier: TierView, block_hash: BlockHash, row_of: dict[BlockHash, int]) -> None:
        """Gives a block its node, those above it first."""
        above = {block_hash: None}
        at = block_hash
        while True:
            row = row_of.get(at)
            parent = tier.parents[row] if row is not None and tier.tokens[row] is not None else None
            if parent is None or parent in self._of_hash or parent not in row_of or parent in above:
                break
            at = parent
            above[at] = None
        for each in reversed(above):
            if each in self._of_hash:
                continue
            row = row_of[each]
            parent, tokens = tier.parents[row], tier.tokens[row]
            if tokens is None:
                node = self._node(ROOT, (each, None))
            elif parent is None:
                node = self._node(ROOT, (ROOT, tokens, tier.extras[row]))
            else:
                under = self._of_hash.get(parent)
                if under is None:
                    # A parent that isn't there: known by its hash alone.
                    under = self._of_hash[parent] = self._node(ROOT, (parent, None))
                node = self._node(under, (under, tokens, tier.extras[row]))
            self._of_hash[each] = node

    def _node(self, parent: int, key: tuple[object, ...]) -> int:
        node = self._of_content.get(key)
        if node is None:
            node = self._of_content[key] = len(self.parent)
            self.parent.append(parent)
            self.depth.append(self.depth[parent] + 1)
        return node


def is_stale(index: PrefixIndex, live: set[int]) -> bool:
    """Whether most of an index is of blocks that are gone."""
    return len(index) > 2 * len(live) + 10_000
