"""The blocks of one KV cache group on one medium: parallel lists with one slot a block, and the indexes over them.

A block is in one of three states: resident; removed but remembered (walks as of an earlier event still find it); or a
placeholder, known only as the parent of others. Slot 0 is the root, the parent of every prompt's first block.
Parallel lists and packed token ids take a fifth of the memory that an object a block would, and give the garbage
collector nothing to walk. Imports only `ids`, `observations` and its own package.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from ..ids import BlockHash
from ..observations import ExtraKeys
from .child_lists import NOWHERE, ChildLists

ROOT = 0
FOREVER = 1 << 62
"""An event number that never comes. A resident block goes at it; a placeholder appears at it."""
UNKNOWN_DEPTH = -2
GROWTH = 1024

ChildKey = tuple[int, bytes] | tuple[int, bytes, ExtraKeys]


class BlockSlots:
    """Columns by slot. Event numbers count the events applied to one rank; intervals are [appeared, gone)."""

    def __init__(self, max_removed: int) -> None:
        self.block_size: int | None = None
        self.kind: str | None = None
        self.resident = 0
        self.spare = 0
        """Copies of resident blocks beyond the first of each."""
        self.orphans = 0
        """Resident blocks with tokens whose depth isn't known."""
        self.shared = 0
        """Blocks not stored twice: for each resident block, the requests that hold it, but one."""
        self.sparse = 0
        """Resident blocks of which only the hash is known."""
        self.keyed = False
        """Whether any block ever had extra keys."""
        self.hash: list[BlockHash | None] = [None]
        self.text: list[str | None] = [None]
        """`hash_text` of the hash, kept because formatting is what a snapshot would spend most on."""
        self.parent: list[int] = [NOWHERE]
        self.tokens: list[bytes | None] = [None]
        """Token ids as unsigned 32-bit integers of this machine; None for sparse blocks and placeholders."""
        self.extra: list[ExtraKeys | None] = [None]
        self.depth: list[int] = [-1]
        self.copies: list[int] = [0]
        self.appeared: list[int] = [0]
        self.gone: list[int] = [FOREVER]
        self.stored_ms: list[float] = [0.0]
        """When the last residency began, in milliseconds of the epoch."""
        self.gone_s: list[float] = [0.0]
        self.holders: list[int] = [0]
        """Kept requests whose block table holds the block. Told by `RankBook`, for the walked table alone."""
        self.reuses: list[int] = [0]
        """Times that a request took the block from the cache, in its last residency."""
        self.uncertain: set[int] = set()
        """Slots that lost a copy: whether the last one lives is not sure, since reports repeat stores."""
        self._resident = bytearray(1)
        """1 for each resident slot: runs of them are found at the speed of memory."""
        self._below = ChildLists()
        self._slot_of: dict[BlockHash, int] = {}
        self._children: dict[ChildKey, int] = {}
        self._free: list[int] = []
        self._past: dict[int, list[tuple[int, int]]] = {}
        """Earlier residencies of slots that came back."""
        self._removed: deque[tuple[int, int]] = deque()
        self._max_removed = max_removed

    def __len__(self) -> int:
        """Slots in use: resident, remembered and placeholders."""
        return len(self._slot_of)

    # --- asking ---

    @property
    def copies_resident(self) -> int:
        """Places in the pool that resident blocks take, every copy counted."""
        return self.resident + self.spare

    def find(self, block_hash: BlockHash) -> int | None:
        """The slot of a hash, resident or not."""
        return self._slot_of.get(block_hash)

    def hashes(self) -> Iterable[BlockHash]:
        """Every hash that has a slot."""
        return self._slot_of.keys()

    def all_resident(self, hashes: Iterable[BlockHash]) -> bool:
        """Whether every one of these blocks is resident."""
        resident = self._resident
        return all(slot is not None and resident[slot] for slot in map(self._slot_of.get, hashes))

    def none_known(self, hashes: Sequence[BlockHash]) -> bool:
        """Whether no slot has any of these hashes, and none comes twice."""
        return self._slot_of.keys().isdisjoint(hashes) and len(set(hashes)) == len(hashes)

    def is_placeholder(self, slot: int) -> bool:
        """Whether only the hash is known, as somebody's parent."""
        return self.appeared[slot] == FOREVER

    def resident_at(self, slot: int, number: int) -> bool:
        """Whether the block was resident after event `number` was applied."""
        if self.appeared[slot] <= number:
            return number < self.gone[slot]
        return slot in self._past and any(start <= number < end for start, end in self._past[slot])

    def known_at(self, slot: int, number: int) -> bool:
        """Whether the block had been stored by event `number`, resident still or not."""
        if self.appeared[slot] <= number:
            return True
        return slot in self._past and any(start <= number for start, _ in self._past[slot])

    def went_before(self, slot: int, number: int) -> int | None:
        """The event that ended the block's last residency until event `number`; None where none had ended."""
        ends = [end for _, end in self._past.get(slot, ()) if end <= number]
        if self.gone[slot] <= number:
            ends.append(self.gone[slot])
        return max(ends, default=None)

    def appeared_within(self, slot: int, after: int, before: int) -> bool:
        """Whether a residency of the block began after event `after` and before event `before`."""
        if after < self.appeared[slot] < before:
            return True
        return slot in self._past and any(after < start < before for start, _ in self._past[slot])

    def child(self, parent: int, tokens: bytes, extra: ExtraKeys | None) -> int | None:
        """The known block with these tokens under `parent`."""
        return self._children.get((parent, tokens) if extra is None else (parent, tokens, extra))

    def children(self, parent: int) -> Iterator[int]:
        """Known blocks under `parent`, newest first."""
        return self._below.of(parent)

    @property
    def resident_flags(self) -> bytearray:
        """1 for each resident slot, 0 for others, to pick from columns by. Not to be changed."""
        return self._resident

    def resident_runs(self) -> list[tuple[int, int]]:
        """Runs of resident slots as (first, one after the last), in order."""
        runs: list[tuple[int, int]] = []
        flags = self._resident
        start = flags.find(1)
        while start >= 0:
            end = flags.find(0, start)
            if end < 0:
                end = len(flags)
            runs.append((start, end))
            start = flags.find(1, end)
        return runs

    # --- changing ---

    def add_chain(
        self,
        parent: int,
        hashes: Sequence[BlockHash],
        texts: Sequence[str],
        tokens: Sequence[bytes],
        extras: Sequence[ExtraKeys | None] | None,
        number: int,
        at_ms: float,
    ) -> None:
        """Takes in consecutive blocks of which no slot exists."""
        count = len(hashes)
        depth = self.depth[parent]
        if depth == UNKNOWN_DEPTH:
            self.orphans += count
            depths: Sequence[int] = [UNKNOWN_DEPTH] * count
        else:
            depths = range(depth + 1, depth + 1 + count)
        if len(self._free) < count:
            slots = self._append(hashes, texts, tokens, depths, number, at_ms)
            parents = [parent, *slots[:-1]]
            self.parent.extend(parents)
        else:
            slots = self._claim(count)
            parents = [parent, *slots[:-1]]
            rows = zip(slots, parents, hashes, texts, tokens, depths, strict=True)
            for slot, above, block_hash, text, chunk, depth in rows:
                self._fill(slot, above, block_hash, text, chunk, depth, number, at_ms)
                if above != parent:
                    self._below.link(slot, above)
        self._below.link(slots[0], parent)
        self._slot_of.update(zip(hashes, slots, strict=True))
        if extras is None:
            self._children.update(zip(zip(parents, tokens, strict=True), slots, strict=True))
        else:
            self.keyed = True
            for slot, above, chunk, extra in zip(slots, parents, tokens, extras, strict=True):
                self.extra[slot] = extra
                self._children[_child_key(above, chunk, extra)] = slot
        self.resident += count

    def add_one(
        self, parent_hash: BlockHash | None, block_hash: BlockHash, text: str, tokens: bytes, number: int, at_ms: float
    ) -> int | None:
        """`add_chain` of a single block without extra keys, as decoding stores them: one at a time, and many. Returns
        its parent's slot; None, and nothing is changed, where that isn't known or the block is.

        What other methods do is written out here: a call costs as much as what it does.
        """
        slot_of = self._slot_of
        parent = ROOT if parent_hash is None else slot_of.get(parent_hash)
        if parent is None or block_hash in slot_of:
            return None
        slot = self._free.pop() if self._free else self._claim(1)[0]
        depth = self.depth[parent]
        if depth == UNKNOWN_DEPTH:
            self.orphans += 1
        else:
            self.depth[slot] = depth + 1
        self.hash[slot] = block_hash
        self.text[slot] = text
        self.parent[slot] = parent
        self.tokens[slot] = tokens
        self.appeared[slot] = number
        self.stored_ms[slot] = at_ms
        self.copies[slot] = 1
        self._resident[slot] = 1
        self._below.link(slot, parent)
        slot_of[block_hash] = slot
        self._children[parent, tokens] = slot
        self.resident += 1
        return parent

    def add_bare(self, block_hash: BlockHash, text: str) -> int:
        """A slot for a hash whose tokens and place aren't known: a placeholder until it is stored."""
        (slot,) = self._claim(1)
        self.hash[slot] = block_hash
        self.text[slot] = text
        self._slot_of[block_hash] = slot
        return slot

    def place(self, slot: int, parent: int, tokens: bytes, extra: ExtraKeys | None) -> None:
        """Gives a bare slot its place in a chain; what hangs below it learns its depth."""
        if self.tokens[slot] is not None:
            return
        self.keyed |= extra is not None
        self.parent[slot] = parent
        self.tokens[slot] = tokens
        self.extra[slot] = extra
        self._children[_child_key(parent, tokens, extra)] = slot
        self._below.link(slot, parent)
        if self.copies[slot]:
            self.sparse -= 1
            self.orphans += self._is_orphan(slot)
        if self.depth[parent] != UNKNOWN_DEPTH:
            self._learn_depth(slot, self.depth[parent] + 1)

    def store(self, slot: int, number: int, at_ms: float) -> None:
        """A block that wasn't resident is so from event `number` on."""
        if self.appeared[slot] != FOREVER:
            self._past.setdefault(slot, []).append((self.appeared[slot], self.gone[slot]))
        self.appeared[slot] = number
        self.gone[slot] = FOREVER
        self.stored_ms[slot] = at_ms
        self.copies[slot] = 1
        self._resident[slot] = 1
        self.resident += 1
        self.shared += max(self.holders[slot] - 1, 0)
        self.orphans += self._is_orphan(slot)
        self.sparse += self.tokens[slot] is None

    def hold(self, slot: int, requests: int) -> None:
        """So many kept requests hold the block."""
        if self.copies[slot]:
            self.shared += max(requests - 1, 0) - max(self.holders[slot] - 1, 0)
        self.holders[slot] = requests

    def add_copies(self, slot: int, change: int) -> None:
        """A resident block has so many copies more, or fewer, and at least one."""
        self.copies[slot] += change
        self.spare += change

    def remove(self, slot: int, number: int, at_s: float) -> int:
        """One copy of a resident block goes at event `number`. Returns the copies that are left."""
        left = self.copies[slot] - 1
        self.copies[slot] = left
        if left:
            self.spare -= 1
            self.uncertain.add(slot)
        else:
            self._go(slot, number, at_s)
        return left

    def drop(self, slot: int, number: int, at_s: float) -> None:
        """A resident block is gone whatever its copies."""
        self.spare -= self.copies[slot] - 1
        self.copies[slot] = 0
        self._go(slot, number, at_s)

    # --- inside ---

    def _append(
        self,
        hashes: Sequence[BlockHash],
        texts: Sequence[str],
        tokens: Sequence[bytes],
        depths: Sequence[int],
        number: int,
        at_ms: float,
    ) -> list[int]:
        """Chained slots at the end of every column but `parent`: in bulk, which costs next to nothing a block."""
        start, count = len(self.hash), len(hashes)
        self.hash.extend(hashes)
        self.text.extend(texts)
        self.tokens.extend(tokens)
        self.depth.extend(depths)
        nothing, none = [None] * count, [0] * count
        self.extra.extend(nothing)
        self.copies.extend([1] * count)
        self.appeared.extend([number] * count)
        self.gone.extend([FOREVER] * count)
        self.stored_ms.extend([at_ms] * count)
        self.gone_s.extend([0.0] * count)
        self.holders.extend(none)
        self.reuses.extend(none)
        self._resident.extend(b"\1" * count)
        self._below.grow_chain(count)
        return list(range(start, start + count))

    def _fill(
        self,
        slot: int,
        parent: int,
        block_hash: BlockHash,
        text: str,
        tokens: bytes,
        depth: int,
        number: int,
        at_ms: float,
    ) -> None:
        """A resident block in a blank slot."""
        self.hash[slot] = block_hash
        self.text[slot] = text
        self.parent[slot] = parent
        self.tokens[slot] = tokens
        self.depth[slot] = depth
        self.appeared[slot] = number
        self.stored_ms[slot] = at_ms
        self.copies[slot] = 1
        self._resident[slot] = 1

    def _go(self, slot: int, number: int, at_s: float) -> None:
        self.gone[slot] = number
        self.gone_s[slot] = at_s
        self._resident[slot] = 0
        self.reuses[slot] = 0
        self.resident -= 1
        self.shared -= max(self.holders[slot] - 1, 0)
        self.orphans -= self._is_orphan(slot)
        self.sparse -= self.tokens[slot] is None
        self.uncertain.discard(slot)
        self._removed.append((slot, number))
        while len(self._removed) > self._max_removed:
            self._forget(*self._removed.popleft())

    def _is_orphan(self, slot: int) -> bool:
        return self.depth[slot] == UNKNOWN_DEPTH and self.tokens[slot] is not None

    def _forget(self, slot: int, number: int) -> None:
        """Forgets the residency that ended at event `number`; the slot too where nothing else needs it."""
        if self.gone[slot] != number:
            kept = [interval for interval in self._past.get(slot, ()) if interval[1] != number]
            if kept:
                self._past[slot] = kept
            else:
                self._past.pop(slot, None)
            return
        self._past.pop(slot, None)
        self.appeared[slot] = FOREVER
        self.gone[slot] = FOREVER
        parent = self.parent[slot]
        self._unplace(slot)
        if self._below.first[slot] == NOWHERE:
            self._release(slot)
        self._release_if_idle(parent)

    def _unplace(self, slot: int) -> None:
        tokens = self.tokens[slot]
        if tokens is None:
            return
        key = _child_key(self.parent[slot], tokens, self.extra[slot])
        if self._children.get(key) == slot:
            del self._children[key]
        self._below.unlink(slot, self.parent[slot])
        self.parent[slot] = NOWHERE
        self.tokens[slot] = None
        self.extra[slot] = None

    def _release_if_idle(self, slot: int) -> None:
        """A placeholder with no children is needed by nobody."""
        if slot > ROOT and self.is_placeholder(slot) and self._below.first[slot] == NOWHERE:
            self._release(slot)

    def _release(self, slot: int) -> None:
        block_hash = self.hash[slot]
        if block_hash is not None:
            del self._slot_of[block_hash]
        self.hash[slot] = self.text[slot] = None
        self.holders[slot] = 0
        self.depth[slot] = UNKNOWN_DEPTH
        self._free.append(slot)

    def _claim(self, count: int) -> list[int]:
        """Blank slots. Columns grow by many at a time, which makes the single block cheap."""
        free = self._free
        if len(free) < count:
            start, more = len(self.hash), max(count, GROWTH)
            for column, blank in self._blanks():
                column.extend([blank] * more)  # type: ignore[attr-defined]
            self._resident.extend(bytes(more))
            self._below.grow(more)
            # Claimed from the end: the lowest new slot comes first.
            free[:0] = range(start + more - 1, start - 1, -1)
        slots = free[: -count - 1 : -1]
        del free[-count:]
        return slots

    def _blanks(self) -> Iterable[tuple[object, object]]:
        return (
            (self.hash, None), (self.text, None), (self.parent, NOWHERE), (self.tokens, None), (self.extra, None),
            (self.depth, UNKNOWN_DEPTH), (self.copies, 0), (self.appeared, FOREVER), (self.gone, FOREVER),
            (self.stored_ms, 0.0), (self.gone_s, 0.0), (self.holders, 0), (self.reuses, 0),
        )  # fmt: skip

    def _learn_depth(self, slot: int, depth: int) -> None:
        waiting = [(slot, depth)]
        while waiting:
            slot, depth = waiting.pop()
            if self.depth[slot] == depth:
                continue
            if self.copies[slot] and self._is_orphan(slot):
                self.orphans -= 1
            self.depth[slot] = depth
            waiting.extend((child, depth + 1) for child in self.children(slot))


def _child_key(parent: int, tokens: bytes, extra: ExtraKeys | None) -> ChildKey:
    return (parent, tokens) if extra is None else (parent, tokens, extra)
