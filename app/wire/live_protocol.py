"""Encodes dashboard events for websocket clients: `{v, seq, at_ms, server, rank, type, basis, data}`, one a message."""

import dataclasses
from collections.abc import Generator, Iterator

import msgspec

from ..events import PROTOCOL_VERSION, BlockColumns, Outgoing, Snapshot

_encoder = msgspec.json.Encoder()
APPEND = -1
"""The offset that means the end of a buffer."""


def encode_event(outgoing: Outgoing, seq: int) -> bytes:
    """The envelope as UTF-8 JSON. `seq` is the hub's number, from 1 within one run of the dashboard.

    NaN and infinities go out as null; hashes are text already.
    """
    return _enveloped(outgoing, seq, outgoing.event)


def _enveloped(outgoing: Outgoing, seq: int, data: object) -> bytes:
    return _encoder.encode(
        {
            "v": PROTOCOL_VERSION,
            "seq": seq,
            "at_ms": outgoing.at_ms,
            "server": outgoing.server,
            "rank": outgoing.rank,
            "type": outgoing.event.type,
            "basis": outgoing.basis,
            "data": data,
        }
    )


def snapshot_steps(snapshot: Snapshot, at_ms: float, seq: int) -> Generator[None, None, bytes]:
    """What `encode_event` makes of a snapshot, as a generator: a step takes a few milliseconds where the whole takes
    tens, so that whoever drives it can let others have their turns. The value comes last."""
    # One buffer for all: to allocate and to join megabytes costs as much as to encode them.
    buffer = bytearray(_enveloped(Outgoing(snapshot, at_ms), seq, None).removesuffix(b"null}"))
    for first, name in _numbered(snapshot):
        buffer += (b"{" if first else b",") + _encoder.encode(name) + b":"
        if name == "blocks":
            yield from _columns_steps(snapshot.blocks, buffer)
        else:
            _encoder.encode_into(getattr(snapshot, name), buffer, APPEND)
            yield
    buffer += b"}}"
    return bytes(buffer)


def _columns_steps(each: tuple[BlockColumns, ...], buffer: bytearray) -> Generator[None, None, None]:
    buffer += b"["
    for number, columns in enumerate(each):
        for first, name in _numbered(columns):
            start = b",{" if number else b"{"
            buffer += (start if first else b",") + _encoder.encode(name) + b":"
            value = getattr(columns, name)
            _encoder.encode_into(value, buffer, APPEND)
            if isinstance(value, tuple):
                yield
        buffer += b"}"
    buffer += b"]"


def _numbered(value: Snapshot | BlockColumns) -> Iterator[tuple[bool, str]]:
    """(whether it is the first, its name) for each field."""
    return ((number == 0, field.name) for number, field in enumerate(dataclasses.fields(value)))
