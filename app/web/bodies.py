"""Bounds on the bodies of requests while they come: how many bytes of all together, and how slowly each.

A client that sends a byte now and then would hold its place for ever, and a thousand that send the largest body that is
allowed would fill the memory.
"""

import asyncio
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import Overloaded, PrefixScopeError

PORTION_BYTES = 64 * 1024
"""The time that a body may take is given anew for each portion of this size."""


class BodyTimeout(PrefixScopeError):
    """A client that stopped in the middle of its request, or sends it too slowly."""

    status = 408
    code = "body_timeout"


class Bodies:
    """What of requests' bodies is in memory. `timeout_s`: how long a portion of one may take to come."""

    def __init__(self, max_bytes: int, timeout_s: float) -> None:
        self.max_bytes = max_bytes
        self.timeout_s = timeout_s
        self.held_bytes = 0

    def hold(self) -> "Held":
        """For one body, which is to come now."""
        return Held(self)


class Held:
    """One body. `release` gives its bytes back, and does nothing the second time."""

    __slots__ = ("_bodies", "_due_s", "_portion", "_size")

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._size = 0
        self._portion = 0
        self._due_s = asyncio.get_running_loop().time() + bodies.timeout_s

    async def next_message(self, receive: Awaitable[Message]) -> Message:
        """Waits for the next piece. Raises BodyTimeout."""
        try:
            async with asyncio.timeout_at(self._due_s):
                return await receive
        except TimeoutError:
            raise BodyTimeout(
                f"the request's body came too slowly: after {self._size} bytes no more of it in time",
                hint=f"A portion of {PORTION_BYTES} bytes may take {self._bodies.timeout_s:g} s: see body_timeout_s.",
            ) from None

    def add(self, size: int) -> None:
        """Counts bytes that came. Raises Overloaded where they are too many, with those of all other bodies."""
        bodies = self._bodies
        if bodies.held_bytes + size > bodies.max_bytes:
            raise Overloaded(
                f"{bodies.held_bytes} bytes of requests are held in memory, and no more fit",
                hint="Try again in a second, or raise max_held_bytes.",
            )
        bodies.held_bytes += size
        self._size += size
        self._portion += size
        if self._portion >= PORTION_BYTES:
            self._portion = 0
            self._due_s = asyncio.get_running_loop().time() + bodies.timeout_s

    def release(self) -> None:
        """The body is no longer here."""
        self._bodies.held_bytes -= self._size
        self._size = 0


class BoundedBodies:
    """The ASGI layer before `app`: its requests' bodies are bounded, and count until they are answered.

    What is raised here, BodyTimeout and Overloaded, comes out of the application's own `receive`.
    """

    def __init__(self, app: ASGIApp, bodies: Bodies) -> None:
        self._app = app
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, or the lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held, more = self._bodies.hold(), True

        async def bounded() -> Message:
            nonlocal more
            if not more:
                return await receive()
            message = await held.next_message(receive())
            more = message.get("more_body", False)
            held.add(len(message.get("body", b"")))
            return message

        try:
            await self._app(scope, bounded, send)
        finally:
            held.release()
