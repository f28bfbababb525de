"""Mixed traffic through a real dashboard process, in front of a server that breaks in every way.

    python -m scripts.soak --minutes 30

Every minute a line says what the dashboard's process holds: memory, open files and sockets, records, requests in
progress. A browser shows the page meanwhile. At the end the traffic stops; exit status 1 where memory, sockets or the
page's heap grew, or a request never ended.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from scripts.faulty_server import FaultyServer
from scripts.soak_page import WatchedPage, watched_page
from tests.processes import app_process, free_ports

MAX_REQUESTS = 2000
"""Records kept: few, so that the bound is reached while it warms up."""
WARM_SHARE = 0.3
"""Of the time, until what is bounded has filled."""
GROWTH_RATIO = 0.05
GROWTH_MIB = 8.0
SPARE_FILES = 8
SETTLE_S = 30.0
HUGE_BYTES = 2 * 1024 * 1024
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"%b"}]}'


@dataclass
class Holding:
    """What the dashboard's process holds at one moment."""

    rss_mib: float
    files: int
    records: int
    in_progress: int


class Soak:
    """The dashboard under `clients` workers for `seconds`."""

    def __init__(self, url: str, pid: int, clients: int, seconds: float, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._url = url
        self._pid = pid
        self._clients = clients
        self._seconds = seconds
        self._random = random.Random(seed)
        self._until = 0.0

    async def run(self, page: WatchedPage) -> list[str]:
        """Runs the traffic; what is wrong at the end, in sentences."""
        self._until = time.monotonic() + self._seconds
        began = time.monotonic()
        samples: list[tuple[float, Holding]] = []
        async with httpx.AsyncClient(base_url=self._url, timeout=30, trust_env=False) as http:
            before = await self._holding(http)
            async with asyncio.TaskGroup() as tasks:
                watchers = [tasks.create_task(self._watch()) for _ in range(2)]
                workers = [tasks.create_task(self._work()) for _ in range(self._clients)]
                every_s = min(60.0, self._seconds / 10)
                while time.monotonic() < self._until:
                    await asyncio.sleep(max(min(every_s, self._until - time.monotonic()), 0.01))
                    samples.append((time.monotonic() - began, await self._holding(http)))
                    self._say(*samples[-1])
                    if samples[-1][0] >= self._seconds * WARM_SHARE:
                        await page.read()
                await asyncio.wait(workers)
                for watcher in watchers:
                    watcher.cancel()
            after = await self._settled(http, before.files + SPARE_FILES)
            self._say(time.monotonic() - began, after)
        await page.read()
        grown = page.fault()
        return self._faults(samples, before, after) + ([grown] if grown is not None else [])

    def _faults(self, samples: list[tuple[float, Holding]], before: Holding, after: Holding) -> list[str]:
        found = []
        if after.in_progress:
            found.append(f"{after.in_progress} requests never ended")
        if after.files > before.files + SPARE_FILES:
            found.append(f"{after.files} files and sockets are open, {before.files} were before")
        if after.records > MAX_REQUESTS:
            found.append(f"{after.records} records are kept, above the bound of {MAX_REQUESTS}")
        warm = [holding.rss_mib for at_s, holding in samples if at_s >= self._seconds * WARM_SHARE]
        early, late = statistics.median(warm[: len(warm) // 2 or 1]), statistics.median(warm[len(warm) // 2 :])
        print(f"memory once warm: {early:.1f} MiB in the first half, {late:.1f} MiB in the second")
        if late - early > max(GROWTH_MIB, early * GROWTH_RATIO):
            found.append(f"memory grew from {early:.1f} to {late:.1f} MiB")
        return found

    def _say(self, at_s: float, holding: Holding) -> None:
        total = sum(self.done.values())
        print(
            f"{at_s / 60:6.1f} min  {holding.rss_mib:7.1f} MiB  {holding.files:4d} files  {holding.records:5d} records"
            f"  {holding.in_progress:3d} in progress  {total:8d} requests",
            flush=True,
        )

    async def _holding(self, http: httpx.AsyncClient) -> Holding:
        records: list[dict[str, object]] = []
        after: str | None = None
        while True:
            answer = await http.get("/api/requests", params={"limit": 1000, **({"after": after} if after else {})})
            if answer.status_code == 410:  # Forgotten between two pages.
                break
            page = answer.json()
            records += page["requests"]
            after = page["next"]
            if after is None:
                break
        rss_mib, files = _memory_and_files(self._pid)
        return Holding(rss_mib, files, len(records), sum(record["outcome"] is None for record in records))

    async def _settled(self, http: httpx.AsyncClient, files: int) -> Holding:
        """What is held once nothing is asked any more, or after `SETTLE_S`."""
        until = time.monotonic() + SETTLE_S
        while True:
            holding = await self._holding(http)
            if (holding.in_progress == 0 and holding.files <= files) or time.monotonic() > until:
                return holding
            await asyncio.sleep(0.5)

    async def _watch(self) -> None:
        """A browser that follows the events, and comes back when it is thrown out."""
        while True:
            with contextlib.suppress(OSError, WebSocketException):
                async with connect(f"ws://{self._host}:{self._port}/live", max_size=None) as live:
                    async for _ in live:
                        pass
            await asyncio.sleep(0.5)

    async def _work(self) -> None:
        kinds = (
            *("stream", "whole") * 6, "packed", "refusal", "failure", "error_within", "empty", "truncated", "cut",
            "dropped", "garbage", "nonsense", "leaves", "leaves_at_once", "leaves_upload", "huge", "slow", "gives_up",
        )  # fmt: skip
        while time.monotonic() < self._until:
            kind = self._random.choice(kinds)
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                async with asyncio.timeout(60):
                    await self._ask(kind)
            self.done[kind] += 1

    async def _ask(self, kind: str) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=64 * 1024)
        try:
            fault, then = _PLAYS.get(kind, (kind, _read_all))
            body = BODY % (b"x" * (HUGE_BYTES if kind == "huge" else self._random.randrange(2000)))
            target = b"/v1/chat/completions?fault=" + fault.encode()
            head = b"POST %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
            writer.write(head % target + b"content-length: %d\r\n\r\n" % len(body))
            writer.write(body if kind != "leaves_upload" else body[: len(body) // 2])
            await writer.drain()
            await then(reader)
        finally:
            writer.transport.abort()


def _memory_and_files(pid: int) -> tuple[float, int]:
    """Resident MiB and open files of a process, sockets included."""
    process = Path(f"/proc/{pid}")
    status = (process / "status").read_text()
    rss_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return rss_kib / 1024, len(list((process / "fd").iterdir()))


async def _read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(64 * 1024):
        pass


async def _read_a_little(reader: asyncio.StreamReader) -> None:
    await reader.read(2000)
    await asyncio.sleep(0.1)


async def _read_slowly(reader: asyncio.StreamReader) -> None:
    for _ in range(20):
        await reader.read(32 * 1024)
        await asyncio.sleep(0.05)


async def _read_nothing(reader: asyncio.StreamReader) -> None:
    await asyncio.sleep(0)


async def _wait_a_little(reader: asyncio.StreamReader) -> None:
    await asyncio.sleep(0.3)


_PLAYS: dict[str, tuple[str, Callable[[asyncio.StreamReader], Awaitable[None]]]] = {
    "leaves": ("slow_stream", _read_a_little),
    "leaves_at_once": ("slow_stream", _read_nothing),
    "leaves_upload": ("stream", _read_nothing),
    "huge": ("stream", _read_all),
    "slow": ("large_stream", _read_slowly),
    "gives_up": ("silence", _wait_a_little),
}
"""What the server does, and what the client does with it, where the two aren't named alike."""


async def soak(minutes: float, clients: int, seed: int) -> int:
    """Runs it all. Returns the exit status."""
    server = FaultyServer()
    await server.start()
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "dashboard.log"
        dashboard = app_process(
            log, "serve", "--vllm", server.url, "--port", str(port), "--mode", "enrich",
            environment={"PREFIXSCOPE_MAX_REQUESTS": str(MAX_REQUESTS), "PREFIXSCOPE_MAX_BACKLOG_EVENTS": "5000"},
        )  # fmt: skip
        dashboard.start()
        try:
            await asyncio.to_thread(dashboard.wait_for, f"{url}/readyz", 60)
            run = Soak(url, dashboard.pid, clients, minutes * 60, seed)
            async with watched_page(url) as page:
                faults = await run.run(page)
            if server.connections > clients + SPARE_FILES:
                faults.append(f"{server.connections} connections to the server are still open")
            print("requests by kind:", json.dumps(dict(sorted(run.done.items()))))
        finally:
            status = await asyncio.to_thread(dashboard.stop)
        tracebacks = dashboard.output().count("Traceback")
    if status != 0:
        faults.append(f"the dashboard ended with status {status}")
    if tracebacks:
        faults.append(f"{tracebacks} tracebacks are in the dashboard's log")
    for fault in faults:
        print(f"FAULT: {fault}")
    print("no leak, and every request ended" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(asyncio.run(soak(arguments.minutes, arguments.clients, arguments.seed)))


if __name__ == "__main__":
    main()
