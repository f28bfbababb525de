"""Requests as they go out: records and block tables. Imports only `events` and its own package."""

from ..events import Basis, BlockTable, CellState, RequestRecord
from .block_keys import hash_texts
from .request_times import BY_SERVER, choice_ttfts_ms, durations, first_token_parts, token_gaps
from .requests import Request


def request_record(request: Request, wall_offset_ms: float, embedded: bool, *, router: bool = False) -> RequestRecord:
    """The record as it stands now. `embedded`: the server's own times are modelled, not measured. `router`: what
    answered is a router in front of the servers."""
    sent, cached, blocks, size = request.sent, request.cached(), request.blocks(), request.block_size
    times, error, ended = durations(request), request.error, request.ended
    return RequestRecord(
        id=request.id,
        server=sent.server,
        rank=request.rank,
        model=sent.model,
        at_ms=wall_offset_ms + sent.at_s * 1000,
        origin=sent.origin,
        endpoint=sent.endpoint,
        streamed=sent.streamed,
        label=sent.label,
        outcome=ended.outcome if ended else None,
        status=request.status,
        error=error,
        prompt_tokens=request.prompt_tokens,
        cached_tokens=cached[0] if cached else None,
        predicted_cached_tokens=request.predicted,
        predicted_is_lower_bound=request.predicted is not None and not request.predicted_sure,
        completion_tokens=request.usage_completion,
        block_size=size,
        prompt_blocks=blocks[0] if blocks else None,
        reusable_blocks=blocks[1] if blocks else None,
        reused_blocks=cached[0] // size if cached and size and request.consistent else None,
        choice_ttft_ms=choice_ttfts_ms(request),
        ttft_parts=first_token_parts(request),
        token_gaps=token_gaps(request),
        salted=sent.salt is not None,
        cold=sent.salted_by_page,
        transferred=sent.transfers_kv,
        reported_by_router=router and request.usage_cached is not None,
        server_closed_ms=wall_offset_ms + ended.at_s * 1000 if ended and ended.outcome == "client_gone" else None,
        reference_id=request.reference_id,
        reference_ttft_ms=request.reference_ttft_ms,
        verdict=request.verdict,
        routing=request.routing,
        basis=_basis(request, cached, times, embedded),
        **times,
    )


def _basis(
    request: Request, cached: tuple[int, Basis] | None, times: dict[str, float | None], embedded: bool
) -> dict[str, Basis]:
    by_server: Basis = "modelled" if embedded else "engine"
    basis: dict[str, Basis] = {
        name: by_server if name in BY_SERVER else "clock" for name, value in times.items() if value is not None
    }
    if cached:
        basis["cached_tokens"] = cached[1]
    if request.prompt_tokens is not None:
        basis["prompt_tokens"] = "usage" if request.usage_prompt is not None else "engine"
    if request.predicted is not None:
        basis["predicted_cached_tokens"] = "inferred"
    if request.usage_completion is not None:
        basis["completion_tokens"] = "usage"
    if request.routing is not None:
        basis["routing"] = "inferred"
    return basis


def block_table(request: Request) -> BlockTable | None:
    """The request's block table as it stands now; None while the prompt's length or the block size isn't known, and
    for calls of several sequences, whose blocks can't be told apart, and after the end where nothing told what was
    reused."""
    size, prompt = request.block_size, request.prompt_tokens
    if not size or prompt is None or request.sent.sequences != 1:
        return None
    hashes, cached = request.hashes, request.cached() if request.consistent else None
    # The last hash stands for all before it.
    key = (
        size, prompt, cached, request.running, request.first_s is None, request.first_own_depth is None, len(hashes),
        hashes[-1] if hashes else None, request.usage_completion,
    )  # fmt: skip
    if request.table_key != key:
        request.table_key, request.table = key, _block_table(request, size, prompt, cached)
    return request.table


def _block_table(request: Request, size: int, prompt: int, cached: tuple[int, Basis] | None) -> BlockTable | None:
    full, tail = divmod(prompt, size)
    if not request.running and cached is None:
        return None
    reused = min(cached[0] // size, full) if cached else 0
    prefilled = request.first_s is not None or not request.running
    later: CellState = "computed" if prefilled and cached else "pending"
    own = len(request.hashes) if request.first_own_depth is not None else 0
    states: list[CellState] = ["reused"] * reused
    states.extend("computed" if index < own else later for index in range(reused, full))
    texts: list[str | None] = list(hash_texts(request.hashes))
    generated = _generated_blocks(request, prompt, size, full)
    texts = texts[: full + generated]
    texts.extend([None] * (full + generated - len(texts)))
    tokens = [size] * (full + generated)
    states.extend(["decode"] * generated)
    if tail and not generated:
        texts.append(None)
        tokens.append(tail)
        states.append("partial")
    return BlockTable(size, tuple(texts), tuple(tokens), tuple(states), cached[1] if cached else "inferred")


def _generated_blocks(request: Request, prompt: int, size: int, full: int) -> int:
    """Blocks that generated tokens filled. The last token sampled is in no block: nothing was computed from it."""
    completed = request.usage_completion
    known = max(len(request.hashes) - full, 0)
    if completed is None:
        return known
    return max((prompt + max(completed - 1, 0)) // size - full, known, 0)
