"""From a server's first content byte to the browser's event: `python -m benchmarks.first_token_to_browser`.

A scripted server in this process notes when it writes a stream's first content; a websocket client in this process
notes when `request.first_token` arrives. Between them lies the dashboard, a process of its own, with its proxy, tap,
writer, ledger and hub. One clock, so the difference is the whole way.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import httpx
from websockets.asyncio.client import ClientConnection, connect

from tests.processes import app_process, free_ports

MODELS = b'{"object":"list","data":[{"id":"scripted","object":"model","max_model_len":4096}]}'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
ROLE = b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
CONTENT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":" word"}}]}\n\n'
LIMIT_MS = 30.0


class ScriptedServer:
    """Just enough of a vLLM server: models, version, streams of `tokens` chunks `gap_s` apart."""

    def __init__(self, tokens: int, gap_s: float) -> None:
        self.written_s: deque[float] = deque()
        """When each first content was written, in order."""
        self._tokens = tokens
        self._gap_s = gap_s

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                for line in head.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        await reader.readexactly(int(line.partition(b":")[2]))
                path = head.split(b" ", 2)[1]
                if path.startswith(b"/v1/chat"):
                    await self._stream(writer)
                else:
                    _answer(writer, path)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + _chunk(ROLE))
        await asyncio.sleep(0.02)
        for index in range(self._tokens):
            if index == 0:
                self.written_s.append(time.monotonic())
            writer.write(_chunk(CONTENT))
            await asyncio.sleep(self._gap_s)
        writer.write(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _answer(writer: asyncio.StreamWriter, path: bytes) -> None:
    bodies = {b"/v1/models": MODELS, b"/version": b'{"version":"0.32.0"}', b"/health": b"", b"/metrics": b""}
    body = bodies.get(path)
    status = b"404 Not Found" if body is None else b"200 OK"
    kind = b"text/plain" if path == b"/metrics" else b"application/json"
    body = body or b""
    writer.write(b"HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (status, kind, len(body)) + body)


async def _first_tokens(live: ClientConnection, count: int) -> list[float]:
    seen: list[float] = []
    while len(seen) < count:
        text = await live.recv()
        now = time.monotonic()
        if json.loads(text)["type"] == "request.first_token":
            seen.append(now)
    return seen


async def _measure(url: str, server: ScriptedServer, requests: int, at_once: int, clients: int) -> list[float]:
    body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "Hello there. " * 200}]}
    slots = asyncio.Semaphore(at_once)

    async def send(http: httpx.AsyncClient) -> None:
        async with slots:
            await http.post("/v1/chat/completions", json=body)

    server.written_s.clear()
    limits = httpx.Limits(max_connections=at_once)
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=limits) as http:
        lives = [await connect(f"{url.replace('http', 'ws')}/live", max_size=None) for _ in range(clients)]
        watching = [asyncio.create_task(_first_tokens(live, requests)) for live in lives]
        await asyncio.gather(*(send(http) for _ in range(requests)))
        seen = (await asyncio.gather(*watching))[0]
        for live in lives:
            await live.close()
    return [(arrived - written) * 1000 for arrived, written in zip(seen, server.written_s, strict=True)]


async def _run(requests: int, folder: Path) -> bool:
    server = ScriptedServer(tokens=20, gap_s=0.01)
    listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
    port, events, replay = free_ports(3)
    process = app_process(
        folder / "serve.log", "serve", "--vllm", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}",
        "--kv-events", f"tcp://127.0.0.1:{events}", "--kv-replay", f"tcp://127.0.0.1:{replay}", "--port", str(port),
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    good = True
    try:
        process.start()
        await asyncio.to_thread(process.wait_for, f"{url}/healthz", 30)
        for at_once, clients in ((1, 1), (16, 1), (16, 10)):
            figures = await _measure(url, server, requests, at_once, clients)
            median = statistics.median(figures)
            good &= median < LIMIT_MS
            print(
                f"{at_once:3} streams at once, {clients:3} browsers, {requests} requests: "
                f"p50 {median:.2f} ms, p90 {_quantile(figures, 0.9):.2f} ms, p99 {_quantile(figures, 0.99):.2f} ms, "
                f"max {max(figures):.2f} ms"
            )
    finally:
        process.stop()
        listening.close()
    return good


def _quantile(figures: Sequence[float], share: float) -> float:
    return sorted(figures)[min(len(figures) - 1, int(share * len(figures)))]


def main() -> None:
    """Prints the figures; exit code 1 where a median is not under the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = asyncio.run(_run(options.requests, Path(folder)))
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
