"""Where a prompt departs from the nearest known one, and what kind of departure that is.

Imports only its own package.
"""

from collections import Counter
from itertools import compress, count
from typing import NamedTuple

from .block_keys import TOKEN_BYTES, unpack_tokens
from .block_slots import ROOT, BlockSlots
from .prefix_match import PromptKeys, common_tokens, nearest_child
from .request_book import RequestBook
from .requests import Request
from .words import Params

COMPARED_PROMPTS = 256
"""Kept prompts that a prompt is compared with, newest first."""
EDIT_RATIO = 0.5
"""Share of the rest of a first block that also stands in the nearest one, from which it counts as an edit of it."""
WORTH_NAMING_RATIO = 0.25
"""Share of a first block below which a shared start is only the chat template's."""
WINDOW_TOKENS = 16
"""So many tokens in a row that stand in both prompts are no chance."""
MARK_TOKENS = 8
"""Marks of so many tokens lead to a window."""
MAX_MARKS_ALIKE = 8
"""Equal marks, as of spaces, beyond which no more are looked at."""
SEARCHED_TOKENS = 4096
"""How far behind a departure the constant part is looked for."""


class Nearest(NamedTuple):
    """The nearest known prompt: tokens shared from the start, and as many of its own tokens as are known (packed)."""

    shared: int
    packed: bytes
    ends: bool = False
    """It ends where the shared part does, as far as is known."""
    request: Request | None = None


class Return(NamedTuple):
    """Where two prompts are the same again after they departed: positions in tokens, and for how long."""

    here: int
    there: int
    tokens: int


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


def nearest_kept(request: Request, requests: RequestBook, prompt: PromptKeys) -> Nearest:
    """The kept prompt under the same keys, sent before to the same server, that shares most."""
    best = Nearest(0, b"")
    """Where nothing is shared, the newest one."""
    last, want, compared = 0, prompt.packed[:TOKEN_BYTES], 0
    for other in requests.newest_first():
        known = other.prompt
        if known is None or other.serial >= request.serial:
            continue
        compared += 1
        if compared > COMPARED_PROMPTS:
            break
        # Most prompts differ right where the best one ends.
        if best.request is not None and known.packed[last : last + TOKEN_BYTES] != want:
            continue
        if other.sent.server != request.sent.server:
            continue
        if (known.salt, known.lora_name) != (prompt.salt, prompt.lora_name):
            continue
        shared = shared_beyond(known.packed, prompt.packed, best.shared)
        if shared is not None:
            best = Nearest(shared, known.packed, shared * TOKEN_BYTES == len(known.packed), other)
            last = shared * TOKEN_BYTES
            want = prompt.packed[last : last + TOKEN_BYTES]
        elif best.request is None:
            best = Nearest(0, known.packed, request=other)
    return best


def shared_beyond(other: bytes, prompt: bytes, shared: int) -> int | None:
    """Tokens that two packed prompts share from the start; None where those aren't more than `shared`."""
    last, head = shared * TOKEN_BYTES, (shared + 1) * TOKEN_BYTES
    # Most prompts differ right there: the whole start is compared only where they don't.
    if len(other) < head or other[last:head] != prompt[last:head] or not other.startswith(prompt[:head]):
        return None
    return common_tokens(other, prompt, shared + 1)


def chain_tokens(slots: BlockSlots, path: list[int], child: int | None, most: int) -> bytes:
    """Packed tokens of a chain: the slots of `path`, then `child` and, below it, always the newest one, up to `most`
    blocks behind the path."""
    chunks = [slots.tokens[slot] or b"" for slot in path]
    slot, steps = child, 0
    while slot is not None and steps < most:
        tokens = slots.tokens[slot]
        if tokens is None:
            break
        chunks.append(tokens)
        slot, steps = next(iter(slots.children(slot)), None), steps + 1
    return b"".join(chunks)


def find_return(here: bytes, there: bytes, shared: int) -> Return | None:
    """The first constant part after the departure: a run of tokens that stands in both, taken as far as it goes. None
    where there is none near the departure.

    Verdicts are found between two events of a stream: marks at every few tokens of one prompt are looked up, by their
    first token, in the other, so that most places cost one look.
    """
    start = shared * TOKEN_BYTES
    marks = _marks(there[: start + SEARCHED_TOKENS * TOKEN_BYTES], shared)
    firsts = {memoryview(mark).cast("I")[0] for mark in marks}
    tokens = memoryview(here)[start : start + SEARCHED_TOKENS * TOKEN_BYTES].cast("I").tolist()
    for at in compress(count(start, TOKEN_BYTES), map(firsts.__contains__, tokens)):
        for other in marks.get(here[at : at + MARK_TOKENS * TOKEN_BYTES], ()):
            back = _common_before(here, there, at, other, start)
            begin, place = at - back, other - back
            width = WINDOW_TOKENS * TOKEN_BYTES
            if len(here) - begin >= width and here[begin : begin + width] == there[place : place + width]:
                run = common_tokens(here[begin:], there[place:], WINDOW_TOKENS)
                return Return(begin // TOKEN_BYTES, place // TOKEN_BYTES, run)
    return None


def _marks(there: bytes, shared: int) -> dict[bytes, list[int]]:
    """Marks of a prompt, and where they begin (bytes). A run of `WINDOW_TOKENS` has a whole one in it."""
    width = MARK_TOKENS * TOKEN_BYTES
    found: dict[bytes, list[int]] = {}
    for at in range(shared * TOKEN_BYTES, len(there) - width + 1, width):
        places = found.setdefault(there[at : at + width], [])
        if len(places) < MAX_MARKS_ALIKE:
            places.append(at)
    return found


def _common_before(here: bytes, there: bytes, at: int, other: int, start: int) -> int:
    """Bytes of equal tokens right before two places, of which neither goes before `start`."""
    back = 0
    most = min(at, other) - start
    while back < most and here[at - back - TOKEN_BYTES : at - back] == there[other - back - TOKEN_BYTES : other - back]:
        back += TOKEN_BYTES
    return back


def departure(prompt: PromptKeys, size: int, nearest: Nearest, reused: int) -> tuple[str, Params]:
    """The code and numbers of a prompt that shares `nearest.shared` tokens with the nearest one, and no more."""
    tokens = nearest.shared
    length = len(prompt.packed) // TOKEN_BYTES
    block = tokens // size
    params: Params = {
        "shared_tokens": tokens,
        "token": tokens + 1,
        "block": block + 1,
        "blocks_after": -(-length // size) - block,
        "ends": int(nearest.ends),
    }
    if tokens >= length:
        return "diverges", params | {"token": None}
    if nearest.ends:
        straddling = tokens - max(tokens // size, reused) * size
        if straddling > 0 and (tokens >= size or reused):
            return "alignment", params | {"straddling_tokens": straddling}
    else:
        constant = _constant_part(prompt, size, nearest)
        if constant is not None:
            return "variable_first", params | constant
    if tokens >= size or reused:
        return "diverges", params
    if tokens and _is_edit(prompt.chunk(0, size), nearest.packed[: size * TOKEN_BYTES], tokens):
        return "diverges", params
    if tokens == 0:
        return "first_seen", params
    return ("too_short" if tokens >= size * WORTH_NAMING_RATIO else "first_seen"), params


def _constant_part(prompt: PromptKeys, size: int, nearest: Nearest) -> Params | None:
    """The numbers of a constant part behind the departure, where at least a block of it could have been reused had
    nothing changed before it, and it is most of what follows, or several blocks."""
    found = find_return(prompt.packed, nearest.packed, nearest.shared)
    if found is None or found.tokens < max(size, WINDOW_TOKENS):
        return None
    rest = len(prompt.packed) // TOKEN_BYTES - nearest.shared
    if found.tokens < 4 * size and found.tokens * 2 < rest:
        return None
    span = max(found.here, found.there) - nearest.shared
    return {"constant_tokens": found.tokens, "span_tokens": max(span, 1)}


def _is_edit(chunk: bytes, nearest: bytes, tokens: int) -> bool:
    rest, other = unpack_tokens(chunk)[tokens:], unpack_tokens(nearest)[tokens:]
    common = sum((Counter(rest) & Counter(other)).values())
    return common >= EDIT_RATIO * max(len(rest), 1)
