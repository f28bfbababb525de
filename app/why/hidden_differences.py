"""Differences between two whole texts that a reader doesn't see: order, white space, Unicode forms, thinking left out.

Imports only its own package.
"""

import json
import re
import unicodedata

from .request_text import Piece
from .span_names import BreakerKind

_JSON_BLOCK = re.compile(r"[{\[][^\x00]*[}\]]")
_THINKING = re.compile(r"<(think|thinking|thought)>.*?</\1>\s*", re.DOTALL)


def hidden_difference(one: Piece, other: Piece) -> BreakerKind | None:
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


def _without_thinking(text: str) -> str:
    return _THINKING.sub("", text)


def _is_shuffled(left: list[str], right: list[str]) -> bool:
    left, right = [part.strip() for part in left], [part.strip() for part in right]
    return left != right and len(left) > 2 and sorted(left) == sorted(right)
