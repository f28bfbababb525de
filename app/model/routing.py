"""What the choice of a replica cost a request: what the fleet held of its prompt as of its send, what the replica that
served it held, and what that then reused.

Imports only `ids`, `events` and its own package.
"""

from collections.abc import Iterable
from functools import partial
from itertools import takewhile
from operator import is_not
from typing import NamedTuple

from ..events import Routing
from ..ids import BlockHash, Rank, ServerId
from .block_slots import ROOT
from .prefix_match import cacheable_tokens, known_path, resident_prefix
from .rank_book import RankBook
from .references import rank_book
from .requests import Request
from .servers import ServerBook

Positions = dict[tuple[ServerId, Rank], int]


_is_there = partial(is_not, None)


class _Held(NamedTuple):
    """Blocks of a prompt, from its first on, on one replica: those in its cache, and those that ever were."""

    resident: int
    known: int


def positions(servers: Iterable[ServerBook], own: ServerBook) -> Positions:
    """The number of the last event of each rank of every other server."""
    return {
        (server.id, rank): book.cache.number
        for server in servers
        if server is not own
        for rank, book in server.ranks.items()
    }


def find_routing(request: Request, server: ServerBook, servers: Iterable[ServerBook]) -> Routing | None:
    """The account; None where fewer than two replicas could have served the request, or too little is known of it."""
    prompt, size, length = request.prompt, request.block_size, request.prompt_tokens
    cached = request.cached() if request.consistent and request.served else None
    sent = request.sent
    if prompt is None or not size or length is None or cached is None or sent.skips_cache_read or sent.transfers_kv:
        return None
    reusable = cacheable_tokens(length, size) // size
    books = [book for book in _candidates(request, server, servers) if book.stream.coverage != "none"]
    if len(books) < 2:
        return None
    chosen_book = None if server.is_router else rank_book(request, server)
    # The one that served it first: where that held everything, the others needn't be looked at.
    books.sort(key=lambda book: book is not chosen_book)
    held: list[_Held] = []
    hashes: list[BlockHash] = []
    for book in books:
        held.append(_held(request, book, size, reusable, hashes))
        if held[-1].resident == reusable:
            break
    delivered = min(cached[0] // size, reusable)
    # What was reused was there, whatever events told.
    best_held = max(held, key=lambda each: each.resident)
    chosen = None
    if chosen_book in books:
        chosen = max(server.habits.hit_blocks(held[0].resident), delivered)
    best = max(best_held.resident, chosen or 0, delivered)
    ceiling = max(best, *(each.known for each in held))
    at = chosen_book if chosen == best else books[held.index(best_held)] if best_held.resident == best else None
    return Routing(
        replicas=len(books),
        reusable_tokens=reusable * size,
        ceiling_tokens=ceiling * size,
        best_tokens=best * size,
        best_server=at.server if at is not None else None,
        best_rank=at.rank if at is not None else None,
        chosen_tokens=None if chosen is None else chosen * size,
        delivered_tokens=delivered * size,
        workload_lost_tokens=(reusable - ceiling) * size,
        eviction_lost_tokens=(ceiling - best) * size,
        placement_lost_tokens=None if chosen is None else (best - chosen) * size,
        staleness_lost_tokens=None if chosen is None else (chosen - delivered) * size,
        complete=all(book.stream.coverage == "complete" for book in books),
    )


def _candidates(request: Request, server: ServerBook, servers: Iterable[ServerBook]) -> Iterable[RankBook]:
    """The ranks that could have served it: of its own server, and of those that serve the same model."""
    for other in servers:
        if other is server:
            yield from other.ranks.values()
        elif request.sent.model in other.models:
            yield from (book for book in other.ranks.values() if (other.id, book.rank) in request.elsewhere)


def _held(request: Request, book: RankBook, size: int, reusable: int, hashes: list[BlockHash]) -> _Held:
    """What one replica held. `hashes` are those of the prompt's blocks as far as replicas before it named them, and
    grow here: replicas of one model hash alike nearly always, and finding a hash is a tenth of a step of the walk."""
    own = book.server == request.sent.server
    number = request.as_of.get(book.rank, 0) if own else request.elsewhere.get((book.server, book.rank), 0)
    slots = book.cache.walked_at(number)
    if slots is None or slots.block_size != size or request.prompt is None:
        return _Held(0, 0)
    path = [slot for slot in takewhile(_is_there, map(slots.find, hashes)) if slot is not None]
    if path and slots.depth[path[-1]] != len(path) - 1:
        # Its place isn't known there, whatever its hash.
        path = []
    path += known_path(slots, request.prompt, path[-1] if path else ROOT, len(path))
    del path[reusable:]
    if len(path) > len(hashes):
        hashes[:] = [block_hash for slot in path if (block_hash := slots.hash[slot]) is not None]
    if path and max(map(slots.appeared.__getitem__, path)) <= number < min(map(slots.gone.__getitem__, path)):
        return _Held(len(path), len(path))
    known = next((place for place, slot in enumerate(path) if not slots.known_at(slot, number)), len(path))
    return _Held(resident_prefix(slots, path, number), known)
