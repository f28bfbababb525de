"""Token counts and the server's own times, in the forms in which the proxied protocols say them.

Tolerant: what isn't as expected is as if it weren't said, and a None is "didn't say", which is not 0. Field names are
those of vLLM 0.32's own responses. Imports nothing of the project.
"""

from typing import Any

import msgspec

MAX_TOKEN_COUNT = 1 << 24
"""Beyond any context window: a larger count is a server's mistake, and as if it weren't said."""


class Usage(msgspec.Struct, frozen=True):
    """Token counts as one event gave them. `cached_tokens` has three states: None (didn't say), 0, and more."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    created_cache_tokens: int | None = None

    def updated(self, later: "Usage") -> "Usage":
        """The later event wins, field by field, where it says anything."""
        return Usage(
            self.prompt_tokens if later.prompt_tokens is None else later.prompt_tokens,
            self.completion_tokens if later.completion_tokens is None else later.completion_tokens,
            self.cached_tokens if later.cached_tokens is None else later.cached_tokens,
            self.created_cache_tokens if later.created_cache_tokens is None else later.created_cache_tokens,
        )


class EngineTimes(msgspec.Struct, frozen=True):
    """The server's own clock for this request, in milliseconds (`metrics`, vLLM 0.26 and later)."""

    ttft_ms: float | None = None
    queue_ms: float | None = None
    generation_ms: float | None = None
    mean_itl_ms: float | None = None


def read_usage(usage: object) -> Usage | None:
    """OpenAI's form, the responses protocol's, and Anthropic's, whose input tokens leave the cached ones out."""
    if not isinstance(usage, dict):
        return None
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        details = _dict(usage.get("prompt_tokens_details"))
        return Usage(
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            _count(details.get("cached_tokens")),
            _count(details.get("created_cache_tokens")),
        )
    prompt_tokens = _count(usage.get("input_tokens"))
    completion_tokens = _count(usage.get("output_tokens"))
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        cached = _count(usage.get("cache_read_input_tokens"))
        created = _count(usage.get("cache_creation_input_tokens"))
        if prompt_tokens is not None:
            prompt_tokens += (cached or 0) + (created or 0)
        return Usage(prompt_tokens, completion_tokens, cached, created)
    details = _dict(usage.get("input_tokens_details"))
    cached, created = _count(details.get("cached_tokens")), _count(details.get("cache_write_tokens"))
    return Usage(prompt_tokens, completion_tokens, cached, created)


def read_times(metrics: object) -> EngineTimes | None:
    """The times in a response's `metrics`; None where it has none."""
    if not isinstance(metrics, dict):
        return None
    times = EngineTimes(
        ttft_ms=_milliseconds(metrics.get("time_to_first_token_ms")),
        queue_ms=_milliseconds(metrics.get("queue_time_ms")),
        generation_ms=_milliseconds(metrics.get("generation_time_ms")),
        mean_itl_ms=_milliseconds(metrics.get("mean_itl_ms")),
    )
    return times if times != EngineTimes() else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_TOKEN_COUNT else None


def _milliseconds(value: object) -> float | None:
    return float(value) if type(value) in (int, float) and value >= 0 else None  # type: ignore[operator, arg-type]
