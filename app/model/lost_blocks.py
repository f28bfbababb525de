"""Losses of a server that reuses less than it has, hasn't got it yet, or hasn't got it any more.

Each look gives a cause or None. Imports only its own package.
"""

from .block_keys import TOKEN_BYTES
from .evictions import MAX_NAMED, evictors
from .loss_case import Cause, LossCase
from .prefix_match import known_path, resident_prefix
from .requests import Request
from .words import Params


def coarse_alignment(case: LossCase) -> Cause | None:
    """The server reuses less than it has, as it always does."""
    habits, slots = case.server.habits, case.slots
    if slots is None or (habits.dropped_blocks == 0 and habits.unit_blocks == 1):
        return None
    matched = resident_prefix(slots, case.path[: case.reusable], case.number)
    if matched <= case.reused or habits.hit_blocks(matched) != case.reused:
        return None
    return Cause(
        "coarse_alignment",
        {
            "matched_tokens": matched * case.size,
            "unit_tokens": habits.unit_blocks * case.size,
            "dropped_blocks": habits.dropped_blocks,
        },
    )


def still_computing(case: LossCase) -> Cause | None:
    """Another request that computes the block wanted, and hadn't got through when this one was sent."""
    if case.slots is not None and resident_prefix(case.slots, case.path, case.number) > case.reused:
        return None
    wanted = (case.reused + 1) * case.size * TOKEN_BYTES
    sent_s, packed = case.request.sent.at_s, case.prompt.packed[:wanted]
    for other in case.twins:
        known = other.prompt
        if known is None or other.sent.server != case.request.sent.server:
            continue
        if (known.salt, known.lora_name) != (case.prompt.salt, case.prompt.lora_name) or other.sent.sequences != 1:
            continue
        done_s = other.first_s if other.first_s is not None else other.ended.at_s if other.ended is not None else None
        cached = other.cached()
        if (done_s is not None and done_s <= sent_s) or (cached is not None and cached[0] > case.reused * case.size):
            continue
        if known.packed[:wanted] == packed and len(packed) == wanted and _may_share_rank(other, case.request):
            return Cause("still_computing", {"by": other.id})
    return None


def _may_share_rank(left: Request, right: Request) -> bool:
    return left.rank is None or right.rank is None or left.rank == right.rank


def evicted(case: LossCase) -> Cause | None:
    """The block wanted was resident and is gone; or it seemed to be resident all the same."""
    slots, book = case.slots, case.book
    if slots is None or book is None or len(case.path) <= case.reused:
        return None
    slot = case.path[case.reused]
    if slots.resident_at(slot, case.number):
        if reset(case) is not None:
            return None
        return Cause("unexplained", {"reason": "seemed_resident", "block": case.reused + 1})
    lost = [lost for lost in case.path[case.reused : case.reusable] if not slots.resident_at(lost, case.number)]
    seconds = _since(case.request.sent.at_s, slots.gone_s[slot])
    params: Params = {"seconds": seconds, "block": case.reused + 1}
    tokens = (min(len(case.path), case.reusable) - case.reused) * case.size
    if tokens > 0:
        params["lost_tokens"] = tokens
        fit = case.server.ttft.fit
        if fit is not None and fit.token_low_ms > 0 and fit.covers(tokens):
            params["lost_ms"] = round(fit.cost_ms(tokens)[0], 3)
    by = evictors(slots, lost, case.number, book, case.requests, case.request)
    if by:
        params |= {"by": ", ".join(request.id for request in by[:MAX_NAMED]), "by_count": len(by)}
    return Cause("evicted", params)


def reset(case: LossCase) -> Cause | None:
    """The block wanted was resident until the whole cache was emptied.

    vLLM empties it only while no request runs, and says so with its next scheduler step: where that is the step that
    admits this request, the event comes after the send, and before the first token.
    """
    if case.book is None:
        return None
    for epoch in reversed(case.book.cache.epochs):
        if epoch.slots.block_size != case.size:
            continue
        if epoch.cleared_number > case.number and epoch.cleared_s > _began_to_answer_s(case.request):
            continue
        if len(known_path(epoch.slots, case.prompt)) > case.reused:
            seconds = _since(case.request.sent.at_s, epoch.cleared_s)
            return Cause("reset", {"seconds": seconds, "reason": epoch.reason})
    return None


def _began_to_answer_s(request: Request) -> float:
    if request.first_s is not None:
        return request.first_s
    return request.sent.at_s if request.ended is None else request.ended.at_s


def _since(sent_s: float, gone_s: float) -> float | None:
    """Seconds before the send; None where the event came after it, and only the order is known."""
    return round(sent_s - gone_s, 3) if gone_s <= sent_s else None
