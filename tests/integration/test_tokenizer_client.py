"""The tokenizer client against a small server: one call at a time, bounded, None wherever there is no answer."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.ids import ServerId
from app.sources.tokenizer import MAX_WAITING, TokenizerClient
from tests.integration.small_http import Answer, SmallHttp

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
CHAT = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
PATH = "/v1/chat/completions"


class FakeClock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> float:
        return 0.0


@asynccontextmanager
async def client(
    url: str, key: str | None = None, max_bytes: int = 1_000_000, **more: Any
) -> AsyncIterator[TokenizerClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield TokenizerClient(ServerId(url), http, key, max_bytes, **more)


def tokens(*ids: int) -> Answer:
    return Answer(body=json.dumps({"count": len(ids), "tokens": ids}).encode())


async def test_tokens_of_a_chat() -> None:
    async with SmallHttp({"/tokenize": tokens(1, 2, 3)}) as server, client(server.url, "K") as tokenizer:
        assert await tokenizer.tokenize(PATH, CHAT) == (1, 2, 3)
    (asked,) = server.asked
    assert (asked.method, asked.body, asked.headers["authorization"]) == ("POST", CHAT, "Bearer K")


async def test_the_recorded_call_and_answer() -> None:
    records = [json.loads(line) for line in (RECORDINGS / "cjk.jsonl").read_text().splitlines()]
    request = next(record for record in records if record["kind"] == "request" and record["path"] == "/tokenize")
    chat = request["body"] if isinstance(request["body"], str) else json.dumps(request["body"])
    async with SmallHttp({"/tokenize": tokens(5)}) as server, client(server.url) as tokenizer:
        assert await tokenizer.tokenize(PATH, chat.encode()) == (5,)
    assert json.loads(server.asked[0].body)["messages"] == json.loads(chat)["messages"]


async def test_text_of_tokens() -> None:
    answer = Answer(body=b'{"prompt":"\xe4\xb8\xad"}')
    async with SmallHttp({"/detokenize": answer}) as server, client(server.url) as tokenizer:
        assert await tokenizer.detokenize((7, 8)) == "中"
    assert json.loads(server.asked[0].body) == {"tokens": [7, 8]}


@pytest.mark.parametrize(
    "answer",
    [Answer(400), Answer(401), Answer(500), Answer(body=b"{}"), Answer(body=b"nonsense"), Answer(raw=b"x\r\n\r\n")],
)
async def test_no_answer_is_none(answer: Answer) -> None:
    async with SmallHttp({"/tokenize": answer}) as server, client(server.url) as tokenizer:
        assert await tokenizer.tokenize(PATH, CHAT) is None
        server.answers["/tokenize"] = tokens(1)
        assert await tokenizer.tokenize(PATH, CHAT) == (1,)


async def test_a_server_without_tokenizer_is_not_asked_again_for_a_while() -> None:
    clock = FakeClock()
    async with SmallHttp() as server, client(server.url, clock=clock) as tokenizer:
        assert await tokenizer.tokenize(PATH, CHAT) is None
        server.answers["/tokenize"] = tokens(1)
        assert await tokenizer.tokenize(PATH, CHAT) is None
        assert len(server.asked) == 1
        clock.now += 60
        assert await tokenizer.tokenize(PATH, CHAT) == (1,)


async def test_an_unknown_model_says_nothing_about_the_tokenizer() -> None:
    unknown = Answer(404, b'{"error":{"message":"The model `x` does not exist.","type":"NotFoundError"}}')
    async with SmallHttp({"/tokenize": unknown}) as server, client(server.url) as tokenizer:
        assert await tokenizer.tokenize(PATH, CHAT) is None
        server.answers["/tokenize"] = tokens(1)
        assert await tokenizer.tokenize(PATH, CHAT) == (1,)


async def test_limits_of_size_and_time() -> None:
    async with SmallHttp({"/tokenize": Answer(hang=True)}) as server:
        async with client(server.url, max_bytes=len(CHAT) - 1) as tokenizer:
            assert await tokenizer.tokenize(PATH, CHAT) is None
            assert server.asked == []
        async with client(server.url, timeout_s=0.05) as tokenizer:
            assert await tokenizer.tokenize(PATH, CHAT) is None
        async with client(server.url, max_bytes=len(CHAT)) as tokenizer:
            server.answers["/tokenize"] = tokens(*range(1000))
            assert await tokenizer.tokenize(PATH, CHAT) is None


async def test_one_call_at_a_time_and_a_bounded_queue() -> None:
    async with SmallHttp({"/tokenize": tokens(1)}) as server, client(server.url) as tokenizer:
        answers = await asyncio.gather(*(tokenizer.tokenize(PATH, CHAT) for _ in range(MAX_WAITING + 5)))
    assert (answers.count((1,)), answers.count(None)) == (MAX_WAITING, 5)
    assert server.most_in_flight == 1


async def test_a_large_body_goes_through_a_thread() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 300_000}]}).encode()
    async with SmallHttp({"/tokenize": tokens(*range(100_000))}) as server, client(server.url) as tokenizer:
        assert await tokenizer.tokenize(PATH, body) == tuple(range(100_000))


async def test_a_dead_server_and_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with SmallHttp() as gone:
        url = gone.url
    async with client(url, "secret-key") as tokenizer:
        assert await tokenizer.tokenize(PATH, CHAT) is None
        assert await tokenizer.detokenize([1]) is None
    assert "secret-key" not in caplog.text
