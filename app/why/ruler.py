"""Where blocks end in the words of a prompt that somebody is typing. Imports only its own package.

Offsets count UTF-16 code units, as JavaScript's strings do.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def measure(
    pieces: Sequence[bytes], block_size: int, messages: Sequence[Mapping[str, Any]]
) -> tuple[list[MessageRuler], str]:
    """(a ruler for each message whose text stands in the prompt, the rendered prompt). `pieces`: bytes a token."""
    rendered = b"".join(pieces)
    text = rendered.decode("utf-8", "replace")
    ends: list[int] = []
    at = 0
    for piece in pieces:
        at += len(piece)
        ends.append(at)
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
    return rulers, text


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else message_text(message)


def _as_rendered(said: str) -> bytes:
    return unicodedata.normalize("NFC", said).strip().encode("utf-8", "replace")


def _ruler(
    index: int, message: Mapping[str, Any], said: str, wanted: bytes, place: int, ends: list[int], size: int
) -> MessageRuler:
    end = place + len(wanted)
    first = next(token for token, until in enumerate(ends) if until > place)
    last = next(token for token, until in enumerate(ends) if until >= end)
    lead = _units(said[: len(said) - len(said.lstrip())])
    boundaries = []
    for block in range(first // size, last // size + 1):
        token = (block + 1) * size - 1
        if token < len(ends) and place < ends[token] < end:
            within = wanted[: ends[token] - place].decode("utf-8", "ignore")
            boundaries.append((block, lead + _units(within)))
    return MessageRuler(
        index,
        str(message.get("role", "")),
        first,
        last + 1 - first,
        boundaries,
        wanted != said.encode("utf-8", "replace"),
    )


def _units(text: str) -> int:
    return len(text) + sum(1 for letter in text if ord(letter) > 0xFFFF)
