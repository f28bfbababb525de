"""What goes out, when, and how often."""

import pytest

from app.events import (
    HitRateUpdated,
    MetricsSampledEvent,
    RequestFinished,
    RequestFirstTokenEvent,
    RequestJoined,
    RequestStartedEvent,
    ScenarioAdvanced,
    ScenarioState,
    ServerChanged,
)
from app.ids import Rank, RequestId
from app.model.ledger import LedgerLimits
from app.observations import (
    Malformed,
    MetricsFailed,
    Outcome,
    RequestEnded,
    RequestEngineTimes,
    RequestFirstToken,
    RequestHead,
    RequestOutputTokens,
    RequestStarted,
    RequestUsage,
    ScenarioStepped,
    ServerProbed,
)
from tests.scenarios.tables import SERVER, Scene, removed, stored

PROMPT = tuple(range(9))


def test_the_events_of_one_request_in_order() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.out.clear()
    scene.send("r", PROMPT)
    scene.answer("r")
    scene.end("r", 9, cached=8)
    kinds = [type(outgoing.event).__name__ for outgoing in scene.out]
    assert kinds == [
        "RequestStartedEvent",
        "RequestJoined",
        "RequestFirstTokenEvent",
        "RequestJoined",
        "ServerChanged",
        "BlocksReused",
        "RequestFinished",
        "HitRateUpdated",
    ]
    finished = next(outgoing.event for outgoing in scene.out if isinstance(outgoing.event, RequestFinished))
    assert finished.record == scene.record("r")
    assert finished.record.predicted_cached_tokens == 8


def test_the_first_answer_token_comes_after_reasoning() -> None:
    scene = Scene()
    scene.send("r", PROMPT)
    request = RequestId("r")
    start = scene.now
    scene.apply(RequestHead(request, 200, start + 0.1), RequestFirstToken(request, start + 0.4, answer=False))
    assert not scene.apply(RequestFirstToken(request, start + 9.0))
    record = scene.record("r")
    assert record.ttft_ms is not None
    assert record.answer_ttft_ms is not None
    assert (round(record.ttft_ms), round(record.answer_ttft_ms)) == (400, 9000)


def test_illegal_steps_are_counted_and_left_out() -> None:
    scene = Scene()
    request = RequestId("r")
    scene.apply(RequestHead(request, 200, 1.0))
    scene.send("r", PROMPT)
    scene.apply(RequestFirstToken(request, scene.now))
    scene.end("r", 9, cached=0)
    scene.apply(RequestEnded(request, "ok", scene.now), RequestHead(request, 200, scene.now))
    assert scene.ledger.illegal_steps == 4
    assert scene.record("r").outcome == "ok"


def test_engine_times_are_the_servers_own() -> None:
    scene = Scene()
    scene.apply(ServerProbed(SERVER, "up", None, 1.0, embedded=True, profile="p"))
    scene.send("r", PROMPT)
    scene.apply(RequestEngineTimes(RequestId("r"), scene.now, ttft_ms=33.0, queue_ms=0.5))
    record = scene.record("r")
    assert (record.engine_ttft_ms, record.queue_ms) == (33.0, 0.5)
    assert record.basis["queue_ms"] == "modelled"


def test_generated_tokens_fill_blocks_too() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT)
    scene.answer("r")
    request = RequestId("r")
    scene.now += 1
    scene.apply(RequestOutputTokens(request, (50, 51), scene.now))
    scene.kv(stored(3, parent=2, tokens=(8, 50, 51, 52)))
    scene.now += 1
    scene.apply(RequestOutputTokens(request, (52, 53), scene.now, start=2))
    assert scene.states("r") == "rrd"
    record = scene.end("r", 9, cached=8, completion=4)
    assert scene.states("r") == "rrd"
    assert record.reused_blocks == 2
    summary = scene.ledger.request(request)
    assert summary is not None
    assert summary.block_table is not None
    assert summary.block_table.hash[2] == f"{3:016x}"
    detail = scene.ledger.request_block(request, 2)
    assert detail is not None
    assert detail.token_ids == (8, 50, 51, 52)


def test_growth_while_decoding_is_held_back() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT, session="s")
    scene.answer("r")
    joined = 0
    parent = 2
    for block in range(3, 33):
        token = 100 + block
        joined += sum(
            isinstance(event, RequestJoined)
            for event in scene.kv(stored(block, parent=parent, tokens=(token,) * 4, session="s"))
        )
        parent = block
    assert joined <= 2


def test_a_server_changes_only_when_it_does() -> None:
    scene = Scene()
    probe = ServerProbed(SERVER, "up", None, 1.0, version="0.32.0", models=("m",))
    assert [type(event) for event in scene.apply(probe)] == [ServerChanged]
    assert scene.apply(probe) == []
    scene.metrics(10, 5)
    assert not any(isinstance(event, ServerChanged) for event in scene.metrics(20, 10))
    scene.kv(stored(1))
    assert not any(isinstance(event, ServerChanged) for event in scene.kv(stored(5, tokens=(5,) * 4)))
    assert [type(event) for event in scene.tick(scene.now)] == [ServerChanged]
    assert scene.tick(scene.now) == []


def test_failed_metrics_keep_the_last_values() -> None:
    scene = Scene()
    scene.metrics(10, 5, block_size=4)
    scene.apply(MetricsFailed(SERVER, "HTTP 500", 500, scene.now))
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert (record.metrics_state, record.metrics_message, record.block_size) == ("failed", "HTTP 500", 4)
    scene.metrics(10, 5)
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert (record.metrics_state, record.metrics_message) == ("ok", None)


def test_metrics_go_out_pooled_and_by_engine() -> None:
    scene = Scene()
    (event,) = [event for event in scene.metrics(10, 5, running=2) if isinstance(event, MetricsSampledEvent)]
    assert (event.point.query_tokens, event.engines["0"].running) == (10, 2)
    assert event.point.generation_tokens is None


def test_bytes_that_could_not_be_read_are_counted_where_they_came_from() -> None:
    scene = Scene()
    scene.apply(
        Malformed(SERVER, "kv", "?", 1.0, rank=Rank(0)),
        Malformed(SERVER, "sse", "?", 1.0),
        Malformed(SERVER, "metrics", "?", 1.0),
    )
    record = scene.ledger.server(SERVER)
    assert record is not None
    assert (record.streams[0].malformed, record.malformed_sse, record.malformed_metrics) == (1, 1, 1)


def test_rates_go_out_when_they_move_with_time() -> None:
    scene = Scene()
    scene.metrics(0, 0)
    scene.metrics(100, 50)
    assert not any(isinstance(event, HitRateUpdated) for event in scene.tick(scene.now))
    assert any(isinstance(event, HitRateUpdated) for event in scene.tick(scene.now + 61))


def test_the_mark_moves_the_window() -> None:
    scene = Scene()
    scene.metrics(0, 0)
    scene.metrics(100, 50)
    scene.ledger.mark(SERVER, scene.now)
    scene.tick(scene.now)
    (marked,) = [
        reading
        for reading in scene.ledger.snapshot().rates[SERVER]
        if (reading.window, reading.basis) == ("since_mark", "counter")
    ]
    assert (marked.hit_tokens, marked.query_tokens, marked.ratio) == (0, 0, None)


def test_the_scenario_goes_out_and_into_the_snapshot() -> None:
    scene = Scene()
    state = ScenarioState(1, 4, "Send.", True)
    assert scene.apply(ScenarioStepped(1, 4, "Send.", True, 1.0)) == [ScenarioAdvanced(state)]
    assert scene.ledger.snapshot().scenario == state


def test_a_snapshot_has_the_newest_requests_first() -> None:
    scene = Scene(LedgerLimits(max_requests=3, max_snapshot_requests=2))
    scene.kv(stored(1, 2))
    for number in range(5):
        scene.send(f"r-{number}", PROMPT)
        scene.end(f"r-{number}", 9, cached=8)
    snapshot = scene.ledger.snapshot()
    assert [summary.record.id for summary in snapshot.requests] == ["r-4", "r-3"]
    assert snapshot.blocks[0].requests == (3, 3)
    assert snapshot.blocks[0].reuses == (5, 5)
    assert snapshot.blocks[0].parent_row == (None, 0)
    found, after = scene.ledger.requests(2, None)
    assert [summary.record.id for summary in found] == ["r-4", "r-3"]
    assert after == "r-3"
    assert scene.ledger.request(RequestId("r-0")) is None


def test_blocks_that_are_gone_count_reuses_anew() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT)
    scene.end("r", 9, cached=8)
    scene.kv(removed(2))
    scene.kv(stored(2, parent=1, tokens=(4, 5, 6, 7)))
    columns = scene.ledger.block_columns()[0]
    assert dict(zip(columns.hash, columns.reuses, strict=True)) == {f"{1:016x}": 1, f"{2:016x}": 0}


def test_tokens_that_come_after_the_end_still_make_a_table_and_a_verdict() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r")
    scene.end("r", 9, cached=8)
    (joined,) = [event for event in scene.tell("r", PROMPT) if isinstance(event, RequestJoined)]
    assert joined.block_table.hash == (f"{1:016x}", f"{2:016x}", None)
    assert joined.record.predicted_cached_tokens == 8


def test_a_usage_in_every_frame_costs_one_event_at_most() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r", PROMPT)
    scene.answer("r")
    events = []
    for completion in range(1, 4):
        events += scene.apply(RequestUsage(RequestId("r"), 9, completion, 8, scene.now))
    assert len([event for event in events if isinstance(event, RequestJoined)]) <= 1


def test_started_events_carry_the_label_and_no_figures() -> None:
    scene = Scene()
    (event,) = [event for event in scene.send("r") if isinstance(event, RequestStartedEvent)]
    assert (event.record.prompt_tokens, event.record.verdict, event.record.outcome) == (None, None, None)
    scene.answer("r")
    assert any(isinstance(outgoing.event, RequestFirstTokenEvent) for outgoing in scene.out)


@pytest.mark.parametrize(("outcome", "status"), [("http_error", 400), ("http_error", None), ("stream_error", 200)])
def test_an_errors_text_may_repeat_the_prompt_and_is_told_only_where_that_may_be(
    outcome: Outcome, status: int | None
) -> None:
    said = "The prompt 'my secret' is too long."
    for show_text in (False, True):
        scene = Scene()
        request = RequestId("r")
        scene.apply(
            RequestStarted(SERVER, request, "/v1/completions", "client", 1.0, streamed=True, show_text=show_text),
            RequestEnded(request, outcome, 2.0, status, said),
        )
        record = scene.record("r")
        told = "".join(repr(outgoing.event) for outgoing in scene.out) + repr(scene.ledger.snapshot())
        assert ("my secret" in told) == show_text
        if show_text:
            assert record.error == said
        elif status == 400:
            assert record.error == "HTTP 400: the server refused the request"
        assert record.error
        assert record.verdict is not None
        assert record.verdict.detail == (said if show_text else None)


def test_what_the_dashboard_itself_says_of_a_failure_is_told() -> None:
    scene = Scene()
    request = RequestId("r")
    scene.apply(
        RequestStarted(SERVER, request, "/v1/completions", "client", 1.0),
        RequestEnded(request, "server_gone", 2.0, None, "Connection refused"),
    )
    assert scene.record("r").error == "Connection refused"


def test_hit_rates_of_many_requests_go_out_ten_times_a_second_and_the_last_with_the_tick() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    heard = 0
    for number in range(50):
        scene.now -= 0.09  # Of the tenth of a second between two sends.
        scene.send(str(number), PROMPT)
        scene.answer(str(number), 0.001)
        scene.out.clear()
        scene.end(str(number), 9, cached=8)
        heard += sum(isinstance(outgoing.event, HitRateUpdated) for outgoing in scene.out)
    assert 2 <= heard <= 10
    last = [event for event in scene.tick(scene.now) if isinstance(event, HitRateUpdated)]
    assert {reading.requests for reading in last[-1].rates if reading.window == "since_mark"} == {50}


def test_what_a_router_reports_is_marked_as_its_own() -> None:
    scene = Scene()
    scene.apply(ServerProbed(SERVER, "up", None, 1.0, version="0.1.8"))
    scene.metrics(0, 0)
    scene.send("r", PROMPT)
    scene.answer("r")
    record = scene.end("r", 9, cached=8)
    assert record.reported_by_router
    assert record.verdict is not None and "As a router" in (record.verdict.detail or "")
    scene.metrics(0, 0, block_size=4, num_gpu_blocks=100)
    assert not scene.record("r").reported_by_router


def test_the_record_says_when_the_server_was_left() -> None:
    scene = Scene()
    scene.send("r", PROMPT)
    sent_s = scene.now
    scene.answer("r")
    scene.apply(RequestEnded(RequestId("r"), "client_gone", sent_s + 2.5))
    record = scene.record("r")
    assert record.server_closed_ms == record.at_ms + 2500
    assert record.verdict is not None and "closed 2500 ms after" in (record.verdict.detail or "")
    scene.send("s", PROMPT)
    scene.answer("s")
    assert scene.end("s", 9, cached=None).server_closed_ms is None
