"""Several servers on one page: the one that is chosen is the one that every picture shows."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, WebSocket, expect

from .conftest import OpenPage

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).parent.parent / "contract" / "golden"
OTHER = "http://10.0.0.5:8000"
PATIENT_MS = 30_000


def golden_data(name: str, **changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())["data"]
    return {**data, **changes}


def second_server(fake: str) -> None:
    """Another server with three blocks and a request of its own, beside the stand-in's."""
    server = {**golden_data("server.changed")["server"], "id": OTHER, "models": ["other-model"]}
    record = {**golden_data("request.finished")["record"], "id": "r-901", "server": OTHER}
    stored = golden_data("blocks.stored", hash=["o1", "o2", "o3"], copies=[1, 1, 1], parent=None, depth=0)
    events = [
        {"type": "server.changed", "data": {"server": server}, "server": OTHER},
        {"type": "blocks.stored", "data": stored, "server": OTHER},
        {"type": "request.finished", "data": golden_data("request.finished", record=record), "server": OTHER},
    ]
    httpx.post(f"{fake}/test/events", json=events).raise_for_status()


def ask(fake: str) -> None:
    messages = [{"role": "system", "content": "One rule: be brief. " * 20}, {"role": "user", "content": "Why?"}]
    httpx.post(f"{fake}/v1/chat/completions", json={"model": "m", "messages": messages}, timeout=60)


def shows_other(page: Page) -> None:
    expect(page.locator("#cache-stage")).to_have_attribute("data-resident", "3", timeout=PATIENT_MS)
    expect(page.locator(".lane-list .lane")).to_have_count(1, timeout=PATIENT_MS)
    expect(page.locator("[data-request=r-901]")).to_be_visible()
    expect(page.locator("[data-chip=model]")).to_have_text("other-model")


def test_every_view_follows_the_chosen_server_and_it_is_remembered(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    ask(fake)
    expect(page.locator(".lane[data-request=r-1]")).to_be_visible(timeout=PATIENT_MS)
    choice = page.get_by_role("combobox", name="Server that the page shows")
    expect(choice).to_have_count(0)

    second_server(fake)
    expect(choice).to_be_visible(timeout=PATIENT_MS)
    expect(page.locator("[data-request=r-901]")).to_have_count(0)
    choice.select_option("10.0.0.5:8000")
    shows_other(page)

    page.reload()
    expect(page.locator(".lane[data-request=r-1]")).to_be_visible(timeout=PATIENT_MS)
    second_server(fake)
    shows_other(page)


def test_the_list_is_reached_by_key_and_what_is_sent_is_shown(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, locale="zh-CN")
    second_server(fake)
    choice = page.get_by_role("combobox", name="页面显示的服务器")
    expect(choice).to_be_visible(timeout=PATIENT_MS)
    page.keyboard.press("o")
    expect(choice).to_be_focused()
    page.keyboard.press("ArrowDown")
    shows_other(page)

    page.locator("#send").click()
    expect(page.locator(".lane[data-request=r-1]")).to_be_visible(timeout=PATIENT_MS)
    expect(choice).to_have_value("http://127.0.0.1:8000")


def test_the_page_says_that_it_is_there(fake: str, open_page: OpenPage) -> None:
    page = open_page("about:blank", connected=False)
    sent: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: sent.append(str(frame)))

    page.on("websocket", listen)
    page.clock.install()
    page.goto(fake)
    page.locator("body[data-link=live]").wait_for()
    page.clock.run_for(16_000)
    page.wait_for_function("() => document.body.dataset.link === 'live'")
    assert sent == ['{"type":"heartbeat"}']


def test_the_first_picture_stands_before_the_charts_library_is_there(fake: str, open_page: OpenPage) -> None:
    ask(fake)
    page = open_page("about:blank", connected=False)
    page.route("**/plotly-cartesian.min.js", lambda route: None)
    page.goto(fake, wait_until="commit")
    expect(page.locator(".lane[data-request=r-1]")).to_be_visible(timeout=PATIENT_MS)
    expect(page.locator("#tree-stage")).to_have_attribute("data-chains", "1", timeout=PATIENT_MS)
    assert page.evaluate("() => window.Plotly === undefined")
