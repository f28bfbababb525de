"""Encodes dashboard events for websocket clients: `{v, seq, at_ms, server, rank, type, basis, data}`, one a message."""

import msgspec

from ..events import PROTOCOL_VERSION, Outgoing

_encoder = msgspec.json.Encoder()


def encode_event(outgoing: Outgoing, seq: int) -> bytes:
    """The envelope as UTF-8 JSON. `seq` is the hub's number, from 1 within one run of the dashboard.

    NaN and infinities go out as null; hashes are text already.
    """
    return _encoder.encode(
        {
            "v": PROTOCOL_VERSION,
            "seq": seq,
            "at_ms": outgoing.at_ms,
            "server": outgoing.server,
            "rank": outgoing.rank,
            "type": outgoing.event.type,
            "basis": outgoing.basis,
            "data": outgoing.event,
        }
    )
