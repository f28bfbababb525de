"""Why the rest of a prompt wasn't reused: every cause that holds, the first that explains the loss first.

Each look is a small function that gives a cause or None; their order is that in which a server decides: what it skips,
what it hasn't got any more, what it has elsewhere, and at last where the prompt itself is new. Imports only `ids` and
its own package.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from .block_keys import TOKEN_BYTES
from .block_slots import ROOT, BlockSlots
from .departures import COMPARED_PROMPTS, Nearest, chain_tokens, departure, nearest_kept
from .evictions import MAX_NAMED, evictors
from .prefix_match import PromptKeys, cacheable_tokens, elsewhere, known_path, nearest_child, resident_prefix
from .rank_book import RankBook
from .references import rank_book
from .request_book import RequestBook
from .requests import Request
from .servers import ServerBook
from .words import Params


class Cause(NamedTuple):
    """A code of `verdict.CODES`, the numbers that its sentence needs, and the codes of causes that hold as well."""

    code: str
    params: Params
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Case:
    """One request whose block `reused` (from 0) wasn't reused, although it could have been."""

    request: Request
    server: ServerBook
    requests: RequestBook
    neighbours: Sequence[ServerBook]
    prompt: PromptKeys
    size: int
    reused: int
    book: RankBook | None
    number: int
    slots: BlockSlots | None
    path: list[int]
    """Slots of the prompt's blocks as far as they were known when it was sent."""
    twins: Sequence[Request]
    """Earlier requests with the same first block, newest first."""

    @property
    def reusable(self) -> int:
        """Blocks that can be reused at most."""
        return cacheable_tokens(len(self.prompt.packed) // TOKEN_BYTES, self.size) // self.size


def find_losses(
    request: Request, server: ServerBook, requests: RequestBook, reused: int, neighbours: Iterable[ServerBook] = ()
) -> list[Cause]:
    """Every cause that holds, in order; none where it can't be known."""
    prompt, size = request.prompt, request.block_size
    if prompt is None or not size:
        return []
    book = rank_book(request, server)
    number = request.as_of.get(book.rank, 0) if book is not None else 0
    slots = book.cache.walked_at(number) if book is not None else None
    if slots is not None and slots.block_size != size:
        slots = None
    path = _known_then(slots, prompt, number) if slots is not None else []
    others = [other for other in neighbours if other is not server]
    twins = _twins(request, requests, prompt.chunk(0, size), size)
    case = _Case(request, server, requests, others, prompt, size, reused, book, number, slots, path, twins)
    looks = (
        _coarse, _computing, _evicted, _reset, _other_rank, _other_server, _other_keys, _other_image, _other_model,
    )  # fmt: skip
    found = [cause for cause in (look(case) for look in looks) if cause is not None]
    departures = _departures(case)
    if found and departures and departures[0].params.get("token", 0) is None:
        # The whole prompt was there before: nothing departs.
        return found
    return found + departures


def _twins(request: Request, requests: RequestBook, chunk: bytes, size: int) -> list[Request]:
    if len(chunk) < size * TOKEN_BYTES:
        return []
    return [
        other
        for other in islice(requests.newest_first(), COMPARED_PROMPTS)
        if other.prompt is not None and other.prompt.packed.startswith(chunk) and other.serial < request.serial
    ]


def _known_then(slots: BlockSlots, prompt: PromptKeys, number: int) -> list[int]:
    path: list[int] = []
    for slot in known_path(slots, prompt):
        if not slots.known_at(slot, number):
            break
        path.append(slot)
    return path


# --- the server reuses less than it has ---


def _coarse(case: _Case) -> Cause | None:
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


def _computing(case: _Case) -> Cause | None:
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


# --- the server hasn't got it any more ---


def _evicted(case: _Case) -> Cause | None:
    slots, book = case.slots, case.book
    if slots is None or book is None or len(case.path) <= case.reused:
        return None
    slot = case.path[case.reused]
    if slots.resident_at(slot, case.number):
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


def _reset(case: _Case) -> Cause | None:
    if case.book is None:
        return None
    for epoch in reversed(case.book.cache.epochs):
        if epoch.cleared_number > case.number or epoch.slots.block_size != case.size:
            continue
        if len(known_path(epoch.slots, case.prompt)) > case.reused:
            seconds = _since(case.request.sent.at_s, epoch.cleared_s)
            return Cause("reset", {"seconds": seconds, "reason": epoch.reason})
    return None


def _since(sent_s: float, gone_s: float) -> float | None:
    """Seconds before the send; None where the event came after it, and only the order is known."""
    return round(sent_s - gone_s, 3) if gone_s <= sent_s else None


# --- it is there, but not for this request ---


def _other_rank(case: _Case) -> Cause | None:
    served = case.request.rank
    for rank, book in sorted(case.server.ranks.items()):
        if book is case.book:
            continue
        slots = book.cache.walked_at(case.request.as_of.get(rank, 0))
        blocks = _resident(slots, case, case.request.as_of.get(rank, 0))
        if blocks > case.reused:
            return Cause("other_rank", {"other_rank": rank, "rank": served, "resident_blocks": blocks})
    return None


def _other_server(case: _Case) -> Cause | None:
    """Its current picture: which of its events came before this request was sent isn't kept for other servers."""
    models = set(case.server.record().models) | {case.request.sent.model}
    for other in case.neighbours:
        if not models & set(other.record().models):
            continue
        for book in other.ranks.values():
            blocks = _resident(book.cache.walked, case, book.cache.number)
            if blocks > case.reused:
                return Cause("other_server", {"other_server": other.id, "resident_blocks": blocks})
    return None


def _resident(slots: BlockSlots | None, case: _Case, number: int) -> int:
    if slots is None or slots.block_size != case.size:
        return 0
    return resident_prefix(slots, known_path(slots, case.prompt)[: case.reusable], number)


def _other_keys(case: _Case) -> Cause | None:
    if case.reused or case.path:
        return None
    if case.slots is not None:
        twin = elsewhere(case.slots, case.prompt.chunk(0, case.size), case.prompt.extra(0), case.number)
        if twin is None:
            return None
        extra = case.slots.extra[twin]
        lora, salt = (extra.lora_name, extra.salt) if extra else (None, None)
    else:
        # Without events, what was sent before tells; whether it is cached still isn't known.
        other = _kept_twin(case, same_server=True)
        if other is None or other.prompt is None:
            return None
        lora, salt = other.prompt.lora_name, other.prompt.salt
    if lora != case.prompt.lora_name:
        return Cause("other_adapter", {"adapter": lora})
    if salt != case.prompt.salt:
        return Cause("other_salt", {"salted": int(case.prompt.salt is not None)})
    return None


def _other_image(case: _Case) -> Cause | None:
    """The same tokens stand there under keys that only a picture has: salt and adapter are those of the path."""
    slots, at = case.slots, len(case.path)
    if slots is None or case.reused != at:
        return None
    parent = case.path[-1] if case.path else ROOT
    twin = elsewhere(slots, case.prompt.chunk(at, case.size), case.prompt.extra(at), case.number, parent)
    extra = slots.extra[twin] if twin is not None else None
    return Cause("other_image", {}) if extra is not None and extra.other is not None else None


def _other_model(case: _Case) -> Cause | None:
    other = _kept_twin(case, same_server=False) if not case.reused and not case.path else None
    return Cause("other_model", {"other_model": other.sent.model}) if other is not None else None


def _kept_twin(case: _Case, *, same_server: bool) -> Request | None:
    """An earlier request with the same first block, under other keys, or of another model on another server."""
    for other in case.twins:
        known = other.prompt
        if known is None:
            continue
        on_same = other.sent.server == case.request.sent.server
        keys_differ = (known.salt, known.lora_name) != (case.prompt.salt, case.prompt.lora_name)
        if on_same and same_server and keys_differ:
            return other
        if not on_same and not same_server and other.sent.model != case.request.sent.model:
            return other
    return None


# --- the prompt itself is new ---


def nearest_known(slots: BlockSlots, prompt: PromptKeys, path: list[int], number: int) -> Nearest:
    """The nearest chain of blocks that the server named until event `number`."""
    size = slots.block_size or 1
    depth = len(path)
    parent = path[-1] if path else ROOT
    near = nearest_child(slots, parent, prompt.chunk(depth, size), prompt.extra(depth), number)
    blocks = len(prompt.packed) // (size * TOKEN_BYTES) - depth + 1
    child = near[0] if near else next(iter(slots.children(parent)), None) if path else None
    packed = chain_tokens(slots, path, child, max(blocks, 1))
    return Nearest(depth * size + (near[1] if near else 0), packed)


def _nearest(case: _Case) -> Nearest | None:
    """The nearest known prompt, of blocks and of kept requests; None where too little is known to tell."""
    kept = nearest_kept(case.request, case.requests, case.prompt)
    if case.slots is not None:
        near = nearest_known(case.slots, case.prompt, case.path, case.number)
        return near if kept.request is None or near.shared > kept.shared else kept
    known = case.book is not None and case.book.stream.coverage != "none"
    return kept if known or kept.shared > case.reused * case.size else None


def _departures(case: _Case) -> list[Cause]:
    nearest = _nearest(case)
    if nearest is None or nearest.shared < case.reused * case.size:
        return []
    code, params = departure(case.prompt, case.size, nearest, case.reused)
    if code == "variable_first":
        found = [Cause("variable_first", params), Cause("diverges", params)]
    elif code == "alignment":
        found = [Cause("alignment", params)]
    elif code == "diverges":
        found = [Cause("diverges", params)]
    else:
        found = [Cause("too_short" if code == "too_short" else "first_seen", params)]
    # A shared part that ends within a block loses the start of that block, whatever else holds.
    straddling = nearest.shared - case.reused * case.size
    length = len(case.prompt.packed) // TOKEN_BYTES
    if code in ("variable_first", "diverges") and case.size <= nearest.shared < length and 0 < straddling < case.size:
        found.append(Cause("alignment", {"straddling_tokens": straddling}))
    return found
