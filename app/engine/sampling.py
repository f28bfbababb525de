"""What the bodies of all generating endpoints share: sampling, streaming, and vLLM's own fields. Pure.

Parameters that only steer sampling are ignored, for the reply isn't sampled.
"""

from dataclasses import dataclass

from .fields import ApiError, Body, flag, integer, integers, invalid, mapping, mistyped, text
from .tokenizer import MODEL_VOCABULARY_SIZE

MAX_CHOICES = 128
MAX_STOPS = 16
MAX_CACHE_SALT_CHARS = 128
MAX_LOGPROBS = 20
"""The most alternatives a position that may be asked for."""
DEFAULT_COMPLETION_TOKENS = 16
_SALT_FORBIDDEN = frozenset("@/\\\x00")


@dataclass(frozen=True, slots=True)
class Sampling:
    """What chat and completion bodies share. `max_tokens` None: as much as the context holds."""

    max_tokens: int | None
    max_tokens_param: str
    min_tokens: int
    n: int
    seed: int | None
    stop: tuple[str, ...]
    include_stop: bool
    stop_token_ids: frozenset[int]
    ignore_eos: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_token_ids: bool
    return_prompt_text: bool
    cache_salt: str | None
    session_id: str | None
    full_report: bool
    logprobs: int | None
    """Alternatives to tell for each token; None: no log probabilities."""
    prompt_logprobs: int | None
    echo: bool
    request_id: str | None


def parse_sampling(body: Body, *, chat: bool, session_header: str | None) -> Sampling:
    """The shared fields. Raises ApiError. The body's session id goes before the header's."""
    stream = flag(body, "stream")
    stream_options = _options(body, stream)
    xargs = mapping(body, "vllm_xargs") or {}
    param = "max_completion_tokens" if chat and body.get("max_completion_tokens") is not None else "max_tokens"
    max_tokens = integer(body, param)
    if max_tokens is None and not chat:
        max_tokens = DEFAULT_COMPLETION_TOKENS
    n = integer(body, "n")
    prompt_logprobs = _logprobs(body, "prompt_logprobs")
    if prompt_logprobs is not None and stream and prompt_logprobs != 0:
        raise invalid("prompt_logprobs", "`prompt_logprobs` are not available when `stream=True`.")
    session_id = text(body, "session_id") or session_header or xargs.get("session_id")
    return Sampling(
        max_tokens=max_tokens,
        max_tokens_param=param,
        min_tokens=max(integer(body, "min_tokens") or 0, 0),
        n=_choices(1 if n is None else n),
        seed=integer(body, "seed"),
        stop=_stops(body),
        include_stop=flag(body, "include_stop_str_in_output"),
        stop_token_ids=frozenset(integers(body, "stop_token_ids")),
        ignore_eos=flag(body, "ignore_eos"),
        stream=stream,
        include_usage=flag(stream_options, "include_usage"),
        continuous_usage=flag(stream_options, "include_usage") and flag(stream_options, "continuous_usage_stats"),
        return_token_ids=flag(body, "return_token_ids"),
        return_prompt_text=flag(body, "return_prompt_text"),
        cache_salt=_cache_salt(body.get("cache_salt")),
        session_id=session_id if isinstance(session_id, str) and session_id else None,
        full_report=xargs.get("kv_cache_report_mode") == "full",
        logprobs=_chat_logprobs(body) if chat else _logprobs(body, "logprobs"),
        prompt_logprobs=prompt_logprobs,
        echo=not chat and flag(body, "echo"),
        request_id=text(body, "request_id"),
    )


def _options(body: Body, stream: bool) -> Body:
    options = mapping(body, "stream_options")
    if options and not stream:
        raise invalid("stream_options", "Stream options can only be defined when `stream=True`.")
    return options or {}


def _logprobs(body: Body, name: str) -> int | None:
    count = integer(body, name)
    if count is None:
        return None
    if count == -1:
        count = MODEL_VOCABULARY_SIZE
    if count < 0:
        raise invalid(name, f"`{name}` must be a positive value or -1.", count, show_value=True)
    if count > MAX_LOGPROBS:
        kind = "prompt" if name == "prompt_logprobs" else "sample"
        message = f"Requested {kind} logprobs of {count}, which is greater than max allowed: {MAX_LOGPROBS}"
        raise invalid(name.removeprefix("top_"), message, count, show_value=True)
    return count


def _chat_logprobs(body: Body) -> int | None:
    top = _logprobs(body, "top_logprobs")
    if flag(body, "logprobs"):
        return top or 0
    if top:
        raise invalid("top_logprobs", "when using `top_logprobs`, `logprobs` must be set to true.")
    return None


def _choices(n: int) -> int:
    if n < 1:
        raise ApiError(f"n must be at least 1, got {n}.")
    if n > MAX_CHOICES:
        raise ApiError(f"n must be at most {MAX_CHOICES}, got {n}.")
    return n


def _stops(body: Body) -> tuple[str, ...]:
    stop = body.get("stop")
    if stop is None or stop == []:
        return ()
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(item, str) for item in stops):
        raise mistyped("string_type", "stop", "Input should be a valid string or a list of strings", stop)
    if "" in stops:
        raise ApiError("stop cannot contain an empty string.")
    if len(stops) > MAX_STOPS:
        raise invalid("stop", f"At most {MAX_STOPS} stop strings may be given.")
    return tuple(stops)


def _cache_salt(salt: object) -> str | None:
    if salt is None:
        return None
    if not isinstance(salt, str) or not salt:
        raise invalid("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided.")
    if len(salt) > MAX_CACHE_SALT_CHARS or any(c in _SALT_FORBIDDEN for c in salt):
        message = (
            f"Parameter 'cache_salt' must be at most {MAX_CACHE_SALT_CHARS} characters and must "
            "not contain '@', '/', '\\\\', or NUL."
        )
        raise invalid("cache_salt", message)
    return salt
