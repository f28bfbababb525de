"""The scraper against a small server: good pages, every failure, one reading in flight."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from app.ids import ServerId
from app.observations import MetricsFailed, MetricsSampled
from app.sources.clock import SystemClock
from app.sources.metrics_scraper import MAX_PAGE_BYTES, MetricsScraper
from tests.integration.observed import Observed, in_background
from tests.integration.small_http import Answer, SmallHttp

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
PAGE = b'vllm:num_requests_running{engine="0",model_name="m"} 2\n'
KEY = "secret-key"


@asynccontextmanager
async def scraping(
    url: str,
    interval_s: float = 0.01,
    timeout_s: float = 5.0,
    key: str | None = None,
    max_page_bytes: int = MAX_PAGE_BYTES,
) -> AsyncIterator[Observed]:
    observed = Observed()
    async with httpx.AsyncClient(trust_env=False) as http:
        scraper = MetricsScraper(
            ServerId(url), http, observed.emit, SystemClock(), interval_s, timeout_s, key, max_page_bytes
        )
        async with in_background(scraper.run):
            yield observed


def page(body: bytes = PAGE, status: int = 200) -> Answer:
    return Answer(status, body, "text/plain; version=0.0.4; charset=utf-8")


async def reason(answer: Answer, timeout_s: float = 5.0, max_page_bytes: int = MAX_PAGE_BYTES) -> MetricsFailed:
    async with (
        SmallHttp({"/metrics": answer}) as server,
        scraping(server.url, timeout_s=timeout_s, max_page_bytes=max_page_bytes) as observed,
    ):
        await observed.until(lambda: bool(observed.all))
        failed = observed.all[0]
        assert isinstance(failed, MetricsFailed)
        assert failed.server == server.url
        return failed


async def test_readings_follow_each_other() -> None:
    async with SmallHttp({"/metrics": page()}) as server, scraping(server.url) as observed:
        await observed.until(lambda: len(observed.of(MetricsSampled)) >= 3)
    first = observed.of(MetricsSampled)[0]
    assert (first.engines[0].running, first.malformed_lines) == (2.0, 0)
    assert server.most_in_flight == 1


async def test_a_recorded_page() -> None:
    lines = (RECORDINGS / "shared_prefix.jsonl").read_text().splitlines()
    text = next(record["text"] for record in map(json.loads, lines) if record["kind"] == "metrics")
    async with SmallHttp({"/metrics": page(text.encode())}) as server, scraping(server.url) as observed:
        await observed.until(lambda: bool(observed.all))
    (engine,) = observed.of(MetricsSampled)[0].engines
    assert (engine.model_name, engine.block_size, engine.num_gpu_blocks) == ("smollm2-135m", 32, 728)


async def test_malformed_lines_are_counted() -> None:
    bad = PAGE + b'vllm:num_requests_waiting{engine="0" x\n'
    async with SmallHttp({"/metrics": page(bad)}) as server, scraping(server.url) as observed:
        await observed.until(lambda: bool(observed.all))
    assert observed.of(MetricsSampled)[0].malformed_lines == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (page(b"", 401), "API key"),
        (page(b"", 403), "API key"),
        (page(b"", 404), "--disable-log-stats"),
        (page(b"Internal Server Error", 500), "HTTP 500"),
        (page(b"", 302), "HTTP 302"),
        (page(b"<html>hello</html>"), "no metrics of vLLM"),
        (page(b""), "no metrics of vLLM"),
        (Answer(raw=b"nonsense\r\n\r\n"), "isn't HTTP"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"), "isn't HTTP"),
    ],
)
async def test_failures_say_what_to_do(answer: Answer, words: str) -> None:
    failed = await reason(answer)
    assert words in failed.reason
    assert failed.status == (answer.status if answer.raw is None else None)


async def test_a_server_that_does_not_answer_in_time() -> None:
    assert "within 0.05 s" in (await reason(Answer(hang=True), timeout_s=0.05)).reason


async def test_no_server_at_all_and_recovery_by_itself() -> None:
    async with SmallHttp() as gone:
        port = gone.port
    async with scraping(f"http://127.0.0.1:{port}") as observed:
        await observed.until(lambda: len(observed.all) >= 2)
        failed = observed.of(MetricsFailed)[0]
        assert failed.status is None
        assert "Start vLLM" in failed.reason
        async with SmallHttp({"/metrics": page()}, port=port):
            await observed.until(lambda: bool(observed.of(MetricsSampled)))


@pytest.mark.parametrize("url", ["http://", "nonsense", "ftp://127.0.0.1:1", "http://127.0.0.1:99999"])
async def test_a_url_that_is_none(url: str) -> None:
    async with scraping(url) as observed:
        await observed.until(lambda: bool(observed.all))
    assert isinstance(observed.all[0], MetricsFailed)


async def test_the_key_is_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with SmallHttp({"/metrics": page(b"", 401)}) as server, scraping(server.url, key=KEY) as observed:
        await observed.until(lambda: bool(observed.all))
        server.answers["/metrics"] = page()
        await observed.until(lambda: bool(observed.of(MetricsSampled)))
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    assert KEY not in repr(observed.all) + caplog.text


async def test_changes_alone_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "app.sources.metrics_scraper")
    async with SmallHttp({"/metrics": page(b"", 500)}) as server, scraping(server.url) as observed:
        await observed.until(lambda: len(observed.all) >= 3)
        server.answers["/metrics"] = page()
        await observed.until(lambda: len(observed.of(MetricsSampled)) >= 3)
    assert [record.levelname for record in caplog.records if record.name.startswith("app.")] == ["WARNING", "INFO"]


async def test_ticks_that_pass_during_a_slow_reading_are_left_out() -> None:
    release = asyncio.Event()
    async with SmallHttp({"/metrics": page()}) as server, scraping(server.url) as observed:
        await observed.until(lambda: len(observed.all) >= 1)
        server.answers["/metrics"].wait = release.wait
        seen = len(server.asked)
        await server.until_asked(seen + 1)
        before = len(observed.all)
        with pytest.raises(TimeoutError):
            await server.until_asked(seen + 2, timeout_s=0.1)
        assert (len(observed.all), server.in_flight) == (before, 1)
        release.set()
        await observed.until(lambda: len(observed.all) > before)
        assert server.most_in_flight == 1


async def test_a_page_beyond_the_limit() -> None:
    assert "more than 1000 bytes" in (await reason(page(PAGE * 100), max_page_bytes=1000)).reason
