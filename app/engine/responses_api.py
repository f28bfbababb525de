"""OpenAI's newer form, /v1/responses, on top of the chat: bodies in, answers out, as vLLM 0.32 has them. Pure.

Nothing is stored, as in vLLM by default: an earlier response can't be continued by its id.
"""

from collections.abc import Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

import msgspec

from .fields import ApiError, Body, flag, integer, mistyped, text
from .jobs import Answer, Job, Step
from .logprobs import chat_logprobs
from .responses import Json, Timing, Usage
from .tokenizer import Tokenizer

_encode = msgspec.json.Encoder().encode
_PASSED_ON = (
    "model", "cache_salt", "session_id", "vllm_xargs", "stop", "stop_token_ids", "ignore_eos", "seed", "stream",
    "include_stop_str_in_output", "request_id", "chat_template_kwargs", "temperature",
)  # fmt: skip


def chat_body_of(body: Body) -> Body:
    """The chat body that says the same. Raises ApiError."""
    if "input" not in body:
        raise mistyped("missing", "input", "Field required", body)
    if earlier := text(body, "previous_response_id"):
        message = f"Response with id '{earlier}' not found."
        raise ApiError(message, status=404, kind="invalid_request_error", param="response_id")
    asked = body["input"]
    if not isinstance(asked, (str, list)):
        raise mistyped("string_type", "input", "Input should be a valid string", asked)
    messages: list[Body] = []
    if instructions := text(body, "instructions"):
        messages.append({"role": "system", "content": instructions})
    if isinstance(asked, str):
        messages.append({"role": "user", "content": asked})
    else:
        messages += [message for item in asked for message in _messages(item)]
    chat: Body = {name: body[name] for name in _PASSED_ON if name in body} | {"messages": messages}
    if (most := integer(body, "max_output_tokens")) is not None:
        chat["max_completion_tokens"] = most
    if "message.output_text.logprobs" in (body.get("include") or []):
        chat |= {"logprobs": True, "top_logprobs": body.get("top_logprobs") or 0}
    if body.get("tools"):
        chat["tools"] = [_tool(tool) for tool in body["tools"]]
        chat["tool_choice"] = _tool_choice(body.get("tool_choice", "auto"))
    return chat


def _messages(item: object) -> Iterator[Body]:
    if not isinstance(item, Mapping):
        raise mistyped("dict_type", "input", "Input should be a valid dictionary", item)
    kind = item.get("type", "message")
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments") or "{}"}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
    elif kind == "function_call_output":
        yield {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    elif kind == "message":
        role = "system" if item.get("role") == "developer" else item.get("role")
        yield {"role": role, "content": item.get("content")}


def _tool(tool: Mapping[str, Any]) -> Body:
    names = ("name", "description", "parameters")
    return {"type": "function", "function": {name: tool[name] for name in names if name in tool}}


def _tool_choice(choice: object) -> object:
    if isinstance(choice, Mapping) and isinstance(choice.get("name"), str):
        return {"type": "function", "function": {"name": choice["name"]}}
    return choice


class ResponseAnswer:
    """A response with one item: a message of text, or the forced call of a function."""

    opens_at_once = True

    def __init__(self, job: Job, tokenizer: Tokenizer, body: Body) -> None:
        self._job = job
        self._tokenizer = tokenizer
        self._body = body
        self._item_id = f"{'msg' if job.call is None else 'fc'}_{token_hex(8)}"
        self._number = 0
        self._open = False

    def opening(self) -> Iterator[bytes]:
        """The response without an output, twice."""
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._response("in_progress"))

    def step(self, answer: Answer, step: Step) -> Iterator[bytes]:
        """A piece of the item, with its start before the first one."""
        if not step.text:
            return
        if not self._open:
            self._open = True
            yield from self._start()
        if self._job.call is not None:
            yield self._event(
                "response.function_call_arguments.delta", delta=step.text, item_id=self._item_id, output_index=0
            )
            return
        yield self._event(
            "response.output_text.delta",
            content_index=0,
            delta=step.text,
            item_id=self._item_id,
            logprobs=self._logprobs([step.token_id]) or [],
            output_index=0,
        )

    def closing(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Iterator[bytes]:
        """The ends of the item and of the response."""
        answer = answers[0]
        if self._open:
            yield from self._end(answer)
        yield self._event("response.completed", response=self.whole(answers, usage, timing))

    def whole(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Json:
        """The response with its output."""
        answer = answers[0]
        cut = answer.finish_reason == "length"
        metrics = {"metrics": timing.metrics() | {"speculative_decoding": None}} if timing is not None else {}
        status = "incomplete" if cut else "completed"
        found = self._response(status, [self._item(answer, "completed")], usage, metrics)
        if cut:
            found["incomplete_details"] = {"reason": "max_output_tokens"}
        return found

    def _start(self) -> Iterator[bytes]:
        yield self._event("response.output_item.added", item=self._item(None, "in_progress"), output_index=0)
        if self._job.call is None:
            part = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
            yield self._event(
                "response.content_part.added", content_index=0, item_id=self._item_id, output_index=0, part=part
            )

    def _end(self, answer: Answer) -> Iterator[bytes]:
        where: Json = {"item_id": self._item_id, "output_index": 0}
        if self._job.call is not None:
            yield self._event(
                "response.function_call_arguments.done", arguments=answer.text, name=self._job.call.name, **where
            )
        else:
            logprobs = self._logprobs(answer.token_ids)
            yield self._event(
                "response.output_text.done", content_index=0, logprobs=logprobs or [], text=answer.text, **where
            )
            yield self._event("response.content_part.done", content_index=0, part=self._part(answer), **where)
        yield self._event("response.output_item.done", item=self._item(answer, "completed"), output_index=0)

    def _part(self, answer: Answer) -> Json:
        logprobs = self._logprobs(answer.token_ids)
        return {"annotations": [], "text": answer.text, "type": "output_text", "logprobs": logprobs}

    def _item(self, answer: Answer | None, status: str) -> Json:
        call = self._job.call
        if call is not None:
            arguments = "" if answer is None else answer.text
            told = {"arguments": arguments, "call_id": call.id, "name": call.name, "type": "function_call"}
            return {"id": self._item_id, **told, "status": status}
        content = [] if answer is None else [self._part(answer)]
        return {
            "id": self._item_id,
            "content": content,
            "role": "assistant",
            "status": status,
            "type": "message",
            "phase": None,
        }

    def _logprobs(self, token_ids: Sequence[int]) -> list[Json] | None:
        top = self._job.sampling.logprobs
        if top is None:
            return None
        found: list[Json] = chat_logprobs(self._tokenizer, token_ids, top)["content"]
        return found

    def _response(
        self, status: str, output: Sequence[Json] = (), usage: Usage | None = None, metrics: Json | None = None
    ) -> Json:
        body, envelope = self._body, self._job.envelope
        asked = integer(body, "max_output_tokens")
        return {
            "id": envelope.id,
            "created_at": envelope.created,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "metadata": body.get("metadata"),
            "model": envelope.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "temperature": body.get("temperature", 1.0),
            "tool_choice": body.get("tool_choice", "auto") if body.get("tools") else "none",
            "tools": body.get("tools") or [],
            "top_p": body.get("top_p", 1.0),
            "background": flag(body, "background"),
            "max_output_tokens": self._room() if asked is None else asked,
            "max_tool_calls": None,
            "previous_response_id": None,
            "prompt": None,
            "reasoning": body.get("reasoning"),
            "service_tier": "auto",
            "status": status,
            "text": body.get("text"),
            "top_logprobs": body.get("top_logprobs"),
            "truncation": body.get("truncation") or "disabled",
            "usage": None if usage is None else _usage(usage),
            "user": body.get("user"),
            **(metrics or {}),
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "input_messages": None,
            "output_messages": None,
        }

    def _room(self) -> int:
        return self._job.room - len(self._job.prompts[0])

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        told = {**fields, "sequence_number": number, "type": kind}
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), _encode(dict(sorted(told.items()))))


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens or 0,
            "cache_write_tokens": usage.created_cache_tokens or 0,
            "input_tokens_per_turn": [],
            "cached_tokens_per_turn": [],
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {
            "reasoning_tokens": 0,
            "tool_output_tokens": 0,
            "output_tokens_per_turn": [],
            "tool_output_tokens_per_turn": [],
        },
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
