"""A decoder of server-sent events, on bytes, for any chunking. Follows the event stream rules of the HTML standard.

Lines end at LF, CR or CRLF and at nothing else: U+2028, U+0085 or a form feed inside JSON text is content, so the
stream is never decoded to text here. Where CRLF is split over two reads, the event is given out at the CR already.
Imports nothing of the project.
"""

import msgspec

_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One dispatched event: the joined `data` lines, and the `event` field (b"" where it has none)."""

    data: bytes
    name: bytes = b""


class SseDecoder:
    """`feed` chunks, take events, `flush` at the end of the stream.

    Holds at most `max_line_bytes` of an event that isn't complete. A longer one ends the decoding: `gave_up` is True
    from then on, and `feed` gives nothing more. It never raises.
    """

    __slots__ = (
        "_data",
        "_held",
        "_name",
        "_partial",
        "_skip_lf",
        "_started",
        "between_events",
        "gave_up",
        "max_line_bytes",
    )

    def __init__(self, max_line_bytes: int) -> None:
        self.max_line_bytes = max_line_bytes
        self.gave_up = False
        self._partial = bytearray()
        self._data: list[bytes] = []
        self._held = 0
        self._name = b""
        self._skip_lf = False
        self._started = False
        self.between_events = False
        """Nothing is held, and the stream's first line is over: the next chunk starts with an event."""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that `chunk` completes, in order."""
        if (
            self.between_events
            and chunk[:6] == b"data: "
            and chunk[-2:] == b"\n\n"
            and b"\r" not in chunk
            and len(chunk) <= self.max_line_bytes
        ):  # What servers send nearly always: whole events of one data line each.
            if chunk.find(b"\n") == len(chunk) - 2:
                return [SseEvent(chunk[6:-2])]
            bodies = chunk[6:-2].split(b"\n\ndata: ")
            if b"\n" not in b"".join(bodies):
                return [SseEvent(body) for body in bodies]
        events = self._feed_lines(chunk)
        self.between_events = self._started and not (
            self._partial or self._data or self._name or self._skip_lf or self.gave_up
        )
        return events

    def flush(self) -> list[SseEvent]:
        """The event that the end of the stream left without its blank line, if any. The decoder is then used up."""
        events: list[SseEvent] = []
        if not self.gave_up:
            if self._partial:
                self._take_line(bytes(self._partial), events)
                self._partial.clear()
            self._take_line(b"", events)
        return events

    def _feed_lines(self, chunk: bytes) -> list[SseEvent]:
        if self.gave_up or not chunk:
            return []
        if self._skip_lf:
            self._skip_lf = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._skip_lf = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        events: list[SseEvent] = []
        for line in lines:
            if self._partial:
                self._partial += line
                line = bytes(self._partial)
                self._partial.clear()
            if self._too_long(self._held + len(line)):
                return events
            self._take_line(line, events)
        self._partial += rest
        self._too_long(self._held + len(self._partial))
        return events

    def _take_line(self, line: bytes, events: list[SseEvent]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append(SseEvent(b"\n".join(self._data), self._name))
                self._data.clear()
                self._held = 0
            self._name = b""
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._held += len(value) + 1  # With the LF that joins it: lines without content fill memory too.
        elif field == b"event":
            self._name = value.removeprefix(b" ")

    def _too_long(self, size: int) -> bool:
        if size <= self.max_line_bytes:
            return False
        self.gave_up = True
        self._partial.clear()
        self._data.clear()
        return True
