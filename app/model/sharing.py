"""Which requests hold a block in their block table, also blocks that aren't resident any more. One a rank.

Imports only `ids`.
"""

from collections.abc import Iterable

from ..ids import BlockHash


class Sharing:
    """Requests by block hash, as serial numbers in order of arrival. Grows with the kept requests' block
    tables."""

    def __init__(self) -> None:
        self._holders: dict[BlockHash, list[int]] = {}

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

    @property
    def holds_any(self) -> bool:
        """Whether any request is known to hold any block."""
        return bool(self._holders)

    def holders(self, block_hash: BlockHash) -> list[int]:
        """Serial numbers of the requests that hold the block, oldest first. Not to be changed."""
        return self._holders.get(block_hash, [])
