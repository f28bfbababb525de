"""Cuts large events into consecutive parts, so that whoever takes them in never holds the event loop for long.

What is large may still lie in its bytes: a part's tokens and keys are read when it is made. Imports `observations` and
its neighbours.
"""

from collections.abc import Iterator
from typing import Any

from ..ids import BlockHash
from ..observations import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, StorePart
from .kv_extra_keys import KeyList
from .msgpack_walk import NumberList

PART_BLOCKS = 512
"""Blocks that the ledger takes in at once, while the event loop waits: two or three milliseconds."""
TOKENS_A_BLOCK = 32
"""Tokens beyond which a block counts for more than one."""


def weight_of(event: KvEvent) -> int:
    """What it takes to take an event in, in blocks."""
    if type(event) is BlockStored:
        blocks = len(event.block_hashes)
        return blocks if event.block_size <= TOKENS_A_BLOCK else max(blocks, len(event.token_ids) // TOKENS_A_BLOCK)
    return 1 if isinstance(event, AllBlocksCleared) else len(event.block_hashes)


def in_parts(event: KvEvent, most_blocks: int) -> Iterator[KvEvent]:
    """The event, or several that make it up, in order: each of at most `most_blocks` blocks, fewer where they are
    large."""
    if type(event) is BlockStored:
        yield from _stores(event, most_blocks)
    elif isinstance(event, BlockRemoved) and len(event.block_hashes) > most_blocks:
        for first in range(0, len(event.block_hashes), most_blocks):
            yield event._replace(block_hashes=event.block_hashes[first : first + most_blocks])
    else:
        yield event


def _stores(event: BlockStored, most_blocks: int) -> Iterator[BlockStored]:
    hashes, size = event.block_hashes, event.block_size
    count, width = len(hashes), max(size, 1)
    step = max(min(most_blocks, most_blocks * TOKENS_A_BLOCK // width), 1)
    # Where tokens are more or fewer than the blocks', which are whose can't be told: the store is sparse.
    dense = len(event.token_ids) == count * size
    if count <= step:
        tokens = event.token_ids if dense or isinstance(event.token_ids, tuple) else ()
        yield event._replace(token_ids=_taken(tokens, 0, len(tokens)), extra_keys=_taken(event.extra_keys, 0, count))
        return
    parent: BlockHash | None = event.parent_hash
    for first in range(0, count, step):
        end = min(first + step, count)
        yield event._replace(
            block_hashes=hashes[first:end],
            parent_hash=parent,
            token_ids=_taken(event.token_ids, first * size, end * size) if dense else (),
            extra_keys=_taken(event.extra_keys, first, end),
            part=StorePart(first, hashes),
        )
        parent = hashes[end - 1]


def _taken(items: Any, first: int, end: int) -> Any:
    if isinstance(items, NumberList | KeyList):
        return items.take(first, end)
    return None if items is None else items[first:end]
