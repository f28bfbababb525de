"""Dates and times that a chat template writes by itself, in front of what the client said. Imports nothing of the app.

Templates that do: Llama 3.1 and later ("Cutting Knowledge Date", "Today Date"), SmolLM3 (the same under "## Metadata"),
gpt-oss ("Knowledge cutoff", "Current date"), Granite ("Knowledge Cutoff Date", "Today's Date"), Mistral Small ("The
current date is"), and those that people write for Qwen and others, in English or Chinese.
"""

import re
from collections.abc import Mapping
from typing import Any

HEAD_CHARS = 1_000
"""A template's own words before the client's are shorter."""
_BEFORE = r"(?:\s|## Metadata\n|You are ChatGPT, a large language model trained by OpenAI\.\n)*"
_NAMED = (
    r"(?:Cutting Knowledge Date|Knowledge Cutoff(?: Date)?|Today(?:'s)? Date|Current Date(?: and time)?|Current time)"
    r"\s*[:：]"
    r"|Today is|The current date is|Your knowledge base was last updated"
    r"|今天(?:的日期)?[是:：]|(?:当前|现在)(?:的)?(?:日期|时间)[是为:：]"
)
_LINE = re.compile(rf"{_BEFORE}(?:{_NAMED})[^\n]*\n*", re.I)
_NAME = re.compile(r"(?:^|_)(?:date|time|now|today|datetime)(?:_|$)|date_string|current_?date|(?:日期|时间)", re.I)


def dated_head(text: str, start: int, end: int) -> int:
    """Where the dates end that a rendered system turn, characters `start` to `end`, begins with; `start` where there
    are none."""
    last = min(end, start + HEAD_CHARS)
    at = start
    while (line := _LINE.match(text, at, last)) is not None and line.end() > at:
        at = line.end()
    return at


def template_dates(body: Mapping[str, Any]) -> dict[str, str]:
    """The dates and times that a request hands to its template, by their names: `chat_template_kwargs` such as
    `date_string`."""
    given = body.get("chat_template_kwargs")
    if not isinstance(given, Mapping):
        return {}
    return {name: value for name, value in sorted(given.items()) if isinstance(value, str) and _NAME.search(name)}
