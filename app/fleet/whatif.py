"""What a recorded stream would have hit in a smaller or larger pool, and on more or fewer replicas. Pure.

Rates are shares of all prompt tokens, as a server counts them. Imports only its own package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .placement import RULES, place
from .pools import best_possible
from .stack import hits_by_depth
from .stream import Lookup, Stream

REPLICAS = (1, 2, 4, 8, 16, 32, 64)
POINTS = 12


@dataclass(frozen=True, slots=True)
class PoolPoint:
    """A pool of `pool_blocks` usable blocks: what LRU hits, and what no order of eviction can beat."""

    pool_blocks: int
    hit_ratio: float
    bound_ratio: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule's hit rate, and the share of the computed blocks that the busiest replica had; None where none had any."""

    hit_ratio: float
    busiest_ratio: float | None


@dataclass(frozen=True, slots=True)
class PlacementPoint:
    """So many replicas of `pool_blocks` usable blocks each, by the name of each rule of placement."""

    replicas: int
    pool_blocks: int
    rules: dict[str, Outcome]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer. `basis` says whose blocks these are: computed here from what was recorded, not seen at a server."""

    requests: int
    left_out: int
    block_size: int
    prompt_tokens: int
    distinct_blocks: int
    smallest_pool_blocks: int
    pools: tuple[PoolPoint, ...]
    placements: tuple[PlacementPoint, ...]
    basis: str = "modelled"


def what_if(
    stream: Stream, pool_blocks: int | None, sizes: Sequence[int] = (), replicas: Sequence[int] = REPLICAS
) -> WhatIf:
    """Runs the stream. `pool_blocks` is what each replica has (None: enough for everything); `sizes` are pools to
    look at besides, else a row of them is chosen. Sizes that don't hold the largest request are left out."""
    lookups, tokens = stream.lookups, stream.prompt_tokens
    smallest, enough = stream.smallest_pool, stream.distinct_blocks + 1
    each = max(enough if pool_blocks is None else pool_blocks, smallest)
    asked = set(sizes) or _row(smallest, enough)
    shown = sorted(size for size in asked | {each} if size >= smallest)
    ratio = stream.block_size / tokens if tokens else 0.0
    return WhatIf(
        requests=len(lookups),
        left_out=stream.left_out,
        block_size=stream.block_size,
        prompt_tokens=tokens,
        distinct_blocks=stream.distinct_blocks,
        smallest_pool_blocks=smallest,
        pools=tuple(
            PoolPoint(size, round(hits * ratio, 6), round(bound * ratio, 6))
            for size, hits, bound in zip(shown, _hits(lookups, shown), _bounds(lookups, shown), strict=True)
        ),
        placements=tuple(_placed(lookups, count, each, ratio) for count in replicas),
    )


def _placed(lookups: Sequence[Lookup], replicas: int, size: int, ratio: float) -> PlacementPoint:
    found = {name: place(lookups, replicas, size, choose) for name, choose in RULES.items()}
    rules = {name: Outcome(round(placed.hit_blocks * ratio, 6), placed.busiest_ratio) for name, placed in found.items()}
    return PlacementPoint(replicas, size, rules)


def _hits(lookups: Sequence[Lookup], sizes: Sequence[int]) -> list[int]:
    """Blocks hit in pools of these sizes, which ascend."""
    found = hits_by_depth(lookups)
    counts = [0] * len(sizes)
    for depth, hits in found.items():
        at = next((at for at, size in enumerate(sizes) if depth < size), None)
        if at is not None:
            counts[at] += hits
    return list(accumulate(counts))


def _bounds(lookups: Sequence[Lookup], sizes: Sequence[int]) -> list[int]:
    """The bounds of pools of these sizes, which ascend: from the first that nothing more helps on they are the same."""
    most = best_possible(lookups, sizes[-1]) if sizes else 0
    found: list[int] = []
    for size in sizes:
        found.append(most if found and found[-1] == most else best_possible(lookups, size))
    return found


def _row(smallest: int, enough: int) -> set[int]:
    """Sizes from the smallest usable to one that never evicts, each about the same factor larger."""
    if enough <= smallest or smallest < 1:
        return {max(enough, 1)}
    factor = (enough / smallest) ** (1 / (POINTS - 1))
    return {round(smallest * factor**step) for step in range(POINTS)}
