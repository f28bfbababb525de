"""Takes a long list of a prompt's token ids out of a response, piece by piece as it arrives.

Of a long prompt the list is megabytes, and reading it in one go would hold the event loop for as long as other streams
make several tokens in. A list that comes whole in one piece is left to whoever reads the event. Imports only
`packed_ids`.
"""

import re

import msgspec

from .packed_ids import pack_ids

_NAME = b'"prompt_token_ids"'
_START = re.compile(rb'"prompt_token_ids"[ \t]*:[ \t]*\[')
_SPLIT = re.compile(rb'"prompt_token_ids"[ \t]*:?[ \t]*\Z')
_MOST_SPLIT = 64
"""Bytes at the end of a piece in which the list's name may have begun."""
_decode = msgspec.json.Decoder(list[int]).decode


class PromptIds:
    """`feed` what the server sent, read on with what it returns: an empty list in place of a long one; `flush` at the
    end.

    `packed` is the list (`pack_ids`) once all of it came. Where it isn't one of ids, or is longer than `max_bytes`,
    what is returned isn't JSON: the event says nothing, as any other that is broken.
    """

    def __init__(self, max_bytes: int) -> None:
        self._left_bytes = max_bytes
        self.packed: bytes | None = None
        self._read: list[bytes] = []
        self._rest = b""
        """Of a number inside the list, else of its name before it."""
        self._inside = False

    def feed(self, data: bytes) -> bytes:
        """The next piece."""
        if self._inside:
            return self._take(data)
        if self.packed is not None:
            return data
        if self._rest:
            data, self._rest = self._rest + data, b""
        start = _list_start(data)
        if start >= 0:
            if data.find(b"]", start) < 0:
                self._inside = True
                return data[:start] + self._take(data[start:])
            return data
        split = _split_at(data)
        self._rest = data[split:]
        return data[:split]

    def flush(self) -> bytes:
        """What was held back; nothing more comes."""
        rest, self._rest = self._rest, b""
        return rest

    def _take(self, data: bytes) -> bytes:
        end = data.find(b"]")
        numbers, self._rest = self._rest + (data if end < 0 else data[:end]), b""
        if end < 0:
            numbers, _, self._rest = numbers.rpartition(b",")
        self._left_bytes -= len(numbers)
        try:
            packed = pack_ids(_decode(b"[%b]" % numbers))
        except msgspec.DecodeError:
            packed = None
        if packed is None or self._left_bytes < 0:
            self._inside, self._read, self._rest = False, [], b""
            return b"!" + data
        self._read.append(packed)
        if end < 0:
            return b""
        self._inside = False
        self.packed, self._read = b"".join(self._read), []
        return data[end:]


def _list_start(data: bytes) -> int:
    """Where the first list begins, behind its bracket; -1 where there is none.

    Every first piece of every stream is looked through: the name is found as bytes, the expression looks at it alone.
    """
    at = data.find(_NAME)
    while at >= 0:
        start = _START.match(data, at)
        # An escaped quote stands in a text.
        if start is not None and data[at - 1 : at] != b"\\":
            return start.end()
        at = data.find(_NAME, at + 1)
    return -1


def _split_at(data: bytes) -> int:
    """Where the name of a list begins that may go on in the next piece; else the end."""
    if data[-1:] in b"}\n":  # As nearly every piece ends.
        return len(data)
    tail = data[-_MOST_SPLIT:]
    if (name := _SPLIT.search(tail)) is not None:
        return len(data) - len(tail) + name.start()
    begun = tail.rfind(b'"')
    if begun >= 0 and _NAME.startswith(tail[begun:]):
        return len(data) - len(tail) + begun
    return len(data)
