"""What the proxy needs of a streaming HTTP client: bytes in, bytes out. `upstream_pool` has the one that is used.

The choice stays behind this interface. A small client of the project's own rather than a general one, for three
reasons: it hands on headers as the bytes that came, it knows the moment at which the last byte of a request left, and
a streamed response of 64 events costs about 40 % less CPU through it than through aiohttp's client in the same place
(`benchmarks/proxy.py` measures).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

RawHeaders = list[tuple[bytes, bytes]]

Body = Sequence[bytes | memoryview]
"""A request's body, in pieces: it may be large, and isn't copied."""

Sink = Callable[[bytes, bool], bool]
"""Takes a piece of a body, and whether it is the last (which may be empty). Returns False to get no more for now."""


class UpstreamResponse(Protocol):
    """A response whose head has arrived: `pipe` its body somewhere, or `abort` it. After its last piece, forget it."""

    received_s: float
    """When the last bytes came; the clock's monotonic seconds."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def headers(self) -> RawHeaders:
        """As they came; interim responses' and trailers left out."""
        ...

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
    """The client of one server."""

    async def send(
        self, method: bytes, target: bytes, headers: RawHeaders, body: Body, on_sent: Callable[[], None]
    ) -> UpstreamResponse:
        """Sends a request, waits for the response's head. `on_sent` is called when its last byte has left.

        `target` is a path with its query. Raises Unreachable and UpstreamTimeout.
        """
        ...

    async def close(self) -> None:
        """Closes every connection."""
        ...
