"""What a sequence number means for a stream: the next, one from ahead, one that is known, or another process's.

Pure. It remembers a fingerprint of recent payloads, because a number that was seen before is a duplicate only if it
carries the same bytes; otherwise the publisher was restarted and counts anew.
"""

from typing import Literal

Verdict = Literal["next", "ahead", "known", "restarted"]
REMEMBERED = 16_384
"""Payloads of which the fingerprint is kept; more than a publisher's default replay buffer holds."""


class KvSequence:
    """The position in one publisher's sequence. `next_seq` is None before anything is known."""

    def __init__(self) -> None:
        self.next_seq: int | None = None
        self._prints: dict[int, int] = {}

    def judge(self, seq: int, payload: bytes) -> Verdict:
        """What `seq` is, without taking it."""
        expected = self.next_seq or 0
        if seq == expected:
            return "next"
        if seq > expected:
            return "ahead"
        return "known" if self._prints.get(seq) == hash(payload) else "restarted"

    def take(self, seq: int, payload: bytes) -> None:
        """`seq` was handed on; the next one follows it."""
        self.next_seq = seq + 1
        self._prints[seq] = hash(payload)
        if len(self._prints) > REMEMBERED:
            del self._prints[next(iter(self._prints))]

    def knows(self, seq: int, payload: bytes) -> bool:
        """Whether exactly this message was taken, lately."""
        return self._prints.get(seq) == hash(payload)

    def restart(self) -> None:
        """Another process publishes now, from 0 on."""
        self.next_seq = 0
        self._prints.clear()
