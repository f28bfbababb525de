"""A diagnosis in words for a terminal, and as JSON. Pure."""

import textwrap
from typing import Any

import msgspec

from .findings import Diagnosis
from .words import Finding

WIDTH = 110
_MARKS = {"on": "on", "missing": "MISSING", "unknown": "unknown", "unsupported": "not there", "warning": "WARNING"}
_INDENT = " " * 12


def as_text(diagnosis: Diagnosis, *, asked: bool) -> str:
    """The findings one under the other; flags stand on a line of their own, to be pasted. asked: without --no-ask."""
    lines = [f"PrefixScope doctor: {diagnosis.server}", ""]
    for finding in diagnosis.findings:
        lines += _finding(finding)
    return "\n".join([*lines, "", _summary(diagnosis, asked)])


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The same as `GET /api/doctor` has for a server."""
    value = msgspec.to_builtins(diagnosis)
    assert isinstance(value, dict)
    return value


def _finding(finding: Finding) -> list[str]:
    first, *more = _wrapped(f"{finding.title}: {finding.text}")
    lines = [f"  {_MARKS[finding.status]:<10}{first}", *(f"{_INDENT}{line}" for line in more)]
    if finding.status not in ("missing", "unknown"):
        return lines
    if finding.flag is not None:
        lines += [f"{_INDENT}add to vllm serve:", f"{_INDENT}  {finding.flag}"]
    if finding.panels:
        lines += [f"{_INDENT}{line}" for line in _wrapped(f"turns on: {', '.join(finding.panels)}")]
    return lines


def _summary(diagnosis: Diagnosis, asked: bool) -> str:
    if diagnosis.status == "unreachable":
        return "Not reachable as a vLLM server, so nothing else was looked at."
    count = dict.fromkeys(_MARKS, 0)
    for finding in diagnosis.findings:
        count[finding.status] += 1
    unknown = ""
    if count["unknown"]:
        how = "." if asked else "; without --no-ask one small request is sent to find out."
        unknown = f" {_things(count['unknown'])} can't be told yet{how}"
    if diagnosis.status == "missing":
        return f"{_things(count['missing'])} missing.{unknown}"
    return f"Nothing is missing.{unknown}"


def _things(count: int) -> str:
    return "1 thing" if count == 1 else f"{count} things"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH - len(_INDENT), break_long_words=False, break_on_hyphens=False)
