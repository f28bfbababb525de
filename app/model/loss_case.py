"""One request that reused less than it could have, with what was known of its server when it was sent.

Imports only its own package.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from .block_keys import TOKEN_BYTES
from .block_slots import BlockSlots
from .departures import COMPARED_PROMPTS
from .prefix_match import PromptKeys, cacheable_tokens, known_path
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
class LossCase:
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


def loss_case(
    request: Request, server: ServerBook, requests: RequestBook, reused: int, neighbours: Iterable[ServerBook] = ()
) -> LossCase | None:
    """The case of a request that reused its first `reused` blocks; None where its prompt or block size isn't known."""
    prompt, size = request.prompt, request.block_size
    if prompt is None or not size:
        return None
    book = rank_book(request, server)
    number = request.as_of.get(book.rank, 0) if book is not None else 0
    slots = book.cache.walked_at(number) if book is not None else None
    if slots is not None and slots.block_size != size:
        slots = None
    path = _known_then(slots, prompt, number) if slots is not None else []
    others = [other for other in neighbours if other is not server]
    twins = _twins(request, requests, prompt.chunk(0, size), size)
    return LossCase(request, server, requests, others, prompt, size, reused, book, number, slots, path, twins)


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
