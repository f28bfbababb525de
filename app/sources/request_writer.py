"""Writes a request to a transport, slice by slice, and says when the system has taken all of it. Knows no response."""

import asyncio
from collections import deque
from collections.abc import Callable

from .upstream import Body

JOIN_BYTES = 64 * 1024
"""Head and body up to this size leave in one write."""
WRITE_BYTES = 256 * 1024
"""Of a larger request, so much is written at once."""


class RequestWriter:
    """The requests of one connection, one at a time."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """The transport's own buffering is turned off, so that a drained one means that the system took everything."""
        transport.set_write_buffer_limits(0)
        self._transport = transport
        self._loop = loop
        self._unsent: deque[bytes | memoryview] = deque()
        self._on_sent: Callable[[], None] | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to be written."""
        return not self._unsent

    def start(self, head: bytes, body: Body, on_sent: Callable[[], None]) -> None:
        """Writes a request. `on_sent` is called at once where the system took all of it, else when it has."""
        self._on_sent = on_sent
        if len(head) + sum(map(len, body)) <= JOIN_BYTES:
            self._unsent.append(b"".join((head, *body)))
        else:
            self._unsent.append(head)
            for piece in body:
                view = memoryview(piece)
                self._unsent.extend(view[at : at + WRITE_BYTES] for at in range(0, len(view), WRITE_BYTES))
        self.go_on()

    def go_on(self) -> None:
        """Writes the next slice, and one in each turn of the loop after it while the system takes it."""
        if self._transport.is_closing():
            return
        if self._unsent:
            self._transport.write(self._unsent.popleft())
            if self._transport.get_write_buffer_size():
                return  # The transport says when it goes on.
            if self._unsent:
                self._loop.call_soon(self.go_on)
                return
        self.sent()

    def sent(self) -> None:
        """The server has the request, or answers it already."""
        on_sent, self._on_sent = self._on_sent, None
        if on_sent is not None:
            on_sent()
