"""The block pool: which block holds what, who refers to it, and which goes next. Pure.

The rules are vLLM's (0.32, one group of full attention). Blocks are never merged: one hash may have several blocks, and
a lookup gives the oldest. A block that nobody refers to stays in the cache until it is taken for something else.
"""

from collections.abc import Iterable, Sequence

from .block_hash import BlockDigest
from .cache_events import BlocksCleared, BlocksRemoved, BlocksStored, CacheEvent
from .free_queue import Block, FreeQueue


class BlockPool:
    """`num_blocks` blocks, of which block 0 is the null block: it serves nobody and is never free.

    `unhashed_first`: blocks without a hash are reused before cached ones; vLLM up to about 0.18 keeps one order.
    """

    def __init__(self, num_blocks: int, enable_caching: bool = True, unhashed_first: bool = True) -> None:
        if num_blocks < 2:
            raise ValueError("a pool needs at least two blocks: one is the null block")
        self.blocks = tuple(Block(block_id) for block_id in range(num_blocks))
        self.free_queue = FreeQueue(self.blocks[1:])
        self._enable_caching = enable_caching
        self._unhashed_first = unhashed_first
        self._cached: dict[BlockDigest, dict[int, Block]] = {}
        self._events: list[CacheEvent] = []

    @property
    def usage_ratio(self) -> float:
        """Blocks that requests hold now, of those that can serve; cached blocks in the free queue don't count."""
        return 1.0 - len(self.free_queue) / (len(self.blocks) - 1)

    @property
    def has_events(self) -> bool:
        """Whether events wait to be drained."""
        return bool(self._events)

    def copies(self, digest: BlockDigest) -> int:
        """How many blocks hold this content, in use or free."""
        return len(self._cached.get(digest, ()))

    def find(self, digest: BlockDigest) -> Block | None:
        """The oldest block with this content."""
        copies = self._cached.get(digest)
        return next(iter(copies.values())) if copies else None

    def take(self, count: int) -> list[Block]:
        """Takes blocks from the front of the free queue, each with one reference; what they held is evicted.

        Raises ValueError, with no effect, where fewer are free.
        """
        if count > len(self.free_queue):
            raise ValueError(f"{count} blocks asked for, {len(self.free_queue)} free")
        taken = [self.free_queue.pop() for _ in range(count)]
        for block in taken:
            self._evict(block)
            block.reference_count = 1
        return taken

    def touch(self, blocks: Iterable[Block]) -> None:
        """One more reference for each: cached blocks that a new request reuses leave the free queue."""
        for block in blocks:
            if block.reference_count == 0:
                self.free_queue.remove(block)
            block.reference_count += 1

    def store(self, blocks: Sequence[Block], digests: Sequence[BlockDigest], event: BlocksStored) -> None:
        """Puts blocks into the cache, each under its hash, and announces them with `event`."""
        for block, digest in zip(blocks, digests, strict=True):
            if block.digest is not None:
                raise ValueError(f"{block!r} is in the cache already")
            block.digest = digest
            self._cached.setdefault(digest, {})[block.block_id] = block
        self._events.append(event)

    def announce(self, event: CacheEvent) -> None:
        """Adds an event about blocks that are in the cache already (the full reuse report)."""
        self._events.append(event)

    def release(self, blocks: Iterable[Block]) -> None:
        """One reference less for each. `blocks` come in the order in which they are to go: a chain's tail first.

        Blocks without a hash can serve no later request, so they go to the front of the free queue and are used first.
        """
        reuse_first: list[Block] = []
        reuse_last: list[Block] = []
        for block in blocks:
            if block.reference_count < 1:
                raise ValueError(f"{block!r} is free already")
            block.reference_count -= 1
            if block.reference_count == 0:
                cached = self._enable_caching and (block.digest is not None or not self._unhashed_first)
                (reuse_last if cached else reuse_first).append(block)
        self.free_queue.prepend(reuse_first)
        self.free_queue.append(reuse_last)

    def reset(self) -> bool:
        """Forgets every hash; False, and no effect, while a request holds a block. The free queue keeps its order."""
        if len(self.free_queue) != len(self.blocks) - 1:
            return False
        for block in self.blocks:
            block.digest = None
        self._cached.clear()
        self._events.append(BlocksCleared())
        return True

    def drain_events(self) -> tuple[CacheEvent, ...]:
        """The events since the last call, in order."""
        events = tuple(self._events)
        self._events.clear()
        return events

    def _evict(self, block: Block) -> None:
        digest = block.digest
        if digest is None:
            return
        copies = self._cached[digest]
        del copies[block.block_id]
        if not copies:
            del self._cached[digest]
        block.digest = None
        self._events.append(BlocksRemoved((digest,)))
