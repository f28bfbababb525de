"""Memory of the whole dashboard while it proxies: over many requests, with many slow readers, with stalled ones.

    python -m benchmarks.proxy_memory [--requests 100000] [--slow 1000] [--stalled 20]

First short answers, one after the other on a few connections: the resident memory after each tenth; the last half may
grow by `GROWTH_BAR_MB` in all. Then `slow` streams at once whose clients, in a process of their own, read a few bytes
at a time: the server ends none before all have begun. And `stalled` clients that read nothing of an endless answer:
what each of them takes. Exit status 1 where a bar is missed.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import uvloop

from .proxy_load import BODY, FRAMES, answers, free_port

GROWTH_BAR_MB = 8.0
SLOW_BAR_KB = 200.0
STALLED_BAR_KB = 8 * 1024.0
CONNECTIONS = 8
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
SHORT = [FRAMES[0], *FRAMES[-3:]]
BLOCK = FRAMES[0] * 200


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server:
    """Answers with a few events; to `/v1/responses` with an endless stream, to `/v1/completions` with one that goes on
    only when `slow` of them have begun."""

    def __init__(self, slow: int) -> None:
        self.begun = 0
        self.all_begun = asyncio.Event()
        self._slow = slow

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
                if not path.startswith(b"/v1/"):
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                await reader.readexactly(len(BODY))
                writer.write(HEAD)
                while path == b"/v1/responses":
                    writer.write(_chunk(BLOCK))
                    await writer.drain()
                if path == b"/v1/completions":
                    writer.write(_chunk(FRAMES[0]))
                    self.begun += 1
                    if self.begun == self._slow:
                        self.all_begun.set()
                    await self.all_begun.wait()
                    for frame in FRAMES[1:]:
                        writer.write(_chunk(frame))
                        await asyncio.sleep(0.5)
                else:
                    writer.write(b"".join(map(_chunk, SHORT)))
                writer.write(b"0\r\n\r\n")
        writer.close()


def ask(path: bytes) -> bytes:
    """A request."""
    return b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (path, len(BODY), BODY)


def rss_mb(pid: int) -> float:
    """Resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def _ask_often(port: int, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = ask(b"/v1/chat/completions")
    for _ in range(count):
        writer.write(request)
        await reader.readuntil(b"0\r\n\r\n")
    writer.close()


async def many_requests(port: int, pid: int, requests: int) -> bool:
    """Whether memory is flat over the last half of them."""
    began = time.monotonic()
    sizes: list[float] = []
    for _ in range(10):
        await asyncio.gather(*(_ask_often(port, requests // 10 // CONNECTIONS) for _ in range(CONNECTIONS)))
        sizes.append(rss_mb(pid))
        print(f"{len(sizes) * requests // 10} requests: {sizes[-1]:.1f} MB", flush=True)
    print(f"  last half: {sizes[-1] - sizes[4]:+.1f} MB, bar {GROWTH_BAR_MB:g}; {time.monotonic() - began:.0f} s")
    return sizes[-1] - sizes[4] <= GROWTH_BAR_MB


async def _read_slowly(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=256)
    writer.write(ask(b"/v1/completions"))
    status = (await reader.readline()).strip()
    if status != b"HTTP/1.1 200 OK":
        raise SystemExit(f"a slow stream was refused: {status.decode()}")
    tail = b""
    while not tail.endswith(b"0\r\n\r\n"):
        piece = await reader.read(200)
        if not piece:
            raise SystemExit("a slow stream broke off")
        tail = (tail + piece)[-8:]
        await asyncio.sleep(0.01)
    writer.close()


async def _read_all_slowly(port: int, count: int) -> None:
    """All of them connect at once."""
    await asyncio.gather(*(_read_slowly(port) for _ in range(count)))


def _healthy_s(port: int) -> float:
    """How long the dashboard takes to say that it lives; in a thread, for this loop is busy with the streams."""
    began = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
        answer.read()
    return time.monotonic() - began


async def slow_streams(port: int, pid: int, server: Server, count: int) -> bool:
    """Whether so many streams are held at once, come whole, in bounds, and leave the dashboard answering."""
    before, began = rss_mb(pid), time.monotonic()
    command = [sys.executable, "-m", "benchmarks.proxy_memory", "--read-from", str(port), "--slow", str(count)]
    clients = await asyncio.create_subprocess_exec(*command)
    ended = asyncio.create_task(clients.wait())
    all_begun = asyncio.create_task(server.all_begun.wait())
    await asyncio.wait((ended, all_begun), return_when=asyncio.FIRST_COMPLETED)
    all_begun.cancel()
    held, begun_s, healthy_s = rss_mb(pid), time.monotonic() - began, await asyncio.to_thread(_healthy_s, port)
    while not ended.done():
        healthy_s = max(healthy_s, await asyncio.to_thread(_healthy_s, port))
        await asyncio.sleep(0.5)
    each_kb = (max(held, rss_mb(pid)) - before) / count * 1024
    whole = "all whole" if clients.returncode == 0 else "not all whole"
    print(
        f"{server.begun} of {count} slow streams held at once after {begun_s:.1f} s, {whole}; its health told in"
        f" {healthy_s:.2f} s at most"
    )
    print(f"  {before:.1f} to {held:.1f} MB, {each_kb:.0f} KB each, bar {SLOW_BAR_KB:g}")
    return clients.returncode == 0 and server.begun == count and each_kb <= SLOW_BAR_KB and healthy_s < 1


async def stalled_clients(port: int, pid: int, count: int) -> bool:
    """Whether clients that don't read leave an endless answer with its server."""
    before = rss_mb(pid)
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=256)  # Reads ahead twice that, no more.
        writer.write(ask(b"/v1/responses"))
        writers.append(writer)
    sizes = [before]
    for _ in range(10):
        await asyncio.sleep(0.5)
        sizes.append(rss_mb(pid))
    for writer in writers:
        writer.transport.abort()
    each_kb = (max(sizes) - before) / count * 1024
    print(f"{count} clients that don't read an endless answer, 5 s: {each_kb:.0f} KB each, bar {STALLED_BAR_KB:g}")
    return each_kb <= STALLED_BAR_KB and sizes[-1] - sizes[5] < 1


async def _run(requests: int, slow: int, stalled: int) -> bool:
    server_port, port = free_port(), free_port()
    answering = Server(slow)
    server = await asyncio.start_server(answering.answer, "127.0.0.1", server_port, backlog=4096)
    where = ["--vllm", f"http://127.0.0.1:{server_port}", "--port", str(port)]
    command = [sys.executable, "-m", "app", "serve", *where, "--kv-events", f"tcp://127.0.0.1:{free_port()}"]
    # What is kept of requests and events is full early, so that growth after that is growth.
    kept = {"PREFIXSCOPE_MAX_REQUESTS": "1000", "PREFIXSCOPE_MAX_BACKLOG_EVENTS": "1000"}
    environment = {**os.environ, **kept, "PREFIXSCOPE_MAX_STREAMS": str(slow + stalled + CONNECTIONS)}
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        await answers(port)
        good = [await many_requests(port, process.pid, requests)] if requests else []
        good += [
            await slow_streams(port, process.pid, answering, slow),
            await stalled_clients(port, process.pid, stalled),
        ]
        return all(good)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
        server.close()


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--slow", type=int, default=1_000)
    parser.add_argument("--stalled", type=int, default=20)
    parser.add_argument("--read-from", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read_from:
        uvloop.run(_read_all_slowly(arguments.read_from, arguments.slow))
        return
    sys.exit(0 if uvloop.run(_run(arguments.requests, arguments.slow, arguments.stalled)) else 1)


if __name__ == "__main__":
    main()
