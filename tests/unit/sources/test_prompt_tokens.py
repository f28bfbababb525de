"""Tokenising after the send: one at a time, within a budget, and never in anyone's way."""

import asyncio

import pytest

from app.ids import RequestId, ServerId
from app.observations import Malformed, Observation, RequestPromptTokens
from app.sources.clock import SystemClock
from app.sources.prompt_tokens import BURST, MAX_WAITING, PromptTokens


class SlowTokenizer:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0

    async def tokenize(self, path: str, body: bytes) -> tuple[int, ...] | None:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.go.wait()
        self.at_once -= 1
        if body == b"fail":
            raise RuntimeError("words of the prompt")
        return None if body == b"none" else (1, 2)


def made() -> tuple[PromptTokens, SlowTokenizer, list[Observation]]:
    seen: list[Observation] = []
    tokenizer = SlowTokenizer()
    return PromptTokens(ServerId("s"), tokenizer, seen.append, SystemClock(), 100), tokenizer, seen


async def until_seen(seen: list[Observation], count: int) -> None:
    async with asyncio.timeout(10):
        while len(seen) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_one_at_a_time_in_order() -> None:
    prompts, tokenizer, seen = made()
    for number in range(5):
        prompts.ask(RequestId(f"r-{number}"), "/v1/chat/completions", b"{}")
    prompts.ask(RequestId("r-large"), "/v1/chat/completions", b"x" * 101)
    await asyncio.sleep(0)
    assert tokenizer.asked == 1
    tokenizer.go.set()
    await until_seen(seen, 5)
    assert [o.request for o in seen if isinstance(o, RequestPromptTokens)] == [f"r-{n}" for n in range(5)]
    assert tokenizer.most_at_once == 1
    await prompts.close()


async def test_failures_are_told_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    prompts, tokenizer, seen = made()
    tokenizer.go.set()
    for body in (b"fail", b"none", b"{}"):
        prompts.ask(RequestId(body.decode()), "/v1/chat/completions", body)
    await until_seen(seen, 2)
    assert [o.request for o in seen if isinstance(o, RequestPromptTokens)] == ["{}"]
    (mark,) = (o for o in seen if isinstance(o, Malformed))
    assert (mark.source, mark.request, mark.detail) == (
        "tokenize", "fail", "asking for the prompt's tokens failed: RuntimeError",
    )  # fmt: skip
    assert "RuntimeError" in caplog.text and "words of the prompt" not in caplog.text + repr(seen)
    await prompts.close()


async def test_under_load_the_oldest_go_without() -> None:
    prompts, tokenizer, seen = made()
    for number in range(1000):
        prompts.ask(RequestId(f"r-{number}"), "/v1/chat/completions", b"{}")
    tokenizer.go.set()
    await until_seen(seen, BURST)
    assert tokenizer.asked <= BURST + 1
    assert isinstance(seen[0], RequestPromptTokens) and seen[0].request == f"r-{1000 - MAX_WAITING}"
    await prompts.close()
    assert len(seen) < MAX_WAITING


async def test_it_starts_again_after_it_was_idle() -> None:
    prompts, tokenizer, seen = made()
    tokenizer.go.set()
    for number in range(1, 4):
        prompts.ask(RequestId("r"), "/v1/chat/completions", b"{}")
        await until_seen(seen, number)
        await asyncio.sleep(0)
    await prompts.close()
