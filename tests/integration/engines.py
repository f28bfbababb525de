"""The embedded engine over loopback, for tests: started on free ports in the test's own event loop."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx

from app.engine.server import EmbeddedEngine, EngineConfig
from app.engine.tokenizer import Tokenizer

MODEL = "test-model"
TIMEOUT_S = 20.0


@cache
def tokenizer() -> Tokenizer:
    """Made once a run: it takes half a second."""
    return Tokenizer()


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[tuple[EmbeddedEngine, httpx.AsyncClient]]:
    """An engine that takes no time unless `options` say otherwise, and a client with its URL."""
    settings: dict[str, Any] = {"profile": "instant", "model_name": MODEL}
    config = EngineConfig(port=0, events_port=0, replay_port=0, **(settings | options))
    async with (
        EmbeddedEngine(config, tokenizer()) as engine,
        httpx.AsyncClient(base_url=engine.base_url, timeout=TIMEOUT_S, trust_env=False) as client,
    ):
        yield engine, client


def sse_frames(raw: bytes) -> list[dict[str, Any]]:
    """The JSON events of a stream; asserts that it ended with `[DONE]`."""
    events = [event for event in raw.split(b"\n\n") if event]
    assert all(event.startswith(b"data: ") for event in events)
    assert events[-1] == b"data: [DONE]"
    return [json.loads(event[6:]) for event in events[:-1]]


def token_prompt(first: int, length: int) -> list[int]:
    """A prompt of token ids that shares nothing with one of another `first`."""
    return [first + index % 50 for index in range(length)]


async def complete(client: httpx.AsyncClient, prompt: object, **options: Any) -> dict[str, Any]:
    """A completion of one token unless `options` say otherwise; its body."""
    response = await client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 1, **options})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def cached(answer: dict[str, Any]) -> int:
    """Cached tokens that the usage tells."""
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
