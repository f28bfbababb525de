"""From bytes to plain values with bounded memory: the hostile half of decoding KV events.

A MessagePack byte can stand for an empty map of 64 bytes, so a payload is let into plain values whole only up to
`WHOLE_BYTES`; in a larger one the ends of events are found first, and they are decoded one by one. In an event beyond
`WHOLE_BYTES` each field is decoded by itself: token ids stay in their bytes as a `NumberList`, anything else beyond
`PLAIN_BYTES` has to be a flat list. All of this goes in steps, so that the event loop can breathe.
Depth is bounded by the decoder's own recursion guard. Imports only `errors` and `msgpack_walk`.
"""

from collections.abc import Generator, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from ..errors import DecodeError
from .msgpack_walk import NumberList, array_head, end_of, map_head, number_list

WHOLE_BYTES = 128 * 1024
PLAIN_BYTES = 1024 * 1024
MAX_EVENTS = 200_000
"""Events in one batch."""
MAX_ITEMS = 4_000_000
"""Hashes in one event, and other fields' items."""
FEW_TOKENS = 16_384
KEYS_AT_ONCE = 512
MAX_FIELDS = 64
"""Fields of a batch, and of a large event."""
TOKENS_FIELD, KEYS_FIELD = ("token_ids", 3), ("extra_keys", 8)
"""Of an event: the name in a map, the place in an array."""

_plain = msgspec.msgpack.Decoder()
_flat = msgspec.msgpack.Decoder(Annotated[list[int | bytes | None], msgspec.Meta(max_length=MAX_ITEMS)])

_FOREIGN_ERRORS = (msgspec.MsgspecError, RecursionError, MemoryError, TypeError, ValueError, OverflowError)


class Span(NamedTuple):
    """Where one value lies in a payload: from byte `start` up to `end`, which isn't included."""

    start: int
    end: int


class SplitBatch(NamedTuple):
    """A batch with its events apart: plain values, or in a large payload where they lie (see `read_event`)."""

    ts: float
    events: Sequence[Any]
    data_parallel_rank: int | None
    is_large: bool


def split_batch(payload: bytes, max_payload_bytes: int) -> Generator[None, None, SplitBatch]:
    """The batch, in steps. Raises DecodeError, and nothing else, where there is none."""
    if len(payload) > max_payload_bytes:
        raise DecodeError(f"A payload of {len(payload)} bytes; the limit is {max_payload_bytes}.")
    is_large = len(payload) > WHOLE_BYTES
    try:
        batch = (yield from _large_batch(payload)) if is_large else _plain.decode(payload)
    except _FOREIGN_ERRORS as error:
        raise DecodeError(f"Not MessagePack of KV events: {str(error)[:200]}") from None
    if isinstance(batch, dict):
        ts, events, rank = batch.get("ts"), batch.get("events"), batch.get("data_parallel_rank")
    elif isinstance(batch, list) and len(batch) >= 2:
        ts, events, rank = batch[0], batch[1], batch[2] if len(batch) > 2 else None
    else:
        raise DecodeError("Not a batch of KV events: neither an array of two or more nor a map.")
    if not isinstance(ts, int | float) or not isinstance(events, list):
        raise DecodeError("Not a batch of KV events: no time or no list of events.")
    if len(events) > MAX_EVENTS:
        raise DecodeError(f"A batch of {len(events)} events; the limit is {MAX_EVENTS}.")
    return SplitBatch(float(ts), events, rank if type(rank) is int else None, is_large)


def read_event(payload: bytes, span: Span) -> Generator[None, None, Any]:
    """The event at `span`, in steps: its plain value, but for token ids where they are many (`NumberList`). None where
    it can't be read."""
    try:
        if span.end - span.start <= WHOLE_BYTES:
            return _plain.decode(payload[span.start : span.end])
        return (yield from _fields(payload, span.start))
    except _FOREIGN_ERRORS:
        return None


def _large_batch(payload: bytes) -> Generator[None, None, Any]:
    """The batch as `_plain` would give it, but for its events: their spans."""
    head = map_head(payload, 0)
    values: dict[Any, Any] = {}
    count, pos = head or array_head(payload, 0) or (0, 0)
    _check_fields(count)
    for index in range(count):
        name: Any = index
        if head is not None:
            name, pos = yield from _value(payload, pos)
        if name == ("events" if head is not None else 1):
            values[name], pos = yield from _event_spans(payload, pos)
        else:
            values[name], pos = yield from _value(payload, pos)
    if pos != len(payload):
        raise ValueError("there is more behind it")
    return values if head is not None else list(values.values())


def _event_spans(payload: bytes, pos: int) -> Generator[None, None, tuple[list[Span] | None, int]]:
    """Where the events lie, and where their list ends."""
    head = array_head(payload, pos)
    if head is None or head[0] > MAX_EVENTS:
        return None, (yield from end_of(payload, pos))
    count, pos = head
    spans = []
    for number in range(count):
        end = yield from end_of(payload, pos)
        spans.append(Span(pos, end))
        pos = end
        if number % 64 == 0:
            yield
    return spans, pos


def _fields(payload: bytes, pos: int) -> Generator[None, None, Any]:
    """A large event's fields, by name or in order."""
    head = map_head(payload, pos)
    named = head is not None
    values: dict[Any, Any] = {}
    count, pos = head or array_head(payload, pos) or (0, pos)
    _check_fields(count)
    for index in range(count):
        name: Any = index
        if named:
            name, pos = yield from _value(payload, pos)
        if name == TOKENS_FIELD[not named]:
            values[name], pos = yield from _tokens(payload, pos)
        elif name == KEYS_FIELD[not named]:
            values[name], pos = yield from _keys(payload, pos)
        else:
            values[name], pos = yield from _value(payload, pos)
    return values if named else list(values.values())


def _tokens(payload: bytes, pos: int) -> Generator[None, None, tuple[NumberList | Any, int]]:
    head = array_head(payload, pos)
    if head is not None and head[0] > FEW_TOKENS:
        many = yield from number_list(payload, pos)
        return many, many.end if many is not None else (yield from end_of(payload, pos))
    return (yield from _value(payload, pos))


def _keys(payload: bytes, pos: int) -> Generator[None, None, tuple[Any, int]]:
    """Extra keys, some blocks' at a time."""
    end = yield from end_of(payload, pos)
    head = array_head(payload, pos)
    if end - pos <= PLAIN_BYTES or head is None or head[0] > MAX_ITEMS // 4:
        return _plain.decode(payload[pos:end]) if end - pos <= PLAIN_BYTES else None, end
    count, pos = head
    keys: list[Any] = []
    for first in range(0, count, KEYS_AT_ONCE):
        few = min(KEYS_AT_ONCE, count - first)
        start = pos
        for _ in range(few):
            pos = yield from end_of(payload, pos)
        if pos - start > WHOLE_BYTES:
            raise ValueError("extra keys that are none")
        keys += _plain.decode(b"\xdc" + few.to_bytes(2, "big") + payload[start:pos])
        yield
    return keys, pos


def _value(payload: bytes, pos: int) -> Generator[None, None, tuple[Any, int]]:
    """The value at `pos` and where it ends. Raises for one that is large and no flat list."""
    end = yield from end_of(payload, pos)
    decoder = _plain if end - pos <= PLAIN_BYTES else _flat
    return decoder.decode(payload[pos:end]), end


def _check_fields(count: int) -> None:
    if count > MAX_FIELDS:
        raise ValueError(f"{count} fields; the limit is {MAX_FIELDS}")
