from app.ids import RequestId
from app.model.block_keys import unpack_tokens
from app.model.nearest import compare, forecast_prompt
from tests.scenarios.tables import SERVER, Scene, removed, stored

LONG = tuple(range(1000, 101_000))


def test_a_long_prompt_is_held_against_the_nearest_of_all_chains() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, tokens=LONG[:8]), stored(3, 4, parent=2, tokens=(*LONG[8:12], 5, 6, 7, 8)))
    scene.send("other", (1, 2, 3))
    scene.end("other", 3, cached=0)
    scene.send("r", LONG)
    found = compare(scene.ledger.state, RequestId("r"))
    assert found is not None
    assert (found.shared_tokens, found.nearest_request, found.resident_tokens) == (12, None, 12)
    assert unpack_tokens(found.there)[:16] == (*LONG[:12], 5, 6, 7, 8)
    assert (found.show_here, found.show_there) == (True, False)


def test_a_kept_prompt_is_nearer_where_it_shares_more_than_the_blocks() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, tokens=LONG[:8]))
    scene.send("before", (*LONG[:5000], 1))
    scene.end("before", 5001, cached=8)
    scene.send("r", LONG)
    found = compare(scene.ledger.state, RequestId("r"))
    assert found is not None
    assert (found.shared_tokens, found.nearest_request, found.show_there) == (5000, "before", True)


def test_a_request_whose_tokens_are_not_known_has_nothing_to_compare() -> None:
    scene = Scene()
    scene.send("r")
    assert compare(scene.ledger.state, RequestId("r")) is None
    assert compare(scene.ledger.state, RequestId("nobody")) is None


def test_a_forecast_says_it_of_each_block_and_rank() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, 3, tokens=LONG[:12]))
    scene.kv(removed(2))
    scene.kv(stored(1, tokens=LONG[:4]), rank=1)
    found = forecast_prompt(scene.ledger.state, SERVER, LONG[:14])
    assert (found.tokens, found.block_size, found.reusable_blocks, found.cached_tokens) == (14, 4, 3, 4)
    assert [rank.resident for rank in found.ranks] == [(True, False, True), (True, False, False)]
    assert [rank.cached_tokens for rank in found.ranks] == [4, 4]


def test_without_events_nothing_is_forecast_but_what_cannot_hit() -> None:
    scene = Scene()
    scene.metrics(0, 0, block_size=4)
    assert forecast_prompt(scene.ledger.state, SERVER, LONG[:14]).cached_tokens is None
    assert forecast_prompt(scene.ledger.state, SERVER, LONG[:4]).cached_tokens == 0
    assert forecast_prompt(scene.ledger.state, SERVER, LONG[:14], skips_cache_read=True).cached_tokens == 0
