"""axe-core finds no serious fault in any view or state of the page: light and dark, wide and narrow, both languages."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from .axe import grave_faults
from .conftest import OpenPage
from .test_page_states import ask, golden, publish, publish_server

pytestmark = pytest.mark.browser

PROMPT = "One rule: be brief and say what you know. " * 60


def empty(fake: str, page: Page) -> None:
    expect(page.locator("#lanes-empty")).to_be_visible()


def filled(fake: str, page: Page) -> None:
    """Cold, warm, one that differs, one that failed, one that runs; a block is pointed at."""
    for system in (PROMPT, PROMPT, f"x{PROMPT}", PROMPT[:400]):
        ask(fake, system)
    failed = golden("request.failed")["data"]["record"]
    publish(fake, "request.failed", record={**failed, "id": "r-77"})
    publish(fake, "request.started", record={**golden("request.started")["data"]["record"], "id": "r-78"})
    for _ in range(2):
        httpx.post(f"{fake}/test/sample")
    expect(page.locator(".lane-list .lane")).to_have_count(6)
    page.locator('.lane[data-warmth="warm"] .lane-cells').first.hover(position={"x": 30, "y": 8})
    expect(page.locator("#block-card .block-text")).not_to_have_attribute("data-quiet", "")


def answered(fake: str, page: Page) -> None:
    """The sentence on an answer that the page asked for, with more than one request."""
    page.click("#send-twice")
    expect(page.locator("#verdict")).to_have_attribute("data-tone", "warm")


def answering(fake: str, page: Page) -> None:
    page.fill("#system-prompt", PROMPT * 8)
    page.click("#send-all")
    expect(page.locator("#stop")).to_be_visible()


def refused(fake: str, page: Page) -> None:
    page.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, body='data: {"error": "No."}\n\n'))
    page.click("#send")
    expect(page.locator("#verdict")).to_have_attribute("data-tone", "failed")


def playing(fake: str, page: Page) -> None:
    scenario = {"step": 2, "steps": 4, "caption": "The same again: its blocks are there.", "running": True}
    publish(fake, "scenario.advanced", scenario=scenario)
    expect(page.locator("#scenario-caption")).to_contain_text("The same again")


def played(fake: str, page: Page) -> None:
    publish(
        fake, "scenario.advanced", scenario={"step": 4, "steps": 4, "caption": "The demo is over.", "running": False}
    )
    expect(page.locator("#scenario")).to_have_attribute("data-ended", "")


def in_trouble(fake: str, page: Page) -> None:
    publish_server(fake, state="down", message="Start it with: vllm serve MODEL", models=[])
    expect(page.locator("[data-notice=server]")).to_be_visible()


def lacking(fake: str, page: Page) -> None:
    """Every flag missing: each has a notice."""
    stream = {**golden("server.changed")["data"]["server"]["streams"][0], "state": "off", "coverage": "none"}
    publish_server(fake, streams=[stream], usage_details=False, prefix_caching=False, metrics_state="failed")
    expect(page.locator(".notice")).to_have_count(4)


def lost(fake: str, page: Page) -> None:
    ask(fake, PROMPT)
    expect(page.locator(".lane-list .lane")).to_have_count(1)
    httpx.post(f"{fake}/test/cut")
    expect(page.locator("body")).to_have_attribute("data-link", "lost")


def zoomed(fake: str, page: Page) -> None:
    """A branch of the tree with all the room, its words shown, and one that was just evicted."""
    for system in (PROMPT, f"x{PROMPT}"):
        ask(fake, system)
    expect(page.locator("#tree-stage")).to_have_attribute("data-chains", "2")
    page.click("#tree-words")
    page.locator("#tree-stage").click(position={"x": 12, "y": 8})
    expect(page.locator("#tree-crumbs")).to_be_visible()


def keys(fake: str, page: Page) -> None:
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def projected(fake: str, page: Page) -> None:
    ask(fake, PROMPT)
    page.click('[data-ttft-by="computed"]')
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator("html")).to_have_attribute("data-projector", "")


def explained(fake: str, page: Page) -> None:
    page.click("[data-info=hit-rate]")
    expect(page.locator("#info")).to_be_visible()


def looked_up(fake: str, page: Page) -> None:
    page.keyboard.press("g")
    expect(page.locator("#glossary .term").first).to_be_visible()


def toured(fake: str, page: Page) -> None:
    page.click("#tour-start")
    expect(page.locator("#tour-number")).to_contain_text("ms")


STATES = [
    empty,
    filled,
    answered,
    answering,
    refused,
    playing,
    played,
    in_trouble,
    lacking,
    lost,
    zoomed,
    keys,
    projected,
    explained,
    looked_up,
    toured,
]


LOOKS = pytest.mark.parametrize(("dark", "locale"), [(False, "en-US"), (True, "zh-CN")], ids=["light-en", "dark-zh"])


@LOOKS
@pytest.mark.parametrize("bring", STATES, ids=lambda bring: bring.__name__)
def test_no_state_has_a_grave_fault(
    fake: str, open_page: OpenPage, bring: Callable[[str, Page], None], dark: bool, locale: str
) -> None:
    # Without motion, so that nothing is measured half-faded.
    page = open_page(fake, dark=dark, still=True, locale=locale)
    bring(fake, page)

    assert grave_faults(page) == []


@LOOKS
def test_no_grave_fault_on_a_phone(fake: str, open_page: OpenPage, dark: bool, locale: str) -> None:
    page = open_page(fake, width=360, height=740, dark=dark, still=True, locale=locale)
    ask(fake, PROMPT)
    expect(page.locator(".lane-list .lane")).to_have_count(1)

    assert grave_faults(page) == []


def test_no_grave_fault_on_the_demo(demo: str, open_page: OpenPage) -> None:
    page = open_page(demo, still=True)
    expect(page.locator(".lane-list .lane").first).to_be_visible(timeout=30_000)

    assert grave_faults(page) == []
