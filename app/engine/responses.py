"""Answers of the completion endpoints, field by field as vLLM 0.32 orders them. Pure: values in, JSON bytes out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]
DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Envelope:
    """What all frames of an answer repeat. `created` is seconds of the Unix epoch."""

    id: str
    created: int
    model: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of an answer. `cached_tokens` None: without details; completions have no `created_cache_tokens`."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    created_cache_tokens: int | None
    images: int = 0
    """Tokens that stand for pictures."""
    plain_details: bool = False
    """Whether details are `cached_tokens` alone, as up to 0.18."""


@dataclass(frozen=True, slots=True)
class Timing:
    """When a request got on, in the engine's own seconds: queued, first scheduled, first and last token."""

    queued_s: float
    scheduled_s: float
    first_token_s: float
    last_token_s: float
    tokens: int

    def metrics(self) -> Json:
        """The per-request `metrics`, in milliseconds. The time to the first token counts from the scheduling."""
        decode_s = self.last_token_s - self.first_token_s
        inference_s = self.last_token_s - self.scheduled_s
        return {
            "time_to_first_token_ms": (self.first_token_s - self.scheduled_s) * 1000,
            "generation_time_ms": decode_s * 1000,
            "queue_time_ms": max(0.0, self.scheduled_s - self.queued_s) * 1000,
            "mean_itl_ms": decode_s / (self.tokens - 1) * 1000 if self.tokens > 1 else None,
            "tokens_per_second": self.tokens / inference_s if inference_s > 0 else None,
        }


@dataclass(frozen=True, slots=True)
class Delta:
    """One step of one answer. `token_ids` None: not asked for."""

    index: int
    text: str
    token_ids: Sequence[int] | None
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    prompt_token_ids: Sequence[int] | None = None
    """Of a completion: once, with its first frame."""
    logprobs: Json | None = None


def sse(value: Json) -> bytes:
    """One server-sent event."""
    return b"data: " + _encode(value) + b"\n\n"


def encode(value: Json) -> bytes:
    """A whole body."""
    try:
        return _encode(value)
    except UnicodeEncodeError:  # Half a surrogate pair, in an error that repeats what was sent: escaped as it came.
        return json.dumps(value, separators=(",", ":")).encode()


def role_frame(
    envelope: Envelope,
    index: int,
    prompt_token_ids: Sequence[int] | None,
    prompt_text: str | None,
    usage: Json | None = None,
) -> Json:
    """The first frame of a chat answer: the role, no content."""
    delta = {"role": "assistant", "content": ""}
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
    frame = _head(envelope, "chat.completion.chunk", [choice], usage)
    return frame | {"prompt_token_ids": prompt_token_ids, "prompt_text": prompt_text}


def chat_frame(
    envelope: Envelope,
    delta: Delta,
    said: Json | None = None,
    *,
    usage: Json | None = None,
    fingerprint: bool = False,
) -> Json:
    """A frame of content, or of what is `said` instead; the last one of an answer carries `finish_reason`."""
    choice: Json = {
        "index": delta.index,
        "delta": {"content": delta.text} if said is None else said,
        "logprobs": delta.logprobs,
        "finish_reason": delta.finish_reason,
    }
    if delta.finish_reason is not None:
        choice["stop_reason"] = delta.stop_reason
    choice["token_ids"] = delta.token_ids
    frame = _head(envelope, "chat.completion.chunk", [choice], usage)
    if fingerprint:
        frame["system_fingerprint"] = envelope.fingerprint
    return frame


def completion_frame(envelope: Envelope, delta: Delta, *, usage: Json | None = None, fingerprint: bool = False) -> Json:
    """The same for /v1/completions."""
    choice = {
        "index": delta.index,
        "text": delta.text,
        "logprobs": delta.logprobs,
        "finish_reason": delta.finish_reason,
        "stop_reason": delta.stop_reason,
        "prompt_token_ids": delta.prompt_token_ids,
        "token_ids": delta.token_ids,
    }
    frame = _head(envelope, "text_completion", [choice], usage)
    if fingerprint:
        frame["system_fingerprint"] = envelope.fingerprint
    return frame


def usage_frame(envelope: Envelope, usage: Usage, timing: Timing | None, *, chat: bool) -> Json:
    """The last frame where usage was asked for: no choices. Unknown figures are left out."""
    counts: Json = running_usage(usage.prompt_tokens, usage.completion_tokens)
    if usage.cached_tokens is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
        if usage.created_cache_tokens is not None:
            counts["prompt_tokens_details"]["created_cache_tokens"] = usage.created_cache_tokens
        if usage.images:
            counts["prompt_tokens_details"]["multimodal_tokens"] = {"image": usage.images}
    frame = _head(envelope, "chat.completion.chunk" if chat else "text_completion", [], counts)
    frame["system_fingerprint"] = envelope.fingerprint
    if timing is not None:
        frame["metrics"] = {name: value for name, value in timing.metrics().items() if value is not None}
    return frame


def running_usage(prompt_tokens: int, completion_tokens: int) -> Json:
    """The counts that `continuous_usage_stats` adds to every frame."""
    total = prompt_tokens + completion_tokens
    return {"prompt_tokens": prompt_tokens, "total_tokens": total, "completion_tokens": completion_tokens}


def chat_body(
    envelope: Envelope,
    answers: Sequence[Delta],
    usage: Usage,
    timing: Timing | None,
    prompt_token_ids: Sequence[int] | None,
    prompt_text: str | None,
) -> Json:
    """An answer that isn't streamed: each of `answers` is a whole one."""
    choices = [
        {
            "index": answer.index,
            "message": {
                "role": "assistant",
                "content": answer.text,
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "reasoning": None,
            },
            "logprobs": answer.logprobs,
            "finish_reason": answer.finish_reason,
            "stop_reason": answer.stop_reason,
            "token_ids": answer.token_ids,
            "routed_experts": None,
        }
        for answer in answers
    ]
    return _whole(envelope, "chat.completion", choices, usage) | {
        "prompt_logprobs": None,
        "prompt_token_ids": prompt_token_ids,
        "prompt_text": prompt_text,
        **_transfer_and_metrics(timing),
    }


def completion_body(envelope: Envelope, answers: Sequence[Delta], usage: Usage, timing: Timing | None) -> Json:
    """The same for /v1/completions."""
    choices = [
        {
            "index": answer.index,
            "text": answer.text,
            "logprobs": answer.logprobs,
            "finish_reason": answer.finish_reason,
            "stop_reason": answer.stop_reason,
            "token_ids": answer.token_ids,
            "prompt_logprobs": None,
            "prompt_token_ids": answer.prompt_token_ids,
            "routed_experts": None,
        }
        for answer in answers
    ]
    return _whole(envelope, "text_completion", choices, usage) | _transfer_and_metrics(timing)


def _head(envelope: Envelope, kind: str, choices: list[Json], usage: Json | None) -> Json:
    frame: Json = {
        "id": envelope.id,
        "object": kind,
        "created": envelope.created,
        "model": envelope.model,
        "choices": choices,
    }
    if usage is not None:
        frame["usage"] = usage
    return frame


def _whole(envelope: Envelope, kind: str, choices: list[Json], usage: Usage) -> Json:
    details: Json | None = None
    if usage.cached_tokens is not None:
        details = {"cached_tokens": usage.cached_tokens}
        if not usage.plain_details:
            details["created_cache_tokens"] = usage.created_cache_tokens
            details["multimodal_tokens"] = {"image": usage.images} if usage.images else None
    counts = running_usage(usage.prompt_tokens, usage.completion_tokens)
    return _head(envelope, kind, choices, None) | {
        "service_tier": None,
        "system_fingerprint": envelope.fingerprint,
        "usage": counts | {"prompt_tokens_details": details, "completion_tokens_details": None},
    }


def _transfer_and_metrics(timing: Timing | None) -> Json:
    metrics = None if timing is None else timing.metrics() | {"speculative_decoding": None}
    return {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": metrics}
