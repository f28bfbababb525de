"""The Anthropic form, /v1/messages, on top of the chat: bodies in, answers out, as vLLM 0.32 translates them. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from .fields import ApiError, Body, integer, mistyped
from .jobs import Answer, Job, Step
from .responses import Json, Timing, Usage

_encode = msgspec.json.Encoder().encode
_BILLING = "x-anthropic-billing-header"
"""A client's line with a hash that changes with every request; vLLM drops it, since it would cost the whole prefix."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def chat_body_of(body: Body, *, counting: bool = False) -> Body:
    """The chat body that says the same. Raises ApiError. `counting`: of /v1/messages/count_tokens."""
    required = ("model", "messages") if counting else ("model", "messages", "max_tokens")
    for name in required:
        if name not in body:
            raise mistyped("missing", name, "Field required", body)
    messages = body["messages"]
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise mistyped("list_type", "messages", "Input should be a valid list", messages)
    chat: Body = {"messages": [*_system(body.get("system")), *(each for m in messages for each in _messages(m))]}
    for name in ("model", "cache_salt", "vllm_xargs", "chat_template_kwargs", "session_id", "ignore_eos"):
        if name in body:
            chat[name] = body[name]
    if not counting:
        max_tokens = integer(body, "max_tokens")
        if max_tokens is None or max_tokens <= 0:
            raise mistyped("value_error", "max_tokens", "Value error, max_tokens must be positive", max_tokens)
        chat |= {"max_tokens": max_tokens, "stop": body.get("stop_sequences"), "stream": body.get("stream")}
        if body.get("stream"):
            chat["stream_options"] = {"include_usage": True}
    if body.get("tools"):
        chat["tools"] = [_tool(tool) for tool in body["tools"]]
        chat["tool_choice"] = _tool_choice(body.get("tool_choice"))
    return chat


def error_body(error: ApiError) -> Json:
    """An error that is found after the body was understood."""
    return {"type": "error", "error": {"type": error.kind, "message": error.message}}


def _system(system: object) -> list[Body]:
    blocks = system if isinstance(system, list) else []
    parts = [system] if isinstance(system, str) else [_text(block) for block in blocks]
    text = "".join(part for part in parts if part and not part.startswith(_BILLING))
    return [{"role": "system", "content": text}] if text else []


def _text(block: object) -> str:
    text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _messages(message: Body) -> Iterator[Body]:
    """Results of tools come before the rest of the message that carries them."""
    role, content = message.get("role"), message.get("content")
    if role == "system":
        yield from _system(content)
        return
    if not isinstance(content, list):
        yield {"role": role, "content": content}
        return
    said: list[Body] = []
    calls: list[Body] = []
    for block in content:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "text" and block.get("text"):
            said.append({"type": "text", "text": block["text"]})
        elif kind == "image":
            said.append({"type": "image_url", "image_url": {"url": _image_url(block.get("source") or {})}})
        elif kind == "tool_use":
            function = {"name": block.get("name") or "", "arguments": json.dumps(block.get("input") or {})}
            calls.append({"id": block.get("id"), "type": "function", "function": function})
        elif kind == "tool_result":
            yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": _result(block.get("content"))}
    if said or calls:
        plain = said[0]["text"] if len(said) == 1 and said[0]["type"] == "text" else said or None
        yield {"role": role, "content": plain} | ({"tool_calls": calls} if calls else {})


def _result(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    return content if isinstance(content, str) else ""


def _image_url(source: Mapping[str, Any]) -> str:
    if source.get("type") == "url":
        return str(source.get("url", ""))
    return f"data:{source.get('media_type', 'image/jpeg')};base64,{source.get('data', '')}"


def _tool(tool: Mapping[str, Any]) -> Body:
    schema = {"type": "object", **(tool.get("input_schema") or {})}
    function = {"name": tool.get("name"), "description": tool.get("description"), "parameters": schema}
    return {"type": "function", "function": function}


def _tool_choice(choice: object) -> object:
    if not isinstance(choice, Mapping):
        return "auto"
    if choice.get("type") == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return _CHOICES.get(str(choice.get("type")), "auto")


class MessageAnswer:
    """One message with one block: text, or the forced tool's use."""

    opens_at_once = False

    def __init__(self, job: Job) -> None:
        self._job = job
        self._open = False

    def opening(self) -> Iterator[bytes]:
        """The start of the message; what was reused isn't told yet."""
        envelope = self._job.envelope
        message: Json = {
            "id": envelope.id,
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": envelope.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": len(self._job.prompts[0]), "output_tokens": 0},
        }
        yield _event("message_start", message=message)

    def step(self, answer: Answer, step: Step) -> Iterator[bytes]:
        """A piece of the block, with its start before the first one."""
        if not step.text:
            return
        call = self._job.call
        if not self._open:
            self._open = True
            yield _event("content_block_start", content_block=self._block("", {}), index=0)
        delta = {"type": "text_delta", "text": step.text}
        if call is not None:
            delta = {"type": "input_json_delta", "partial_json": step.text}
        yield _event("content_block_delta", delta=delta, index=0)

    def closing(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Iterator[bytes]:
        """The ends of block and message, with the usage."""
        if self._open:
            yield _event("content_block_stop", index=0)
        delta = dict(zip(("stop_reason", "stop_sequence"), self._stop(answers[0]), strict=True))
        yield _event("message_delta", delta=delta, usage=_usage(usage))
        yield _event("message_stop")

    def whole(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Json:
        """A message; fields without a value are left out."""
        envelope, text = self._job.envelope, answers[0].text
        arguments = json.loads(text) if self._job.call is not None and answers[0].finish_reason == "stop" else {}
        body: Json = {
            "id": envelope.id,
            "type": "message",
            "role": "assistant",
            "content": [self._block(text, arguments)],
            "model": envelope.model,
        }
        stop_reason, stop_sequence = self._stop(answers[0])
        body["stop_reason"] = stop_reason
        if stop_sequence is not None:
            body["stop_sequence"] = stop_sequence
        return body | {"usage": _usage(usage)}

    def _block(self, text: str, arguments: Json) -> Json:
        call = self._job.call
        if call is None:
            return {"type": "text", "text": text}
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}

    def _stop(self, answer: Answer) -> tuple[str, str | None]:
        if answer.finish_reason == "length":
            return "max_tokens", None
        if self._job.call is not None:
            return "tool_use", None
        if isinstance(answer.stop_reason, str):
            return "stop_sequence", answer.stop_reason
        return "end_turn", None


def _usage(usage: Usage) -> Json:
    """What was read and created isn't part of the input tokens."""
    cached, created = usage.cached_tokens, usage.created_cache_tokens
    told: Json = {
        "input_tokens": max(0, usage.prompt_tokens - (cached or 0) - (created or 0)),
        "output_tokens": usage.completion_tokens,
    }
    if created is not None:
        told["cache_creation_input_tokens"] = created
    if cached is not None:
        told["cache_read_input_tokens"] = cached
    return told


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), _encode({"type": kind, **fields}))
