"""What the span that changed between two requests is called: by what it looks like, and by the words before it.

Imports only its own package.
"""

import re
from typing import Literal

from .request_text import Span

BreakerKind = Literal[
    "clock_time", "date", "timestamp", "uuid", "random_id", "request_id", "session_id", "counter", "user_name",
    "shuffled_examples", "reordered_tools", "reordered_keys", "trailing_space", "unicode_form", "line_endings",
    "client_line", "dropped_thinking", "template_date", "changing_text",
]  # fmt: skip
CONTEXT_CHARS = 48

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
_WORD = re.compile(r"[\w.:+/@-]", re.ASCII)


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


def pattern_around(text: str, span: Span) -> tuple[BreakerKind, Span] | None:
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


def word_start(text: str, start: int) -> int:
    """Where the word begins that `start` is in."""
    while start > 0 and _WORD.match(text[start - 1]):
        start -= 1
    return start


def to_word_end(text: str, piece: int, start: int, end: int) -> Span:
    """The span from `start` on to the end of the word that `end` is in, without what only ends a sentence."""
    end = max(end, start)
    while end < len(text) and _WORD.match(text[end]):
        end += 1
    while end > start and text[end - 1] in ".,;:":
        end -= 1
    return Span(piece, start, end, text[start:end])
