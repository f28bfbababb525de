"""The page's words in a real browser: both languages on every view, glossary, info buttons, tour, paper and phones."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage
from .test_page_states import ask, golden, publish, publish_server

pytestmark = pytest.mark.browser

PROMPT = "One rule: be brief and say what you know. " * 60
CHINESE = re.compile("[\u4e00-\u9fff]")
# What stays as it is in every language: names, units, numbers, flags, keys.
NAMES = re.compile(
    r"PrefixScope|[a-z0-9.-]*qwen[a-z0-9.-]*|vLLM|[a-z]+:[a-z_]+|usage|tokens?|rank|EN\b|Enter|Esc|TTFT|ITL|KV|K\b|V\b|ms\b|s\b"
    r"|--[a-z-]+|CSV|JSON|PNG|SVG|p\d+\b|#?r?-?\d+",
    re.IGNORECASE,
)
VISIBLE_TEXTS = """() => {
  // Words of people and servers aren't the page's.
  const others = `textarea, script, style, noscript, code, kbd, svg, option, datalist, .lane-name, .chips, #answer,
    #language-switch, .block-text, .verdict, #scenario-caption`;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const { parentElement: parent, data } = walker.currentNode;
    if (data.trim() === "" || parent.closest(others) || !parent.checkVisibility()) continue;
    found.push(data.trim());
  }
  return found;
}"""


def english_left(page: Page) -> list[str]:
    """Visible texts in Latin letters without a Chinese one, but for names."""
    texts: list[str] = page.evaluate(VISIBLE_TEXTS)
    return [text for text in texts if not CHINESE.search(text) and re.search("[A-Za-z]{2}", NAMES.sub("", text))]


def fill(fake: str, page: Page) -> None:
    for system in (PROMPT, PROMPT, f"x{PROMPT}"):
        ask(fake, system)
    expect(page.locator(".lane-list .lane")).to_have_count(3)


def test_every_view_speaks_both_languages_and_switches_without_a_reload(
    fake: str, open_page: OpenPage, keep: Callable[..., None]
) -> None:
    page = open_page(fake, still=True)
    fill(fake, page)
    page.evaluate("window.marked = true")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("#lanes-title")).to_have_text("Requests, block by block")

    page.click("#language-switch")
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(page.locator("#lanes-title")).to_have_text("逐块查看请求")
    expect(page.locator("#figure-pool")).to_contain_text("来自 KV 事件")
    expect(page.locator(".lane-list .lane").first).to_have_attribute("aria-label", re.compile("^请求 #3"))
    expect(page.locator("#tree-stage")).to_have_attribute("aria-label", re.compile("^前缀树"))
    for tab in page.locator("[role=tab]").all():
        tab.click()
        assert english_left(page) == [], tab.text_content()
    keep(page, "chinese")

    page.keyboard.press("l")
    expect(page.locator("#lanes-title")).to_have_text("Requests, block by block")
    assert [text for text in page.evaluate(VISIBLE_TEXTS) if CHINESE.search(text)] == []
    assert page.evaluate("window.marked")


def test_notices_keys_glossary_and_tour_speak_chinese(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, still=True, locale="zh-CN")
    stream = {**golden("server.changed")["data"]["server"]["streams"][0], "state": "off", "coverage": "none"}
    publish_server(fake, streams=[{**stream, "message": None}], usage_details=False, prefix_caching=False)
    expect(page.locator(".notice")).to_have_count(3)
    page.keyboard.press("?")
    assert english_left(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    expect(page.locator("#glossary")).to_be_visible()
    assert english_left(page) == []
    page.keyboard.press("Escape")
    for button in page.locator("[data-info]:visible").all():
        button.click()
        expect(page.locator("#info")).to_be_visible()
        assert english_left(page) == [], button.get_attribute("data-info")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator("#tour-number")).to_contain_text("ms")
    expect(page.locator("#system-prompt")).to_have_value(re.compile("^窗口"))
    assert english_left(page) == []


def test_the_language_is_remembered_and_the_browser_decides_at_first(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, locale="zh-CN")
    expect(page.locator("#try-title")).to_have_text("动手试试")
    page.click("#language-switch")
    page.reload()
    expect(page.locator("#try-title")).to_have_text("Try it")


def test_an_untouched_preset_follows_the_language_and_typed_text_stays(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    system = page.locator("#system-prompt")
    page.click("#language-switch")
    expect(system).to_have_value(re.compile("^你是"))
    system.fill("Mine.")
    page.click("#language-switch")
    expect(page.locator("#try-title")).to_have_text("Try it")
    expect(system).to_have_value("Mine.")


def test_a_verdict_is_shown_in_the_page_s_language_where_it_has_one(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, locale="zh-CN", still=True)
    page.click("#send")
    verdict = page.locator("#verdict")
    expect(page.locator("#verdict-text")).to_contain_text("Reused 0 of")  # what the toy itself says comes before
    record = golden("request.finished")["data"]["record"]
    said = {**record["verdict"], "translations": {"zh": ["复用了 6 个块中的 4 个。", "其余重新计算。"]}}
    publish(fake, "request.finished", record={**record, "id": verdict.get_attribute("data-request"), "verdict": said})
    expect(page.locator("#verdict-text")).to_have_text("复用了 6 个块中的 4 个。")
    expect(page.locator("#verdict-detail")).to_have_text("其余重新计算。")
    page.click("#language-switch")
    expect(page.locator("#verdict-text")).to_have_text(record["verdict"]["text"])


def test_an_info_button_explains_its_number_from_the_keyboard(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, still=True)
    button = page.locator("[data-info=hit-rate]").first
    expect(button).to_have_attribute("aria-label", "About: Hit rate")
    button.focus()
    page.keyboard.press("Enter")
    panel = page.locator("#info")
    for word in ("Window", "Source", "Formula", "vllm:prefix_cache_hits"):
        expect(panel).to_contain_text(word)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(button).to_be_focused()
    button.click()
    expect(panel).to_be_visible()
    button.click()
    expect(panel).to_be_hidden()
    button.click()
    panel.get_by_role("link", name="Cached tokens").click()
    expect(panel).to_be_hidden()
    expect(page.locator("#glossary-cached-tokens")).to_be_in_viewport()


def test_a_term_has_an_address(fake: str, open_page: OpenPage) -> None:
    page = open_page(f"{fake}/#glossary-eviction", still=True)
    expect(page.locator("#glossary-eviction")).to_be_in_viewport()
    expect(page.locator("#glossary-eviction")).to_have_attribute("data-chosen", "")
    page.keyboard.press("Escape")
    expect(page.locator("#glossary")).to_be_hidden()
    assert "#" not in page.url
    page.click("#glossary-button")
    expect(page.locator("#glossary")).to_be_visible()


def test_the_tour_goes_by_the_presenter_s_keys(fake: str, open_page: OpenPage, keep: Callable[..., None]) -> None:
    page = open_page(fake, still=True)
    tour, number = page.locator("#tour"), page.locator("#tour-number")
    for step, shown in (
        ("cold", r"^[\d.]+ m?s$"),
        ("warm", r"^[\d.]+ m?s$"),
        ("front", "^0 of"),
        ("end", "^[1-9][0-9]* of"),
    ):
        page.keyboard.press("n")
        expect(tour).to_have_attribute("data-step", step)
        expect(tour).not_to_have_attribute("data-running", "")
        expect(number).to_have_text(re.compile(shown))
    keep(page, "tour")
    expect(page.locator(".lane-list .lane")).to_have_count(4)
    page.keyboard.press("b")
    expect(tour).to_have_attribute("data-step", "front")
    expect(number).to_have_text(re.compile("^0 of"))
    expect(tour).to_be_in_viewport()
    page.keyboard.press("0")
    expect(tour).to_have_attribute("data-step", "cold")
    expect(page.locator(".lane-list .lane")).to_have_count(5)
    page.click("#tour-close")
    expect(tour).to_be_hidden()


def test_the_main_path_needs_no_mouse(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, still=True)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("t")
    expect(page.locator("#system-prompt")).to_be_focused()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(PROMPT)
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#send-twice")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#verdict")).to_have_attribute("data-tone", "warm")
    page.locator("#send-twice").evaluate("node => node.blur()")
    page.keyboard.press("r")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#block-card")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#block-card")).to_be_hidden()
    for key, stage in (("x", "#tree-stage"), ("c", "#cache-stage")):
        page.keyboard.press(key)
        expect(page.locator(stage)).to_be_focused()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#block-card")).to_be_visible()
        page.keyboard.press("Escape")


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_nothing_is_wider_than_a_phone(fake: str, open_page: OpenPage, keep: Callable[..., None], locale: str) -> None:
    page = open_page(fake, width=360, height=740, still=True, locale=locale)
    fill(fake, page)
    stream = {**golden("server.changed")["data"]["server"]["streams"][0], "state": "off", "coverage": "none"}
    publish_server(fake, streams=[stream], usage_details=False)
    expect(page.locator(".notice").first).to_be_visible()
    page.click("#tour-start")
    expect(page.locator("#tour-number")).to_contain_text("ms")
    wide = """() => [...document.querySelectorAll("body *")].filter((node) => node.checkVisibility()
      && node.getBoundingClientRect().right > innerWidth + 1 && !node.closest("svg, .tabs, [data-scrolls], table"))
      .map((node) => node.id || node.className)"""
    for tab in page.locator("[role=tab]").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth") == 360, page.evaluate(wide)
    keep(page, f"phone-{locale}")
    page.click("#glossary-button")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_paper_is_light_and_has_no_buttons(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, dark=True, still=True)
    fill(fake, page)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    expect(page.locator("#lane-list")).to_be_visible()
    for hidden in ("#composer", "#keys-button", "#language-switch", ".info >> nth=0"):
        expect(page.locator(hidden)).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_marks_that_carry_a_meaning_keep_their_colours(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake, forced=True, still=True)
    fill(fake, page)
    for mark in (".swatch.reused", ".swatch.cell-many", "#figure-hit-rate .meter i"):
        colour = page.locator(mark).first.evaluate("node => getComputedStyle(node).backgroundColor")
        assert colour not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)", "rgb(0, 0, 0)"), mark
