"""The embedded engine's other forms: responses, messages, log probabilities, tools, pictures, adapters, big bodies."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import msgspec
import openai
import pytest
import pytest_asyncio

from app.engine.server import EmbeddedEngine

from .engines import MODEL, cached, complete, running, sse_frames, token_prompt, tokenizer
from .test_engine_imitation import replayed

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
QUESTION: Any = [{"role": "user", "content": "What is the capital of France?"}]
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}, "days": {"type": "integer"}},
    "required": ["city", "unit"],
}
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
ARGUMENTS = {"city": "text", "unit": "C"}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[tuple[EmbeddedEngine, httpx.AsyncClient]]:
    async with running(lora=("poet", "coder=/adapters/coder")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def client(served: tuple[EmbeddedEngine, httpx.AsyncClient]) -> httpx.AsyncClient:
    assert (await served[1].post("/reset_prefix_cache")).json() == {"success": True}
    return served[1]


@pytest_asyncio.fixture(loop_scope="module")
async def of_openai(served: tuple[EmbeddedEngine, httpx.AsyncClient]) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{served[0].base_url}/v1", api_key="none", max_retries=0) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def of_anthropic(served: tuple[EmbeddedEngine, httpx.AsyncClient]) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=served[0].base_url, api_key="none", max_retries=0) as found:
        yield found


async def chat(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/v1/chat/completions", json={"messages": QUESTION, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def recorded(name: str) -> list[tuple[str, dict[str, Any]]]:
    """The named events of a recorded stream."""
    entries = map(json.loads, (RECORDINGS / f"{name}.jsonl").read_text().splitlines())
    raw = b"".join(base64.b64decode(entry["b64"]) for entry in entries if entry["kind"] == "bytes")
    return named_events(raw)


def named_events(raw: bytes) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for event in raw.split(b"\n\n")[:-1]:
        name, data = event.split(b"\n")
        found.append((name.removeprefix(b"event: ").decode(), json.loads(data.removeprefix(b"data: "))))
    return found


def shape(value: Any) -> Any:
    """What a value looks like: its keys in order, and the kinds of what they hold."""
    if isinstance(value, dict):
        return [(name, shape(each)) for name, each in value.items()]
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


# Responses and messages


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("responses_stream", "/v1/responses", {"input": "Say hi.", "max_output_tokens": 6, "stream": True}),
        (
            "anthropic_stream",
            "/v1/messages",
            {"model": MODEL, "max_tokens": 6, "messages": [{"role": "user", "content": "Say hi."}], "stream": True},
        ),
    ],
)
async def test_streams_have_the_recorded_shape(client: httpx.AsyncClient, name: str, path: str, body: object) -> None:
    response = await client.post(path, json=body)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    ours, theirs = named_events(response.content), recorded(name)
    assert [event for event, _ in ours] == [event for event, _ in theirs]
    assert [shape(data) for _, data in ours] == [shape(data) for _, data in theirs]


async def test_a_response_whole_and_streamed(of_openai: openai.AsyncOpenAI) -> None:
    asked: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Which city?"}]},
    ]
    whole = await of_openai.responses.create(model=MODEL, input=asked, instructions="Answer.")
    assert (whole.status, whole.output_text == "") == ("completed", False)
    assert whole.usage is not None and whole.usage.output_tokens > 0
    async with of_openai.responses.stream(model=MODEL, input=asked, instructions="Answer.") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == whole.output_text
    assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed"
    assert final.usage is not None and final.usage.input_tokens_details.cached_tokens == 16


async def test_an_earlier_response_is_not_kept(of_openai: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="Response with id 'resp_1' not found"):
        await of_openai.responses.create(model=MODEL, input="a", previous_response_id="resp_1")


async def test_a_message_whole_and_streamed(of_anthropic: anthropic.AsyncAnthropic) -> None:
    asked: Any = {"model": MODEL, "max_tokens": 60, "system": "Be brief. " * 20, "messages": QUESTION}
    cold = await of_anthropic.messages.create(**asked)
    async with of_anthropic.messages.stream(**asked) as stream:
        texts = [text async for text in stream.text_stream]
        warm = await stream.get_final_message()
    assert "".join(texts) == warm.content[0].text == cold.content[0].text  # type: ignore[union-attr]
    assert (cold.stop_reason, warm.stop_reason) == ("end_turn", "end_turn")
    for told in (cold.usage, warm.usage):
        read, created = told.cache_read_input_tokens, told.cache_creation_input_tokens
        assert read is not None and created is not None
        assert told.input_tokens + read + created == warm.usage.input_tokens + (
            warm.usage.cache_read_input_tokens or 0
        ) + (warm.usage.cache_creation_input_tokens or 0)
    assert cold.usage.cache_read_input_tokens == 0 and (warm.usage.cache_read_input_tokens or 0) > 48


async def test_message_tokens_are_counted_as_they_are_used(of_anthropic: anthropic.AsyncAnthropic) -> None:
    count = await of_anthropic.messages.count_tokens(model=MODEL, messages=QUESTION)
    used = (await of_anthropic.messages.create(model=MODEL, max_tokens=1, messages=QUESTION)).usage
    assert count.input_tokens == used.input_tokens + (used.cache_read_input_tokens or 0) + (
        used.cache_creation_input_tokens or 0
    )


async def test_messages_are_the_chat_that_says_the_same(client: httpx.AsyncClient) -> None:
    blocks = [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I ask."},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Rain."}]},
    ]
    call = {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "I ask.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "Rain."},
    ]
    billing = {"type": "text", "text": "x-anthropic-billing-header: cch=1f3a;"}
    body = {"model": MODEL, "system": [billing, {"type": "text", "text": "Rules."}], "messages": blocks}
    counted = (await client.post("/v1/messages/count_tokens", json=body)).json()
    told = (await client.post("/tokenize", json={"messages": messages})).json()
    assert counted == {
        "input_tokens": told["count"],
        "context_management": {"original_input_tokens": told["count"]},
    }


async def test_errors_of_messages(client: httpx.AsyncClient, of_anthropic: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        await of_anthropic.messages.create(model="other", max_tokens=1, messages=QUESTION)
    message = f"The model `other` does not exist. Valid aliases: {MODEL}."
    assert caught.value.body == {"type": "error", "error": {"type": "NotFoundError", "message": message}}
    # What the body's own form lacks is told in the other shape, by vLLM too.
    for body, missing in (({"messages": QUESTION}, "model"), ({"model": MODEL, "messages": QUESTION}, "max_tokens")):
        response = await client.post("/v1/messages", json=body)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == f"body.{missing}"


# Log probabilities, echo, stop strings


async def test_log_probabilities_have_the_recorded_shape(client: httpx.AsyncClient) -> None:
    body = {"messages": QUESTION, "stream": True, "max_tokens": 3, "n": 2, "logprobs": True, "top_logprobs": 2}
    frames = sse_frames((await client.post("/v1/chat/completions", json=body)).content)
    told = [frame["choices"][0]["logprobs"]["content"][0] for frame in frames[2:]]
    assert all([entry["token"], entry["logprob"]] == list(entry["top_logprobs"][0].values())[:2] for entry in told)
    assert {len(entry["top_logprobs"]) for entry in told} == {2}
    entries = map(json.loads, (RECORDINGS / "n_and_logprobs.jsonl").read_text().splitlines())
    raw = b"".join(base64.b64decode(entry["b64"]) for entry in entries if entry["kind"] == "bytes")
    theirs = next(frame for frame in sse_frames(raw) if frame["choices"][0]["delta"].get("content"))
    assert shape(frames[2]["choices"][0]["logprobs"]) == shape(theirs["choices"][0]["logprobs"])
    whole = await chat(client, logprobs=True, max_tokens=3, return_token_ids=True)
    content = whole["choices"][0]["logprobs"]["content"]
    assert [bytes(entry["bytes"]) for entry in content] == [
        tokenizer().token_bytes(token_id) for token_id in whole["choices"][0]["token_ids"]
    ]
    assert [entry["top_logprobs"] for entry in content] == [[], [], []]


async def test_an_echo_brings_the_prompt_with_its_log_probabilities(client: httpx.AsyncClient) -> None:
    prompt = "Once upon a time there was " * 8
    plain = await complete(client, prompt, max_tokens=4)
    answer = await complete(client, prompt, max_tokens=4, echo=True, logprobs=1, return_token_ids=True)
    choice = answer["choices"][0]
    assert choice["text"] == prompt + plain["choices"][0]["text"]
    told = choice["logprobs"]
    assert "".join(told["tokens"]) == choice["text"]
    assert told["text_offset"][1] == len(told["tokens"][0])
    assert len(told["token_logprobs"]) == len(told["top_logprobs"]) == len(choice["token_ids"])
    assert cached(answer) == 0  # Log probabilities of a prompt can't be had from reused blocks.
    body = {"prompt": prompt, "max_tokens": 4, "echo": True, "stream": True}
    frames = sse_frames((await client.post("/v1/completions", json=body)).content)
    assert "".join(frame["choices"][0]["text"] for frame in frames) == choice["text"]


async def test_log_probabilities_of_a_prompt(client: httpx.AsyncClient) -> None:
    answer = await complete(client, [1, 2, 3], prompt_logprobs=2)
    first, second, third = answer["choices"][0]["prompt_logprobs"]
    assert first is None and next(iter(second)) == "2" and len(third) == 2
    assert list(second["2"]) == ["logprob", "rank", "decoded_token"]
    assert len((await chat(client, prompt_logprobs=0))["prompt_logprobs"]) == 36


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"top_logprobs": 2}, "when using `top_logprobs`, `logprobs` must be set to true."),
        ({"logprobs": True, "top_logprobs": 21}, "Requested sample logprobs of 21, which is greater than max allowed"),
        ({"prompt_logprobs": -2}, "`prompt_logprobs` must be a positive value or -1."),
        ({"tool_choice": "required"}, "When using `tool_choice`, `tools` must be set."),
        ({"tools": TOOLS, "tool_choice": "never"}, "Invalid value for `tool_choice`: never!"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "The tool specified in `tool_choice` does not match any of the specified `tools`",
        ),
    ],
)
async def test_what_is_refused(client: httpx.AsyncClient, body: dict[str, Any], message: str) -> None:
    response = await client.post("/v1/chat/completions", json={"messages": QUESTION, **body})
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(message)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_stop_string_can_stay(client: httpx.AsyncClient, streamed: bool) -> None:
    text = (await chat(client))["choices"][0]["message"]["content"]
    stop = text[10:16]
    body = {"messages": QUESTION, "stop": [stop], "include_stop_str_in_output": True, "stream": streamed}
    response = await client.post("/v1/chat/completions", json=body)
    if streamed:
        frames = sse_frames(response.content)
        found = "".join(frame["choices"][0]["delta"].get("content") or "" for frame in frames)
    else:
        found = response.json()["choices"][0]["message"]["content"]
    assert found == text[: text.index(stop) + len(stop)]


# Tools


@pytest.mark.parametrize("named", [True, False])
async def test_a_forced_call(of_openai: openai.AsyncOpenAI, named: bool) -> None:
    choice: Any = {"type": "function", "function": {"name": "weather"}} if named else "required"
    asked: Any = {"model": MODEL, "messages": QUESTION, "tools": TOOLS, "tool_choice": choice}
    whole = (await of_openai.chat.completions.create(**asked)).choices[0]
    assert whole.finish_reason == ("stop" if named else "tool_calls")
    call: Any = next(iter(whole.message.tool_calls or ()))
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", ARGUMENTS)
    async with of_openai.chat.completions.stream(**asked) as stream:
        final = await stream.get_final_completion()
    streamed: Any = next(iter(final.choices[0].message.tool_calls or ()))
    assert (streamed.function.name, json.loads(streamed.function.arguments)) == ("weather", ARGUMENTS)


async def test_tools_that_are_only_offered_change_the_prompt(client: httpx.AsyncClient) -> None:
    plain, offered = await chat(client), await chat(client, tools=TOOLS)
    assert offered["usage"]["prompt_tokens"] > plain["usage"]["prompt_tokens"] + 50
    assert "tool_calls" not in offered["choices"][0]["message"]


async def test_a_forced_use_of_a_tool_in_a_message(of_anthropic: anthropic.AsyncAnthropic) -> None:
    asked: Any = {
        "model": MODEL,
        "max_tokens": 100,
        "messages": QUESTION,
        "tools": [{"name": "weather", "input_schema": WEATHER}],
        "tool_choice": {"type": "tool", "name": "weather"},
    }
    whole = await of_anthropic.messages.create(**asked)
    async with of_anthropic.messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    for message in (whole, streamed):
        block: Any = message.content[0]
        assert (message.stop_reason, block.type, block.name) == ("tool_use", "tool_use", "weather")
        assert block.input == ARGUMENTS


async def test_a_forced_call_in_a_response(of_openai: openai.AsyncOpenAI) -> None:
    tools: Any = [{"type": "function", "name": "weather", "parameters": WEATHER}]
    choice: Any = {"type": "function", "name": "weather"}
    whole: Any = (await of_openai.responses.create(model=MODEL, input="Oslo", tools=tools, tool_choice=choice)).output
    assert (whole[0].type, whole[0].name, json.loads(whole[0].arguments)) == ("function_call", "weather", ARGUMENTS)
    async with of_openai.responses.stream(model=MODEL, input="Oslo", tools=tools, tool_choice=choice) as stream:
        final: Any = (await stream.get_final_response()).output
    assert json.loads(final[0].arguments) == ARGUMENTS


# Adapters, pictures, bodies, paths


async def test_adapters_share_nothing_and_are_named_in_events(
    served: tuple[EmbeddedEngine, httpx.AsyncClient], client: httpx.AsyncClient
) -> None:
    engine, _ = served
    prompt = token_prompt(0, 40)
    hits = [cached(await complete(client, prompt, model=model)) for model in (MODEL, "poet", "coder", "poet", MODEL)]
    assert hits == [0, 0, 0, 32, 32]
    answer = await complete(client, prompt, model="coder", cache_salt="s")
    assert answer["model"] == "coder"
    batches = [msgspec.msgpack.decode(message[3])[1] for message in (await replayed(engine.replay_endpoint))[:-1]]
    stored = [event for events in batches for event in events if event["type"] == "BlockStored"][-1]
    assert (stored["lora_name"], stored["lora_id"]) == ("coder", 2)
    assert stored["extra_keys"] == [["coder", "s"], ["coder"]]
    cards = (await client.get("/v1/models")).json()["data"]
    assert [(card["id"], card["parent"]) for card in cards] == [(MODEL, None), ("poet", MODEL), ("coder", MODEL)]


def picture(url: str) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": parts}]


async def test_a_text_model_takes_no_picture(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/chat/completions", json={"messages": picture("data:image/png;base64,AAAA")})
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "At most 0 image(s) may be provided in one prompt."


async def test_pictures_can_be_imitated_and_are_told_apart_by_their_content() -> None:
    async with running(imitate_images=True) as (engine, client):
        urls = ("data:image/png;base64,AAAA", "data:image/png;base64,BBBB", "data:image/png;base64,AAAA")
        answers = [await chat(client, messages=picture(url)) for url in urls]
        batches = [msgspec.msgpack.decode(message[3])[1] for message in (await replayed(engine.replay_endpoint))[:-1]]
    first, other, again = map(cached, answers)
    assert (first, other) == (0, 16) and again > 64
    details = answers[0]["usage"]["prompt_tokens_details"]
    assert details["multimodal_tokens"] == {"image": 64}
    (stored,) = [event for event in batches[0] if event["type"] == "BlockStored"]
    offsets = [keys[0][1] if keys else None for keys in stored["extra_keys"]]
    start = stored["token_ids"].index(151655)
    assert offsets[start // 16] == start % 16
    assert offsets[start // 16 + 1] == start % 16 - 16


async def test_bodies_of_a_megabyte(client: httpx.AsyncClient) -> None:
    body = {"messages": QUESTION, "max_tokens": 1, "metadata": {"padding": "x" * 3_000_000}}
    assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
    counted = (await client.post("/tokenize", json={"prompt": "word " * 250_000})).json()
    assert counted["count"] == 250_001


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/score", "/v1/rerank", "/rerank", "/pooling", "/classify"])
async def test_a_generating_model_has_no_pooling_paths(client: httpx.AsyncClient, path: str) -> None:
    response = await client.post(path, json={"model": MODEL, "input": "a"})
    assert (response.status_code, response.json()) == (404, {"detail": "Not Found"})
