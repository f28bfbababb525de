"""For each cause a scene that produces it, with its numbers; and what usage says is never contradicted."""

import pytest

from app.ids import ServerId
from app.model.verdict import CODES
from app.observations import RequestEnded, RequestUsage, ServerProbed
from tests.scenarios.tables import CLEARED, SERVER, Scene, removed, stored

PROMPT = tuple(range(13))  # three blocks and one token


def scene_with(*hashes: int) -> Scene:
    scene = Scene()
    scene.kv(stored(*hashes) if hashes else stored(99, tokens=(99,) * 4))
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
    scene.send("r", (0, 1, 2, 3))
    scene.end("r", 4, cached=0)
    return scene, {"prompt_tokens": 4, "block_size": 4}


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
    assert set(SCENES.values()) == set(CODES)


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
        assert record.verdict.code in ("reused", "full_hit")
        assert record.verdict.params.get("reused_blocks") == (cached // 4 if record.block_size else None)
    else:
        assert record.verdict.code not in ("reused", "full_hit")


def test_an_earlier_prompt_that_ends_is_continued_not_contradicted() -> None:
    scene = scene_with(1, 2)
    scene.send("turn 1", tuple(range(10)))
    scene.end("turn 1", 10, cached=8)
    scene.send("turn 2", tuple(range(20)))
    scene.kv(stored(3, 4, 5, parent=2, tokens=tuple(range(8, 20))))
    record = scene.end("turn 2", 20, cached=8)
    assert record.verdict is not None
    assert record.verdict.detail == "The nearest earlier prompt ends after 10 tokens: new from token 11, in block 3."


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
