"""Clients that leave: at every byte of every kind of exchange the server's connection is closed, the record ended."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.observations import RequestEnded, RequestStarted

from .proxy_rig import SSE_HEAD, Asked, Client, Rig, chunk, on_both_loops, rig, until

AT_ONCE = 40
STREAM_BODY = b'{"model":"m","messages":[],"stream":true}'
WHOLE_BODY = b'{"model":"m","messages":[]}'
EVENTS = [
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"깰😀"}}]}\r\n\r\n'.encode(),
    b": ping\n\n",
    b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n',
]
WHOLE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n"
PART = b'{"choices":[{"message":{"content":"' + b"x" * 120


async def stream(asked: Asked) -> None:
    """An answer without an end."""
    await asked.send(SSE_HEAD, *map(chunk, EVENTS))


async def whole(asked: Asked) -> None:
    """Less of a body than its head says."""
    await asked.send(WHOLE_HEAD, PART)


async def nothing(asked: Asked) -> None:
    """No answer."""


async def read_up_to(url: str, body: bytes, position: int) -> Client:
    """A client that asked, and has read so many bytes of the response."""
    client = await Client.to(url)
    await client.ask(body)
    await client.reader.readexactly(position)
    return client


async def leave_everywhere(
    script: Callable[[Asked], Awaitable[None]], body: bytes, mode: str, positions: Callable[[Rig], Awaitable[range]]
) -> None:
    """For each position a client that leaves after so many bytes of the response, its head included."""
    closed: list[float] = []

    async def play(asked: Asked) -> None:
        await script(asked)
        closed.append(await asked.closed())
        asked.writer.close()

    async with rig(play, mode=mode) as r:
        places = await positions(r)
        closed.clear()
        already = len(r.all(RequestEnded))
        for first in range(0, len(places), AT_ONCE):
            several = places[first : first + AT_ONCE]
            clients = await asyncio.gather(*(read_up_to(r.url, body, position) for position in several))
            started = already + first + len(several)
            await until(lambda: len(r.all(RequestStarted)) == started)  # noqa: B023
            left = asyncio.get_running_loop().time()
            for client in clients:
                client.close()
            await until(lambda: len(closed) == first + len(several))  # noqa: B023
            assert max(closed) - left < 1
        await until(lambda: len(r.all(RequestEnded)) == already + len(places))
        ended = r.all(RequestEnded)[already:]
        assert {end.outcome for end in ended} == {"client_gone"}
        assert {end.request for end in ended} == {start.request for start in r.all(RequestStarted)[already:]}
        await until(lambda: r.proxy.active == 0)
        assert len(asyncio.all_tasks()) < 20


@pytest.mark.parametrize("mode", ["observe", "enrich"])
@on_both_loops
async def test_at_every_byte_of_a_stream(mode: str) -> None:
    async def length(r: Rig) -> range:
        """All that a client of this stream receives, framing included."""
        client = await Client.to(r.url)
        await client.ask(STREAM_BODY)
        last = EVENTS[-1] if mode == "observe" else EVENTS[-2]
        received = await client.read_until(last)
        client.close()
        await r.ended()
        return range(len(received) + 1)

    await leave_everywhere(stream, STREAM_BODY, mode, length)


@on_both_loops
async def test_at_every_byte_of_a_whole_answer() -> None:
    async def length(r: Rig) -> range:
        client = await Client.to(r.url)
        await client.ask(WHOLE_BODY)
        received = await client.head()
        client.close()
        await r.ended()
        return range(len(received) + len(PART) + 1)

    await leave_everywhere(whole, WHOLE_BODY, "observe", length)


@pytest.mark.parametrize("body", [STREAM_BODY, WHOLE_BODY])
@on_both_loops
async def test_before_any_byte_of_the_answer(body: bytes) -> None:
    async def once(r: Rig) -> range:
        return range(1)

    await leave_everywhere(nothing, body, "observe", once)


@on_both_loops
async def test_at_every_byte_of_the_request() -> None:
    request = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n" + WHOLE_BODY[:19]
    async with rig(nothing) as r:
        for position in range(1, len(request) + 1):
            client = await Client.to(r.url)
            client.writer.write(request[:position])
            await client.writer.drain()
            client.close()
        await until(lambda: r.proxy.active == 0)
        assert r.seen == [] and r.server.asked == []
