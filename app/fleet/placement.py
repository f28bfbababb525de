"""Which replica a request goes to, by rules that need no clock; and what each gives over a recorded stream. Pure.

Imports only its own package.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from .pools import LruPool
from .stream import Lookup

HASHED_BLOCKS = 4
"""So many first blocks tell a prefix. Fewer would take prompts together that share a preamble only."""

Choose = Callable[[int, Lookup, Sequence[LruPool]], int]
"""(number of the request from 0, the request, the pools) to the replica's number."""


class Placed(NamedTuple):
    """What a rule gives: blocks hit, and the share of the computed blocks that the busiest replica had."""

    hit_blocks: int
    busiest_ratio: float | None


def round_robin(number: int, lookup: Lookup, pools: Sequence[LruPool]) -> int:
    """In turn."""
    return number % len(pools)


def by_prefix(number: int, lookup: Lookup, pools: Sequence[LruPool]) -> int:
    """By a hash of the first blocks, whatever is resident where. A prompt without a full block goes in turn."""
    if not lookup.blocks:
        return number % len(pools)
    last = lookup.blocks[:HASHED_BLOCKS][-1]
    return crc32(last.to_bytes(8, "little")) % len(pools)


def best_match(number: int, lookup: Lookup, pools: Sequence[LruPool]) -> int:
    """To the replica that holds most of its prefix at that moment; of those with equally much, to the one that holds
    least."""
    return max(range(len(pools)), key=lambda at: (pools[at].found(lookup), -len(pools[at]), -at))


RULES: dict[str, Choose] = {"round_robin": round_robin, "prefix_hash": by_prefix, "best_match": best_match}


def place(lookups: Sequence[Lookup], replicas: int, size: int, choose: Choose) -> Placed:
    """Runs a stream over `replicas` pools of `size` blocks each."""
    pools = [LruPool(size) for _ in range(replicas)]
    computed = [0] * replicas
    hits = 0
    for number, lookup in enumerate(lookups):
        at = choose(number, lookup, pools)
        found = pools[at].run(lookup)
        hits += found
        computed[at] += lookup.places - found
    whole = sum(computed)
    return Placed(hits, max(computed) / whole if whole else None)
