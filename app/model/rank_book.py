"""What is known of one data-parallel engine of a server: its mirror, its stream, and who holds which block.

Imports only `ids` and its own package.
"""

from collections.abc import Iterable, Sequence

from ..ids import BlockHash, Rank, RequestId, ServerId
from .block_cache import BlockCache
from .block_slots import BlockSlots
from .details import LedgerLimits
from .expectations import Expectations
from .requests import Request
from .sharing import Sharing
from .stream_health import StreamBook


class RankBook:
    """One data-parallel engine of a server."""

    def __init__(self, server: ServerId, rank: Rank, limits: LedgerLimits, wall_offset_ms: float) -> None:
        self.server = server
        self.rank = rank
        self.cache = BlockCache(limits.max_blocks, limits.max_removed_blocks, wall_offset_ms)
        self.sharing = Sharing()
        self.stream = StreamBook(rank)
        self.expected = Expectations(rank)
        self.open: dict[RequestId, Request] = {}
        """Running requests whose `as_of` may still move: nothing came that happened after they were sent."""
        self.row_numbers: list[int] = []
        """0, 1, 2, ...: snapshots take theirs from here, since making them anew is what they'd spend most on."""
        self.part_owner: Request | None = None
        """Whose the blocks are of the event of which parts come."""
        self.part_fresh = 0
        """Blocks of its parts until now that weren't resident."""
        self._counted: BlockSlots | None = None

    def hold(self, serial: int, hashes: Sequence[BlockHash]) -> None:
        """A request's block table now holds these blocks, which it didn't before."""
        self.sharing.add(serial, hashes)
        self.count_holders(hashes)

    def let_go(self, serial: int, hashes: Sequence[BlockHash]) -> None:
        """The request is forgotten, or its block table no longer holds these blocks."""
        self.sharing.leave(serial, hashes)
        self.count_holders(hashes)

    def count_holders(self, hashes: Iterable[BlockHash]) -> None:
        """Brings the counts of the walked table up to date, of these blocks, or of all where it is another table."""
        table = self.cache.walked
        if table is None:
            return
        if table is not self._counted:
            self._counted = table
            hashes = table.hashes()
        for block_hash in hashes:
            slot = table.find(block_hash)
            if slot is not None:
                table.hold(slot, len(self.sharing.holders(block_hash)))

    def reused(self, hashes: Iterable[BlockHash]) -> None:
        """A request took these blocks from the cache."""
        table = self.cache.walked
        if table is None:
            return
        for block_hash in hashes:
            slot = table.find(block_hash)
            if slot is not None and table.copies[slot]:
                table.reuses[slot] += 1
