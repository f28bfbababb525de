"""The multipart messages of vLLM's KV-event sockets: which frame is which. No socket in here.

A live message is `[topic, sequence number, payload]`. A replay answer is the same behind an empty delimiter, without
the topic before vLLM 0.26, and the answers end with a sequence number of all ones and an empty payload.
Imports only `errors`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import DecodeError

SEQ_BYTES = 8
END_SEQ = 2**64 - 1
MAX_FRAMES = 6
MAX_TOPIC_BYTES = 4096
DEFAULT_MAX_PAYLOAD_BYTES = 64 * 1024 * 1024


class KvFrames(NamedTuple):
    """One numbered message; `payload` is MessagePack, not looked at yet."""

    topic: bytes
    seq: int
    payload: bytes


def parse_live(frames: Sequence[bytes], max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES) -> KvFrames:
    """A message of the PUB socket. Raises DecodeError for anything that isn't a numbered message with a payload."""
    parsed = _last_two(frames, max_payload_bytes)
    if not parsed.payload or parsed.seq == END_SEQ:
        raise DecodeError("A live message without number or payload.")
    return parsed


def parse_replay(frames: Sequence[bytes], max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES) -> KvFrames | None:
    """An answer of the replay socket; None is the end marker. Raises DecodeError for anything else."""
    parsed = _last_two(frames, max_payload_bytes)
    return None if not parsed.payload or parsed.seq == END_SEQ else parsed


def replay_request(start_seq: int) -> list[bytes]:
    """What a DEALER socket sends to get all batches from `start_seq` on: the empty delimiter, then the number."""
    return [b"", start_seq.to_bytes(SEQ_BYTES, "big")]


def _last_two(frames: Sequence[bytes], max_payload_bytes: int) -> KvFrames:
    if not 2 <= len(frames) <= MAX_FRAMES:
        raise DecodeError(f"A KV-event message has 2 to {MAX_FRAMES} frames, not {len(frames)}.")
    seq, payload = frames[-2], frames[-1]
    if len(seq) != SEQ_BYTES:
        raise DecodeError(f"A sequence number has {SEQ_BYTES} bytes, not {len(seq)}.")
    if len(payload) > max_payload_bytes:
        raise DecodeError(f"A payload of {len(payload)} bytes; the limit is {max_payload_bytes}.")
    topic = frames[-3] if len(frames) > 2 else b""
    if len(topic) > MAX_TOPIC_BYTES:
        raise DecodeError(f"A topic of {len(topic)} bytes; the limit is {MAX_TOPIC_BYTES}.")
    return KvFrames(topic, int.from_bytes(seq, "big"), payload)
