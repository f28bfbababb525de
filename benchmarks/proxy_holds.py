"""The longest that the proxy holds its event loop while something large passes: other streams stand still so long.

    python -m benchmarks.proxy_holds

For each case the proxy (`benchmarks.proxy_app`) runs in a process of its own; this one is the client and the server.
Holds are CPU time of the loop's thread between two looks at it, which are about 0.5 ms apart.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import uvloop

from .proxy_load import answers, free_port

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT_STREAM, JSON = b"text/event-stream", b"application/json"
MB = 1 << 20
SMALL = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}).encode()
Pieces = Callable[[], Iterator[bytes]]


def _event(**fields: object) -> bytes:
    return b"data: " + json.dumps({"id": "c", **fields}, separators=(",", ":")).encode() + b"\n\n"


def _token(text: str, **fields: object) -> bytes:
    return _event(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": None, **fields}])


def plain() -> Iterator[bytes]:
    """4 MB of tokens."""
    yield _token("a") * (4 * MB // len(_token("a")))


def with_ids() -> Iterator[bytes]:
    """4 MB of events that each carry the id of their token."""
    one = b"".join(_token("a", token_ids=[number]) for number in range(1000))
    yield one * (4 * MB // len(one))


def prompt_ids() -> Iterator[bytes]:
    """A first event with the ids of a prompt of 200,000 tokens."""
    yield _event(
        choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}], prompt_token_ids=[12345] * 200_000
    )
    yield _token("a")


def long_line() -> Iterator[bytes]:
    """One event of 32 MB."""
    yield _token("a" * (32 * MB))


def whole_body() -> Iterator[bytes]:
    """100 MB of JSON in one body."""
    yield b'{"id":"c","choices":[{"index":0,"message":{"content":"'
    for _ in range(100):
        yield b"a" * MB
    yield b'"},"finish_reason":"stop"}]}'


def _body(size: int) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "word " * (size // 5)}]}).encode()


def _parts(size: int) -> bytes:
    parts = [{"type": "text", "text": "word " * 20} for _ in range(size // 125)]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": parts}]}).encode()


def _ids(count: int) -> bytes:
    return json.dumps({"model": "m", "prompt": [12345] * count}).encode()


CASES: dict[str, tuple[bytes, bytes, Pieces]] = {
    "4 MB of plain tokens": (SMALL, EVENT_STREAM, plain),
    "4 MB of tokens with ids": (SMALL, EVENT_STREAM, with_ids),
    "first event: 200,000 ids of the prompt": (SMALL, EVENT_STREAM, prompt_ids),
    "one event of 32 MB": (SMALL, EVENT_STREAM, long_line),
    "answer of 100 MB, not streamed": (SMALL, JSON, whole_body),
    "request of 200 KB": (_body(200_000), EVENT_STREAM, lambda: iter([_token("a")])),
    "request of 1 MB": (_body(MB), EVENT_STREAM, lambda: iter([_token("a")])),
    "request of 1 MB in 8,000 parts": (_parts(MB), EVENT_STREAM, lambda: iter([_token("a")])),
    "request with 200,000 ids": (_ids(200_000), EVENT_STREAM, lambda: iter([_token("a")])),
    "request of 32 MB": (_body(32 * MB), EVENT_STREAM, lambda: iter([_token("a")])),
}


@asynccontextmanager
async def _server(port: int, kind: bytes, pieces: Pieces) -> AsyncIterator[None]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
                await reader.readexactly(int(length))
                writer.write(HEAD % kind)
                for piece in pieces():
                    writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()


async def _ask(port: int, body: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    )
    writer.write(body)
    received = 0
    while piece := await reader.read(MB):
        received += len(piece)
    writer.close()
    return received


async def worst_ms(name: str) -> float:
    """The longest hold of one case."""
    body, kind, pieces = CASES[name]
    server_port, port = free_port(), free_port()
    command = [sys.executable, "-m", "benchmarks.proxy_app", "--vllm", f"http://127.0.0.1:{server_port}"]
    command += ["--port", str(port), "--holds"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        await answers(port)
        async with _server(server_port, kind, pieces):
            for _ in range(3):
                expected = sum(map(len, pieces()))
                async with asyncio.timeout(60):
                    if await _ask(port, body) < expected:
                        raise SystemExit(f"{name}: the answer came short")
    finally:
        process.send_signal(signal.SIGTERM)
        told, _ = await process.communicate()
    return float(told.decode().rpartition("longest hold of the loop:")[2].split()[0])


async def _run() -> None:
    for name in CASES:
        print(f"{name:<40} {await worst_ms(name):8.1f} ms", flush=True)


if __name__ == "__main__":
    uvloop.run(_run())
