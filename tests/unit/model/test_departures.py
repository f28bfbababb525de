"""Where two prompts are the same again, against a search of every place."""

import random

import pytest

from app.model.block_keys import pack_tokens
from app.model.departures import WINDOW_TOKENS, find_return


def packed(tokens: list[int]) -> bytes:
    made = pack_tokens(tuple(tokens))
    assert made is not None
    return made


def is_there(here: list[int], there: list[int], shared: int) -> int | None:
    """The first token from which a whole window of `here` stands in `there`, both behind the departure."""
    windows = {tuple(there[at : at + WINDOW_TOKENS]) for at in range(shared, len(there) - WINDOW_TOKENS + 1)}
    places = range(shared, len(here) - WINDOW_TOKENS + 1)
    return next((at for at in places if tuple(here[at : at + WINDOW_TOKENS]) in windows), None)


@pytest.mark.parametrize("seed", range(40))
def test_the_first_window_in_both_is_found_and_taken_as_far_as_it_goes(seed: int) -> None:
    draw = random.Random(seed)
    shared = draw.randrange(30)
    # Few different tokens: much is alike by chance.
    alike, start = draw.choices(range(draw.choice((3, 50))), k=draw.randrange(10, 60)), draw.choices(range(9), k=shared)
    here = [*start, 100, *draw.choices(range(50), k=draw.randrange(40)), *alike, *draw.choices(range(50), k=9)]
    there = [*start, 101, *draw.choices(range(50), k=draw.randrange(40)), *alike]
    found, first = find_return(packed(here), packed(there), shared), is_there(here, there, shared)
    assert (found is None) == (first is None)
    if found is not None:
        assert found.here == first
        assert found.tokens >= WINDOW_TOKENS
        assert here[found.here : found.here + found.tokens] == there[found.there : found.there + found.tokens]
