"""Tool calls that a request forces: which function, and what it is called with. Pure.

Nothing here decides to call a tool: only `tool_choice` does, by a function's name or by `required`. The arguments fill
what the function's schema requires with the plainest value of each type.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from .fields import ApiError, Body, invalid

_CHOICES = ("none", "auto", "required")
_PLAINEST: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "array": [], "null": None}
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class ForcedCall:
    """A call that the answer consists of. `named`: the request said which function."""

    id: str
    name: str
    arguments: str
    named: bool


def forced_call(body: Body) -> ForcedCall | None:
    """The call that a chat body forces; None where it forces none. Raises ApiError as vLLM refuses."""
    choice, tools = body.get("tool_choice"), body.get("tools") or []
    if choice is None or choice == "none" or (choice == "auto" and tools):
        return None
    if not tools:
        raise invalid("tool_choice", "When using `tool_choice`, `tools` must be set.")
    if choice == "required":
        return _call(tools[0], named=False)
    if not isinstance(choice, Mapping):
        raise invalid(
            "tool_choice",
            f'Invalid value for `tool_choice`: {choice}! Only named tools, "none", "auto" or "required" are supported.',
        )
    function = choice.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise invalid("tool_choice.function", "Expected field `function` in `tool_choice`!")
    for tool in tools:
        if _function(tool).get("name") == name:
            return _call(tool, named=True)
    raise invalid("tool_choice", "The tool specified in `tool_choice` does not match any of the specified `tools`")


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    return function if isinstance(function, Mapping) else {}


def _call(tool: Mapping[str, Any], *, named: bool) -> ForcedCall:
    function = _function(tool)
    name = function.get("name")
    if not isinstance(name, str):
        raise ApiError("A tool has a function with a name.")
    arguments = _value(function.get("parameters") or {"type": "object"}, 0)
    return ForcedCall(f"chatcmpl-tool-{token_hex(8)}", name, json.dumps(arguments, ensure_ascii=False), named)


def _value(schema: object, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    options: Sequence[Any] = schema.get("enum") or ()
    if options:
        return options[0]
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0] if kind else "object"
    if kind != "object":
        return _PLAINEST.get(kind, {})
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return {}
    return {name: _value(properties.get(name), depth + 1) for name in required if isinstance(name, str)}
