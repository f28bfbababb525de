"""Copies that events leave uncertain, settled by what a request's usage says.

A report of reuse and a store of copies look the same on the wire, and a removal may name a hash of which another copy
lives on: `cached_tokens` of the next request that walks these blocks decides. Imports only `ids`, `events` and its own
package.
"""

from ..events import BlocksRemoved, BlocksStored
from ..ids import BlockHash, hash_text
from .block_cache import GPU
from .block_keys import hash_texts
from .ledger_state import LedgerState
from .prefix_match import known_path
from .rank_book import RankBook
from .requests import Request


def settle_copies(state: LedgerState, book: RankBook, request: Request, at_s: float) -> bool:
    """What the request's usage says about blocks that events left uncertain. Returns whether one turned out to be
    gone."""
    size, cached = request.block_size, request.usage_cached
    if not size or cached is None or not request.consistent:
        return False
    hit = cached // size
    cache = book.cache
    if request.doubtful is not None:
        hashes, counted = request.doubtful
        if counted and hit >= len(hashes):
            for block_hash in hashes:
                _shrink(state, book, block_hash, at_s)
        elif not counted and hit < len(hashes):
            _grow(state, book, request, hashes, hit, at_s)
    table = cache.walked
    if table is None or request.prompt is None or request.sent.skips_cache_read or not table.uncertain:
        return False
    dropped = False
    blocks = request.blocks()
    path = known_path(table, request.prompt)[: blocks[1] if blocks else 0]
    number = request.as_of.get(book.rank, 0)
    for index, slot in enumerate(path[: hit + 1]):
        uncertain = table.hash[slot]
        if slot not in table.uncertain or uncertain is None or not table.resident_at(slot, number):
            continue
        if index < hit:
            cache.correct(uncertain, 0, at_s)
        else:
            while cache.correct(uncertain, -1, at_s):
                pass
            _gone(state, book, uncertain, 0, at_s)
            dropped = True
    return dropped


def _shrink(state: LedgerState, book: RankBook, block_hash: BlockHash, at_s: float) -> None:
    left = book.cache.correct(block_hash, -1, at_s)
    if left is not None:
        _gone(state, book, block_hash, left, at_s)


def _grow(
    state: LedgerState, book: RankBook, request: Request, hashes: tuple[BlockHash, ...], hit: int, at_s: float
) -> None:
    """What was taken for a report of reuse was a store of copies, from block `hit` on."""
    kept: list[BlockHash] = []
    copies: list[int] = []
    for block_hash in hashes[hit:]:
        left = book.cache.correct(block_hash, 1, at_s)
        if left is not None:
            kept.append(block_hash)
            copies.append(left)
    if kept:
        event = BlocksStored(
            hash=hash_texts(kept),
            parent=hash_text(hashes[hit - 1]) if hit else None,
            depth=hit,
            tokens=book.cache.block_size,
            group=book.cache.walked_group,
            medium=GPU,
            copies=tuple(copies),
            request=request.id,
            event_seq=book.stream.last_seq,
        )
        state.emit(event, at_s, book.server, book.rank, "inferred")


def _gone(state: LedgerState, book: RankBook, block_hash: BlockHash, left: int, at_s: float) -> None:
    event = BlocksRemoved(hash_texts([block_hash]), (left,), book.cache.walked_group, GPU, book.stream.last_seq)
    state.emit(event, at_s, book.server, book.rank, "inferred")
