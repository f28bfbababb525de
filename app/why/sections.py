"""Which part of a rendered prompt a place lies in: template header, tools, system, which message, generation prompt.

Read from the text that the server's template made, by the markers that chat templates write; where a template has
markers that aren't known here, from where the texts of the request's messages stand. Imports only its own package.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .template_dates import dated_head

Kind = Literal["header", "tools", "system", "message", "generation_prompt"]

_TURN = re.compile(
    r"<\|im_start\|>(?P<chatml>\w+)\n?"
    r"|<\|start_header_id\|>(?P<llama>\w+)<\|end_header_id\|>\n*"
    r"|<\|start_of_role\|>(?P<granite>\w+)<\|end_of_role\|>"
    r"|<start_of_turn>(?P<gemma>\w+)\n?"
    r"|<\|start\|>(?P<harmony>\w+)(?:[^<]*<\|channel\|>\w+)?<\|message\|>"
    r"|<\|(?P<plain>system|user|assistant|observation|tool)\|>\n?"
    r"|<｜(?P<deepseek>User|Assistant)｜>"
    r"|\[(?P<mistral>/?INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS)\]"
)
_ROLES = {
    "model": "assistant", "inst": "user", "/inst": "assistant", "system_prompt": "system", "available_tools": "tools",
    "tool_results": "tool", "observation": "tool", "developer": "system", "ipython": "tool",
}  # fmt: skip
_OPENING = re.compile(r"[<\[]")
_TOOLS = ("# Tools\n", "<tools>", "<AVAILABLE_TOOLS>", "Environment: ipython", "\nYou have access to the following")


@dataclass(frozen=True, slots=True)
class Section:
    """Characters `start` to `end` of a rendered prompt.

    role: of the message, as the template names it. index: which turn of the prompt it is, from 1; None for the header,
    tools and generation prompt.
    """

    kind: Kind
    start: int
    end: int
    role: str | None = None
    index: int | None = None


def find_sections(text: str, messages: Sequence[Mapping[str, Any]] | None = None) -> list[Section]:
    """The parts of a rendered prompt, in order, without gaps; none where nothing tells them."""
    found = list(_by_markers(text))
    return found if found else list(_by_messages(text, messages or ()))


def section_at(sections: Iterable[Section], offset: int) -> Section | None:
    """The part that a character lies in."""
    return next((section for section in sections if section.start <= offset < section.end), None)


def _by_markers(text: str) -> Iterable[Section]:
    # Where a marker may begin is found faster than a marker: prompts of a megabyte have few of either.
    turns = [turn for at in _OPENING.finditer(text) if (turn := _TURN.match(text, at.start()))]
    if not turns:
        return
    if turns[0].start():
        yield Section("header", 0, turns[0].start())
    ends = [turn.start() for turn in turns[1:]] + [len(text)]
    for index, (turn, end) in enumerate(zip(turns, ends, strict=True), 1):
        name = next(group for group in turn.groups() if group).lower()
        role = _ROLES.get(name, name)
        if role == "tools":
            yield Section("tools", turn.start(), end)
        elif role == "system":
            yield from _system(text, turn.start(), turn.end(), end, index)
        elif role == "assistant" and index == len(turns) and _is_open(text[turn.end() : end]):
            yield Section("generation_prompt", turn.start(), end)
        else:
            yield Section("message", turn.start(), end, role, index)


def _is_open(rest: str) -> bool:
    """Whether nothing was said in the last turn yet: at most an opened, or emptied, thought."""
    return not re.sub(r"</?think>", "", rest).strip()


def _system(text: str, start: int, content: int, end: int, index: int) -> Iterable[Section]:
    """A system turn: what the template writes before it (dates), the system prompt, and tools, before or behind it."""
    dated = dated_head(text, content, end)
    if dated > content:
        yield Section("header", start, dated)
        start = content = dated
    found = [place for mark in _TOOLS if (place := text.find(mark, content, end)) >= 0]
    if not found:
        yield Section("system", start, end, "system", index)
        return
    before = text[content : min(found)].rstrip()
    tools = content + len(before)
    if before.strip():
        yield Section("system", start, tools, "system", index)
    yield Section("tools", tools if before.strip() else start, end)


def _by_messages(text: str, messages: Sequence[Mapping[str, Any]]) -> Iterable[Section]:
    at = 0
    for index, message in enumerate(messages, 1):
        said = message_text(message)
        place = text.find(said, at) if said else -1
        if place < 0:
            continue
        role = str(message.get("role", ""))
        if place > at:
            yield Section("header", at, place)
        yield Section("system" if role == "system" else "message", place, place + len(said), role, index)
        at = place + len(said)
    if 0 < at < len(text):
        yield Section("generation_prompt", at, len(text))


def message_text(message: Mapping[str, Any]) -> str:
    """What a message says, its text parts joined as templates do; "" where it is no text."""
    content = message.get("content")
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list):
        return ""
    parts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | dict)]
    return "\n".join(part for part in parts if isinstance(part, str)).strip()
