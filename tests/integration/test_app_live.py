"""The live stream over a real websocket."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from app.events import Outgoing, ScenarioAdvanced, ScenarioState

from .app_rig import Dashboard, Engine, chat_body, dashboard, eventually, messages_until


@pytest.fixture
async def board(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard(engine.settings) as running:
        await running.until_ready()
        yield running


async def send_one(board: Dashboard) -> dict[str, Any]:
    model = board.app.runtime.model_name()
    assert model
    return await board.send(chat_body(model))


def assert_strictly_increasing(messages: list[dict[str, Any]]) -> None:
    numbers = [message["seq"] for message in messages]
    assert all(before < after for before, after in itertools.pairwise(numbers)), numbers


async def test_hello_snapshot_and_the_events_of_a_request(board: Dashboard) -> None:
    async with board.live() as live:
        messages = await messages_until(live, "snapshot")
        record = await send_one(board)
        messages += await messages_until(live, "request.finished")

    types = [message["type"] for message in messages]
    assert types[:2] == ["hello", "snapshot"]
    assert_strictly_increasing(messages)
    assert {message["v"] for message in messages} == {1}
    order = [types.index(name) for name in ("request.started", "request.first_token", "request.finished")]
    assert order == sorted(order)
    assert "blocks.stored" in types
    assert messages[-1]["data"]["record"]["id"] == record["id"]


async def test_a_client_that_comes_back_gets_what_it_missed(board: Dashboard) -> None:
    async with board.live() as live:
        hello, snapshot = await messages_until(live, "snapshot")
    await send_one(board)

    instance = hello["data"]["instance"]
    async with board.live(f"?after={snapshot['seq']}&instance={instance}") as live:
        messages = await messages_until(live, "request.finished")

    assert [message["type"] for message in messages].count("snapshot") == 0
    assert messages[0]["type"] == "hello"
    assert messages[1]["seq"] == snapshot["seq"] + 1
    assert [message["seq"] for message in messages[1:]] == list(range(snapshot["seq"] + 1, messages[-1]["seq"] + 1))


@pytest.mark.parametrize("query", ["?after=1&instance=another", "?after=x&instance=y", "?after=-4", "?after=1e9"])
async def test_a_position_that_means_nothing_gives_a_snapshot(board: Dashboard, query: str) -> None:
    async with board.live(query) as live:
        messages = await messages_until(live, "snapshot")

    assert [message["type"] for message in messages] == ["hello", "snapshot"]


async def test_the_state_is_what_a_websocket_gets_first(board: Dashboard) -> None:
    await send_one(board)
    async with board.live() as live:
        _, snapshot = await messages_until(live, "snapshot")
        state = await board.json("/api/state")

    assert state["data"].keys() == snapshot["data"].keys()
    assert state["data"]["blocks"] == snapshot["data"]["blocks"]
    assert state["seq"] >= snapshot["seq"]


async def test_pages_of_other_sites_are_refused_before_anything_is_said(board: Dashboard) -> None:
    for origin in ("https://evil.example", "null"):
        with pytest.raises(InvalidStatus) as refused:
            async with board.live(origin=origin):
                pass
        assert refused.value.response.status_code == 403
        assert json.loads(refused.value.response.body or b"")["error"]["code"] == "foreign_origin"

    with pytest.raises(InvalidStatus) as refused:
        async with board.live(origin="http://rebound.example", additional_headers={"Host": "rebound.example"}):
            pass
    assert refused.value.response.status_code == 403

    async with board.live(origin=board.url) as live:
        await messages_until(live, "snapshot")


@pytest.mark.parametrize("after", ["", "x", "-1", "9" * 5000])
async def test_what_is_no_number_to_resume_from_gets_a_snapshot(board: Dashboard, after: str) -> None:
    async with board.live(f"?after={after}&instance={board.app.runtime.hub.hello.instance}") as live:
        messages = await messages_until(live, "snapshot")

    assert [message["type"] for message in messages] == ["hello", "snapshot"]


async def test_above_the_bound_a_client_is_told_so(engine: Engine) -> None:
    async with dashboard({**engine.settings, "max_clients": "1"}) as board:
        async with board.live() as live:
            await messages_until(live, "hello")
            with pytest.raises(InvalidStatus) as refused:
                async with board.live():
                    pass
            assert refused.value.response.status_code == 503

        async def gone() -> bool:
            return board.app.runtime.hub.clients == 0

        await eventually(gone)
        async with board.live() as live:
            await messages_until(live, "hello")


async def test_heartbeats_fill_the_silence(engine: Engine) -> None:
    async with dashboard({**engine.settings, "heartbeat_s": "0.02"}) as board, board.live() as live:
        async with asyncio.timeout(10):
            while json.loads(await live.recv()) != {"type": "heartbeat"}:
                pass


async def test_what_a_client_says_is_read_and_dropped(board: Dashboard) -> None:
    async with board.live() as live:
        await messages_until(live, "snapshot")
        await live.send("{}")
        await live.send(b"\x00")
        await send_one(board)
        await messages_until(live, "request.finished")


async def test_a_client_that_reads_nothing_slows_nobody(engine: Engine) -> None:
    async with dashboard({**engine.settings, "max_client_queue_events": "50"}) as board:
        await board.until_ready()
        async with board.live() as lively, board.live() as stalled:
            # Its socket's buffers stay full from here on: the library reads only what `recv` asks for.
            await messages_until(stalled, "snapshot")
            messages = await messages_until(lively, "snapshot")
            for _ in range(5):
                await send_one(board)
            messages += await messages_until(lively, "request.finished", 5)

    assert_strictly_increasing(messages)
    assert [message["type"] for message in messages].count("snapshot") == 1


async def test_frames_of_any_length_arrive_whole_and_in_order(board: Dashboard) -> None:
    hub, clock = board.app.runtime.hub, board.app.runtime.clock
    sizes = (0, 60, 125, 126, 1000, 65_500, 65_536, 300_000)
    async with board.live() as live:
        await messages_until(live, "snapshot")
        for number, size in enumerate(sizes):
            state = ScenarioState(number, len(sizes), "é" * (size // 2), running=False)
            hub.publish([Outgoing(ScenarioAdvanced(state), clock.wall_ms())])
        messages = await messages_until(live, "scenario.advanced", len(sizes))

    captions = [len(m["data"]["scenario"]["caption"]) * 2 for m in messages if m["type"] == "scenario.advanced"]
    assert captions == [size // 2 * 2 for size in sizes]
    assert_strictly_increasing(messages)


async def test_a_crowd_gets_the_same_events_without_holding_the_loop(engine: Engine) -> None:
    async with dashboard(engine.settings) as board, AsyncExitStack() as stack:
        hub, clock = board.app.runtime.hub, board.app.runtime.clock
        crowd = [await stack.enter_async_context(board.live()) for _ in range(40)]
        for live in crowd:
            await messages_until(live, "snapshot")
        for number in range(100):
            hub.publish([Outgoing(ScenarioAdvanced(ScenarioState(number, 100, "", running=True)), clock.wall_ms())])
        received = [await messages_until(live, "scenario.advanced", 100) for live in crowd]

    for messages in received:
        steps = [m["data"]["scenario"]["step"] for m in messages if m["type"] == "scenario.advanced"]
        assert steps == list(range(100))
        numbers = [message["seq"] for message in messages]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_a_server_without_shared_frames_carries_the_same(board: Dashboard) -> None:
    """The application under another ASGI server: it makes its own frames."""
    sent: list[dict[str, Any]] = []
    closed = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if sum(m["type"] == "websocket.send" for m in sent) >= 2:
            closed.set()

    inbox = [{"type": "websocket.connect"}]

    async def receive() -> dict[str, Any]:
        if inbox:
            return inbox.pop()
        await closed.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    scope = {
        "type": "websocket", "path": "/live", "raw_path": b"/live", "query_string": b"", "root_path": "",
        "headers": [(b"host", b"127.0.0.1")], "scheme": "ws", "subprotocols": [], "extensions": {},
    }  # fmt: skip
    async with asyncio.timeout(10):
        await board.app(scope, receive, send)  # type: ignore[arg-type]

    texts = [json.loads(message["text"]) for message in sent if message["type"] == "websocket.send"]
    assert [text["type"] for text in texts[:2]] == ["hello", "snapshot"]
