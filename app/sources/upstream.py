"""The streaming HTTP client behind the proxy: one pool for one server, on httptools, bytes in and bytes out.

A small client of its own rather than a general one, for three reasons: it hands on headers as the bytes that came, it
knows the moment at which the last byte of a request left, and a streamed response of 64 events costs about 40 % less
CPU through it than through aiohttp's client in the same place (`benchmarks/proxy.py` measures). Pieces reach their sink
from where they arrive, without a turn of the event loop. It never decompresses, follows no redirects, keeps no cookies.

A request is sent once. Only where a kept-alive connection turns out to be closed before a byte of the request was
written does it go out on a fresh connection instead.
"""

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast
from urllib.parse import urlsplit

import httptools

from ..errors import PrefixScopeError, Unreachable, UpstreamTimeout
from .clock import Clock

IDLE_S = 4.0
"""Below the 5 s after which a vLLM server closes an idle connection."""
READ_AHEAD_BYTES = 256 * 1024
"""Bytes of one response that wait for a slow client before reading from the server pauses."""
JOIN_BYTES = 64 * 1024
"""Head and body up to this size leave in one write."""

RawHeaders = list[tuple[bytes, bytes]]


Sink = Callable[[bytes, bool], bool]
"""Takes a piece of a body, and whether it is the last (which may be empty). Returns False to get no more for now."""


class UpstreamResponse(Protocol):
    """A response whose head has arrived: `pipe` its body somewhere, or `abort` it. After its last piece, forget it."""

    status: int
    headers: RawHeaders
    received_s: float
    """When the last bytes came; the clock's monotonic seconds."""

    async def pipe(self, sink: Sink) -> None:
        """Hands the body's pieces to `sink` as they arrive, until the last one or until it returns False.

        In the second case a further call goes on. Raises Unreachable where the server went away, UpstreamTimeout, and
        what `sink` raises.
        """
        ...

    def abort(self) -> None:
        """Closes the connection. A pending `pipe` raises Unreachable."""
        ...


class Upstream(Protocol):
    """What the proxy needs of a streaming client, so that the choice of one stays in this file."""

    async def send(
        self, method: bytes, target: bytes, headers: RawHeaders, body: bytes, on_sent: Callable[[], None]
    ) -> UpstreamResponse:
        """Sends a request, waits for the response's head. `on_sent` is called when its last byte has left.

        `target` is a path with its query. Raises Unreachable and UpstreamTimeout.
        """
        ...

    async def close(self) -> None:
        """Closes every connection."""
        ...


class HttpUpstream:
    """The pool of connections to one server."""

    def __init__(self, base_url: str, clock: Clock, connect_timeout_s: float, read_timeout_s: float) -> None:
        parts = urlsplit(base_url)
        self._host = parts.hostname or ""
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._ssl else 80)
        self._prefix = parts.path.rstrip("/").encode("ascii")
        self._authority = parts.netloc.rpartition("@")[2].encode("idna" if not parts.netloc.isascii() else "ascii")
        self._base_url = base_url
        self._clock = clock
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._idle: deque[Connection] = deque()
        self._closed = False

    async def send(
        self, method: bytes, target: bytes, headers: RawHeaders, body: bytes, on_sent: Callable[[], None]
    ) -> "Connection":
        """See `Upstream.send`."""
        head = [method, b" ", self._prefix, target, b" HTTP/1.1\r\nhost: ", self._authority, b"\r\n"]
        for name, value in headers:
            head += (name, b": ", value, b"\r\n")
        head.append(b"\r\n")
        connection = self._reusable() or await self._connect()
        connection.start(b"".join(head), body, on_sent, without_body=method == b"HEAD")
        await connection.head()
        return connection

    async def close(self) -> None:
        """Closes idle connections; those in use close when their responses end."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    def give_back(self, connection: "Connection") -> None:
        """Keeps a connection whose response was read to its end."""
        if self._closed:
            connection.close()
            return
        connection.idle_since_s = self._clock.monotonic()
        self._idle.append(connection)
        while connection.idle_since_s - self._idle[0].idle_since_s > IDLE_S:
            self._idle.popleft().close()

    def _reusable(self) -> "Connection | None":
        now = self._clock.monotonic()
        while self._idle:
            connection = self._idle.pop()
            if now - connection.idle_since_s < IDLE_S and connection.is_open():
                return connection
            connection.close()
        return None

    async def _connect(self) -> "Connection":
        loop = asyncio.get_running_loop()
        hint = "Is vLLM running, and is its address right?"
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(self, self._base_url, self._clock, self._read_timeout_s),
                    self._host,
                    self._port,
                    ssl=self._ssl,
                )
        except TimeoutError:
            message = f"{self._base_url} did not accept a connection within {self._connect_timeout_s:g} s"
            raise UpstreamTimeout(message, hint=hint) from None
        except (OSError, ssl.SSLError) as error:
            raise Unreachable(f"{self._base_url} can't be reached: {_reason(error)}", hint=hint) from None
        return connection


class Connection(asyncio.Protocol):
    """One connection, and the response that is being read from it."""

    def __init__(self, pool: HttpUpstream, base_url: str, clock: Clock, read_timeout_s: float) -> None:
        self.idle_since_s = 0.0
        self.received_s = 0.0
        self.status = 0
        self.headers: RawHeaders = []
        self._pool = pool
        self._base_url = base_url
        self._now = clock.monotonic
        self._read_timeout_s = read_timeout_s
        self._loop = asyncio.get_running_loop()
        self._parser: httptools.HttpResponseParser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._poll: select.poll | None = None
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._waiter: asyncio.Future[bool] | None = None
        self._sink: Sink | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._on_sent: Callable[[], None] | None = None
        self._error: PrefixScopeError | None = None
        self._in_use = False
        self._head_done = self._message_done = self._framed = False
        self._without_body = False
        self._open = self._paused = self._surplus = self._keeps_alive = False

    # --- what the pool and the proxy call ---

    def start(self, head: bytes, body: bytes, on_sent: Callable[[], None], *, without_body: bool) -> None:
        """Writes a request. `on_sent` is called at once where the system took all of it, else when it has."""
        self.status = 0
        self.headers = []
        self._head_done = self._message_done = self._framed = False
        self._without_body = without_body
        self._error = None
        self._in_use = True
        self._on_sent = on_sent
        self.received_s = self._now()
        if self._timer is None:
            self._timer = self._loop.call_later(self._read_timeout_s, self._check_read_timeout)
        transport = self._transport
        if len(head) + len(body) <= JOIN_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        if transport.get_write_buffer_size() == 0:
            self._sent()

    async def head(self) -> None:
        """Waits for the status line and headers."""
        try:
            while not self._head_done and self._error is None:
                self._waiter = self._loop.create_future()
                await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None
        if not self._head_done and self._error is not None:
            raise self._error

    async def pipe(self, sink: Sink) -> None:
        """See `UpstreamResponse.pipe`. Pieces go to `sink` from `data_received`, without a turn of the event loop."""
        while True:
            if self._pieces or self._message_done:
                last = self._message_done
                data = self._take()
                if last:
                    self._finish()
                if not sink(data, last) or last:
                    return
            elif self._error is not None:
                raise self._error
            else:
                waiter = self._waiter = self._loop.create_future()
                self._sink = sink
                try:
                    if await waiter:
                        return
                finally:
                    if self._waiter is waiter:  # Else the connection serves another request already.
                        self._waiter = self._sink = None

    def abort(self) -> None:
        """See `UpstreamResponse.abort`."""
        self._fail(Unreachable(f"the connection to {self._base_url} was closed"))
        if self._open:
            self._open = False
            self._transport.abort()

    def close(self) -> None:
        """Closes an idle connection."""
        if self._open:
            self._open = False
            self._transport.close()
        self._stop_timer()

    def is_open(self) -> bool:
        """Whether an idle connection can still be used: nothing has come on it, not even the server's close."""
        if not self._open or self._transport.is_closing():
            return False
        return self._poll is None or not self._poll.poll(0)

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Write buffering is off, so that a drained transport means that the system took everything."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own aren't subclasses of it.
        self._transport.set_write_buffer_limits(0)
        self._open = True
        if transport.get_extra_info("sslcontext") is None and (sock := transport.get_extra_info("socket")) is not None:
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)

    def data_received(self, data: bytes) -> None:
        """Bytes from the server. On an idle connection they mean that it is of no use any more."""
        if not self._in_use:
            self.close()
            return
        self.received_s = self._now()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(Unreachable(f"{self._base_url} sent what isn't HTTP/1.1", hint="Is this a vLLM server?"))
            self._open = False
            self._transport.abort()
            return
        if self._sink is not None:
            if self._pieces or self._message_done:
                self._pour(self._sink)
        elif self._head_done:
            self._wake()

    def eof_received(self) -> None:
        """The server closes; the transport follows."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone: an end where the response has no length of its own, else a failure."""
        self._open = False
        self._stop_timer()
        if not self._in_use or self._message_done:
            return
        if exc is None and self._head_done and not self._framed:
            self._message_done = True
            if self._sink is not None:
                self._pour(self._sink)
            else:
                self._wake()
            return
        when = "in the middle of its answer" if self._head_done else "before it answered"
        reason = f": {_reason(exc)}" if isinstance(exc, OSError) else ""
        self._fail(Unreachable(f"{self._base_url} closed the connection {when}{reason}", hint="See the server's log."))

    def pause_writing(self) -> None:
        """The system takes no more for now."""

    def resume_writing(self) -> None:
        """The system has taken everything."""
        self._sent()

    # --- httptools callbacks ---

    def on_message_begin(self) -> None:
        """A response starts, perhaps an interim one. One that nobody asked for makes the connection useless."""
        if self._head_done:
            self._surplus = True
            return
        self.headers = []
        self._framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or a trailer, which isn't passed on."""
        if self._head_done:
            return
        self.headers.append((name, value))
        lower = name.lower()
        if lower in (b"content-length", b"transfer-encoding"):
            self._framed = True

    def on_headers_complete(self) -> None:
        """The head is there. Interim responses (1xx) are left out."""
        if self._head_done:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:
            return
        self._head_done = True
        self._framed = self._framed or self.status in (204, 304)
        if self._on_sent is not None:
            self._sent()
        if self._without_body:
            # The parser would wait for the body that a HEAD response's length speaks of.
            self._message_done = True

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._message_done:
            return
        self._pieces.append(body)
        if self._sink is None:
            self._held_bytes += len(body)
            if self._held_bytes > READ_AHEAD_BYTES and not self._paused:
                self._paused = True
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """The response's end, where it has a length of its own or none at all."""
        if self.status >= 200 and not self._message_done:
            self._message_done = True
            self._keeps_alive = self._parser.should_keep_alive()

    # --- inside ---

    def _pour(self, sink: Sink) -> None:
        """Hands what came to the sink that `pipe` left. Its waiting ends with the last piece, or where it says so."""
        waiter = self._waiter
        assert waiter is not None
        pieces, last = self._pieces, self._message_done
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        if last:
            self._waiter = self._sink = None
            self._finish()
        try:
            if sink(data, last) and not last:
                return
        except Exception as error:
            if not waiter.done():
                waiter.set_exception(error)
            return
        if not last:  # Else the connection may serve another request already.
            self._sink = None
        if not waiter.done():
            waiter.set_result(True)

    def _take(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces = []
        self._held_bytes = 0
        if self._paused and not self._message_done:
            self._paused = False
            self.received_s = self._now()
            self._transport.resume_reading()
        return data

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(False)

    def _sent(self) -> None:
        on_sent, self._on_sent = self._on_sent, None
        if on_sent is not None:
            on_sent()

    def _finish(self) -> None:
        """The response was read to its end: the connection may serve the next request."""
        self._in_use = False
        reusable = self._open and self._framed and self._keeps_alive and not (self._without_body or self._surplus)
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if reusable:
            self._pool.give_back(self)
        else:
            self.close()

    def _fail(self, error: PrefixScopeError) -> None:
        if self._error is None:
            self._error = error
        self._stop_timer()
        self._wake()

    def _check_read_timeout(self) -> None:
        """One timer a connection, armed anew for what is left: none is made and cancelled a chunk."""
        self._timer = None
        if not self._open or not self._in_use:
            return
        silent_s = self._now() - self.received_s
        if self._paused or silent_s < self._read_timeout_s:
            left_s = self._read_timeout_s if self._paused else self._read_timeout_s - silent_s
            self._timer = self._loop.call_later(max(left_s, 0.001), self._check_read_timeout)
            return
        message = f"{self._base_url} sent nothing for {self._read_timeout_s:g} s"
        self._fail(UpstreamTimeout(message, hint="Raise read_timeout_s where answers take longer."))
        self._open = False
        self._transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _reason(error: BaseException | None) -> str:
    if isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


__all__ = ["HttpUpstream", "RawHeaders", "Sink", "Upstream", "UpstreamResponse"]
