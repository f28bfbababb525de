"""Comments to a stream's client while the server is silent, and what becomes of errors that come after the first."""

import asyncio
import gzip
import json

import pytest

from app.observations import RequestFirstToken, RequestHead

from .proxy_rig import LAST_CHUNK, SSE_HEAD, Asked, Client, chunk, on_both_loops, rig, sized, sse

HI = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
BODY = b'{"model":"m","messages":[],"stream":true}'
PING = b": ping\n\n"
EACH_S = "0.02"


@on_both_loops
async def test_off_by_default() -> None:
    go = asyncio.Event()

    async def script(asked: Asked) -> None:
        await go.wait()
        await asked.send(*sse(HI, STOP, DONE))

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.reader.readexactly(1)
        go.set()
        assert (await client.answer()).body == HI + STOP + DONE
        client.close()


@pytest.mark.parametrize("head_first", [True, False])
@on_both_loops
async def test_pings_until_the_first_byte_and_none_after(head_first: bool) -> None:
    go, more = asyncio.Event(), asyncio.Event()

    async def script(asked: Asked) -> None:
        if head_first:
            await asked.send(SSE_HEAD)
        await go.wait()
        if not head_first:
            await asked.send(SSE_HEAD)
        await asked.send(chunk(HI))
        await more.wait()
        await asked.send(chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script, ping_interval_s=EACH_S) as r:
        client = await Client.to(r.url)
        await client.ask(BODY, headers=b"accept-encoding: gzip\r\n")
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head and b"no-cache" in head
        for _ in range(3):
            await client.read_until(PING)
        assert not r.all(RequestFirstToken)
        go.set()
        await client.read_until(HI)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.read_until(PING)
        more.set()
        rest = await client.read_until(b"0\r\n\r\n")
        assert PING not in rest and STOP in rest and DONE in rest
        ended = await r.ended()
        assert (ended.outcome, ended.status, ended.content_chunks) == ("ok", 200, 1)
        assert b"accept-encoding" not in dict(r.server.asked[0].headers)
        client.close()


@pytest.mark.parametrize(
    ("path", "end"),
    [
        (
            b"/v1/chat/completions",
            b'data: {"error":{"message":"too long","type":"BadRequestError","code":400}}\n\n' + DONE,
        ),
        (
            b"/v1/messages",
            b'event: error\ndata: {"type":"error","error":{"type":"BadRequestError","message":"too long"}}\n\n',
        ),
        (
            b"/v1/responses",
            b'event: error\ndata: {"type":"error","code":400,"message":"too long","param":null}\n\n',
        ),
    ],
)  # fmt: skip
@on_both_loops
async def test_a_late_error_status_comes_within_the_stream_and_is_recorded_as_it_is(path: bytes, end: bytes) -> None:
    go = asyncio.Event()

    async def script(asked: Asked) -> None:
        await go.wait()
        body = b'{"error": {"message": "too long", "type": "BadRequestError", "code": 400}}'
        await asked.send(sized(body, b"400 Bad Request"))

    async with rig(script, ping_interval_s=EACH_S) as r:
        client = await Client.to(r.url)
        await client.ask(BODY, path)
        await client.read_until(PING)
        go.set()
        answer = await client.read_until(b"0\r\n\r\n")
        assert end in answer
        ended = await r.ended()
        assert (ended.outcome, ended.status, ended.error) == ("http_error", 400, "too long")
        assert [head.status for head in r.all(RequestHead)] == [400]
        client.close()


@on_both_loops
async def test_an_error_before_the_first_ping_keeps_its_status() -> None:
    body = b'{"error":{"message":"too long"}}'

    async def script(asked: Asked) -> None:
        await asked.send(sized(body, b"400 Bad Request"))

    async with rig(script, ping_interval_s="5") as r:
        answer = await r.fetch(BODY)
        assert (answer.status, answer.body) == (400, body)


@pytest.mark.parametrize("how", ["closed", "silent"])
@on_both_loops
async def test_a_server_that_is_lost_after_the_first_ping(how: str) -> None:
    go = asyncio.Event()

    async def script(asked: Asked) -> None:
        if how == "closed":
            await go.wait()
            asked.writer.transport.abort()
        else:
            await asked.closed()

    async with rig(script, ping_interval_s=EACH_S, read_timeout_s="0.3") as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        await client.read_until(PING)
        go.set()
        answer = await client.read_until(b"0\r\n\r\n")
        error = json.loads(answer[answer.index(b'{"error"') : answer.index(b"\n\ndata: [DONE]")])["error"]
        assert error["code"] == ("server_unreachable" if how == "closed" else "server_timeout")
        assert (await r.ended()).outcome == ("server_gone" if how == "closed" else "timed_out")
        assert r.proxy.active == 0
        client.close()


@on_both_loops
async def test_a_whole_answer_after_the_first_ping_is_one_event() -> None:
    go = asyncio.Event()

    async def script(asked: Asked) -> None:
        await go.wait()
        await asked.send(sized(b'{\n"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'))

    async with rig(script, ping_interval_s=EACH_S) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        await client.read_until(PING)
        go.set()
        answer = await client.read_until(b"0\r\n\r\n")
        assert b'data: {\ndata: "choices":[{"message":' in answer and DONE in answer
        assert (await r.ended()).outcome == "ok"
        client.close()


@on_both_loops
async def test_what_may_not_be_added_to_gets_no_pings() -> None:
    packed = gzip.compress(HI + STOP + DONE)

    async def script(asked: Asked) -> None:
        kind = asked.line.split(b"case=")[1].split(b" ")[0]
        head = b"content-type: text/event-stream\r\n" + (b"content-encoding: gzip\r\n" if kind == b"gzip" else b"")
        body = packed if kind == b"gzip" else HI + STOP + DONE
        answer = sized(body, headers=head)
        start = answer.index(b"\r\n\r\n") + 4
        await asked.send(answer[:start])
        await asyncio.sleep(0.1)
        await asked.send(answer[start:])

    async with rig(script, ping_interval_s=EACH_S) as r:
        for case, body in ((b"gzip", packed), (b"sized", HI + STOP + DONE)):
            answer = await r.fetch(BODY, b"/v1/chat/completions?case=" + case)
            assert answer.complete and answer.body == body
        off = await r.fetch(BODY, b"/v1/chat/completions?case=sized", headers=b"x-prefixscope-mode: off\r\n")
        assert off.body == HI + STOP + DONE
        assert (await r.ended(3)).outcome == "ok"


@pytest.mark.parametrize("before_head", [True, False])
@on_both_loops
async def test_a_client_that_leaves_while_it_is_pinged(before_head: bool) -> None:
    closed: list[float] = []

    async def script(asked: Asked) -> None:
        if not before_head:
            await asked.send(SSE_HEAD)
        closed.append(await asked.closed())

    async with rig(script, ping_interval_s=EACH_S) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        await client.read_until(PING)
        left = asyncio.get_running_loop().time()
        client.close()
        assert (await r.ended()).outcome == "client_gone"
        async with asyncio.timeout(5):
            while not closed or r.proxy.active:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert closed[0] - left < 1
