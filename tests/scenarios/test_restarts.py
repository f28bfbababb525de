"""Restarts and silence: after each the page is right with the first new message, and shows no ghost."""

import pytest

from app.events import BlocksCleared, HitRateUpdated
from app.ids import Rank
from app.observations import KvGap, KvRestarted, KvStreamState, MetricsFailed, Observation, ServerProbed, WireForm
from tests.scenarios.tables import CLEARED, SERVER, Scene, stored
from tests.scenarios.wire import FORMS

PROMPT = tuple(range(9))


@pytest.fixture(autouse=True, params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WireForm:
    """Each scene is played in both forms of the wire."""
    monkeypatch.setattr(Scene, "wire_form", request.param)
    found: WireForm = request.param
    return found


def gpu(*hashes: int) -> dict[tuple[int, str, str], int]:
    return {(0, "GPU", f"{block_hash:016x}"): 1 for block_hash in hashes}


def watched() -> Scene:
    """A server with two blocks, a reading of metrics, and a request behind it."""
    scene = Scene()
    scene.apply(
        ServerProbed(SERVER, "up", None, scene.now, "0.32.0"),
        KvStreamState(SERVER, Rank(0), "connected", "tcp://h:5557", None, scene.now, True),
    )
    scene.metrics(0, 0, block_size=4, num_gpu_blocks=101, kv_usage_ratio=0.0, running=0.0)
    scene.kv(stored(1, 2))
    scene.send("before", PROMPT)
    scene.end("before", 9, cached=8)
    scene.metrics(9, 8, block_size=4, num_gpu_blocks=101, kv_usage_ratio=0.0, running=0.0)
    return scene


def forecast(scene: Scene, name: str) -> tuple[int | None, bool]:
    scene.send(name, PROMPT)
    record = scene.record(name)
    return record.predicted_cached_tokens, record.predicted_is_lower_bound


def test_a_sequence_that_goes_back_clears_and_forecasts_anew() -> None:
    scene = watched()
    events = scene.apply(KvRestarted(SERVER, Rank(0), scene.now))
    assert BlocksCleared("restarted", 2) in events
    assert forecast(scene, "between") == (0, False)
    scene.kv(stored(1), seq=0)
    assert scene.copies() == gpu(1)
    assert forecast(scene, "after") == (4, False)
    stream = scene.server.streams[0]
    assert (stream.restarts, stream.coverage, stream.last_seq) == (1, "complete", 0)


AWAY: tuple[Observation, ...] = (
    MetricsFailed(SERVER, "HTTP 500", 500, 9.0),
    MetricsFailed(SERVER, "refused", None, 9.0),
    ServerProbed(SERVER, "down", "refused", 9.0),
    KvStreamState(SERVER, Rank(0), "disconnected", "tcp://h:5557", "Lost.", 9.0, fault="lost"),
)


@pytest.mark.parametrize("away", AWAY, ids=lambda away: type(away).__name__)
def test_counters_that_were_reset_clear_and_are_never_negative(away: Observation) -> None:
    scene = watched()
    scene.apply(away)
    events = scene.metrics(5, 0, block_size=4, num_gpu_blocks=101, kv_usage_ratio=0.0, running=0.0)
    assert BlocksCleared("restarted", 2) in events
    assert scene.copies() == {}
    assert scene.rate("since_mark", "counter") == (8, 14, 8 / 14)
    assert scene.rate("lifetime", "counter") == (0, 5, 0.0)
    assert (scene.point.cached_blocks, scene.point.unwritten_blocks) == (0, 100)


def test_a_lost_connection_makes_the_picture_partial_until_replay_closes_the_gap() -> None:
    scene = watched()
    scene.apply(KvStreamState(SERVER, Rank(0), "disconnected", "tcp://h:5557", "Lost.", scene.now, fault="lost"))
    stream = scene.server.streams[0]
    assert (stream.state, stream.coverage) == ("disconnected", "partial")
    assert forecast(scene, "while") == (8, True)
    scene.apply(KvStreamState(SERVER, Rank(0), "connected", "tcp://h:5557", None, scene.now))
    scene.apply(KvGap(SERVER, Rank(0), 1, 2, 2, scene.now))
    scene.kv(CLEARED, replayed=True)
    scene.kv(stored(7), replayed=True)
    assert scene.copies() == gpu(7)
    stream = scene.server.streams[0]
    assert (stream.state, stream.coverage, stream.gaps, stream.lost) == ("connected", "complete", 1, 0)


def test_sleep_empties_the_picture_at_once_and_the_clear_comes_later() -> None:
    scene = watched()
    scene.metrics(9, 8, asleep=False)
    assert scene.copies() == gpu(1, 2)
    events = scene.metrics(9, 8, asleep=True)
    assert BlocksCleared("reset", 2) in events
    assert (scene.server.asleep, scene.copies()) == (True, {})
    assert forecast(scene, "r") == (0, False)
    # Another reading while it sleeps changes nothing.
    scene.metrics(9, 8, asleep=True)
    scene.metrics(9, 8, asleep=False)
    scene.kv(CLEARED, stored(1))
    assert scene.copies() == gpu(1)
    assert scene.server.streams[0].coverage == "complete"


def test_a_reset_of_the_cache_clears_and_makes_a_partial_picture_whole() -> None:
    scene = watched()
    scene.apply(KvGap(SERVER, Rank(0), 1, 3, 0, scene.now))
    scene.kv(stored(5, tokens=(5,) * 4), seq=4)
    assert scene.server.streams[0].coverage == "partial"
    assert BlocksCleared("reset", 3) in scene.kv(CLEARED)
    assert forecast(scene, "r") == (0, False)
    scene.kv(stored(1, 2))
    assert forecast(scene, "again") == (8, False)


def test_a_dashboard_that_starts_late_knows_all_once_the_replay_came() -> None:
    old, new = watched(), Scene()
    old.kv(stored(3, parent=2, tokens=(8, 9, 10, 11)))
    new.kv(stored(1, 2), seq=0, replayed=True)
    new.kv(stored(3, parent=2, tokens=(8, 9, 10, 11)), seq=1, replayed=True)
    assert new.copies() == old.copies()
    stream = new.server.streams[0]
    assert (stream.coverage, stream.replayed) == ("complete", 2)
    assert forecast(new, "r") == forecast(old, "r") == (8, False)


def test_half_an_hour_of_silence_changes_nothing_but_the_age() -> None:
    scene = watched()
    last_ms = scene.server.streams[0].last_batch_ms
    before = scene.copies()
    for _ in range(1800):
        scene.now += 1
        scene.tick(scene.now)
    stream = scene.server.streams[0]
    assert (stream.state, stream.coverage, stream.last_batch_ms) == ("connected", "complete", last_ms)
    assert (stream.batches_per_s, stream.blocks_per_s) == (0.0, 0.0)
    assert scene.copies() == before
    assert scene.rate("last_minute", "counter") == (0, 0, None)
    assert forecast(scene, "r") == (8, False)
    scene.end("r", 9, cached=8)
    scene.kv(stored(3, parent=2, tokens=(8, 9, 10, 11)))
    assert len(scene.copies()) == 3


def test_a_scrape_that_answers_500_leaves_gaps_and_no_zero() -> None:
    scene = watched()
    points = len(scene.ledger.snapshot().metrics[SERVER])
    for _ in range(3):
        scene.now += 1
        events = scene.apply(MetricsFailed(SERVER, "HTTP 500", 500, scene.now))
        assert not any(isinstance(event, HitRateUpdated) for event in events)
    assert len(scene.ledger.snapshot().metrics[SERVER]) == points
    assert (scene.server.metrics_state, scene.server.state) == ("failed", "up")
    scene.kv(stored(3, parent=2, tokens=(8, 9, 10, 11)))
    assert len(scene.copies()) == 3
    scene.metrics(19, 18)
    assert scene.server.metrics_state == "ok"
    assert scene.copies() == gpu(1, 2, 3)
    assert scene.rate("since_mark", "counter") == (18, 19, 18 / 19)


def test_an_upgrade_to_the_other_wire_form_while_watching(form: WireForm, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = watched()
    assert scene.server.streams[0].wire_form == form
    other: WireForm = "array" if form == "map" else "map"
    monkeypatch.setattr(Scene, "wire_form", other)
    scene.apply(
        KvStreamState(SERVER, Rank(0), "disconnected", "tcp://h:5557", "Lost.", scene.now, fault="lost"),
        KvStreamState(SERVER, Rank(0), "connected", "tcp://h:5557", None, scene.now),
        KvRestarted(SERVER, Rank(0), scene.now),
    )
    scene.kv(stored(1), seq=0)
    assert (scene.server.streams[0].wire_form, scene.copies()) == (other, gpu(1))
    assert forecast(scene, "r") == (4, False)


def test_an_upgrade_to_hashes_of_bytes_leaves_no_block_of_the_old_form() -> None:
    scene = watched()
    scene.apply(KvRestarted(SERVER, Rank(0), scene.now))
    scene.kv(stored(bytes(range(32)), bytes(range(32, 64))), seq=0)
    assert {len(key[2]) for key in scene.copies()} == {64}
    assert forecast(scene, "r") == (8, False)


def test_an_upgrade_that_is_not_told_as_a_restart_is_known_by_its_block_size() -> None:
    scene = watched()
    events = scene.kv(stored(1, size=16, tokens=tuple(range(16))))
    assert BlocksCleared("restarted", 2) in events
    assert len(scene.copies()) == 1


def test_each_rank_restarts_for_itself() -> None:
    scene = watched()
    scene.kv(stored(5, 6), rank=1)
    scene.apply(KvRestarted(SERVER, Rank(1), scene.now))
    assert (len(scene.copies(0)), len(scene.copies(1))) == (2, 0)
