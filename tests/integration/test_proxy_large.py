"""Large requests and responses: whole, read elsewhere, and passed on unread where they can't be."""

import asyncio
import contextlib
import json

from app.observations import Malformed, RequestEnded, RequestPromptTokens, RequestStarted, RequestUsage
from app.sources.body_reader import BodyUnread
from app.wire.packed_ids import pack_ids

from .proxy_rig import Asked, Client, Rig, on_both_loops, rig, sized, sse, until

CHAT = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "word " * 700_000}]}).encode()
ANSWER = json.dumps(
    {
        "choices": [
            {
                "index": 0,
                "message": {"content": "a" * 700_000},
                "finish_reason": "length",
                "logprobs": {"content": [{"token": "a", "logprob": -1.5}] * 1000},
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    }
).encode()

HI = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}\n\n'


async def stream(asked: Asked) -> None:
    """A short answer."""
    await asked.send(*sse(HI, STOP, b"data: [DONE]\n\n"))


def started(r: Rig) -> RequestStarted:
    """The one request."""
    (one,) = r.all(RequestStarted)
    return one


@on_both_loops
async def test_a_large_request_is_read_and_arrives_as_it_was_sent() -> None:
    async with rig(stream) as r:
        answer = await r.fetch(CHAT)
        await r.ended()
        assert answer.complete
        assert r.server.asked[0].body == CHAT
        assert (started(r).model, started(r).streamed) == ("m", True)
        assert not r.all(Malformed)


@on_both_loops
async def test_what_is_added_to_a_large_request_is_added_in_its_place() -> None:
    async with rig(stream, mode="enrich") as r:
        await r.fetch(CHAT)
        await r.ended()
        added = b',"stream_options":{"include_usage":true},"return_token_ids":true}'
        assert r.server.asked[0].body == CHAT[:-1] + added
        assert dict(r.server.asked[0].headers)[b"content-length"] == b"%d" % (len(CHAT) - 1 + len(added))


@on_both_loops
async def test_a_long_prompt_of_ids_is_told_packed() -> None:
    async with rig(stream) as r:
        await r.fetch(json.dumps({"model": "m", "prompt": list(range(100_000))}).encode(), b"/v1/completions")
        await r.ended()
        (told,) = r.all(RequestPromptTokens)
        assert (told.token_ids, told.packed, told.source) == ((), pack_ids(range(100_000)), "request")


@on_both_loops
async def test_a_large_request_that_nobody_can_read_goes_on_with_a_mark() -> None:
    async def unread(*_: object, **__: object) -> None:
        raise BodyUnread("other large bodies are being read")

    async with rig(stream, mode="enrich") as r:
        r.proxy.body_reader.read_request = unread  # type: ignore[assignment, method-assign]
        answer = await r.fetch(CHAT)
        assert (await r.ended()).outcome == "ok"
        assert answer.complete
        assert r.server.asked[0].body == CHAT
        (mark,) = r.all(Malformed)
        assert mark.request == started(r).request
        assert "passed on unread: other large bodies" in mark.detail


@on_both_loops
async def test_a_long_answer_that_isn_t_streamed_is_read_after_its_end() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(sized(ANSWER))

    async with rig(script) as r:
        assert (await r.fetch(CHAT)).body == ANSWER
        ended = await r.ended()
        assert (ended.outcome, ended.finish_reason) == ("ok", "length")
        (usage,) = r.all(RequestUsage)
        assert usage.cached_tokens == 1
        assert isinstance(r.seen[-1], RequestEnded)


@on_both_loops
async def test_a_long_answer_that_nobody_can_read_ends_with_a_mark() -> None:
    async def unread(_: object) -> None:
        raise BodyUnread("the dashboard is stopping")

    async def script(asked: Asked) -> None:
        await asked.send(sized(ANSWER))

    async with rig(script) as r:
        r.proxy.body_reader.read_response = unread  # type: ignore[assignment, method-assign]
        assert (await r.fetch(b"{}")).body == ANSWER
        assert (await r.ended()).outcome == "ok"
        assert [mark.detail for mark in r.all(Malformed)] == [
            "the response is passed on unread from here: nobody had the time to read it"
        ]


@on_both_loops
async def test_an_answer_before_the_request_is_whole_ends_the_connection_only() -> None:
    """The server says no to a body that it hasn't read: what is left of it isn't written into the next request."""
    refused = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/v1/chat/" in head:
            writer.write(sized(b'{"error":{"message":"too large"}}', b"413 Too Large"))
            refused.set()
            with contextlib.suppress(ConnectionError):
                await reader.read(-1)
        else:
            writer.write(sized(b"{}"))
        writer.close()

    async with rig() as r:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024)
        r.proxy.upstream._port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        answer = await r.fetch(b'{"a":"' + b"a" * 20_000_000 + b'"}')
        assert (answer.status, refused.is_set()) == (413, True)
        assert (await r.fetch(b"", b"/v1/models", method=b"GET")).body == b"{}"
        server.close()


@on_both_loops
async def test_a_client_that_leaves_while_its_request_is_read_ends_it() -> None:
    async with rig(stream) as r:
        client = await Client.to(r.url)
        await client.ask(CHAT)
        client.writer.transport.abort()
        await until(lambda: r.proxy.active == 0)
        assert (await r.fetch(CHAT)).complete
