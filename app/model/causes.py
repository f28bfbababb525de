"""Why a request's prefix was or wasn't reused: finds the cause and its numbers; `verdict` words them.

What the server said of the request (`cached_tokens`) is never argued with: causes explain it. Imports only its own
package.
"""

from collections.abc import Iterable

from .loss_case import Cause
from .losses import find_losses
from .prefix_match import known_path, resident_prefix
from .references import find_reference, rank_book
from .request_book import RequestBook
from .requests import Request
from .savings import savings
from .servers import ServerBook
from .words import Params

__all__ = ["Cause", "find_cause"]


def find_cause(
    request: Request, server: ServerBook, requests: RequestBook, neighbours: Iterable[ServerBook] = ()
) -> Cause:
    """The cause for an ended request: the first that explains the loss where several hold, and the others.

    `neighbours`: the other servers that the dashboard watches.
    """
    params = _figures(request)
    if server.is_router and request.usage_cached is not None:
        params["by_router"] = True
    ended = request.ended
    if ended is not None and ended.outcome != "ok":
        params |= {
            "outcome": ended.outcome,
            "status": request.status,
            "error": None if request.hides_error else ended.error,
        }
        params["content_chunks"] = ended.content_chunks
        if ended.outcome == "client_gone":
            params["closed_after_ms"] = round((ended.at_s - request.sent.at_s) * 1000, 3)
        return Cause("failed", params)
    if not request.consistent:
        return Cause("inconsistent", params)
    cached = request.cached()
    nothing = cached is None or cached[0] == 0
    if request.sent.skips_cache_read and nothing:
        return Cause("lookup_skipped", params)
    if server.caching is False and nothing:
        return Cause("cache_off", params)
    if cached is None:
        params["missing"] = _missing(request, server)
        return Cause("unknown", params)
    if cached[0] > 0:
        return _hit(request, server, requests, neighbours, params)
    blocks = request.blocks()
    if blocks is not None and blocks[1] == 0:
        return Cause("exact_multiple" if _is_resident_block(request, server) else "too_short", params)
    return _miss(request, server, requests, neighbours, params)


def _figures(request: Request) -> Params:
    params: Params = {}
    cached, blocks, prompt = request.cached(), request.blocks(), request.prompt_tokens
    params["prompt_tokens"] = prompt
    params["block_size"] = request.block_size
    if cached is not None:
        params["cached_tokens"], params["cached_basis"] = cached
        if prompt is not None and request.consistent:
            params["computed_tokens"] = prompt - cached[0]
        if request.block_size and request.consistent:
            params["reused_blocks"] = cached[0] // request.block_size
    if blocks is not None:
        params["prompt_blocks"], params["reusable_blocks"] = blocks
    if request.ttft_ms is not None:
        params["ttft_ms"] = round(request.ttft_ms, 3)
    return params


def _missing(request: Request, server: ServerBook) -> str:
    if request.sent.sequences != 1:
        return "sequences"
    if not request.has_usage:
        return "usage"
    return "details_here" if server.usage_details else "details"


def _hit(
    request: Request, server: ServerBook, requests: RequestBook, neighbours: Iterable[ServerBook], params: Params
) -> Cause:
    reference = find_reference(request, server, requests)
    if reference is not None:
        request.reference_id, request.reference_ttft_ms = reference.id, reference.ttft_ms
        params["reference_id"] = reference.id
    if request.reference_ttft_ms is not None:
        params["reference_ttft_ms"] = round(request.reference_ttft_ms, 3)
    params |= savings(request, server)
    reused, reusable = params.get("reused_blocks"), params.get("reusable_blocks")
    if not isinstance(reused, int) or not isinstance(reusable, int):
        return Cause("reused", params)
    if reused < reusable:
        losses = find_losses(request, server, requests, reused, neighbours)
        if losses:
            params |= losses[0].params
            params["loss"] = losses[0].code
        return Cause("reused", params, _others(losses))
    prompt, size = request.prompt_tokens, request.block_size
    exact = prompt is not None and size and prompt % size == 0
    return Cause("exact_multiple" if exact else "full_hit", params)


def _is_resident_block(request: Request, server: ServerBook) -> bool:
    """Whether a prompt of exactly one block was resident when it was sent."""
    prompt, size, book = request.prompt, request.block_size, rank_book(request, server)
    if prompt is None or book is None or not size or request.prompt_tokens != size:
        return False
    number = request.as_of.get(book.rank, 0)
    slots = book.cache.walked_at(number)
    return (
        slots is not None and slots.block_size == size and resident_prefix(slots, known_path(slots, prompt), number) > 0
    )


def _miss(
    request: Request, server: ServerBook, requests: RequestBook, neighbours: Iterable[ServerBook], params: Params
) -> Cause:
    losses = find_losses(request, server, requests, 0, neighbours)
    if not losses:
        params["reason"] = "no_tokens" if _history_known(server) else "no_events"
        if request.sent.sequences != 1:
            params["reason"] = "sequences"
        if request.mismatched_length is not None:
            params |= {"reason": "mismatch", "found_tokens": request.mismatched_length}
        return Cause("unexplained", params)
    return Cause(losses[0].code, params | losses[0].params, _others(losses))


def _others(losses: list[Cause]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(loss.code for loss in losses[1:]))


def _history_known(server: ServerBook) -> bool:
    return any(book.stream.coverage != "none" for book in server.ranks.values())
