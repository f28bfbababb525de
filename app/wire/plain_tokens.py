"""Steps over runs of events that say a plain token and nothing else, without parsing each of them.

The events of one stream differ in the text of their token only: what stands before and after it, they have in common
with the event before. Where the bytes are those of an event that was parsed, but for the inside of that one JSON
string, the event says what that one said. Everything else is left to the decoder. Imports nothing of the project.
"""

import re

import msgspec

MAX_LESSONS = 4
"""A stream whose events keep changing their shape is parsed, event by event."""

_MARKS = (b'"content":"', b'"content": "', b'"text":"', b'"text": "')
_TEXT = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrtu])++')


class PlainTokens:
    """`learn` an event's data that said a plain answer token, then `skip` what is like it."""

    __slots__ = ("_after", "_before", "_lessons")

    def __init__(self) -> None:
        self._before = b""
        self._after = b""
        self._lessons = 0

    def learn(self, data: bytes) -> None:
        """Takes `data`, one line of JSON, as the example to compare with, where it is of a shape that can be."""
        if self._lessons >= MAX_LESSONS or self._is_alike(data):
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
        match, startswith, length = _TEXT.match, chunk.startswith, len(before)
        while startswith(before, end):
            text = match(chunk, end + length)
            if text is None or not startswith(after, text.end()):
                break
            end = text.end() + len(after)
            events += 1
        return events, end

    def _is_alike(self, data: bytes) -> bool:
        before, after = self._before[6:], self._after[:-2]
        return before != b"" and data.startswith(before) and data.endswith(after)


def _is_string(inside: bytes) -> bool:
    try:
        msgspec.json.decode(b'"' + inside + b'"', type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
