"""uvicorn's HTTP protocol, with a bound on a request's head: how large it may be, and how long it may take to come.

Without it a client that never ends its head holds a connection and memory for good.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 * 1024
HEAD_TIMEOUT_S = 60.0
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BoundedHeads(HttpToolsProtocol):
    """One connection. uvicorn's own keep-alive timeout bounds the silence between two requests."""

    max_head_bytes = MAX_HEAD_BYTES
    head_timeout_s = HEAD_TIMEOUT_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_begun = False
        """Whether the bytes that come are those of a head."""
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Waits for the first head."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head count against the bound, those of a body don't."""
        super().data_received(data)
        # Nearly every head comes in one piece, and then there is nothing to watch.
        if self._head_begun:
            if self._head_timer is None:
                self._start_timer()
            self._head_bytes += len(data)
            if self._head_bytes > self.max_head_bytes:
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
        super().on_headers_complete()

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._refuse, _TOO_LATE)

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
