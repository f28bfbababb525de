"""The free queue: blocks that no request holds, in the order in which they are taken. Pure.

Doubly linked through the blocks themselves, so that a block that is hit leaves the middle in constant time.
"""

from collections.abc import Iterable, Iterator

from .block_hash import BlockDigest


class Block:
    """One physical block. `digest` is set while the block is in the cache; `reference_count` counts requests."""

    __slots__ = ("block_id", "digest", "newer", "older", "reference_count")

    def __init__(self, block_id: int) -> None:
        self.block_id = block_id
        self.reference_count = 0
        self.digest: BlockDigest | None = None
        self.older: Block | None = None
        self.newer: Block | None = None

    def __repr__(self) -> str:
        return f"Block({self.block_id}, references={self.reference_count}, cached={self.digest is not None})"


class FreeQueue:
    """Front: what goes next. A block is in the queue exactly while its neighbours are set."""

    __slots__ = ("_back", "_front", "_length")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._front, self._back = Block(-1), Block(-1)
        self._front.newer, self._back.older = self._back, self._front
        self._length = 0
        self.append(blocks)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Block]:
        block = self._front.newer
        while block is not None and block is not self._back:
            yield block
            block = block.newer

    def __contains__(self, block: Block) -> bool:
        return block.newer is not None

    def pop(self) -> Block:
        """Takes the front block. Raises IndexError where there is none."""
        block = self._front.newer
        if block is None or block is self._back:
            raise IndexError("no free block")
        self.remove(block)
        return block

    def remove(self, block: Block) -> None:
        """Takes a block out of any place. Raises ValueError where it isn't in the queue."""
        older, newer = block.older, block.newer
        if older is None or newer is None:
            raise ValueError(f"{block!r} is not in the free queue")
        older.newer, newer.older = newer, older
        block.older = block.newer = None
        self._length -= 1

    def append(self, blocks: Iterable[Block]) -> None:
        """Puts blocks at the back, the first of them nearest to the front."""
        self._insert_before(self._back, blocks)

    def prepend(self, blocks: Iterable[Block]) -> None:
        """Puts blocks at the front, the first of them as the very next."""
        first = self._front.newer
        if first is None:
            raise AssertionError("the front always has a neighbour")
        self._insert_before(first, blocks)

    def _insert_before(self, newer: Block, blocks: Iterable[Block]) -> None:
        last = newer.older
        if last is None:
            raise AssertionError("the queue's ends are always linked")
        for block in blocks:
            last.newer, block.older = block, last
            last = block
            self._length += 1
        last.newer, newer.older = newer, last
