"""What one data-parallel engine of a server holds in its prefix cache, learned from its events alone.

Hashes are never computed here: a block is known because the server named it. Every event gets a number, and each
block keeps the numbers at which it appeared and went, so that "what was resident when this request was sent?" can be
asked afterwards. Imports only `ids`, `observations` and its own package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from ..ids import BlockHash, GroupIdx, hash_text
from ..observations import BlockRemoved, BlockStored, ExtraKeys
from .block_keys import block_chunks, block_extras, hash_texts, pack_tokens
from .block_slots import ROOT, UNKNOWN_DEPTH, BlockSlots

FULL_ATTENTION_KINDS = frozenset({None, "full_attention", "mla_attention"})
"""Groups whose blocks a prefix hit needs one by one from the first; only these are walked for forecasts."""
GPU = "GPU"
MAX_EPOCHS = 4

StoreReading = Literal["auto", "copy", "report"]
"""What a store of resident blocks means: another copy of each, or a report that a request reused them."""


class Stored(NamedTuple):
    """What a `BlockStored` changed. `copies` are those after it; `fresh` counts blocks that weren't resident."""

    reading: Literal["stored", "report"]
    copies: tuple[int, ...]
    depth: int | None
    tokens: int | None
    fresh: int
    cleared: int | None
    """Blocks that were resident until the block size changed, which only another server process can do."""
    parent: str | None
    """`hash_text` of the parent; None for a store from the root."""


class OneStored(NamedTuple):
    """What a store of one new block changed: the block and its parent as text, and where in the prompt it lies."""

    text: str
    parent: str | None
    depth: int | None


_new_one = partial(tuple.__new__, OneStored)
_new_stored = partial(tuple.__new__, Stored)
"""`Stored` from a tuple of its fields, in a third of the time."""
_ONE = (1,)
_NOTHING_STORED = Stored("stored", (), None, None, 0, None, None)


class Removed(NamedTuple):
    """What a `BlockRemoved` changed, without the hashes that weren't resident."""

    hashes: tuple[BlockHash, ...]
    copies: tuple[int, ...]
    unknown: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """A picture that ended when the cache was emptied: valid for event numbers below `cleared_number`."""

    slots: BlockSlots
    cleared_number: int
    cleared_s: float
    reason: str


class BlockCache:
    """The mirror of one rank. Tables are keyed by (group, medium), blocks in them by hash."""

    def __init__(self, max_blocks: int, max_removed: int, wall_offset_ms: float = 0.0) -> None:
        self.number = 0
        """Events applied."""
        self.unknown_removes = 0
        self.refused = 0
        """Blocks left out because `max_blocks` were resident."""
        self.tables: dict[tuple[GroupIdx, str], BlockSlots] = {}
        self.epochs: list[Epoch] = []
        self._max_blocks = max_blocks
        self._max_removed = max_removed
        self._wall_offset_ms = wall_offset_ms
        self._walked: BlockSlots | None = None
        self._block_size: int | None = None
        self._reporting = False
        """The event of which parts are taken in reports reuse."""
        self.walked_group = GroupIdx(0)
        """The KV cache group of `walked`."""

    # --- asking ---

    @property
    def resident(self) -> int:
        """Resident blocks, all groups and media together."""
        return sum(table.resident for table in self.tables.values())

    @property
    def orphans(self) -> int:
        """Resident blocks whose chain's start isn't known."""
        return sum(table.orphans for table in self.tables.values())

    @property
    def uncertain(self) -> bool:
        """Whether it is open of some block if a copy of it lives."""
        return any(table.uncertain for table in self.tables.values())

    @property
    def walked(self) -> BlockSlots | None:
        """The table that prompts are walked through: full attention, on the GPU; None while there is none."""
        return self._walked

    @property
    def block_size(self) -> int | None:
        """Tokens a block, as events last said; None while none said."""
        return self._block_size

    def walked_at(self, number: int) -> BlockSlots | None:
        """The table to walk for the picture as of event `number`; None where it is no longer, or not yet, known."""
        for epoch in self.epochs:
            if number < epoch.cleared_number:
                return epoch.slots
        return self._walked

    # --- changing ---

    def store(
        self, event: BlockStored, at_s: float, reading: StoreReading = "auto", texts: Sequence[str] | None = None
    ) -> Stored:
        """Applies a store; `texts` are its hashes as text, where somebody made them already.

        `reading` says what it means where every block is resident already and the parent is null; "auto" takes it for
        a report unless it is a single block, which a prompt of one block stores too.
        """
        one = self.store_one(event, self._wall_offset_ms + at_s * 1000)
        if one is not None:
            return _new_stored(("stored", _ONE, one.depth, event.block_size, 1, None, one.parent))
        self.number += 1
        if not event.block_hashes:
            return _NOTHING_STORED
        table = self.tables.get((event.group_idx, event.medium)) or self._table(event)
        return self._store(table, event, hash_texts(event.block_hashes) if texts is None else texts, at_s, reading)

    def store_one(self, event: BlockStored, at_ms: float) -> "OneStored | None":
        """Applies a store of one new block under a known one, as decoding makes them by the thousand: `store` in short.
        None, and nothing is changed, for any other."""
        hashes, parent_hash, token_ids, size, lora_name, medium, keys, group, _, _, _ = event
        table = self.tables.get((group, medium))
        if (
            table is None or len(hashes) != 1 or not table.block_size == size == len(token_ids) or keys is not None
            or lora_name is not None or table.resident >= self._max_blocks
        ):  # fmt: skip
            return None
        packed = pack_tokens(token_ids)
        if packed is None:
            return None
        block_hash = hashes[0]
        text = f"{block_hash:016x}" if type(block_hash) is int else hash_text(block_hash)
        parent = table.add_one(parent_hash, block_hash, text, packed, self.number + 1, at_ms)
        if parent is None:
            return None
        self.number += 1
        depth = table.depth[parent]
        return _new_one((text, table.text[parent], None if depth == UNKNOWN_DEPTH else depth + 1))

    def _store(
        self, table: BlockSlots, event: BlockStored, texts: Sequence[str], at_s: float, reading: StoreReading
    ) -> Stored:
        cleared = None
        size, hashes = event.block_size, event.block_hashes
        if event.part is None or not event.part.first:
            self._reporting = self._is_report(table, event, reading)
        if table.block_size != size and table.block_size is not None and size and event.medium == GPU:
            cleared = self._empty("restarted", at_s)
            table = self._table(event)
        chunks = block_chunks(event)
        if chunks is None:
            return self._store_sparse(table, event, texts, at_s, cleared)
        if table.block_size is None:
            table.block_size, table.kind = size, event.kind
            self._choose_walked()
        parent = ROOT if event.parent_hash is None else self._parent(table, event.parent_hash)
        extras = None if event.extra_keys is None and event.lora_name is None else block_extras(event)
        depth = None if table.depth[parent] == UNKNOWN_DEPTH else table.depth[parent] + 1
        if table.none_known(hashes) and table.resident + len(hashes) <= self._max_blocks:
            at_ms = self._wall_offset_ms + at_s * 1000
            table.add_chain(parent, hashes, texts, chunks, extras, self.number, at_ms)
            return Stored("stored", (1,) * len(hashes), depth, size, len(hashes), cleared, table.text[parent])
        return self._store_known(table, event, texts, chunks, extras, parent, at_s, reading, depth, cleared)

    def remove(self, event: BlockRemoved, at_s: float) -> Removed:
        """Applies a removal: one copy of each hash goes. Hashes that aren't resident are counted, nothing more."""
        self.number += 1
        table = self.tables.get((event.group_idx, event.medium))
        if table is None:
            self.unknown_removes += len(event.block_hashes)
            return Removed((), (), len(event.block_hashes))
        hashes: list[BlockHash] = []
        copies: list[int] = []
        for block_hash in event.block_hashes:
            slot = table.find(block_hash)
            if slot is not None and table.copies[slot]:
                hashes.append(block_hash)
                copies.append(table.remove(slot, self.number, at_s))
        unknown = len(event.block_hashes) - len(hashes)
        self.unknown_removes += unknown
        return Removed(tuple(hashes), tuple(copies), unknown)

    def clear(self, reason: str, at_s: float) -> int:
        """Nothing is resident any more. Returns how many blocks were. The old picture is kept for forecasts as of
        the past where it is small enough."""
        self.number += 1
        return self._empty(reason, at_s)

    def correct(self, block_hash: BlockHash, change: int, at_s: float) -> int | None:
        """What a request's usage says about the copies of a resident block: `change` is -1, 0 (confirmed) or 1.

        Returns the copies that are left; None where the block isn't resident.
        """
        table = self._walked
        slot = table.find(block_hash) if table else None
        if table is None or slot is None or not table.copies[slot]:
            return None
        table.uncertain.discard(slot)
        if change < 0 and table.copies[slot] == 1:
            self.number += 1
            table.drop(slot, self.number, at_s)
        else:
            table.add_copies(slot, change)
        return table.copies[slot]

    # --- inside ---

    def _store_sparse(
        self, table: BlockSlots, event: BlockStored, texts: Sequence[str], at_s: float, cleared: int | None
    ) -> Stored:
        copies = []
        fresh = 0
        at_ms = self._wall_offset_ms + at_s * 1000
        for block_hash, text in zip(event.block_hashes, texts, strict=True):
            slot = table.find(block_hash)
            if slot is None:
                if table.resident >= self._max_blocks:
                    self.refused += 1
                    copies.append(0)
                    continue
                slot = table.add_bare(block_hash, text)
            if table.copies[slot]:
                table.add_copies(slot, 1)
            else:
                table.store(slot, self.number, at_ms)
                fresh += 1
            copies.append(table.copies[slot])
        if table.kind is None:
            table.kind = event.kind
        parent = None if event.parent_hash is None else hash_text(event.parent_hash)
        return Stored("stored", tuple(copies), None, None, fresh, cleared, parent)

    def _store_known(
        self,
        table: BlockSlots,
        event: BlockStored,
        texts: Sequence[str],
        chunks: list[bytes],
        extras: list[ExtraKeys | None] | None,
        parent: int,
        at_s: float,
        reading: StoreReading,
        depth: int | None,
        cleared: int | None,
    ) -> Stored:
        """A store of which some blocks are known: resident, removed, or as somebody's parent."""
        slots = [table.find(block_hash) for block_hash in event.block_hashes]
        if self._reporting and table.all_resident(event.block_hashes):
            copies = tuple(table.copies[slot] for slot in slots if slot is not None)
            return Stored("report", copies, depth, event.block_size, 0, cleared, None)
        parent_text = table.text[parent]
        fresh = 0
        at_ms = self._wall_offset_ms + at_s * 1000
        after: list[int] = []
        for index, slot in enumerate(slots):
            if slot is None:
                # The same hash may stand twice in one event.
                slot = table.find(event.block_hashes[index])
            if slot is not None and table.copies[slot]:
                table.add_copies(slot, 1)
                # Behind a block that found no room the chain is broken: what is resident there keeps its own place.
                if 0 not in after:
                    table.place(slot, parent, chunks[index], extras[index] if extras else None)
            elif table.resident >= self._max_blocks:
                self.refused += 1
                after.append(0)
                continue
            else:
                slot = table.add_bare(event.block_hashes[index], texts[index]) if slot is None else slot
                table.place(slot, parent, chunks[index], extras[index] if extras else None)
                table.store(slot, self.number, at_ms)
                fresh += 1
            after.append(table.copies[slot])
            parent = slot
        return Stored("stored", tuple(after), depth, event.block_size, fresh, cleared, parent_text)

    def _is_report(self, table: BlockSlots, event: BlockStored, reading: StoreReading) -> bool:
        """Whether an event, of which this is the first part or all, reports that a request reused its blocks."""
        hashes = event.block_hashes if event.part is None else event.part.whole
        if event.parent_hash is not None or reading == "copy" or (reading == "auto" and len(hashes) == 1):
            return False
        return table.all_resident(hashes)

    def _parent(self, table: BlockSlots, parent_hash: BlockHash) -> int:
        slot = table.find(parent_hash)
        return table.add_bare(parent_hash, hash_text(parent_hash)) if slot is None else slot

    def _table(self, event: BlockStored) -> BlockSlots:
        key = (event.group_idx, event.medium)
        table = self.tables.get(key)
        if table is None:
            table = self.tables[key] = BlockSlots(self._max_removed)
        return table

    def _choose_walked(self) -> None:
        walkable = [
            (group, table)
            for (group, medium), table in self.tables.items()
            if medium == GPU and table.block_size is not None and table.kind in FULL_ATTENTION_KINDS
        ]
        if walkable:
            self.walked_group, self._walked = min(walkable, key=lambda entry: entry[0])
            self._block_size = self._walked.block_size

    def _empty(self, reason: str, at_s: float) -> int:
        blocks = self.resident
        walked = self._walked
        # Storms of clears find nothing to keep, and must cost nothing.
        if walked is not None and len(walked):
            if len(walked) <= self._max_removed:
                self.epochs.append(Epoch(walked, self.number, at_s, reason))
            else:
                # Too large to keep: what was before can't be asked any more.
                self.epochs = [Epoch(BlockSlots(0), self.number, at_s, reason)]
            while len(self.epochs) > 1 and (
                len(self.epochs) > MAX_EPOCHS or sum(len(epoch.slots) for epoch in self.epochs) > self._max_removed
            ):
                del self.epochs[0]
        self.tables = {}
        self._walked = None
        return blocks
