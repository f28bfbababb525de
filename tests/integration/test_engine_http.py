"""The embedded engine's HTTP endpoints over loopback: shapes, errors, streams, aborts, many at once."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import pytest_asyncio

from .engines import MODEL, TIMEOUT_S, cached, complete, running, sse_frames, token_prompt, tokenizer

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
JSON_TYPE = {"content-type": "application/json"}
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
SYSTEM = {"role": "system", "content": "You are a meticulous assistant. Follow the rules exactly.\n" * 20}
ASK_ALL = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "return_token_ids": True,
    "vllm_xargs": {"kv_cache_report_mode": "full"},
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_client() -> AsyncIterator[httpx.AsyncClient]:
    async with running() as (_, found):
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def client(shared_client: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client of an engine with an empty cache."""
    assert (await shared_client.post("/reset_prefix_cache")).json() == {"success": True}
    return shared_client


async def chat(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/v1/chat/completions", json={"messages": QUESTION, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def chat_stream(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    response = await client.post("/v1/chat/completions", json={"messages": QUESTION, **ASK_ALL, **body})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    return sse_frames(response.content)


def text_of(frames: list[dict[str, Any]], index: int = 0) -> str:
    choices = [choice for frame in frames for choice in frame["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


# Streams and whole answers


async def test_a_stream_has_the_recorded_shape(client: httpx.AsyncClient) -> None:
    frames = await chat_stream(client, session_id="s")
    role, *content, last, usage = frames
    assert role["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert tokenizer().decode(role["prompt_token_ids"]).endswith("assistant\n")
    assert all(len(frame["choices"][0]["token_ids"]) == 1 for frame in content)
    assert last["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    counts = usage["usage"]
    assert counts["prompt_tokens"] == len(role["prompt_token_ids"])
    assert counts["completion_tokens"] == len(content) + 1 == counts["total_tokens"] - counts["prompt_tokens"]
    assert counts["prompt_tokens_details"] == {"cached_tokens": 0, "created_cache_tokens": 32}
    assert usage["metrics"]["time_to_first_token_ms"] >= 0
    assert len({frame["id"] for frame in frames}) == 1 and frames[0]["id"].startswith("chatcmpl-")


async def test_only_what_was_asked_for_is_told(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/chat/completions", json={"messages": QUESTION, "stream": True})
    frames = sse_frames(response.content)
    assert all(frame["choices"] and "usage" not in frame and "metrics" not in frame for frame in frames)
    assert frames[0]["prompt_token_ids"] is None
    assert all(frame["choices"][0]["token_ids"] is None for frame in frames[1:])
    assert "system_fingerprint" in frames[-1]


async def test_cold_and_warm_say_the_same_and_warm_reuses(client: httpx.AsyncClient) -> None:
    messages = [SYSTEM, *QUESTION]
    cold, warm = [await chat_stream(client, messages=messages) for _ in range(2)]
    assert [f["choices"][0].get("token_ids") for f in cold[:-1]] == [
        f["choices"][0].get("token_ids") for f in warm[:-1]
    ]
    prompt_tokens = cold[-1]["usage"]["prompt_tokens"]
    assert cold[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert warm[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == (prompt_tokens - 1) // 16 * 16
    full = prompt_tokens // 16 * 16
    assert warm[-1]["usage"]["prompt_tokens_details"]["created_cache_tokens"] == full - (prompt_tokens - 1) // 16 * 16


async def test_streamed_and_whole_are_the_same_answer(client: httpx.AsyncClient) -> None:
    frames = await chat_stream(client)
    whole = await chat(client, return_token_ids=True, return_prompt_text=True)
    choice = whole["choices"][0]
    assert choice["message"]["content"] == text_of(frames)
    assert choice["token_ids"] == [f["choices"][0]["token_ids"][0] for f in frames[1:-1]]
    assert tokenizer().encode_text(whole["prompt_text"], specials=True) == whole["prompt_token_ids"]
    assert whole["usage"]["completion_tokens"] == len(choice["token_ids"])


@pytest.mark.parametrize(
    "question", ["汉武帝的主要功绩有哪些？", "🙂", "<b>&amp;</b>\x00\x1b[31m", "a\ud800b", "x" * 30_000]
)
async def test_prompts_of_any_text(client: httpx.AsyncClient, question: str) -> None:
    raw = json.dumps({"messages": [{"role": "user", "content": question}], **ASK_ALL}).encode()
    response = await client.post("/v1/chat/completions", content=raw, headers={"content-type": "application/json"})
    frames = sse_frames(response.content)
    assert text_of(frames)
    assert "\ufffd" not in text_of(frames)


async def test_max_tokens_cut_the_answer(client: httpx.AsyncClient) -> None:
    frames = await chat_stream(client, max_tokens=3)
    assert [frame["choices"][0]["finish_reason"] for frame in frames[1:-1]] == [None, None, "length"]
    longer = await chat_stream(client, max_completion_tokens=8, max_tokens=1)
    assert longer[-1]["usage"]["completion_tokens"] == 8
    assert text_of(longer).startswith(text_of(frames))


async def test_ignore_eos_goes_on_to_max_tokens(client: httpx.AsyncClient) -> None:
    answer = await chat(client, max_tokens=300, ignore_eos=True)
    assert (answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]) == (300, "length")


async def test_a_stop_string_ends_the_answer_and_the_request(client: httpx.AsyncClient) -> None:
    whole = (await chat(client))["choices"][0]["message"]["content"]
    stop = whole[12:18]
    answer = await chat(client, stop=[stop], ignore_eos=True)
    choice = answer["choices"][0]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    assert choice["message"]["content"] == whole[: whole.index(stop)]
    assert text_of(await chat_stream(client, stop=stop)) == choice["message"]["content"]
    assert (await complete(client, "next"))["choices"]


async def test_a_stop_token_ends_the_answer(client: httpx.AsyncClient) -> None:
    token_ids = (await chat(client, return_token_ids=True))["choices"][0]["token_ids"]
    answer = await chat(client, stop_token_ids=[token_ids[5]], return_token_ids=True)
    assert answer["choices"][0]["token_ids"] == token_ids[:6]
    assert answer["choices"][0]["stop_reason"] == token_ids[5]


async def test_several_answers_at_once(client: httpx.AsyncClient) -> None:
    frames = await chat_stream(client, n=3, max_tokens=5)
    assert [frame["choices"][0]["index"] for frame in frames[:3]] == [0, 1, 2]
    assert len({text_of(frames, index) for index in range(3)}) > 1
    assert frames[-1]["usage"]["completion_tokens"] == 15
    assert "metrics" not in frames[-1]


async def test_continuous_usage(client: httpx.AsyncClient) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    frames = await chat_stream(client, stream_options=options, max_tokens=3)
    assert [frame["usage"]["completion_tokens"] for frame in frames] == [0, 1, 2, 3, 3]


# Completions


async def test_completions_of_every_kind_of_prompt(client: httpx.AsyncClient) -> None:
    once = tokenizer().encode_text("Once upon a time")
    answers = [await complete(client, prompt, return_token_ids=True) for prompt in ("Once upon a time", once)]
    assert [answer["choices"][0]["prompt_token_ids"] for answer in answers] == [once, once]
    assert answers[0]["choices"][0]["text"] == answers[1]["choices"][0]["text"]
    for prompts in (["Once", "upon"], [[1, 2], [3]]):
        answer = await complete(client, prompts, n=2)
        assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert (await client.post("/v1/completions", json={"prompt": "a"})).json()["usage"]["completion_tokens"] == 16


async def test_a_streamed_completion(client: httpx.AsyncClient) -> None:
    body = {"prompt": "Once upon a time", **ASK_ALL, "max_tokens": 4}
    frames = sse_frames((await client.post("/v1/completions", json=body)).content)
    assert [bool(frame["choices"][0]["prompt_token_ids"]) for frame in frames[:-1]] == [True, False, False, False]
    assert frames[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert all(frame["object"] == "text_completion" and frame["id"].startswith("cmpl-") for frame in frames)


async def test_a_template_written_by_hand_is_the_same_prompt(client: httpx.AsyncClient) -> None:
    told = await chat(client, return_prompt_text=True, return_token_ids=True)
    answer = await complete(client, told["prompt_text"], return_token_ids=True)
    assert answer["choices"][0]["prompt_token_ids"] == told["prompt_token_ids"]


async def test_exact_multiples_leave_their_last_block_uncached(client: httpx.AsyncClient) -> None:
    for length, hits in ((32, 16), (33, 32), (47, 32), (48, 32), (49, 48), (15, 0)):
        prompt = token_prompt(1000 + 100 * length, length)
        assert cached(await complete(client, prompt)) == 0
        assert cached(await complete(client, prompt)) == hits


async def test_salts_do_not_share(client: httpx.AsyncClient) -> None:
    prompt = token_prompt(500, 64)
    found = [cached(await complete(client, prompt, cache_salt=salt)) for salt in ("a", "b", "a", "b")]
    assert found == [0, 0, 48, 48]


async def test_prompt_logprobs_skip_the_lookup(client: httpx.AsyncClient) -> None:
    prompt = token_prompt(700, 64)
    await complete(client, prompt)
    assert cached(await complete(client, prompt, prompt_logprobs=0)) == 0
    assert cached(await complete(client, prompt)) == 48


async def test_caching_can_be_off() -> None:
    async with running(enable_prefix_caching=False) as (_, client):
        prompt = token_prompt(700, 64)
        assert [cached(await complete(client, prompt)) for _ in range(2)] == [0, 0]


# The small endpoints


async def test_models_version_and_health(client: httpx.AsyncClient) -> None:
    models = (await client.get("/v1/models")).json()
    assert [(card["id"], card["max_model_len"]) for card in models["data"]] == [(MODEL, 1023 * 16)]
    assert (await client.get("/version")).json() == {
        "version": "0.32.0",
        "prefixscope": {"embedded_engine": True, "profile": "instant", "timing": "modelled"},
    }
    health = await client.get("/health")
    assert (health.status_code, health.content) == (200, b"")
    assert health.headers["server"] == "uvicorn"


async def test_tokenize_and_detokenize(client: httpx.AsyncClient) -> None:
    body = {"messages": QUESTION, "return_token_strs": True, "chat_template_kwargs": {"enable_thinking": False}}
    told = (await client.post("/tokenize", json=body)).json()
    whole = await chat(client, return_token_ids=True, return_prompt_text=True)
    assert told["tokens"] == whole["prompt_token_ids"]
    assert told["count"] == len(told["tokens"]) == len(told["token_strs"])
    assert (told["token_strs"][0], told["token_strs"][25]) == ("<|im_start|>", "Ġis")
    assert told["max_model_len"] == 1023 * 16
    plain = (await client.post("/tokenize", json={"prompt": "Hello 你好", "add_special_tokens": True})).json()
    assert (plain["tokens"], plain["token_strs"]) == ([9707, 220, 108386], None)
    back = await client.post("/detokenize", json={"tokens": told["tokens"]})
    assert back.json() == {"prompt": whole["prompt_text"]}


async def test_without_generation_prompt(client: httpx.AsyncClient) -> None:
    lengths = [
        (await client.post("/tokenize", json={"messages": QUESTION, "add_generation_prompt": wanted})).json()["count"]
        for wanted in (True, False)
    ]
    assert lengths[0] - lengths[1] == 3


# Errors


def recorded_errors() -> list[tuple[str, bytes, int, dict[str, Any]]]:
    found: dict[str, list[Any]] = {}
    for line in (RECORDINGS / "errors.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "request":
            found[entry["id"]] = [entry["path"], entry["body"].encode()]
        elif entry["kind"] == "head":
            found[entry["id"]].append(entry["status"])
        elif entry["kind"] == "bytes":
            found[entry["id"]].append(base64.b64decode(entry["b64"]))
    return [(path, body, status, json.loads(answer)) for path, body, status, answer in found.values()]


async def test_recorded_errors_come_out_the_same() -> None:
    # The pool that gives a context of 4,096 tokens, the recorded server's.
    async with running(num_gpu_blocks=257, model_name="smollm2-135m") as (_, client):
        for path, body, status, answer in recorded_errors():
            response = await client.post(path, content=body, headers=JSON_TYPE)
            assert (response.status_code, response.json()) == (status, answer)


BAD_INPUT: tuple[tuple[str, object, int, str], ...] = (
    ("/v1/completions", {"prompt": ""}, 400, "Either prompt or prompt_embeds must be provided and non-empty."),
    ("/v1/completions", {"prompt": [152064]}, 400, "Token id 152064 is out of vocabulary"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 99_999}, 400, "max_tokens=99999 cannot be greater than"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 0}, 400, "max_tokens must be at least 1, got 0."),
    ("/v1/completions", {"prompt": [1] * 16368}, 400, "max_tokens must be at least 1, got 0."),
    ("/v1/completions", {"prompt": "a", "model": "x"}, 404, "The model `x` does not exist."),
    ("/v1/chat/completions", {}, 400, "Field required"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "At most 0"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a " * 3_000_000}]}, 400, "characters"),
    ("/v1/chat/completions", {"messages": [], "model": "\ud800"}, 404, "The model `\ud800` does not exist."),
    ("/tokenize", {}, 400, "Field required"),
    ("/tokenize", {"prompt": "a", "model": "x"}, 404, "The model `x` does not exist."),
    ("/detokenize", {}, 400, "Field required"),
    ("/detokenize", {"tokens": [999_999]}, 400, "out of vocabulary"),
)


async def test_bad_input_is_refused_in_vllms_shape(client: httpx.AsyncClient) -> None:
    for path, body, status, message in BAD_INPUT:
        response = await client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        error = response.json()["error"]
        assert response.status_code == error["code"] == status
        assert list(error) == ["message", "type", "param", "code"]
        assert message in error["message"]


async def test_methods_and_media_types(client: httpx.AsyncClient) -> None:
    wrong = await client.get("/v1/completions")
    assert (wrong.status_code, wrong.headers["allow"], wrong.json()) == (405, "POST", {"detail": "Method Not Allowed"})
    typed = await client.post("/v1/completions", content=b"{}", headers={"content-type": "text/plain"})
    assert (typed.status_code, typed.json()["error"]["type"]) == (400, "Bad Request")


# Many at once, and those that leave


async def test_fifty_requests_at_once(client: httpx.AsyncClient) -> None:
    messages = [[SYSTEM, {"role": "user", "content": f"Question {number}?"}] for number in range(50)]
    alone = await chat_stream(client, messages=messages[7])
    together = await asyncio.gather(*(chat_stream(client, messages=each) for each in messages))
    assert all(frames[-2]["choices"][0]["finish_reason"] == "stop" for frames in together)
    assert text_of(together[7]) == text_of(alone)
    assert all(frames[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 200 for frames in together)


async def gauge(client: httpx.AsyncClient, name: str) -> float:
    page = (await client.get("/metrics")).text
    return float(next(line.split()[-1] for line in page.splitlines() if line.startswith(f"vllm:{name}{{")))


async def until_idle(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while await gauge(client, "num_requests_running") or await gauge(client, "kv_cache_usage_perc"):
            pass


async def test_a_client_that_leaves_aborts_its_request() -> None:
    async with running(profile="rtx3090-qwen2.5-7b-bf16") as (engine, client):
        body = {"messages": QUESTION, "stream": True, "ignore_eos": True}
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            lines = response.aiter_lines()  # Kept: an iterator that is dropped closes the response.
            while '"token_ids"' not in await anext(lines):
                pass
            assert await gauge(client, "num_requests_running") == 1
            assert await gauge(client, "kv_cache_usage_perc") > 0
        await until_idle(client)
        assert 'finished_reason="abort",model_name="test-model"} 1.0' in (await client.get("/metrics")).text
        assert engine.ranks.loops[0].core.gauges().running == 0


async def test_of_two_long_answers_one_is_given_up() -> None:
    async with running(profile="rtx3090-qwen2.5-7b-bf16") as (_, client):
        body = {"messages": QUESTION, "stream": True, "ignore_eos": True, "max_tokens": 1500}
        async with client.stream("POST", "/v1/chat/completions", json=body) as kept:
            lines = kept.aiter_lines()
            async with client.stream("POST", "/v1/chat/completions", json=body) as given_up:
                for each in (lines, given_up.aiter_lines()):
                    while '"token_ids"' not in await anext(each):
                        pass
                assert await gauge(client, "num_requests_running") == 2
            async with asyncio.timeout(2):
                while await gauge(client, "num_requests_running") != 1:
                    pass
            assert '"token_ids"' in [line for _ in range(4) if (line := await anext(lines))][-1]


async def test_a_client_that_leaves_before_its_whole_answer() -> None:
    async with running(profile="rtx3090-qwen2.5-7b-bf16") as (_, client):
        asking = asyncio.create_task(chat(client, ignore_eos=True))
        async with asyncio.timeout(TIMEOUT_S):
            while not await gauge(client, "num_requests_running"):
                pass
        asking.cancel()
        await until_idle(client)


async def test_a_reset_is_refused_while_blocks_are_in_use() -> None:
    async with running(profile="rtx3090-qwen2.5-7b-bf16") as (_, client):
        prompt = token_prompt(900, 64)
        await complete(client, prompt)
        body = {"messages": QUESTION, "stream": True, "ignore_eos": True}
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            lines = response.aiter_lines()
            await anext(lines)
            refused = await client.post("/reset_prefix_cache")
            assert (refused.status_code, refused.json()) == (200, {"success": False})
        await until_idle(client)
        assert (await client.post("/reset_prefix_cache")).json() == {"success": True}
        assert cached(await complete(client, prompt)) == 0


async def test_stopping_ends_running_streams() -> None:
    async with running(profile="rtx3090-qwen2.5-7b-bf16") as (engine, client):
        body = {"messages": QUESTION, "stream": True, "ignore_eos": True}
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            lines = response.aiter_lines()
            await anext(lines)
            engine.server.should_exit = True
            assert "data: [DONE]" not in [line async for line in lines]


async def test_modelled_times_are_told_and_taken() -> None:
    async with running(profile="rtx3090-qwen2.5-7b-bf16") as (_, client):
        started_s = asyncio.get_running_loop().time()
        answer = await complete(client, token_prompt(0, 353), max_tokens=5)
        took_ms = (asyncio.get_running_loop().time() - started_s) * 1000
        metrics = answer["metrics"]
        assert metrics["time_to_first_token_ms"] == pytest.approx(33 + 353 * (0.2005 + 0.00665))
        assert metrics["generation_time_ms"] == pytest.approx(4 * 19.7)
        assert took_ms >= metrics["time_to_first_token_ms"] + metrics["generation_time_ms"]


# The openai client


async def test_the_openai_client_works_unchanged() -> None:
    async with (
        running() as (engine, _),
        openai.AsyncOpenAI(base_url=f"{engine.base_url}/v1", api_key="none", max_retries=0) as client,
    ):
        assert [model.id async for model in client.models.list()] == [MODEL]
        messages: Any = QUESTION
        whole = await client.chat.completions.create(model=MODEL, messages=messages)
        stream = await client.chat.completions.create(
            model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert streamed == whole.choices[0].message.content
        assert chunks[-1].usage is not None and chunks[-1].usage.prompt_tokens_details is not None
        assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 32
        completion = await client.completions.create(model=MODEL, prompt="Once", max_tokens=4)
        assert completion.usage is not None and completion.usage.completion_tokens == 4
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            await client.chat.completions.create(model="other", messages=messages)
