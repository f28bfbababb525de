"""The page on the real demo: what a person sees is what the dashboard's API says."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage

pytestmark = pytest.mark.browser

SCREENS = ((1280, 800), (1920, 1080), (390, 844), (360, 740))
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script><b>bold</b> \u202e\x07 ${alert(3)} &amp; "


@pytest.fixture
def page(demo: str, open_page: OpenPage) -> Page:
    """The demo's page, its scenario stopped."""
    opened = open_page(demo)
    opened.locator("h1").click()
    expect(opened.locator("#scenario")).to_have_attribute("data-ended", "")
    return opened


def fresh_prompt(words: int = 60) -> str:
    """A prompt that no other test has sent, changed at its very front."""
    return f"{uuid.uuid4().hex} " + " ".join(f"Rule {i}: answer politely and briefly." for i in range(words))


def newest(demo: str, count: int) -> list[dict[str, Any]]:
    """The newest records of the API, oldest of them first."""
    answer: dict[str, Any] = httpx.get(f"{demo}/api/requests", params={"limit": count}).json()
    records: list[dict[str, Any]] = answer["requests"]
    return records[::-1]


def send(page: Page, button: str, system: str, question: str = "What now?", requests: int = 1) -> None:
    before = page.locator(".lane-list .lane").count()
    page.fill("#system-prompt", system)
    page.fill("#question", question)
    page.click(button)
    expect(page.locator("#stop")).to_be_hidden(timeout=30_000)
    expect(page.locator("#run-state")).to_contain_text("done")
    expect(page.locator(".lane-list .lane")).to_have_count(min(40, before + requests))
    expect(page.locator('.lane-list .lane[data-outcome="ok"]').first).to_be_visible()
    expect(page.locator("#verdict")).not_to_have_attribute("data-tone", "none")


def test_sent_twice_the_second_reuses_what_the_engine_says(demo: str, page: Page, keep: Callable[..., None]) -> None:
    send(page, "#send-twice", fresh_prompt(), requests=2)

    first, second = newest(demo, 2)
    lane = page.locator(f'.lane[data-request="{second["id"]}"]')
    assert first["cached_tokens"] == 0
    assert second["cached_tokens"] > 0
    assert lane.get_attribute("data-cached-tokens") == str(second["cached_tokens"])
    assert lane.locator(".lane-count").inner_text() == f"{second['reused_blocks']} of {second['prompt_blocks']}"
    assert lane.get_attribute("data-warmth") == "warm"
    assert page.locator(f'.lane[data-request="{first["id"]}"]').get_attribute("data-warmth") == "cold"
    expect(page.locator("#verdict-text")).to_have_text(second["verdict"]["text"])
    assert page.locator("#answer").inner_text().strip() != ""
    assert lane.locator(".ms").inner_text() == f"{second['ttft_ms']:.0f} ms"
    keep(page, "sent-twice")


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_sentence_comes_into_view_by_itself(demo: str, open_page: OpenPage, width: int, height: int) -> None:
    page = open_page(demo, width=width, height=height, still=True)
    page.locator("h1").click()
    expect(page.locator("#scenario")).to_have_attribute("data-ended", "")

    send(page, "#send-twice", fresh_prompt(), requests=2)

    expect(page.locator("#verdict")).to_be_in_viewport(ratio=0.99)


def test_the_first_letter_spoils_the_cache_and_the_last_one_does_not(demo: str, page: Page) -> None:
    prompt = fresh_prompt()
    send(page, "#send", prompt)

    page.click("#change-end")
    send(page, "#send", page.input_value("#system-prompt"))
    page.fill("#system-prompt", prompt)
    page.click("#change-start")
    send(page, "#send", page.input_value("#system-prompt"))

    _, end, start = newest(demo, 3)
    assert end["reused_blocks"] >= end["prompt_blocks"] - 3
    # The chat template's own first words may fill a block before the prompt begins.
    assert start["reused_blocks"] <= 1


def test_a_cold_start_reuses_nothing(demo: str, page: Page) -> None:
    page.check("#cold")
    send(page, "#send-twice", fresh_prompt(), requests=2)

    assert [(record["cold"], record["cached_tokens"]) for record in newest(demo, 2)] == [(True, 0), (True, 0)]


def test_the_strip_and_the_figures_say_what_the_api_says(demo: str, page: Page) -> None:
    send(page, "#send-twice", fresh_prompt(), requests=2)
    state = httpx.get(f"{demo}/api/state").json()["data"]
    (server,) = state["servers"]

    chips = page.locator("#chips")
    expect(chips).to_contain_text(server["version"])
    expect(chips).to_contain_text(server["models"][0])
    expect(chips).to_contain_text("5,306 blocks of 16")
    expect(chips).to_contain_text("embedded engine: exact block accounting, modelled timing")
    resident = sum(sum(columns["copies"]) for columns in state["blocks"])
    expect(page.locator("#cache-stage")).to_have_attribute("data-resident", str(resident))
    expect(page.locator("#figure-pool .big")).to_contain_text("of 5,305 blocks cached")
    expect(page.locator("#figure-hit-rate .source")).to_contain_text("since the server started · its counters")


def test_pointing_at_a_block_shows_its_text_and_who_shares_it(demo: str, page: Page, keep: Callable[..., None]) -> None:
    send(page, "#send-twice", fresh_prompt(), requests=2)
    first, second = (record["id"].rpartition("-")[2] for record in newest(demo, 2))

    cells = page.locator(".lane-list .lane .lane-cells").first
    cells.hover(position={"x": 40, "y": 10})
    card = page.locator("#block-card")
    expect(card).to_contain_text("reused from the cache")
    expect(card.locator(".block-text")).to_contain_text(re.compile(r"[a-zA-Z]{3}"))
    expect(card).to_contain_text(f"2 requests: #{int(second)} #{int(first)}")
    keep(page, "block-card")
    page.mouse.move(0, 0)
    expect(card).to_be_hidden()


def test_the_keyboard_alone_is_enough(demo: str, page: Page) -> None:
    page.fill("#system-prompt", fresh_prompt())
    page.focus("#question")
    page.keyboard.press("Enter")
    expect(page.locator("#run-state")).to_contain_text("done", timeout=30_000)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "send"

    lane = page.locator(".lane-list .lane").first
    assert lane.get_attribute("tabindex") == "0"
    lane.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#block-card")).to_contain_text("Block 1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#block-card")).to_contain_text("Block 2")
    page.keyboard.press("Escape")
    expect(page.locator("#block-card")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.classList.contains('lane')")
    page.focus("#cache-stage")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#block-card")).to_be_visible()


def test_markup_in_a_prompt_is_text_everywhere(demo: str, page: Page) -> None:
    send(page, "#send-twice", MARKUP + fresh_prompt(), question=MARKUP + "?", requests=2)

    expect(page.locator(".lane-list .lane .lane-name").first).to_contain_text("<img src=x")
    expect(page.locator("#run-state")).to_contain_text("<script>alert(2)</script>")
    cells = page.locator(".lane-list .lane .lane-cells").first
    cells.hover(position={"x": 4, "y": 10})
    expect(page.locator("#block-card .block-text")).to_contain_text(re.compile(r"[<>=&]|alert|bold"))
    page.locator("#chart-ttft").scroll_into_view_if_needed()
    points = page.locator("#chart-ttft .point")
    points.last.hover(force=True)
    assert page.locator("main img, main b[onerror], #answer *, .lane-name img, svg a").count() == 0


def test_the_scenario_says_what_it_does_and_ends_by_itself_being_clicked(
    demo: str, open_page: OpenPage, keep: Callable[..., None]
) -> None:
    page = open_page(demo)
    httpx.post(f"{demo}/api/scenario/start")
    expect(page.locator("#scenario-count")).to_contain_text(re.compile(r"Demo, step \d of \d"))
    expect(page.locator("#scenario-caption")).not_to_be_empty()
    keep(page, "scenario")

    page.locator("#figure-pool").click()

    expect(page.locator("#scenario")).to_have_attribute("data-ended", "")
    expect(page.locator("#scenario-stop")).to_have_text("Play the demo again")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_every_screen_in_both_themes(
    demo: str, open_page: OpenPage, keep: Callable[..., None], dark: bool
) -> None:
    page = open_page(demo, dark=dark)
    page.locator("h1").click()
    expect(page.locator("#cache-plot .heatmaplayer")).to_be_attached()
    assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")

    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        plot = page.locator("#cache-plot svg").first
        expect(plot).to_have_attribute("width", str(page.locator("#cache-stage").evaluate("node => node.clientWidth")))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        keep(page, f"{width}-{'dark' if dark else 'light'}")


def test_the_theme_switch_holds_over_a_reload(demo: str, page: Page) -> None:
    page.click("#theme-switch")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    page.locator("body[data-link=live]").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
