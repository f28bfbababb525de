"""One connection to a server: sends a request, hands on its response as it arrives. `upstream_pool` keeps them.

Pieces reach their sink from where they arrive, without a turn of the event loop.
"""

import asyncio
import select
from collections.abc import Callable
from typing import cast

from ..errors import PrefixScopeError, Unreachable, UpstreamTimeout
from .request_writer import RequestWriter
from .response_parser import NotHttp, ResponseParser
from .silence_timer import SilenceTimer
from .upstream import Body, RawHeaders, Sink

READ_AHEAD_BYTES = 256 * 1024
"""Bytes of one response that wait for a slow client before reading from the server pauses."""
READ_BYTES = 16 * 1024
"""At most so much is read at once: what is done with one read holds the event loop for a short time only."""


class Connection(asyncio.BufferedProtocol):
    """One connection, and the response that is being read from it: an `UpstreamResponse`."""

    def __init__(
        self,
        buffer: memoryview,
        give_back: Callable[["Connection"], None],
        base_url: str,
        now: Callable[[], float],
        read_timeout_s: float,
    ) -> None:
        """`buffer`, of `READ_BYTES`, is used during a read only, so that connections can share it.

        `give_back` takes the connection when its response was read to its end and it can serve another.
        """
        self.idle_since_s = 0.0
        self.received_s = 0.0
        self._buffer = buffer
        self._give_back = give_back
        self._base_url = base_url
        self._now = now
        self._read_timeout_s = read_timeout_s
        self._loop = asyncio.get_running_loop()
        self._parser = ResponseParser()
        self._pieces = self._parser.pieces
        self._silence = SilenceTimer(read_timeout_s, self._silent_s, self._silent)
        self._transport: asyncio.Transport
        self._writer: RequestWriter
        self._poll: select.poll | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._sink: Sink | None = None
        self._error: PrefixScopeError | None = None
        self._in_use = False
        self._open = self._paused = False

    # --- what the pool and the proxy call ---

    @property
    def status(self) -> int:
        """The response's status."""
        return self._parser.status

    @property
    def headers(self) -> RawHeaders:
        """The response's headers, as they came."""
        return self._parser.headers

    def start(self, head: bytes, body: Body, on_sent: Callable[[], None], *, without_body: bool) -> None:
        """Writes a request. `on_sent` is called at once where the system took all of it, else when it has."""
        self._parser.expect(without_body=without_body)
        self._error = None
        self._in_use = True
        self.received_s = self._now()
        self._silence.start()
        self._writer.start(head, body, on_sent)

    async def head(self) -> None:
        """Waits for the status line and headers."""
        parser = self._parser
        try:
            while not parser.head_done and self._error is None:
                self._waiter = self._loop.create_future()
                await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None
        if not parser.head_done and self._error is not None:
            raise self._error

    async def pipe(self, sink: Sink) -> None:
        """See `UpstreamResponse.pipe`. Pieces go to `sink` from where they arrive, without a turn of the event loop."""
        while True:
            if self._pieces or self._parser.message_done:
                data = self._take()
                last = self._parser.message_done and not self._pieces
                if last:
                    self._finish()
                if not sink(data, last) or last:
                    return
                if self._pieces:
                    await asyncio.sleep(0)
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
        self._abort()

    def close(self) -> None:
        """Closes an idle connection."""
        if self._open:
            self._open = False
            self._transport.close()
        self._silence.stop()

    def is_open(self) -> bool:
        """Whether an idle connection can still be used: nothing has come on it, not even the server's close."""
        if not self._open or self._transport.is_closing():
            return False
        return self._poll is None or not self._poll.poll(0)

    # --- asyncio.BufferedProtocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own aren't subclasses of it.
        self._writer = RequestWriter(self._transport, self._loop)
        self._open = True
        if transport.get_extra_info("sslcontext") is None and (sock := transport.get_extra_info("socket")) is not None:
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes from the server. On an idle connection they mean that it is of no use any more."""
        if not self._in_use:
            self.close()
            return
        self.received_s = self._now()
        if nbytes == READ_BYTES:
            self._let_others_read()
        parser = self._parser
        try:
            parser.feed(self._buffer[:nbytes])
        except NotHttp:
            self._fail(Unreachable(f"{self._base_url} sent what isn't HTTP/1.1", hint="Is this a vLLM server?"))
            self._abort()
            return
        if self._sink is not None:
            if self._pieces or parser.message_done:
                self._pour(self._sink)
        elif parser.head_done:
            self._writer.sent()
            self._wake()
            self._read_ahead()

    def eof_received(self) -> None:
        """The server closes; the transport follows."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone: an end where the response has no length of its own, else a failure."""
        self._open = False
        self._silence.stop()
        parser = self._parser
        if not self._in_use or parser.message_done:
            return
        if exc is None and parser.head_done and not parser.framed:
            parser.message_done = True
            if self._sink is not None:
                self._pour(self._sink)
            else:
                self._wake()
            return
        when = "in the middle of its answer" if parser.head_done else "before it answered"
        reason = f": {reason_of(exc)}" if isinstance(exc, OSError) else ""
        self._fail(Unreachable(f"{self._base_url} closed the connection {when}{reason}", hint="See the server's log."))

    def pause_writing(self) -> None:
        """The system takes no more for now."""

    def resume_writing(self) -> None:
        """The system has taken everything."""
        self._writer.go_on()

    # --- inside ---

    def _pour(self, sink: Sink) -> None:
        """Hands what came to the sink that `pipe` left. Its waiting ends with the last piece, or where it says so."""
        waiter = self._waiter
        assert waiter is not None
        pieces, last = self._pieces, self._parser.message_done
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

    def _read_ahead(self) -> None:
        """Nobody takes the pieces for now: some may wait here, more stay with the server."""
        if not self._paused and sum(map(len, self._pieces)) > READ_AHEAD_BYTES:
            self._paused = True
            self._transport.pause_reading()

    def _let_others_read(self) -> None:
        """A full read means that more waits; the loop would take it at once, and many times more, before it turns."""
        if not self._paused:
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self._open and not self._paused:
            self._transport.resume_reading()

    def _take(self) -> bytes:
        """What waits here, at most `READ_BYTES` or a piece at once."""
        pieces = self._pieces
        count = size = 0
        while count < len(pieces) and (not count or size + len(pieces[count]) <= READ_BYTES):
            size += len(pieces[count])
            count += 1
        data = pieces[0] if count == 1 else b"".join(pieces[:count])
        del pieces[:count]
        if self._paused and not pieces and not self._parser.message_done:
            self._paused = False
            self.received_s = self._now()
            self._transport.resume_reading()
        return data

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(False)

    def _finish(self) -> None:
        """The response was read to its end: the connection may serve the next request."""
        self._in_use = False
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if self._open and self._parser.leaves_reusable and self._writer.done:
            self._give_back(self)
        else:
            self.close()

    def _fail(self, error: PrefixScopeError) -> None:
        if self._error is None:
            self._error = error
        self._silence.stop()
        self._wake()

    def _abort(self) -> None:
        if self._open:
            self._open = False
            self._transport.abort()

    def _silent_s(self) -> float:
        """How long the server has been silent while it was its turn to say something."""
        return 0.0 if self._paused or not self._in_use else self._now() - self.received_s

    def _silent(self) -> None:
        message = f"{self._base_url} sent nothing for {self._read_timeout_s:g} s"
        self._fail(UpstreamTimeout(message, hint="Raise read_timeout_s where answers take longer."))
        self._abort()


def reason_of(error: BaseException | None) -> str:
    """The system's own words for what went wrong, without its number."""
    if isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
