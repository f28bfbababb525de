"""The lab against a real vLLM on the CPU, at small sizes. Its reports stay in artifacts/lab."""

from typing import Any

import pytest

from app.lab.bench import Order, run
from app.lab.html import html_of
from app.lab.registry import chosen, parameters_of
from app.lab.report import csv_of
from tests.processes import ROOT

from .conftest import RealVllm

ARTIFACTS = ROOT / "artifacts" / "lab"


async def report_on(server: RealVllm, name: str, *sets: str, repeats: int = 1) -> dict[str, Any]:
    """A complete report, kept as an artifact of the run."""
    experiment = chosen(name)
    order = Order(
        experiment=experiment, url=server.base_url, parameters=parameters_of(experiment, sets), repeats=repeats
    )
    report = await run(order, lambda run, total: None, lambda run, sample: None)
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    (ARTIFACTS / f"{name}.html").write_text(html_of(report), encoding="utf-8")
    (ARTIFACTS / f"{name}.csv").write_text(csv_of(report), encoding="utf-8")
    assert report["state"] == "complete", report["detail"]
    return report


def assert_exact(report: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Figures by key; those of `keys` are what block accounting says."""
    figures = {figure["key"]: figure for figure in report["figures"]}
    for key in keys:
        assert figures[key]["value"] == pytest.approx(figures[key]["expected"]), figures[key]
    assert report["setting"]["server"]["block_size"] == RealVllm.block_size
    assert report["totals"]["counted_query_tokens"] == report["totals"]["own_prompt_tokens"]
    return figures


async def test_on_against_off(small_pool_vllm: RealVllm) -> None:
    report = await report_on(small_pool_vllm, "on-off", "rules=1", "questions=3", "output_tokens=8")
    figures = assert_exact(report, "accounting_exact")
    assert figures["warmed_hit_ratio"]["value"] > figures["cold_first_hit_ratio"]["value"] > 0
    assert figures["off_hit_tokens"]["value"] == 0


async def test_prefix_length(small_pool_vllm: RealVllm) -> None:
    report = await report_on(small_pool_vllm, "prefix-length", repeats=2)
    figures = assert_exact(report, "accounting_exact")
    # With the cache the time is flat; without it, it rises, by more than both intervals.
    assert figures["off_slope"]["low"] > 0
    assert figures["off_slope"]["low"] > figures["on_slope"]["high"]


async def test_staircase(small_pool_vllm: RealVllm) -> None:
    assert_exact(await report_on(small_pool_vllm, "staircase", "blocks=4"), "exact", "accounting_exact")


async def test_conversation(small_pool_vllm: RealVllm) -> None:
    report = await report_on(small_pool_vllm, "conversation", "turns=3", "output_tokens=8")
    assert assert_exact(report, "accounting_exact")["hit_ratio"]["value"] > 0.3


async def test_pressure(small_pool_vllm: RealVllm) -> None:
    assert_exact(await report_on(small_pool_vllm, "pressure"), "exact", "order_kept")


async def test_same_time(small_pool_vllm: RealVllm) -> None:
    report = await report_on(small_pool_vllm, "same-time", "count=4", "tokens=200")
    assert_exact(report, "at_once_hit_tokens", "ahead_hit_tokens")


async def test_same_answer(small_pool_vllm: RealVllm) -> None:
    report = await report_on(small_pool_vllm, "same-answer", "prompts=4", "warm=1", "output_tokens=16")
    figures = assert_exact(report)
    # Differences are counted, not asserted away: kernels of other shapes may round differently.
    assert figures["equal"]["value"] + figures["different"]["value"] == figures["equal"]["expected"] == 4
