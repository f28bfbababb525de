"""Each cause that the embedded engine can produce, on a running engine behind the dashboard: the verdict, its numbers,
and the token that the microscope marks. What usage says is never contradicted."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from app.engine.server import EmbeddedEngine, EngineConfig
from app.events import ServerRecord
from app.model.verdict import CODES
from tests.integration.app_rig import Dashboard, chat_body, dashboard, eventually
from tests.integration.engines import MODEL, running, tokenizer
from tests.processes import free_ports

SIZE = 16
NOT_TO_BE_HAD_HERE = {"coarse_alignment", "inconsistent", "other_model", "still_computing"}
"""The engine shares single blocks, and these from when they are scheduled; its usage always fits, and the proxy stands
before one model. `tests/scenarios/test_causes.py` has scenes of these."""


class Rig:
    """Engines in this loop and the dashboard in front of them."""

    def __init__(self, app: Dashboard, engines: list[httpx.AsyncClient]) -> None:
        self.app = app
        self.engines = engines

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        """Sends as the page does; the request's record once its verdict is final."""
        answer = await self.app.http.post(path, json=body, headers=self.app.page_headers | headers)
        request = answer.headers.get("X-PrefixScope-Request")
        return await self.ended(request or (await self.app.json("/api/requests?limit=1"))["requests"][0]["id"])

    async def ended(self, request: str) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            record: dict[str, Any] = await self.app.json(f"/api/requests/{request}")
            return record if record["outcome"] and record["verdict"] else None

        return await eventually(look)

    async def complete(self, prompt: list[int], *, rank: int | None = None, **further: Any) -> dict[str, Any]:
        """A completion of one token: prompts of token ids have the numbers that the case says."""
        body = {"model": MODEL, "prompt": prompt, "max_tokens": 1, "stream": True, "return_token_ids": True}
        body |= {"stream_options": {"include_usage": True}, "vllm_xargs": {"kv_cache_report_mode": "full"}}
        headers = {} if rank is None else {"X-data-parallel-rank": str(rank)}
        return await self.post("/v1/completions", body | further, **headers)

    async def chat(self, question: str, system: str, **further: Any) -> dict[str, Any]:
        return await self.post("/v1/chat/completions", chat_body(MODEL, question, system) | further)

    async def comparison(self, record: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = await self.app.json(f"/api/requests/{record['id']}/comparison")
        return found

    async def until_counted(self, counted: Callable[[ServerRecord], bool]) -> None:
        """Waits until the dashboard's picture of its first server is such."""

        async def look() -> bool:
            record = self.app.app.runtime.server_record()
            return record is not None and counted(record)

        await eventually(look)


@asynccontextmanager
async def rig(*options: dict[str, Any]) -> AsyncIterator[Rig]:
    """A dashboard in front of an engine for each of `options`; one engine where there are none."""
    async with AsyncExitStack() as stack:
        started = [
            await stack.enter_async_context(running(**{"num_gpu_blocks": 2000, "block_size": SIZE} | each))
            for each in options or ({},)
        ]
        nobody = f"tcp://127.0.0.1:{free_ports(1)[0]}"
        settings = {
            "vllm": ",".join(engine.base_url for engine, _ in started),
            "kv_events": ",".join((*engine.events_endpoints, nobody)[0] for engine, _ in started),
            "kv_replay": ",".join((*engine.replay_endpoints, nobody)[0] for engine, _ in started),
            "mode": "enrich",
            "scrape_interval_s": "0.1",
        }
        app = await stack.enter_async_context(dashboard(settings))
        await app.until_ready()
        yield Rig(app, [client for _, client in started])


def tokens(seed: int, count: int) -> list[int]:
    """Token ids that share no run with those of another seed."""
    return random.Random(seed).sample(range(1_000, 100_000), count)


A, B, C = tokens(1, 65), tokens(2, 65), tokens(3, 65)
Case = tuple[dict[str, Any], dict[str, Any], int | None]
"""The record, numbers of its verdict, and the token that the microscope marks (from 1; None: no look)."""
Make = Callable[[Rig], Awaitable[Case]]


async def first_seen(on: Rig) -> Case:
    await on.complete(B)
    return await on.complete(A), {"shared_tokens": 0, "computed_tokens": 65, "cached_tokens": 0}, 1


async def full_hit(on: Rig) -> Case:
    await on.complete(A)
    numbers = {"reused_blocks": 4, "reusable_blocks": 4, "prompt_blocks": 5, "computed_tokens": 1}
    return await on.complete(A), numbers, None


async def exact_multiple(on: Rig) -> Case:
    await on.complete(A[:64])
    return await on.complete(A[:64]), {"cached_tokens": 48, "reusable_blocks": 3}, None


async def one_block_exactly(on: Rig) -> Case:
    await on.complete(A[:16])
    return await on.complete(A[:16]), {"cached_tokens": 0, "prompt_tokens": 16}, None


async def too_short(on: Rig) -> Case:
    await on.complete(A[:15])
    return await on.complete(A[:15]), {"prompt_tokens": 15, "block_size": SIZE}, None


async def shares_less_than_a_block(on: Rig) -> Case:
    await on.complete(A)
    return await on.complete(A[:9] + B), {"shared_tokens": 9, "block_size": SIZE}, 10


async def diverges_in_the_first_block(on: Rig) -> Case:
    await on.complete(A[:20])
    record = await on.complete([*A[:3], 7, *A[4:16], *B])
    return record, {"shared_tokens": 3, "token": 4, "block": 1, "blocks_after": 6}, 4


async def reused_until_it_diverges(on: Rig) -> Case:
    await on.complete(A)
    record = await on.complete(A[:40] + B)
    return record, {"token": 41, "block": 3, "cached_tokens": 32, "blocks_after": 5}, 41


async def nearest_of_all_chains(on: Rig) -> Case:
    """The nearest prompt isn't the last one."""
    await on.complete(A)
    for other in (A[:16] + B, A[:20] + C, C):
        await on.complete(other)
    return await on.complete(A[:50] + B[:20]), {"token": 51, "cached_tokens": 48}, 51


async def conversation_goes_on(on: Rig) -> Case:
    await on.complete(A[:42])
    record = await on.complete(A)
    return record, {"cached_tokens": 32, "straddling_tokens": 10}, 43


async def variable_text_first(on: Rig) -> Case:
    await on.complete([5, 6, *A])
    record = await on.complete([5, 8, 9, *A])
    return record, {"token": 2, "block": 1, "span_tokens": 2, "constant_tokens": 65}, 2


async def variable_text_behind_a_block(on: Rig) -> Case:
    await on.complete([*B[:20], 5, *A])
    record = await on.complete([*B[:20], 8, *A])
    return record, {"token": 21, "cached_tokens": 16, "constant_tokens": 65}, 21


async def other_salt(on: Rig) -> Case:
    await on.complete(A, cache_salt="one")
    return await on.complete(A, cache_salt="two"), {"salted": 1, "cached_tokens": 0}, None


async def without_the_salt(on: Rig) -> Case:
    await on.complete(A, cache_salt="one")
    return await on.complete(A), {"salted": 0}, None


async def lookup_skipped(on: Rig) -> Case:
    await on.complete(A)
    return await on.complete(A, prompt_logprobs=1, stream=False, stream_options=None), {"computed_tokens": 65}, None


async def reset(on: Rig) -> Case:
    await on.complete(A)
    assert (await on.engines[0].post("/reset_prefix_cache")).json() == {"success": True}
    return await on.complete(A), {"reason": "reset", "cached_tokens": 0}, None


async def refused(on: Rig) -> Case:
    return await on.complete(A, max_tokens=-1), {"outcome": "http_error", "status": 400}, None


ON_ONE: dict[Make, str] = {
    first_seen: "first_seen",
    full_hit: "full_hit",
    exact_multiple: "exact_multiple",
    one_block_exactly: "exact_multiple",
    too_short: "too_short",
    shares_less_than_a_block: "too_short",
    diverges_in_the_first_block: "diverges",
    reused_until_it_diverges: "reused diverges",
    nearest_of_all_chains: "reused diverges",
    conversation_goes_on: "reused alignment",
    variable_text_first: "variable_first",
    variable_text_behind_a_block: "reused variable_first",
    other_salt: "other_salt",
    without_the_salt: "other_salt",
    lookup_skipped: "lookup_skipped",
    reset: "reset",
    refused: "failed",
}
"""What each must be called: the code, and of a part that was reused the code of the loss."""


async def other_adapter(on: Rig) -> Case:
    await on.complete(A, model="sql")
    return await on.complete(A), {"adapter": "sql", "cached_tokens": 0}, None


async def without_adapter(on: Rig) -> Case:
    await on.complete(A)
    return await on.complete(A, model="sql"), {"adapter": None}, None


async def _two_pictures(on: Rig, system: str) -> dict[str, Any]:
    """Two requests that differ in the picture alone; the second's record."""
    for content in ("AAAA", "BBBB"):
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{content}"}}
        body = chat_body(MODEL, system=system)
        body["messages"][1]["content"] = [picture, {"type": "text", "text": "What is this?"}]
        record = await on.post("/v1/chat/completions", body)
    return record


async def other_picture(on: Rig) -> Case:
    return await _two_pictures(on, "Say what pictures show. " * 12), {"cached_tokens": 64}, None


async def other_picture_first(on: Rig) -> Case:
    return await _two_pictures(on, "Be brief."), {"cached_tokens": 0}, None


async def evicted(on: Rig) -> Case:
    await on.complete(A)
    large = await on.complete(tokens(4, 615))
    record = await on.complete(A)
    return record, {"by": large["id"], "by_count": 1, "block": 1, "lost_tokens": 64}, None


async def evicted_from_its_end(on: Rig) -> Case:
    await on.complete(A)
    large = await on.complete(tokens(4, 545))
    record = await on.complete(A)
    return record, {"by": large["id"], "cached_tokens": 32, "block": 3}, None


async def cache_off(on: Rig) -> Case:
    await on.until_counted(lambda server: server.prefix_caching is False)
    await on.complete(A)
    return await on.complete(A), {"cached_tokens": 0}, None


async def sent_at_the_same_time(on: Rig) -> Case:
    """The engine, as vLLM, shares blocks from when they are scheduled: who comes meanwhile reuses them."""
    long = tokens(5, 4001)
    both = await asyncio.gather(on.complete(long), on.complete(long))
    _, late = sorted(both, key=lambda record: int(record["id"].rpartition("-")[2]))
    return late, {"cached_tokens": 4000, "computed_tokens": 1}, None


async def other_rank(on: Rig) -> Case:
    await on.complete(A, rank=0)
    await on.complete(B, rank=1)
    return await on.complete(A, rank=1), {"other_rank": 0, "rank": 1, "resident_blocks": 4}, None


async def no_events(on: Rig) -> Case:
    await on.until_counted(lambda server: server.block_size == SIZE)
    return await on.complete(A), {"reason": "no_events", "cached_tokens": 0}, None


async def salt_without_events(on: Rig) -> Case:
    await on.until_counted(lambda server: server.block_size == SIZE)
    await on.complete(A, cache_salt="one")
    return await on.complete(A, cache_salt="two"), {"salted": 1}, None


async def says_nothing(on: Rig) -> Case:
    await on.complete(A)
    return await on.complete(A), {"missing": "details"}, None


async def inferred(on: Rig) -> Case:
    """Of a server that reports neither usage details nor reuse, events tell what was computed anew."""
    await on.complete(A)
    numbers = {"cached_tokens": 32, "cached_basis": "inferred", "token": 41}
    return await on.complete(A[:40] + B), numbers, 41


async def told_by_events(on: Rig) -> Case:
    """Without usage details, the report of reused blocks tells."""
    await on.complete(A)
    numbers = {"cached_tokens": 32, "cached_basis": "engine", "token": 41}
    return await on.complete(A[:40] + B), numbers, 41


ON_ITS_OWN: dict[Make, tuple[str, dict[str, Any]]] = {
    other_adapter: ("other_adapter", {"lora": ("sql",)}),
    without_adapter: ("other_adapter", {"lora": ("sql",)}),
    other_picture: ("reused other_image", {"imitate_images": True}),
    other_picture_first: ("other_image", {"imitate_images": True}),
    evicted: ("evicted", {"num_gpu_blocks": 40}),
    evicted_from_its_end: ("reused evicted", {"num_gpu_blocks": 38}),
    cache_off: ("cache_off", {"enable_prefix_caching": False}),
    sent_at_the_same_time: ("full_hit", {"profile": "rtx3090-qwen2.5-7b-bf16"}),
    other_rank: ("other_rank", {"data_parallel_size": 2}),
    no_events: ("unexplained", {"imitate": ("no-events",)}),
    salt_without_events: ("other_salt", {"imitate": ("no-events",)}),
    says_nothing: ("unknown", {"imitate": ("no-events", "no-usage-details")}),
    inferred: ("reused diverges", {"imitate": ("no-usage-details", "no-reuse-report")}),
    told_by_events: ("reused diverges", {"imitate": ("no-usage-details",)}),
}
ELSEWHERE = {"other_server"}
"""Codes with a test of their own below."""


async def check(on: Rig, called: str, case: Case) -> None:
    """The verdict, its numbers, the token marked, and that neither contradicts usage."""
    record, numbers, marked = case
    verdict = record["verdict"]
    code, loss = verdict["code"], verdict["params"].get("loss")
    assert (f"{code} {loss}" if loss else code) == called, (verdict, record["outcome"])
    assert {name: verdict["params"].get(name) for name in numbers} == numbers
    assert verdict["text"] and verdict["translations"]["zh"][0] and verdict["anchor"].startswith("why-")
    cached, prompt = record["cached_tokens"], record["prompt_tokens"]
    if cached is not None:
        assert verdict["params"]["cached_tokens"] == cached
        assert verdict["params"]["computed_tokens"] == prompt - cached
        assert cached == 0 or code in ("full_hit", "reused", "exact_multiple")
        assert code not in ("full_hit", "reused") or cached > 0
    if marked is not None:
        found = await on.comparison(record)
        assert (found["common_tokens"], found["first_difference"]["token"]) == (marked - 1, marked)
        assert found["first_difference"]["block"] == (marked - 1) // SIZE + 1
        assert found["recomputed"]["tokens"] == prompt - cached


@pytest.mark.parametrize("make", ON_ONE, ids=lambda make: make.__name__)
async def test_a_cause_its_numbers_and_the_marked_token(make: Make) -> None:
    async with rig() as on:
        await check(on, ON_ONE[make], await make(on))


@pytest.mark.parametrize("make", ON_ITS_OWN, ids=lambda make: make.__name__)
async def test_a_cause_that_needs_a_server_of_its_own(make: Make) -> None:
    called, options = ON_ITS_OWN[make]
    async with rig(options) as on:
        await check(on, called, await make(on))


async def test_resident_on_another_server() -> None:
    async with rig({}, {}) as on:
        answer = await on.engines[1].post("/v1/completions", json={"prompt": A, "max_tokens": 1})
        assert answer.status_code == 200

        async def seen() -> bool:
            return any(columns["hash"] for columns in (await on.app.json("/api/blocks"))["blocks"])

        await eventually(seen)
        there = str(on.engines[1].base_url).rstrip("/")
        await check(on, "other_server", (await on.complete(A), {"other_server": there, "resident_blocks": 4}, None))


async def test_a_restart_explains_what_was_lost_and_a_dead_server_a_failure() -> None:
    port, events, replay = free_ports(3)
    config = EngineConfig(
        port=port, events_port=events, replay_port=replay, profile="instant", model_name=MODEL, block_size=SIZE
    )
    settings = {"vllm": f"http://127.0.0.1:{port}", "kv_events": f"tcp://127.0.0.1:{events}", "mode": "enrich"}
    settings |= {"kv_replay": f"tcp://127.0.0.1:{replay}"}
    async with dashboard(settings) as app:
        on = Rig(app, [])
        async with EmbeddedEngine(config, tokenizer()):
            await app.until_ready()
            await on.complete(A)
        await check(on, "failed", (await on.complete(A), {"outcome": "server_gone"}, None))
        async with EmbeddedEngine(config, tokenizer()):
            await app.until_ready()
            await on.complete(B)
            await check(on, "reset", (await on.complete(A), {"cached_tokens": 0}, None))


def test_every_code_is_produced_here_or_cannot_be() -> None:
    called = {*ON_ONE.values(), *(name for name, _ in ON_ITS_OWN.values())}
    assert {code for name in called for code in name.split()} | ELSEWHERE | NOT_TO_BE_HAD_HERE == set(CODES)
