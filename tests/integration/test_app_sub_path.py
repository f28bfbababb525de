"""Under a path of another site: page, files, API, chat and live stream, as at the root."""

import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest
from websockets.asyncio.client import connect

from .app_rig import Dashboard, Engine, chat_body, dashboard, messages_until

ROOT = "/tools/prefixscope"


@pytest.fixture
async def board(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard({**engine.settings, "root_path": ROOT}) as running:
        await running.until_ready()
        yield running


async def test_every_url_of_the_page_leads_somewhere(board: Dashboard) -> None:
    where = f"{board.url}{ROOT}/"
    page = await board.http.get(where)
    urls = re.findall(r'(?:src|href)="([^"#]+)"', page.text)

    assert page.status_code == 200
    assert len(urls) > 5
    for url in urls:
        found = urljoin(where, url)
        assert found.startswith(where), url
        assert (await board.http.get(found)).status_code == 200, found


async def test_without_its_slash_a_browser_is_sent_to_it(board: Dashboard) -> None:
    sent = await board.http.get(ROOT)

    assert sent.status_code == 307
    assert urljoin(f"{board.url}{ROOT}", sent.headers["location"]) == f"{board.url}{ROOT}/"


async def test_chat_api_and_live_stream_work_under_it(board: Dashboard) -> None:
    model = board.app.runtime.model_name()
    assert model
    async with connect(f"{board.url.replace('http', 'ws')}{ROOT}/live", max_size=None) as live:
        await messages_until(live, "snapshot")
        answer = await board.http.post(f"{ROOT}/v1/chat/completions", json=chat_body(model), headers=board.page_headers)
        assert answer.status_code == 200
        messages = await messages_until(live, "request.finished")

    request = answer.headers["X-PrefixScope-Request"]
    assert messages[-1]["data"]["record"]["id"] == request
    assert (await board.json(f"{ROOT}/api/requests/{request}"))["outcome"] == "ok"


async def test_at_the_root_it_is_still_reached(board: Dashboard) -> None:
    assert (await board.http.get("/api/version")).status_code == 200
    assert (await board.http.get("/toolshed")).status_code == 404
