"""Readings that disagree: which, by how much, and why, where a known cause fits."""

from app.events import HitRateUpdated, ReadingsDifference
from app.ids import Rank
from app.observations import KvGap, ServerProbed
from tests.scenarios.tables import SERVER, SIZE, Scene, stored

PROMPT = tuple(range(17))


def differences(scene: Scene) -> tuple[ReadingsDifference, ...]:
    """Those of the last event, which a snapshot tells, too."""
    updated = [outgoing.event for outgoing in scene.out if isinstance(outgoing.event, HitRateUpdated)]
    assert scene.ledger.snapshot().differences[SERVER] == updated[-1].differences
    return updated[-1].differences


def counted(version: str = "0.32.0") -> Scene:
    scene = Scene()
    scene.apply(ServerProbed(SERVER, "up", None, scene.now, version))
    scene.metrics(0, 0, preemptions=0.0, block_size=SIZE)
    return scene


def test_readings_that_agree_to_a_block_a_request_say_nothing() -> None:
    scene = counted()
    scene.kv(stored(1, 2, 3, 4))
    scene.send("r", PROMPT)
    scene.end("r", 17, 12)
    scene.metrics(17, 16, preemptions=0.0)
    assert differences(scene) == ()


def test_requests_that_went_past_the_dashboard() -> None:
    scene = counted()
    scene.send("r", PROMPT)
    scene.end("r", 17, 0)
    scene.metrics(117, 40, preemptions=0.0)
    (found,) = differences(scene)
    assert (found.window, found.first, found.second, found.cause) == ("since_mark", "counter", "usage", "elsewhere")
    assert (found.hit_tokens, found.query_tokens, found.requests) == (40, 100, 1)
    assert "100 tokens more looked up" in found.text


def test_lookups_that_an_older_vllm_counts_at_every_try() -> None:
    for version, cause in (("0.12.0", "retries_counted"), ("0.32.1", "elsewhere")):
        scene = counted(version)
        scene.send("r", PROMPT)
        scene.end("r", 17, 0)
        scene.metrics(34, 16, preemptions=1.0)
        assert [found.cause for found in differences(scene)] == [cause]


def test_nothing_is_compared_while_a_request_runs_or_before_the_counters_were_read_again() -> None:
    scene = counted()
    scene.send("r", PROMPT)
    scene.end("r", 17, 0)
    assert differences(scene) == ()
    scene.send("s", PROMPT)
    scene.metrics(117, 40, preemptions=0.0)
    assert differences(scene) == ()
    scene.end("s", 17, 0)
    scene.metrics(134, 40, preemptions=0.0)
    assert [found.cause for found in differences(scene)] == ["elsewhere"]
    scene.ledger.mark(SERVER, scene.now)
    scene.tick(scene.now + 0.5)
    assert differences(scene) == ()


def test_a_window_that_began_while_a_request_ran_is_not_compared() -> None:
    scene = Scene()
    scene.send("r", PROMPT)
    scene.metrics(1000, 0, block_size=SIZE)
    scene.end("r", 17, 0)
    scene.metrics(1000, 0)
    assert [found for found in scene.ledger.snapshot().differences[SERVER] if found.first == "counter"] == []


def test_forecasts_that_a_partial_history_keeps_low() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, 3, 4))
    scene.apply(KvGap(SERVER, Rank(0), 1, 2, 0, scene.now))
    longer = (*PROMPT[:16], *range(100, 117))
    scene.send("r", longer)
    scene.end("r", 33, 28)
    found = differences(scene)
    assert {(each.first, each.second, each.hit_tokens, each.cause) for each in found} == {
        ("usage", "inferred", 12, "partial_history")
    }
    assert {each.window for each in found} == {"last_request", "since_mark", "last_minute", "last_1000_requests"}


def test_a_difference_that_nothing_explains_says_so() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, 3, 4))
    scene.send("r", PROMPT)
    scene.end("r", 17, 4)
    found = differences(scene)
    assert {(each.hit_tokens, each.cause) for each in found} == {(-12, None)}
    assert "12 tokens fewer hit than forecasts. No known cause fits." in found[0].text
