"""Which requests hold a block in their block table, and how often blocks were reused. One instance a rank.

Imports only `ids`.
"""

from collections.abc import Iterable

from ..ids import BlockHash


class Sharing:
    """Requests by block hash, as serial numbers in order of arrival. Grows with the kept requests' block tables and,
    for reuse counts, with the resident blocks: `forget_block` goes with a block's removal."""

    def __init__(self) -> None:
        self._holders: dict[BlockHash, list[int]] = {}
        self._reuses: dict[BlockHash, int] = {}

    def add(self, serial: int, hashes: Iterable[BlockHash]) -> None:
        """The request's block table now holds these blocks, which it didn't before."""
        for block_hash in hashes:
            self._holders.setdefault(block_hash, []).append(serial)

    def leave(self, serial: int, hashes: Iterable[BlockHash]) -> None:
        """The request is forgotten, or its block table no longer holds these blocks."""
        for block_hash in hashes:
            holders = self._holders.get(block_hash)
            if holders and serial in holders:
                holders.remove(serial)
                if not holders:
                    del self._holders[block_hash]

    def reused(self, hashes: Iterable[BlockHash]) -> None:
        """A request took these blocks from the cache."""
        for block_hash in hashes:
            self._reuses[block_hash] = self._reuses.get(block_hash, 0) + 1

    def forget_block(self, block_hash: BlockHash) -> None:
        """The block isn't resident any more: its reuse count starts anew."""
        self._reuses.pop(block_hash, None)

    def forget_blocks(self) -> None:
        """No block is resident any more."""
        self._reuses.clear()

    @property
    def holds_any(self) -> bool:
        """Whether any request is known to hold any block."""
        return bool(self._holders)

    def holders(self, block_hash: BlockHash) -> list[int]:
        """Serial numbers of the requests that hold the block, oldest first. Not to be changed."""
        return self._holders.get(block_hash, [])

    def holder_counts(self, hashes: Iterable[BlockHash]) -> tuple[int, ...]:
        """How many requests hold each block."""
        holders, nobody = self._holders, ()
        return tuple([len(holders.get(block_hash, nobody)) for block_hash in hashes])

    def reuse_counts(self, hashes: Iterable[BlockHash]) -> tuple[int, ...]:
        """How often each block was reused."""
        reuses = self._reuses
        return tuple([reuses.get(block_hash, 0) for block_hash in hashes])
