"""Which blocks hang below a block: a doubly linked list of children a slot, newest first, as three columns.

Slots are those of `block_slots`. Imports nothing.
"""

from collections.abc import Iterator

NOWHERE = -1
"""No such slot: the end of a list of children, or the parent of a block whose place isn't known."""


class ChildLists:
    """One list a slot; a slot is in at most one."""

    def __init__(self) -> None:
        self.first: list[int] = [NOWHERE]
        """The newest child of each slot."""
        self._next: list[int] = [NOWHERE]
        self._previous: list[int] = [NOWHERE]

    def of(self, slot: int) -> Iterator[int]:
        """Children of a slot, newest first."""
        child = self.first[slot]
        while child != NOWHERE:
            yield child
            child = self._next[child]

    def grow(self, count: int) -> None:
        """Takes in `count` more slots, none of which has children."""
        nowhere = [NOWHERE] * count
        self.first.extend(nowhere)
        self._next.extend(nowhere)
        self._previous.extend(nowhere)

    def grow_chain(self, count: int) -> None:
        """Takes in `count` more slots, each the only child of the one before; the first hangs nowhere yet."""
        start = len(self.first)
        self.first.extend(range(start + 1, start + count))
        self.first.append(NOWHERE)
        nowhere = [NOWHERE] * count
        self._next.extend(nowhere)
        self._previous.extend(nowhere)

    def link(self, slot: int, parent: int) -> None:
        """Makes a slot, which hangs nowhere, the newest child of `parent`."""
        head = self._next[slot] = self.first[parent]
        if head != NOWHERE:
            self._previous[head] = slot
        self.first[parent] = slot

    def unlink(self, slot: int, parent: int) -> None:
        """Takes a slot from the children of `parent`."""
        before, after = self._previous[slot], self._next[slot]
        if before != NOWHERE:
            self._next[before] = after
        else:
            self.first[parent] = after
        if after != NOWHERE:
            self._previous[after] = before
        self._next[slot] = self._previous[slot] = NOWHERE
