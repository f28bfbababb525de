"""Listens and serves: the socket, and uvicorn set up so that nothing of it shows in proxied responses."""

import asyncio
import contextlib
import errno
import functools
import logging
import math
import signal
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import uvicorn
from starlette.types import ASGIApp

from .errors import PrefixScopeError
from .garbage import settle
from .open_files import room_for
from .settings import Settings
from .web.http_protocol import LIMITS, BoundedConnection, Limits, Resting
from .web.ws_protocol import SharedFramesProtocol

MAX_BROWSER_MESSAGE_BYTES = 64 * 1024
BROKEN_OFF = "ASGI callable returned without completing response."
"""uvicorn's own words."""
ADDRESS_HINT = "Give --host an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them."


class Rules(NamedTuple):
    """How clients' connections are kept, by the settings.

    Proxies on the way may hold the pong of a websocket back for most of a minute, and keep connections for a minute.
    """

    ping_interval_s: float = 20.0
    ping_timeout_s: float = 60.0
    keep_alive_s: float = 75.0
    limits: Limits = LIMITS


RULES = Rules()


def rules_of(settings: Settings) -> Rules:
    """The settings' rules, with no more connections than this process may have."""
    limits = Limits(settings.max_head_bytes, settings.head_timeout_s, room_for(settings.max_connections))
    return Rules(settings.browser_ping_interval_s, settings.browser_ping_timeout_s, settings.keep_alive_s, limits)


class CannotListen(PrefixScopeError):
    """The address can't be listened on."""

    code = "cannot_listen"


def listen(host: str, port: int) -> socket.socket:
    """A bound TCP socket. Raises CannotListen, in words for whoever typed the address."""
    if port > 65535:
        raise CannotListen(f"There is no port {port}.", hint="Ports go up to 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(
            f"The address {host!r} can't be listened on: {error.strerror or error}.", hint=ADDRESS_HINT
        ) from None
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(
                f"Port {port} of {host} is taken by another program.", hint="Choose another with --port."
            ) from None
        hint = "Choose one above 1023 with --port." if error.errno == errno.EACCES else ADDRESS_HINT
        raise CannotListen(f"Port {port} of {host} can't be listened on: {error.strerror}.", hint=hint) from None
    return bound


def url_of(bound: socket.socket) -> str:
    """The URL that a browser on this machine opens."""
    host, port = bound.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _WithoutBrokenStreams(logging.Filter):
    """Leaves out the tracebacks of streams that a shutdown cuts off: one line says how many they are.

    And what uvicorn says of a stream that the proxy breaks off because the server's broke: the record says it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it."""
        if record.msg == BROKEN_OFF:
            return False
        return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class _Server(uvicorn.Server):
    """uvicorn's server, which says when it has started."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, then says so."""
        await super().startup(sockets=sockets)
        self._on_started()


def make_server(
    app: ASGIApp, shutdown_grace_s: float, on_started: Callable[[], None] = lambda: None, rules: Rules = RULES
) -> uvicorn.Server:
    """A server for `app`; running streams get `shutdown_grace_s` to end."""
    config = uvicorn.Config(
        app,
        loop="uvloop",
        # uvicorn asks for a class, and only ever calls it.
        http=cast(Any, functools.partial(BoundedConnection, limits=rules.limits, resting=Resting())),
        ws=SharedFramesProtocol,
        ws_per_message_deflate=False,
        ws_max_size=MAX_BROWSER_MESSAGE_BYTES,
        ws_ping_interval=rules.ping_interval_s,
        ws_ping_timeout=rules.ping_timeout_s,
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=math.ceil(rules.keep_alive_s),
        timeout_graceful_shutdown=math.ceil(shutdown_grace_s),
    )
    return _Server(config, on_started)


def serve(
    app: ASGIApp, bound: socket.socket, shutdown_grace_s: float, on_started: Callable[[], None], rules: Rules = RULES
) -> None:
    """Serves `app` on `bound` until SIGTERM or SIGINT."""
    logging.getLogger("uvicorn.error").addFilter(_WithoutBrokenStreams())
    # uvicorn raises the signal once more after it has shut down; by then it has been obeyed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def started() -> None:
        settle()
        on_started()

    with contextlib.closing(bound):
        make_server(app, shutdown_grace_s, started, rules).run(sockets=[bound])
