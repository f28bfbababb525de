"""Who waits for which block of one rank: requests by the block that they would store next. Imports only its package."""

from collections.abc import Iterator

from ..ids import BlockHash, Rank
from .requests import ExpectKey, Request


class Expectations:
    """A request waits for one block at most; several may wait for the same one, in order of arrival."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._below: dict[BlockHash | None, dict[ExpectKey, list[Request]]] = {}
        """By the block's parent, and then by the block."""

    def __bool__(self) -> bool:
        return bool(self._below)

    def __contains__(self, parent: BlockHash | None) -> bool:
        """Whether anybody waits for a child of this block; None stands for the root."""
        return parent in self._below

    def items(self) -> Iterator[tuple[ExpectKey, list[Request]]]:
        """Each block that is waited for, and who waits."""
        for below in self._below.values():
            yield from below.items()

    def wait(self, request: Request, key: ExpectKey) -> None:
        """The request waits for this block from now on. It waits for no other."""
        request.expecting[self._rank] = key
        self._below.setdefault(key[0], {}).setdefault(key, []).append(request)

    def leave(self, request: Request) -> None:
        """The request waits no longer."""
        key = request.expecting.pop(self._rank, None)
        waiting = self._below.get(key[0], {}).get(key) if key is not None else None
        if key is None or waiting is None:
            return
        if request in waiting:
            waiting.remove(request)
        if not waiting:
            self._take_out(key)

    def take(self, key: ExpectKey) -> list[Request]:
        """Those who waited for a block, and no longer do."""
        found = self._take_out(key)
        for request in found:
            request.expecting.pop(self._rank, None)
        return found

    def _take_out(self, key: ExpectKey) -> list[Request]:
        below = self._below.get(key[0])
        if below is None:
            return []
        found = below.pop(key, [])
        if not below:
            del self._below[key[0]]
        return found
