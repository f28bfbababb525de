"""The API with the embedded engine behind the dashboard: what programs read is what the engine said."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.events import BlockColumns, BlockTable, RequestRecord

from .app_rig import Dashboard, Engine, chat_body, dashboard, eventually


@pytest.fixture
async def board(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard(engine.settings) as running:
        await running.until_ready()
        yield running


@pytest.fixture
async def model(board: Dashboard) -> str:
    name = board.app.runtime.model_name()
    assert name
    return name


def fields(contract: Any) -> set[str]:
    return set(contract.__dataclass_fields__)


async def test_the_same_chat_twice_reuses_what_the_engine_says(board: Dashboard, model: str) -> None:
    body = chat_body(model)

    first, second = await board.send(body), await board.send(body)

    assert first["cached_tokens"] == first["predicted_cached_tokens"] == first["reused_blocks"] == 0
    assert second["cached_tokens"] == second["predicted_cached_tokens"]
    assert second["reused_blocks"] == second["reusable_blocks"] > 5
    assert second["basis"]["cached_tokens"] == "usage"
    assert second["ttft_ms"] > 0
    # By our own clock a busy machine can make any request slow; the model of time cannot.
    assert second["engine_ttft_ms"] < first["engine_ttft_ms"]
    assert second["block_table"]["state"].count("reused") == second["reused_blocks"]
    assert (
        second["block_table"]["hash"][: second["reused_blocks"]]
        == first["block_table"]["hash"][: second["reused_blocks"]]
    )


async def test_a_record_is_flat_with_its_block_table_beside(board: Dashboard, model: str) -> None:
    record = await board.send(chat_body(model))

    assert set(record) == fields(RequestRecord) | {"block_table"}
    assert set(record["block_table"]) == fields(BlockTable)
    assert (record["origin"], record["outcome"], record["status"]) == ("page", "ok", 200)


async def test_requests_are_listed_newest_first_page_by_page(board: Dashboard, model: str) -> None:
    sent = [(await board.send(chat_body(model, f"Question {number}?")))["id"] for number in range(3)]

    first = await board.json("/api/requests?limit=2")
    rest = await board.json(f"/api/requests?limit=2&after={first['next']}")

    assert [record["id"] for record in first["requests"] + rest["requests"]] == sent[::-1]
    assert set(first["requests"][0]) == fields(RequestRecord)
    assert rest["next"] is None


async def test_resident_blocks_are_columns_without_text(board: Dashboard, model: str) -> None:
    record = await board.send(chat_body(model))

    (columns,) = (await board.json("/api/blocks"))["blocks"]

    assert set(columns) == fields(BlockColumns)
    full = [text for text in record["block_table"]["hash"] if text]
    assert set(full) <= set(columns["hash"])
    lengths = {len(column) for column in columns.values() if isinstance(column, list)}
    assert lengths == {len(columns["hash"])}


async def test_a_block_shows_its_text_and_who_shares_it(board: Dashboard, model: str) -> None:
    body = chat_body(model, system="Ein Häuschen für die Post. 请用中文回答。🙂 " * 20)
    first, second = await board.send(body), await board.send(body)

    by_index = await board.json(f"/api/requests/{second['id']}/blocks/1")
    by_hash = await board.json(f"/api/blocks/{second['block_table']['hash'][1]}")

    assert by_index == by_hash
    assert by_index["tokens"] == second["block_size"]
    assert by_index["depth"] == 1
    assert by_index["parent"] == second["block_table"]["hash"][0]
    assert by_index["requests"] == [first["id"], second["id"]]
    assert by_index["text_hidden"] is False
    assert "�" not in by_index["text"]
    last = len(second["block_table"]["hash"]) - 1
    tail = await board.json(f"/api/requests/{second['id']}/blocks/{last}")
    assert tail["tokens"] == second["block_table"]["tokens"][last]


async def test_the_text_of_other_clients_is_hidden_unless_set(board: Dashboard, engine: Engine, model: str) -> None:
    async def blocks_of_a_clients_request(shown: Dashboard) -> tuple[dict[str, Any], dict[str, Any]]:
        body = chat_body(model)
        assert (await shown.http.post("/v1/chat/completions", json=body)).status_code == 200

        async def known() -> Any:
            (record,) = (await shown.json("/api/requests?limit=1"))["requests"]
            full = await shown.json(f"/api/requests/{record['id']}")
            return full if full["outcome"] and full["block_table"] else None

        record = await eventually(known)
        return record, await shown.json(f"/api/requests/{record['id']}/blocks/0")

    record, block = await blocks_of_a_clients_request(board)
    assert record["origin"] == "client"
    assert record["label"] is None
    assert (block["text"], block["text_hidden"]) == (None, True)

    async with dashboard({**engine.settings, "show_prompts": "true"}) as open_board:
        await open_board.until_ready()
        record, block = await blocks_of_a_clients_request(open_board)
        assert record["label"]
        assert block["text"]
        assert block["text_hidden"] is False


async def test_the_state_names_server_and_instance(board: Dashboard, model: str) -> None:
    state = await board.json("/api/state")

    assert state["type"] == "snapshot"
    assert state["instance"] == board.app.runtime.hub.hello.instance
    (server,) = state["data"]["servers"]
    assert (server["state"], server["embedded"], server["models"][0]) == ("up", True, model)


async def test_a_mark_starts_the_counters_window_anew(board: Dashboard, model: str) -> None:
    body = chat_body(model)
    await board.send(body)
    await board.send(body)

    async def window() -> dict[str, Any] | None:
        rates = (await board.json("/api/state"))["data"]["rates"].get(board.app.runtime.server, [])
        found = [r for r in rates if (r["window"], r["basis"]) == ("since_mark", "counter")]
        return found[0] if found else None

    async def counted() -> bool:
        reading = await window()
        return reading is not None and reading["hit_tokens"] > 0

    await eventually(counted)

    response = await board.http.post("/api/mark")

    assert response.status_code == 200
    assert response.json()["marked_ms"] > 1e12

    async def moved() -> bool:
        reading = await window()
        return reading is not None and reading["hit_tokens"] == 0

    await eventually(moved)


async def test_what_goes_through_is_what_the_server_says(board: Dashboard, engine: Engine) -> None:
    through = await board.http.get("/v1/models")
    async with httpx.AsyncClient(trust_env=False) as direct:
        said = await direct.get(f"{engine.url}/v1/models")

    assert through.json()["data"][0]["id"] == said.json()["data"][0]["id"]
    assert "content-security-policy" not in through.headers


async def test_prometheus_reads_the_dashboards_own_metrics(board: Dashboard) -> None:
    for accept, form in (("text/plain", "text/plain"), ("application/openmetrics-text; version=1.0.0", "openmetrics")):
        page = await board.http.get("/metrics", headers={"Accept": accept})
        assert form in page.headers["content-type"]
        assert "prefixscope_build_info{version=" in page.text
        assert f'prefixscope_server_up{{server="{board.app.runtime.server}"}} 1.0' in page.text
    targets = await board.json("/api/prometheus-targets")
    assert targets[0]["targets"] == [board.app.runtime.server.removeprefix("http://")]
    assert targets[0]["labels"] == {"__scheme__": "http", "__metrics_path__": "/metrics"}
