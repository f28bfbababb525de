"""The numbers: hit rates, forecasts, pool, event stream and doctor, on a stand-in dashboard."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from .axe import grave_faults
from .conftest import OpenPage
from .test_page_states import MARKUP, ask, golden, publish, publish_server

pytestmark = pytest.mark.browser

PROMPT = "One rule: be brief and say what you know. " * 60
FLAG = "--kv-events-config '{\"enable_kv_cache_events\":true}'"
TABS = ("rates", "ttft", "pool", "events", "doctor")
CHARTS = {"": "ttft rate tokens", "rates": "windows sources", "ttft": "against spread", "pool": "pool queue"}


def reading(window: str, basis: str, hit: int, query: int, requests: int | None = None) -> dict[str, Any]:
    ratio = hit / query if query else None
    parts = {"hit_tokens": hit, "query_tokens": query, "ratio": ratio}
    return {"window": window, "basis": basis, **parts, "requests": requests, "since_ms": None}


def stream(**changes: Any) -> dict[str, Any]:
    return {**golden("server.changed")["data"]["server"]["streams"][0], **changes}


def report(**changes: Any) -> dict[str, Any]:
    missing = {
        "code": "kv_events", "status": "missing", "title": "KV events", "text": f"No events come. {MARKUP}",
        "flag": FLAG, "panels": ["The cache", "Prefix tree"], "reason": None, "params": {}, **changes,
    }  # fmt: skip
    good = {**missing, "code": "metrics", "status": "on", "title": "Metrics", "text": "Read.", "flag": None}
    server = golden("server.changed")["data"]["server"]["id"]
    return {
        "status": "missing",
        "servers": [{"server": server, "status": "missing", "version": "0.32.0", "findings": [good, missing]}],
    }


def open_tab(page: Page, tab: str) -> Locator:
    page.click(f"#tab-{tab}")
    panel = page.locator(f"#numbers-{tab}")
    expect(panel).to_be_visible()
    return panel


def rate_cell(page: Page, window: str, basis: str) -> Locator:
    return page.locator(f'#rates-table tr[data-window="{window}"] td[data-basis="{basis}"]')


def sampled(fake: str, **changes: Any) -> None:
    publish(fake, "metrics.sampled", point={**golden("metrics.sampled")["data"]["point"], **changes}, engines={})


def test_every_cell_has_its_parts_or_its_reason(fake: str, open_page: OpenPage, keep: Callable[..., None]) -> None:
    page = open_page(fake)
    publish_server(fake, not_exported=["query_tokens", "hit_tokens"])
    rates = [reading("last_request", "usage", 0, 169, 1), reading("last_minute", "usage", 0, 0, 0)]
    publish(fake, "hit_rate.updated", rates=rates, differences=[])

    expect(rate_cell(page, "last_request", "usage")).to_contain_text("0 %0 of 169 tokens")
    expect(rate_cell(page, "last_minute", "usage")).to_contain_text("—no prompt was looked up")
    expect(rate_cell(page, "lifetime", "counter")).to_contain_text("—not exported by this server")
    expect(rate_cell(page, "last_request", "counter")).to_contain_text("counters don't tell requests apart")
    expect(page.locator("#figure-hit-rate .source")).to_contain_text("not exported by this server")
    keep(page, "numbers-rates")


def test_readings_that_disagree_say_by_how_much_and_why(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    publish(fake, "hit_rate.updated")
    difference = page.locator("[data-difference]")

    expect(difference).to_contain_text("over 1 request: server's counters say 100 tokens more looked up")
    expect(difference).to_contain_text("40 tokens more hit than requests' usage")
    expect(difference).to_contain_text("didn't go through the dashboard")
    expect(page.locator("#glance-said")).to_contain_text("disagree")
    page.click("#language-switch")
    expect(difference).to_contain_text("查找多 100 个 token")

    agreed = [reading("since_mark", basis, 40, 100, 1) for basis in ("counter", "usage")]
    publish(fake, "hit_rate.updated", rates=agreed, differences=[])
    expect(difference).to_have_count(0)
    expect(page.locator("#glance-said")).to_contain_text("一致")


def test_the_mark_is_moved_by_its_button(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    page.click("#mark")

    expect(page.locator("#rates-said")).to_contain_text("The mark was moved to")
    assert httpx.get(f"{fake}/test/marks").json() == 1


def test_a_zero_that_latency_contradicts_is_not_bare(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    notice = {"code": "counter_contradicts_latency", "text": "Sooner.", "params": {"ttft_ratio": 6.9}}
    publish_server(fake, notices=[notice])
    publish(fake, "hit_rate.updated", rates=[reading("lifetime", "counter", 0, 500)], differences=[])

    expect(page.locator("#figure-hit-rate .big")).to_have_text("0 % (?)")
    expect(rate_cell(page, "lifetime", "counter")).to_contain_text("latency says otherwise")
    expect(page.locator("[data-notice=counter_contradicts_latency]")).to_contain_text("Sooner.")


def test_wrong_forecasts_raise_a_banner_and_partial_history_makes_lower_bounds(
    fake: str, open_page: OpenPage, keep: Callable[..., None]
) -> None:
    page = open_page(fake)
    ask(fake, PROMPT)
    record = golden("request.finished")["data"]["record"]
    publish(fake, "request.finished", record={**record, "id": "r-90", "cached_tokens": 0}, block_table=None)
    score = {"scored": 4, "right": 1, "wrong_in_a_row": 3, "banner": True, "dropped_blocks": 0, "unit_tokens": 16}
    publish_server(fake, forecasts={**score, "message": "Wrong."}, streams=[stream(coverage="partial", since_ms=1.0)])
    publish(fake, "hit_rate.updated", rates=[reading("last_request", "inferred", 128, 169, 1)], differences=[])

    expect(page.locator("[data-notice=forecasts]")).to_contain_text("The last 3 forecasts were wrong")
    expect(page.locator("#forecast-score")).to_have_text("1 of 4")
    expect(page.locator("#forecast-note")).to_contain_text("lower bound")
    expect(page.locator('#forecast-run [data-verdict="fewer"]')).to_have_count(1)
    expect(rate_cell(page, "last_request", "inferred")).to_contain_text("≥ 75.7 %")
    expect(page.locator("body")).to_have_attribute("data-coverage", "partial")
    keep(page, "numbers-partial")

    page.locator(".cache .coverage-note button").click()
    expect(page.locator("#numbers-events")).to_be_in_viewport()
    expect(page.locator("#picture-state")).to_contain_text("Partial since")
    publish_server(fake)
    expect(page.locator("body")).not_to_have_attribute("data-coverage", "partial")
    expect(page.locator(".cache .coverage-note")).to_be_hidden()


def test_the_pool_in_three_parts_with_tiers_apart(fake: str, open_page: OpenPage, keep: Callable[..., None]) -> None:
    page = open_page(fake)
    panel = open_tab(page, "pool")
    group = {"group": 0, "kind": "full_attention", "block_size": 32, "blocks": 3, "copies": 3, "walked": False}
    saved = {"shared_blocks": 186, "shared_bytes": 2_000_000, "saved_tokens": 1264}
    publish_server(fake, streams=[stream(groups=[{**group, "medium": "CPU"}])], **saved)
    parts = {"pool_blocks": 1455, "held_blocks": 0, "cached_blocks": 400, "unwritten_blocks": 1055}
    sampled(fake, **parts, kv_usage_ratio=0.0)

    def fact(key: str) -> Locator:
        return panel.locator(f'[data-fact="{key}"]')

    expect(fact("held")).to_contain_text("0")
    expect(fact("cached")).to_contain_text("400")
    expect(fact("unwritten")).to_contain_text("1,055")
    expect(panel.locator("#pool-gauge")).to_contain_text("0 % of blocks allocated to running requests")
    expect(fact("CPU")).to_contain_text("3 blocks")
    expect(fact("shared")).to_contain_text("186 blocks1.9 MiB")
    expect(fact("reused")).to_contain_text("1,264 tokens")
    keep(page, "numbers-pool")

    publish_server(fake, not_exported=["kv_usage_ratio"])
    sampled(fake, kv_usage_ratio=None, held_blocks=None)
    expect(fact("held")).to_contain_text("—not exported by this server")


def test_the_event_stream_in_full_and_its_diagnosis(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    page.locator("[data-chip=events] button").click()
    panel = page.locator("#numbers-events")
    expect(panel).to_be_in_viewport()
    diagnosis = {"code": "wrong_port", "text": f"No publisher. {MARKUP}", "params": {"endpoint": "tcp://x:1"}}
    silent = stream(state="silent", coverage="none", lost=4, batches_per_s=0.5, diagnosis=diagnosis)
    publish_server(fake, streams=[silent, stream(rank=1)], ranks_expected=2, ranks_heard=1)

    first = panel.locator('.stream[data-rank="0"]')
    expect(first.locator(".stream-state")).to_have_text("silent, although prompts flow")
    expect(first.locator('[data-fact="lost"]')).to_have_attribute("data-tone", "wait")
    expect(first.locator('[data-fact="batches_per_s"]')).to_contain_text("0.5 a second")
    expect(first.locator(".trouble")).to_contain_text(MARKUP)
    expect(panel.locator("#picture-ranks")).to_contain_text("1 heard, 2 expected")
    expect(panel.locator(".stream")).to_have_count(2)
    expect(page.locator("#tab-events")).to_have_attribute("data-tone", "bad")
    page.click("#language-switch")
    expect(first.locator(".trouble")).to_contain_text("tcp://x:1 上监听的不是")


def test_the_doctor_hands_out_the_flag(fake: str, open_page: OpenPage, keep: Callable[..., None]) -> None:
    httpx.post(f"{fake}/test/report", json=report())
    page = open_page(fake)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    panel = open_tab(page, "doctor")

    expect(page.locator("#doctor-said")).to_have_text("1 thing is missing; on: 1.")
    finding = panel.locator("[data-finding]").first
    expect(finding).to_contain_text(MARKUP)
    expect(finding).to_contain_text("Turns on: The cache, Prefix tree.")
    finding.get_by_role("button").click()
    expect(finding.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == FLAG
    keep(page, "numbers-doctor")
    page.click("#language-switch")
    expect(finding).to_contain_text("此服务器没有发来 KV 事件。")

    httpx.post(f"{fake}/test/report", json=report(status="on", flag=None))
    page.click("#doctor-again")
    expect(page.locator("#doctor-said")).to_contain_text("没有缺少")


def filled(fake: str) -> None:
    for system in (PROMPT, PROMPT, f"x{PROMPT}"):
        ask(fake, system)
        httpx.post(f"{fake}/test/sample")
    parts = {"pool_blocks": 1455, "held_blocks": 10, "cached_blocks": 400, "unwritten_blocks": 1045}
    for preemptions in (0, 2):
        sampled(fake, at_ms=1_796_050_224_000 + 1000 * preemptions, preemptions=preemptions, waiting=3.0, **parts)


@pytest.mark.parametrize("tab", CHARTS, ids=lambda tab: tab or "live")
def test_charts_hand_out_their_data_and_their_picture(fake: str, open_page: OpenPage, tmp_path: Path, tab: str) -> None:
    page = open_page(fake)
    filled(fake)
    if tab:
        open_tab(page, tab)
    for chart in CHARTS[tab].split():
        section = page.locator(f"section:has(> #chart-{chart})")
        section.scroll_into_view_if_needed()
        expect(section.locator(".main-svg").first).to_be_visible()
        expect(section.locator(".chart-empty")).to_be_hidden()

        rows = list(csv.DictReader(io.StringIO(taken(page, section, "csv", tmp_path).decode())))
        told = json.loads(taken(page, section, "json", tmp_path))
        assert len(rows) == len(told["rows"]) > 0
        assert list(rows[0]) == list(told["rows"][0])
        assert told["window"] and told["source"] and told["formula"]
        assert taken(page, section, "png", tmp_path).startswith(b"\x89PNG")
        picture = taken(page, section, "svg", tmp_path).decode()
        assert picture.startswith("<svg") and "<script" not in picture
        assert str(section.locator("h2, h3").text_content()) in picture
        page.keyboard.press("Escape")


def taken(page: Page, section: Locator, kind: str, folder: Path) -> bytes:
    """What a chart's menu hands out as `kind`."""
    if not section.locator(".menu").is_visible():
        section.locator(".take").click()
    with page.expect_download() as caught:
        section.locator(f'[data-format="{kind}"]').click()
    assert caught.value.suggested_filename.endswith(f".{kind}")
    path = folder / f"taken.{kind}"
    caught.value.save_as(path)
    return path.read_bytes()


def test_a_chart_out_of_sight_is_not_drawn(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    filled(fake)
    expect(page.locator("#chart-ttft .main-svg").first).to_be_attached()
    expect(page.locator("#chart-sources .main-svg")).to_have_count(0)
    expect(page.locator("#chart-pool .main-svg")).to_have_count(0)

    page.locator("#chart-sources").scroll_into_view_if_needed()
    expect(page.locator("#chart-sources .main-svg").first).to_be_attached()
    expect(page.locator("#chart-pool .main-svg")).to_have_count(0)


def test_tabs_go_by_the_keyboard(fake: str, open_page: OpenPage) -> None:
    page = open_page(fake)
    page.focus("#tab-rates")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-ttft")).to_be_focused()
    expect(page.locator("#numbers-ttft")).to_be_visible()
    expect(page.locator("#numbers-rates")).to_be_hidden()
    page.keyboard.press("End")
    expect(page.locator("#tab-doctor")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-rates")).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["wide", "phone"])
def test_no_tab_has_a_grave_fault_or_runs_over(
    fake: str, open_page: OpenPage, keep: Callable[..., None], width: int, dark: bool
) -> None:
    httpx.post(f"{fake}/test/report", json=report())
    page = open_page(fake, width=width, dark=dark, still=True)
    filled(fake)
    group = {"group": 0, "kind": "full_attention", "medium": "GPU", "block_size": 32, "blocks": 3, "copies": 3}
    publish_server(fake, streams=[stream(coverage="partial", groups=[{**group, "walked": True}])])
    publish(fake, "hit_rate.updated")
    for tab in TABS:
        open_tab(page, tab).scroll_into_view_if_needed()
        if tab == "doctor":
            expect(page.locator("[data-finding]")).to_have_count(2)
        keep(page, f"numbers-{tab}-{width}")
        assert grave_faults(page) == [], tab
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), tab
