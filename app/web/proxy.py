"""The proxy's ASGI edge, for `/v1/*`: bare, with no framework on the path of a streamed chunk.

Reads the client's request, hands it to an `Exchange`, passes on what comes back, and watches whether the client is
still there. Errors of its own have a body that both OpenAI's clients and the dashboard's understand.
"""

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec

from ..errors import PrefixScopeError, error_body
from ..sources.body_reader import OFF_LOOP_BYTES
from ..sources.chat_proxy import Call, ChatProxy, Exchange
from .answers import error_headers
from .bodies import Bodies, Held
from .origin import UnknownHost, is_known_host, is_same_origin
from .paths import ServerPaths
from .pings import answer_with_pings
from .steps import Departure, Receive, Send, Sender, Waiting, first_step

Scope = MutableMapping[str, Any]

PIECE_BYTES = 64 * 1024
"""Pieces of a large body are at least of this size."""


class BodyTooLarge(PrefixScopeError):
    """A request body above `max_body_bytes`."""

    status = 413
    code = "body_too_large"


class ClientGone(Exception):
    """The client left before its request was complete."""


class ProxyApp:
    """The ASGI application. `known_hosts`: the names that pages of this dashboard are opened by."""

    def __init__(
        self, proxy: ChatProxy, known_hosts: frozenset[str] = frozenset(), bodies: Bodies | None = None
    ) -> None:
        settings = proxy.settings
        self._bodies = bodies or Bodies(settings.max_held_bytes, settings.body_timeout_s)
        self._proxy = proxy
        self._known_hosts = known_hosts
        self.paths = ServerPaths(proxy.settings.extra_paths)
        self._ping_interval_s = proxy.settings.ping_interval_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Websockets (`/v1/realtime`) aren't proxied."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        assert scope["type"] == "http"
        proxy = self._proxy
        try:
            path, target = self.paths.target(scope)
            from_own_page = self._is_from_own_page(scope["headers"])
            began_s = proxy.enter()
        except PrefixScopeError as error:
            await answer_proxied(send, error)
            return
        held = self._bodies.hold()
        try:
            # Nothing here holds on to the body, which may be large, and its answer long.
            exchange = proxy.open(
                Call(
                    scope["method"],
                    path,
                    target,
                    scope["headers"],
                    await self._read_body(scope, receive, held),
                    from_own_page,
                    began_s,
                )
            )
            await _exchange(exchange, receive, send, self._ping_interval_s, held.release)
        except ClientGone:
            pass
        except PrefixScopeError as error:
            await answer_proxied(send, error)
        finally:
            held.release()
            proxy.leave()

    def _is_from_own_page(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether a browser says, by `Origin`, that a page of this dashboard sent it.

        Raises UnknownHost for a page that only seems to be one. Programs, and pages that say that they are others, may
        ask by any name: what they may do is the server's own concern.
        """
        fields = dict(headers)
        origin = fields.get(b"origin")
        host = fields.get(b"host", b"").decode("latin-1")
        if origin is None or not is_same_origin(origin.decode("latin-1"), host):
            return False
        if not is_known_host(host, self._known_hosts):
            raise UnknownHost(
                "a page asks by a name that this dashboard isn't known by",
                hint="Open it by address, or add the name to PREFIXSCOPE_ALLOWED_HOSTS.",
            )
        return True

    async def _read_body(self, scope: Scope, receive: Receive, held: Held) -> bytes | tuple[bytes, ...]:
        """The whole body; a large one in pieces, since joining them would take milliseconds."""
        max_bytes = self._proxy.settings.max_body_bytes
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > max_bytes:
                raise _too_large(max_bytes)
        pieces: list[bytes] = []
        large: list[bytes] = []
        size = unjoined = 0
        more = True
        while more:
            step = first_step(receive())
            if isinstance(step, Waiting):
                message = await held.next_message(step)
            else:
                message = step
            if message["type"] == "http.disconnect":
                raise ClientGone
            if piece := message.get("body", b""):
                pieces.append(piece)
                size += len(piece)
                unjoined += len(piece)
                held.add(len(piece))
                if size > OFF_LOOP_BYTES and unjoined >= PIECE_BYTES:
                    large.append(b"".join(pieces))
                    pieces.clear()
                    unjoined = 0
                if size > max_bytes:
                    raise _too_large(max_bytes)
            more = message.get("more_body", False)
        if large:
            return (*large, b"".join(pieces))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _exchange(
    exchange: Exchange,
    receive: Receive,
    send: Send,
    ping_interval_s: float | None,
    body_sent: Callable[[], None],
) -> None:
    """Calls `body_sent` once the request's body is no longer here.

    Raises PrefixScopeError while nothing was sent to the client. Later failures break the client's stream off, as the
    server's was: the coroutine returns without the last message, and the HTTP server closes the connection.
    """
    task = asyncio.current_task()
    assert task is not None

    def client_left() -> None:
        if not exchange.complete:
            exchange.client_gone = True
            task.cancel()

    departure = Departure(receive, client_left)
    try:
        if ping_interval_s is not None and await exchange.takes_pings():
            await answer_with_pings(exchange, send, ping_interval_s, body_sent)
            return
        await exchange.send()
        body_sent()
        await send({"type": "http.response.start", "status": exchange.status, "headers": exchange.headers})
        sender = Sender(send)
        while not exchange.complete:
            try:
                await exchange.pump(sender.send_now)
            except PrefixScopeError:
                return
            await sender.drain()
    except asyncio.CancelledError:
        if not exchange.client_gone:
            raise
        task.uncancel()
    finally:
        departure.close()
        exchange.close()


def _too_large(max_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the request body is larger than {max_bytes} bytes", hint="Send less, or raise max_body_bytes."
    )


async def answer_proxied(send: Send, error: PrefixScopeError) -> None:
    """One body for both kinds of reader: `error.message`, `type` and `code` for OpenAI's clients, `code` and `hint`
    for the dashboard's own.
    """
    shape = error_body(error)["error"]
    if error.hint:
        shape["message"] = f"{error.message}. {error.hint}"
    body = msgspec.json.encode({"error": {**shape, "type": _TYPES.get(error.status, "server_error"), "param": None}})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers += [(name.encode(), value.encode()) for name, value in error_headers(error).items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


_TYPES = {
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
