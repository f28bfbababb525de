"""Large bodies are read by a process of its own, and a failure of it costs no more than the reading."""

import asyncio
import gc
import io
import json
import signal

import msgspec
import pytest

from app.sources.body_process import answer, serve
from app.sources.body_questions import HEAD, LENGTH, AboutRequest, AboutResponse
from app.sources.body_reader import MAX_WAITING, BodyReader, BodyUnread
from app.wire.chat_chunks import read_body
from app.wire.packed_ids import pack_ids
from app.wire.request_reading import Wanted, read_request

KEY = b"k" * 32
REQUEST = json.dumps(
    {"model": "m", "stream": True, "messages": [{"role": "user", "content": "word " * 100_000}], "cache_salt": "s"}
).encode()
IDS = json.dumps({"model": "m", "prompt": list(range(60_000))}).encode()
RESPONSE = json.dumps(
    {
        "choices": [{"index": 0, "message": {"content": "a" * 400_000}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}},
    }
).encode()


async def test_the_process_reads_what_would_be_read_here() -> None:
    reader = BodyReader()
    try:
        for body, wanted in ((REQUEST, Wanted(token_ids=True, full_report=True)), (IDS, None), (b"no JSON", None)):
            expected = read_request(body, KEY, wanted, with_label=True)
            assert await reader.read_request((body[:99], body[99:]), KEY, wanted, with_label=True) == expected
        assert (await reader.read_request((IDS,), KEY, None, with_label=False)).packed_prompt == pack_ids(range(60_000))
        assert await reader.read_response(RESPONSE) == read_body(RESPONSE)
    finally:
        await reader.close()
    with pytest.raises(BodyUnread, match="stopping"):
        await reader.read_response(RESPONSE)


async def test_whoever_gives_up_leaves_the_next_its_own_answer() -> None:
    reader = BodyReader()
    try:
        given_up = asyncio.create_task(reader.read_response(RESPONSE))
        await asyncio.sleep(0)
        following = asyncio.create_task(reader.read_request((IDS,), KEY, None, with_label=False))
        await asyncio.sleep(0)
        given_up.cancel()
        assert (await following).facts.is_object
        with pytest.raises(asyncio.CancelledError):
            await given_up
    finally:
        await reader.close()


async def test_a_process_that_ended_is_started_again() -> None:
    reader = BodyReader()
    try:
        await reader.read_response(b"{}")
        assert reader._process is not None
        reader._process.send_signal(signal.SIGKILL)
        with pytest.raises(BodyUnread):
            await reader.read_response(RESPONSE)
        assert await reader.read_response(RESPONSE) == read_body(RESPONSE)
    finally:
        await reader.close()


async def test_too_many_wait_no_longer_and_a_stop_leaves_them_unread() -> None:
    reader = BodyReader()
    asked = [asyncio.create_task(reader.read_response(RESPONSE)) for _ in range(MAX_WAITING + 2)]
    await asyncio.sleep(0)
    await reader.close()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, BodyUnread) for one in answers)
    assert [str(one) for one in answers].count("other large bodies are being read") == 1
    gc.collect()


def test_questions_are_answered_in_order_until_there_are_no_more() -> None:
    encode = msgspec.msgpack.encode
    asked = b""
    for question, body in (
        (encode(AboutResponse()), b"{}"),
        (b"nonsense", b"x"),
        (encode(AboutRequest(KEY, None, False)), b"{}"),
    ):
        asked += HEAD.pack(len(question), len(body)) + question + body
    told = io.BytesIO()
    serve(io.BytesIO(asked + b"\0\0"), told)
    rest, answers = told.getvalue(), []
    while rest:
        (length,) = LENGTH.unpack(rest[: LENGTH.size])
        answers.append(rest[LENGTH.size : LENGTH.size + length])
        rest = rest[LENGTH.size + length :]
    assert answers[1] == b""
    assert answers[0] == encode(read_body(b"{}"))
    assert msgspec.msgpack.decode(answers[2])["facts"]["is_object"] is True
    assert answer(b"", b"") == b""
