"""A chat request as a row of texts, in the order in which chat templates write them: tools, then messages.

The template's own words aren't in it, but for the dates that a request hands to it: this is what a client can change.
Imports only its own package.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .template_dates import template_dates

Place = Literal["template", "tools", "message", "thinking", "prompt"]
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """One text of a request. `index`: of the message (from 0); None for others."""

    place: Place
    index: int | None
    role: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of text `piece` of a request (see `pieces_of`), and what they say."""

    piece: int
    start: int
    end: int
    text: str


def pieces_of(body: Body) -> list[Piece]:
    """The texts of a request, in order. What isn't text (images) stands as its JSON."""
    if "messages" not in body:
        prompt = body.get("prompt")
        return [Piece("prompt", None, None, prompt if isinstance(prompt, str) else _json(prompt))]
    found: list[Piece] = []
    if dates := template_dates(body):
        found.append(Piece("template", None, None, "\n".join(f"{name}: {value}" for name, value in dates.items())))
    if body.get("tools"):
        found.append(Piece("tools", None, None, _json(body["tools"])))
    messages = body["messages"]
    for index, message in enumerate(messages if isinstance(messages, list) else []):
        if not isinstance(message, Mapping):
            continue
        role = str(message.get("role", ""))
        thinking = message.get("reasoning") or message.get("reasoning_content")
        if isinstance(thinking, str):
            found.append(Piece("thinking", index, role, thinking))
        found.append(Piece("message", index, role, _said(message)))
    return found


def _said(message: Body) -> str:
    content = message.get("content")
    said = content if isinstance(content, str) else "" if content is None else _parts(content)
    calls = message.get("tool_calls")
    return f"{said}{_json(calls)}" if calls else said


def _parts(content: Any) -> str:
    if isinstance(content, Sequence) and all(isinstance(part, Mapping) and "text" in part for part in content):
        return "\n".join(str(part["text"]) for part in content)
    return _json(content)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
