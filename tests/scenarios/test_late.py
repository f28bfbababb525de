"""What a forecast needs may come after the request's end: it is made then, as of the send, and counts all the same."""

import pytest

from app.events import RequestJoined
from app.ids import RequestId
from tests.scenarios.tables import SERVER, Scene, removed, stored

PROMPT = tuple(range(9))


def test_the_rank_that_served_it_becomes_known_after_the_end() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.kv(stored(9, tokens=(9,) * 4), rank=1)
    scene.send("r", PROMPT, session="s-1")
    before = scene.end("r", 9, cached=0)
    assert (before.rank, before.predicted_cached_tokens) == (None, None)
    assert scene.rate("since_mark", "inferred") is None

    events = scene.kv(stored(1, 2, session="s-1"), rank=1)

    record = scene.record("r")
    assert (record.rank, record.predicted_cached_tokens, record.predicted_is_lower_bound) == (1, 0, False)
    assert scene.code("r") == "other_rank"
    assert [event.record for event in events if isinstance(event, RequestJoined)][-1] == record
    assert scene.rate("last_request", "inferred") == (0, 9, 0.0)
    assert scene.server.forecasts is not None
    assert (scene.server.forecasts.scored, scene.server.forecasts.right) == (1, 1)


def test_the_tokens_become_known_after_the_end_and_the_forecast_is_as_of_the_send() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r")
    scene.end("r", 9, cached=8)
    scene.kv(removed(1, 2))

    scene.tell("r", PROMPT)

    assert scene.record("r").predicted_cached_tokens == 8
    assert scene.rate("last_request", "inferred") == (8, 9, 8 / 9)


def test_it_counts_once() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("r")
    scene.end("r", 9, cached=8)
    scene.tell("r", PROMPT)
    scene.tell("r", PROMPT)
    scene.kv(stored(3, parent=2, tokens=(9, 10, 11, 12)))

    assert scene.rate("last_1000_requests", "inferred") == (8, 9, 8 / 9)


@pytest.mark.parametrize("marked", [False, True])
def test_it_counts_since_the_mark_only_where_the_request_ended_since(marked: bool) -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.metrics(0, 0)
    scene.send("r")
    scene.end("r", 9, cached=8)
    if marked:
        scene.now += 1
        scene.ledger.mark(SERVER, scene.now)

    scene.tell("r", PROMPT)

    expected = (0, 0, None) if marked else (8, 9, 8 / 9)
    assert scene.rate("since_mark", "inferred") == expected
    assert scene.rate("last_1000_requests", "inferred") == (8, 9, 8 / 9)


def test_the_last_request_stays_the_last_that_ended() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.send("early")
    scene.end("early", 9, cached=8)
    scene.send("late", tuple(range(100, 109)))
    scene.end("late", 9, cached=0)

    scene.tell("early", PROMPT)

    assert scene.rate("last_request", "inferred") == (0, 9, 0.0)
    assert scene.rate("last_1000_requests", "inferred") == (8, 18, 8 / 18)
    assert scene.ledger.request(RequestId("early")) is not None
