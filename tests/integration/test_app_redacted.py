"""A redacted dashboard: words planted in prompt, answer and errors are nowhere in what it tells, in no log either."""

import asyncio
import json
import logging
from typing import Any

import pytest

from .app_rig import Dashboard, Engine, chat_body, dashboard, eventually

CANARY = "zanzibarquokka"
QUERIES = ("/api/state", "/api/requests", "/api/blocks", "/api/ttft_fit", "/api/doctor", "/api/version", "/")


async def heard(board: Dashboard, until: asyncio.Event) -> list[str]:
    """The text of every live message until the event is set and the stream has been quiet for a moment."""
    messages: list[str] = []
    async with board.live() as live:
        while True:
            try:
                messages.append(str(await asyncio.wait_for(live.recv(), 1)))
            except TimeoutError:
                if until.is_set():
                    return messages


async def send_canaries(board: Dashboard) -> list[dict[str, Any]]:
    """From the page and from a client, well and badly: what is told of each request once it has ended."""
    model = board.app.runtime.model_name()
    assert model
    body = chat_body(model, f"Where is {CANARY}?", system=f"You know {CANARY} well. " * 30)
    bad = {**body, "max_tokens": -1, "messages": [{"role": CANARY, "content": CANARY}]}
    for headers in ({}, board.page_headers):
        for each in (body, body, bad):
            await board.http.post("/v1/chat/completions", json=each, headers=headers)

    async def ended() -> list[dict[str, Any]] | None:
        records: list[dict[str, Any]] = (await board.json("/api/requests"))["requests"]
        return records if len(records) == 6 and all(record["outcome"] for record in records) else None

    return await eventually(ended)


async def told_of(board: Dashboard, record: dict[str, Any]) -> list[str]:
    paths = [f"/api/requests/{record['id']}", f"/api/requests/{record['id']}/comparison"]
    full = await board.json(paths[0])
    table = full["block_table"]
    for index, block_hash in enumerate(table["hash"] if table else []):
        paths += [f"/api/requests/{record['id']}/blocks/{index}"]
        paths += [f"/api/blocks/{block_hash}"] if block_hash else []
    return [(await board.http.get(path)).text for path in paths]


@pytest.mark.parametrize("redact", [True, False])
async def test_no_word_of_a_prompt_is_told(engine: Engine, caplog: pytest.LogCaptureFixture, redact: bool) -> None:
    caplog.set_level(logging.DEBUG)
    settings = {**engine.settings, "show_prompts": "true", "redact": str(redact).lower()}
    async with dashboard(settings) as board:
        await board.until_ready()
        done = asyncio.Event()
        listening = asyncio.create_task(heard(board, done))
        records = await send_canaries(board)
        done.set()
        told = [*await listening, *[(await board.http.get(path)).text for path in QUERIES]]
        for record in records:
            told += await told_of(board, record)
        asked = {"requests": [chat_body("m", CANARY), chat_body("m", CANARY, system="Else.")]}
        remedy = await board.http.post("/api/remedy", json=asked, headers=board.page_headers)
        forecast = await board.http.post("/api/forecast", json=chat_body("m", CANARY), headers=board.page_headers)
    told += [remedy.text, forecast.text]
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("app")]

    # Without the setting the same search finds the words: it looks in the right places.
    assert any(CANARY in text for text in told) is not redact
    assert not any(CANARY in text for text in logged)
    assert (remedy.status_code == 403) is redact
    if redact:
        assert not any("token_ids" in json.dumps(record) for record in records)
        assert all(record["label"] is None for record in records)
        assert sum(record["cached_tokens"] or 0 for record in records) > 0
