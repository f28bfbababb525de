"""Losses of blocks that are there, but not for this request: on another rank or server, or under other keys.

Each look gives a cause or None. Imports only its own package.
"""

from .block_slots import ROOT, BlockSlots
from .loss_case import Cause, LossCase
from .prefix_match import elsewhere, known_path, resident_prefix
from .requests import Request


def other_rank(case: LossCase) -> Cause | None:
    """Another rank has the block wanted."""
    served = case.request.rank
    for rank, book in sorted(case.server.ranks.items()):
        if book is case.book:
            continue
        slots = book.cache.walked_at(case.request.as_of.get(rank, 0))
        blocks = _resident(slots, case, case.request.as_of.get(rank, 0))
        if blocks > case.reused:
            return Cause("other_rank", {"other_rank": rank, "rank": served, "resident_blocks": blocks})
    return None


def other_server(case: LossCase) -> Cause | None:
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


def _resident(slots: BlockSlots | None, case: LossCase, number: int) -> int:
    if slots is None or slots.block_size != case.size:
        return 0
    return resident_prefix(slots, known_path(slots, case.prompt)[: case.reusable], number)


def other_keys(case: LossCase) -> Cause | None:
    """The same tokens are there for another adapter or under another salt."""
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


def other_image(case: LossCase) -> Cause | None:
    """The same tokens stand there under keys that only a picture has: salt and adapter are those of the path."""
    slots, at = case.slots, len(case.path)
    if slots is None or case.reused != at:
        return None
    parent = case.path[-1] if case.path else ROOT
    twin = elsewhere(slots, case.prompt.chunk(at, case.size), case.prompt.extra(at), case.number, parent)
    extra = slots.extra[twin] if twin is not None else None
    return Cause("other_image", {}) if extra is not None and extra.other is not None else None


def other_model(case: LossCase) -> Cause | None:
    """The same tokens were computed for another model, on another server."""
    other = _kept_twin(case, same_server=False) if not case.reused and not case.path else None
    return Cause("other_model", {"other_model": other.sent.model}) if other is not None else None


def _kept_twin(case: LossCase, *, same_server: bool) -> Request | None:
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
