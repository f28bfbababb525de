"""Several servers in one dashboard: each has its own sources, and what happens to one leaves the others alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.processes import free_ports

from .app_rig import Dashboard, Engine, dashboard, eventually, running_engine


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two embedded engines that take no time."""
    logs = tmp_path_factory.mktemp("engines")
    with ExitStack() as stack:
        yield [
            stack.enter_context(running_engine(logs / f"{number}.log", "--profile", "instant")) for number in range(2)
        ]


@pytest.fixture
async def board(engines: list[Engine]) -> AsyncIterator[Dashboard]:
    """A dashboard that watches a dead server between the two."""
    dead, events = free_ports(2)
    first, second = engines
    settings = {
        "vllm": f"{first.url},http://127.0.0.1:{dead},{second.url}",
        "kv_events": f"{first.settings['kv_events']},tcp://127.0.0.1:{events},{second.settings['kv_events']}",
        "kv_replay": f"{first.settings['kv_replay']},,{second.settings['kv_replay']}",
    }
    async with dashboard(settings) as running:
        await running.until_ready()
        yield running


async def complete(engine: Engine, words: str) -> None:
    """A request straight to an engine."""
    async with httpx.AsyncClient(base_url=engine.url, timeout=20, trust_env=False) as client:
        model = (await client.get("/v1/models")).json()["data"][0]["id"]
        body = {"model": model, "prompt": words, "max_tokens": 1}
        assert (await client.post("/v1/completions", json=body)).status_code == 200


async def blocks_of(board: Dashboard) -> dict[str, int]:
    return {columns["server"]: len(columns["hash"]) for columns in (await board.json("/api/blocks"))["blocks"]}


async def test_each_server_has_its_own_blocks_metrics_and_state(board: Dashboard, engines: list[Engine]) -> None:
    await complete(engines[1], "one two three four five six seven eight nine ten " * 10)

    async def seen() -> bool:
        return (await blocks_of(board)).get(engines[1].url, 0) > 0

    await eventually(seen)

    async def known() -> dict[str, Any] | None:
        servers = {server["id"]: server for server in (await board.json("/api/state"))["data"]["servers"]}
        ready = len(servers) == 3 and all(servers[engine.url]["metrics_state"] == "ok" for engine in engines)
        return servers if ready else None

    servers = await eventually(known)
    assert [server["state"] for server in servers.values()].count("up") == 2
    assert [server["state"] for server in servers.values()].count("down") == 1
    assert next(iter(board.app.runtime.watched)) == board.app.runtime.server == engines[0].url


async def test_a_block_of_another_server_shows_its_text(board: Dashboard, engines: list[Engine]) -> None:
    await complete(engines[1], "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen " * 10)

    async def columns() -> dict[str, Any] | None:
        found = [entry for entry in (await board.json("/api/blocks"))["blocks"] if entry["server"] == engines[1].url]
        return found[0] if found and found[0]["hash"] else None

    block = (await eventually(columns))["hash"][0]
    detail = await board.json(f"/api/blocks/{block}?server={engines[1].url}")

    assert detail["server"] == engines[1].url
    await board.json(f"/api/blocks/{block}?server=http://nobody", 404)


async def test_requests_go_to_the_first(board: Dashboard, engines: list[Engine]) -> None:
    before = await blocks_of(board)
    model = board.app.runtime.model_name()
    prompt = "twenty thirty forty fifty sixty seventy eighty ninety hundred " * 10
    response = await board.http.post("/v1/completions", json={"model": model, "prompt": prompt, "max_tokens": 1})
    assert response.status_code == 200

    async def stored() -> bool:
        return (await blocks_of(board)).get(engines[0].url, 0) > before.get(engines[0].url, 0)

    await eventually(stored)
    (record, *_) = (await board.json("/api/requests"))["requests"]
    assert record["server"] == engines[0].url


async def test_a_mark_moves_every_servers_window(board: Dashboard, engines: list[Engine]) -> None:
    for engine in engines:
        await complete(engine, "red orange yellow green blue indigo violet black white grey " * 10)

    async def counted() -> bool:
        return all(query > 0 for query in (await since_mark(board, engines)).values())

    await eventually(counted)
    marked = (await board.http.post("/api/mark")).json()["marked_ms"]

    windows = await since_mark(board, engines, "query_tokens")
    assert windows == dict.fromkeys((engine.url for engine in engines), 0)
    starts = await since_mark(board, engines, "since_ms")
    assert all(abs(start - marked) < 1000 for start in starts.values())


async def since_mark(board: Dashboard, engines: list[Engine], field: str = "query_tokens") -> dict[str, float]:
    """A field of each server's counter reading since the mark; 0 where there is none yet."""
    rates = (await board.json("/api/state"))["data"]["rates"]
    return {
        engine.url: next(
            (r[field] for r in rates.get(engine.url, []) if (r["window"], r["basis"]) == ("since_mark", "counter")), 0
        )
        for engine in engines
    }


async def test_a_dead_server_delays_nobody(board: Dashboard, engines: list[Engine]) -> None:
    async def sampled() -> float | None:
        metrics = (await board.json("/api/state"))["data"]["metrics"]
        points = metrics.get(engines[1].url, [])
        return points[-1]["at_ms"] if points else None

    first = await eventually(sampled)

    async def again() -> bool:
        latest = await sampled()
        return latest is not None and latest > first

    async with asyncio.timeout(3):
        await eventually(again)
