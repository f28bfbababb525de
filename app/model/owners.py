"""Whose a stored block is, as far as the store itself and the order of events tell. Changes nothing.

Imports only `ids`, `observations` and its own package.
"""

from ..ids import BlockHash
from ..observations import BlockStored
from .block_cache import StoreReading
from .block_keys import pack_tokens
from .prefix_match import cacheable_tokens
from .rank_book import RankBook
from .request_book import RequestBook
from .requests import Request
from .servers import ServerBook

MAX_HOLDERS = 16
"""Requests that hold a block, newest first, of which one may have stored it."""
LATE_S = 2.0
"""Seconds after its end for which a request still waits for events of its blocks."""


def reading_of(event: BlockStored, server: ServerBook) -> tuple[StoreReading, Request | None]:
    """How a store from the root is to be read where all its blocks are resident, and for whom, as far as that is known
    before it is applied."""
    owner = server.sessions.get(event.session_id) if event.session_id is not None else None
    if owner is None and server.skipping and event.parent_hash is None:
        skipping = [request for request in server.skipping.values() if request.first_own_depth is None]
        owner = skipping[0] if len(skipping) == 1 and _may_own(skipping[0], event) else None
    if owner is None:
        return "auto", None
    if owner.sent.skips_cache_read:
        return "copy", owner
    prompt = owner.prompt_tokens
    if prompt is not None and event.block_size > 0:
        most = cacheable_tokens(prompt, event.block_size) // event.block_size
        count = len(event.block_hashes if event.part is None else event.part.whole)
        return ("copy" if count > most else "report"), owner
    return "auto", owner


def computing_holder(
    requests: RequestBook, book: RankBook, block_hash: BlockHash, depth: int | None, at_s: float
) -> Request | None:
    """The request that waited longest of those that must have computed a block which its walk knew already: it was
    evicted, or is computed again into a new place."""
    found: Request | None = None
    for serial in book.sharing.holders(block_hash)[: -MAX_HOLDERS - 1 : -1]:
        request = requests.by_serial(serial)
        if request is None or request.first_own_depth is not None:
            continue
        if _stored_since(book, block_hash, request.as_of.get(book.rank, 0)):
            # Its own store, or another's in its place, was seen already.
            continue
        late = request.ended is not None and (not request.served or request.ended.at_s < at_s - LATE_S)
        hit = request.usage_cached is not None and depth is not None and request.block_size is not None
        if late or (hit and (request.usage_cached or 0) > (depth or 0) * (request.block_size or 1)):
            continue
        found = request
    return found


def _may_own(request: Request, event: BlockStored) -> bool:
    return request.prompt is None or request.prompt.packed.startswith(pack_tokens(event.token_ids) or b"\0")


def _stored_since(book: RankBook, block_hash: BlockHash, number: int) -> bool:
    """Whether the block appeared after event `number` and before the one just applied."""
    table = book.cache.walked
    slot = table.find(block_hash) if table is not None else None
    return table is None or slot is None or table.appeared_within(slot, number, book.cache.number)
