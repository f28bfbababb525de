"""A small HTTP server for tests of readers: fixed answers by path, and the ways in which a server can fail."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any


@dataclass
class Answer:
    """What a path answers. `raw` replaces the whole response; `hang` never answers; `wait` is awaited before."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    raw: bytes | None = None
    hang: bool = False
    wait: Callable[[], Awaitable[Any]] | None = None


@dataclass
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class SmallHttp:
    """Serves `answers` on 127.0.0.1 until the block is left; `port` 0 takes a free one."""

    answers: dict[str, Answer] = field(default_factory=dict)
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def json(self, path: str, value: object, status: int = 200) -> None:
        self.answers[path] = Answer(status, json.dumps(value).encode())

    async def until_asked(self, count: int, timeout_s: float = 20.0) -> None:
        """Waits until `count` requests came in all. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while len(self.asked) < count:
                self._arrived.clear()
                await self._arrived.wait()

    async def __aenter__(self) -> "SmallHttp":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=1 << 24)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append(Asked(method, path, headers, body))
        self._arrived.set()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            answer = self.answers.get(path, Answer(404, b'{"detail":"Not Found"}'))
            if answer.hang:
                await asyncio.Event().wait()
            if answer.wait is not None:
                await answer.wait()
        finally:
            self.in_flight -= 1
        if answer.raw is not None:
            writer.write(answer.raw)
            await writer.drain()
            return False
        writer.write(
            f"HTTP/1.1 {answer.status} X\r\ncontent-type: {answer.content_type}\r\n"
            f"content-length: {len(answer.body)}\r\n\r\n".encode()
            + answer.body
        )
        await writer.drain()
        return True
