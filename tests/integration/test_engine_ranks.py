"""Data-parallel ranks behind one HTTP front: placing, pools of their own, ports, metrics."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from app.engine.server import EmbeddedEngine
from app.wire.exposition import read_page

from .engines import cached, complete, running, token_prompt
from .test_engine_imitation import replayed

PROMPT = token_prompt(0, 40)


async def complete_on(client: httpx.AsyncClient, rank: int, **body: Any) -> dict[str, Any]:
    response = await client.post(
        "/v1/completions", json={"prompt": PROMPT, "max_tokens": 1, **body}, headers={"X-data-parallel-rank": str(rank)}
    )
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def ports(engine: EmbeddedEngine) -> list[int]:
    return [int(endpoint.rpartition(":")[2]) for endpoint in (*engine.events_endpoints, *engine.replay_endpoints)]


async def test_each_rank_has_a_pool_a_stream_and_samples_of_its_own() -> None:
    async with running(data_parallel_size=3) as (engine, client):
        first, second, third, *replay = ports(engine)
        assert (second, third) == (first + 1, first + 2) and replay == [replay[0] + rank for rank in range(3)]
        assert [cached(await complete_on(client, rank)) for rank in (0, 2, 2, 0)] == [0, 0, 32, 32]
        for rank, batches in ((0, 1), (1, 0), (2, 1)):
            messages = (await replayed(engine.replay_endpoints[rank]))[:-1]
            assert [msgspec.msgpack.decode(message[3])[2] for message in messages] == [rank] * batches
        samples = {sample.engine: sample for sample in read_page((await client.get("/metrics")).content).engines}
        assert {name: sample.query_tokens for name, sample in samples.items()} == {"0": 80.0, "1": 0.0, "2": 80.0}
        assert {sample.num_gpu_blocks for sample in samples.values()} == {1024}


async def test_one_after_the_other_goes_to_each_rank_in_turn() -> None:
    async with running(data_parallel_size=4) as (_, client):
        hits = [cached(await complete(client, PROMPT)) for _ in range(8)]
    assert hits == [0, 0, 0, 0, 32, 32, 32, 32]


async def test_a_busy_rank_gets_no_more() -> None:
    async with running(data_parallel_size=2, profile="rtx3090-qwen2.5-7b-bf16") as (engine, client):
        long = asyncio.create_task(complete_on(client, 0, max_tokens=4000, ignore_eos=True))
        first, second = engine.ranks.loops
        while not first.unfinished:  # Each turn waits for the engine, which gets on with the long one meanwhile.
            await client.get("/health")
        for _ in range(3):
            await complete(client, PROMPT)
        assert (first.unfinished, second.core.gauges().prompt_tokens) == (1, 120)
        long.cancel()


@pytest.mark.parametrize("rank", ["2", "-1"])
async def test_a_rank_that_is_not_there(rank: str) -> None:
    async with running(data_parallel_size=2) as (_, client):
        response = await client.post("/v1/completions", json={"prompt": PROMPT}, headers={"X-data-parallel-rank": rank})
        assert response.status_code == 400
        assert response.json()["error"]["message"] == f"data_parallel_rank {rank} is out of range [0, 2)."


async def test_a_rank_that_is_no_number_is_passed_over() -> None:
    async with running(data_parallel_size=2) as (_, client):
        response = await client.post("/v1/completions", json={"prompt": "a"}, headers={"X-data-parallel-rank": "x"})
        assert response.status_code == 200


async def test_a_reset_empties_every_rank() -> None:
    async with running(data_parallel_size=2) as (_, client):
        for rank in (0, 1):
            await complete_on(client, rank)
        assert (await client.post("/reset_prefix_cache")).json() == {"success": True}
        assert [cached(await complete_on(client, rank)) for rank in (0, 1)] == [0, 0]


async def test_answers_of_one_request_are_placed_one_by_one() -> None:
    async with running(data_parallel_size=2) as (engine, client):
        await complete(client, PROMPT, n=4)
        assert [loop.core.gauges().prompt_tokens for loop in engine.ranks.loops] == [80, 80]
