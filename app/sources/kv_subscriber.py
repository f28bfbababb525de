"""Follows one publisher of KV events: in sequence, every gap closed by replay or reported, every restart noticed.

What comes out is KvBatch in sequence, KvGap before what was recovered of it, KvRestarted, KvStreamState with a message
that says what to do, and Malformed. While history is fetched, live messages wait in the socket's own queue, which is
bounded: what overflows there is a gap again.
"""

import asyncio
import secrets
from collections.abc import Callable

import zmq

from ..errors import DecodeError, SettingsError
from ..ids import Rank, ServerId
from ..observations import Observation, StreamFault
from ..wire.kv_events import KvEventDecoder
from ..wire.kv_frames import DEFAULT_MAX_PAYLOAD_BYTES, KvFrames, parse_live
from ..wire.salt import KEY_BYTES
from .backoff import Backoff
from .clock import Clock
from .kv_delivery import KvDelivery
from .kv_endpoints import (
    connects_instead,
    no_replay,
    not_a_publisher,
    nothing_publishes,
    other_topics,
    resolved_endpoints,
)
from .kv_replay import History, Replay, ReplayLimits
from .kv_states import KvStates, StreamState
from .zmq_socket import HANDSHAKE_FAILED, ZmqSocket, woken

SLICE_S = 0.0015
"""How long messages are taken before other tasks get their turn."""
SLICE_MESSAGES = 256
IDLE_S = 0.5
REOPEN_S = 0.5
"""After a lost connection that ZeroMQ doesn't take up again by itself: a new socket."""
RECHECK_S = 1.0
"""After a connection is made: a subscription that arrived late at the publisher may have cost a message."""
LOOK_AGAIN_S = 10.0
"""Between looks for what is wrong with an address where nothing publishes."""
NEVER_SEQ = 1 << 62
"""A number that no publisher reaches: asked for, a replay socket says that there is no more."""
RETRY_CAP_S = 30.0
"""Between looks for a replay socket that isn't there."""


class KvSubscriber:
    """One server's rank. `endpoint` is rank 0's, each other rank's is on port + rank; None: vLLM's port on the server's
    host is tried.

    `replay_endpoint` None: the same for replay, if the events are on their documented port; "": none.
    `topic` is a prefix; "" takes all. `salt_key` has to be the proxy's for salts to be comparable.
    """

    def __init__(
        self,
        server: ServerId,
        rank: Rank,
        endpoint: str | None,
        replay_endpoint: str | None,
        topic: str,
        emit: Callable[[Observation], None],
        clock: Clock,
        *,
        salt_key: bytes | None = None,
        max_message_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES,
        receive_hwm: int = 100_000,
        replay_limits: ReplayLimits | None = None,
    ) -> None:
        self._server = server
        self._rank = rank
        self._endpoint = endpoint
        self._is_guessed = endpoint is None
        limits = replay_limits or ReplayLimits(max_message_bytes=max_message_bytes)
        self._replay = Replay(replay_endpoint, limits, clock)
        self._topic = topic.encode()
        self._emit = emit
        self._clock = clock
        self._max_message_bytes = max_message_bytes
        self._receive_hwm = receive_hwm
        decoder = KvEventDecoder(salt_key or secrets.token_bytes(KEY_BYTES), max_message_bytes)
        self._delivery = KvDelivery(server, rank, emit, clock, decoder)
        self._sequence = self._delivery.sequence
        self._context: zmq.Context[zmq.Socket[bytes]]
        self._states = KvStates(server, rank, emit, clock)
        self._filling = asyncio.Lock()
        """Held while the stream is filled from a history: one filler at a time."""
        self._resync_at_s: float | None = None
        self._reopen_at_s: float | None = None
        self._recheck_at_s: float | None = None
        self._look_at_s: float | None = None
        self._found_topic: str | None = None
        self._retries = Backoff(0.25, RETRY_CAP_S)

    async def run(self) -> None:
        """Follows the stream until cancelled. With an address that can't be used it says so and waits."""
        self._context = zmq.Context()
        try:
            self._endpoint, self._replay.endpoint = resolved_endpoints(
                self._endpoint, self._replay.endpoint, self._server, self._rank
            )
            self._state("connecting", None)
            while True:
                await self._follow()
        except SettingsError as error:
            self._state("off", error.message, "unusable_address")
            await asyncio.Event().wait()
        finally:
            self._context.destroy(linger=0)

    def tell_failed(self, message: str) -> None:
        """For whoever runs this: `run` ended by a fault, and `message` says so to people."""
        self._state("disconnected", message)

    async def _follow(self) -> None:
        """Follows the stream on one socket; returns when it needs a new one."""
        self._reopen_at_s = None
        wake = asyncio.Event()
        with ZmqSocket(
            self._context, zmq.SUB, self._endpoint or "", wake=wake, receive_hwm=self._receive_hwm,
            max_message_bytes=self._max_message_bytes, topic=self._topic,
        ) as socket:  # fmt: skip
            async with asyncio.TaskGroup() as tasks:
                while not await self._turn(socket, wake, tasks):
                    pass

    async def _turn(self, socket: ZmqSocket, wake: asyncio.Event, tasks: asyncio.TaskGroup) -> bool:
        """Does what there is to do, or waits for it; whether the socket is of no more use."""
        wake.clear()
        while (change := socket.receive_change()) is not None:
            self._changed(change)
        if await self._take_slice(socket):
            await asyncio.sleep(0)
        elif self._is_due(self._reopen_at_s):
            return True
        elif self._is_due(self._resync_at_s):
            # Only now: what the last connection brought is taken, and can't be mixed up with the new one's.
            await self._resync()
        elif self._is_due(self._recheck_at_s):
            self._recheck_at_s = None
            tasks.create_task(self._recheck())
        elif self._is_due(self._look_at_s):
            self._look_at_s = None
            tasks.create_task(self._look_for_replay())
        else:
            await woken(wake, IDLE_S)
        return False

    def _is_due(self, at_s: float | None) -> bool:
        return at_s is not None and self._clock.monotonic() >= at_s

    # --- the connection ----------------------------------------------------------------------------------------------

    def _changed(self, change: int) -> None:
        if change == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._reopen_at_s = None
            self._resync_at_s = self._clock.monotonic()
            self._connected()
        elif change in HANDSHAKE_FAILED:
            self._reopen_at_s = self._clock.monotonic() + REOPEN_S
            self._state("disconnected", not_a_publisher(self._endpoint or ""), "wrong_port")
        elif change == zmq.EVENT_DISCONNECTED:
            self._reopen_at_s = self._clock.monotonic() + REOPEN_S
            if self._states.current == "connected":
                message = f"The connection to {self._endpoint} was lost. It is tried again by itself."
                self._state("disconnected", message, "lost")
        elif change == zmq.EVENT_CONNECT_RETRIED:
            self._reopen_at_s = None
            if self._states.current == "connecting":
                self._refused()
            if self._look_at_s is None and self._states.current == "disconnected" and self._replay.endpoint:
                self._look_at_s = self._clock.monotonic() + LOOK_AGAIN_S

    def _refused(self) -> None:
        message = nothing_publishes(self._endpoint or "", self._is_guessed, self._rank)
        self._state("disconnected", message, "rank_port" if self._rank else "not_enabled")
        self._look_at_s = self._clock.monotonic()

    async def _look_for_replay(self) -> None:
        """Nothing publishes at the address: if something replays there, the publisher connects instead of binding."""
        history = await self._replay.fetch(self._context, NEVER_SEQ)
        if history.answered and self._states.current == "disconnected":
            message = connects_instead(self._endpoint or "", self._replay.endpoint or "")
            self._state("disconnected", message, "not_bound")

    def _connected(self) -> None:
        if self._found_topic is not None:
            message = other_topics(self._topic.decode("utf-8", "replace"), self._found_topic)
            self._state("connected", message, "wrong_topic")
        else:
            self._state("connected", no_replay(self._replay.endpoint) if self._replay.available is False else None)

    def _state(self, state: StreamState, message: str | None, fault: StreamFault | None = None) -> None:
        self._states.tell(state, self._endpoint, message, self._replay.available, fault)

    # --- messages ----------------------------------------------------------------------------------------------------

    async def _take_slice(self, socket: ZmqSocket) -> bool:
        """Takes what has arrived, for a slice of time; whether there may be more at once."""
        until = self._clock.monotonic() + SLICE_S
        for _ in range(SLICE_MESSAGES):
            message = socket.receive()
            if message is None:
                return False
            try:
                frames = parse_live(message, self._max_message_bytes)
            except DecodeError as error:
                self._delivery.malformed(error)
            else:
                await self._take(frames)
            if self._clock.monotonic() >= until:
                break
        return True

    async def _take(self, frames: KvFrames) -> None:
        if self._sequence.judge(frames.seq, frames.payload) == "next" and not self._delivery.is_large(frames):
            await self._delivery.deliver(frames, replayed=False)
            return
        async with self._filling:
            verdict = self._sequence.judge(frames.seq, frames.payload)
            if verdict == "known":
                self._delivery.duplicate(frames.seq)
                return
            if verdict == "restarted":
                self._delivery.restarted()
                verdict = self._sequence.judge(frames.seq, frames.payload)
            if verdict == "ahead":
                await self._close_gap(frames.seq)
            await self._delivery.deliver(frames, replayed=False)

    async def _close_gap(self, upto: int) -> None:
        """Everything before `upto` that isn't there yet: replayed where the publisher still has it, else reported."""
        first = self._sequence.next_seq or 0
        history = await self._fetch(first)
        recovered = [frames for frames in history.in_order() if first <= frames.seq < upto] if history else []
        if self._sequence.next_seq is None and recovered:
            # Nothing was known: what the publisher no longer has is missing, the rest is simply its history.
            await self._deliver_history(recovered, upto)
            return
        self._delivery.gap(first, upto - 1, len(recovered))
        for frames in recovered:
            await self._delivery.deliver(frames, replayed=True)
            await asyncio.sleep(0)

    async def _resync(self) -> None:
        """After a connection was made: the history, and whether the publisher is still the one that was known.

        Live messages wait meanwhile, so that the history comes first.
        """
        self._resync_at_s = None
        known = self._sequence.next_seq
        history = await self._fetch(max((known or 0) - 1, 0))
        self._connected()
        async with self._filling:
            await self._settle(known, history)
        self._retries.reset()
        self._recheck_at_s = self._clock.monotonic() + (RECHECK_S if history else self._retries.pause_s())

    async def _recheck(self) -> None:
        """Looks once more, beside the live messages, for one that was lost before the subscription arrived."""
        known, restarts = self._sequence.next_seq, self._delivery.restarts
        history = await self._fetch(max((known or 0) - 1, 0))
        if history is None and self._replay.endpoint:
            # A server that starts may publish before it replays.
            self._recheck_at_s = self._clock.monotonic() + self._retries.pause_s()
        if self._states.current == "connected":
            self._connected()
        async with self._filling:
            if restarts == self._delivery.restarts:
                await self._settle(known, history)

    async def _settle(self, known: int | None, history: History | None) -> None:
        """Takes a history that was asked for when `known` was the next number."""
        if history is None:
            return
        batches = history.in_order()
        self._compare_topics(batches)
        if known and self._is_another_process(known - 1, batches, history.complete):
            self._delivery.restarted()
            again = await self._fetch(0)
            batches = again.in_order() if again else []
        await self._deliver_history(batches, None)
        if self._sequence.next_seq is None and history.complete:
            self._sequence.restart()

    def _compare_topics(self, batches: list[KvFrames]) -> None:
        """What is replayed tells its topic (from 0.26 on), also where the subscription keeps it from coming live."""
        others = [frames.topic for frames in batches if frames.topic]
        if not others:
            return
        fits = any(topic.startswith(self._topic) for topic in others)
        self._found_topic = None if fits else others[-1].decode("utf-8", "replace")
        if self._states.current == "connected":
            self._connected()

    def _is_another_process(self, last_seq: int, batches: list[KvFrames], complete: bool) -> bool:
        """The publisher that was known still has its last message; another has none of that number, or a different."""
        if not batches:
            return complete
        return batches[0].seq == last_seq and not self._sequence.knows(last_seq, batches[0].payload)

    async def _deliver_history(self, batches: list[KvFrames], upto: int | None) -> None:
        for frames in batches:
            expected = self._sequence.next_seq or 0
            if frames.seq < expected:
                continue
            if frames.seq > expected:
                self._delivery.gap(expected, frames.seq - 1, 0)
            await self._delivery.deliver(frames, replayed=True)
            await asyncio.sleep(0)
        expected = self._sequence.next_seq or 0
        if upto is not None and expected < upto:
            self._delivery.gap(expected, upto - 1, 0)

    async def _fetch(self, start_seq: int) -> History | None:
        """The publisher's history from `start_seq` on; None where there is no replay."""
        history = await self._replay.fetch(self._context, start_seq)
        for _ in range(history.malformed):
            self._delivery.malformed(DecodeError("A replay answer that can't be read."))
        return history if history.answered else None
