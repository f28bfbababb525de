"""Whose time it is: the client's, the dashboard's own, the server's."""

import asyncio
import contextlib
from dataclasses import replace

from app.events import ServerRecord
from app.observations import RequestFirstToken, RequestStarted

from .proxy_rig import LAST_CHUNK, SSE_HEAD, Asked, Client, chunk, on_both_loops, rig, until

HI = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
BODY = b'{"model":"m","messages":[],"stream":true}'


@on_both_loops
async def test_a_slow_upload_is_the_clients_time_not_the_first_tokens() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(HI), chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script) as r:
        client = await Client.to(r.url)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(BODY)
        client.writer.write(head + BODY[:10])
        await until(lambda: r.proxy.active == 1)
        resting = r.proxy.clock.monotonic()
        await asyncio.sleep(0.05)
        rested = r.proxy.clock.monotonic()
        client.writer.write(BODY[10:])
        assert (await client.answer()).complete
        ended = await r.ended()
        (started,), (first,) = r.all(RequestStarted), r.all(RequestFirstToken)
        assert started.began_s is not None and started.received_s is not None
        assert started.began_s <= resting and rested <= started.received_s <= started.at_s <= first.at_s <= ended.at_s
        client.close()


@on_both_loops
async def test_a_slow_reader_is_the_clients_time_too() -> None:
    stuck = asyncio.Event()

    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(HI))
        piece = chunk(b": " + b"x" * 65_536 + b"\n\n")
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(0.2):
                    await asked.send(piece)
        stuck.set()
        await asked.closed()

    async with rig(script) as r:
        client = await Client.to(r.url, buffer_bytes=65_536)
        await client.ask(BODY)
        await client.head()
        await stuck.wait()
        client.close()
        ended = await r.ended()
        assert ended.outcome == "client_gone"
        assert 0.1 < ended.client_wait_s <= ended.at_s - r.all(RequestFirstToken)[0].at_s


@on_both_loops
async def test_a_client_that_keeps_up_never_waits() -> None:
    first_read = asyncio.Event()

    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(HI))
        await first_read.wait()
        await asked.send(chunk(HI), chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(BODY)
        await client.read_until(HI)
        first_read.set()
        await client.read_until(b"0\r\n\r\n")
        client.close()
        ended = await r.ended()
        assert ended.client_wait_s == 0
        assert sum(ended.gap_counts) == 1


@on_both_loops
async def test_an_adapter_is_told_from_its_base() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(HI), chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script) as r:
        record = r.proxy._parts.server_record()
        assert isinstance(record, ServerRecord)
        known = replace(record, models=("base", "sql-lora"), adapters=("sql-lora",))
        object.__setattr__(r.proxy._parts, "server_record", lambda: known)
        for number, model in enumerate((b"base", b"sql-lora", b"other"), 1):
            await r.fetch(b'{"model":"%b","messages":[],"stream":true}' % model)
            await r.ended(number)
        assert [started.lora_name for started in r.all(RequestStarted)] == [None, "sql-lora", None]
        # A server that keeps quiet gets the same bytes, whatever the model is called.
        assert [asked.body.split(b'"')[3] for asked in r.server.asked] == [b"base", b"sql-lora", b"other"]
