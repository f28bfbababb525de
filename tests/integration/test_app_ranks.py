"""A server of two data-parallel ranks behind the dashboard: each is heard, and requests are told by their own rank."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from .app_rig import Dashboard, Engine, chat_body, dashboard, eventually, running_engine

RANKS = 2


def free_port_rows(count: int, length: int) -> list[int]:
    """First ports of `count` rows of `length` ports side by side, all free now."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            row = [stack.enter_context(socket.socket()) for _ in range(length)]
            row[0].bind(("127.0.0.1", 0))
            first = int(row[0].getsockname()[1])
            with contextlib.suppress(OSError, OverflowError):
                for number, each in enumerate(row[1:], 1):
                    each.bind(("127.0.0.1", first + number))
                found.append(first)
        return found


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    events, replay = free_port_rows(2, RANKS)
    flags = ("--profile", "instant", "--data-parallel-size", str(RANKS))
    places = ("--events-port", str(events), "--replay-port", str(replay))
    with running_engine(tmp_path_factory.mktemp("ranks") / "engine.log", *flags, *places) as engine:
        engine.events_port, engine.replay_port = events, replay
        yield engine


@pytest.fixture
async def board(ranked: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard(ranked.settings) as running:
        await running.until_ready()

        async def both_listened_to() -> bool:
            streams = (await server_of(running))["streams"]
            return [stream["state"] for stream in streams] == ["connected"] * RANKS

        await eventually(both_listened_to)
        yield running


async def server_of(board: Dashboard) -> dict[str, Any]:
    (record,) = (await board.json("/api/state"))["data"]["servers"]
    return dict(record)


async def send(board: Dashboard, body: dict[str, Any], rank: int | None) -> dict[str, Any]:
    """A chat, to a rank where one is named; its record once it says which rank served it."""
    headers = board.page_headers | ({} if rank is None else {"X-data-parallel-rank": str(rank)})
    response = await board.http.post("/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 200, response.text
    path = f"/api/requests/{response.headers['X-PrefixScope-Request']}"

    async def told() -> dict[str, Any] | None:
        record: dict[str, Any] = await board.json(path)
        final = record["outcome"] and record["block_table"] and record["verdict"]
        return record if final and record["rank"] is not None else None

    return await eventually(told)


async def test_each_request_is_forecast_and_told_by_the_rank_that_served_it(board: Dashboard) -> None:
    body = chat_body(board.app.runtime.model_name() or "")

    records = [await send(board, body, rank) for rank in (0, 1, 1, 0)]

    assert [record["rank"] for record in records] == [0, 1, 1, 0]
    most = records[0]["reusable_blocks"] * records[0]["block_size"]
    assert [record["cached_tokens"] for record in records] == [0, 0, most, most]
    assert [record["predicted_cached_tokens"] for record in records] == [0, 0, most, most]
    assert not any(record["predicted_is_lower_bound"] for record in records)
    assert [record["verdict"]["code"] for record in records] == ["first_seen", "other_rank", "full_hit", "full_hit"]
    assert records[1]["verdict"]["params"]["other_rank"] == 0


async def test_without_the_header_each_rank_is_told_too(board: Dashboard) -> None:
    body = chat_body(board.app.runtime.model_name() or "")

    records = [await send(board, body, None) for _ in range(4)]

    assert sorted(record["rank"] for record in records) == [0, 0, 1, 1]
    assert [record["cached_tokens"] == 0 for record in records] == [True, True, False, False]
    assert all(record["predicted_cached_tokens"] == record["cached_tokens"] for record in records)


async def test_both_ranks_are_heard_and_keep_blocks_of_their_own(board: Dashboard) -> None:
    body = chat_body(board.app.runtime.model_name() or "")
    served = [await send(board, body, rank) for rank in range(RANKS)]

    server = await server_of(board)
    columns = (await board.json("/api/blocks"))["blocks"]
    resident = {each["rank"]: set(each["hash"]) for each in columns}

    assert (server["ranks_expected"], server["ranks_heard"]) == (RANKS, RANKS)
    assert [stream["rank"] for stream in server["streams"]] == list(range(RANKS))
    assert [stream["coverage"] for stream in server["streams"]] == ["complete"] * RANKS
    for record in served:
        full = {text for text in record["block_table"]["hash"] if text is not None}
        assert full and full <= resident[record["rank"]]
    assert server["forecasts"]["wrong_in_a_row"] == 0


async def test_a_prompt_that_is_typed_is_forecast_for_each_rank(board: Dashboard) -> None:
    body = chat_body(board.app.runtime.model_name() or "")
    record = await send(board, body, 1)

    answer = await board.http.post("/api/forecast", json=body, headers=board.page_headers)

    most = record["reusable_blocks"] * record["block_size"]
    assert {rank["rank"]: rank["cached_tokens"] for rank in answer.json()["ranks"]} == {0: 0, 1: most}
    assert answer.json()["cached_tokens"] == most


async def test_the_doctor_of_the_page_sees_both(board: Dashboard) -> None:
    findings = (await board.json("/api/doctor"))["servers"][0]["findings"]

    (ranks,) = [finding for finding in findings if finding["code"] == "kv_ranks"]
    assert (ranks["status"], ranks["params"]) == ("on", {"heard": RANKS, "expected": RANKS})
