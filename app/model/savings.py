"""What a hit saved, and why it may not be felt. Imports only its own package."""

from .requests import Request
from .servers import ServerBook
from .words import Params

CLOCKS_DIFFER_MS = 20.0
CLOCKS_DIFFER_RATIO = 0.2
QUEUE_RATIO = 0.3
"""Share of the first-token time spent waiting, from which the wait explains it."""
TINY_RATIO = 0.1
"""Share of a prompt that was reused, or of a time that was saved, below which nobody feels it."""


def savings(request: Request, server: ServerBook) -> Params:
    """Params of a hit: what it saved by the server's own samples (only where there are enough), the server's own time
    where the clocks differ much, and what explains a hit that wasn't faster."""
    params: Params = {}
    ttft_ms, cached = request.ttft_ms, request.cached()
    if ttft_ms is None or cached is None:
        return params
    own_ms = request.times.ttft_ms if request.times else None
    if own_ms is not None and abs(ttft_ms - own_ms) > max(CLOCKS_DIFFER_MS, CLOCKS_DIFFER_RATIO * ttft_ms):
        params["engine_ttft_ms"] = round(own_ms, 3)
    saved_ms = _saved(request, server, cached[0], params)
    reference_ms = request.reference_ttft_ms
    if reference_ms is not None and ttft_ms >= reference_ms * (1 - TINY_RATIO):
        reason = _not_faster(request, ttft_ms, cached[0])
        if reason is not None:
            params["not_faster"] = reason
            if reason == "queue" and request.times is not None:
                params["queue_ms"] = request.times.queue_ms
            return params
    if saved_ms is None and reference_ms is not None:
        saved_ms = reference_ms - ttft_ms
    _decode_share(request, ttft_ms, saved_ms, params)
    return params


def _saved(request: Request, server: ServerBook, cached: int, params: Params) -> float | None:
    fit, prompt = server.ttft.fit, request.prompt_tokens
    if fit is None or prompt is None or fit.token_low_ms <= 0 or not fit.covers(prompt):
        return None
    about, low, high = fit.cost_ms(cached)
    params |= {"saved_ms": round(about, 3), "saved_low_ms": round(low, 3), "saved_high_ms": round(high, 3)}
    params["saved_samples"] = fit.samples
    return about


def _not_faster(request: Request, ttft_ms: float, cached: int) -> str | None:
    queue_ms = request.times.queue_ms if request.times else None
    if queue_ms is not None and queue_ms >= QUEUE_RATIO * ttft_ms:
        return "queue"
    prompt = request.prompt_tokens
    if prompt is not None and cached < TINY_RATIO * prompt:
        return "tiny"
    return None if request.alone else "busy"


def _decode_share(request: Request, ttft_ms: float, saved_ms: float | None, params: Params) -> None:
    """Where the answer took so long that what was saved is lost in it."""
    if request.ended is None or saved_ms is None or saved_ms <= 0:
        return
    whole_ms = (request.ended.at_s - request.sent.at_s) * 1000
    if whole_ms > ttft_ms and saved_ms < TINY_RATIO * (whole_ms + saved_ms):
        params["decode_share"] = round((whole_ms - ttft_ms) / whole_ms, 3)
