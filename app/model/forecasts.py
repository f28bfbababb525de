"""How much of a prompt will hit, as of the moment at which it was sent. Imports only its own package."""

from dataclasses import dataclass, replace
from itertools import groupby

from .prefix_match import cacheable_tokens, known_path, resident_prefix
from .rank_book import RankBook
from .requests import Request
from .servers import ServerBook

MEDIA_RUN = 4
"""So many equal tokens in a row are taken for a picture's, in a request that has some."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Cached tokens expected as of the send; `sure` where no history is missing, else it is a lower bound."""

    cached_tokens: int
    sure: bool
    matched_blocks: int = 0
    """Blocks that match, of those that can be reused, whether or not this server reuses all of them."""


def forecast(request: Request, server: ServerBook) -> Forecast | None:
    """Cached tokens as of the send; None where that can't be known."""
    size, length = server.block_size, request.prompt_tokens
    if request.sent.sequences != 1:
        return None
    if request.sent.skips_cache_read or server.caching is False:
        return Forecast(0, True)
    if length is None or size is None:
        return None
    most = cacheable_tokens(length, size)
    if most == 0:
        return Forecast(0, True)
    if request.prompt is None:
        return None
    blocks = most // size
    if request.sent.has_images:
        blocks = min(blocks, _tokens_before_media(request.prompt.packed) // size)
    books = [server.rank(request.rank)] if request.rank is not None else server.ranks.values()
    each = {_forecast_on(request, server, book, blocks) for book in books}
    found = each.pop() if len(each) == 1 else None
    # The same picture may hit all the same.
    return replace(found, sure=False) if found is not None and request.sent.has_images else found


def _tokens_before_media(packed: bytes) -> int:
    """Tokens before the first run of equal ones: every picture is the same placeholder, so that tokens say nothing of
    what follows. Servers that list keys of pictures make another block of it; older ones don't say."""
    ids = memoryview(packed).cast("I")
    at = 0
    for _, run in groupby(ids):
        length = sum(1 for _ in run)
        if length >= MEDIA_RUN:
            return at
        at += length
    return at


def _forecast_on(request: Request, server: ServerBook, book: RankBook, most: int) -> Forecast | None:
    if book.stream.coverage == "none" or request.prompt is None:
        return None
    number = request.as_of.get(book.rank, 0)
    slots = book.cache.walked_at(number)
    if slots is None:
        # No block was ever stored until then.
        return Forecast(0, book.stream.coverage == "complete")
    if slots.block_size is None:
        return None
    path = known_path(slots, request.prompt)[:most]
    matched = resident_prefix(slots, path, number)
    hit = server.habits.hit_blocks(matched)
    return Forecast(hit * slots.block_size, book.stream.coverage == "complete", matched)
