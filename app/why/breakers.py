"""What keeps two requests from sharing a prefix that they should have shared: known breakers, by pattern and by name.

Two requests are compared text by text from the front. At the first difference the whole text tells of reorderings and
of what can't be seen (spaces, Unicode forms); else the span that changed is named by what it looks like and by the
words before it. A difference behind which nothing is the same again is no breaker: the prompts are just different.
Imports only its own package.
"""

from dataclasses import dataclass

from .common_text import common_end, common_start, meeting
from .hidden_differences import hidden_difference
from .request_text import Body, Piece, Span, pieces_of
from .sections import find_sections, section_at
from .span_names import CONTEXT_CHARS, BreakerKind, name_span, pattern_around, to_word_end, word_start


@dataclass(frozen=True, slots=True)
class Breaker:
    """What differs between an earlier and a later request. `constant_chars`: how much after it is the same again."""

    kind: BreakerKind
    place: str
    index: int | None
    before: Span
    after: Span
    constant_chars: int


def find_breaker(before: Body, after: Body) -> Breaker | None:
    """The first thing that keeps `after` from sharing all it could with `before`; None where nothing does."""
    left, right = pieces_of(before), pieces_of(after)
    for number, (one, other) in enumerate(zip(left, right, strict=False)):
        if one == other:
            continue
        if one.place != other.place or one.role != other.role:
            return _inserted_thinking(left, right, number) or _shuffled_messages(left, right, number)
        whole = hidden_difference(one, other)
        if whole is not None:
            return _of_pieces(whole, one, other, number, left, right)
        if one.place == "message" and _is_shuffled_messages(left, right, number):
            return _of_pieces("shuffled_examples", one, other, number, left, right)
        return _span(one, other, number, left, right)
    return None


def _is_shuffled_messages(left: list[Piece], right: list[Piece], number: int) -> bool:
    """Whether the messages before the last are the same ones in another order."""
    mine = sorted((piece.role or "", piece.text) for piece in left[number:-1])
    theirs = sorted((piece.role or "", piece.text) for piece in right[number:-1])
    return len(mine) > 1 and mine == theirs


def _shuffled_messages(left: list[Piece], right: list[Piece], number: int) -> Breaker | None:
    if not _is_shuffled_messages(left, right, number):
        return None
    return _of_pieces("shuffled_examples", left[number], right[number], number, left, right)


def _inserted_thinking(left: list[Piece], right: list[Piece], number: int) -> Breaker | None:
    """Thinking that one request carries in its history and the other doesn't."""
    one, other = left[number], right[number]
    if (one.place == "thinking") == (other.place == "thinking"):
        return None
    longer, shorter = (left, right) if one.place == "thinking" else (right, left)
    if longer[number + 1 : number + 2] != shorter[number : number + 1]:
        return None
    return _of_pieces("dropped_thinking", one, other, number, left, right)


def _of_pieces(
    kind: BreakerKind, one: Piece, other: Piece, number: int, left: list[Piece], right: list[Piece]
) -> Breaker:
    """A breaker of whole texts, its spans narrowed to where they differ."""
    start = common_start(one.text, other.text)
    tail = common_end(one.text[start:], other.text[start:])
    before = Span(number, start, len(one.text) - tail, one.text[start : len(one.text) - tail])
    after = Span(number, start, len(other.text) - tail, other.text[start : len(other.text) - tail])
    constant = tail + _constant_behind(left, right, number)
    if kind in ("reordered_keys", "reordered_tools", "shuffled_examples"):
        constant += len(after.text)
    return Breaker(kind, other.place, other.index, before, after, constant)


def _span(one: Piece, other: Piece, number: int, left: list[Piece], right: list[Piece]) -> Breaker | None:
    """The span that changed, up to where both texts are the same again."""
    start = common_start(one.text, other.text)
    back = meeting(one.text, other.text, start)
    if back is None:
        behind = _constant_behind(left, right, number)
        if not behind:
            return None
        ends, constant = (len(one.text), len(other.text)), behind
    else:
        ends, run = back
        constant = run + (_constant_behind(left, right, number) if ends[1] + run >= len(other.text) else 0)
    first = word_start(other.text, start)
    before = to_word_end(one.text, number, first, ends[0])
    after = to_word_end(other.text, number, first, ends[1])
    # A date may be more words than the one that changed.
    wide_before, wide_after = pattern_around(one.text, before), pattern_around(other.text, after)
    if wide_before is not None and wide_after is not None and wide_before[0] == wide_after[0]:
        kind, before, after = wide_after[0], wide_before[1], wide_after[1]
    else:
        kind = name_span(before.text, after.text, other.text[max(first - CONTEXT_CHARS, 0) : first])
    if kind in ("date", "timestamp", "clock_time") and _is_templates(other, after):
        kind = "template_date"
    if kind == "changing_text" and other.role == "user" and number == len(right) - 1:
        # Another question is no fault.
        return None
    return Breaker(kind, other.place, other.index, before, after, constant)


def _is_templates(piece: Piece, span: Span) -> bool:
    """Whether a chat template writes the span, which was handed to it or stands in a rendered prompt's head."""
    if piece.place == "template":
        return True
    if piece.place != "prompt":
        return False
    section = section_at(find_sections(piece.text), span.start)
    return section is not None and section.kind == "header"


def _constant_behind(left: list[Piece], right: list[Piece], number: int) -> int:
    """Characters of the texts behind the one that differs that are the same in both requests, from its end on."""
    total = 0
    for one, other in zip(left[number + 1 :], right[number + 1 :], strict=False):
        total += common_start(one.text, other.text)
        if one != other:
            break
    return total
