"""The embedded engine's metrics page, read by prometheus_client's own parser."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.wire.exposition import read_page

from .engines import cached, complete, running, token_prompt

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def page(client: httpx.AsyncClient) -> str:
    response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    return response.text


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(found: Samples, name: str, **labels: str) -> float:
    wanted = {"engine": "0", "model_name": "test-model", **labels}
    return found[(f"vllm:{name}", frozenset(wanted.items()))]


async def test_names_keep_their_colon_for_a_scraper_that_prefers_openmetrics() -> None:
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    async with running() as (_, client):
        text = (await client.get("/metrics", headers={"Accept": accept})).text
    assert "vllm:prefix_cache_queries_total{" in text
    assert "vllm_" not in text


async def test_counters_are_the_sums_of_usages() -> None:
    async with running() as (_, client):
        lengths = (100, 100, 64, 64, 65)
        answers = [await complete(client, token_prompt(0, length), max_tokens=3) for length in lengths]
        found = samples(await page(client))
        hits = sum(map(cached, answers))
        assert hits > 0
        assert total(found, "prefix_cache_queries_total") == sum(lengths)
        assert total(found, "prefix_cache_hits_total") == hits
        assert total(found, "prompt_tokens_total") == sum(lengths)
        assert total(found, "prompt_tokens_cached_total") == hits
        assert total(found, "prompt_tokens_by_source_total", source="local_compute") == sum(lengths) - hits
        assert total(found, "prompt_tokens_by_source_total", source="local_cache_hit") == hits
        assert total(found, "prompt_tokens_cached_by_source_total", source="device") == hits
        assert total(found, "generation_tokens_total") == 15
        assert total(found, "request_success_total", finished_reason="length") == 5
        for name in ("time_to_first_token", "request_queue_time", "request_prefill_time", "e2e_request_latency"):
            assert total(found, f"{name}_seconds_count") == 5
        assert total(found, "inter_token_latency_seconds_count") == 10
        assert total(found, "request_prefill_kv_computed_tokens_sum") == sum(lengths) - hits
        assert total(found, "num_requests_running") == total(found, "kv_cache_usage_perc") == 0


async def test_modelled_times_fill_the_histograms() -> None:
    async with running(profile="rtx3090-qwen2.5-7b-bf16") as (_, client):
        answer = await complete(client, token_prompt(0, 40), max_tokens=2)
        found = samples(await page(client))
    prefill_s = total(found, "request_prefill_time_seconds_sum")
    assert abs(prefill_s - answer["metrics"]["time_to_first_token_ms"] / 1000) < 1e-9
    assert total(found, "time_to_first_token_seconds_sum") >= prefill_s
    assert abs(total(found, "inter_token_latency_seconds_sum") - 0.0197) < 1e-9


async def test_every_recorded_line_has_its_like_here() -> None:
    text = next(
        entry["text"]
        for line in (RECORDINGS / "shared_prefix_full.jsonl").read_text().splitlines()
        if (entry := json.loads(line))["kind"] == "metrics"
    )
    async with running(model_name="smollm2-135m") as (_, client):
        ours = {sample for sample in samples(await page(client)) if sample[0] != "vllm:cache_config_info"}
    theirs = {sample for sample in samples(text) if sample[0] != "vllm:cache_config_info"}
    assert theirs and theirs <= ours


@pytest.mark.parametrize(
    ("options", "block_bytes"),
    [
        ({"profile": "rtx3090-qwen2.5-7b-bf16"}, 917_504),
        ({"profile": "rtx3090-qwen2.5-7b-awq-int4", "num_gpu_blocks": 64, "block_size": 32}, 1_835_008),
        ({"profile": "instant"}, None),
    ],
)
async def test_the_bytes_of_a_block_are_those_of_the_profiles_model(
    options: dict[str, Any], block_bytes: int | None
) -> None:
    async with running(**options) as (_, client):
        (sample,) = read_page((await page(client)).encode()).engines
    assert sample.block_bytes == block_bytes


async def test_types_and_the_cache_configuration() -> None:
    async with running(num_gpu_blocks=64, block_size=32) as (_, client):
        families = {family.name: family for family in text_string_to_metric_families(await page(client))}
    assert families["vllm:kv_cache_usage_perc"].type == "gauge"
    assert families["vllm:prefix_cache_hits"].type == "counter"
    assert families["vllm:time_to_first_token_seconds"].type == "histogram"
    (info,) = families["vllm:cache_config_info"].samples
    told = {"block_size": "32", "num_gpu_blocks": "64", "kv_cache_size_tokens": "2048", "engine": "0"}
    assert told.items() <= info.labels.items()
    assert info.labels["enable_prefix_caching"] == "True"
    assert "process_start_time_seconds" in families
