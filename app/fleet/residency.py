"""The residency map of a fleet: prefixes against replicas, which holds how much of which, and what twice costs. Pure.

A prefix here is a run of blocks that nothing branches off: its blocks are shared by the same prompts. Only prefixes
that several requests, several continuations or several replicas have are shown. Imports only `ids` and `model`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from ..ids import Rank, ServerId, hash_text
from ..model.resident_view import ReplicaView, TierView
from .prefix_index import ROOT, PrefixIndex, is_stale


@dataclass(frozen=True, slots=True)
class Replica:
    """A column. `blocks` are resident in the tier looked up first, `copies` places that they take; `tiers` names the
    media, that one first."""

    server: ServerId
    rank: Rank
    coverage: str
    block_size: int | None
    blocks: int
    copies: int
    tiers: dict[str, int]
    other_blocks: int


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """A prefix. `first_block` is the place of its first block in a prompt; `replicas`, and the tiers of `cells`, hold
    resident blocks of it by column, left out where there are none.

    hash, server, rank: its last block and where that lies, to ask for its text and its requests.
    """

    model: str | None
    first_block: int
    blocks: int
    tokens: int
    requests: int
    branches: int
    duplicate_blocks: int
    hash: str
    server: ServerId
    rank: Rank
    cells: dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class ResidencyMap:
    """Columns, and the prefixes that weigh most, those first: tokens times what shares them.

    Blocks are counted in the first tiers: `distinct_blocks` differ, `duplicate_blocks` are there besides.
    """

    replicas: tuple[Replica, ...]
    rows: tuple[PrefixRow, ...]
    prefixes: int
    resident_blocks: int
    distinct_blocks: int
    duplicate_blocks: int


class ResidencySurvey:
    """Makes maps, and remembers which blocks are the same from one to the next."""

    def __init__(self) -> None:
        self._indexes: dict[tuple[tuple[str, ...], int | None], PrefixIndex] = {}

    def survey(self, views: Sequence[ReplicaView], most_rows: int) -> ResidencyMap:
        """The map of these replicas."""
        tiers = [tuple(tier.view() for tier in view.tiers) for view in views]
        families: dict[tuple[tuple[str, ...], int | None], list[int]] = {}
        for column, view in enumerate(views):
            families.setdefault((view.models[:1], view.block_size), []).append(column)
        self._indexes = {key: self._indexes.get(key) or PrefixIndex() for key in families}
        rows: list[tuple[int, PrefixRow]] = []
        prefixes = distinct = 0
        for key, columns in families.items():
            family = _Family(self._indexes[key], views, tiers, columns)
            rows += family.rows(most_rows)
            prefixes += len(family.lengths)
            distinct += len(family.live)
            if is_stale(family.index, family.live):
                self._indexes[key] = PrefixIndex()
        rows.sort(key=lambda entry: -entry[0])
        replicas = tuple(_replica(view, tiers[column]) for column, view in enumerate(views))
        copies = sum(replica.copies for replica in replicas)
        return ResidencyMap(
            replicas, tuple(row for _, row in rows[:most_rows]), prefixes, copies, distinct, copies - distinct
        )


def _replica(view: ReplicaView, tiers: Sequence[TierView]) -> Replica:
    first = tiers[0] if tiers else None
    return Replica(
        server=view.server,
        rank=view.rank,
        coverage=view.coverage,
        block_size=view.block_size,
        blocks=len(first.hashes) if first else 0,
        copies=sum(first.copies) if first else 0,
        tiers={tier.medium: len(tier.hashes) for tier in tiers},
        other_blocks=view.other_blocks,
    )


class _Family:
    """Replicas of one model and block size."""

    def __init__(
        self,
        index: PrefixIndex,
        views: Sequence[ReplicaView],
        tiers: Sequence[Sequence[TierView]],
        columns: Sequence[int],
    ) -> None:
        self.index = index
        self._views = views
        self._tiers: list[tuple[int, int, TierView, list[int]]] = [
            (column, place, tier, index.nodes(tier)) for column in columns for place, tier in enumerate(tiers[column])
        ]
        first = [nodes for _, place, _, nodes in self._tiers if place == 0]
        self.live = set(chain.from_iterable(first)) - {ROOT}
        self._children = Counter(map(index.parent.__getitem__, self.live))
        self._row_of = self._rows_of(sorted(self.live))
        self.lengths = Counter(self._row_of.values())
        """Blocks of each prefix, by its first node."""

    def _rows_of(self, nodes: Iterable[int]) -> dict[int, int]:
        """The first node of each node's prefix. Parents come before children."""
        parent, children = self.index.parent, self._children
        row_of: dict[int, int] = {}
        for node in nodes:
            above = parent[node]
            row_of[node] = row_of[above] if above in row_of and children[above] == 1 else node
        return row_of

    def rows(self, most: int) -> list[tuple[int, PrefixRow]]:
        """The weightiest prefixes, each with its weight."""
        cells: dict[int, dict[str, dict[int, int]]] = {}
        requests: Counter[int] = Counter()
        copies: Counter[int] = Counter()
        for column, place, tier, nodes in self._tiers:
            counted = Counter(map(self._row_of.get, nodes))
            counted.pop(None, None)
            for row, blocks in counted.items():
                if row is not None:
                    cells.setdefault(row, {}).setdefault(tier.medium, {})[column] = blocks
            if place == 0:
                for node, held, count in zip(nodes, tier.requests, tier.copies, strict=True):
                    if node in self.lengths:
                        requests[node] += held
                    if count > 1:
                        copies[self._row_of.get(node, ROOT)] += count - 1
        tails = {row: node for node, row in sorted(self._row_of.items())}
        weighed = sorted(
            (-weight, row)
            for row, blocks in self.lengths.items()
            if (shared := max(requests[row], self._children[tails[row]], len(self._first(cells[row])))) > 1
            for weight in (blocks * shared,)
        )
        return [
            (-weight, self._row(row, tails[row], cells[row], requests[row], copies[row]))
            for weight, row in weighed[:most]
        ]

    def _first(self, cells: dict[str, dict[int, int]]) -> dict[int, int]:
        medium = next((tier.medium for _, place, tier, _ in self._tiers if place == 0), None)
        return cells.get(medium, {}) if medium is not None else {}

    def _row(self, row: int, tail: int, cells: dict[str, dict[int, int]], requests: int, copies: int) -> PrefixRow:
        first, blocks = self._first(cells), self.lengths[row]
        column = max(first, key=lambda at: (first[at], -at))
        _, _, tier, nodes = next(entry for entry in self._tiers if entry[0] == column and entry[1] == 0)
        # The last block may lie nowhere where the most of it does; then the last that does there.
        at = nodes.index(tail) if tail in nodes else max(
            (place for place, node in enumerate(nodes) if self._row_of.get(node) == row), key=lambda place: nodes[place]
        )  # fmt: skip
        view = self._views[column]
        return PrefixRow(
            model=view.models[0] if view.models else None,
            first_block=self.index.depth[row],
            blocks=blocks,
            tokens=blocks * (view.block_size or 0),
            requests=requests,
            branches=self._children[tail],
            duplicate_blocks=sum(first.values()) - blocks + copies,
            hash=hash_text(tier.hashes[at]),
            server=view.server,
            rank=view.rank,
            cells=cells,
        )
