"""The page itself in a real Chromium, in front of a real vLLM server: paste a prompt, send twice, read the result."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, chromium, keep, open_page  # noqa: F401
from tests.vllm.conftest import Dashboard, RealVllm
from tests.vllm.test_dashboard import wait_until

pytestmark = [pytest.mark.vllm, pytest.mark.browser]

ANSWER_MS = 120_000


def blocks_held(api: httpx.Client) -> int:
    """Blocks of the pool that hold something, copies counted, as the API says."""
    return sum(sum(columns["copies"]) for columns in api.get("/api/blocks").json()["blocks"])


def test_sent_twice_the_page_says_what_the_server_says(
    small_pool_vllm: RealVllm,
    dashboard_for: Callable[..., Dashboard],
    open_page: OpenPage,  # noqa: F811
    keep: Callable[..., None],  # noqa: F811
) -> None:
    dashboard = dashboard_for(small_pool_vllm)
    page = open_page(dashboard.base_url)
    expect(page.locator("#chips")).to_contain_text("0.32.0")
    expect(page.locator("#chips")).to_contain_text("64 blocks of 32")
    expect(page.locator("#chips")).not_to_contain_text("embedded engine")

    page.fill("#system-prompt", "You are the assistant of a lighthouse keeper. Answer in one short sentence. " * 12)
    page.fill("#question", "What is a lighthouse?")
    page.click("#send-twice")
    expect(page.locator("#stop")).to_be_hidden(timeout=ANSWER_MS)
    expect(page.locator('.lane-list .lane[data-outcome="ok"]')).to_have_count(2, timeout=ANSWER_MS)

    with httpx.Client(base_url=dashboard.base_url) as api:
        second, first = api.get("/api/requests?limit=2").json()["requests"]
        assert first["cached_tokens"] == 0
        assert second["basis"]["cached_tokens"] == "usage"
        assert second["cached_tokens"] == second["predicted_cached_tokens"] > 0
        lane = page.locator(f'.lane[data-request="{second["id"]}"]')
        expect(lane).to_have_attribute("data-cached-tokens", str(second["cached_tokens"]))
        expect(page.locator("#verdict-text")).to_have_text(second["verdict"]["text"])
        # The page counts copies: a block stored twice takes two of the pool. The last block of an answer may be
        # announced a moment after the answer's end.
        stage = page.locator("#cache-stage")
        wait_until(lambda: stage.get_attribute("data-resident") == str(blocks_held(api)), "page and API agree")
        keep(page, "real-vllm-sent-twice")
