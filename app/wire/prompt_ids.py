"""Takes a long list of a prompt's token ids out of a stream's first event, piece by piece as it arrives.

Of a long prompt the list is megabytes, and reading it in one go would hold the event loop for as long as other streams
make several tokens in. A list that comes whole in one piece is left to whoever reads the event. Imports nothing of the
project.
"""

import re

import msgspec

_START = re.compile(rb'(?<!\\)"prompt_token_ids"[ \t]*:[ \t]*\[')
_decode = msgspec.json.Decoder(list[int]).decode


class PromptIds:
    """`feed` what the server sent, read on with what it returns: an empty list in place of a long one.

    `ids` is the list once all of it came. Where it isn't one of numbers, or is longer than `max_bytes`, what is
    returned isn't JSON: the event says nothing, as any other that is broken.
    """

    def __init__(self, max_bytes: int) -> None:
        self._left_bytes = max_bytes
        self.ids: tuple[int, ...] | None = None
        self._read: list[int] = []
        self._rest = b""
        self._inside = False

    def feed(self, data: bytes) -> bytes:
        """The next piece."""
        if self._inside:
            return self._take(data)
        if self.ids is None and (start := _START.search(data)) is not None and data.find(b"]", start.end()) < 0:
            self._inside = True
            return data[: start.end()] + self._take(data[start.end() :])
        return data

    def _take(self, data: bytes) -> bytes:
        end = data.find(b"]")
        numbers, self._rest = self._rest + (data if end < 0 else data[:end]), b""
        if end < 0:
            numbers, _, self._rest = numbers.rpartition(b",")
        self._left_bytes -= len(numbers)
        try:
            ids = _decode(b"[%b]" % numbers)
        except msgspec.DecodeError:
            ids = None
        if ids is None or self._left_bytes < 0:
            self._inside, self._read = False, []
            return b"!" + data
        self._read += ids
        if end < 0:
            return b""
        self._inside = False
        self.ids, self._read = tuple(self._read), []
        return data[end:]
