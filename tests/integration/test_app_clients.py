"""Public client libraries through the dashboard, unchanged."""

from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI, NotFoundError

from .app_rig import Dashboard, Engine, chat_body, dashboard


@pytest.fixture
async def board(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard(engine.settings) as running:
        await running.until_ready()
        yield running


@pytest.fixture
async def openai(board: Dashboard) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{board.url}/v1", api_key="none", max_retries=0) as client:
        yield client


async def test_the_openai_client_streaming_and_not(board: Dashboard, openai: AsyncOpenAI) -> None:
    model = (await openai.models.list()).data[0].id
    messages = chat_body(model)["messages"]

    whole = await openai.chat.completions.create(model=model, messages=messages, max_tokens=12, temperature=0)
    stream = await openai.chat.completions.create(
        model=model, messages=messages, max_tokens=12, temperature=0, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    chunks = [chunk async for chunk in stream]

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert text
    assert whole.usage and chunks[-1].usage
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    details = chunks[-1].usage.prompt_tokens_details
    assert details and details.cached_tokens
    records = (await board.json("/api/requests?limit=2"))["requests"]
    assert [record["origin"] for record in records] == ["client"] * 2


async def test_the_servers_own_errors_reach_the_client(openai: AsyncOpenAI) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        await openai.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "x"}])
