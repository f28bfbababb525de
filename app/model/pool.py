"""The pool in three parts: blocks that running requests hold, blocks that are cached and reusable, and the rest.

The server tells the first, as the usage gauge; the mirror of its events tells what is cached. Neither says which of the
cached blocks are held, but it follows: of the blocks that a running request holds, all but the last are full, and full
blocks are cached. Imports only `observations` and its own package.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ..observations import EngineSample
from .block_cache import GPU, BlockCache

NULL_BLOCKS = 1
"""Blocks of a pool that never hold anything."""


class PoolParts(NamedTuple):
    """Blocks by what they hold; a None isn't known. `held + cached + unwritten == blocks` where all are known."""

    blocks: int | None = None
    held: int | None = None
    cached: int | None = None
    unwritten: int | None = None


def pool_parts(sample: EngineSample, cache: BlockCache | None) -> PoolParts:
    """The pool of one engine at the moment of `sample`. `cache` is None where its events aren't followed.

    Where requests run, `cached` is known to within a block a request.
    """
    if sample.num_gpu_blocks is None:
        return PoolParts()
    blocks = sample.num_gpu_blocks - NULL_BLOCKS
    held = _held(sample, blocks)
    if held is None or cache is None:
        return PoolParts(blocks, held)
    if held and sample.running is None:
        # How many of them aren't full can't be told.
        return PoolParts(blocks, held)
    full = max(held - int(sample.running or 0), 0)
    cached = min(max(_copies(cache) - full, 0), blocks - held)
    return PoolParts(blocks, held, cached, blocks - held - cached)


def _held(sample: EngineSample, blocks: int) -> int | None:
    if sample.kv_usage_ratio is None:
        return None
    held = round(sample.kv_usage_ratio * blocks)
    # Older servers count the null block as used: it is what an idle one "holds".
    return 0 if held == NULL_BLOCKS and sample.running == 0 else held


def _copies(cache: BlockCache) -> int:
    return sum(table.copies_resident for (_, medium), table in cache.tables.items() if medium == GPU)


def total(parts: Iterable[PoolParts]) -> PoolParts:
    """The pools of several engines as one: a part that isn't known of one isn't known of all."""
    columns = list(zip(*parts, strict=True))
    sums = [None if None in column else sum(column) for column in columns]
    return PoolParts(*sums)
