"""The streaming helpers of public client libraries, through the proxy: against recordings of a real server, and against
the embedded engine behind the whole dashboard.
"""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from app.observations import RequestFirstToken, RequestUsage

from .app_rig import Dashboard, Engine, dashboard
from .proxy_rig import LAST_CHUNK, SSE_HEAD, Asked, chunk, on_both_loops, rig, sized, sse

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
MESSAGES: Any = [{"role": "user", "content": "Say hi."}]
MODES = ["off", "observe", "enrich"]


def recorded(name: str) -> list[bytes]:
    """The body of the first response in a recording, in the pieces in which it came."""
    entries = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]
    first = next(entry["id"] for entry in entries if entry["kind"] == "request")
    return [base64.b64decode(entry["b64"]) for entry in entries if entry["kind"] == "bytes" and entry["id"] == first]


async def play(asked: Asked) -> None:
    """The recorded stream of the path that was asked for."""
    name = {b"messages": "anthropic_stream", b"responses": "responses_stream"}.get(
        asked.line.split(b" ")[1].rpartition(b"/")[2], "shared_prefix"
    )
    await asked.send(SSE_HEAD, *map(chunk, recorded(name)), LAST_CHUNK)


@pytest.mark.parametrize("mode", MODES)
@on_both_loops
async def test_anthropics_streaming_helper(mode: str) -> None:
    async with (
        rig(play, mode=mode) as r,
        anthropic.AsyncAnthropic(base_url=r.url, api_key="x", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=6, messages=MESSAGES) as stream,
    ):
        text = [piece async for piece in stream.text_stream]
        message = await stream.get_final_message()
        assert text == ["A", "w", "esome", ".", " What", " brings"]
        assert message.stop_reason == "max_tokens" and message.usage.cache_read_input_tokens == 32
        ended = await r.ended()
        assert (ended.outcome, ended.content_chunks) == ("ok", 6)
        (usage,) = r.all(RequestUsage)
        assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (33, 6, 32)


@pytest.mark.parametrize("mode", MODES)
@on_both_loops
async def test_openais_responses_helper(mode: str) -> None:
    async with (
        rig(play, mode=mode) as r,
        openai.AsyncOpenAI(base_url=f"{r.url}/v1", api_key="x", max_retries=0) as client,
        client.responses.stream(model="m", input="Say hi.") as stream,
    ):
        deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        assert "".join(deltas) == "Hi, welcome to Xan"
        ended = await r.ended()
        assert (ended.outcome, ended.content_chunks) == ("ok", len(deltas))
        assert len(r.all(RequestFirstToken)) == 1


@pytest.mark.parametrize("mode", MODES)
@on_both_loops
async def test_openais_chat_helper(mode: str) -> None:
    async with (
        rig(play, mode=mode) as r,
        openai.AsyncOpenAI(base_url=f"{r.url}/v1", api_key="x", max_retries=0) as client,
        client.chat.completions.stream(
            model="m", messages=MESSAGES, stream_options={"include_usage": True}
        ) as stream,
    ):  # fmt: skip
        deltas = [event.delta async for event in stream if event.type == "content.delta"]
        snapshot = stream.current_completion_snapshot
        assert deltas and "".join(deltas) == snapshot.choices[0].message.content
        assert snapshot.usage is not None and snapshot.usage.prompt_tokens == 166
        assert (await r.ended()).outcome == "ok"


@on_both_loops
async def test_anthropics_client_reads_errors_before_and_within_a_stream() -> None:
    refusal = b'{"type":"error","error":{"type":"invalid_request_error","message":"too long"}}'

    async def script(asked: Asked) -> None:
        if len(r.server.asked) == 1:
            await asked.send(sized(refusal, b"400 Bad Request"))
        else:
            await asked.send(*sse(recorded("anthropic_stream")[0], b"event: error\ndata: " + refusal + b"\n\n"))

    async with rig(script) as r, anthropic.AsyncAnthropic(base_url=r.url, api_key="x", max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError, match="too long"):
            await client.messages.create(model="m", max_tokens=6, messages=MESSAGES, stream=True)
        stream = await client.messages.create(model="m", max_tokens=6, messages=MESSAGES, stream=True)
        with pytest.raises(anthropic.APIStatusError, match="too long"):
            _ = [event async for event in stream]
        ended = await r.ended(2)
        assert (ended.outcome, ended.error) == ("stream_error", "too long")


@on_both_loops
async def test_a_late_error_reaches_the_clients_as_theirs() -> None:
    """With comments before the first byte, a status can't be told any more."""

    async def script(asked: Asked) -> None:
        await asked.closed()

    async with (
        rig(script, ping_interval_s="0.02", read_timeout_s="0.1") as r,
        anthropic.AsyncAnthropic(base_url=r.url, api_key="x", max_retries=0) as claude,
        openai.AsyncOpenAI(base_url=f"{r.url}/v1", api_key="x", max_retries=0) as gpt,
    ):
        stream = await claude.messages.create(model="m", max_tokens=6, messages=MESSAGES, stream=True)
        with pytest.raises(anthropic.APIStatusError, match="sent nothing"):
            _ = [event async for event in stream]
        chunks = await gpt.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        with pytest.raises(openai.APIError, match="sent nothing"):
            _ = [piece async for piece in chunks]
        assert (await r.ended(2)).outcome == "timed_out"


# --- the embedded engine behind the whole dashboard ------------------------------------------------------------------


@pytest.fixture
async def board(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard(engine.settings) as running:
        await running.until_ready()
        yield running


async def test_the_engine_speaks_to_every_helper(board: Dashboard) -> None:
    model = (await board.json("/v1/models"))["data"][0]["id"]
    async with (
        openai.AsyncOpenAI(base_url=f"{board.url}/v1", api_key="x", max_retries=0) as gpt,
        anthropic.AsyncAnthropic(base_url=board.url, api_key="x", max_retries=0) as claude,
    ):
        async with gpt.chat.completions.stream(model=model, messages=MESSAGES, max_tokens=6) as chat:
            chat_text = [event.delta async for event in chat if event.type == "content.delta"]
        async with gpt.responses.stream(model=model, input="Say hi.", max_output_tokens=6) as response:
            deltas = [event.delta async for event in response if event.type == "response.output_text.delta"]
        async with claude.messages.stream(model=model, max_tokens=6, messages=MESSAGES) as message:
            message_text = await message.get_final_text()
    assert chat_text and deltas and message_text
    records = (await board.json("/api/requests?limit=3"))["requests"]
    assert [record["endpoint"] for record in records] == ["/v1/messages", "/v1/responses", "/v1/chat/completions"]
    for record in records:
        assert record["outcome"] == "ok" and record["ttft_ms"] is not None, record
        parts = record["ttft_parts"]
        told = [parts[name] for name in ("front_ms", "queue_ms", "prefill_ms", "rest_ms") if parts[name] is not None]
        assert sum(told) == pytest.approx(record["ttft_ms"])
        gaps = record["token_gaps"]  # None where a busy machine let all of them arrive at once.
        assert gaps is None or len(gaps["counts"]) == len(gaps["upper_ms"]) + 1
        assert record["upload_ms"] >= 0 and record["proxy_ms"] >= 0 and record["client_wait_ms"] == 0


async def test_further_paths_pass_where_the_setting_names_them(board: Dashboard, engine: Engine) -> None:
    body = {"prompt": "Say hi."}
    assert (await board.http.post("/tokenize", json=body)).status_code in (404, 405)
    async with dashboard({**engine.settings, "extra_paths": "/tokenize"}) as open_board:
        answer = await open_board.http.post("/tokenize", json=body)
        assert answer.status_code == 200 and answer.json()["count"] > 0
        assert (await open_board.http.post("/reset_prefix_cache")).status_code in (404, 405)
        assert (await open_board.http.get("/healthz")).status_code == 200
