"""Steps over runs of events that say a plain token and nothing else, without parsing each of them.

The events of one stream differ in the text of their token only: what stands before and after it, they have in common
with the event before. Where the bytes are those of an event that was parsed, but for the inside of that one JSON
string, the event says what that one said. Everything else is left to the decoder. Imports nothing of the project.
"""

import re

import msgspec

MAX_LESSONS = 4
"""A stream whose events keep changing their shape is parsed, event by event."""
MAX_EXAMPLE_BYTES = 4 * 1024
"""An event that says a token has some hundred bytes; a long text isn't worth being looked at once more."""
RUN_EVENTS = 8
"""From about so many events on, a run is looked at as a whole."""

_MARKS = (b'"content":"', b'"content": "', b'"text":"', b'"text": "')
_TEXT = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrtu])++')


class PlainTokens:
    """`learn` an event's data that said a plain answer token, then `skip` what is like it."""

    __slots__ = ("_after", "_before", "_lessons", "_runs")

    def __init__(self) -> None:
        self._before = b""
        self._after = b""
        self._lessons = 0
        self._runs = True

    def learn(self, data: bytes) -> None:
        """Takes `data`, one line of JSON, as the example to compare with, where it is of a shape that can be."""
        if self._lessons >= MAX_LESSONS or len(data) > MAX_EXAMPLE_BYTES or self._is_alike(data):
            return
        self._lessons += 1
        for mark in _MARKS:
            start = data.find(mark)
            if start < 0 or data.find(mark, start + 1) >= 0:
                continue
            text = _TEXT.match(data, start + len(mark))
            if text is not None and data[text.end() : text.end() + 1] == b'"' and _is_string(text.group()):
                self._before = b"data: " + data[: text.start()]
                self._after = data[text.end() :] + b"\n\n"
                return

    @property
    def useful(self) -> bool:
        """Whether there is an example, or hope for one."""
        return bool(self._before) or self._lessons < MAX_LESSONS

    def skip(self, chunk: bytes, start: int = 0) -> tuple[int, int]:
        """How many events from `start` on, where an event has to start, are such, and where the last of them ends."""
        before, after = self._before, self._after
        events, end = 0, start
        if not before:
            return 0, start
        if self._runs and len(chunk) - start > RUN_EVENTS * (len(before) + len(after)):
            events, end = self._skip_run(chunk, start)
        match, startswith, length = _TEXT.match, chunk.startswith, len(before)
        while startswith(before, end):
            text = match(chunk, end + length)
            if text is None or not startswith(after, text.end()):
                break
            end = text.end() + len(after)
            events += 1
        return events, end

    def _skip_run(self, chunk: bytes, start: int) -> tuple[int, int]:
        """As `skip`, up to the last event of the kind: none, where anything else stands among them.

        Then it isn't tried again with this stream: each try looks at all of the chunk.
        """
        before, after = self._before, self._after
        end = chunk.rfind(after, start) + len(after)
        if end <= start + len(before) + len(after) or not chunk.startswith(before, start):
            return 0, start
        texts = chunk[start + len(before) : end - len(after)].split(after + before)
        # A blank between them keeps a backslash at the end of one from joining the start of the next.
        if b"" in texts or _TEXT.fullmatch(b" ".join(texts)) is None:
            self._runs = False
            return 0, start
        return len(texts), end

    def _is_alike(self, data: bytes) -> bool:
        before, after = self._before[6:], self._after[:-2]
        return before != b"" and data.startswith(before) and data.endswith(after)


def _is_string(inside: bytes) -> bool:
    try:
        msgspec.json.decode(b'"' + inside + b'"', type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
