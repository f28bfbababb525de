"""What a request is held against under the microscope, and how a prompt that isn't sent yet would fare.

Answers questions; changes nothing. Imports only `ids` and its own package.
"""

from dataclasses import dataclass

from ..ids import Rank, RequestId, SaltDigest, ServerId
from .block_keys import TOKEN_BYTES, pack_tokens
from .departures import nearest_kept, nearest_known
from .ledger_state import LedgerState
from .prefix_match import PromptKeys, cacheable_tokens, known_path, resident_prefix
from .rank_book import RankBook
from .references import rank_book
from .servers import ServerBook
from .ttft import TtftFit


@dataclass(frozen=True, slots=True)
class Comparison:
    """One prompt beside the nearest one that was known when it was sent. Token ids are packed (see `pack_tokens`).

    `nearest_request` is None where only blocks tell of it. `resident_tokens` of the shared part were in the cache.
    `show_here` and `show_there` say whose text may be shown.
    """

    request: RequestId
    server: ServerId
    rank: Rank | None
    block_size: int | None
    here: bytes
    there: bytes
    shared_tokens: int
    nearest_request: RequestId | None
    resident_tokens: int | None
    cached_tokens: int | None
    show_here: bool
    show_there: bool
    fit: TtftFit | None


def compare(state: LedgerState, request_id: RequestId) -> Comparison | None:
    """A kept request beside the nearest prompt; None where it isn't kept, or its tokens aren't known."""
    request = state.requests.get(request_id)
    if request is None or request.prompt is None:
        return None
    server, prompt = state.server_of(request), request.prompt
    kept = nearest_kept(request, state.requests, prompt)
    shared, there, nearest_request = kept.shared, kept.packed, kept.request
    show_there = nearest_request is not None and nearest_request.sent.show_text
    book, resident = rank_book(request, server), None
    slots = book.cache.walked_at(request.as_of.get(book.rank, 0)) if book is not None else None
    if book is not None and slots is not None and slots.block_size:
        number = request.as_of.get(book.rank, 0)
        path = [slot for slot in known_path(slots, prompt) if slots.known_at(slot, number)]
        resident = resident_prefix(slots, path, number) * slots.block_size
        near = nearest_known(slots, prompt, path, number)
        if near.shared > shared:
            shared, there, nearest_request = near.shared, near.packed, None
            show_there = _may_show(state, book, near.packed, slots.block_size)
    cached = request.cached()
    return Comparison(
        request=request.id,
        server=server.id,
        rank=request.rank,
        block_size=request.block_size,
        here=prompt.packed,
        there=there,
        shared_tokens=shared,
        nearest_request=nearest_request.id if nearest_request is not None else None,
        resident_tokens=resident,
        cached_tokens=cached[0] if cached is not None and request.consistent else None,
        show_here=request.sent.show_text,
        show_there=show_there,
        fit=server.ttft.fit,
    )


def _may_show(state: LedgerState, book: RankBook, packed: bytes, size: int) -> bool:
    """Whether every block of a chain is held by a request whose text may be shown."""
    slots = book.cache.walked
    if slots is None:
        return False
    path = known_path(slots, PromptKeys(packed))
    if len(path) * size * TOKEN_BYTES < len(packed):
        return False
    for slot in path:
        block_hash = slots.hash[slot]
        holders = book.sharing.holders(block_hash) if block_hash is not None else []
        kept = [state.requests.by_serial(serial) for serial in holders]
        if not any(request is not None and request.sent.show_text for request in kept):
            return False
    return True


@dataclass(frozen=True, slots=True)
class RankForecast:
    """One rank's share of a forecast: `resident` says it of each full block of the prompt, in order."""

    rank: Rank
    resident: tuple[bool, ...]
    cached_tokens: int
    complete: bool
    """Nothing is missing from what is known of its blocks."""


@dataclass(frozen=True, slots=True)
class PromptForecast:
    """How a prompt would fare if it were sent now. `ranks` is empty where no events tell of blocks."""

    tokens: int
    block_size: int | None
    reusable_blocks: int | None
    cached_tokens: int | None
    """What the best rank would reuse; None where that can't be known."""
    ranks: tuple[RankForecast, ...]
    fit: TtftFit | None


def forecast_prompt(
    state: LedgerState,
    server_id: ServerId,
    token_ids: tuple[int, ...],
    *,
    salt: SaltDigest | None = None,
    lora_name: str | None = None,
    skips_cache_read: bool = False,
) -> PromptForecast:
    """The forecast for a prompt as of now."""
    server = state.server(server_id)
    size, length = server.block_size, len(token_ids)
    packed = pack_tokens(token_ids)
    reusable = cacheable_tokens(length, size) // size if size else None
    if skips_cache_read or server.caching is False or reusable == 0:
        return PromptForecast(length, size, reusable, 0, (), server.ttft.fit)
    ranks: tuple[RankForecast, ...] = ()
    if size and packed is not None and reusable is not None:
        prompt = PromptKeys(packed, salt, lora_name)
        ranks = tuple(
            _forecast_on(server, book, prompt, reusable)
            for _, book in sorted(server.ranks.items())
            if book.stream.coverage != "none"
        )
    best = max((rank.cached_tokens for rank in ranks), default=None)
    return PromptForecast(length, size, reusable, best, ranks, server.ttft.fit)


def _forecast_on(server: ServerBook, book: RankBook, prompt: PromptKeys, reusable: int) -> RankForecast:
    slots, number = book.cache.walked, book.cache.number
    size = server.block_size or 1
    full = len(prompt.packed) // (TOKEN_BYTES * size)
    complete = book.stream.coverage == "complete"
    if slots is None or slots.block_size != size:
        return RankForecast(book.rank, (False,) * full, 0, complete)
    path = known_path(slots, prompt)
    resident = tuple(slots.resident_at(slot, number) for slot in path) + (False,) * (full - len(path))
    hit = server.habits.hit_blocks(resident_prefix(slots, path[:reusable], number))
    return RankForecast(book.rank, resident, hit * size, complete)
