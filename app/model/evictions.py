"""Who made the server evict a block: the request that stored new blocks right after. Imports only its own package."""

from bisect import bisect_right

from .block_slots import BlockSlots
from .rank_book import RankBook
from .request_book import RequestBook
from .requests import Request

SEARCHED_REQUESTS = 256
MAX_EVICTIONS = 64
"""Evicted blocks of one prompt whose evictors are looked for."""
MAX_NAMED = 3


def evictors(
    slots: BlockSlots, lost: list[int], number: int, book: RankBook, requests: RequestBook, victim: Request
) -> list[Request]:
    """Requests that evicted the blocks in slots `lost` until event `number`, oldest first, without `victim` itself.

    By the events: a server removes blocks, and then stores those that take their place. Requests that aren't kept any
    more are left out.
    """
    ends = {slots.went_before(slot, number) for slot in lost[:MAX_EVICTIONS]}
    gone = sorted(end for end in ends if end is not None)
    gone_s = [slots.gone_s[slot] for slot in lost[:MAX_EVICTIONS]]
    if not gone:
        return []
    stores: list[tuple[int, Request]] = []
    # The victim stores its blocks anew, which others hold in their tables, too.
    again = _stored_numbers(slots, victim, 0, gone[0])
    for searched, other in enumerate(requests.newest_first()):
        if searched >= SEARCHED_REQUESTS:
            break
        if (
            other is victim
            or other.first_own_depth is None
            or other.sent.server != victim.sent.server
            or other.rank not in (None, book.rank)
        ):
            continue
        ended_s = other.ended.at_s if other.ended is not None else max(gone_s)
        if other.sent.at_s > max(gone_s) or ended_s < min(gone_s) - 1.0:
            continue
        own = _stored_numbers(slots, other, other.first_own_depth, gone[0])
        stores.extend((number, other) for number in own - again)
    stores.sort(key=lambda store: store[0])
    numbers = [number for number, _ in stores]
    found: dict[int, Request] = {}
    for end in gone:
        at = bisect_right(numbers, end)
        if at < len(stores):
            found[stores[at][1].serial] = stores[at][1]
    return [request for _, request in sorted(found.items())]


def _stored_numbers(slots: BlockSlots, request: Request, depth: int, after: int) -> set[int]:
    """Events later than `after` in which blocks of the request's table, from `depth` on, appeared."""
    found: set[int] = set()
    for block_hash in request.hashes[depth:]:
        slot = slots.find(block_hash)
        if slot is not None and not slots.is_placeholder(slot) and slots.appeared[slot] > after:
            found.add(slots.appeared[slot])
    return found
