"""Faults that mirrors of a KV cache have in the field, as observations and what must follow."""

import pytest

from app.events import BlocksCleared, BlocksRemoved, BlocksReused, BlocksStored, StreamGapped, StreamResynced
from app.ids import Rank
from app.observations import KvGap, KvRestarted, KvStreamState, MetricsFailed, Observation, ServerProbed
from tests.scenarios.tables import CLEARED, SERVER, Scene, removed, stored
from tests.scenarios.wire import FORMS

PROMPT = tuple(range(9))


@pytest.fixture(autouse=True, params=FORMS)
def wire_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each scene is played in both forms of the wire."""
    monkeypatch.setattr(Scene, "wire_form", request.param)


def text(block_hash: int) -> str:
    return f"{block_hash:016x}"


def gpu(*hashes: int) -> dict[tuple[int, str, str], int]:
    return {(0, "GPU", text(block_hash)): 1 for block_hash in hashes}


def test_a_removal_with_copies_left_keeps_the_block_and_a_hit_is_still_forecast() -> None:
    scene = Scene()
    scene.kv(stored(1), stored(1))
    assert scene.copies() == {(0, "GPU", text(1)): 2}
    scene.kv(removed(1))
    scene.send("r", (0, 1, 2, 3, 4))
    assert scene.record("r").predicted_cached_tokens == 4
    scene.kv(removed(1))
    scene.kv(removed(1))
    assert scene.copies() == {}


def test_a_ghost_left_by_a_report_goes_when_usage_contradicts_it() -> None:
    scene = Scene()
    scene.kv(stored(1), stored(1), removed(1))
    scene.send("r", (0, 1, 2, 3, 4))
    record = scene.end("r", 5, cached=0)
    assert (record.predicted_cached_tokens, record.cached_tokens) == (4, 0)
    assert scene.copies() == {}
    assert any(isinstance(o.event, BlocksRemoved) and o.basis == "inferred" for o in scene.out)


def test_a_hit_confirms_an_uncertain_block() -> None:
    scene = Scene()
    scene.kv(stored(1), stored(1), removed(1))
    scene.send("r", (0, 1, 2, 3, 4))
    scene.end("r", 5, cached=4)
    assert scene.copies() == gpu(1)
    scene.send("again", (0, 1, 2, 3, 4))
    scene.end("again", 5, cached=0)
    assert scene.copies() == gpu(1), "a block that is certain isn't dropped by one miss"


def test_a_report_of_one_block_is_told_from_a_copy_by_the_prompts_length() -> None:
    scene = Scene()
    scene.kv(stored(1))
    scene.send("longer", (0, 1, 2, 3, 4), session="s-1")
    scene.kv(stored(1, session="s-1"))
    scene.end("longer", 5, cached=4)
    assert scene.copies() == gpu(1)
    scene.send("exact", (0, 1, 2, 3), session="s-2")
    scene.kv(stored(1, session="s-2"))
    scene.end("exact", 4, cached=0)
    assert scene.copies() == {(0, "GPU", text(1)): 2}


def test_usage_decides_what_a_store_of_one_block_was_where_the_length_came_late() -> None:
    scene = Scene()
    scene.kv(stored(1))
    scene.send("r", session="s-1")
    scene.kv(stored(1, session="s-1"))
    assert scene.copies() == {(0, "GPU", text(1)): 2}
    scene.end("r", 5, cached=4)
    assert scene.copies() == gpu(1)


def test_usage_decides_what_a_store_of_many_blocks_was() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", session="s-1")
    scene.kv(stored(1, 2, session="s-1"))
    assert scene.copies() == gpu(1, 2)
    scene.end("r", 9, cached=0)
    assert set(scene.copies().values()) == {2}


def test_a_skipped_lookup_stores_copies() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT, skips=True)
    scene.kv(stored(1, 2))
    record = scene.end("r", 9, cached=0)
    assert set(scene.copies().values()) == {2}
    assert (record.predicted_cached_tokens, scene.code("r")) == (0, "lookup_skipped")


def test_a_report_repeated_after_preemption_counts_once() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT, session="s-1")
    first = scene.kv(stored(1, 2, session="s-1"))
    again = scene.kv(stored(1, 2, session="s-1"))
    assert [type(event) for event in first if isinstance(event, BlocksReused)] == [BlocksReused]
    assert not [event for event in again if isinstance(event, BlocksReused)]
    assert scene.ledger.block_columns()[0].reuses == (1, 1)
    record = scene.end("r")
    assert (record.cached_tokens, record.basis["cached_tokens"]) == (8, "engine")


def test_orphans_are_kept_and_attached() -> None:
    scene = Scene()
    scene.kv(stored(3, parent=1, tokens=(4, 5, 6, 7)), stored(4, parent=3, tokens=(8, 9, 10, 11)))
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].orphans == 2
    assert scene.ledger.block_columns()[0].depth == (None, None)
    scene.kv(stored(1))
    columns = scene.ledger.block_columns()[0]
    assert dict(zip(columns.hash, columns.depth, strict=True)) == {text(1): 0, text(3): 1, text(4): 2}
    scene.send("r", tuple(range(13)))
    assert scene.record("r").predicted_cached_tokens == 12


def test_a_store_with_more_tokens_than_its_hashes_cover_is_kept_and_never_walked() -> None:
    scene = Scene()
    events = scene.kv(stored(1, tokens=PROMPT, size=4, kind="mamba", group=1), stored(2))
    assert [event.tokens for event in events if isinstance(event, BlocksStored)] == [None, 4]
    assert scene.copies() == {(1, "GPU", text(1)): 1, (0, "GPU", text(2)): 1}


def test_other_groups_and_tiers_are_never_forecast() -> None:
    scene = Scene()
    scene.kv(stored(1, kind="sliding_window", group=1), stored(1, medium="CPU"), stored(9, tokens=(9, 9, 9, 9)))
    scene.send("r", PROMPT)
    assert scene.record("r").predicted_cached_tokens == 0
    scene.kv(stored(1))
    scene.kv(removed(1, group=1))
    assert scene.copies() == {(0, "GPU", text(1)): 1, (0, "CPU", text(1)): 1, (0, "GPU", text(9)): 1}
    scene.kv(removed(1))
    assert (0, "CPU", text(1)) in scene.copies()


def test_a_cpu_event_without_tokens_or_size_is_taken_in() -> None:
    scene = Scene()
    scene.kv(stored(1), stored(1, tokens=(), size=0, medium="CPU"))
    assert scene.copies() == {(0, "GPU", text(1)): 1, (0, "CPU", text(1)): 1}


def test_a_request_never_hits_its_own_stores() -> None:
    scene = Scene()
    scene.kv(stored(9, tokens=(9, 9, 9, 9)))
    scene.send("r")
    scene.kv(stored(1, 2))
    scene.tell("r", PROMPT)
    record = scene.end("r", 9, cached=0)
    assert record.predicted_cached_tokens == 0
    assert scene.states("r") == "ccp"


def test_stores_of_a_request_that_ended_before_count_although_they_arrive_late() -> None:
    scene = Scene()
    scene.kv(stored(9, tokens=(9, 9, 9, 9)))
    scene.send("first", PROMPT)
    scene.end("first", 9, cached=0)
    scene.send("second", PROMPT)
    scene.kv(stored(1, 2))
    record = scene.end("second", 9, cached=8)
    assert record.predicted_cached_tokens == 8
    assert scene.states("first") == "ccp"
    assert scene.states("second") == "rrp"


def test_late_evictions_count_with_the_store_that_caused_them() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("first", (50,) * 9)
    scene.end("first", 9, cached=0)
    scene.send("second", PROMPT)
    scene.kv(removed(2), stored(51, 52, tokens=(50,) * 8))
    record = scene.end("second", 9, cached=4)
    assert record.predicted_cached_tokens == 4


def test_stores_of_a_request_that_runs_at_the_same_time_do_not_count() -> None:
    scene = Scene()
    scene.kv(stored(9, tokens=(9, 9, 9, 9)))
    scene.send("first", PROMPT)
    scene.send("second", PROMPT)
    scene.kv(stored(1, 2))
    scene.end("first", 9, cached=0)
    record = scene.end("second", 9, cached=8)
    assert record.predicted_cached_tokens == 0
    assert record.cached_tokens == 8


def test_a_clear_that_is_announced_after_the_send_happened_before_it() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT)
    events = scene.kv(CLEARED, stored(1, 2))
    assert [event for event in events if isinstance(event, BlocksCleared)] == [BlocksCleared("reset", 2)]
    record = scene.end("r", 9, cached=0)
    assert (record.predicted_cached_tokens, scene.code("r")) == (0, "reset")


def test_forecasts_as_of_the_past_outlive_eviction() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r")
    scene.kv(stored(5, tokens=(5,) * 4), removed(2), removed(1))
    scene.tell("r", PROMPT)
    assert scene.record("r").predicted_cached_tokens == 8


def test_a_restart_leaves_no_ghost() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    events = scene.apply(KvRestarted(SERVER, Rank(0), scene.now))
    assert BlocksCleared("restarted", 2) in events
    assert scene.copies() == {}
    scene.kv(stored(7), seq=0)
    assert scene.copies() == gpu(7)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert (record.streams[0].coverage, record.streams[0].restarts) == ("complete", 1)


@pytest.mark.parametrize(
    "away",
    [
        MetricsFailed(SERVER, "refused", None, 3.0),
        ServerProbed(SERVER, "down", "refused", 3.0),
        KvStreamState(SERVER, Rank(0), "disconnected", None, "lost", 3.0),
    ],
    ids=lambda away: type(away).__name__,
)
def test_a_restart_that_the_counters_tell_first_leaves_no_ghost(away: Observation) -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.metrics(1000, 500)
    scene.apply(away)
    events = scene.metrics(20, 0)
    assert BlocksCleared("restarted", 2) in events
    assert scene.copies() == {}


def test_counters_that_fall_while_nothing_was_away_clear_nothing() -> None:
    scene = Scene()
    scene.kv(stored(1))
    for query in (9, 1, 2, 3, 4, 1):
        scene.metrics(query, 0)
    assert scene.copies() == gpu(1)


def test_a_restart_is_told_once() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.metrics(1000, 500)
    scene.apply(KvRestarted(SERVER, Rank(0), scene.now))
    scene.kv(stored(7), seq=0)
    scene.metrics(20, 0)
    scene.metrics(20, 0)
    assert scene.copies() == gpu(7)


@pytest.mark.parametrize("queries", [(1000, 400, 1100, 450, 1200), (1000, 10, 500, 1000, 10, 500)])
def test_exporters_that_alternate_clear_nothing(queries: tuple[int, ...]) -> None:
    scene = Scene()
    scene.kv(stored(1))
    for query in queries:
        scene.metrics(query, 0)
    assert scene.copies() == gpu(1)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.metrics_message is not None
    assert "several API-server processes" in record.metrics_message


def test_a_loss_makes_the_picture_partial_until_a_clear() -> None:
    scene = Scene()
    scene.kv(stored(1))
    assert StreamGapped(1, 4, 0) in scene.apply(KvGap(SERVER, Rank(0), 1, 4, 0, scene.now))
    scene.kv(stored(5, tokens=(5,) * 4), seq=5)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].coverage == "partial"
    scene.kv(CLEARED)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].coverage == "complete"


def test_a_gap_that_replay_closes_resyncs() -> None:
    scene = Scene()
    scene.kv(stored(1))
    scene.apply(KvGap(SERVER, Rank(0), 1, 2, 2, scene.now))
    assert not any(isinstance(e, StreamResynced) for e in scene.kv(stored(5, tokens=(5,) * 4), replayed=True))
    assert StreamResynced(2) in scene.kv(stored(6, tokens=(6,) * 4), replayed=True)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert (record.streams[0].coverage, record.streams[0].lost) == ("complete", 0)


def test_history_replayed_after_the_send_counts_as_before_it() -> None:
    scene = Scene()
    scene.send("r", PROMPT)
    scene.apply(KvGap(SERVER, Rank(0), 0, 0, 1, scene.now))
    scene.kv(stored(1, 2), seq=0, replayed=True)
    scene.kv(stored(7, tokens=(7,) * 4), seq=1)
    record = scene.end("r", 9, cached=8)
    assert record.predicted_cached_tokens == 8


@pytest.mark.parametrize("unknown", ["session-x", None])
def test_blocks_of_clients_that_do_not_use_the_proxy_are_nobodys(unknown: str | None) -> None:
    scene = Scene()
    (event,) = [event for event in scene.kv(stored(1, session=unknown)) if isinstance(event, BlocksStored)]
    assert event.request is None


def test_ranks_are_apart_and_a_session_tells_which_one_served() -> None:
    scene = Scene()
    scene.kv(stored(1, 2), rank=0)
    scene.kv(stored(9, tokens=(9,) * 4), rank=1)
    scene.send("r", PROMPT, session="s-1")
    assert scene.record("r").predicted_cached_tokens is None
    scene.kv(stored(1, 2, session="s-1"), rank=1)
    record = scene.end("r", 9, cached=0)
    assert (record.rank, record.predicted_cached_tokens) == (1, 0)
    assert len(scene.copies(0)) == 2
    assert len(scene.copies(1)) == 3
    assert [columns.requests for columns in scene.ledger.block_columns()] == [(0, 0), (0, 1, 1)]


def test_a_rank_that_speaks_late_may_be_the_one_that_served() -> None:
    scene = Scene()
    scene.kv(stored(1, 2), rank=0)
    scene.send("r", PROMPT, session="s-1")
    scene.kv(stored(1, 2, session="s-1"), rank=1)
    record = scene.end("r", 9, cached=0)
    assert (record.rank, record.predicted_cached_tokens) == (1, 0)


def test_a_silent_stream_gets_its_diagnosis() -> None:
    scene = Scene()
    scene.apply(KvStreamState(SERVER, Rank(0), "connected", "tcp://127.0.0.1:5557", None, scene.now))
    scene.metrics(0, 0, block_size=4)
    scene.send("r", PROMPT)
    scene.end("r", 9, cached=0)
    scene.tick(scene.now + 1)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].state == "connected"
    scene.tick(scene.now + 6)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].state == "silent"
    assert "--kv-events-config" in str(record.streams[0].message)
    scene.kv(stored(1))
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].state == "connected"


def test_full_hits_are_no_silence() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT)
    scene.end("r", 9, cached=8)
    scene.tick(scene.now + 60)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].state == "connected"


def test_blocks_above_the_bound_make_the_picture_partial() -> None:
    from app.model.ledger import LedgerLimits

    scene = Scene(LedgerLimits(max_blocks=2))
    scene.kv(stored(1, 2))
    scene.kv(stored(5, tokens=(5,) * 4))
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert record.streams[0].coverage == "partial"
    assert scene.copies() == gpu(1, 2)
