"""What the page may have done: the mark moved, the server's prefix cache emptied. And a list's place that is gone."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from .app_rig import Dashboard, Engine, chat_body, dashboard, eventually

RESET = "/api/server/reset_prefix_cache"


@pytest.fixture
async def board(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard({**engine.settings, "allow_cache_reset": "true"}) as running:
        await running.until_ready()
        yield running


@pytest.fixture
async def model(board: Dashboard) -> str:
    name = board.app.runtime.model_name()
    assert name
    return name


async def windows(board: Dashboard) -> dict[tuple[str, str], dict[str, Any]]:
    rates = (await board.json("/api/state"))["data"]["rates"].get(board.app.runtime.server, [])
    return {(reading["window"], reading["basis"]): reading for reading in rates}


async def test_a_mark_empties_one_window_of_every_reading_and_no_other(board: Dashboard, model: str) -> None:
    body = chat_body(model)
    await board.send(body)
    second = await board.send(body)

    async def counted() -> bool:
        reading = (await windows(board)).get(("since_mark", "counter"))
        return reading is not None and reading["hit_tokens"] >= second["cached_tokens"]

    await eventually(counted)
    before = await windows(board)
    marked_ms = (await board.http.post("/api/mark")).json()["marked_ms"]
    after = await windows(board)

    marked = [basis for window, basis in after if window == "since_mark"]
    assert sorted(marked) == ["counter", "inferred", "usage"]
    for basis in marked:
        reading = after["since_mark", basis]
        assert (reading["hit_tokens"], reading["query_tokens"], reading["ratio"]) == (0, 0, None)
        assert abs(reading["since_ms"] - marked_ms) < 1000
    for window in ("last_request", "last_1000_requests"):
        assert after[window, "usage"]["query_tokens"] == before[window, "usage"]["query_tokens"] > 0
    assert after["lifetime", "counter"]["query_tokens"] >= before["lifetime", "counter"]["query_tokens"] > 0

    third = await board.send(body)
    again = (await windows(board))["since_mark", "usage"]
    assert (again["hit_tokens"], again["query_tokens"]) == (third["cached_tokens"], third["prompt_tokens"])


async def test_the_page_has_the_cache_emptied_and_the_next_forecast_knows(board: Dashboard, model: str) -> None:
    body = chat_body(model)
    await board.send(body)
    warm = await board.send(body)
    assert warm["cached_tokens"] == warm["predicted_cached_tokens"] > 0

    answer = await board.http.post(RESET, headers=board.page_headers)

    assert (answer.status_code, answer.json()) == (200, {"reset": True, "message": None})
    cold = await board.send(body)
    assert cold["cached_tokens"] == cold["predicted_cached_tokens"] == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X-PrefixScope-Origin": "client"}, 403),
        ({"X-PrefixScope-Origin": "page", "Origin": "http://evil.example"}, 403),
        ({"X-PrefixScope-Origin": "page", "Origin": "null"}, 403),
        ({"X-PrefixScope-Origin": "page"}, 200),
    ],
)
async def test_only_the_page_may_have_it_emptied(board: Dashboard, headers: dict[str, str], status: int) -> None:
    answer = await board.http.post(RESET, headers=headers)

    assert answer.status_code == status
    if status == 403:
        assert answer.json()["error"]["code"] == "foreign_origin"
    assert (await board.http.get(RESET, headers=headers)).status_code == 405


async def test_another_server_than_those_watched_is_not_asked(board: Dashboard) -> None:
    answer = await board.http.post(f"{RESET}?server=http://nobody", headers=board.page_headers)

    assert answer.status_code == 404


async def test_it_is_off_unless_it_is_allowed(engine: Engine) -> None:
    async with dashboard(engine.settings) as board:
        await board.until_ready()
        answer = await board.http.post(RESET, headers=board.page_headers)

    assert answer.status_code == 403
    error = answer.json()["error"]
    assert error["code"] == "not_allowed"
    assert "--allow-cache-reset" in error["hint"]


async def test_a_place_in_the_list_that_is_gone_says_what_to_do(board: Dashboard) -> None:
    answer = await board.http.get("/api/requests?after=r-unknown")

    assert answer.status_code == 410
    error = answer.json()["error"]
    assert error["code"] == "gone"
    assert "without `after`" in error["hint"]


async def test_it_cannot_be_reached_through_the_proxy(board: Dashboard, engine: Engine) -> None:
    async with httpx.AsyncClient(base_url=engine.url, timeout=20, trust_env=False) as straight:
        assert (await straight.post("/reset_prefix_cache")).status_code == 200
    for path in ("/reset_prefix_cache", "/v1/reset_prefix_cache", "/v1/../reset_prefix_cache"):
        assert (await board.http.post(path, headers=board.page_headers)).status_code in (404, 405)
