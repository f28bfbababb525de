"""The durations of one request, in milliseconds, by the names of its record. Imports only `events`, `observations` and
its own package.
"""

from ..events import FirstTokenParts, TokenGaps
from ..observations import GAP_EDGES_MS
from .requests import Request

BY_SERVER = frozenset({"engine_ttft_ms", "queue_ms"})
"""Of the durations, those by the server's own clock."""


def durations(request: Request) -> dict[str, float | None]:
    """What the dashboard's clock measured, and what the server says."""
    sent, times, ended = request.sent, request.times, request.ended
    answer_ms = None
    if request.answer_s is not None and sent.streamed and request.answer_s != request.first_s:
        answer_ms = _ms(sent.at_s, request.answer_s)
    return {
        "ttft_ms": request.ttft_ms,
        "answer_ttft_ms": answer_ms,
        "engine_ttft_ms": times.ttft_ms if times else None,
        "queue_ms": times.queue_ms if times else None,
        "upload_ms": _ms(sent.began_s, sent.received_s),
        "proxy_ms": _ms(sent.received_s, sent.at_s),
        "head_ms": _ms(sent.at_s, request.head_s),
        "client_wait_ms": ended.client_wait_s * 1000 if ended else None,
        "e2e_ms": _ms(sent.at_s, ended.at_s if ended else None),
    }


def first_token_parts(request: Request) -> FirstTokenParts | None:
    """What the time to first token is made of; None where there is none.

    A busy server may send the head only after it has queued the request. Then it covers a part of what follows, and
    what came before can't be told.
    """
    ttft_ms, times = request.ttft_ms, request.times
    if ttft_ms is None:
        return None
    queue_ms = times.queue_ms if times else None
    prefill_ms = times.ttft_ms if times else None
    left_ms = ttft_ms - (queue_ms or 0.0) - (prefill_ms or 0.0)
    if left_ms < 0:
        # The server counts another token as the first, or its clock another time: its figures are no parts of this one.
        queue_ms, prefill_ms, left_ms = None, None, ttft_ms
    front_ms = _ms(request.sent.at_s, request.head_s)
    if front_ms is None or front_ms > left_ms:
        return FirstTokenParts(None, queue_ms, prefill_ms, left_ms)
    return FirstTokenParts(front_ms, queue_ms, prefill_ms, left_ms - front_ms)


def token_gaps(request: Request) -> TokenGaps | None:
    """Pauses between arrivals of content; None before the end, and where nothing was streamed."""
    counts = request.ended.gap_counts if request.ended else ()
    return TokenGaps(GAP_EDGES_MS, counts) if counts else None


def choice_ttfts_ms(request: Request) -> tuple[float | None, ...] | None:
    """The time to first token of each answer, where there are several."""
    sent, first = request.sent, request.choice_first_s
    if not first or sent.sequences == 1 or not sent.streamed:
        return None
    return tuple(_ms(sent.at_s, first.get(choice)) for choice in range(max(first) + 1))


def _ms(from_s: float | None, to_s: float | None) -> float | None:
    return None if from_s is None or to_s is None else (to_s - from_s) * 1000
