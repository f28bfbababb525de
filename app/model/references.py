"""Which earlier request a hit's first-token time is compared with. Imports only its own package."""

from .rank_book import RankBook
from .request_book import RequestBook
from .requests import Request
from .servers import ServerBook

SEARCHED_REFERENCES = 500


def rank_book(request: Request, server: ServerBook) -> RankBook | None:
    """The rank that served a request, where it is known or there is no other."""
    if request.rank is not None:
        return server.rank(request.rank)
    return next(iter(server.ranks.values())) if len(server.ranks) == 1 else None


def find_reference(request: Request, server: ServerBook, requests: RequestBook) -> Request | None:
    """An earlier request of nearly the same length that computed what this one reused: the one that first did where
    it is known, else the closest in length."""
    length, size, cached = request.prompt_tokens, request.block_size, request.cached()
    if length is None or cached is None or request.ttft_ms is None:
        return None
    near = max(length // 10, 2 * (size or 16))

    def fits(other: Request) -> bool:
        said, tokens = other.cached(), other.prompt_tokens
        return (
            other.serial < request.serial
            and other.sent.server == request.sent.server
            and other.sent.model == request.sent.model
            and other.ttft_ms is not None
            and not other.sent.skips_cache_read
            and other.consistent
            and said is not None
            and said[0] == 0
            and tokens is not None
            and abs(tokens - length) <= near
        )

    book = rank_book(request, server)
    last = cached[0] // size - 1 if size else -1
    if book is not None and 0 <= last < len(request.hashes):
        for serial in book.sharing.holders(request.hashes[last])[:64]:
            first = requests.by_serial(serial)
            if first is not None and fits(first):
                return first
    best: Request | None = None
    for searched, other in enumerate(requests.newest_first()):
        if searched >= SEARCHED_REFERENCES:
            break
        if fits(other) and (best is None or _distance(other, length) < _distance(best, length)):
            best = other
    return best


def _distance(request: Request, length: int) -> int:
    return abs((request.prompt_tokens or 0) - length)
