"""Asks a publisher's replay socket for what was missed: one conversation a socket, bounded in time, count and bytes.

The request is `[b"", first sequence number]` on a DEALER socket; all answers are read up to the end marker. A socket
that timed out is never used again, so that late answers can't be taken for those of the next conversation.
"""

import asyncio
import time
from dataclasses import dataclass, field

import zmq

from ..errors import DecodeError, SettingsError
from ..wire.kv_frames import DEFAULT_MAX_PAYLOAD_BYTES, KvFrames, parse_replay, replay_request
from .clock import Clock
from .zmq_socket import HANDSHAKE_FAILED, ZmqSocket, woken

MAX_CONVERSATIONS = 20
"""A publisher drops answers when they come faster than they are sent: the rest is asked for again, this often."""
_LOST = (zmq.EVENT_CONNECT_RETRIED, zmq.EVENT_CLOSED, zmq.EVENT_DISCONNECTED, *HANDSHAKE_FAILED)
SLOW_S = 0.25
PAUSE_S = 5.0
"""After a replay socket that takes its time and doesn't answer: gaps are reported at once instead of waiting again."""
_SLICE_S = 0.0015
_SLICE_MESSAGES = 256


@dataclass(frozen=True, slots=True)
class ReplayLimits:
    """Where a replay ends even if the publisher doesn't."""

    idle_s: float = 2.0
    """Without an answer, from the request on."""
    total_s: float = 20.0
    """All conversations together."""
    max_batches: int = 200_000
    max_bytes: int = 256 * 1024 * 1024
    max_message_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES


@dataclass(slots=True)
class History:
    """What came back, `batches` by sequence number."""

    batches: dict[int, KvFrames] = field(default_factory=dict)
    complete: bool = False
    """The publisher said that there is no more."""
    malformed: int = 0
    size_bytes: int = 0

    @property
    def answered(self) -> bool:
        """Whether there is a publisher that replays at all."""
        return self.complete or bool(self.batches)

    def in_order(self) -> list[KvFrames]:
        """The batches, lowest number first."""
        return [self.batches[seq] for seq in sorted(self.batches)]

    def first_hole(self, start_seq: int) -> int:
        """The lowest number from `start_seq` on, or from the first that the publisher still had, that isn't there."""
        seq = start_seq if start_seq in self.batches else min(self.batches, default=start_seq)
        while seq in self.batches:
            seq += 1
        return seq


class Replay:
    """One publisher's replay socket, and whether it is of use. `endpoint` "": there is none."""

    def __init__(self, endpoint: str | None, limits: ReplayLimits, clock: Clock) -> None:
        self.endpoint = endpoint
        self.available: bool | None = None
        """Whether it answered, the last time; None before the first."""
        self._limits = limits
        self._clock = clock
        self._paused_until_s = 0.0

    async def fetch(self, context: zmq.Context[zmq.Socket[bytes]], start_seq: int) -> History:
        """The publisher's history from `start_seq` on; one that isn't `answered` where there is no replay."""
        if not self.endpoint:
            self.available = False
            return History()
        began_s = self._clock.monotonic()
        if began_s < self._paused_until_s:
            return History()
        try:
            history = await fetch_history(context, self.endpoint, start_seq, self._limits)
        except SettingsError:
            history = History()
        self.available = history.answered
        if not history.answered and self._clock.monotonic() - began_s >= SLOW_S:
            self._paused_until_s = self._clock.monotonic() + PAUSE_S
        return history


async def fetch_history(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: str, start_seq: int, limits: ReplayLimits
) -> History:
    """All batches from `start_seq` on that the publisher still has. Never raises for what the other side does."""
    history = History()
    ask_from = start_seq
    deadline = time.monotonic() + limits.total_s
    for _ in range(MAX_CONVERSATIONS):
        history.complete = False
        await _converse(context, endpoint, ask_from, limits, history, deadline)
        hole = history.first_hole(start_seq)
        has_holes = hole <= max(history.batches, default=-1)
        is_full = len(history.batches) >= limits.max_batches or history.size_bytes >= limits.max_bytes
        if is_full or hole <= ask_from or (history.complete and not has_holes):
            break
        ask_from = hole
    return history


async def _converse(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: str, start_seq: int, limits: ReplayLimits, history: History,
    deadline: float,
) -> None:  # fmt: skip
    """One request and its answers, added to `history`; `deadline` is a moment of `time.monotonic`."""
    wake = asyncio.Event()
    with ZmqSocket(
        context, zmq.DEALER, endpoint, wake=wake, receive_hwm=limits.max_batches,
        max_message_bytes=limits.max_message_bytes,
    ) as socket:  # fmt: skip
        socket.send(replay_request(start_seq))
        while (left_s := deadline - time.monotonic()) > 0:
            if not await woken(wake, min(limits.idle_s, left_s)):
                return
            wake.clear()
            while True:
                ended, more = _drain(socket, limits, history)
                if ended:
                    return
                if not more:
                    break
                await asyncio.sleep(0)
            if _is_lost(socket):
                return


def _drain(socket: ZmqSocket, limits: ReplayLimits, history: History) -> tuple[bool, bool]:
    """Takes what has arrived, for a slice of time: `(conversation is over, there may be more at once)`."""
    until = time.monotonic() + _SLICE_S
    for _ in range(_SLICE_MESSAGES):
        frames = socket.receive()
        if frames is None:
            return False, False
        try:
            answer = parse_replay(frames, limits.max_message_bytes)
        except DecodeError:
            history.malformed += 1
            continue
        if answer is None:
            history.complete = True
            return True, False
        if answer.seq not in history.batches:
            history.batches[answer.seq] = answer
            history.size_bytes += len(answer.payload)
        if len(history.batches) >= limits.max_batches or history.size_bytes >= limits.max_bytes:
            return True, False
        if time.monotonic() > until:
            break
    return False, True


def _is_lost(socket: ZmqSocket) -> bool:
    """Whether nothing listens there, or the connection broke and the request with it: no need to wait for the limit."""
    while (change := socket.receive_change()) is not None:
        if change in _LOST:
            return True
    return False
