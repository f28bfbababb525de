"""Mechanical remedies: the same request, written so that it can share. A person decides; nothing is sent from here.

Each remedy changes the words of a request as little as it can, and says what else that may change. Imports only its
own package.
"""

import copy
import difflib
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .breakers import Breaker
from .request_text import Body, Piece, Span, pieces_of
from .span_names import BreakerKind

RemedyKind = Literal[
    "move_behind", "sort_keys", "sort_tools", "sort_examples", "trim", "normalise", "line_feeds", "remove_line"
]
MAX_LINE_CHARS = 240
"""A longer line isn't moved as a whole: only the sentence that changes is."""
MAX_DIFF_LINES = 400

REMEDY_OF: dict[BreakerKind, RemedyKind] = {
    "clock_time": "move_behind", "date": "move_behind", "timestamp": "move_behind", "uuid": "move_behind",
    "random_id": "move_behind", "request_id": "move_behind", "session_id": "move_behind", "counter": "move_behind",
    "user_name": "move_behind", "changing_text": "move_behind", "client_line": "remove_line",
    "reordered_keys": "sort_keys", "reordered_tools": "sort_tools", "shuffled_examples": "sort_examples",
    "trailing_space": "trim", "unicode_form": "normalise", "line_endings": "line_feeds",
}  # fmt: skip
"""What can be done by machine. Dropped thoughts and a template's date can't."""

CHANGES: dict[RemedyKind, tuple[str, str]] = {
    "move_behind": (
        "The model reads it at the end, as part of the user's message: it may weigh more than before, and is no longer "
        "said by the system prompt.",
        "模型会在末尾、作为用户消息的一部分读到它：它的分量可能变大，并且不再出自系统提示词。",
    ),
    "sort_keys": ("The order of keys is lost, where it meant something.", "如果键的顺序有意义，这种顺序会丢失。"),
    "sort_tools": (
        "Tools stand in the order of their names; a model may prefer the first.",
        "工具按名称排序；模型可能偏爱排在前面的。",
    ),
    "sort_examples": (
        "Examples stand in one fixed order; shuffling against order effects is given up.",
        "示例以固定顺序出现；不再通过打乱来抵消顺序影响。",
    ),
    "trim": (
        "White space at the ends of lines is lost, also where Markdown means a line break by it.",
        "行尾空白会丢失，包括 Markdown 用来换行的空白。",
    ),
    "normalise": ("Characters keep their look, but not their code points.", "字符外观不变，但码位会变。"),
    "line_feeds": ("Carriage returns are lost, also within quoted files.", "回车符会丢失，包括引用文件里的。"),
    "remove_line": ("The client's own accounting of requests may need that line.", "客户端自己的统计可能需要这一行。"),
}
"""What else a remedy changes, in English and Simplified Chinese."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One request, rewritten. `diff` is a unified diff of its texts, line by line."""

    kind: RemedyKind
    request: dict[str, Any]
    diff: list[str]
    changes: str
    changes_zh: str


def remedy(body: Body, breaker: Breaker, span: Span, *, diff: bool = True) -> Remedy | None:
    """`body` without the breaker, whose span in it is `span`; None where no machine can do that, or nothing changes."""
    kind = REMEDY_OF.get(breaker.kind)
    if kind is None or (kind in ("move_behind", "remove_line") and breaker.place not in ("message", "prompt")):
        return None
    rewritten = copy.deepcopy(dict(body))
    if kind in ("move_behind", "remove_line"):
        _cut(rewritten, body, breaker, span, move=kind == "move_behind")
    elif kind == "sort_tools":
        rewritten["tools"] = sorted(rewritten["tools"], key=lambda tool: json.dumps(tool, sort_keys=True))
    elif kind == "sort_keys" and breaker.place == "tools":
        rewritten["tools"] = _sorted_keys(rewritten["tools"])
    elif kind == "sort_examples":
        _sort_examples(rewritten)
    else:
        _each_text(rewritten, _TEXT_CHANGES[kind])
    if rewritten == body and json.dumps(rewritten) == json.dumps(body):
        return None
    lines = _diff(pieces_of(body), pieces_of(rewritten)) if diff else []
    return Remedy(kind, rewritten, lines, *CHANGES[kind])


def _sorted_keys(value: Any) -> Any:
    return json.loads(json.dumps(value, sort_keys=True))


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


_JSON_BLOCK = re.compile(r"[{\[][^\x00]*[}\]]")


def _sort_json(text: str) -> str:
    match = _JSON_BLOCK.search(text)
    if match is None:
        return text
    try:
        value = json.loads(match.group())
    except (ValueError, RecursionError):
        return text
    indent = 2 if "\n" in match.group() else None
    sorted_text = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=indent)
    return f"{text[: match.start()]}{sorted_text}{text[match.end() :]}"


_TEXT_CHANGES: dict[RemedyKind, Callable[[str], str]] = {
    "sort_keys": _sort_json,
    "trim": _trim,
    "normalise": lambda text: unicodedata.normalize("NFC", text),
    "line_feeds": lambda text: text.replace("\r\n", "\n"),
}


def _each_text(body: dict[str, Any], change: Callable[[str], str]) -> None:
    """Changes every text of a request in place: what is done to one must be done to all, or the next differs."""
    if isinstance(body.get("prompt"), str):
        body["prompt"] = change(body["prompt"])
    for message in _messages(body):
        content = message.get("content")
        if isinstance(content, str):
            message["content"] = change(content)
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    part["text"] = change(part["text"])


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = body.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _cut(rewritten: dict[str, Any], body: Body, breaker: Breaker, span: Span, *, move: bool) -> None:
    """Takes the line, or the sentence, that the span stands in out of its text, and puts it behind all that stays."""
    piece = pieces_of(body)[span.piece]
    start, end = _unit(piece.text, span)
    unit = piece.text[start:end]
    rest = piece.text[:start] + piece.text[end:]
    if breaker.place == "prompt":
        rewritten["prompt"] = rest + (f"\n{unit.strip()}" if move else "")
        return
    message = rewritten["messages"][piece.index]
    if breaker.place != "message" or not isinstance(message.get("content"), str):
        return
    message["content"] = rest.lstrip("\n") if start == 0 else rest
    if move:
        _append(rewritten, unit.strip())


def _append(rewritten: dict[str, Any], unit: str) -> None:
    """Behind the last user message's text; where there is none, in a user message of its own."""
    for message in reversed(_messages(rewritten)):
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            message["content"] = f"{message['content']}\n\n{unit}"
            return
    rewritten["messages"].append({"role": "user", "content": unit})


_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|[。！？]|;\s")


def _unit(text: str, span: Span) -> tuple[int, int]:
    """The line of a span with its line feed; of a long line, the sentence."""
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.end)
    end = len(text) if end < 0 else end + 1
    if end - start <= MAX_LINE_CHARS and (start, end) != (0, len(text)):
        return start, end
    for match in _SENTENCE_END.finditer(text, start, span.start):
        start = match.end()
    while start < span.start and text[start] in " \t":
        start += 1
    close = _SENTENCE_END.search(text, span.end, end)
    stop = close.end() if close is not None else span.end
    while stop < end and text[stop] in " \t":
        stop += 1
    return start, stop


def _sort_examples(body: dict[str, Any]) -> None:
    """One fixed order: of question-and-answer messages where those are shuffled, else of the paragraphs or lines."""
    messages = _messages(body)
    pairs = _example_pairs(messages)
    if len(pairs) > 1:
        first, last = pairs[0][0], pairs[-1][1]
        ordered = sorted((messages[at : end + 1] for at, end in pairs), key=_digest)
        body["messages"][first : last + 1] = [message for pair in ordered for message in pair]
        return
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            message["content"] = _sort_parts(content)


def _example_pairs(messages: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """(first, last) of each user message that is followed by an assistant's, but for the last user message."""
    return [
        (at, at + 1)
        for at in range(len(messages) - 1)
        if messages[at].get("role") == "user" and messages[at + 1].get("role") == "assistant"
    ]


def _sort_parts(text: str) -> str:
    separator = "\n\n" if text.count("\n\n") > 1 else "\n"
    parts = text.split(separator)
    if len(parts) <= 2:
        return text
    # What stands first introduces the others.
    return separator.join([parts[0], *sorted(parts[1:], key=_digest)])


def _digest(value: object) -> str:
    """An order that says nothing of the contents, and is the same every time."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _diff(before: Iterable[Piece], after: Iterable[Piece]) -> list[str]:
    lines = difflib.unified_diff(_lines(before), _lines(after), "before", "after", lineterm="", n=1)
    return list(lines)[:MAX_DIFF_LINES]


def _lines(pieces: Iterable[Piece]) -> list[str]:
    found: list[str] = []
    for piece in pieces:
        found.append(f"[{piece.role or piece.place}]")
        found.extend(piece.text.split("\n"))
    return found
