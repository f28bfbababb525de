"""The page's time on a stand-in dashboard: timeline, replay, pause and slow motion, step by step, redacted mode."""

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from .axe import grave_faults
from .conftest import OpenPage
from .test_page_states import MARKUP, ask, golden, publish

pytestmark = pytest.mark.browser

PROMPT = "One rule: be brief and say what you know. " * 30
SHOWN = """() => JSON.stringify({
  lanes: [...document.querySelectorAll('.lane-list .lane')].map((lane) => [lane.dataset.request, lane.ariaLabel]),
  figures: [...document.querySelectorAll('.figures .big')].map((node) => node.textContent),
  resident: document.getElementById('cache-stage').dataset.resident,
  runs: document.getElementById('tree-stage').dataset.runs,
})"""
CLOCK = re.compile(r"replay, \d\d:\d\d:\d\d")


def lanes(page: Page, count: int) -> None:
    expect(page.locator(".lane-list .lane")).to_have_count(count)


def settle(page: Page, resident: int) -> str:
    """What the page shows once its pictures have caught up with so many blocks."""
    expect(page.locator("#cache-stage")).to_have_attribute("data-resident", str(resident), timeout=20_000)
    page.wait_for_function("() => document.getElementById('tree-stage').dataset.runs !== undefined")
    shown: str = page.evaluate(SHOWN)
    return shown


def resident(page: Page) -> int:
    return int(page.locator("#cache-stage").get_attribute("data-resident") or 0)


def moment_of(page: Page) -> str:
    return page.locator("#timeline-now").inner_text()


def test_the_page_goes_to_a_moment_and_comes_back(fake: str, open_page: OpenPage, keep: Callable[..., None]) -> None:
    page = open_page(fake)
    ask(fake, PROMPT)
    lanes(page, 1)
    expect(page.locator(".lane[data-outcome=ok]")).to_have_count(1)
    blocks = page.evaluate("document.querySelector('.lane-list .lane').dataset.promptBlocks")
    before = settle(page, int(blocks) - 1)
    page.keyboard.press("k")
    expect(page.locator("body")).to_have_attribute("data-time", "replay")
    expect(page.locator("#timeline-now")).to_have_text(CLOCK)
    held = moment_of(page)
    assert settle(page, int(blocks) - 1) == before

    ask(fake, "Something else altogether. " * 40)
    ask(fake, PROMPT, "And why not?")
    assert settle(page, int(blocks) - 1) == before
    assert moment_of(page) == held
    keep(page, "replay")
    assert grave_faults(page) == []

    page.keyboard.press("v")
    expect(page.locator("body")).to_have_attribute("data-time", "live")
    expect(page.locator("#timeline-now")).to_have_text("live")
    lanes(page, 3)
    after = page.evaluate(SHOWN)
    page.keyboard.press("e")
    page.keyboard.press("Home")
    lanes(page, 0)
    page.keyboard.press("End")
    lanes(page, 3)
    page.wait_for_function(f"() => ({SHOWN})() === {after!r}")


def test_the_strip_is_scrubbed_by_mouse_and_touch(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    ask(fake, PROMPT)
    lanes(page, 1)
    track = page.locator("#timeline-track")
    box = track.bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 4, middle)
    page.mouse.down()
    expect(page.locator("#timeline-now")).to_have_text(CLOCK)
    page.mouse.move(box["x"] + 3, middle, steps=4)
    lanes(page, 0)
    page.mouse.up()
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    lanes(page, 0)
    page.click("#timeline-live")
    lanes(page, 1)

    finger = {"pointerType": "touch", "pointerId": 7, "isPrimary": True, "button": 0, "buttons": 1, "clientY": middle}
    page.evaluate("document.getElementById('timeline-track').setPointerCapture = () => {}")
    track.dispatch_event("pointerdown", {**finger, "clientX": box["x"] + 2, "bubbles": True})
    lanes(page, 0)
    expect(track).to_have_css("touch-action", "none")


def test_it_plays_on_and_catches_up_with_what_happens_now(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    ask(fake, PROMPT)
    lanes(page, 1)
    page.keyboard.press("e")
    page.keyboard.press("Home")
    lanes(page, 0)
    for _ in range(5):
        page.keyboard.press(".")
    expect(page.locator("#timeline-speed")).to_have_text("10×")
    page.keyboard.press("k")
    lanes(page, 1)
    expect(page.locator("body")).to_have_attribute("data-time", "live")


def test_animations_stand_still_and_run_slowly(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    ask(fake, PROMPT)
    publish(fake, "blocks.cleared")
    expect(page.locator("#cache-stage")).to_have_attribute("data-resident", "0", timeout=20_000)
    page.locator("[data-time=slow]").click()
    expect(page.locator("#timeline-speed")).to_have_text("0.1×")
    page.locator("[data-time=pause]").click()
    picture = "document.getElementById('cache-overlay').toDataURL()"
    frames = f"""async () => {{
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const first = {picture};
      for (let i = 0; i < 20; i++) await frame();
      return first === {picture};
    }}"""
    expect(page.locator("#timeline-play")).to_have_attribute("aria-label", "play")
    assert page.evaluate(frames)
    held = moment_of(page)
    page.locator("#timeline-play").click()
    expect(page.locator("#timeline")).to_have_attribute("data-playing", "")
    expect(page.locator("#timeline-now")).not_to_have_text(held, timeout=30_000)


def test_sending_looks_at_what_happens_now(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    ask(fake, PROMPT)
    lanes(page, 1)
    page.keyboard.press("k")
    expect(page.locator("body")).to_have_attribute("data-time", "replay")
    page.click("#send")
    expect(page.locator("body")).to_have_attribute("data-time", "live")
    lanes(page, 2)


def test_a_request_step_by_step_with_keys_alone(fake: str, open_page: OpenPage, keep: Callable[..., None]) -> None:
    page = open_page(fake, still=True)
    ask(fake, PROMPT)
    ask(fake, PROMPT, "And why not?")
    expect(page.locator(".lane[data-outcome=ok]")).to_have_count(2)
    page.keyboard.press("s")
    dialog = page.locator("#steps")
    expect(dialog).to_be_visible()
    expect(page.locator("#steps-title")).to_have_text("Request #2, step by step")
    expect(page.locator("#steps-phase")).to_have_text("Cut")
    counter = page.locator("#steps-count")
    steps = int(re.findall(r"\d+", counter.inner_text())[-1])
    seen = []
    for step in range(1, steps + 1):
        expect(counter).to_have_text(re.compile(rf"^Step {step} "))  # the page draws a step with its next frame
        seen.append(page.locator("#steps-phase").inner_text())
        page.keyboard.press("ArrowRight")
    order = [phase for i, phase in enumerate(seen) if i == 0 or phase != seen[i - 1]]
    assert order == ["Cut", "Hash", "Look up", "Touch", "Register", "Compute", "Answer"]
    expect(page.locator("#steps-said")).to_contain_text("tokens were reused")
    expect(page.locator("#steps-honest")).to_contain_text("not a recording of the scheduler")
    expect(page.locator('#steps-cells li[data-phase="touch"]').first).to_be_visible()
    assert grave_faults(page) == []
    keep(page, "steps")
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    expect(page.locator("#steps-count")).to_contain_text("Step 2", timeout=10_000)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_redacted_mode_hides_all_text_and_keeps_shapes(
    fake: str, open_page: OpenPage, keep: Callable[..., None]
) -> None:
    page = open_page(fake)
    ask(fake, PROMPT, "Where is Zanzibar?")
    label = page.locator(".lane-list .lane-name span")
    expect(label).to_have_text("Where is Zanzibar?")
    page.keyboard.press("h")
    expect(label).to_have_text("▪▪▪▪▪ ▪▪ ▪▪▪▪▪▪▪▪▪")
    page.locator("#cache-stage").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#block-card .block-text")).to_contain_text("▪▪▪")
    page.keyboard.press("Escape")
    page.fill("#question", "Where is Zanzibar?")
    expect(page.locator("#question")).to_have_css("-webkit-text-security", "disc")
    page.click("#send")
    expect(page.locator("#answer")).to_contain_text("▪▪")
    expect(page.locator("#run-state")).to_contain_text("▪▪▪▪▪")
    html = page.evaluate("document.body.outerHTML.replaceAll(/<datalist.*?<.datalist>/g, '')")
    assert "Zanzibar" not in html
    assert "Not markup" not in html
    keep(page, "redacted")
    assert grave_faults(page) == []
    page.reload()
    expect(page.locator("#redact-switch")).to_have_attribute("aria-pressed", "true")
    expect(label.first).to_contain_text("▪")
    page.click("#redact-switch")
    expect(label.first).to_contain_text("Zanzibar")


def test_a_dashboard_that_shows_no_text_keeps_the_switch_on(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    hello = golden("hello")
    publish(fake, "hello", **{**hello["data"], "redact": True})
    switch = page.locator("#redact-switch")
    expect(switch).to_have_attribute("aria-pressed", "true")
    switch.click(force=True)
    expect(switch).to_have_attribute("aria-pressed", "true")
    expect(switch).to_have_attribute("aria-disabled", "true")


def test_markup_in_a_replayed_label_is_text(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    record = {**golden("request.finished")["data"]["record"], "label": MARKUP, "error": MARKUP}
    publish(fake, "request.finished", record=record)
    lanes(page, 1)
    page.keyboard.press("k")
    expect(page.locator("#timeline-now")).to_have_text(CLOCK)
    expect(page.locator(".lane-list .lane-name")).to_contain_text(MARKUP)
    page.keyboard.press("s")
    expect(page.locator("#steps")).to_be_visible()
    assert page.locator("main img, #timeline img, #steps img").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_has_it_all_in_its_width(fake: str, open_page: OpenPage, keep: Callable[..., None], dark: bool) -> None:
    page = open_page(fake, width=360, height=740, dark=dark, locale="zh-CN")
    ask(fake, PROMPT)
    lanes(page, 1)
    page.locator("#timeline-play").click()
    expect(page.locator("#timeline-now")).to_contain_text("回放")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    keep(page, f"replay-phone-{'dark' if dark else 'light'}")
    assert grave_faults(page) == []
    page.locator("#timeline-live").click()
    page.locator("#steps-open").click()
    expect(page.locator("#steps-phase")).to_have_text("切分")
    page.locator("#steps-next").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    keep(page, f"steps-phone-{'dark' if dark else 'light'}")


def test_a_cut_link_leaves_the_past_to_be_seen(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    ask(fake, PROMPT)
    lanes(page, 1)
    httpx.post(f"{fake}/test/cut")
    expect(page.locator("body")).to_have_attribute("data-link", "lost")
    page.keyboard.press("e")
    page.keyboard.press("Home")
    lanes(page, 0)
    httpx.post(f"{fake}/test/restore")
    expect(page.locator("body")).to_have_attribute("data-link", "live")
    page.keyboard.press("v")
    lanes(page, 1)
