"""The prefix tree, the keys and the two axes of the first-token chart, on a stand-in dashboard."""

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage
from .test_page_states import ask, golden, publish, snapshot_blocks

pytestmark = pytest.mark.browser

PROMPT = "One rule: be brief and say what you know. " * 30


@pytest.fixture
def page(fake: str, open_page: OpenPage) -> Page:
    """Two prompts that part near their end, and one that shares nothing."""
    opened = open_page(fake)
    ask(fake, PROMPT, "What is it? " * 12)
    ask(fake, PROMPT, "Who was it? " * 12)
    ask(fake, f"Another beginning. {PROMPT}")
    expect(opened.locator("#tree-stage")).to_have_attribute("data-chains", "3")
    return opened


def test_the_tree_stands_on_the_axis_of_the_lanes(page: Page, keep: Callable[..., None]) -> None:
    expect(page.locator("#tree-stage")).to_have_attribute("data-runs", "4")
    expect(page.locator("#tree-names li").first).to_have_text("2 requests")
    expect(page.locator("#tree-stage")).to_have_attribute("aria-label", re.compile("3 chains in 2 trees.* shared by 2"))
    places = page.evaluate(
        """() => ["#lane-ticks", ".lane-cells", "#tree-stage"].map((selector) => {
          const { left, width } = document.querySelector(selector).getBoundingClientRect();
          return [Math.round(left), Math.round(width)];
        })"""
    )
    assert places[0] == places[1] == places[2]
    keep(page, "tree")


def test_a_block_of_the_tree_lights_its_places_and_shows_its_card(page: Page, keep: Callable[..., None]) -> None:
    page.locator("#tree-stage").hover(position={"x": 4, "y": 12})

    card = page.locator("#block-card")
    expect(card).to_contain_text("Block 1")
    expect(card.locator(".block-text")).to_contain_text("One rule")
    expect(card).to_contain_text("2 requests: #2 #1")
    keep(page, "tree-hover")
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()


def test_a_click_zooms_in_and_the_breadcrumb_leads_out(page: Page, keep: Callable[..., None]) -> None:
    stage = page.locator("#tree-stage")
    stage.click(position={"x": 4, "y": 12})

    crumbs = page.locator("#tree-crumbs")
    expect(crumbs).to_contain_text("All chains")
    expect(crumbs.locator("[aria-current]")).to_contain_text("blocks 1–")
    expect(stage).to_have_attribute("data-chains", "2")
    expect(page.locator("#tree-foot")).to_contain_text("Zoomed in on blocks 1–")
    keep(page, "tree-zoomed")

    crumbs.get_by_role("button", name="All chains").click()
    expect(crumbs).to_be_hidden()
    expect(stage).to_have_attribute("data-chains", "3")


def test_the_tree_works_from_the_keyboard(page: Page) -> None:
    card = page.locator("#block-card")
    page.locator("h1").click()
    page.keyboard.press("x")
    assert page.evaluate("document.activeElement.id") == "tree-stage"
    page.keyboard.press("ArrowDown")
    expect(card).to_contain_text("Block 1")
    page.keyboard.press("ArrowRight")
    expect(card).not_to_contain_text("Block 1,")
    expect(card.locator("h3")).not_to_have_text("Block 1")
    page.keyboard.press("Enter")
    expect(page.locator("#tree-crumbs")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#tree-crumbs")).to_be_hidden()


def test_words_are_asked_for_only_when_wanted(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/blocks/" in request.url else None)
    page.locator("h1").click()
    assert asked == []

    with page.expect_request("**/api/blocks/**"):
        page.click("#tree-words")

    expect(page.locator("#tree-words")).to_have_text("hide words")
    expect(page.locator("#tree-names li").first).to_contain_text("One rule: be brief")
    assert len(asked) <= 16


@pytest.mark.parametrize("still", [False, True], ids=["moving", "still"])
def test_an_evicted_branch_fades_in_red_outline(
    fake: str, open_page: OpenPage, keep: Callable[..., None], still: bool
) -> None:
    page = open_page(fake, still=still)
    ask(fake, PROMPT)
    expect(page.locator("#tree-stage")).to_have_attribute("data-runs", "1")
    (hashes,) = snapshot_blocks(page)
    publish(fake, "blocks.removed", hash=hashes[-6:], copies=[0] * 6)

    expect(page.locator("#tree-stage")).to_have_attribute("data-runs", "2")
    page.wait_for_function(
        """() => {
          const canvas = document.getElementById("tree-canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let red = 0;
          for (let i = 0; i < data.length; i += 4) if (data[i] > 170 && data[i + 2] < 110 && data[i + 3] > 60) red += 1;
          return red > 30;
        }"""
    )
    keep(page, f"tree-evicted-{'still' if still else 'moving'}")
    expect(page.locator("#tree-stage")).to_have_attribute("data-runs", "1", timeout=20_000)


def test_thousands_of_chains_stay_bounded_and_say_what_is_left_out(
    fake: str, open_page: OpenPage, keep: Callable[..., None]
) -> None:
    page = open_page(fake)
    base = golden("blocks.stored")["data"]
    runs = [[f"{n:016x}" for n in range(first, min(5305, first + 3))] for first in range(0, 5305, 3)]
    stored = [
        {**base, "hash": run, "parent": None, "depth": 0, "copies": [1] * len(run), "request": None} for run in runs
    ]
    httpx.post(f"{fake}/test/events", json=[{"type": "blocks.stored", "data": data} for data in stored], timeout=30)

    expect(page.locator("#cache-stage")).to_have_attribute("data-resident", "5305", timeout=30_000)
    expect(page.locator("#tree-foot")).to_contain_text(
        re.compile(r"the largest \d+ of 1,\d{3} chains; [\d,]+ blocks in")
    )
    keep(page, "tree-5305")


def test_the_sheet_lists_the_keys_and_they_do_what_it_says(page: Page, keep: Callable[..., None]) -> None:
    page.locator("h1").click()
    page.keyboard.press("?")
    sheet = page.locator("#keys")
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("switch between light and dark")
    keep(page, "keys")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    before = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") != before

    page.keyboard.press("t")
    page.keyboard.type("d? p")
    assert page.input_value("#system-prompt").count("d? p") == 1
    assert page.evaluate("document.documentElement.hasAttribute('data-projector')") is False


def test_single_keys_can_be_switched_off_for_good(page: Page) -> None:
    page.locator("h1").click()
    page.keyboard.press("?")
    page.uncheck("#keys-on")
    page.keyboard.press("Escape")
    page.reload()
    page.locator("body[data-link=live]").wait_for()
    before = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == before
    page.click("#keys-button")
    expect(page.locator("#keys-on")).not_to_be_checked()


def test_projector_type_fits_and_holds_over_a_reload(page: Page, keep: Callable[..., None]) -> None:
    page.locator("h1").click()
    page.keyboard.press("p")
    page.reload()
    page.locator("body[data-link=live]").wait_for()
    for width, height in ((1280, 720), (1920, 1080), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.locator("#tree-stage")).to_have_attribute("data-chains", "3")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        keep(page, f"projector-{width}")


def test_first_token_against_computed_tokens(page: Page, keep: Callable[..., None]) -> None:
    page.click('[data-ttft-by="computed"]')

    expect(page.locator("#ttft-lead")).to_contain_text("weren't cached")
    expect(page.locator('[data-ttft-by="computed"]')).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#chart-ttft")).to_have_attribute(
        "aria-label", re.compile("3 requests against the prompt tokens each computed")
    )
    expect(page.locator("#chart-ttft .point")).to_have_count(3)
    keep(page, "ttft-computed")
