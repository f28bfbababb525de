"""ZeroMQ sockets on an asyncio loop without a wrapper a message: a reader on the socket's descriptor, then a drain.

`zmq.asyncio` makes a future a message and reaches a fraction of what draining reaches (benchmarks/kv_subscriber.py).
"""

import asyncio
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from ..errors import SettingsError

RECONNECT_FIRST_MS = 100
RECONNECT_MAX_MS = 1000
CONNECT_TIMEOUT_MS = 3000
HANDSHAKE_MS = 5000
"""For what accepts and then waits to be spoken to first, as an HTTP server does: by default it is 30 seconds."""
HEARTBEAT_MS = 5000
HEARTBEAT_TIMEOUT_MS = 15000
HANDSHAKE_FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH,
)  # fmt: skip
"""What answers isn't a ZeroMQ socket of the kind that is looked for."""
_MONITORED = (
    zmq.EVENT_CONNECT_RETRIED | zmq.EVENT_CLOSED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)  # fmt: skip


class ZmqSocket:
    """A connecting socket and its monitor. `wake` is set whenever there may be something to receive from either.

    The descriptor of a ZeroMQ socket only tells that something changed: clear `wake`, receive until there is nothing
    more, then wait. Use as a context manager, on a running loop.

    ZeroMQ connects again by itself after a lost connection, and says so (EVENT_CONNECT_RETRIED), but never after a
    message beyond the limit or a failed handshake: then only a new socket helps.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], kind: int, endpoint: str, *, wake: asyncio.Event,
        receive_hwm: int, max_message_bytes: int, topic: bytes | None = None,
    ) -> None:  # fmt: skip
        self._wake = wake
        self._socket = context.socket(kind)
        options = {
            # Limits hold only for connections made after they are set.
            zmq.RCVHWM: receive_hwm,
            zmq.MAXMSGSIZE: max_message_bytes,
            zmq.LINGER: 0,
            zmq.RECONNECT_IVL: RECONNECT_FIRST_MS,
            zmq.RECONNECT_IVL_MAX: RECONNECT_MAX_MS,
            zmq.CONNECT_TIMEOUT: CONNECT_TIMEOUT_MS,
            zmq.HANDSHAKE_IVL: HANDSHAKE_MS,
            zmq.HEARTBEAT_IVL: HEARTBEAT_MS,
            zmq.HEARTBEAT_TIMEOUT: HEARTBEAT_TIMEOUT_MS,
            zmq.IPV6: int("[" in endpoint),
        }
        for option, value in options.items():
            self._socket.setsockopt(option, value)
        if topic is not None:
            self._socket.setsockopt(zmq.SUBSCRIBE, topic)
        self._monitor: zmq.Socket[bytes] = self._socket.get_monitor_socket(_MONITORED)
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> "ZmqSocket":
        """Connects. Raises SettingsError where the address can't even be tried."""
        for socket in (self._socket, self._monitor):
            self._loop.add_reader(socket.fileno(), self._wake.set)
        try:
            self._socket.connect(self._endpoint)
        except zmq.ZMQError as error:
            self.__exit__()
            raise SettingsError(f"{self._endpoint} can't be connected to: {error.strerror}.") from None
        self._wake.set()
        return self

    def __exit__(self, *_error: object) -> None:
        for socket in (self._socket, self._monitor):
            self._loop.remove_reader(socket.fileno())
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(0)

    def send(self, frames: list[bytes]) -> None:
        """Queues a message; it goes out when the connection is there."""
        self._socket.send_multipart(frames, zmq.NOBLOCK)

    def receive(self) -> list[bytes] | None:
        """The next message, or None where there is none now."""
        try:
            return self._socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None

    def receive_change(self) -> int | None:
        """The next change of the connection as `zmq.EVENT_...`, or None where there is none now."""
        try:
            frames = self._monitor.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None
        change: dict[str, Any] = dict(parse_monitor_message(frames))
        return int(change["event"])


async def woken(wake: asyncio.Event, timeout_s: float) -> bool:
    """Waits until `wake` is set; False where `timeout_s` passes first."""
    try:
        async with asyncio.timeout(timeout_s):
            await wake.wait()
    except TimeoutError:
        return False
    return True
