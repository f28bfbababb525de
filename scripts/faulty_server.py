"""A server that answers as vLLM does, or breaks in one of the ways that servers break: for soaking the proxy.

The request's query says which: `/v1/chat/completions?fault=NAME`. Raw sockets, so that it can break anything.
"""

import asyncio
import contextlib
import gzip
from collections.abc import Awaitable, Callable

TOKEN = b'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'  # noqa: E501
STOP = b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":64,"total_tokens":73}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = b'{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}'  # noqa: E501
METRICS = (
    b'vllm:cache_config_info{block_size="16",engine="0",enable_prefix_caching="True",num_gpu_blocks="1000"} 1.0\n'
    b'vllm:num_requests_running{engine="0",model_name="m"} 0.0\n'
)
OWN = {
    b"/version": b'{"version":"0.32.0"}',
    b"/health": b"",
    b"/v1/models": b'{"object":"list","data":[{"id":"m","owned_by":"vllm","max_model_len":4096,"parent":null}]}',
    b"/tokenize": b'{"count":3,"max_model_len":4096,"tokens":[1,2,3]}',
}
Send = Callable[[bytes], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    """A piece of a body in chunked framing."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def sized(body: bytes, status: bytes = b"200 OK", headers: bytes = b"content-type: application/json\r\n") -> bytes:
    """A whole response."""
    return b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (status, headers, len(body), body)


class Broken(Exception):
    """The connection is to be cut."""


async def stream(send: Send, tokens: int = 32, pause_s: float = 0.0) -> None:
    """An answer of so many tokens."""
    await send(STREAM)
    for _ in range(tokens):
        await send(chunk(TOKEN))
        await asyncio.sleep(pause_s)
    await send(chunk(STOP) + chunk(USAGE) + chunk(DONE) + b"0\r\n\r\n")


async def slow_stream(send: Send) -> None:
    """Tokens every 20 ms, for seconds: for clients that leave."""
    await stream(send, 500, 0.02)


async def large_stream(send: Send) -> None:
    """Eight megabytes of events: for clients that read slowly."""
    await send(STREAM)
    for _ in range(512):
        await send(chunk(b": " + b"x" * 16 * 1024 + b"\n\n"))
    await send(chunk(TOKEN) + chunk(STOP) + chunk(DONE) + b"0\r\n\r\n")


async def whole(send: Send) -> None:
    """An answer that isn't streamed."""
    await send(sized(WHOLE))


async def packed(send: Send) -> None:
    """A compressed answer."""
    await send(sized(gzip.compress(WHOLE), headers=b"content-type: application/json\r\ncontent-encoding: gzip\r\n"))


async def refusal(send: Send) -> None:
    """400, as for a prompt that is too long."""
    await send(sized(b'{"error":{"message":"too long","type":"BadRequestError","code":400}}', b"400 Bad Request"))


async def failure(send: Send) -> None:
    """500."""
    await send(sized(b"Internal Server Error", b"500 Internal Server Error", b"content-type: text/plain\r\n"))


async def error_within(send: Send) -> None:
    """An error in the middle of a stream."""
    await send(STREAM + chunk(TOKEN) + chunk(b'data: {"error":{"message":"out of memory","code":500}}\n\n'))
    await send(chunk(DONE) + b"0\r\n\r\n")


async def empty(send: Send) -> None:
    """A stream of nothing."""
    await send(STREAM + b"0\r\n\r\n")


async def truncated(send: Send) -> None:
    """A stream that ends without an end."""
    await send(STREAM + chunk(TOKEN) + b"0\r\n\r\n")


async def cut(send: Send) -> None:
    """The connection breaks within a stream."""
    await send(STREAM + chunk(TOKEN))
    raise Broken


async def dropped(send: Send) -> None:
    """The connection breaks before the answer."""
    raise Broken


async def garbage(send: Send) -> None:
    """What isn't HTTP."""
    await send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    raise Broken


async def nonsense(send: Send) -> None:
    """Events that can't be read."""
    await send(STREAM + chunk(b"data: {nonsense\n\n") * 30 + chunk(TOKEN) + chunk(STOP) + chunk(DONE) + b"0\r\n\r\n")


async def silence(send: Send) -> None:
    """Nothing at all."""
    await asyncio.sleep(3600)


FAULTS: dict[bytes, Callable[[Send], Awaitable[None]]] = {
    each.__name__.encode(): each
    for each in (
        stream, slow_stream, large_stream, whole, packed, refusal, failure, error_within, empty, truncated, cut,
        dropped, garbage, nonsense, silence,
    )
}  # fmt: skip


class FaultyServer:
    """Listens on a free port of 127.0.0.1; `connections` are those open now."""

    def __init__(self) -> None:
        self.connections = 0
        self.url = ""
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listens."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0].strip() or b"0"
                await reader.readexactly(int(length))
                answering = asyncio.ensure_future(self._answer(head.split(b" ", 2)[1], send))
                # While it answers, the client sends nothing more: what can be read is that it left.
                leaving = asyncio.ensure_future(_until_gone(reader))
                await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    answering.cancel()
                    raise Broken
                leaving.cancel()
                await asyncio.wait({leaving})
                answering.result()
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError, Broken):
            pass
        finally:
            self.connections -= 1
            writer.transport.abort()

    async def _answer(self, target: bytes, send: Send) -> None:
        path, _, query = target.partition(b"?")
        if path == b"/metrics":
            await send(sized(METRICS, headers=b"content-type: text/plain; version=0.0.4\r\n"))
        elif path in OWN:
            await send(sized(OWN[path]))
        else:
            await FAULTS.get(query.removeprefix(b"fault="), whole)(send)


async def _until_gone(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read(1)
