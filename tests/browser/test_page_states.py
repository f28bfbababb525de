"""States of the page that the demo can't be brought into, on a stand-in dashboard."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).parent.parent / "contract" / "golden"
MARKUP = "<img src=x onerror=alert(1)><b>bold</b>"


def golden(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return event


def publish(fake: str, name: str, **data: Any) -> None:
    event = golden(name)
    httpx.post(f"{fake}/test/events", json=[{"type": event["type"], "data": {**event["data"], **data}}])


def publish_server(fake: str, **changes: Any) -> None:
    publish(fake, "server.changed", server={**golden("server.changed")["data"]["server"], **changes})


def ask(fake: str, system: str, question: str = "Why?") -> None:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    httpx.post(f"{fake}/v1/chat/completions", json={"model": "m", "messages": messages}, timeout=30)


def test_a_server_in_trouble_is_told_in_chinese_and_in_its_own_words(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, locale="zh-CN")
    publish_server(fake, state="down", message="All connection attempts failed.", models=[])
    notice = page.locator("[data-notice=server]")
    expect(notice).to_contain_text("请确认它正在运行且地址正确", timeout=30_000)
    expect(notice).to_contain_text("（All connection attempts failed.）")


@pytest.mark.parametrize(
    ("state", "title"),
    [("down", "doesn't answer"), ("not_vllm", "isn't a vLLM server"), ("unauthorized", "refuses the key")],
)
def test_a_server_in_trouble_says_what_to_do_and_recovers(
    fake: str, open_page: OpenPage, keep: Callable[..., None], state: str, title: str
) -> None:
    page = open_page(fake)
    publish_server(fake, state=state, message="Start it with: vllm serve MODEL", models=[])
    notice = page.locator("[data-notice=server]")
    expect(notice).to_contain_text(title)
    expect(notice).to_contain_text("Start it with: vllm serve MODEL")
    expect(page.locator("#send")).to_be_disabled()
    keep(page, f"server-{state}")
    page.locator(".foot").scroll_into_view_if_needed()
    expect(notice).to_be_in_viewport(ratio=0.99)

    publish_server(fake)
    expect(notice).to_have_count(0)
    expect(page.locator("#send")).to_be_enabled()


def test_without_kv_events_the_flag_to_paste_is_there(
    fake: str, open_page: OpenPage, keep: Callable[..., None]
) -> None:
    page = open_page(fake)
    stream = {
        **golden("server.changed")["data"]["server"]["streams"][0],
        "state": "off",
        "coverage": "none",
        "batches": 0,
    }
    publish_server(fake, streams=[stream], usage_details=False)

    expect(page.locator("[data-notice=events] code")).to_contain_text('"publisher":"zmq"')
    expect(page.locator("[data-notice=usage] code")).to_have_text("--enable-prompt-tokens-details")
    expect(page.locator("[data-chip=events]")).to_have_text("KV events off")
    expect(page.locator("#figure-pool .big")).to_contain_text("—")
    expect(page.locator("#figure-pool .source")).to_contain_text("no KV events")
    keep(page, "no-kv-events")


def test_unknown_is_a_dash_with_its_reason(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)

    expect(page.locator("#figure-hit-rate .big")).to_have_text("—")
    expect(page.locator("#figure-hit-rate .source")).to_contain_text("no prompt was looked up yet")
    expect(page.locator("#figure-ttft [data-part=warm]")).to_have_text("—")
    expect(page.locator("#lanes-empty")).to_be_visible()


def test_markup_in_what_the_server_says_is_text(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    record = {**golden("request.failed")["data"]["record"], "label": MARKUP, "error": MARKUP, "model": MARKUP}
    publish(fake, "request.failed", record=record)
    finished = {**golden("request.finished")["data"]["record"], "label": MARKUP}
    publish(fake, "request.finished", record=finished)
    publish_server(fake, models=[MARKUP], version=MARKUP, message=MARKUP, state="down")
    publish(fake, "scenario.advanced", scenario={"step": 1, "steps": 2, "caption": MARKUP, "running": False})

    for place in (".lane-list .lane-name >> nth=0", "[data-chip=model]", "[data-notice=server]", "#scenario-caption"):
        expect(page.locator(place)).to_contain_text(MARKUP)
    page.locator("#chart-ttft").scroll_into_view_if_needed()
    page.locator("#chart-ttft .point").first.hover(force=True)
    expect(page.locator("#chart-ttft .hoverlayer")).to_contain_text("<img src=x onerror=alert(1)><b>bold")
    assert page.locator("main img, header img, #notices img, #scenario img").count() == 0


def test_a_lost_link_greys_the_past_and_comes_back_whole(
    fake: str, open_page: OpenPage, keep: Callable[..., None]
) -> None:
    page = open_page(fake)
    ask(fake, "One rule: be brief. " * 20)
    expect(page.locator(".lane-list .lane")).to_have_count(1)
    httpx.post(f"{fake}/test/cut")
    expect(page.locator("body")).to_have_attribute("data-link", "lost")
    expect(page.locator("#link-state")).to_contain_text("connection lost")
    keep(page, "lost")
    ask(fake, "One rule: be brief. " * 20)

    httpx.post(f"{fake}/test/restore")

    expect(page.locator("body")).to_have_attribute("data-link", "live")
    expect(page.locator(".lane-list .lane")).to_have_count(2)


def test_a_type_of_event_that_it_does_not_know_stops_nothing(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    notes: list[str] = []
    page.on("console", lambda message: notes.append(message.text))
    for _ in range(3):
        httpx.post(f"{fake}/test/events", json=[{"type": "blocks.melted", "data": {}}])
    ask(fake, "One rule: be brief. " * 20)

    expect(page.locator(".lane-list .lane")).to_have_count(1)
    assert len([note for note in notes if "blocks.melted" in note]) == 1


@pytest.mark.parametrize("still", [False, True], ids=["moving", "still"])
def test_births_reuses_and_evictions_are_seen(
    fake: str, open_page: OpenPage, keep: Callable[..., None], still: bool
) -> None:
    page = open_page(fake, still=still)
    ask(fake, "One rule: be brief and say what you know. " * 60)
    ask(fake, "One rule: be brief and say what you know. " * 60)
    stage = page.locator("#cache-stage")
    expect(page.locator(".lane-list .lane").first).to_have_attribute("data-warmth", "warm")
    lane = page.locator(".lane-list .lane").first
    resident = int(stage.get_attribute("data-resident") or 0)
    assert resident == int(lane.get_attribute("data-prompt-blocks") or 0) - 1
    (columns,) = snapshot_blocks(page)
    gone = columns[-6:]
    publish(fake, "blocks.removed", hash=gone, copies=[0] * 6)

    expect(stage).to_have_attribute("data-resident", str(resident - 6))
    red = page.evaluate(
        """() => {
          const canvas = document.getElementById("cache-overlay");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let red = 0;
          for (let i = 0; i < data.length; i += 4) if (data[i] > 180 && data[i + 2] < 90 && data[i + 3] > 60) red += 1;
          return red;
        }"""
    )
    assert red > 100
    keep(page, f"evicted-{'still' if still else 'moving'}")


def snapshot_blocks(page: Page) -> list[list[str]]:
    """The hashes of a fresh snapshot, as another client gets it."""
    hashes: list[list[str]] = page.evaluate(
        """() => new Promise((resolve) => {
          const socket = new WebSocket(new URL("live", document.baseURI.replace("http", "ws")));
          socket.onmessage = ({ data }) => {
            const event = JSON.parse(data);
            if (event.type !== "snapshot") return;
            socket.close();
            resolve(event.data.blocks.map(({ hash }) => hash));
          };
        })"""
    )
    return hashes


def test_sixty_five_thousand_blocks_are_drawn(fake: str, open_page: OpenPage, keep: Callable[..., None]) -> None:
    page = open_page(fake)
    publish_server(fake, num_gpu_blocks=65_537)
    for first in range(0, 65_536, 8192):
        hashes = [f"{n:016x}" for n in range(first, first + 8192)]
        publish(fake, "blocks.stored", hash=hashes, parent=None, depth=0, copies=[1] * 8192, request=None)

    expect(page.locator("#cache-stage")).to_have_attribute("data-resident", "65536", timeout=30_000)
    expect(page.locator("#figure-pool .big")).to_contain_text("65,536")
    keep(page, "65536-blocks")
