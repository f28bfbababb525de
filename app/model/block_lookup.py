"""Answers questions about one block, for a person who points at it.

Imports only `ids` and its own package.
"""

from ..ids import BlockHash, Rank, RequestId, ServerId, hash_from_text, hash_text
from .block_keys import TOKEN_BYTES, unpack_tokens
from .block_slots import BlockSlots
from .details import BlockDetail
from .ledger_state import LedgerState
from .rank_book import RankBook
from .request_records import block_table
from .requests import Request


def block_by_hash(state: LedgerState, server: ServerId, rank: Rank, text: str) -> BlockDetail | None:
    """One block by its hash. Raises ValueError where `text` is no hash."""
    block_hash = hash_from_text(text)
    server_book = state.servers.get(server)
    book = server_book.ranks.get(rank) if server_book else None
    return _detail(state, book, block_hash, None, ()) if book else None


def block_of_request(state: LedgerState, request_id: RequestId, index: int) -> BlockDetail | None:
    """Block `index` (from 0) of a request's block table."""
    request = state.requests.get(request_id)
    table = block_table(request) if request is not None else None
    if request is None or table is None or not 0 <= index < len(table.tokens):
        return None
    tokens = _tokens_of(request, index * table.block_size, table.tokens[index])
    server = state.server_of(request)
    book = server.ranks.get(request.rank) if request.rank is not None else None
    if book is not None and index < len(request.hashes) and table.hash[index] is not None:
        found = _detail(state, book, request.hashes[index], request, tokens)
        if found is not None:
            return found
    return BlockDetail(
        hash=table.hash[index],
        server=request.sent.server,
        rank=request.rank,
        depth=index,
        token_ids=tokens,
        parent=table.hash[index - 1] if index else None,
        requests=(request.id,),
        copies=0,
        reuses=0,
        stored_ms=None,
        show_text=request.sent.show_text,
    )


def _tokens_of(request: Request, start: int, count: int) -> tuple[int, ...]:
    if request.prompt is None:
        return ()
    packed = request.prompt.packed + (request.output or b"")
    return unpack_tokens(packed[start * TOKEN_BYTES : (start + count) * TOKEN_BYTES])


def _detail(
    state: LedgerState, book: RankBook, block_hash: BlockHash, asked: Request | None, tokens: tuple[int, ...]
) -> BlockDetail | None:
    table, slot = _find(book, block_hash)
    if table is None or slot is None or (asked is None and table.is_placeholder(slot)):
        return None
    holders = [state.requests.by_serial(serial) for serial in book.sharing.holders(block_hash)]
    kept = [request for request in holders if request is not None]
    packed = table.tokens[slot]
    parent_slot = table.parent[slot]
    parent = table.hash[parent_slot] if parent_slot > 0 else None
    depth = table.depth[slot]
    return BlockDetail(
        hash=hash_text(block_hash),
        server=book.server,
        rank=book.rank,
        depth=depth if depth >= 0 else None,
        token_ids=unpack_tokens(packed) if packed is not None else tokens,
        parent=hash_text(parent) if parent is not None else None,
        requests=tuple(request.id for request in kept),
        copies=table.copies[slot],
        reuses=table.reuses[slot],
        stored_ms=None if table.is_placeholder(slot) else table.stored_ms[slot],
        show_text=any(request.sent.show_text for request in kept),
    )


def _find(book: RankBook, block_hash: BlockHash) -> tuple[BlockSlots | None, int | None]:
    walked = book.cache.walked
    tables = [walked] if walked is not None else []
    tables.extend(table for table in book.cache.tables.values() if table is not walked)
    for table in tables:
        slot = table.find(block_hash)
        if slot is not None:
            return table, slot
    return None, None
