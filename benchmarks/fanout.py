"""Live events to many browsers: frames a second of one process on one core, and how long its event loop is held.

    python -m benchmarks.fanout [--clients 1000] [--rate 30] [--seconds 8]

The dashboard's own app is served by a process of its own; `clients` websockets of a second process read it, and
`rate` events a second go to each of them. What a core could deliver is the frames over the CPU time that they took,
so that a busy machine doesn't count against it. Of the loop's lag, too, the part counts that the process's own work
explains: at most the CPU time that it used meanwhile. Exit status 1 where a bar is missed.
"""

import argparse
import asyncio
import base64
import json
import multiprocessing
import os
import socket
import sys
import time
from multiprocessing.connection import Connection
from typing import Any, cast

import uvloop

from app.events import Outgoing, ScenarioAdvanced, ScenarioState
from app.factory import App, create_app
from app.serving import listen, make_server
from app.settings import load_settings

FRAMES_BAR = 25_000
LAG_BAR_MS = 20.0
LAG_LOOK_S = 0.002
CAPTION = "An event of about the size that a block table's is: " + "x" * 350
STOP = b"stop"


def serve(bound: socket.socket, clients: int, rate: float, seconds: float, out: "Connection[Any, Any]") -> None:
    """The process with the dashboard: waits for the clients, publishes, sends its figures."""
    uvloop.run(_serve(bound, clients, rate, seconds, out))


async def _serve(bound: socket.socket, clients: int, rate: float, seconds: float, out: "Connection[Any, Any]") -> None:
    settings = {"vllm": "http://127.0.0.1:9", "kv_events": "tcp://127.0.0.1:9", "max_clients": str(clients)}
    app = create_app(load_settings({}, settings))
    server = make_server(app, 1.0)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    while app.runtime.hub.clients < clients:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)
    lags: list[tuple[float, float]] = []
    watching = asyncio.create_task(_watch_lag(lags))
    began_cpu_s, began_s = time.process_time(), time.monotonic()
    published = await _publish(app, rate, seconds)
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    watching.cancel()
    walls, owns = sorted(lag[0] for lag in lags), sorted(lag[1] for lag in lags)
    out.send({
        "frames": published * clients,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
            "lag_p99_ms": walls[int(len(walls) * 0.99)] * 1000,
            "own_lag_p99_ms": owns[int(len(owns) * 0.99)] * 1000,
            "own_lag_max_ms": owns[-1] * 1000,
    })  # fmt: skip
    await asyncio.get_running_loop().run_in_executor(None, out.recv)
    server.should_exit = True
    await serving


async def _publish(app: App, rate: float, seconds: float) -> int:
    hub, clock = app.runtime.hub, app.runtime.clock
    due, number = time.monotonic(), 0
    end = due + seconds
    while due < end:
        state = ScenarioState(number, 0, CAPTION, running=True)
        hub.publish([Outgoing(ScenarioAdvanced(state), clock.wall_ms())])
        number += 1
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    return number


async def _watch_lag(lags: list[tuple[float, float]]) -> None:
    """Looks on and on: how late the loop was, and how much of that its own work explains."""
    while True:
        due, cpu_s = time.monotonic() + LAG_LOOK_S, time.thread_time()
        await asyncio.sleep(LAG_LOOK_S)
        late_s = max(0.0, time.monotonic() - due)
        lags.append((late_s, min(late_s, time.thread_time() - cpu_s)))


class Browser(asyncio.Protocol):
    """A websocket client that counts frames and looks at nothing else: the reader may cost less than the sender."""

    def __init__(self) -> None:
        self.frames = 0
        self._buffer = bytearray()
        self._upgraded = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asks for the live stream."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        key = base64.b64encode(os.urandom(16)).decode()
        self._transport.write(
            f"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        """Counts the frames that are complete."""
        self._buffer += data
        if not self._upgraded:
            head, end, rest = bytes(self._buffer).partition(b"\r\n\r\n")
            if not end:
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self._upgraded, self._buffer = True, bytearray(rest)
        while (size := self._frame_size()) is not None and len(self._buffer) >= size:
            del self._buffer[:size]
            self.frames += 1

    def _frame_size(self) -> int | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        length = buffer[1] & 0x7F
        if length < 126:
            return 2 + length
        extra = 2 if length == 126 else 8
        if len(buffer) < 2 + extra:
            return None
        return 2 + extra + int.from_bytes(buffer[2 : 2 + extra], "big")


def browse(port: int, clients: int, out: "Connection[Any, Any]") -> None:
    """The process with the browsers: connects, reads until told to stop, sends how many frames each had."""
    uvloop.run(_browse(port, clients, out))


async def _browse(port: int, clients: int, out: "Connection[Any, Any]") -> None:
    loop = asyncio.get_running_loop()
    browsers = []
    for _ in range(clients):
        _, browser = await loop.create_connection(Browser, "127.0.0.1", port)
        browsers.append(browser)
    await loop.run_in_executor(None, out.recv)
    await asyncio.sleep(0.5)
    out.send([browser.frames for browser in browsers])


def measure(clients: int, rate: float, seconds: float) -> dict[str, float]:
    """One run's figures."""
    context = multiprocessing.get_context("spawn")
    bound = listen("127.0.0.1", 0)
    port = int(bound.getsockname()[1])
    here, there = context.Pipe()
    readers_here, readers_there = context.Pipe()
    server = context.Process(target=serve, args=(bound, clients, rate, seconds, there), daemon=True)
    readers = context.Process(target=browse, args=(port, clients, readers_there), daemon=True)
    server.start()
    bound.listen(1024)
    readers.start()
    figures: dict[str, float] = here.recv()
    readers_here.send(STOP)
    frames = readers_here.recv()
    here.send(STOP)
    readers.join(10)
    server.join(10)
    figures["least_frames"] = min(frames)
    figures["expected_frames"] = figures["frames"] / clients
    return figures


def main() -> int:
    """Prints the figures; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=30.0, help="events a second, each to every client")
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    figures = measure(options.clients, options.rate, options.seconds)
    a_core = figures["frames"] / figures["cpu_s"]
    figures["frames_a_second"] = figures["frames"] / figures["wall_s"]
    figures["frames_a_second_of_a_core"] = a_core
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=2))
    missed = figures["least_frames"] < figures["expected_frames"]
    return int(a_core < FRAMES_BAR or figures["own_lag_max_ms"] > LAG_BAR_MS or missed)


if __name__ == "__main__":
    sys.exit(main())
