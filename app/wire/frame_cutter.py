"""Takes the one frame out of a stream that the client didn't ask for: the usage frame that `enrich` mode asked for.

Holds back at most the event that isn't complete, and forwards everything on any doubt: an event with other lines than
`data`, an event too long to be a usage frame, one that isn't JSON or whose `choices` aren't empty. What stays is
forwarded byte for byte. Imports nothing of the project.
"""

import re
from typing import Any

import msgspec

MAX_FRAME_BYTES = 64 * 1024
"""A usage frame has some hundred bytes; a longer event is forwarded as it comes."""

_EVENT_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")


class _Frame(msgspec.Struct):
    choices: list[msgspec.Raw] | None = None
    usage: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Frame).decode


class UsageFrameCutter:
    """`feed` what the server sent, forward what it returns, and `flush` at the end. `cut` counts the frames removed."""

    def __init__(self) -> None:
        self.cut = 0
        self._held = b""
        self._searched = 0
        self._passing = False
        self._after_cr: bool | None = None

    def feed(self, chunk: bytes) -> bytes:
        """What may be forwarded now: complete events, without the usage frame."""
        forward: list[bytes] = []
        if self._after_cr is not None and chunk:
            # The LF of a CRLF that was split after its CR belongs to the event before.
            if chunk[:1] == b"\n":
                if self._after_cr:
                    forward.append(b"\n")
                chunk = chunk[1:]
            self._after_cr = None
        held = self._held + chunk if self._held else chunk
        start = 0
        while (end := _EVENT_END.search(held, max(start, self._searched))) is not None:
            event = held[start : end.end()]
            keep = self._passing or not _is_usage_frame(event)
            if not keep:
                self.cut += 1
                forward.append(event[: len(event) - len(event.lstrip(b"\r\n"))])
            else:
                forward.append(event)
            self._passing = False
            self._searched = 0
            start = end.end()
            self._after_cr = keep if start == len(held) and event.endswith(b"\r") else None
        self._hold(held[start:], forward)
        return b"".join(forward)

    def flush(self) -> bytes:
        """What was held back; the stream is over."""
        rest, self._held = self._held, b""
        return rest

    def _hold(self, rest: bytes, forward: list[bytes]) -> None:
        if self._passing or len(rest) > MAX_FRAME_BYTES:
            # Two bytes stay, so that an event's end that is split over two reads is still seen.
            self._passing = True
            forward.append(rest[:-2])
            rest = rest[-2:]
        self._held = rest
        self._searched = max(0, len(rest) - 3)


def _is_usage_frame(event: bytes) -> bool:
    if b'"usage"' not in event or len(event) > MAX_FRAME_BYTES:
        return False
    lines = [line for line in _LINE_END.split(event) if line]
    if not all(line.startswith(b"data:") for line in lines):
        return False
    try:
        frame = _decode(b"\n".join(line[5:].removeprefix(b" ") for line in lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return frame.choices == [] and frame.usage is not None
