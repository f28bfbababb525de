"""uvicorn's HTTP protocol with what it lacks: bounds on a request's head (how large, and how long it may take to come)
and on the number of connections, and responses without chunk markers for clients of HTTP/1.0, which don't know them.

Without the bounds, clients that never end their heads hold connections and memory for good.
"""

import asyncio
from collections import OrderedDict
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Limits(NamedTuple):
    """Of connections: see the settings of these names. uvicorn bounds the silence between two requests itself."""

    max_head_bytes: int = 64 * 1024
    head_timeout_s: float = 60.0
    max_connections: int = 10_000


LIMITS = Limits()


class Resting:
    """The connections on which no request is being answered; the one that rested longest is first."""

    def __init__(self) -> None:
        self._connections: OrderedDict[BoundedConnection, None] = OrderedDict()

    def add(self, connection: "BoundedConnection") -> None:
        """It waits for a request from now on."""
        self._connections[connection] = None
        self._connections.move_to_end(connection)

    def discard(self, connection: "BoundedConnection") -> None:
        """It is at work, or gone."""
        self._connections.pop(connection, None)

    def close_one(self) -> None:
        """Makes room: the connection that rested longest is closed. The newest one rests too, so there is one."""
        if self._connections:
            self._connections.popitem(last=False)[0].transport.close()


class BoundedConnection(HttpToolsProtocol):
    """One connection. `resting` is shared by all connections of a server."""

    def __init__(self, *arguments: Any, limits: Limits, resting: Resting, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self._resting = resting
        self._head_begun = False
        """Whether the bytes that come are those of a head."""
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Waits for the first head."""
        super().connection_made(transport)
        self._start_timer()
        self._resting.add(self)
        if len(self.connections) > self._limits.max_connections:
            self._resting.close_one()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_timer()
        self._resting.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head count against the bound, those of a body don't."""
        super().data_received(data)
        # Nearly every head comes in one piece, and then there is nothing to watch.
        if self._head_begun:
            if self._head_timer is None:
                self._start_timer()
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.max_head_bytes:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        self._head_begun = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._stop_timer()
        self._head_begun = False
        self._resting.discard(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Waits for the next head, unless it is there already."""
        if not self.pipeline:
            self._resting.add(self)
        super().on_response_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["http_version"] == "1.0":
            app = _WithoutChunks(app, cycle)
        super()._start_asgi_task(cycle, app)

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_timeout_s, self._refuse, _TOO_LATE)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, answer: bytes) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            # A response that is still on its way must not be broken by another status line.
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(answer)
            self.transport.close()


class _WithoutChunks:
    """Around the application for one request: a response without a length ends where the connection does.

    uvicorn marks chunks unless it counts down a length, so each piece is given its own.
    """

    def __init__(self, app: ASGIApp, cycle: RequestResponseCycle) -> None:
        self._app = app
        self._cycle = cycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request."""
        counts_itself = False

        async def unmarked(message: Message) -> None:
            nonlocal counts_itself
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message.get("headers", ())}
                counts_itself = b"content-length" in names
                if not counts_itself:
                    self._cycle.chunked_encoding = False
            elif not counts_itself:
                self._cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, unmarked)
