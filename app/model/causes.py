"""Why a request's prefix was or wasn't reused: finds the cause and its numbers; `verdict` words them.

What the server said of the request (`cached_tokens`) is never argued with: causes explain it. Imports only its own
package.
"""

from collections import Counter
from typing import NamedTuple

from .block_keys import TOKEN_BYTES, unpack_tokens
from .block_slots import ROOT, BlockSlots
from .prefix_match import PromptKeys, common_tokens, elsewhere, known_path, nearest_child
from .request_book import RequestBook
from .requests import Request
from .servers import RankBook, ServerBook

Params = dict[str, int | float | str | None]
COMPARED_PROMPTS = 256
"""Kept prompts that a prompt is compared with, newest first."""
SEARCHED_REFERENCES = 500
EDIT_RATIO = 0.5
"""Share of the rest of a first block that also stands in the nearest one, from which it counts as an edit of it."""
WORTH_NAMING_RATIO = 0.25
"""Share of a first block below which a shared start is only the chat template's."""


class Cause(NamedTuple):
    """A code of `verdict.CODES`, and the numbers that its sentence needs."""

    code: str
    params: Params


def find_cause(request: Request, server: ServerBook, requests: RequestBook) -> Cause:
    """The cause for an ended request, with the first that explains the loss where several hold."""
    params = _figures(request)
    ended = request.ended
    if ended is not None and ended.outcome != "ok":
        params |= {
            "outcome": ended.outcome,
            "status": request.status,
            "error": None if request.hides_error else ended.error,
        }
        params["content_chunks"] = ended.content_chunks
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
        return _hit(request, server, requests, params)
    blocks = request.blocks()
    if blocks is not None and blocks[1] == 0:
        return Cause("too_short", params)
    return _miss(request, server, requests, params)


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


def _hit(request: Request, server: ServerBook, requests: RequestBook, params: Params) -> Cause:
    reference = find_reference(request, server, requests)
    if reference is not None:
        request.reference_id, request.reference_ttft_ms = reference.id, reference.ttft_ms
        params["reference_id"] = reference.id
    if request.reference_ttft_ms is not None:
        params["reference_ttft_ms"] = round(request.reference_ttft_ms, 3)
    reused, reusable = params.get("reused_blocks"), params.get("reusable_blocks")
    if isinstance(reused, int) and isinstance(reusable, int) and reused < reusable:
        loss = find_loss(request, server, requests, reused)
        if loss is not None:
            params |= loss.params
            params["loss"] = loss.code
        return Cause("reused", params)
    return Cause("full_hit" if reusable is not None else "reused", params)


def _miss(request: Request, server: ServerBook, requests: RequestBook, params: Params) -> Cause:
    loss = find_loss(request, server, requests, 0)
    if loss is None:
        params["reason"] = "no_tokens" if _history_known(server) else "no_events"
        if request.sent.sequences != 1:
            params["reason"] = "sequences"
        if request.mismatched_length is not None:
            params |= {"reason": "mismatch", "found_tokens": request.mismatched_length}
        return Cause("unexplained", params)
    return Cause(loss.code, params | loss.params)


def _history_known(server: ServerBook) -> bool:
    return any(book.stream.coverage != "none" for book in server.ranks.values())


def find_loss(request: Request, server: ServerBook, requests: RequestBook, reused: int) -> Cause | None:
    """Why block `reused` (from 0) of a prompt wasn't reused, although it could have been; None where that can't be
    known."""
    prompt, size = request.prompt, request.block_size
    if prompt is None or not size:
        return None
    book = _book(request, server)
    shared: Cause | None = None
    if book is not None:
        number = request.as_of.get(book.rank, 0)
        found = _loss_by_events(request, book, prompt, size, reused, number)
        if found is not None and found.code not in ("diverges", "first_seen"):
            return found
        shared = found
    tokens, ends = _nearest_kept(request, requests, prompt)
    by_events = shared.params.get("shared_tokens") if shared is not None else None
    if shared is None or (isinstance(by_events, int) and tokens > by_events):
        if shared is None and book is not None and book.stream.coverage == "none" and tokens <= reused * size:
            return None
        if shared is None and book is None and tokens <= reused * size:
            return None
        shared = _divergence(prompt, size, tokens, None, reused, ends=ends)
    return shared


def _book(request: Request, server: ServerBook) -> RankBook | None:
    if request.rank is not None:
        return server.rank(request.rank)
    return next(iter(server.ranks.values())) if len(server.ranks) == 1 else None


def _loss_by_events(
    request: Request, book: RankBook, prompt: PromptKeys, size: int, reused: int, number: int
) -> Cause | None:
    slots = book.cache.walked_at(number)
    sent_s = request.sent.at_s
    path: list[int] = []
    if slots is not None and slots.block_size == size:
        for slot in known_path(slots, prompt):
            if not slots.known_at(slot, number):
                break
            path.append(slot)
        if len(path) > reused:
            slot = path[reused]
            if slots.resident_at(slot, number):
                return Cause("unexplained", {"reason": "seemed_resident", "block": reused + 1})
            return Cause("evicted", {"seconds": _since(sent_s, slots.gone_s[slot]), "block": reused + 1})
    for epoch in reversed(book.cache.epochs):
        if epoch.cleared_number > number or epoch.slots.block_size != size:
            continue
        if len(known_path(epoch.slots, prompt)) > reused:
            return Cause("reset", {"seconds": _since(sent_s, epoch.cleared_s), "reason": epoch.reason})
    if slots is None or slots.block_size != size:
        return None if book.stream.coverage == "none" else Cause("first_seen", {"shared_tokens": 0, "token": 1})
    if reused == 0 and not path:
        twin = elsewhere(slots, prompt.chunk(0, size), prompt.extra(0), number)
        if twin is not None:
            return _other_keys(slots, twin, prompt)
    parent = path[-1] if path else ROOT
    depth = len(path)
    near = nearest_child(slots, parent, prompt.chunk(depth, size), prompt.extra(depth), number)
    tokens = depth * size + (near[1] if near else 0)
    return _divergence(prompt, size, tokens, slots.tokens[near[0]] if near else None, reused)


def _since(sent_s: float, gone_s: float) -> float | None:
    """Seconds before the send; None where the event came after it, and only the order is known."""
    return round(sent_s - gone_s, 3) if gone_s <= sent_s else None


def _other_keys(slots: BlockSlots, twin: int, prompt: PromptKeys) -> Cause:
    extra = slots.extra[twin]
    if (extra.lora_name if extra else None) != prompt.lora_name:
        return Cause("other_adapter", {"adapter": extra.lora_name if extra else None})
    if (extra.salt if extra else None) != prompt.salt:
        return Cause("other_salt", {"salted": int(prompt.salt is not None)})
    return Cause("other_image", {})


def _divergence(
    prompt: PromptKeys, size: int, tokens: int, nearest: bytes | None, reused: int, *, ends: bool = False
) -> Cause:
    """The cause for a prompt that shares its first `tokens` tokens with the nearest one, and no more."""
    length = len(prompt.packed) // TOKEN_BYTES
    block = tokens // size
    params: Params = {
        "shared_tokens": tokens,
        "token": tokens + 1,
        "block": block + 1,
        "blocks_after": -(-length // size) - block,
        "ends": int(ends),
    }
    if tokens >= length:
        return Cause("diverges", params | {"token": None})
    if tokens >= size or reused:
        return Cause("diverges", params)
    if tokens == 0:
        return Cause("first_seen", params)
    if nearest is not None and _is_edit(prompt.chunk(0, size), nearest, tokens):
        return Cause("diverges", params)
    return Cause("too_short" if tokens >= size * WORTH_NAMING_RATIO else "first_seen", params)


def _is_edit(chunk: bytes, nearest: bytes, tokens: int) -> bool:
    rest, other = unpack_tokens(chunk)[tokens:], unpack_tokens(nearest)[tokens:]
    common = sum((Counter(rest) & Counter(other)).values())
    return common >= EDIT_RATIO * max(len(rest), 1)


def _nearest_kept(request: Request, requests: RequestBook, prompt: PromptKeys) -> tuple[int, bool]:
    """(tokens shared with the nearest kept prompt sent before, whether that prompt ends there)."""
    best, ends = 0, False
    compared = 0
    for other in requests.newest_first():
        known = other.prompt
        if other.serial >= request.serial or known is None or other.sent.server != request.sent.server:
            continue
        if (known.salt, known.lora_name) != (prompt.salt, prompt.lora_name):
            continue
        compared += 1
        if compared > COMPARED_PROMPTS:
            break
        head = (best + 1) * TOKEN_BYTES
        if len(known.packed) >= head and known.packed[:head] == prompt.packed[:head]:
            shared = common_tokens(known.packed, prompt.packed, best + 1)
            best, ends = shared, shared * TOKEN_BYTES == len(known.packed)
    return best, ends


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

    book = _book(request, server)
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
