"""Many servers in one dashboard, many browsers, one of them stalled: who loses what, and what it costs the proxy.

    python -m benchmarks.many_servers [--servers 8] [--rate 20] [--clients 50] [--seconds 60]

Embedded engines, each storing `rate` blocks a second in requests of its own; a dashboard that watches them all;
`clients` websockets that read, but for one. Beside it a second dashboard watches one server and has no browser: what
a request takes longer through the first than through the second, in the same moments, is what all this costs it.
Exit status 1 where a browser that reads loses an event or gets a second snapshot, memory grows, or the proxy is slower.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect

from tests.processes import Process, app_process, free_ports

MODEL = "many"
BLOCK = 16
PROMPTS = 100_000
BOUNDS = {
    # Small bounds, reached before memory is first looked at: what grows then grows without one.
    "PREFIXSCOPE_MAX_BACKLOG_EVENTS": "2000",
    "PREFIXSCOPE_MAX_REMOVED_BLOCKS": "1000",
    "PREFIXSCOPE_MAX_REQUESTS": "100",
    "PREFIXSCOPE_MAX_METRICS_POINTS": "10",
}
POOL_BLOCKS = 256
MEMORY_GROWTH_BAR_MB = 8.0
SLOWER_BAR_MS = 3.0
PROBES = 60
SEQ = re.compile(rb'"seq":(\d+)')


class Server:
    """An embedded engine that takes no time, and a client for it."""

    def __init__(self, log: Path) -> None:
        self.port, self.events_port, self.replay_port = free_ports(3)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: Process = app_process(
            log, "engine", "--port", str(self.port), "--events-port", str(self.events_port), "--replay-port",
            str(self.replay_port), "--profile", "instant", "--model-name", MODEL, "--num-gpu-blocks", str(POOL_BLOCKS),
        )  # fmt: skip
        self.stored = 0

    async def store(self, http: httpx.AsyncClient, rate: float, number: int, until_s: float) -> None:
        """Sends prompts of one block and a token, each its own, `rate` a second."""
        due = time.monotonic()
        while due < until_s:
            # Eight digits to the base of 100 tell the prompts apart: they differ in their first block.
            serial = number * PROMPTS + self.stored
            prompt = [1000 + serial // 100**place % 100 for place in range(8)] + [7] * (BLOCK - 7)
            await complete(http, self.url, prompt)
            self.stored += 1
            due += 1 / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))


async def complete(http: httpx.AsyncClient, url: str, prompt: Sequence[int]) -> float:
    """A completion of one token; how long it took, in milliseconds."""
    began_s = time.monotonic()
    body = {"model": MODEL, "prompt": prompt, "max_tokens": 1}
    (await http.post(f"{url}/v1/completions", json=body)).raise_for_status()
    return (time.monotonic() - began_s) * 1000


class Board:
    """A dashboard that watches some engines."""

    def __init__(self, log: Path, engines: Sequence[Server]) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: Process = app_process(
            log, "serve", "--port", str(self.port),
            *(word for engine in engines for word in ("--vllm", engine.url)),
            *(word for engine in engines for word in ("--kv-events", f"tcp://127.0.0.1:{engine.events_port}")),
            *(word for engine in engines for word in ("--kv-replay", f"tcp://127.0.0.1:{engine.replay_port}")),
            environment={**os.environ, **BOUNDS},
        )  # fmt: skip


class Browser:
    """A websocket client that checks the numbers of what it gets."""

    def __init__(self) -> None:
        self.events = 0
        self.snapshots = 0
        self.lost = 0
        self._last: int | None = None

    async def read(self, url: str) -> None:
        """Reads until cancelled."""
        async with connect(url, max_size=None, compression=None) as live:
            async for message in live:
                self._take(message.encode() if isinstance(message, str) else message)

    def _take(self, message: bytes) -> None:
        found = SEQ.search(message[:200])
        if found is None or message.startswith(b'{"type":"heartbeat"'):
            return
        seq = int(found[1])
        if b'"type":"snapshot"' in message[:200]:
            self.snapshots += 1
        elif self._last is not None and seq > 0:
            self.events += 1
            self.lost += max(seq - self._last - 1, 0)
        self._last = seq or self._last


@asynccontextmanager
async def stalled(port: int) -> AsyncIterator[None]:
    """A client that opens the live stream and never reads, with a small buffer of its own."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", port))
    head = (
        f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: c3RhbGxlZCBicm93c2VyIQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    await loop.sock_sendall(sock, head.encode())
    try:
        yield
    finally:
        sock.close()


async def slower_ms(http: httpx.AsyncClient, url: str, than: str) -> float:
    """How much longer a request takes by `url`, the median of pairs in turn."""
    prompt = list(range(200, 200 + BLOCK))
    pairs = []
    for _ in range(PROBES):
        pairs.append(await complete(http, url, prompt) - await complete(http, than, prompt))
    return statistics.median(pairs)


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(servers: int, rate: float, clients: int, seconds: float, folder: Path) -> dict[str, Any]:
    """One run's figures."""
    engines = [Server(folder / f"engine-{number}.log") for number in range(servers)]
    board, control = Board(folder / "dashboard.log", engines), Board(folder / "control.log", engines[:1])
    try:
        for engine in engines:
            engine.process.start()
        for engine in engines:
            await asyncio.to_thread(engine.process.wait_for, f"{engine.url}/health", 120)
        for each in (board, control):
            each.process.start()
            await asyncio.to_thread(each.process.wait_for, f"{each.url}/readyz", 60)
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
        async with httpx.AsyncClient(timeout=30, trust_env=False, limits=limits) as http:
            return await _measure(http, engines, board, control, rate, clients, seconds)
    finally:
        board.process.stop()
        control.process.stop()
        for engine in engines:
            engine.process.stop()


async def _measure(
    http: httpx.AsyncClient, engines: list[Server], board: "Board", control: "Board", rate: float, clients: int,
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    await slower_ms(http, board.url, control.url)
    quiet_ms = await slower_ms(http, board.url, control.url)
    browsers = [Browser() for _ in range(clients - 1)]
    warm_s = max(seconds / 3, 5.0)
    until_s = time.monotonic() + warm_s + seconds
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stalled(board.port))
        reading = [asyncio.create_task(browser.read(f"ws://127.0.0.1:{board.port}/live")) for browser in browsers]
        storing = [
            asyncio.create_task(engine.store(http, rate, number, until_s)) for number, engine in enumerate(engines)
        ]
        await asyncio.sleep(warm_s)
        memory = [memory_mb(board.process.pid)]
        busy_ms = await slower_ms(http, board.url, control.url)
        await asyncio.gather(*storing)
        await _until_still(browsers)
        memory.append(memory_mb(board.process.pid))
        health = (await http.get(f"{board.url}/healthz")).json()
        state = (await http.get(f"{board.url}/api/state")).json()["data"]
        for task in reading:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*reading, return_exceptions=True)
    streams = [stream for server in state["servers"] for stream in server["streams"]]
    return {
        "blocks_stored_a_second": sum(engine.stored for engine in engines) / (warm_s + seconds),
        "servers_heard": sum(stream["batches"] > 0 for stream in streams),
        "batches_lost": sum(stream["lost"] for stream in streams),
        "events_a_browser": [min(b.events for b in browsers), max(b.events for b in browsers)],
        "events_lost_by_browser": [browser.lost for browser in browsers],
        "snapshots_a_browser": [min(b.snapshots for b in browsers), max(b.snapshots for b in browsers)],
        "memory_mb": memory,
        "proxy_slower_ms_quiet": quiet_ms,
        "proxy_slower_ms_busy": busy_ms,
        "left_out": health["observations_left_out"],
    }


async def _until_still(browsers: list[Browser]) -> None:
    """Waits until every browser has had as much as every other."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(10):
            while len({browser.events for browser in browsers}) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


def violations(figures: dict[str, Any], servers: int) -> list[str]:
    """What isn't as it must be, in words."""
    found = []
    if figures["servers_heard"] < servers or figures["batches_lost"]:
        found.append("not every server's events were heard in full")
    if any(figures["events_lost_by_browser"]) or figures["snapshots_a_browser"][1] > 1:
        found.append("a browser that reads lost events")
    if figures["memory_mb"][1] - figures["memory_mb"][0] > MEMORY_GROWTH_BAR_MB:
        found.append("memory grows")
    if figures["proxy_slower_ms_busy"] - figures["proxy_slower_ms_quiet"] > SLOWER_BAR_MS:
        found.append("the proxy is slower")
    if figures["left_out"]:
        found.append("observations were left out")
    return found


def main() -> int:
    """Prints the figures; 1 where something isn't as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--rate", type=float, default=20.0, help="blocks stored a second, by each server")
    parser.add_argument("--clients", type=int, default=50, help="browsers, the stalled one included")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(options.servers, options.rate, options.clients, options.seconds, Path(folder)))
    print(json.dumps(figures, indent=2))
    found = violations(figures, options.servers)
    for violation in found:
        print(f"violated: {violation}", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
