"""Where blocks end in the words of a prompt that somebody is typing. Imports only its own package.

Offsets count UTF-16 code units, as JavaScript's strings do.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from .sections import message_text


@dataclass(frozen=True, slots=True)
class MessageRuler:
    """The blocks that end within one message: [block (from 0), offset in the message's text] of each.

    start_token: the first token that has a part of the message. tokens: how many have one. normalised: the template
    changed the text (Unicode form, outer white space), so that offsets may be a little off.
    """

    index: int
    role: str
    start_token: int
    tokens: int
    boundaries: list[tuple[int, int]]
    normalised: bool


def measure(pieces: Sequence[bytes], block_size: int, messages: Sequence[Mapping[str, Any]]) -> list[MessageRuler]:
    """A ruler for each message whose text stands in the prompt. `pieces`: the prompt's bytes, token by token.

    Takes time in proportion to the prompt; a megabyte is a fraction of a second, which belongs off an event loop.
    """
    rendered = b"".join(pieces)
    ends = list(accumulate(map(len, pieces)))
    rulers: list[MessageRuler] = []
    cursor = 0
    for index, message in enumerate(messages):
        said = _text(message)
        wanted = _as_rendered(said)
        place = rendered.find(wanted, cursor) if wanted else -1
        if place < 0:
            continue
        cursor = place + len(wanted)
        rulers.append(_ruler(index, message, said, wanted, place, ends, block_size))
    return rulers


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else message_text(message)


def _as_rendered(said: str) -> bytes:
    return unicodedata.normalize("NFC", said).strip().encode("utf-8", "replace")


def _ruler(
    index: int, message: Mapping[str, Any], said: str, wanted: bytes, place: int, ends: list[int], size: int
) -> MessageRuler:
    end = place + len(wanted)
    first, last = bisect_right(ends, place), bisect_left(ends, end)
    offset = _units(said[: len(said) - len(said.lstrip())])
    boundaries: list[tuple[int, int]] = []
    at = 0
    for block in range(first // size, last // size + 1):
        token = (block + 1) * size - 1
        if token < len(ends) and place < ends[token] < end:
            border = _glyph_start(wanted, ends[token] - place)
            offset += _units(wanted[at:border].decode("utf-8", "replace"))
            at = border
            boundaries.append((block, offset))
    return MessageRuler(
        index,
        str(message.get("role", "")),
        first,
        last + 1 - first,
        boundaries,
        wanted != said.encode("utf-8", "replace"),
    )


def _glyph_start(text: bytes, at: int) -> int:
    """A token may end within a character, which then counts for the block behind."""
    while at and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
