"""The embedded engine as older servers: what their sockets, pages and answers say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
import zmq
import zmq.asyncio

from app.engine.imitation import VERSIONS
from app.engine.server import EmbeddedEngine
from app.wire.exposition import read_page

from .engines import TIMEOUT_S, complete, running, sse_frames, token_prompt

CHAT = {"messages": [{"role": "user", "content": "What is the capital of France? " * 8}], "max_tokens": 2}
STREAM = CHAT | {"stream": True, "stream_options": {"include_usage": True}, "return_token_ids": True}


@asynccontextmanager
async def imitating(*names: str, **options: Any) -> AsyncIterator[tuple[EmbeddedEngine, httpx.AsyncClient]]:
    async with running(imitate=names, **options) as found:
        yield found


async def replayed(endpoint: str) -> list[list[bytes]]:
    """All messages of a replay, the end marker included."""
    context = zmq.asyncio.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.RCVTIMEO, int(TIMEOUT_S * 1000))
    try:
        dealer.connect(endpoint)
        await dealer.send_multipart([b"", bytes(8)])
        found = [await dealer.recv_multipart()]
        while found[-1][-1]:
            found.append(await dealer.recv_multipart())
        return found
    finally:
        dealer.close(linger=0)
        context.term()


async def usage_of(client: httpx.AsyncClient, **body: Any) -> tuple[Any, Any]:
    """`prompt_tokens_details` of a streamed and of a whole answer."""
    frames = sse_frames((await client.post("/v1/chat/completions", json=STREAM | body)).content)
    whole = (await client.post("/v1/chat/completions", json=CHAT | body)).json()
    return frames[-1]["usage"].get("prompt_tokens_details"), whole["usage"]["prompt_tokens_details"]


@pytest.mark.parametrize("name", VERSIONS)
async def test_every_release_answers(name: str) -> None:
    async with imitating(name) as (engine, client):
        assert (await client.get("/version")).json()["version"] == name.removeprefix("vllm-")
        for _ in range(2):
            assert (await client.post("/v1/chat/completions", json=CHAT)).status_code == 200
        (sample,) = read_page((await client.get("/metrics")).content).engines
        assert sample.engine == "0" and sample.running == 0
        assert sample.query_tokens and sample.hit_tokens
        assert bool(engine.events_endpoint) == (name != "vllm-0.8.5")


@pytest.mark.parametrize("name", ["vllm-0.10.2", "vllm-0.12.0", "vllm-0.18.0", "no-replay-topic"])
async def test_replay_without_a_topic(name: str) -> None:
    async with imitating(name) as (engine, client):
        await complete(client, token_prompt(0, 40))
        (batch, end) = await replayed(engine.replay_endpoint)
    assert (batch[0], batch[1], len(batch)) == (b"", bytes(8), 3)
    assert end == [b"", (-1).to_bytes(8, "big", signed=True), b""]
    event = msgspec.msgpack.decode(batch[2])[1][0]
    assert isinstance(event, dict if name == "no-replay-topic" else list)


async def test_events_can_be_off() -> None:
    async with imitating("no-events") as (engine, client):
        assert (engine.events_endpoint, engine.replay_endpoint) == ("", "")
        assert engine.ready_line.endswith("(no events)")
        assert (await complete(client, token_prompt(0, 40)))["choices"]
    async with imitating("no-replay") as (engine, _):
        assert engine.events_endpoint and not engine.replay_endpoint
        assert engine.ready_line.endswith(", no replay)")


async def test_usage_without_details() -> None:
    async with imitating("no-usage-details") as (_, client):
        assert await usage_of(client) == (None, None)
    async with imitating("vllm-0.12.0") as (_, client):
        # A cold request has no details either; a warm one has no created_cache_tokens.
        assert await usage_of(client, cache_salt="cold") == (None, {"cached_tokens": 80})


async def test_a_server_without_reports_metrics_and_token_ids() -> None:
    names = ("no-reuse-report", "no-request-metrics", "no-token-ids", "no-session-ids")
    async with imitating(*names) as (engine, client):
        body = STREAM | {"vllm_xargs": {"kv_cache_report_mode": "full"}, "session_id": "s"}
        for _ in range(2):
            frames = sse_frames((await client.post("/v1/chat/completions", json=body)).content)
        batches = (await replayed(engine.replay_endpoint))[:-1]
    assert "metrics" not in frames[-1]
    assert frames[0]["prompt_token_ids"] is None and frames[1]["choices"][0]["token_ids"] is None
    (batch,) = batches
    assert "session_id" not in msgspec.msgpack.decode(batch[3])[1][0]


@pytest.mark.parametrize(
    ("name", "path"),
    [("no-tokenize", "/tokenize"), ("no-tokenize", "/detokenize"), ("no-messages", "/v1/messages")],
)
async def test_paths_that_are_not_there(name: str, path: str) -> None:
    async with imitating(name) as (_, client):
        response = await client.post(path, json={"prompt": "a", "tokens": [1]})
        assert (response.status_code, response.json()) == (404, {"detail": "Not Found"})


async def test_the_names_of_0_8_count_blocks() -> None:
    async with imitating("old-metric-names") as (_, client):
        for _ in range(2):
            await complete(client, token_prompt(0, 40))
        text = (await client.get("/metrics")).text
    labels = '{engine="0",model_name="test-model"}'
    assert f"vllm:gpu_prefix_cache_queries_total{labels} 4.0" in text
    assert f"vllm:gpu_prefix_cache_hits_total{labels} 2.0" in text
    assert f"vllm:gpu_cache_usage_perc{labels} 0.0" in text
    assert "vllm:time_per_output_token_seconds_count" in text
    for name in ("kv_cache_usage_perc", "prefix_cache_hits", "prompt_tokens_cached", "inter_token_latency_seconds"):
        assert f"vllm:{name}" not in text
    assert "queried blocks" in text


async def test_0_10_has_both_names_with_the_same_values() -> None:
    async with imitating("vllm-0.10.2") as (_, client):
        await complete(client, token_prompt(0, 40))
        text = (await client.get("/metrics")).text
    for name in ("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"):
        assert f'vllm:{name}{{engine="0",model_name="test-model"}} 40.0' in text


async def test_a_hit_rate_gauge_instead_of_counters() -> None:
    async with imitating("hit-rate-gauge") as (_, client):
        before = (await client.get("/metrics")).text
        for _ in range(2):
            await complete(client, token_prompt(0, 40))
        text = (await client.get("/metrics")).text
    assert 'vllm:gpu_prefix_cache_hit_rate{engine="0",model_name="test-model"} -1.0' in before
    assert 'vllm:gpu_prefix_cache_hit_rate{engine="0",model_name="test-model"} 0.4' in text
    assert "prefix_cache_queries" not in text


async def test_hashes_that_differ_from_start_to_start() -> None:
    found = []
    for names in (("vllm-0.26.0",), ("vllm-0.26.0",), (), ()):
        async with imitating(*names) as (engine, client):
            await complete(client, token_prompt(0, 40))
            payload = (await replayed(engine.replay_endpoint))[0][3]
            found.append(msgspec.msgpack.decode(payload)[1][0]["block_hashes"])
    assert found[0] != found[1] and found[2] == found[3]
