"""What-if figures against an engine's own pool, against one pool a size, and against every order of eviction."""

from collections.abc import Sequence
from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from app.fleet.placement import best_match, by_prefix, place, round_robin
from app.fleet.pools import LruPool, best_possible
from app.fleet.stack import Fenwick, hits_by_depth
from app.fleet.stream import Lookup, Stream, stream_of
from app.fleet.whatif import what_if
from app.ids import RequestId, ServerId
from app.model.block_keys import pack_tokens
from app.model.prefix_match import PromptKeys
from app.model.recorded import RecordedPrompt
from tests.unit.engine.drive import ask, make_core

BLOCK = 4


def recorded(tokens: Sequence[int], **changes: object) -> RecordedPrompt:
    fields: dict[str, object] = {
        "request": RequestId("r"), "server": ServerId("s"), "model": "m", "at_s": 0.0,
        "keys": PromptKeys(pack_tokens(tuple(tokens)) or b""), "prompt_tokens": len(tokens), "block_size": BLOCK,
        "cached_tokens": None, "skips_lookup": False,
    }  # fmt: skip
    return RecordedPrompt(**{**fields, **changes})  # type: ignore[arg-type]


def stream(prompts: Sequence[Sequence[int]]) -> Stream:
    found = stream_of([recorded(prompt) for prompt in prompts], 10_000)
    assert found is not None
    return found


# Few prefixes and tails, of every length but whole blocks, which a server keeps twice.
PROMPTS = st.lists(
    st.tuples(st.sampled_from([(), (7,) * 4, (7,) * 9, (8,) * 14]), st.lists(st.integers(0, 1), max_size=9)).map(
        lambda parts: (*parts[0], *parts[1])
    ).filter(lambda tokens: len(tokens) % BLOCK != 0),
    min_size=1,
    max_size=30,
)  # fmt: skip


@given(PROMPTS, st.integers(7, 40))
def test_an_engine_hits_what_the_distances_say(prompts: list[tuple[int, ...]], pool: int) -> None:
    # An engine's first block is the null block.
    core = make_core(pool + 1, BLOCK)
    cached = [ask(core, f"r{number}", prompt) for number, prompt in enumerate(prompts)]
    found = hits_by_depth(stream(prompts).lookups)
    assert sum(hits for depth, hits in found.items() if depth < pool) * BLOCK == sum(cached)


@given(PROMPTS)
def test_one_pass_gives_what_a_run_a_size_gives(prompts: list[tuple[int, ...]]) -> None:
    lookups = stream(prompts).lookups
    found = hits_by_depth(lookups)
    smallest = max(lookup.places for lookup in lookups)
    for size in range(smallest, smallest + 12):
        pool = LruPool(size)
        assert sum(pool.run(lookup) for lookup in lookups) == sum(n for depth, n in found.items() if depth < size)


@given(st.lists(st.sampled_from([(1,), (1, 2), (1, 3), (4,), (4, 5), (6,)]), min_size=1, max_size=7), st.integers(2, 4))
def test_no_order_of_eviction_beats_the_bound(chains: list[tuple[int, ...]], size: int) -> None:
    lookups = [Lookup(chain, len(chain), 0, len(chain)) for chain in chains]

    def best(at: int, resident: frozenset[int]) -> int:
        if at == len(lookups):
            return 0
        lookup = lookups[at]
        hits = next((n for n, block in enumerate(lookup.blocks) if block not in resident), len(lookup.blocks))
        others = resident - set(lookup.blocks)
        room = min(size - len(lookup.blocks), len(others))
        return hits + max(
            best(at + 1, frozenset(lookup.blocks) | frozenset(kept)) for kept in combinations(others, room)
        )

    assert best_possible(lookups, size) == best(0, frozenset())


@given(PROMPTS, st.integers(4, 20))
@example([(0,) * 14, (1,) * 5, (1,) * 18, (2,) * 5, (1,) * 9], 4)
def test_the_bound_is_one(prompts: list[tuple[int, ...]], size: int) -> None:
    lookups = stream(prompts).lookups
    pool = LruPool(size)
    assert sum(pool.run(lookup) for lookup in lookups) <= best_possible(lookups, size)


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 3))))
def test_counts_behind_a_place(marks: list[tuple[int, int]]) -> None:
    counts = Fenwick(16)
    for place_, change in marks:
        counts.add(place_, change)
    for place_ in range(16):
        assert counts.above(place_) == sum(change for at, change in marks if at > place_)


@pytest.mark.parametrize("requests", [1, 7, 8, 9, 24])
def test_eight_replicas(requests: int) -> None:
    """The first eight requests all miss in turn; by prefix only the first does."""
    lookups = stream([(*range(40), 100 + number) for number in range(requests)]).lookups
    prefix = 40 // BLOCK
    assert place(lookups, 8, 1000, round_robin).hit_blocks == max(0, requests - 8) * prefix
    for rule in (by_prefix, best_match):
        placed = place(lookups, 8, 1000, rule)
        assert placed.hit_blocks == (requests - 1) * prefix
        assert placed.busiest_ratio == 1.0


def test_the_answer_is_shares_of_all_prompt_tokens() -> None:
    found = what_if(stream([(*range(40), 100 + number) for number in range(24)]), 100, replicas=(1, 8))
    assert (found.requests, found.block_size, found.prompt_tokens) == (24, 4, 24 * 41)
    one, eight = found.placements
    assert one.rules["round_robin"].hit_ratio == pytest.approx(23 * 40 / (24 * 41))
    assert eight.rules["round_robin"].hit_ratio == pytest.approx(16 * 40 / (24 * 41), abs=1e-6)
    ratios = [point.hit_ratio for point in found.pools]
    assert ratios == sorted(ratios)
    assert all(point.hit_ratio <= point.bound_ratio for point in found.pools)
    assert found.pools[-1].hit_ratio == pytest.approx(23 * 40 / (24 * 41))


def test_models_salts_and_block_sizes_are_kept_apart() -> None:
    tokens = range(9)
    salted = PromptKeys(recorded(tokens).keys.packed, salt=b"s")  # type: ignore[arg-type]
    prompts = [recorded(tokens), recorded(tokens, model="other"), recorded(tokens, keys=salted), recorded(tokens)]
    found = stream_of([*prompts, recorded(tokens, block_size=8)], 1000)
    assert found is not None
    assert found.left_out == 1
    assert sum(hits_by_depth(found.lookups).values()) == 2


def test_what_skips_the_lookup_hits_nothing_but_stays() -> None:
    tokens = range(9)
    found = stream_of([recorded(tokens, skips_lookup=True), recorded(tokens)], 1000)
    assert found is not None
    assert hits_by_depth(found.lookups) == {1: 1, 2: 1}


def test_the_newest_are_taken_where_there_are_too_many() -> None:
    found = stream_of([recorded([start] * 9) for start in range(10)], 5)
    assert found is not None
    assert (len(found.lookups), found.left_out) == (2, 8)
    assert stream_of([], 5) is None
