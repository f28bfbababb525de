"""What one replica holds, copied out of its mirror column by column, to be looked through while the mirror goes on.

Whole columns are copied at the speed of memory, which is all that it costs the one writer. Imports only
`ids`, `observations` and its own package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter

from ..ids import BlockHash, Rank, ServerId
from ..observations import ExtraKeys
from .block_slots import BlockSlots
from .rank_book import RankBook
from .stream_health import Coverage


@dataclass(frozen=True, slots=True)
class TierView:
    """Resident blocks on one medium. The columns have a row a block; `parents` are hashes, None for first blocks."""

    medium: str
    hashes: Sequence[BlockHash]
    parents: Sequence[BlockHash | None]
    tokens: Sequence[bytes | None]
    extras: Sequence[ExtraKeys | None]
    copies: Sequence[int]
    requests: Sequence[int]
    """Kept requests whose block table holds the block."""


@dataclass(frozen=True, slots=True)
class TierCopy:
    """A table's columns by slot, resident or not, as they were."""

    medium: str
    resident: bytearray
    hash: list[BlockHash | None]
    parent: list[int]
    tokens: list[bytes | None]
    extra: list[ExtraKeys | None]
    copies: list[int]
    holders: list[int]

    def view(self) -> TierView:
        """Its resident blocks. This is the long part, for another thread."""
        flags, hashes = self.resident, self.hash
        return TierView(
            medium=self.medium,
            # A resident block has a hash.
            hashes=list(compress(hashes, flags)),  # type: ignore[arg-type]
            parents=[hashes[parent] for parent in compress(self.parent, flags)],
            tokens=list(compress(self.tokens, flags)),
            extras=list(compress(self.extra, flags)),
            copies=list(compress(self.copies, flags)),
            requests=list(compress(self.holders, flags)),
        )


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One rank of a server: its blocks that prefixes are made of, the tier that prompts are looked up in first."""

    server: ServerId
    rank: Rank
    models: tuple[str, ...]
    block_size: int | None
    coverage: Coverage
    tiers: tuple[TierCopy, ...]
    other_blocks: int
    """Resident blocks of other KV cache groups, of which no prefix is made."""


def replica_view(book: RankBook, models: tuple[str, ...]) -> ReplicaView:
    """The replica as it stands now."""
    cache = book.cache
    walked = cache.walked
    tiers = [
        (table is not walked, medium, table)
        for (group, medium), table in cache.tables.items()
        if walked is not None and group == cache.walked_group
    ]
    tiers.sort(key=itemgetter(0, 1))
    copies = tuple(_copy(medium, table) for _, medium, table in tiers)
    others = cache.resident - sum(table.resident for _, _, table in tiers)
    return ReplicaView(book.server, book.rank, models, cache.block_size, book.stream.coverage, copies, others)


def _copy(medium: str, table: BlockSlots) -> TierCopy:
    return TierCopy(
        medium=medium,
        resident=table.resident_flags.copy(),
        hash=table.hash.copy(),
        parent=table.parent.copy(),
        tokens=table.tokens.copy(),
        extra=table.extra.copy(),
        copies=table.copies.copy(),
        holders=table.holders.copy(),
    )
