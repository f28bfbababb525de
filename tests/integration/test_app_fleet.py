"""A fleet through the dashboard's API: what the recorded requests would have hit elsewhere."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from .app_rig import Dashboard, Engine, dashboard, eventually, running_engine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An embedded engine that takes no time."""
    with running_engine(
        tmp_path_factory.mktemp("engine") / "log", "--profile", "instant", "--num-gpu-blocks", "400"
    ) as engine:
        yield engine


@pytest.fixture
async def board(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard(engine.settings) as running:
        await running.until_ready()
        yield running


async def test_what_if_of_nothing_says_so(board: Dashboard) -> None:
    assert (await board.json("/api/what_if", 404))["error"]["code"] == "not_found"


@pytest.mark.parametrize("query", ["pools=a", "pools=0", "replicas=65", "pools=1,,2", "replicas=-1", "pools=²"])
async def test_numbers_that_are_none(board: Dashboard, query: str) -> None:
    assert (await board.json(f"/api/what_if?{query}", 400))["error"]["code"] == "bad_request"


async def test_what_if_agrees_with_the_engine_that_served(board: Dashboard) -> None:
    model = (await board.http.get("/v1/models")).json()["data"][0]["id"]
    system = "You are a careful clerk who answers letters of every kind. " * 12
    for number in range(6):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": f"Letter {number}: hello"}]
        await board.send(
            {"model": model, "messages": messages, "max_tokens": 1, "stream": True, "temperature": 0,
             "stream_options": {"include_usage": True}, "return_token_ids": True}
        )  # fmt: skip

    async def known() -> dict[str, Any] | None:
        found: dict[str, Any] = await board.json("/api/what_if?replicas=1,6")
        return found if found["observed"]["requests"] == 6 else None

    found = await eventually(known)
    observed = found["observed"]
    assert (found["requests"], found["unknown_prompts"], found["left_out"]) == (6, 0, 0)
    assert observed["cached_tokens"] > 0
    one, six = found["placements"]
    assert one["pool_blocks"] == 399
    assert one["rules"]["round_robin"]["hit_ratio"] == pytest.approx(observed["hit_ratio"], abs=1e-6)
    assert six["rules"]["round_robin"]["hit_ratio"] == 0
    assert six["rules"]["best_match"]["hit_ratio"] == one["rules"]["round_robin"]["hit_ratio"]
    assert all(point["hit_ratio"] <= point["bound_ratio"] for point in found["pools"])


async def test_the_map_shows_what_several_prompts_share(board: Dashboard, engine: Engine) -> None:
    model = (await board.http.get("/v1/models")).json()["data"][0]["id"]
    system = "The residents of this map are blocks, and every one of them has a place. " * 12
    for number in range(2):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": f"Place {number}?"}]
        body = {"model": model, "messages": messages, "max_tokens": 1, "stream": True, "return_token_ids": True}
        await board.send(body)

    async def mapped() -> dict[str, Any] | None:
        # The engine has prefixes of others besides, of whose requests this dashboard knows nothing.
        found: dict[str, Any] = await board.json("/api/residency")
        found["rows"] = [row for row in found["rows"] if row["requests"] >= 2]
        return found if found["rows"] else None

    found = await eventually(mapped)
    (column,), row = found["replicas"], found["rows"][0]
    assert len((await board.json("/api/residency?rows=1"))["rows"]) == 1
    assert (column["server"], column["rank"], column["coverage"]) == (engine.url, 0, "complete")
    assert found["resident_blocks"] == column["copies"] >= column["blocks"] == found["distinct_blocks"]
    assert row["cells"] == {"GPU": {"0": row["blocks"]}}
    assert (row["tokens"], row["duplicate_blocks"]) == (row["blocks"] * column["block_size"], 0)
    block = await board.json(f"/api/blocks/{row['hash']}?server={row['server']}&rank={row['rank']}")
    assert len(block["requests"]) >= 2


async def test_figures_name_every_member(board: Dashboard, engine: Engine) -> None:
    found = await board.json("/api/fleet?window_s=60")
    (member,) = found["members"]
    assert (member["server"], member["state"], member["ranks"]) == (engine.url, "up", 1)
    assert found["gap"]["requests"] == 0
    assert (await board.json("/api/fleet?window_s=0", 400))["error"]["code"] == "bad_request"
