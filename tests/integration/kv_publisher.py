"""A small publisher of KV events for tests: vLLM's PUB and ROUTER sockets, with every message and fault at hand."""

import asyncio
from collections.abc import Sequence
from types import TracebackType

import msgspec
import zmq
import zmq.asyncio

TIMEOUT_S = 20.0
END = b"\xff" * 8


def seq_bytes(seq: int) -> bytes:
    return seq.to_bytes(8, "big")


def payload(number: int, stamp: float = 1.0) -> bytes:
    """A batch with one stored block whose hash is `number`; `stamp` tells processes apart, as the time of day does."""
    event = ["BlockStored", [number], None, [1, 2], 2, None, "GPU"]
    return msgspec.msgpack.encode([stamp, [event], 0])


class KvPublisher:
    """Publishes on `port` and replays on `replay_port` (0: a free one) what is in `kept`, until the block is left.

    `with_topic` False is a server before 0.26. `with_replay` False has no replay socket, `mute` one that never answers.
    `drop` are numbers that the next replay leaves out once.
    """

    def __init__(
        self,
        port: int = 0,
        replay_port: int = 0,
        *,
        with_topic: bool = True,
        with_replay: bool = True,
        mute: bool = False,
    ) -> None:
        self.with_topic = with_topic
        self.mute = mute
        self.kept: list[tuple[int, bytes]] = []
        self.drop: set[int] = set()
        self.requests: list[list[bytes]] = []
        self._context = zmq.asyncio.Context()
        # XPUB is PUB that also tells who subscribes, so that a test knows when it may publish.
        self._pub = self._context.socket(zmq.XPUB)
        self._pub.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._router = self._context.socket(zmq.ROUTER) if with_replay else None
        self._pub.bind(f"tcp://127.0.0.1:{port or '*'}")
        if self._router is not None:
            self._router.bind(f"tcp://127.0.0.1:{replay_port or '*'}")
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "KvPublisher":
        self._serving = asyncio.create_task(self._serve())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        self._context.destroy(linger=0)

    @property
    def endpoint(self) -> str:
        return _bound(self._pub)

    @property
    def replay_endpoint(self) -> str:
        return _bound(self._router) if self._router is not None else ""

    @property
    def ports(self) -> tuple[int, int]:
        return tuple(int(end.rpartition(":")[2] or 0) for end in (self.endpoint, self.replay_endpoint))  # type: ignore[return-value]

    async def subscribed(self) -> bytes:
        """Waits for a subscription; its topic."""
        async with asyncio.timeout(TIMEOUT_S):
            # What starts with 0 is a subscriber that went.
            while not (frame := (await self._pub.recv_multipart())[0]).startswith(b"\x01"):
                pass
        return bytes(frame[1:])

    async def publish(self, *seqs: int, stamp: float = 1.0, keep: bool = True, send: bool = True) -> None:
        for seq in seqs:
            body = payload(seq, stamp)
            if keep:
                self.kept.append((seq, body))
            if send:
                await self.send([b"kv-events", seq_bytes(seq), body])

    async def send(self, frames: Sequence[bytes]) -> None:
        await self._pub.send_multipart(list(frames))

    async def _serve(self) -> None:
        if self._router is None:
            return
        while True:
            request = await self._router.recv_multipart()
            self.requests.append(request)
            if self.mute or len(request) != 3 or request[1] != b"":
                continue
            start = int.from_bytes(request[2], "big")
            topic = [b"kv-events"] if self.with_topic else []
            for seq, body in self.kept:
                if seq >= start and seq not in self.drop:
                    await self._router.send_multipart([request[0], b"", *topic, seq_bytes(seq), body])
            self.drop.clear()
            end = [b""] if self.with_topic else []
            await self._router.send_multipart([request[0], b"", *end, END, b""])


def _bound(socket: zmq.asyncio.Socket) -> str:
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)
