"""What a server does with blocks that match, as its requests show it; and what sharing saves."""

from app.events import ServerChanged, ServerRecord
from tests.scenarios.tables import SERVER, Scene, removed, stored

PROMPT = tuple(range(17))


def record(scene: Scene) -> ServerRecord:
    found = scene.ledger.server(SERVER)
    assert found is not None
    return found


def ask(scene: Scene, name: str, cached: int) -> int | None:
    """Sends the prompt, whose four blocks are resident; returns the forecast."""
    scene.send(name, PROMPT)
    return scene.end(name, 17, cached).predicted_cached_tokens


def test_a_server_that_drops_the_last_block_is_forecast_so_after_two_requests() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, 3, 4))
    assert [ask(scene, f"r-{number}", 12) for number in range(4)] == [16, 16, 12, 12]
    found = record(scene).forecasts
    assert found is not None
    assert (found.scored, found.right, found.dropped_blocks, found.message) == (4, 2, 1, None)


def test_three_wrong_forecasts_in_a_row_are_told_at_once() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, 3, 4))
    for number, cached in enumerate((12, 0, 4)):
        ask(scene, f"r-{number}", cached)
    told = [outgoing.event.server for outgoing in scene.out if isinstance(outgoing.event, ServerChanged)]
    assert told[-1].forecasts is not None
    assert told[-1].forecasts.message is not None
    assert "The last 3 forecasts were wrong" in told[-1].forecasts.message


def test_a_partial_history_is_no_forecast_to_be_scored() -> None:
    scene = Scene()
    scene.kv(stored(1, 2, 3, 4), seq=5)
    ask(scene, "r", 12)
    assert record(scene).forecasts is None


def test_blocks_not_stored_twice() -> None:
    scene = Scene()
    assert scene.ledger.server(SERVER) is None
    scene.kv(stored(*range(1, 94), size=4))
    assert record(scene).shared_blocks == 0
    shared = tuple(range(93 * 4))
    for number in range(3):
        scene.send(f"r-{number}", (*shared, 900 + number))
    assert record(scene).shared_blocks == 186
    scene.kv(removed(93))
    assert record(scene).shared_blocks == 184
    scene.kv(stored(93, parent=92, tokens=shared[-4:]))
    assert record(scene).shared_blocks == 186


def test_without_events_it_is_not_known_what_sharing_saves() -> None:
    scene = Scene()
    scene.send("r", PROMPT)
    assert record(scene).shared_blocks is None
