"""Request bodies: JSON in, conversations and prompts out. Pure. Unknown fields are ignored, as vLLM ignores them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

import msgspec

from .fields import ApiError, Body, flag, invalid, mistyped

Prompt: TypeAlias = str | list[int]
"""A prompt of /v1/completions or /tokenize: text, or token ids."""

MAX_PROMPTS = 1024
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages and what the template does with them."""

    messages: list[Mapping[str, Any]]
    tools: list[Mapping[str, Any]] | None
    add_generation_prompt: bool
    continue_final_message: bool


def parse_json(raw: bytes) -> Body:
    """The object in a body. Raises ApiError for text that isn't JSON, and for JSON that isn't an object."""
    try:
        value = _loads(raw)
    except json.JSONDecodeError as error:
        raise mistyped("json_invalid", str(error.pos), "JSON decode error", {}, error.msg) from None
    except (ValueError, RecursionError):
        raise ApiError("There was an error parsing the body", kind=HTTPStatus(400).phrase) from None
    if not isinstance(value, dict):
        raise mistyped("model_attributes_type", "", "Input should be a valid dictionary", value)
    return value


def _loads(raw: bytes) -> Any:
    """In a fifth of the time of `json.loads`, which has the last word on what the faster decoder refuses."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return json.loads(raw)


def parse_conversation(body: Body) -> Conversation:
    """`messages` and what stands beside them. Raises ApiError; an empty list is the template's to refuse."""
    if "messages" not in body:
        raise mistyped("missing", "messages", "Field required", body)
    messages = body["messages"]
    if not isinstance(messages, list):
        raise mistyped("list_type", "messages", "Input should be a valid list", messages)
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise mistyped("dict_type", f"messages.{index}", "Input should be a valid dictionary", message)
        if not isinstance(message.get("role"), str):
            raise mistyped("missing", f"messages.{index}.role", "Field required", message)
    tools = body.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        raise mistyped("list_type", "tools", "Input should be a valid list", tools)
    continued = flag(body, "continue_final_message")
    if continued and body.get("add_generation_prompt"):
        raise ApiError("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
    generation_prompt = body.get("add_generation_prompt") is None or flag(body, "add_generation_prompt")
    return Conversation(messages, tools or None, generation_prompt and not continued, continued)


def parse_prompts(body: Body) -> list[Prompt]:
    """The prompts of a completion: text, texts, token ids, or lists of token ids. Raises ApiError."""
    prompt = body.get("prompt")
    if prompt is None or prompt == "" or prompt == []:
        raise invalid("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, list):
        if _are_tokens(prompt):
            return [prompt]
        if len(prompt) > MAX_PROMPTS:
            raise invalid("prompt", f"At most {MAX_PROMPTS} prompts may be sent at once.")
        if all(isinstance(item, str) and item for item in prompt):
            return prompt
        if all(isinstance(item, list) and item and _are_tokens(item) for item in prompt):
            return prompt
    raise mistyped("string_type", "prompt", "Input should be a valid string or a list of token ids", prompt)


def parse_token_ids(body: Body, name: str) -> list[int]:
    """A required list of token ids. Raises ApiError."""
    if name not in body:
        raise mistyped("missing", name, "Field required", body)
    tokens = body[name]
    if not isinstance(tokens, list) or not _are_tokens(tokens):
        raise mistyped("list_type", name, "Input should be a valid list of token ids", tokens)
    return tokens


def _are_tokens(values: list[Any]) -> bool:
    return not values or (set(map(type, values)) == {int} and min(values) >= 0)
