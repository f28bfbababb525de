"""Qwen2.5's chat template, rendered to segments. Pure.

Content is text, or a list of text parts, which are joined by a line feed. What a message says is always text: the name
of a special token in it stays ordinary words, so a message can't end its own turn or open another one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .tokenizer import Segment

DEFAULT_SYSTEM_PROMPT = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
_TOOLS_INTRODUCTION = (
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
_TOOLS_RULES = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within ",
    '\n{"name": <function-name>, "arguments": <args-json-object>}\n',
)
IMAGE_TOKENS = 64
"""Placeholder tokens of a picture, of whatever size."""
_START = Segment("<|im_start|>", special=True)
_END = Segment("<|im_end|>", special=True)
_CALL = Segment("<tool_call>", special=True)
_CALL_END = Segment("</tool_call>", special=True)
_NEXT_LINE = Segment("\n")

Message = Mapping[str, Any]


class TemplateError(ValueError):
    """Messages that the template can't render; the text says why, in vLLM's words where it has them."""


def render_chat(
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    images: bool = False,
) -> list[Segment]:
    """Segments of a conversation. Raises TemplateError for an empty one and for content that isn't text.

    With `continue_final_message` the last message stays open. Messages of a role that the template doesn't know are
    left out, as the template does. With `images` pictures are taken, and parts follow each other without a line feed,
    as in the template of Qwen2.5-VL.
    """
    if not messages:
        raise TemplateError("Cannot apply chat template to an empty conversation. Provide at least one message.")
    segments = list(_system(messages[0], tools, images))
    for index, message in enumerate(messages):
        segments += _turn(messages, index, message, images)
    if continue_final_message:
        while segments and segments[-1] in (_NEXT_LINE, _END):
            segments.pop()
    elif add_generation_prompt:
        segments += (_START, Segment("assistant\n"))
    return segments


def _content(content: object, images: bool) -> list[Segment]:
    """A message's content. Raises TemplateError for parts that can't be shown."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Segment(content)] if content else []
    if not isinstance(content, list):
        raise TemplateError("The content of a message must be a string or a list of parts.")
    if images:
        return [segment for part in content for segment in _picture(part) or [Segment(_part_text(part))]]
    text = "\n".join(map(_part_text, content))
    return [Segment(text)] if text else []


def _picture(part: object) -> list[Segment]:
    if not isinstance(part, Mapping) or part.get("type") not in ("image_url", "input_image"):
        return []
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or not url:
        raise TemplateError("A picture has a URL.")
    pads = Segment("<|image_pad|>", special=True, repeat=IMAGE_TOKENS, picture=url)
    return [Segment("<|vision_start|>", special=True), pads, Segment("<|vision_end|>", special=True)]


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        kind = part.get("type", "text")
        text = part.get("text")
        if isinstance(text, str) and kind in ("text", "input_text", "output_text", "refusal"):
            return text
        modality = str(kind).removesuffix("_url").removeprefix("input_")
        if modality in ("image", "audio", "video"):
            raise TemplateError(f"At most 0 {modality}(s) may be provided in one prompt.")
        raise TemplateError(f"Unknown part type: {kind}")
    raise TemplateError("A part of a message's content must be an object or a string.")


def _system(first: Message, tools: Sequence[Mapping[str, Any]] | None, images: bool) -> Iterator[Segment]:
    yield from (_START, Segment("system\n"))
    if first.get("role") == "system":
        yield from _content(first.get("content"), images)
    else:
        yield Segment(DEFAULT_SYSTEM_PROMPT)
    if tools:
        listed = "".join("\n" + _json(tool) for tool in tools)
        yield Segment(_TOOLS_INTRODUCTION + listed + _TOOLS_RULES[0])
        yield from (_CALL, _CALL_END, Segment(" XML tags:\n"))
        yield from (_CALL, Segment(_TOOLS_RULES[1]), _CALL_END)
    yield from (_END, _NEXT_LINE)


def _turn(messages: Sequence[Message], index: int, message: Message, images: bool) -> Iterator[Segment]:
    role, calls = message.get("role"), message.get("tool_calls")
    content = _content(message.get("content"), images)
    if role == "tool":
        if index == 0 or messages[index - 1].get("role") != "tool":
            yield from (_START, Segment("user"))
        yield from (Segment("\n<tool_response>\n"), *content, Segment("\n</tool_response>"))
        if index + 1 == len(messages) or messages[index + 1].get("role") != "tool":
            yield from (_END, _NEXT_LINE)
    elif role == "assistant" and calls:
        yield from (_START, Segment("assistant"), *((_NEXT_LINE, *content) if content else ()))
        for call in calls:
            yield from _tool_call(call)
        yield from (_END, _NEXT_LINE)
    elif role in ("user", "assistant") or (role == "system" and index > 0):
        yield from (_START, Segment(f"{role}\n"), *content, _END, _NEXT_LINE)


def _tool_call(call: Mapping[str, Any]) -> Iterator[Segment]:
    function = call.get("function", call)
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            raise TemplateError("The arguments of a tool call must be a JSON object.") from None
    yield from (_NEXT_LINE, _CALL)
    yield Segment(f'\n{{"name": "{function.get("name", "")}", "arguments": {_json(arguments)}}}\n')
    yield _CALL_END


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
