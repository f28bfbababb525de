"""What a request's outcome says of its server: hit rates, habits, and signs that its readings contradict each other.

Imports only its own package.
"""

from itertools import islice

from .ledger_state import LedgerState
from .requests import Request
from .server_notices import LATENCY_RATIO
from .servers import ServerBook

COMPARED_REPEATS = 256
"""Newest requests among which an equal prompt is looked for."""


def count(state: LedgerState, request: Request, server: ServerBook, at_s: float, *, explained: bool) -> None:
    """Takes a request that just ended into the hit rates, where its prompt was looked up and its figures can be true.
    explained: copies that events left uncertain account for a forecast that was missed."""
    if request.sent.skips_cache_read and request.served and request.prompt_tokens is not None:
        server.rates.lookup_skipped(request.prompt_tokens)
    if not _counts(request):
        return
    _learn(state, request, server, at_s, explained=explained)
    _note_signs(state, request, server)
    if request.usage_cached is not None:
        server.saved_tokens = (server.saved_tokens or 0) + request.usage_cached
    server.rates.request_ended(at_s, request.prompt_tokens, request.usage_cached, request.predicted, request.sent.at_s)
    state.show_rates(server, at_s)


def count_forecast(state: LedgerState, request: Request, server: ServerBook, at_s: float) -> None:
    """Takes the forecast of a request that ended without one, as if it had been there then."""
    if request.predicted is None or request.ended is None or not _counts(request):
        return
    _learn(state, request, server, at_s, explained=False)
    server.rates.forecast_came(request.ended.at_s, request.predicted, request.prompt_tokens)
    state.show_rates(server, at_s)


def owe(request: Request, server: ServerBook, at_s: float) -> None:
    """Notes that a block must have been stored of which no event came."""
    size, cached, prompt = request.block_size, request.usage_cached, request.prompt_tokens
    if not size or cached is None or prompt is None or request.ended is None or request.ended.outcome != "ok":
        return
    heard = [book.stream.last_batch_s for book in server.ranks.values()]
    silent = all(last_s is None or last_s < request.sent.at_s for last_s in heard)
    if prompt // size > cached // size and silent and server.owed_since_s is None:
        server.owed_since_s = at_s


def _counts(request: Request) -> bool:
    """Whether it belongs into hit rates: its prompt was looked up, and what is said of it can be true."""
    sent = request.sent
    return request.served and request.consistent and not (sent.skips_cache_read or sent.transfers_kv)


def _learn(state: LedgerState, request: Request, server: ServerBook, at_s: float, *, explained: bool) -> None:
    """From its outcome, where the forecast missed nothing and something could be reused at all."""
    blocks, size, cached = request.blocks(), request.block_size, request.usage_cached
    if request.predicted is None or not request.predicted_sure or cached is None:
        return
    if size and blocks is not None and blocks[1]:
        was_unreliable = server.habits.unreliable
        server.habits.learn(request.matched_blocks, request.predicted, cached, size, explained=explained)
        if was_unreliable or server.habits.unreliable:
            # Only then it is more than a count, and a server's record is dear to make.
            state.show_server(server, at_s, counters=False)


def _note_signs(state: LedgerState, request: Request, server: ServerBook) -> None:
    """What its outcome says of the server's other readings."""
    if request.usage_cached and request.predicted == 0 and request.predicted_sure:
        server.signs.storm_cached_tokens = request.usage_cached
    if request.usage_cached is not None or request.prompt is None or not request.ttft_ms:
        return
    first = next(
        (
            other
            for other in islice(state.requests.newest_first(), COMPARED_REPEATS)
            if other is not request and other.prompt == request.prompt and other.ttft_ms is not None
        ),
        None,
    )
    if first is not None and first.ttft_ms and first.ttft_ms / request.ttft_ms >= LATENCY_RATIO:
        server.signs.faster_repeat_ms = (first.ttft_ms, request.ttft_ms)
