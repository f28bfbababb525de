"""WebSocket text frames as a server sends them (RFC 6455): unmasked and uncompressed, so the same for every client."""

import struct
from collections.abc import Iterable

_FINAL_TEXT = 0x81


def text_frame(payload: bytes) -> bytes:
    """One unfragmented text frame; `payload` is UTF-8."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", _FINAL_TEXT, size) + payload
    if size < 1 << 16:
        return struct.pack("!BBH", _FINAL_TEXT, 126, size) + payload
    return struct.pack("!BBQ", _FINAL_TEXT, 127, size) + payload


def text_frames(payloads: Iterable[bytes]) -> bytes:
    """Several frames, one behind the other."""
    return b"".join(map(text_frame, payloads))
