"""Dead, wrong and poor servers: the page opens with each, says which it is, and goes on by itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.processes import free_ports

from .app_rig import Dashboard, Engine, chat_body, dashboard, eventually


async def server_that_is(board: Dashboard, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The record of the server, once it fits."""

    async def look() -> dict[str, Any] | None:
        servers = (await board.json("/api/state"))["data"]["servers"]
        return servers[0] if servers and fits(servers[0]) else None

    return await eventually(look)


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """A server that says the same to everyone; its URL."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_a_dead_server_is_said_to_be_down_and_seen_when_it_comes_goes_and_comes_again(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engine.log")
    try:
        async with dashboard(engine.settings) as board:
            server = await server_that_is(board, lambda server: server["state"] == "down")
            assert engine.url in server["message"]
            assert (await board.http.get("/")).status_code == 200
            assert (await board.http.get("/readyz")).json()["error"]["message"] == server["message"]
            refused = await board.http.post("/v1/chat/completions", json=chat_body("any"))
            assert refused.status_code == 502

            await asyncio.to_thread(engine.start)
            await board.until_ready()
            await server_that_is(board, lambda server: server["streams"][0]["state"] == "connected")
            model = board.app.runtime.model_name()
            assert model
            record = await board.send(chat_body(model))
            assert record["block_table"]["hash"][0] is not None

            await asyncio.to_thread(engine.process.stop)
            await server_that_is(board, lambda server: server["state"] == "down")
            await asyncio.to_thread(engine.start)
            await board.until_ready()
            again = await board.send(chat_body(model))
            assert again["cached_tokens"] == again["predicted_cached_tokens"] == 0
            stored = {text for text in again["block_table"]["hash"] if text}

            async def only_the_new_blocks() -> bool:
                (columns,) = (await board.json("/api/blocks"))["blocks"]
                return set(columns["hash"]) == stored

            await eventually(only_the_new_blocks)
    finally:
        engine.process.stop()


async def test_a_server_that_is_not_vllm_is_named_so() -> None:
    page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<h1>It works!</h1>"
    async with answering(page) as url, dashboard({"vllm": url}) as board:
        server = await server_that_is(board, lambda server: server["state"] == "not_vllm")

        assert server["message"]
        assert (await board.http.get("/")).status_code == 200


async def test_a_server_that_demands_a_key_is_named_so() -> None:
    refusal = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    async with answering(refusal) as url, dashboard({"vllm": url}) as board:
        server = await server_that_is(board, lambda server: server["state"] == "unauthorized")

        assert "key" in server["message"].lower()


async def test_without_kv_events_all_else_works(engine: Engine) -> None:
    nowhere = [f"tcp://127.0.0.1:{port}" for port in free_ports(2)]
    settings = {**engine.settings, "kv_events": nowhere[0], "kv_replay": nowhere[1]}
    async with dashboard(settings) as board:
        await board.until_ready()
        model = board.app.runtime.model_name()
        assert model
        body = chat_body(model)
        for _ in range(2):
            assert (await board.http.post("/v1/chat/completions", json=body)).status_code == 200

        async def cached() -> int | None:
            records = (await board.json("/api/requests?limit=1"))["requests"]
            return records[0]["cached_tokens"] if records else None

        assert await eventually(cached)
        server = await server_that_is(
            board, lambda server: server["streams"][0]["state"] not in ("connecting", "connected")
        )
        assert server["streams"][0]["coverage"] == "none"
