"""Why a prompt hit or missed, on the real demo: the ruler while typing, the microscope, causes, fix and resend, and the
prompt doctor.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .axe import grave_faults
from .conftest import OpenPage
from .test_page_words import english_left

pytestmark = pytest.mark.browser

RULES = "\n".join(f"{n}. Answer in the customer's language, and never promise a day of delivery." for n in range(1, 25))
NUMBERS = re.compile(r"(\d[\d,]*)")


def at(clock: str, *, rules: str = RULES) -> str:
    return f"It is {clock} now.\n{rules}"


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """The real demo answers at its own pace."""
    expect.set_options(timeout=15_000)
    yield
    expect.set_options(timeout=5_000)


def numbers(text: str | None) -> list[int]:
    return [int(found.replace(",", "")) for found in NUMBERS.findall(text or "")]


@pytest.fixture
def page(demo: str, open_page: OpenPage) -> Page:
    """The demo's page with its scenario stopped."""
    opened = open_page(demo, still=True)
    assert opened.request.post(f"{demo}/api/scenario/stop").ok
    expect(opened.locator("#scenario-stop")).not_to_have_text("Stop and try it yourself", timeout=20_000)
    return opened


def forecast(page: Page, system: str) -> str:
    """What is said of `system` once it has been asked about."""
    page.fill("#system-prompt", system)
    root = page.locator("#forecast")
    expect(root).to_have_attribute("data-phase", "done")
    expect(root).not_to_have_attribute("data-stale", "")
    return page.locator("#forecast-reuse").text_content() or ""


def send(page: Page, system: str) -> str:
    """Sends `system` and answers the request's id once its verdict is there."""
    before = page.locator("#verdict").get_attribute("data-request")
    forecast(page, system)
    page.click("#send")
    expect(page.locator("#verdict")).not_to_have_attribute("data-request", before or "none")
    expect(page.locator("#verdict")).to_have_attribute("data-request", re.compile("."))
    expect(page.locator("#verdict-grade")).not_to_be_empty()
    return page.locator("#verdict").get_attribute("data-request") or ""


def test_the_forecast_holds_and_is_graded(page: Page, keep: Callable[[Page, str], None]) -> None:
    unseen = at("07:01:00")
    assert forecast(page, unseen).startswith("Nothing of it can be reused")
    send(page, unseen)
    assert page.locator("#verdict-grade").text_content() == "✓ Forecast 0 cached tokens, came 0."
    # Its blocks are there now: the same text is asked about once more, without a key being pressed.
    said = page.locator("#forecast-reuse")
    expect(said).to_contain_text("would be reused")
    reused, blocks, cached, tokens = numbers(said.text_content())
    assert (reused, cached) == (blocks - 1, (blocks - 1) * 16)
    strip = page.locator("#forecast-strip i")
    assert [node.get_attribute("data-kind") for node in strip.all()] == ["reused", "tail"]
    keep(page, "ruler")
    page.click("#send")
    expect(page.locator("#verdict-grade")).to_contain_text(f"✓ Forecast {cached} cached tokens, came {cached}.")
    assert tokens > cached


def test_block_borders_stand_behind_the_words(page: Page) -> None:
    text = "客服助手 👩\u200d💻 مرحبا بك. " * 30
    forecast(page, text)
    spans = page.locator("#system-mirror span")
    assert "".join(spans.all_text_contents()) == text
    kinds = {node.get_attribute("data-kind") for node in spans.all()}
    assert kinds == {"computed"} or kinds == {"computed", "tail"}
    assert spans.count() == numbers(page.locator("#forecast-reuse").text_content())[1] - 1
    same = page.evaluate(
        """() => {
          const [field, mirror] = ["system-prompt", "system-mirror"].map((id) => document.getElementById(id));
          return field.scrollHeight === mirror.scrollHeight && field.clientWidth === mirror.clientWidth;
        }"""
    )
    assert same, "the mirror's lines break where the text area's do"


def test_only_the_newest_text_is_asked_about_and_a_huge_one_not_at_all(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "api/forecast" in request.url else None)
    page.locator("#system-prompt").press_sequentially("One two three four", delay=10)
    expect(page.locator("#forecast")).to_have_attribute("data-phase", "done")
    assert 1 <= len(asked) <= 3
    page.fill("#system-prompt", "word " * 50_000)
    expect(page.locator("#forecast-reuse")).to_contain_text("longer than 200,000 characters")
    expect(page.locator("#forecast-strip")).to_be_hidden()
    expect(page.locator("#system-mirror span")).to_have_count(0)
    page.fill("#system-prompt", "Short again.")
    expect(page.locator("#forecast-strip")).to_be_visible()


def test_the_microscope_shows_the_first_token_that_differs(page: Page, keep: Callable[[Page, str], None]) -> None:
    send(page, at("14:03:22"))
    request = send(page, at("14:03:29"))
    page.click("#verdict-open")
    scope = page.locator("#microscope")
    expect(page.locator("#microscope-body")).to_be_visible()
    said = page.locator("#microscope-difference")
    expect(said).to_contain_text("in the system prompt")
    first = page.locator("#microscope [data-place=first]")
    expect(first).to_have_count(2)
    here, there = first.all_text_contents()
    assert (here, there) == ("≠9", "≠2")
    answer = page.request.get(f"{page.url.split('#')[0]}api/requests/{request}/comparison").json()
    assert numbers(said.text_content())[:2] == [answer["common_tokens"], answer["common_tokens"] + 1]
    assert numbers(page.locator("#microscope-recomputed").text_content())[0] == answer["recomputed"]["tokens"]
    expect(page.locator("#microscope-verdict")).not_to_be_empty()
    keep(page, "microscope")
    assert grave_faults(page) == []
    page.keyboard.press("Escape")
    expect(scope).to_be_hidden()
    expect(page.locator("#verdict-open")).to_be_focused()


def test_the_microscope_opens_from_a_lane_and_by_keys(page: Page) -> None:
    send(page, at("15:00:00"))
    title = page.locator("#microscope-title")
    lane = page.locator(".lane-list .lane").first
    lane.click()
    expect(title).to_be_visible()
    page.keyboard.press("Escape")
    lane.focus()
    page.keyboard.press("Enter")
    expect(title).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("y")
    expect(title).to_be_visible()
    expect(page.locator("#microscope-here-blocks .token").first).to_be_visible()


def test_a_long_prompt_is_looked_at_in_windows(page: Page) -> None:
    long = "The depot keeps a parcel for seven days. " * 1200
    for end in ("Alpha.", "Omega."):
        page.fill("#system-prompt", long + end)
        page.click("#send")
        expect(page.locator("#run-state")).to_contain_text("done", timeout=40_000)
    expect(page.locator("#verdict-open")).to_be_visible()
    page.click("#verdict-open")
    expect(page.locator("#microscope-body")).to_be_visible()
    tokens = page.locator("#microscope .token")
    assert tokens.count() < 600
    shown = page.locator("#microscope-range")
    whole = numbers(shown.text_content())[2]
    assert whole > 10_000
    expect(page.locator("#microscope-fold")).to_contain_text("the same in both")
    page.locator("#microscope-slider").fill("0")
    expect(shown).to_have_text(re.compile("^tokens 1 to "))
    expect(page.locator("#microscope-earlier")).to_be_disabled()
    page.click("#microscope-later")
    expect(shown).not_to_have_text(re.compile("^tokens 1 to "))
    assert tokens.count() < 600
    page.click("#microscope-difference-button")
    expect(page.locator("#microscope [data-place=first]")).to_have_count(2)


def test_every_cause_has_an_explanation_with_an_address(page: Page, demo: str) -> None:
    causes = page.request.get(f"{demo}/api/causes").json()["causes"]
    send(page, at("16:00:00"))
    page.locator("#verdict-causes a").first.click()
    expect(page.locator("#causes")).to_be_visible()
    for cause in causes:
        expect(page.locator(f"#causes #{cause['anchor']} h3")).not_to_be_empty()
    assert page.locator("#causes .term").count() == len(causes)
    assert grave_faults(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("#causes")).to_be_hidden()
    page.goto(f"{demo}/#why-evicted")
    page.reload()
    expect(page.locator("#why-evicted")).to_be_in_viewport()


def test_fix_and_resend_measures_the_gain(page: Page, keep: Callable[[Page, str], None]) -> None:
    send(page, at("09:14:03"))
    send(page, at("09:15:41"))
    hint = page.locator("#verdict-fix")
    expect(hint).to_contain_text("A clock time keeps it from sharing: 09:15:41")
    page.click("#verdict-fix-open")
    dialog = page.locator("#fix")
    expect(dialog.locator("mark")).to_have_text(["09:14:03", "09:15:41"])
    expect(page.locator("#fix-diff [data-kind=removed]")).to_have_text(["It is 09:15:41 now."])
    expect(page.locator("#fix-diff [data-kind=added]").last).to_have_text("It is 09:15:41 now.")
    expect(page.locator("#fix-changes")).not_to_be_empty()
    page.click("#fix-send")
    expect(page.locator("#fix-gain")).to_contain_text("cached tokens instead of")
    as_is, rewritten = (numbers(page.locator(f"#fix-{row} td").first.text_content()) for row in ("asIs", "rewritten"))
    assert as_is[0] < 32
    assert rewritten[0] > rewritten[1] - 64, "all but the end is shared"
    keep(page, "fix-and-resend")
    assert grave_faults(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_the_prompt_doctor_examines_what_is_pasted_or_dropped(
    page: Page, tmp_path: Path, keep: Callable[[Page, str], None]
) -> None:
    page.click("#prompts-example")
    expect(page.locator("#prompts-what")).to_have_text("3 prompts")
    page.click("#prompts-examine")
    expect(page.locator("#prompts-now")).to_contain_text("would be found cached")
    expect(page.locator("#prompts-breakers li h3")).to_have_text(["1. A clock time"])
    fixed = numbers(page.locator("#prompts-fixed").text_content())[0]
    assert fixed > numbers(page.locator("#prompts-now").text_content())[1]
    page.locator("#prompts").scroll_into_view_if_needed()
    keep(page, "prompt-doctor")
    assert grave_faults(page) == []
    page.locator("#prompts-breakers button").click()
    expect(page.locator("#fix-title")).to_have_text("A clock time")
    expect(page.locator("#fix mark")).to_have_text(["09:14:03", "09:15:41"])
    page.keyboard.press("Escape")

    request = {"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": "Where is it?"}]}
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join([json.dumps(request), json.dumps({"body": request}), "no request"]))
    page.set_input_files("#prompts-file", file)
    page.click("#prompts-examine")
    expect(page.locator("#prompts-fixed")).to_have_text("Nothing known breaks their sharing.")
    expect(page.locator("#prompts-unreadable")).to_contain_text("1 line is no request. Line 3")


def test_an_examination_can_be_cancelled(page: Page, tmp_path: Path) -> None:
    request = json.dumps({"messages": [{"role": "user", "content": RULES}]})
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join([request] * 3000))
    page.set_input_files("#prompts-file", file)
    page.click("#prompts-examine")
    expect(page.locator("#prompts-stage")).to_contain_text("of 3,000 requests")
    page.click("#prompts-cancel")
    expect(page.locator("#prompts-said")).to_have_text("Cancelled.")
    expect(page.locator("#prompts-examine")).to_be_enabled()


def test_all_of_it_speaks_chinese_and_fits_a_phone(
    demo: str, open_page: OpenPage, keep: Callable[[Page, str], None]
) -> None:
    page = open_page(demo, still=True, locale="zh-CN", width=390, height=844, dark=True)
    send(page, at("20:01:00"))
    send(page, at("20:02:30"))
    expect(page.locator("#verdict-fix")).to_be_visible()
    for opener, dialog in (("#verdict-open", "#microscope"), ("#verdict-fix-open", "#fix")):
        page.click(opener)
        expect(page.locator(f"{dialog} h2")).to_be_visible()
        spills = "node => node.scrollWidth > node.clientWidth"
        assert not page.locator(dialog).evaluate(spills), dialog
        keep(page, f"phone{dialog.replace('#', '-')}")
        page.keyboard.press("Escape")
    # What is quoted of prompts is in their own language.
    quoted = "Answer in|It is|now\\.|customer|never promise|Where is|NW-"
    left = [text for text in english_left(page) if not re.search(quoted, text)]
    assert left == []
