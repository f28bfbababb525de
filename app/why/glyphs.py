"""Tokens as a person reads them: a glyph that spans tokens is one group, and nothing becomes U+FFFD.

A server's `/tokenize` gives its vocabulary's own strings: byte-level ones (one printable character a byte, `Ġ` for a
space) or SentencePiece's (`▁` for a space, `<0xEA>` for a byte). Both become bytes here. Imports nothing of the app.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

_PIECE_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "\u2581"
_JOINER = "\u200d"
_MODIFIERS = range(0x1F3FB, 0x1F400)
MAX_GROUP_TOKENS = 64


def _byte_level() -> dict[str, int]:
    """Printable character to byte, as GPT-2 chose them: printable Latin-1 is itself, the rest from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_BYTES = _byte_level()
_LATIN = str.maketrans({character: chr(byte) for character, byte in _BYTES.items()})
"""Turns a byte-level string into one whose code points are its bytes."""


@dataclass(frozen=True, slots=True)
class TokenGroup:
    """Tokens `start` to `start + count` (from 0), whose bytes are whole glyphs together.

    text: what they stand for; bytes that are no text, as at a cut edge, stand as ⟨EA B9⟩.
    cells: the text of each token, where there are several: a part of a glyph as its bytes.
    """

    start: int
    count: int
    text: str
    cells: tuple[str, ...] = ()


def token_bytes(strings: Sequence[str]) -> list[bytes]:
    """What each of a vocabulary's strings stands for."""
    joined = "".join(strings)
    if _SPACE in joined or ("<0x" in joined and any(_PIECE_BYTE.fullmatch(string) for string in strings)):
        return [_piece_bytes(string) for string in strings]
    if _BYTES.keys() >= set(joined):
        # A character is a byte: all of them at once, for prompts of a megabyte.
        raw = joined.translate(_LATIN).encode("latin-1")
        ends = list(accumulate(map(len, strings)))
        return [raw[end - len(string) : end] for string, end in zip(strings, ends, strict=True)]
    # Added tokens stand as they are, among byte-level ones.
    return [_mixed_bytes(string) for string in strings]


def _piece_bytes(string: str) -> bytes:
    single = _PIECE_BYTE.fullmatch(string)
    if single:
        return bytes([int(single[1], 16)])
    return string.replace(_SPACE, " ").encode("utf-8", "surrogatepass")


def _mixed_bytes(string: str) -> bytes:
    if _BYTES.keys() >= set(string):
        return string.translate(_LATIN).encode("latin-1")
    return string.encode("utf-8", "surrogatepass")


def group_tokens(pieces: Sequence[bytes], start: int = 0) -> list[TokenGroup]:
    """Groups of tokens with whole glyphs; `start` is the number of the first token."""
    groups: list[TokenGroup] = []
    first, buffer = 0, b""
    for index, piece in enumerate(pieces):
        buffer += piece
        text, complete = _decoded(buffer)
        if complete or index + 1 - first >= MAX_GROUP_TOKENS:
            groups.append(_group(pieces[first : index + 1], start + first, text if text is not None else _hex(buffer)))
            first, buffer = index + 1, b""
    if first < len(pieces):
        groups.append(_group(pieces[first:], start + first, _hex(buffer)))
    return _merged(groups)


def _decoded(buffer: bytes) -> tuple[str | None, bool]:
    """(text, whether the bytes end where a character does); no text for bytes that can never become any."""
    try:
        return buffer.decode(), True
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return None, False
        return _readable(buffer), True


def _readable(buffer: bytes) -> str:
    """Text with what is none as ⟨80⟩: a cut edge, or bytes of an answer that never was text."""
    return "".join(
        f"⟨{ord(letter) - 0xDC00:02X}⟩" if 0xDC80 <= ord(letter) <= 0xDCFF else letter
        for letter in buffer.decode("utf-8", "surrogateescape")
    )


def _hex(buffer: bytes) -> str:
    return "⟨" + " ".join(f"{byte:02X}" for byte in buffer) + "⟩" if buffer else ""


def _group(pieces: Sequence[bytes], start: int, text: str) -> TokenGroup:
    cells = tuple(_cell(piece) for piece in pieces) if len(pieces) > 1 else ()
    return TokenGroup(start, len(pieces), text, cells)


def _cell(piece: bytes) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return _hex(piece)


def _merged(groups: list[TokenGroup]) -> list[TokenGroup]:
    """What continues a glyph (accents, joined emoji, skin tones) goes to the group that it continues."""
    merged: list[TokenGroup] = []
    for group in groups:
        last = merged[-1] if merged else None
        if last is None or not _continues(last.text, group.text) or last.count + group.count > MAX_GROUP_TOKENS:
            merged.append(group)
            continue
        cells = (*(last.cells or (last.text,)), *(group.cells or (group.text,)))
        merged[-1] = TokenGroup(last.start, last.count + group.count, last.text + group.text, cells)
    return merged


def _continues(before: str, after: str) -> bool:
    if not before or not after:
        return False
    first = after[0]
    if before[-1] == _JOINER or first == _JOINER or ord(first) in _MODIFIERS:
        return True
    return not before[-1].isspace() and unicodedata.category(first) in ("Mn", "Me", "Mc")
