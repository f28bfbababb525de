"""From bytes to plain values with bounded memory: the hostile half of decoding KV events.

A MessagePack byte can stand for an empty map of 64 bytes, so a payload is let into plain values whole only up to
`WHOLE_BYTES`; beyond it events are cut out first and decoded one by one, which also lets the event loop breathe. Each
field of an event beyond `PLAIN_BYTES` is cut out, too, and its size and shape checked.
Depth is bounded by the decoder's own recursion guard. Imports only `errors`.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec

from ..errors import DecodeError

WHOLE_BYTES = 128 * 1024
PLAIN_BYTES = 1024 * 1024
MAX_EVENTS = 200_000
"""Events in one batch."""
MAX_ITEMS = 4_000_000
"""Token ids or hashes in one event."""

_plain = msgspec.msgpack.Decoder()
_raw_list = msgspec.msgpack.Decoder(Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MAX_EVENTS)])
_raw_map = msgspec.msgpack.Decoder(Annotated[dict[str, msgspec.Raw], msgspec.Meta(max_length=MAX_EVENTS)])
_numbers = msgspec.msgpack.Decoder(Annotated[list[int | bytes], msgspec.Meta(max_length=MAX_ITEMS)])

_FOREIGN_ERRORS = (msgspec.MsgspecError, RecursionError, MemoryError, TypeError, ValueError, OverflowError)


def split_batch(payload: bytes, max_payload_bytes: int) -> tuple[float, Iterable[Any], int | None]:
    """`(ts, events, data_parallel_rank)`, the events as plain values: in a large payload one by one as they are taken,
    with None for one that can't be read. Raises DecodeError, and nothing else, before the first event is taken."""
    if len(payload) > max_payload_bytes:
        raise DecodeError(f"A payload of {len(payload)} bytes; the limit is {max_payload_bytes}.")
    try:
        batch = _plain.decode(payload) if len(payload) <= WHOLE_BYTES else _large_batch(payload)
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
    taken = events if len(payload) <= WHOLE_BYTES else _one_by_one(events)
    return float(ts), taken, rank if type(rank) is int else None


def _large_batch(payload: bytes) -> Any:
    """The batch as `_plain` would give it, but for parts that are too large to be what they should be: None."""
    if _is_map(payload):
        fields = _raw_map.decode(payload)
        return {name: _large_events(raw) if name == "events" else _small(raw) for name, raw in fields.items()}
    return [_large_events(raw) if index == 1 else _small(raw) for index, raw in enumerate(_raw_list.decode(payload))]


def _large_events(raw: msgspec.Raw) -> list[msgspec.Raw]:
    return _raw_list.decode(raw)


def _one_by_one(events: list[msgspec.Raw]) -> Iterator[Any]:
    for raw in events:
        try:
            event = _large_event(raw)
        except _FOREIGN_ERRORS:
            event = None
        yield event


def _large_event(raw: msgspec.Raw) -> Any:
    if len(bytes(raw)) <= PLAIN_BYTES:
        return _plain.decode(raw)
    if _is_map(raw):
        return {name: _large_field(field) for name, field in _raw_map.decode(raw).items()}
    return [_large_field(field) for field in _raw_list.decode(raw)]


def _large_field(raw: msgspec.Raw) -> Any:
    return _plain.decode(raw) if len(bytes(raw)) <= PLAIN_BYTES else _numbers.decode(raw)


def _small(raw: msgspec.Raw) -> Any:
    return _plain.decode(raw) if len(bytes(raw)) <= PLAIN_BYTES else None


def _is_map(data: bytes | msgspec.Raw) -> bool:
    first = memoryview(data)[0]
    return 0x80 <= first <= 0x8F or first in (0xDE, 0xDF)
