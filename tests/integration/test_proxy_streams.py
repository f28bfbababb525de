"""The proxy over loopback: what passes, what is observed, and how every ending is told apart."""

import asyncio
import contextlib
import gzip
import json

import pytest

from app.observations import (
    Malformed,
    RequestEngineTimes,
    RequestFirstToken,
    RequestHead,
    RequestOutputTokens,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from app.wire.packed_ids import pack_ids

from .proxy_rig import LAST_CHUNK, SSE_HEAD, Asked, Client, chunk, on_both_loops, rig, sized, sse, until

ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
HI = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}\n\n'
DONE = b"data: [DONE]\n\n"
BODY = b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true}'


@on_both_loops
async def test_a_stream_passes_and_is_observed() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(*sse(ROLE, HI, HI, STOP, USAGE, DONE))

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert answer.body == ROLE + HI + HI + STOP + USAGE + DONE
        assert answer.header(b"x-accel-buffering") == b"no"
        assert answer.header(b"cache-control") == b"no-cache"
        assert answer.header(b"x-prefixscope-request") is None
        ended = await r.ended()
        assert (ended.outcome, ended.status, ended.finish_reason, ended.content_chunks) == ("ok", 200, "stop", 2)
        (started,) = r.all(RequestStarted)
        assert started.model == "m" and started.streamed and started.origin == "client"
        assert started.label is None and not started.show_text
        assert str(started.session_id) == str(started.request)
        (first,) = r.all(RequestFirstToken)
        assert first.answer and started.at_s <= first.at_s <= ended.at_s
        (usage,) = r.all(RequestUsage)
        assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (10, 5, None)
        assert not r.all(Malformed)
        assert r.proxy.active == 0


@on_both_loops
async def test_the_first_token_is_the_first_content_not_the_role_frame() -> None:
    go = asyncio.Event()
    reached: list[float] = []

    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(ROLE), chunk(b": ping\n\n"), chunk(b'data: {"choices":[]}\n\n'))
        await go.wait()
        reached.append(r.proxy.clock.monotonic())
        await asked.send(chunk(HI[:40]))
        await asyncio.sleep(0)
        await asked.send(chunk(HI[40:]), chunk(HI), chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        await client.read_until(b'"choices":[]}\n\n')
        assert r.all(RequestHead) and not r.all(RequestFirstToken)
        go.set()
        await client.read_until(b"0\r\n\r\n")
        await r.ended()
        (first,) = r.all(RequestFirstToken)
        assert first.at_s >= reached[0]
        client.close()


@pytest.mark.parametrize("key", [b"reasoning", b"reasoning_content"])
@on_both_loops
async def test_reasoning_comes_first_the_answer_second(key: bytes) -> None:
    thought = b'data: {"choices":[{"index":0,"delta":{"content":null,"%b":"Okay"}}]}\n\n' % key

    async def script(asked: Asked) -> None:
        await asked.send(*sse(ROLE, thought, thought, HI, STOP, DONE))

    async with rig(script) as r:
        await r.fetch(BODY)
        await r.ended()
        assert [token.answer for token in r.all(RequestFirstToken)] == [False, True]


@on_both_loops
async def test_head_goes_out_before_the_first_event() -> None:
    go = asyncio.Event()

    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD)
        await go.wait()
        await asked.send(chunk(HI), chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        assert (await client.head()).startswith(b"HTTP/1.1 200")
        assert not go.is_set()
        go.set()
        await client.read_until(b"0\r\n\r\n")
        client.close()


@on_both_loops
async def test_pieces_pass_at_once_even_in_the_middle_of_a_character() -> None:
    got = asyncio.Event()

    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(b'data: {"choices":[{"delta":{"content":"\xea\xb9'))
        await got.wait()
        await asked.send(chunk(b'\xb0"}}]}\n\n'), chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        assert (await client.read_until(b"\xea\xb9")).endswith(b"\xea\xb9")
        assert not r.all(RequestFirstToken)
        got.set()
        await client.read_until(b"0\r\n\r\n")
        assert (await r.ended()).content_chunks == 1
        client.close()


@pytest.mark.parametrize(
    ("pieces", "outcome"),
    [
        (sse(ROLE, HI, STOP, DONE), "ok"),
        (sse(ROLE, STOP, DONE), "ok"),
        (sse(ROLE, HI, STOP), "ok"),
        (sse(ROLE, HI, DONE), "ok"),
        (sse(ROLE, HI, DONE[:-2]), "ok"),
        (sse(ROLE, HI, b'data: {"error":{"message":"out of memory","code":500}}\n\n', DONE), "stream_error"),
        (sse(), "empty"),
        (sse(b": ping\n\n"), "empty"),
        (sse(DONE), "empty"),
        (sse(ROLE), "truncated"),
        (sse(ROLE, HI), "truncated"),
        ([sized(b'{"error":{"message":"too long","code":400}}', b"400 Bad Request")], "http_error"),
        ([sized(b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}')], "ok"),
    ],
    ids=range(13),
)
@on_both_loops
async def test_endings(pieces: list[bytes], outcome: str) -> None:
    async def script(asked: Asked) -> None:
        await asked.send(*pieces)

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert answer.complete
        ended = await r.ended()
        assert ended.outcome == outcome
        assert ended.error == {"stream_error": "out of memory", "http_error": "too long"}.get(outcome)


@pytest.mark.parametrize("status", [b"600 Beyond", b"999 Beyond", b"099 Below"])
@on_both_loops
async def test_a_status_that_none_can_pass_on(status: bytes) -> None:
    async def script(asked: Asked) -> None:
        await asked.send(sized(b"{}", status))

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert answer.status == 502 and json.loads(answer.body)["error"]["code"] == "server_unreachable"
        assert (await r.ended()).outcome == "server_gone"


@pytest.mark.parametrize(
    "pieces", [[], [SSE_HEAD], [SSE_HEAD, chunk(ROLE), chunk(HI)], [b"HTTP/1.1 200 OK\r\ncontent-le"]]
)
@on_both_loops
async def test_a_server_that_goes_away(pieces: list[bytes]) -> None:
    async def script(asked: Asked) -> None:
        await asked.send(*pieces)
        asked.writer.transport.abort()

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert (await r.ended()).outcome == "server_gone"
        if pieces and pieces[0] is SSE_HEAD:
            assert not answer.complete and answer.status == 200
        else:
            assert answer.status == 502
            error = json.loads(answer.body)["error"]
            assert error["code"] == "server_unreachable" and error["type"] and error["message"]


@on_both_loops
async def test_a_body_shorter_than_its_length_is_not_passed_off_as_whole() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
        asked.writer.close()

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert not answer.complete and answer.body == b"abc"
        assert (await r.ended()).outcome == "server_gone"


@on_both_loops
async def test_a_body_that_ends_with_the_connection() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", HI, STOP, DONE)
        asked.writer.close()

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert answer.complete and answer.body == HI + STOP + DONE
        assert (await r.ended()).outcome == "ok"


@on_both_loops
async def test_a_silent_server_times_out_with_504() -> None:
    async def script(asked: Asked) -> None:
        await asked.closed()

    async with rig(script, read_timeout_s="0.2") as r:
        answer = await r.fetch(BODY)
        assert answer.status == 504
        assert json.loads(answer.body)["error"]["code"] == "server_timeout"
        assert (await r.ended()).outcome == "timed_out"


@on_both_loops
async def test_a_stream_that_falls_silent_times_out() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(HI))
        await asked.closed()

    async with rig(script, read_timeout_s="0.2") as r:
        answer = await r.fetch(BODY)
        assert not answer.complete
        assert (await r.ended()).outcome == "timed_out"


@on_both_loops
async def test_a_server_that_is_not_there() -> None:
    async with rig() as r:
        await r.server.stop()
        answer = await r.fetch(BODY)
        assert answer.status == 502
        error = json.loads(answer.body)["error"]
        assert "can't be reached" in error["message"] and "Is vLLM running" in error["message"]
        ended = await r.ended()
        assert ended.outcome == "server_gone" and ended.status is None
        assert len(r.all(RequestStarted)) == 1
        await r.server.start()


@pytest.mark.parametrize("events", range(5))
@on_both_loops
async def test_the_client_leaves_a_stream(events: int) -> None:
    closed: list[float] = []

    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, *(chunk(event) for event in (ROLE, HI, HI, HI)[:events]))
        closed.append(await asked.closed())
        asked.writer.close()

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        await client.head()
        for _ in range(events):
            await client.read_until(b"\n\n")
        left = asyncio.get_running_loop().time()
        client.close()
        ended = await r.ended()
        await until(lambda: bool(closed))
        assert closed[0] - left < 1
        assert (ended.outcome, ended.content_chunks) == ("client_gone", max(0, events - 1))
        await until(lambda: r.proxy.active == 0)


@on_both_loops
async def test_the_client_leaves_before_the_answer() -> None:
    closed: list[float] = []

    async def script(asked: Asked) -> None:
        closed.append(await asked.closed())

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(b'{"model":"m","messages":[]}')
        await until(lambda: bool(r.server.asked))
        left = asyncio.get_running_loop().time()
        client.close()
        assert (await r.ended()).outcome == "client_gone"
        await until(lambda: bool(closed))
        assert closed[0] - left < 1


@on_both_loops
async def test_a_slow_client_holds_the_server_back_and_fills_no_memory() -> None:
    sent = 0
    stuck = asyncio.Event()

    async def script(asked: Asked) -> None:
        nonlocal sent
        await asked.send(SSE_HEAD)
        piece = chunk(b": " + b"x" * 65536 + b"\n\n")
        with contextlib.suppress(TimeoutError):
            while sent < 200 << 20:
                async with asyncio.timeout(0.5):
                    await asked.send(piece)
                sent += len(piece)
        stuck.set()
        await asked.closed()

    async with rig(script) as r:
        client = await Client.to(r.url, buffer_bytes=65536)
        await client.ask(BODY)
        await client.head()
        await stuck.wait()
        assert sent < 30 << 20  # What the system's own socket buffers take.
        client.close()
        assert (await r.ended()).outcome == "client_gone"


@on_both_loops
async def test_engine_times_token_ids_and_prompt_come_from_the_response() -> None:
    first = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"prompt_token_ids":[1,2,3]}\n\n'
    token = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"token_ids":[%d]}]}\n\n'
    last = (
        b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":'
        b'{"cached_tokens":0,"created_cache_tokens":2}},"metrics":{"time_to_first_token_ms":7,"queue_time_ms":0.5}}\n\n'
    )

    async def script(asked: Asked) -> None:
        await asked.send(*sse(first, token % 7, token % 8, STOP, last, DONE))

    async with rig(script) as r:
        await r.fetch(BODY[:-1] + b',"return_token_ids":true}')
        await r.ended()
        assert [(p.token_ids, p.source) for p in r.all(RequestPromptTokens)] == [((1, 2, 3), "response")]
        assert [(o.start, o.token_ids) for o in r.all(RequestOutputTokens)] == [(0, (7,)), (1, (8,))]
        (times,) = r.all(RequestEngineTimes)
        assert (times.ttft_ms, times.queue_ms, times.generation_ms) == (7, 0.5, None)
        (usage,) = r.all(RequestUsage)
        assert (usage.cached_tokens, usage.created_cache_tokens) == (0, 2)
        assert r.tokenizer.asked == []


@on_both_loops
async def test_a_first_event_of_a_megabyte() -> None:
    ids = list(range(200_000))
    first = b'data: {"choices":[{"delta":{"content":""}}],"prompt_token_ids":%b}\n\n' % json.dumps(ids).encode()

    async def script(asked: Asked) -> None:
        await asked.send(*sse(*(first[i : i + 60_000] for i in range(0, len(first), 60_000)), HI, STOP, DONE))

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert answer.body == first + HI + STOP + DONE
        await r.ended()
        told = next(p for p in r.all(RequestPromptTokens) if p.source == "response")
        assert (told.token_ids, told.packed) == ((), pack_ids(ids))


@on_both_loops
async def test_above_the_line_limit_the_stream_passes_unread() -> None:
    long = b"data: " + b"x" * 5000 + b"\n\n"

    async def script(asked: Asked) -> None:
        await asked.send(*sse(ROLE, long, HI, STOP, DONE))

    async with rig(script, max_sse_line_bytes="1000") as r:
        answer = await r.fetch(BODY)
        assert answer.body == ROLE + long + HI + STOP + DONE
        assert (await r.ended()).outcome == "ok"
        (mark,) = r.all(Malformed)
        assert mark.source == "sse" and "1000 bytes" in mark.detail and mark.request is not None


@on_both_loops
async def test_malformed_events_are_counted_and_stop_nothing() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(*sse(ROLE, *[b"data: {nonsense\n\n"] * 50, HI, STOP, DONE))

    async with rig(script) as r:
        assert (await r.fetch(BODY)).complete
        ended = await r.ended()
        assert (ended.outcome, ended.content_chunks) == ("ok", 1)
        assert len(r.all(Malformed)) == 10


@pytest.mark.parametrize("show_prompts", ["true", "false"])
@on_both_loops
async def test_a_failing_tap_is_marked_and_the_stream_goes_on(
    monkeypatch: pytest.MonkeyPatch, show_prompts: str
) -> None:
    async def script(asked: Asked) -> None:
        await asked.send(*sse(ROLE, HI, STOP, DONE))

    def fail(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("app.sources.response_tap.read_event", fail)
    async with rig(script, show_prompts=show_prompts) as r:
        assert (await r.fetch(BODY)).body == ROLE + HI + STOP + DONE
        assert (await r.ended()).outcome == "ok"
        detail = r.all(Malformed)[0].detail
        assert "RuntimeError" in detail and ("a mistake of ours" in detail) is (show_prompts == "true")


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("status", [b"200 OK", b"401 Unauthorized"])
@on_both_loops
async def test_compressed_bodies_stay_compressed_and_are_read_all_the_same(status: bytes, members: int) -> None:
    plain = b'{"error":{"message":"no key"}}' if b"401" in status else (
        b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}'
    )  # fmt: skip
    size = -(-len(plain) // members)
    packed = b"".join(gzip.compress(plain[at : at + size]) for at in range(0, len(plain), size))

    async def script(asked: Asked) -> None:
        await asked.send(sized(packed, status, b"content-type: application/json\r\ncontent-encoding: gzip\r\n"))

    async with rig(script) as r:
        answer = await r.fetch(b'{"model":"m"}')
        assert answer.body == packed and answer.header(b"content-encoding") == b"gzip"
        assert answer.header(b"content-length") == b"%d" % len(packed)
        ended = await r.ended()
        assert (ended.outcome, ended.error) == (("http_error", "no key") if b"401" in status else ("ok", None))
        assert not r.all(RequestFirstToken)


@on_both_loops
async def test_what_cannot_be_unpacked_passes_with_a_mark() -> None:
    bomb = gzip.compress(b"\0" * (64 << 20))

    async def script(asked: Asked) -> None:
        encoding = b"br" if b"br" in asked.line else b"gzip"
        body = {b"case=br": b"\x01\x02", b"case=bomb": bomb}.get(asked.line.split(b"?")[1].split(b" ")[0], b"not gzip")
        await asked.send(sized(body, headers=b"content-encoding: %b\r\n" % encoding))

    async with rig(script) as r:
        for number, case in enumerate((b"br", b"bomb", b"junk"), 1):
            answer = await r.fetch(b"{}", path=b"/v1/chat/completions?case=" + case)
            assert answer.complete and len(answer.body) in (2, len(bomb), 8)
            assert (await r.ended(number)).outcome == "ok"
            assert len(r.all(Malformed)) == number
