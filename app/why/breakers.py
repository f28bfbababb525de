"""What keeps two requests from sharing a prefix that they should have shared: known breakers, by pattern and by name.

Two requests are compared text by text from the front. At the first difference the whole text tells of reorderings and
of what can't be seen (spaces, Unicode forms); else the span that changed is named by what it looks like and by the
words before it. A difference behind which nothing is the same again is no breaker: the prompts are just different.
Imports only its own package.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from .request_text import Body, Piece, pieces_of

BreakerKind = Literal[
    "clock_time", "date", "timestamp", "uuid", "random_id", "request_id", "session_id", "counter", "user_name",
    "shuffled_examples", "reordered_tools", "reordered_keys", "trailing_space", "unicode_form", "line_endings",
    "client_line", "dropped_thinking", "template_date", "changing_text",
]  # fmt: skip

WINDOW_CHARS = 24
"""So many characters in a row that stand in both texts are no chance."""
SEARCHED_CHARS = 20_000
CONTEXT_CHARS = 48


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of text `piece` of a request (see `request_text.pieces_of`), and what they say."""

    piece: int
    start: int
    end: int
    text: str


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
        whole = _whole(one, other)
        if whole is not None:
            return _of_pieces(whole, one, other, number, left, right)
        if one.place == "message" and _is_shuffled_messages(left, right, number):
            return _of_pieces("shuffled_examples", one, other, number, left, right)
        return _span(one, other, number, left, right)
    return None


def _whole(one: Piece, other: Piece) -> BreakerKind | None:
    """What tells itself from two whole texts that are the same but for order or for what can't be seen."""
    a, b = one.text, other.text
    if one.place == "tools":
        return _tools(a, b)
    if _json_forms(a) is not None and _json_forms(a) == _json_forms(b):
        return "reordered_keys"
    if a.replace("\r\n", "\n") == b.replace("\r\n", "\n"):
        return "line_endings"
    if unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b):
        return "unicode_form"
    if _trimmed(a) == _trimmed(b):
        return "trailing_space"
    if _without_thinking(a) == _without_thinking(b):
        return "dropped_thinking"
    for separator in ("\n\n", "\n"):
        if _is_shuffled(a.split(separator), b.split(separator)):
            return "shuffled_examples"
    return None


def _tools(a: str, b: str) -> BreakerKind | None:
    left, right = json.loads(a), json.loads(b)
    if left == right:
        return "reordered_keys"
    if isinstance(left, list) and isinstance(right, list):
        forms = sorted(json.dumps(tool, sort_keys=True) for tool in left)
        if forms == sorted(json.dumps(tool, sort_keys=True) for tool in right):
            return "reordered_tools"
    return None


_JSON_BLOCK = re.compile(r"[{\[][^\x00]*[}\]]")


def _json_forms(text: str) -> tuple[str, str, str] | None:
    """(text before, canonical JSON, text behind) of the JSON in a text; None where there is none."""
    match = _JSON_BLOCK.search(text)
    if match is None or "{" not in match.group():
        return None
    try:
        value = json.loads(match.group())
    except (ValueError, RecursionError):
        return None
    return text[: match.start()], json.dumps(value, sort_keys=True), text[match.end() :]


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


_THINKING = re.compile(r"<(think|thinking|thought)>.*?</\1>\s*", re.DOTALL)


def _without_thinking(text: str) -> str:
    return _THINKING.sub("", text)


def _is_shuffled(left: list[str], right: list[str]) -> bool:
    left, right = [part.strip() for part in left], [part.strip() for part in right]
    return left != right and len(left) > 2 and sorted(left) == sorted(right)


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
    back = _return(one.text, other.text, start)
    if back is None:
        behind = _constant_behind(left, right, number)
        if not behind:
            return None
        ends, constant = (len(one.text), len(other.text)), behind
    else:
        ends, run = back
        constant = run + (_constant_behind(left, right, number) if ends[1] + run >= len(other.text) else 0)
    first = _word_start(other.text, start)
    before = _to_word_end(one.text, number, first, ends[0])
    after = _to_word_end(other.text, number, first, ends[1])
    # A date may be more words than the one that changed.
    wide_before, wide_after = _pattern_around(one.text, before), _pattern_around(other.text, after)
    if wide_before is not None and wide_after is not None and wide_before[0] == wide_after[0]:
        kind, before, after = wide_after[0], wide_before[1], wide_after[1]
    else:
        kind = name_span(before.text, after.text, other.text[max(first - CONTEXT_CHARS, 0) : first])
    if kind == "changing_text" and other.role == "user" and number == len(right) - 1:
        # Another question is no fault.
        return None
    return Breaker(kind, other.place, other.index, before, after, constant)


def _return(a: str, b: str, start: int) -> tuple[tuple[int, int], int] | None:
    """((end of the changed span in each), length of what is the same behind it); None where nothing is."""
    tail = common_end(a[start:], b[start:])
    if tail >= WINDOW_CHARS or (tail and start + tail in (len(a), len(b))):
        ends = (len(a) - tail, len(b) - tail)
        if max(ends) - start <= 8 * WINDOW_CHARS:
            return ends, tail
    limit = start + SEARCHED_CHARS
    windows = {a[at : at + WINDOW_CHARS]: at for at in range(min(len(a), limit) - WINDOW_CHARS, start - 1, -1)}
    for at in range(start, min(len(b), limit) - WINDOW_CHARS + 1):
        there = windows.get(b[at : at + WINDOW_CHARS])
        if there is not None:
            return (there, at), common_start(a[there:], b[at:])
    return ((len(a) - tail, len(b) - tail), tail) if tail >= WINDOW_CHARS else None


def _constant_behind(left: list[Piece], right: list[Piece], number: int) -> int:
    """Characters of the texts behind the one that differs that are the same in both requests, from its end on."""
    total = 0
    for one, other in zip(left[number + 1 :], right[number + 1 :], strict=False):
        total += common_start(one.text, other.text)
        if one != other:
            break
    return total


def common_start(a: str, b: str) -> int:
    """Characters that two texts share from their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(a: str, b: str) -> int:
    """Characters that two texts share at their end."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle :] == b[len(b) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


_WORD = re.compile(r"[\w.:+/@-]", re.ASCII)


def _word_start(text: str, start: int) -> int:
    while start > 0 and _WORD.match(text[start - 1]):
        start -= 1
    return start


def _to_word_end(text: str, piece: int, start: int, end: int) -> Span:
    end = max(end, start)
    while end < len(text) and _WORD.match(text[end]):
        end += 1
    while end > start and text[end - 1] in ".,;:":
        end -= 1
    return Span(piece, start, end, text[start:end])


_CLOCK = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\.?)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day"
_DATE = (
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}|\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH}"
    rf"(?:,?\s\d{{4}})?|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?|{_DAY}(?:,?\s.{{0,24}})?"
    r"|\d{4}\s?年\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?日)?|\d{1,2}\s?月\s?\d{1,2}\s?日)"
)
_PATTERNS: tuple[tuple[BreakerKind, re.Pattern[str]], ...] = (
    ("uuid", re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I)),
    ("timestamp", re.compile(rf"{_DATE}[T\s,]*(?:at\s)?{_CLOCK}(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?", re.I)),
    ("timestamp", re.compile(r"1[5-9]\d{8}(?:\.\d+|\d{3}(?:\d{3}(?:\d{3})?)?)?")),
    ("clock_time", re.compile(_CLOCK + r"(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?", re.I)),
    ("date", re.compile(_DATE, re.I)),
)
_VALUE = r"""["']?\s*[:=#]\s*["']?$"""
_CONTEXTS: tuple[tuple[BreakerKind, re.Pattern[str]], ...] = (
    ("client_line", re.compile(r"(?:billing[-_]?header|cc_version|cch=|user-agent|client[-_ ]?version)[^\n]*$", re.I)),
    (
        "session_id",
        re.compile(rf"(?:session|conversation|chat|thread)[-_ ]?(?:id|key)?{_VALUE}|会话[^\n]{{0,6}}$", re.I),
    ),
    (
        "request_id",
        re.compile(rf"(?:request|trace|correlation|message|run|job|req)[-_ ]?(?:id|number|no)?{_VALUE}", re.I),
    ),
)
_NAME_BEFORE = re.compile(
    r"(?:user(?:[-_ ]?name)?|name|customer|client|hello|hi|dear|talking (?:to|with)|speaking (?:to|with)|assist(?:ing)?"
    r"|help(?:ing)?|serving|for|用户|姓名|客户|名字|称呼)[\"']?(?:\s+(?:is|named|called))?[\s:：=,，是叫\"']*$",
    re.I,
)
_NAME = re.compile(r"[^\W\d_][^\W_]*(?:[ '.\-·][^\W\d_][^\W_]*){0,3}")
_RANDOM = re.compile(r"(?=[^\n]*\d)(?=[^\n]*[A-Za-z])[A-Za-z0-9_\-+/=:]{8,}")


def name_span(before: str, after: str, context: str) -> BreakerKind:
    """What a span is that reads `before` in one prompt and `after` in another, behind the words `context`."""
    one, other = before.strip(" \t\"'"), after.strip(" \t\"'")
    for kind, pattern in _CONTEXTS[:1]:
        if pattern.search(context) or pattern.search(context + other):
            return kind
    for kind, pattern in _PATTERNS:
        if _has(pattern, one) and _has(pattern, other):
            return kind
    for kind, pattern in _CONTEXTS[1:]:
        if pattern.search(context) or any(pattern.search(context + word) for word in _heads(other)):
            return kind
    if one.lstrip("#").isdigit() and other.lstrip("#").isdigit():
        return "counter"
    if _NAME.fullmatch(one) and _NAME.fullmatch(other) and _NAME_BEFORE.search(context):
        return "user_name"
    if _RANDOM.fullmatch(one) and _RANDOM.fullmatch(other):
        return "random_id"
    return "changing_text"


def _pattern_around(text: str, span: Span) -> tuple[BreakerKind, Span] | None:
    """A time, a date or the like that the span is a part of, but for an end of it."""
    first = max(span.start - CONTEXT_CHARS, 0)
    window = text[first : span.end + CONTEXT_CHARS]
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(window):
            start, end = first + match.start(), first + match.end()
            if start <= span.start and span.end <= end:
                return kind, Span(span.piece, start, end, match.group())
    return None


def _has(pattern: re.Pattern[str], text: str) -> bool:
    """Whether most of a text is what the pattern stands for."""
    match = pattern.search(text)
    return match is not None and 2 * len(match.group()) >= len(text)


def _heads(text: str) -> list[str]:
    """`session=` of `session=a81f`: names that stand in the same word as what they name."""
    return [text[: match.end()] for match in re.finditer(r"[=:#]", text)][:3]
