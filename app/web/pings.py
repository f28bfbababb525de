"""Keeps a stream's client company while the server is silent before its first byte: a comment every so many seconds.

For load balancers that cut connections on which nothing comes. Once the first comment is out, so is the status: one of
400 or more that the server gives later, or its loss, reaches the client as an error within the stream, in the form of
its protocol; the record has the real status.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ..errors import PrefixScopeError, error_body
from ..sources.exchange import Exchange
from ..sources.proxy_headers import STREAM_HEADERS
from .steps import Send, Sender

PING = b": ping\n\n"
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), *STREAM_HEADERS]
MAX_BODY_BYTES = 16 * 1024 * 1024
"""Of a body that isn't a stream, as much is kept until it is passed on as one event."""


async def answer_with_pings(exchange: Exchange, send: Send, interval_s: float, body_sent: Callable[[], None]) -> None:
    """Serves an exchange that `takes_pings`. Raises PrefixScopeError while nothing was sent to the client."""
    opened = False

    async def ping() -> None:
        nonlocal opened
        if not opened:
            opened = True
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": PING, "more_body": True})

    try:
        await _send_with_pings(exchange, ping, interval_s)
        body_sent()
        if not opened:
            await send({"type": "http.response.start", "status": exchange.status, "headers": exchange.headers})
        elif not exchange.streamed or exchange.status >= 400:
            await _end_with(send, await _whole_as_event(exchange))
            return
    except PrefixScopeError as error:
        if not opened:
            raise
        await _end_with(send, error_event(exchange.path, msgspec.json.encode(error_body(error))))
        return
    with contextlib.suppress(PrefixScopeError):  # The stream breaks off, as the server's did.
        sender = Sender(send)
        if opened or exchange.takes_comments:
            await _pump_with_pings(exchange, sender, interval_s)
        while not exchange.complete:
            await exchange.pump(sender.send_now)
            await sender.drain()


async def _send_with_pings(exchange: Exchange, ping: Callable[[], Awaitable[None]], interval_s: float) -> None:
    sending = asyncio.create_task(exchange.send())
    try:
        while not (await asyncio.wait({sending}, timeout=interval_s))[0]:
            await ping()
    except asyncio.CancelledError:
        sending.cancel()
        await asyncio.wait({sending})
        raise
    sending.result()


async def _pump_with_pings(exchange: Exchange, sender: Sender, interval_s: float) -> None:
    """Pumps until the first byte has gone to the client."""
    first = False

    def write(data: bytes, last: bool) -> bool:
        nonlocal first
        first = True
        return sender.send_now(data, last)

    while not first and not exchange.complete:
        try:
            async with asyncio.timeout(interval_s):
                await exchange.pump(write)
        except TimeoutError:
            if not first:
                sender.send_now(PING, False)
        await sender.drain()


async def _whole_as_event(exchange: Exchange) -> bytes:
    """What isn't a stream, for a client that was told that one comes: the whole body as one event."""
    body = bytearray()

    def keep(data: bytes, last: bool) -> bool:
        body.extend(data[: max(MAX_BODY_BYTES - len(body), 0)])
        return True

    while not exchange.complete:
        await exchange.pump(keep)
    if exchange.status >= 400:
        return error_event(exchange.path, bytes(body))
    return b"".join(b"data: " + line + b"\n" for line in body.splitlines()) + b"\ndata: [DONE]\n\n"


async def _end_with(send: Send, event: bytes) -> None:
    await send({"type": "http.response.body", "body": event, "more_body": False})


def error_event(path: str, body: bytes) -> bytes:
    """The event that ends a stream with the error in `body`, in the form that clients of `path` understand."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = {"error": {"message": body.decode("utf-8", "replace"), "type": "server_error", "code": None}}
    error = said.get("error") if isinstance(said, dict) else None
    error = error if isinstance(error, dict) else {"message": str(error or said), "type": "server_error"}
    told: dict[str, Any]
    if path.startswith("/v1/messages"):
        told = {"type": "error", "error": {"type": error.get("type") or "api_error", "message": error.get("message")}}
        return b"event: error\ndata: " + msgspec.json.encode(told) + b"\n\n"
    if path.startswith("/v1/responses"):
        told = {"type": "error", "code": error.get("code"), "message": error.get("message"), "param": None}
        return b"event: error\ndata: " + msgspec.json.encode(told) + b"\n\n"
    return b"data: " + msgspec.json.encode({"error": error}) + b"\n\ndata: [DONE]\n\n"
