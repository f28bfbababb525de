"""The two ends between which proxies are measured: a server that streams prepared events, clients that check them,
and browsers that listen to the dashboard's live events meanwhile. `benchmarks.proxy` runs them.
"""

import asyncio
import collections
import json
import socket
import time

import msgspec
import websockets

EVENTS = 64
FRAME = (
    b'data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"content":" word %d"},"logprobs":null,"finish_reason":null}]}\n\n'
)
USAGE = (
    b'data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
    b'"usage":{"prompt_tokens":17,"total_tokens":81,"completion_tokens":64}}\n\n'
)
FRAMES = [
    *(FRAME % number for number in range(EVENTS)),
    FRAME.replace(b"null}]", b'"stop"}]') % 0,
    USAGE,
    b"data: [DONE]\n\n",
]
STREAM = b"".join(FRAMES)
BODY = (
    b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true}}'
)
ASK = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-delay-ms: %d\r\n"
    b"content-length: %d\r\n\r\n%b"
)
LAST_CHUNK = b"\r\n0\r\n\r\n"


async def serve(port: int) -> None:
    """The server: one write an event, `x-delay-ms` apart. Other paths don't exist, as with a server that isn't vLLM."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"POST /v1/chat/"):
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                delay_s = int(head.partition(b"x-delay-ms: ")[2].split(b"\r\n", 1)[0]) / 1000
                await reader.readexactly(len(BODY))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for frame in FRAMES:
                    writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
                    await asyncio.sleep(delay_s)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


async def ask_repeatedly(port: int, delay_ms: int, until_s: float, first_ms: list[float]) -> int:
    """One connection that asks again and again. Returns how many responses came whole and unchanged."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    responses = 0
    while time.monotonic() < until_s:
        writer.write(ASK % (delay_ms, len(BODY), BODY))
        sent = time.monotonic()
        await reader.readuntil(b"\r\n\r\n")
        framed = await reader.read(1 << 16)
        first_ms.append((time.monotonic() - sent) * 1000)
        while not framed.endswith(LAST_CHUNK):
            framed += await reader.read(1 << 16)
        if unchunked(framed) != STREAM:
            raise SystemExit("the stream was changed on its way")
        responses += 1
    writer.close()
    return responses


def unchunked(framed: bytes) -> bytes:
    """A body without its chunks' framing."""
    pieces: list[bytes] = []
    at = 0
    while True:
        line_end = framed.index(b"\r\n", at)
        size = int(framed[at:line_end], 16)
        if not size:
            return b"".join(pieces)
        pieces.append(framed[line_end + 2 : line_end + 2 + size])
        at = line_end + 4 + size


async def watch(port: int, browsers: int) -> None:
    """Browsers that read the live events. The first of them counts by type; the counts go out as a line of JSON each
    second, so that whoever reads the last line knows them.
    """
    counts: collections.Counter[str] = collections.Counter()
    kind = msgspec.json.Decoder(dict[str, msgspec.Raw])

    async def listen(number: int) -> None:
        async with websockets.connect(f"ws://127.0.0.1:{port}/live", max_size=None, compression=None) as live:
            async for message in live:
                if number == 0:
                    for line in (message if isinstance(message, bytes) else message.encode()).splitlines():
                        fields = kind.decode(line)
                        counts[str(msgspec.json.decode(fields["type"]))] += 1

    listening = [asyncio.create_task(listen(number)) for number in range(browsers)]
    while not any(task.done() for task in listening):
        await asyncio.sleep(1)
        print(json.dumps(counts), flush=True)


async def answers(port: int) -> None:
    """Waits until something listens on `port`."""
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        return port
