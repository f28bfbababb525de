"""Every resident block of a rank as columns, for snapshots: tens of thousands of blocks while the event loop waits.

What a column shows is kept by `block_slots` as it goes out, so that runs of it are copied and nothing is made a block.
Imports only `events` and its own package.
"""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import TypeVar

from ..events import BlockColumns
from .block_slots import ROOT, UNKNOWN_DEPTH, BlockSlots
from .rank_book import RankBook

Runs = list[tuple[int, int]]
Item = TypeVar("Item")


def columns_of(book: RankBook) -> BlockColumns:
    """The resident blocks of every group and medium of a rank."""
    tables = [(group, medium, table, table.resident_runs()) for (group, medium), table in book.cache.tables.items()]
    first_rows = [0]
    for _, _, table, _ in tables:
        first_rows.append(first_rows[-1] + table.resident)
    book.row_numbers.extend(range(len(book.row_numbers), first_rows[-1]))
    return BlockColumns(
        server=book.server,
        rank=book.rank,
        block_size=book.cache.block_size,
        event_seq=book.stream.last_seq,
        # A resident block has a hash, and its text.
        hash=_joined([_taken(table.text, runs) for _, _, table, runs in tables]),  # type: ignore[arg-type]
        parent_row=_joined(
            [
                _parent_rows(table, runs, row, book.row_numbers)
                for (_, _, table, runs), row in zip(tables, first_rows, strict=False)
            ]
        ),
        depth=_joined([_depths(table, runs) for _, _, table, runs in tables]),
        tokens=_joined([_tokens(table, runs) for _, _, table, runs in tables]),
        group=_joined([(group,) * table.resident for group, _, table, _ in tables]),
        medium=_joined([(medium,) * table.resident for _, medium, table, _ in tables]),
        copies=_joined([_taken(table.copies, runs) for _, _, table, runs in tables]),
        requests=_joined([_taken(table.holders, runs) for _, _, table, runs in tables]),
        reuses=_joined([_taken(table.reuses, runs) for _, _, table, runs in tables]),
        stored_ms=_joined([_taken(table.stored_ms, runs) for _, _, table, runs in tables]),
    )


def _joined(parts: list[Sequence[Item]]) -> tuple[Item, ...]:
    # Most servers have one table: each copy of a column that is spared is a tenth of the whole.
    return tuple(parts[0]) if len(parts) == 1 else tuple(chain.from_iterable(parts))


def _taken(column: list[Item], runs: Runs) -> Sequence[Item]:
    if len(runs) == 1:
        return column[runs[0][0] : runs[0][1]]
    found: list[Item] = []
    for start, end in runs:
        found += column[start:end]
    return found


def _parent_rows(table: BlockSlots, runs: Runs, first_row: int, numbers: list[int]) -> Sequence[int | None]:
    # One longer than the slots: the parent of a block whose place isn't known is the last, which is no row.
    row_of: list[int | None] = [None] * (len(table.hash) + 1)
    row = first_row
    for start, end in runs:
        row_of[start:end] = numbers[row : row + end - start]
        row += end - start
    # With the root twice in front it takes any number of slots, and gives a tuple for each.
    rows: tuple[int | None, ...] = itemgetter(ROOT, ROOT, *_taken(table.parent, runs))(row_of)
    return rows[2:]


def _depths(table: BlockSlots, runs: Runs) -> Sequence[int | None]:
    depths = _taken(table.depth, runs)
    return [None if depth == UNKNOWN_DEPTH else depth for depth in depths] if UNKNOWN_DEPTH in depths else depths


def _tokens(table: BlockSlots, runs: Runs) -> Sequence[int | None]:
    if not table.sparse:
        return (table.block_size,) * table.resident
    return [None if chunk is None else table.block_size for chunk in _taken(table.tokens, runs)]
