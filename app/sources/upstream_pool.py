"""The pool of connections to one server. It follows no redirects, keeps no cookies, never decompresses.

A request is sent once. Only where a kept-alive connection turns out to be closed before a byte of the request was
written does it go out on a fresh connection instead.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from ..errors import Unreachable, UpstreamTimeout
from .clock import Clock
from .upstream import Body, RawHeaders
from .upstream_connection import READ_BYTES, Connection, reason_of

IDLE_S = 4.0
"""Below the 5 s after which a vLLM server closes an idle connection."""


class HttpUpstream:
    """An `Upstream` on httptools: as many connections as there are requests at once, the idle ones kept for a while."""

    def __init__(self, base_url: str, clock: Clock, connect_timeout_s: float, read_timeout_s: float) -> None:
        parts = urlsplit(base_url)
        self._host = parts.hostname or ""
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._ssl else 80)
        self._prefix = parts.path.rstrip("/").encode("ascii")
        self._authority = parts.netloc.rpartition("@")[2].encode("idna" if not parts.netloc.isascii() else "ascii")
        self._base_url = base_url
        self._now = clock.monotonic
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._idle: deque[Connection] = deque()
        self._closed = False

    async def send(
        self, method: bytes, target: bytes, headers: RawHeaders, body: Body, on_sent: Callable[[], None]
    ) -> Connection:
        """See `Upstream.send`."""
        head = [method, b" ", self._prefix, target, b" HTTP/1.1\r\nhost: ", self._authority, b"\r\n"]
        for name, value in headers:
            head += (name, b": ", value, b"\r\n")
        head.append(b"\r\n")
        connection = self._reusable() or await self._connect()
        connection.start(b"".join(head), body, on_sent, without_body=method == b"HEAD")
        del body  # Its pieces go while they are written: all of a large one at once would hold the loop.
        await connection.head()
        return connection

    async def close(self) -> None:
        """Closes idle connections; those in use close when their responses end."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    def _give_back(self, connection: Connection) -> None:
        """Keeps a connection whose response was read to its end."""
        if self._closed:
            connection.close()
            return
        connection.idle_since_s = self._now()
        self._idle.append(connection)
        while connection.idle_since_s - self._idle[0].idle_since_s > IDLE_S:
            self._idle.popleft().close()

    def _reusable(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if self._now() - connection.idle_since_s < IDLE_S and connection.is_open():
                return connection
            connection.close()
        return None

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        hint = "Is vLLM running, and is its address right?"
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._buffer, self._give_back, self._base_url, self._now, self._read_timeout_s),
                    self._host,
                    self._port,
                    ssl=self._ssl,
                )
        except TimeoutError:
            message = f"{self._base_url} did not accept a connection within {self._connect_timeout_s:g} s"
            raise UpstreamTimeout(message, hint=hint) from None
        except (OSError, ssl.SSLError) as error:
            raise Unreachable(f"{self._base_url} can't be reached: {reason_of(error)}", hint=hint) from None
        return connection
