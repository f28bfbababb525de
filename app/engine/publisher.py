"""KV events on their sockets: a PUB for who listens now, a ROUTER for who missed something.

A message is `[topic, sequence number, payload]`, the number in 8 bytes, big endian, from 0 with every start. A DEALER
that sends `[b"", first number]` gets one message a kept batch, `[b"", topic, number, payload]`, and an end marker with
number -1 and no topic and payload. What is kept is bounded in batches and in bytes.
"""

import contextlib
from collections import deque

import zmq
import zmq.asyncio

from .listening import PortTaken, zmq_address

END_OF_REPLAY = (-1).to_bytes(8, "big", signed=True)
HIGH_WATER_MARK = 10_000
"""Messages waiting for one subscriber; what comes above is lost to it, and can be replayed."""
REPLAY_SEND_TIMEOUT_MS = 5_000


class EventPublisher:
    """Owns both sockets, between `open` and `close`. `publish` never blocks: a slow subscriber loses messages."""

    def __init__(
        self,
        topic: str,
        *,
        replay_topic: bool = True,
        buffer_batches: int = 10_000,
        buffer_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._topic = topic.encode()
        self._replay_topic = replay_topic
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._buffer_batches = buffer_batches
        self._buffer_bytes = buffer_bytes
        self._next_number = 0
        self._context: zmq.asyncio.Context | None = None
        self._pub: zmq.Socket[bytes] | None = None
        self._router: zmq.asyncio.Socket | None = None

    def open(self, host: str, events_port: int, replay_port: int | None) -> tuple[str, str | None]:
        """Binds the sockets and gives their addresses; port 0 takes a free one, None leaves replay out.

        Raises PortTaken.
        """
        self._context = zmq.asyncio.Context()
        self._pub = zmq.Context(self._context).socket(zmq.PUB)
        self._pub.set_hwm(HIGH_WATER_MARK)
        try:
            events = _bind(self._pub, host, events_port, "events")
            if replay_port is None:
                return events, None
            self._router = self._context.socket(zmq.ROUTER)
            # Where the other side is gone or doesn't read, sending fails instead of losing a message in silence.
            self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
            self._router.setsockopt(zmq.SNDTIMEO, REPLAY_SEND_TIMEOUT_MS)
            return events, _bind(self._router, host, replay_port, "replay")
        except PortTaken:
            self.close()
            raise

    def close(self) -> None:
        """Closes the sockets; messages on their way are dropped."""
        for socket in (self._pub, self._router):
            if socket is not None:
                socket.close(linger=0)
        if self._context is not None:
            self._context.term()
        self._pub = self._router = self._context = None

    def publish(self, payload: bytes) -> None:
        """Sends one batch, and keeps it for replay."""
        number = self._next_number
        self._next_number += 1
        self._kept.append((number, payload))
        self._kept_bytes += len(payload)
        while len(self._kept) > self._buffer_batches or self._kept_bytes > self._buffer_bytes:
            self._kept_bytes -= len(self._kept.popleft()[1])
        if self._pub is not None:
            self._pub.send_multipart((self._topic, number.to_bytes(8, "big"), payload))

    async def serve_replay(self) -> None:
        """Answers replay requests, one after the other, until cancelled. A request that isn't one is ignored."""
        assert self._router is not None, "open comes first"
        while True:
            frames = await self._router.recv_multipart()
            if len(frames) == 3 and frames[1] == b"" and len(frames[2]) == 8:
                with contextlib.suppress(zmq.ZMQError):
                    await self._replay(frames[0], int.from_bytes(frames[2], "big"))

    async def _replay(self, client: bytes, first: int) -> None:
        assert self._router is not None
        topic = (self._topic,) if self._replay_topic else ()
        no_topic = (b"",) if self._replay_topic else ()
        for number, payload in tuple(self._kept):
            if number >= first:
                await self._router.send_multipart((client, b"", *topic, number.to_bytes(8, "big"), payload))
        await self._router.send_multipart((client, b"", *no_topic, END_OF_REPLAY, b""))


def _bind(socket: "zmq.Socket[bytes] | zmq.asyncio.Socket", host: str, port: int, purpose: str) -> str:
    if ":" in host:
        socket.setsockopt(zmq.IPV6, 1)
    try:
        socket.bind(zmq_address(host, port))
    except zmq.ZMQError as error:
        raise PortTaken(host, port, purpose, zmq.strerror(error.errno or 0)) from None
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)
