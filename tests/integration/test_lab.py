"""The lab against the embedded engine: exact block accounting, slopes, and runs that end before their end."""

import asyncio
import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.demo_engine import engine_process
from app.lab.bench import Order, run
from app.lab.errors import LabError
from app.lab.html import html_of
from app.lab.registry import chosen, parameters_of
from app.lab.runner import Run
from app.lab.sample import Sample
from tests.processes import app_process

EIGHT_LENGTHS = [1504, 1501, 1500, 1500, 1500, 1502, 1499, 1500]


@pytest.fixture(scope="module")
def instant() -> Iterator[str]:
    """An engine that takes no time, with the default profile's block size and a small pool."""
    with engine_process(["--profile", "instant", "--num-gpu-blocks", "512"]) as process:
        process.wait_until_ready()
        yield process.address.url


async def report_on(
    url: str, name: str, *sets: str, repeats: int = 1, stop_after: int | None = None, **options: Any
) -> dict[str, Any]:
    """An experiment's report. `stop_after`: cancelled after so many requests."""
    experiment = chosen(name)
    task = asyncio.current_task()
    assert task is not None
    stopped = task

    def count(run: Run, sample: Sample) -> None:
        if stop_after is not None and sample.index + 1 == stop_after:
            stopped.cancel()

    parameters = parameters_of(experiment, sets)
    order = Order(experiment=experiment, url=url, parameters=parameters, repeats=repeats, **options)
    return await run(order, lambda run, total: None, count)


def values(report: dict[str, Any]) -> dict[str, float | None]:
    """Figures by key."""
    return {figure["key"]: figure["value"] for figure in report["figures"]}


def assert_exact(report: dict[str, Any]) -> None:
    """Complete, every request as block accounting has it, and nothing of strangers."""
    assert report["state"] == "complete", report["detail"]
    assert report["totals"]["counted_query_tokens"] == report["totals"]["own_prompt_tokens"]
    for figure in report["figures"]:
        if figure["expected"] is not None:
            assert figure["value"] == pytest.approx(figure["expected"]), figure


async def test_on_against_off_gives_the_published_hit_rates(instant: str) -> None:
    report = await report_on(instant, "on-off", "output_tokens=3")
    assert_exact(report)
    found = values(report)
    assert (found["warmed_hit_tokens"], found["warmed_prompt_tokens"]) == (11_904, 12_006)
    assert (found["cold_first_hit_tokens"], found["cold_first_prompt_tokens"]) == (10_416, 12_006)
    assert found["off_hit_tokens"] == 0
    assert found["warmed_counter_hit_ratio"] == found["warmed_hit_ratio"] == 11_904 / 12_006
    sent = [sample["prompt_tokens"] for sample in report["samples"] if sample["arm"] == "warmed"]
    assert sent == EIGHT_LENGTHS
    assert all(sample["completion_tokens"] == 3 for sample in report["samples"] if sample["role"] != "warm-up")


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("staircase", ("blocks=5",)),
        ("order", ("requests=3",)),
        ("conversation", ("turns=4", "output_tokens=20")),
        ("documents", ("pages=2", "questions=3")),
        ("pressure", ("prefix_blocks=20",)),
        ("sharing-rate", ("requests=2",)),
        ("same-time", ("count=4",)),
        ("work-saved", ()),
        ("same-answer", ("prompts=4",)),
    ],
)
async def test_cached_tokens_are_those_of_block_accounting(instant: str, name: str, sets: Sequence[str]) -> None:
    assert_exact(await report_on(instant, name, *sets))


async def test_work_saved_is_the_models(instant: str) -> None:
    found = values(await report_on(instant, "work-saved"))
    assert (found["without_computed_tokens"], found["with_computed_tokens"]) == (4296, 712)


async def test_the_default_profile_has_the_published_slopes() -> None:
    with engine_process([]) as process:
        process.wait_until_ready()
        report = await report_on(process.address.url, "prefix-length", repeats=2)
    assert_exact(report)
    assert report["setting"]["server"]["profile"] == "rtx3090-qwen2.5-7b-bf16"
    found = values(report)
    # By the engine's clock: how late this machine's own comes is a matter of what else it does.
    assert found["off_server_slope"] == pytest.approx(207.2, rel=0.02)
    assert found["on_server_slope"] == pytest.approx(6.9, rel=0.02)
    assert found["off_slope"] is not None and found["on_slope"] is not None
    assert found["on_slope"] < found["off_slope"]


async def test_a_second_server_with_caching_off_is_the_other_side(instant: str) -> None:
    with engine_process(["--profile", "instant", "--no-enable-prefix-caching"]) as process:
        process.wait_until_ready()
        report = await report_on(instant, "work-saved", off_url=process.address.url)
        with pytest.raises(LabError, match="caching off"):
            await report_on(process.address.url, "work-saved")
    assert_exact(report)
    assert process.address.url in report["setting"]["off"]
    found = values(report)
    assert (found["without_computed_tokens"], found["with_computed_tokens"]) == (4296, 712)
    with pytest.raises(LabError, match="caching on"):
        await report_on(instant, "work-saved", off_url=instant)


async def test_a_server_without_usage_details_is_read_by_its_counters() -> None:
    with engine_process(["--profile", "instant", "--imitate", "no-usage-details"]) as process:
        process.wait_until_ready()
        report = await report_on(process.address.url, "work-saved")
    assert report["setting"]["server"]["cached_basis"] == "counter"
    assert values(report)["with_computed_tokens"] == 712


async def test_a_server_that_ignores_salts_gives_no_cold_start() -> None:
    with engine_process(["--profile", "instant", "--imitate", "vllm-0.8.5"]) as process:
        process.wait_until_ready()
        with pytest.raises(LabError, match="cache_salt"):
            await report_on(process.address.url, "work-saved")


async def test_a_cancelled_run_keeps_what_it_measured(instant: str) -> None:
    report = await report_on(instant, "work-saved", stop_after=6)
    assert (report["state"], len(report["samples"])) == ("cancelled", 6)
    assert values(report)["with_computed_tokens"] is not None
    assert "partial: the run was cancelled" in html_of(report)


class Faulty(httpx.AsyncBaseTransport):
    """Hands on, until so many generating requests were made; then fails in its way."""

    def __init__(self, after: int, *, status: int | None) -> None:
        self._left = after
        self._status = status
        self._real = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/v1/comp"):
            self._left -= 1
        if self._left < 0 and self._status is None:
            raise httpx.ConnectError("gone", request=request)
        if self._left < 0 and request.method == "POST":
            return httpx.Response(self._status or 500, json={"error": {"message": "out of memory"}})
        return await self._real.handle_async_request(request)

    async def aclose(self) -> None:
        await self._real.aclose()


@pytest.mark.parametrize(("status", "state"), [(500, "failed"), (None, "disconnected")])
async def test_a_run_that_fails_keeps_what_it_measured(instant: str, status: int | None, state: str) -> None:
    report = await report_on(instant, "work-saved", transport=Faulty(4 + 5, status=status))
    assert (report["state"], len(report["samples"])) == (state, 5)
    assert ("out of memory" in report["detail"]) is (state == "failed")
    assert f"partial: the run was {state}" in html_of(report)


async def test_others_requests_are_noticed(instant: str) -> None:
    async with httpx.AsyncClient(base_url=instant, trust_env=False) as client:
        stranger = asyncio.create_task(
            client.post("/v1/completions", json={"prompt": [5] * 40, "max_tokens": 4000, "ignore_eos": True})
        )
        async with asyncio.timeout(20):
            while _running((await client.get("/metrics")).text) < 1:
                pass
        report = await report_on(instant, "work-saved")
        stranger.cancel()
    assert any("busy with requests of others" in note for note in report["notes"])


def test_the_command_writes_three_files_and_an_interrupt_ends_a_run_with_its_report(tmp_path: Path) -> None:
    with engine_process(["--profile", "rtx3090-qwen2.5-7b-awq-int4"]) as process:
        process.wait_until_ready()
        url = process.address.url
        lab = app_process(tmp_path / "log", "lab", "on-off", "--vllm", url, "--out", str(tmp_path / "out"), "--json")
        lab.start()
        try:
            while _queries(url) < 6000:
                assert lab.running, lab.output()
        finally:
            status = lab.stop(signal.SIGINT)
    assert status == 1, lab.output()
    report = json.loads((tmp_path / "out" / "on-off.json").read_text())
    assert report["state"] == "cancelled" and report["samples"]
    assert report["setting"]["server"]["assumed"] == ["prefill"]
    assert (tmp_path / "out" / "on-off.csv").read_text().count("\n") == len(report["samples"]) + 1
    assert "partial" in (tmp_path / "out" / "on-off.html").read_text()[:6000]


def _queries(url: str) -> float:
    return _gauge(httpx.get(f"{url}/metrics", trust_env=False).text, "vllm:prefix_cache_queries_total")


def _running(page: str) -> float:
    return _gauge(page, "vllm:num_requests_running")


def _gauge(page: str, name: str) -> float:
    lines = [line for line in page.splitlines() if line.startswith(f"{name}{{")]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0
