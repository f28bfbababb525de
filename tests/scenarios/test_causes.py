"""For each cause a scene that produces it, with its numbers; and what usage says is never contradicted."""

import pytest

from app.ids import Rank, RequestId, ServerId
from app.model.verdict import CODES
from app.observations import KvBatch, RequestEnded, RequestEngineTimes, RequestUsage, ServerProbed
from tests.scenarios.tables import CLEARED, SERVER, Scene, removed, stored

PROMPT = tuple(range(13))  # three blocks and one token


def scene_with(*hashes: int, tokens: tuple[int, ...] | None = None) -> Scene:
    scene = Scene()
    scene.kv(stored(*hashes, tokens=tokens) if hashes else stored(99, tokens=(99,) * 4))
    return scene


def first_seen() -> tuple[Scene, dict[str, object]]:
    scene = scene_with()
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"computed_tokens": 13, "shared_tokens": 0}


def full_hit() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=12)
    return scene, {"reused_blocks": 3, "prompt_blocks": 4, "reusable_blocks": 3, "computed_tokens": 1}


def reused_then_diverges() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("r", (*range(10), 77, 78, 79))
    scene.end("r", 13, cached=8)
    return scene, {"reused_blocks": 2, "loss": "diverges", "shared_tokens": 10, "token": 11, "block": 3,
                   "blocks_after": 2}  # fmt: skip


def reused_then_evicted() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.kv(removed(3))
    scene.now += 5
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=8)
    return scene, {"reused_blocks": 2, "loss": "evicted", "block": 3, "seconds": 5.1}


def too_short() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1)
    scene.send("r", (0, 1, 2))
    scene.end("r", 3, cached=0)
    return scene, {"prompt_tokens": 3, "block_size": 4}


def one_block_exactly() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1)
    scene.send("r", (0, 1, 2, 3))
    scene.end("r", 4, cached=0)
    return scene, {"prompt_tokens": 4, "block_size": 4}


def exact_multiple() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT[:12])
    scene.end("r", 12, cached=8)
    return scene, {"reused_blocks": 2, "reusable_blocks": 2, "computed_tokens": 4}


CONSTANT = tuple(range(200, 240))


def variable_first() -> tuple[Scene, dict[str, object]]:
    """A clock of two tokens before 40 tokens that stay."""
    scene = scene_with(*range(1, 12), tokens=(0, 1, 7, 8, *CONSTANT))
    scene.send("r", (0, 1, 9, 10, 11, *CONSTANT, 5))
    scene.end("r", 46, cached=0)
    return scene, {"token": 3, "block": 1, "span_tokens": 3, "constant_tokens": 40, "shared_tokens": 2}


def reused_then_variable() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(*range(1, 13), tokens=(0, 1, 2, 3, 7, 8, 9, 9, *CONSTANT))
    scene.send("r", (0, 1, 2, 3, 7, 6, 9, 9, *CONSTANT))
    scene.end("r", 48, cached=4)
    return scene, {"loss": "variable_first", "token": 6, "block": 2, "span_tokens": 1, "constant_tokens": 42}


def variable_at_the_very_start() -> tuple[Scene, dict[str, object]]:
    scene = scene_with()
    scene.send("before", (70, 71, 72, *CONSTANT))
    scene.end("before", 43, cached=0)
    scene.send("r", (80, 81, *CONSTANT))
    scene.end("r", 42, cached=0)
    return scene, {"token": 1, "span_tokens": 3, "constant_tokens": 40}


def continued() -> tuple[Scene, dict[str, object]]:
    """A conversation that goes on from within a block."""
    scene = scene_with(1, 2)
    scene.send("turn 1", tuple(range(10)))
    scene.end("turn 1", 10, cached=8)
    scene.send("r", tuple(range(20)))
    scene.end("r", 20, cached=8)
    return scene, {"loss": "alignment", "shared_tokens": 10, "token": 11, "block": 3, "straddling_tokens": 2}


def on_another_rank() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.kv(stored(99, tokens=(99,) * 4), rank=1)
    scene.send("r", PROMPT, session="s")
    scene.kv(stored(1, 2, 3, session="s"), rank=1)
    scene.end("r", 13, cached=0)
    return scene, {"other_rank": 0, "rank": 1, "resident_blocks": 3}


OTHER = ServerId("http://127.0.0.1:8001")


def on_another_server() -> tuple[Scene, dict[str, object]]:
    scene = scene_with()
    scene.apply(ServerProbed(OTHER, "up", None, scene.now, models=("m",)))
    scene.apply(KvBatch(OTHER, Rank(0), 0, (stored(1, 2, 3),), scene.now))
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"other_server": OTHER, "resident_blocks": 3}


def for_another_model() -> tuple[Scene, dict[str, object]]:
    scene = scene_with()
    scene.send("there", PROMPT, server=OTHER, model="m2")
    scene.end("there", 13, cached=0)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"other_model": "m2"}


def still_computing() -> tuple[Scene, dict[str, object]]:
    """Two cold requests at once, on a server that doesn't share what isn't computed yet."""
    scene = scene_with()
    scene.send("first", PROMPT)
    scene.send("r", PROMPT)
    scene.kv(stored(1, 2, 3))
    scene.end("first", 13, cached=0)
    scene.end("r", 13, cached=0)
    return scene, {"by": "first"}


def drops_the_last_block() -> tuple[Scene, dict[str, object]]:
    """As with speculative decoding of the EAGLE kind: learned from two requests."""
    scene = scene_with(1, 2, 3)
    for name in ("one", "two", "r"):
        scene.send(name, PROMPT)
        scene.end(name, 13, cached=8)
    return scene, {"loss": "coarse_alignment", "matched_tokens": 12, "dropped_blocks": 1, "unit_tokens": 4}


def coarse_unit() -> tuple[Scene, dict[str, object]]:
    """As with hybrid models: hits are multiples of several blocks, so a shorter match gives nothing."""
    scene = scene_with(*range(1, 9))
    for name in ("one", "two"):
        scene.send(name, tuple(range(29)))
        scene.end(name, 29, cached=16)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"matched_tokens": 12, "unit_tokens": 16}


def evicted_by_another() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("big", tuple(range(300, 313)), session="big")
    scene.kv(removed(3), removed(2), removed(1), stored(7, 8, 9, tokens=tuple(range(300, 312)), session="big"))
    scene.end("big", 13, cached=0)
    scene.now += 20
    scene.send("r", PROMPT)
    scene.kv(stored(1, 2, 3))
    scene.end("r", 13, cached=0)
    return scene, {"by": "big", "by_count": 1, "lost_tokens": 12, "block": 1}


def salted_without_events() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.metrics(0, 0, block_size=4)
    scene.send("before", PROMPT, salt="s1")
    scene.end("before", 13, cached=0)
    scene.send("r", PROMPT, salt="s2")
    scene.end("r", 13, cached=0)
    return scene, {"salted": 1}


def shares_too_little() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1)
    scene.send("r", (0, 1, 50, 51, 52))
    scene.end("r", 5, cached=0)
    return scene, {"shared_tokens": 2, "block_size": 4}


def diverges_in_the_first_block() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("r", (0, 77, *range(2, 13)))
    scene.end("r", 13, cached=0)
    return scene, {"shared_tokens": 1, "token": 2, "block": 1, "blocks_after": 4}


def evicted() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.kv(removed(3, 2, 1))
    scene.now += 30
    scene.send("r", PROMPT)
    scene.kv(stored(1, 2, 3))
    scene.end("r", 13, cached=0)
    return scene, {"seconds": 30.1, "block": 1}


def reset() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.kv(CLEARED)
    scene.now += 10
    scene.send("r", PROMPT)
    scene.kv(stored(1, 2, 3))
    scene.end("r", 13, cached=0)
    return scene, {"seconds": 10.1, "reason": "reset"}


def other_salt() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.kv(stored(1, 2, 3, salt="s1"))
    scene.send("r", PROMPT, salt="s2")
    scene.end("r", 13, cached=0)
    return scene, {"salted": 1}


def other_adapter() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.kv(stored(1, 2, 3, lora="sql"))
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"adapter": "sql"}


def other_image() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.kv(stored(1, 2, 3, other="image-a"))
    scene.send("r", PROMPT, images=True)
    scene.end("r", 13, cached=0)
    return scene, {}


def cache_off() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.metrics(0, 0, block_size=4, prefix_caching=False)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"cached_tokens": 0}


def lookup_skipped() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT, skips=True)
    scene.end("r", 13, cached=0)
    return scene, {"computed_tokens": 13}


def inconsistent() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=14)
    return scene, {"cached_tokens": 14, "prompt_tokens": 13}


def unexplained() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"reason": "seemed_resident"}


def unexplained_without_events() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.metrics(0, 0, block_size=4)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    return scene, {"reason": "no_events"}


def unknown() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=None)
    return scene, {"missing": "details"}


def unknown_without_usage() -> tuple[Scene, dict[str, object]]:
    scene = Scene()
    scene.send("r", PROMPT)
    scene.end("r")
    return scene, {"missing": "usage"}


def failed() -> tuple[Scene, dict[str, object]]:
    scene = scene_with(1)
    scene.send("r", PROMPT)
    request = scene.record("r").id
    scene.apply(RequestEnded(request, "server_gone", scene.now, error="Connection refused"))
    return scene, {"outcome": "server_gone", "error": "Connection refused"}


SCENES = {
    first_seen: "first_seen", full_hit: "full_hit", reused_then_diverges: "reused", reused_then_evicted: "reused",
    too_short: "too_short", shares_too_little: "too_short", diverges_in_the_first_block: "diverges",
    evicted: "evicted", reset: "reset", other_salt: "other_salt", other_adapter: "other_adapter",
    other_image: "other_image", cache_off: "cache_off", lookup_skipped: "lookup_skipped",
    inconsistent: "inconsistent", unexplained: "unexplained", unexplained_without_events: "unexplained",
    one_block_exactly: "exact_multiple", exact_multiple: "exact_multiple", variable_first: "variable_first",
    reused_then_variable: "reused", variable_at_the_very_start: "variable_first", continued: "reused",
    on_another_rank: "other_rank", on_another_server: "other_server", for_another_model: "other_model",
    still_computing: "still_computing", drops_the_last_block: "reused", coarse_unit: "coarse_alignment",
    evicted_by_another: "evicted", salted_without_events: "other_salt",
    unknown: "unknown", unknown_without_usage: "unknown", failed: "failed",
}  # fmt: skip


@pytest.mark.parametrize("make", SCENES, ids=lambda make: str(make.__name__))
def test_each_cause_and_its_numbers(make: object) -> None:
    assert callable(make)
    scene, expected = make()
    assert scene.code("r") == SCENES[make]
    params = scene.params("r")
    assert {name: params.get(name) for name in expected} == pytest.approx(expected)


def test_every_code_has_a_scene() -> None:
    losses = {make()[0].params("r").get("loss") for make in SCENES}
    assert set(SCENES.values()) | losses - {None} == set(CODES)


def test_causes_that_hold_as_well_are_listed() -> None:
    scene, _ = reused_then_variable()
    verdict = scene.record("r").verdict
    assert verdict is not None
    assert verdict.others == ("diverges", "alignment")
    scene, _ = evicted()
    scene.kv(CLEARED)
    scene.send("again", PROMPT)
    record = scene.end("again", 13, cached=0)
    assert record.verdict is not None
    assert (record.verdict.code, record.verdict.others) == ("reset", ())


def test_a_reset_that_is_told_with_the_step_that_admits_the_request_is_one_before_it() -> None:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    scene.now += 0.01
    scene.kv(CLEARED, stored(1, 2, 3))
    scene.now += 0.01
    scene.end("r", 13, cached=0)
    assert scene.code("r") == "reset"
    assert scene.params("r")["seconds"] is None


def test_a_reset_after_the_answer_began_explains_nothing() -> None:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    scene.now += 1
    scene.kv(CLEARED)
    assert scene.code("r") == "unexplained"


def test_blocks_that_a_running_request_will_store_explain_more_than_an_eviction_before() -> None:
    scene = scene_with(1, 2, 3)
    scene.kv(removed(3, 2, 1))
    scene.send("first", PROMPT)
    scene.send("r", PROMPT)
    scene.kv(stored(1, 2, 3))
    scene.end("first", 13, cached=0)
    record = scene.end("r", 13, cached=0)
    assert record.verdict is not None
    assert (record.verdict.code, record.verdict.others[0]) == ("still_computing", "evicted")


def test_a_request_that_got_through_before_explains_nothing() -> None:
    scene = scene_with()
    scene.send("first", PROMPT)
    scene.answer("first")
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=0)
    assert scene.code("r") != "still_computing"


def test_the_servers_own_time_is_told_where_the_clocks_differ_much() -> None:
    scene = scene_with(1, 2, 3)
    for name, own_ms, told in (("near", 95.0, None), ("far", 20.0, 20.0)):
        scene.send(name, PROMPT)
        scene.answer(name, ttft_ms=100)
        scene.apply(RequestEngineTimes(RequestId(name), scene.now, ttft_ms=own_ms))
        scene.end(name, 13, cached=12)
        assert scene.params(name).get("engine_ttft_ms") == told


def test_a_hit_that_waited_says_so() -> None:
    scene = scene_with()
    scene.send("cold", PROMPT)
    scene.answer("cold", ttft_ms=80)
    scene.kv(stored(1, 2, 3))
    scene.end("cold", 13, cached=0)
    scene.send("warm", PROMPT)
    scene.answer("warm", ttft_ms=100)
    scene.apply(RequestEngineTimes(RequestId("warm"), scene.now, ttft_ms=98, queue_ms=75.0))
    record = scene.end("warm", 13, cached=12)
    assert record.verdict is not None
    assert str(record.verdict.detail).endswith("Not faster all the same: it waited 75 ms in the server's queue.")


@pytest.mark.parametrize("make", SCENES, ids=lambda make: str(make.__name__))
@pytest.mark.parametrize("cached", [0, 4, 8, 12, 13, 14])
def test_no_verdict_contradicts_usage(make: object, cached: int) -> None:
    assert callable(make)
    scene, _ = make()
    scene.send("again", PROMPT)
    record = scene.end("again", 13, cached=cached)
    assert record.cached_tokens == cached
    assert record.verdict is not None
    if cached > 13:
        assert record.verdict.code == "inconsistent"
    elif cached:
        assert record.verdict.code in ("reused", "full_hit", "exact_multiple")
        assert record.verdict.params.get("reused_blocks") == (cached // 4 if record.block_size else None)
    else:
        assert record.verdict.code not in ("reused", "full_hit", "exact_multiple")


def test_an_earlier_prompt_that_ends_is_continued_not_contradicted() -> None:
    scene = scene_with(1, 2)
    scene.send("turn 1", tuple(range(10)))
    scene.end("turn 1", 10, cached=8)
    scene.send("turn 2", tuple(range(20)))
    scene.kv(stored(3, 4, 5, parent=2, tokens=tuple(range(8, 20))))
    record = scene.end("turn 2", 20, cached=8)
    assert record.verdict is not None
    assert record.verdict.detail == (
        "The nearest earlier prompt ends after 10 tokens: new from token 11, in block 3. That block wasn't full, so "
        "the 2 tokens in it had to be computed again."
    )


def test_the_nearest_prompt_is_found_among_requests_where_the_server_sends_no_events() -> None:
    scene = Scene()
    scene.metrics(0, 0, block_size=4)
    scene.send("first", PROMPT)
    scene.end("first", 13, cached=0)
    scene.send("second", (*range(6), 77, *range(7, 13)))
    record = scene.end("second", 13, cached=4)
    assert record.verdict is not None
    assert record.verdict.params["token"] == 7


def test_time_saved_needs_a_cold_request_of_about_the_same_length() -> None:
    scene = scene_with()
    scene.send("cold", PROMPT)
    scene.answer("cold", ttft_ms=80)
    scene.kv(stored(1, 2, 3))
    scene.end("cold", 13, cached=0)
    scene.send("warm", PROMPT)
    scene.answer("warm", ttft_ms=30)
    record = scene.end("warm", 13, cached=12)
    assert record.reference_id == "cold"
    assert record.verdict is not None
    assert record.verdict.text == "Reused 3 of 4 blocks. First token after 30 ms instead of 80 ms."
    scene.send("long", tuple(range(60)))
    longer = scene.end("long", 60, cached=12)
    assert longer.reference_id is None


def test_a_request_that_hit_something_is_no_reference() -> None:
    scene = scene_with(1)
    scene.send("half", PROMPT)
    scene.end("half", 13, cached=4)
    scene.send("warm", PROMPT)
    assert scene.end("warm", 13, cached=12).reference_id is None


def test_null_details_are_unknown_and_say_which_flag() -> None:
    scene = Scene()
    scene.send("r", PROMPT)
    record = scene.end("r", 13, cached=None)
    assert (record.cached_tokens, record.reused_blocks) == (None, None)
    assert record.verdict is not None
    assert "--enable-prompt-tokens-details" in str(record.verdict.detail)
    server = scene.ledger.server(SERVER)
    assert server is not None
    assert server.usage_details is False


def test_a_server_that_said_it_once_is_known_to_say_it() -> None:
    scene = Scene()
    scene.send("cold", PROMPT)
    cold = scene.end("cold", 13, cached=None)
    scene.send("warm", PROMPT)
    scene.end("warm", 13, cached=12)
    scene.send("cold again", PROMPT)
    again = scene.end("cold again", 13, cached=None)
    assert (cold.cached_tokens, again.cached_tokens) == (None, None)
    assert again.verdict is not None
    assert "probably 0" in str(again.verdict.detail)
    server = scene.ledger.server(SERVER)
    assert server is not None
    assert server.usage_details is True


def test_without_usage_events_tell_what_was_reused() -> None:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    record = scene.end("r")
    assert (record.cached_tokens, record.basis["cached_tokens"]) == (12, "inferred")
    assert scene.code("r") == "full_hit"
    assert scene.states("r") == "rrrp"


def test_a_later_usage_wins_but_for_what_it_leaves_out() -> None:
    scene = Scene()
    scene.send("r", PROMPT)
    request = scene.record("r").id
    scene.apply(RequestUsage(request, 3602, None, None, scene.now))
    scene.apply(RequestUsage(request, None, 878, 3604, scene.now))
    record = scene.end("r")
    assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (3602, 878, 3604)
    assert scene.code("r") == "inconsistent"


def test_tokens_of_another_length_are_not_the_servers() -> None:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    record = scene.end("r", 11, cached=0)
    assert (record.predicted_cached_tokens, scene.code("r")) == (None, "unexplained")
    assert record.verdict is not None
    assert "13 against 11" in str(record.verdict.detail)


def test_inconsistent_figures_are_in_no_rate() -> None:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT)
    scene.end("r", 13, cached=14)
    assert scene.ledger.snapshot().rates[SERVER] == ()


def test_skipped_lookups_are_in_no_rate() -> None:
    scene = scene_with(1, 2, 3)
    scene.send("r", PROMPT, skips=True)
    scene.end("r", 13, cached=0)
    assert scene.ledger.snapshot().rates[SERVER] == ()


def test_servers_are_apart() -> None:
    scene = scene_with(1, 2, 3)
    other = ServerId("http://127.0.0.1:8001")
    scene.apply(ServerProbed(other, "up", None, scene.now, version="0.32.0"))
    assert [record.id for record in scene.ledger.snapshot().servers] == [SERVER, other]
    assert len(scene.ledger.block_columns()) == 1
