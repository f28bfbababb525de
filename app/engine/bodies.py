"""Request bodies: JSON in, checked values out, errors as vLLM words them. Pure.

Unknown fields are ignored, as vLLM ignores them; so are sampling parameters, for the reply isn't sampled.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]
Prompt: TypeAlias = str | list[int]
"""A prompt of /v1/completions or /tokenize: text, or token ids."""

MAX_PROMPTS = 1024
MAX_CHOICES = 128
MAX_STOPS = 16
MAX_CACHE_SALT_CHARS = 128
DEFAULT_COMPLETION_TOKENS = 16
_INPUT_CHARS = 200
_SALT_FORBIDDEN = frozenset("@/\\\x00")


class ApiError(Exception):
    """An answer with an error status, in vLLM's shape."""

    def __init__(self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None = None):
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param

    def body(self) -> Body:
        """`{"error": {"message", "type", "param", "code"}}`."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}}


@dataclass(frozen=True, slots=True)
class Sampling:
    """What chat and completion bodies share. `max_tokens` None: as much as the context holds."""

    max_tokens: int | None
    max_tokens_param: str
    min_tokens: int
    n: int
    seed: int | None
    stop: tuple[str, ...]
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
    prompt_logprobs: bool
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages and what the template does with them."""

    messages: list[Mapping[str, Any]]
    tools: list[Mapping[str, Any]] | None
    add_generation_prompt: bool
    continue_final_message: bool


def invalid(param: str, message: str, value: object = None, *, show_value: bool = False) -> ApiError:
    """A value that can't be used; vLLM repeats the parameter, and sometimes the value, in the text."""
    shown = f", value={value}" if show_value else ""
    return ApiError(f"{message} (parameter={param}{shown})", param=param)


def parse_json(raw: bytes) -> Body:
    """The object in a body. Raises ApiError for text that isn't JSON, and for JSON that isn't an object."""
    try:
        value = json.loads(raw)
    except json.JSONDecodeError as error:
        raise _validation("json_invalid", str(error.pos), "JSON decode error", {}, error.msg) from None
    except (ValueError, RecursionError):
        raise ApiError("There was an error parsing the body", kind=HTTPStatus(400).phrase) from None
    if not isinstance(value, dict):
        raise _validation("model_attributes_type", "", "Input should be a valid dictionary", value)
    return value


def parse_sampling(body: Body, *, chat: bool, session_header: str | None) -> Sampling:
    """The shared fields. Raises ApiError. The body's session id goes before the header's."""
    stream = _flag(body, "stream")
    stream_options = _options(body, stream)
    xargs = _mapping(body, "vllm_xargs") or {}
    param = "max_completion_tokens" if chat and body.get("max_completion_tokens") is not None else "max_tokens"
    max_tokens = _integer(body, param)
    if max_tokens is None and not chat:
        max_tokens = DEFAULT_COMPLETION_TOKENS
    n = _integer(body, "n")
    prompt_logprobs = _integer(body, "prompt_logprobs")
    if prompt_logprobs is not None and stream and prompt_logprobs != 0:
        raise invalid("prompt_logprobs", "`prompt_logprobs` are not available when `stream=True`.")
    session_id = _text(body, "session_id") or session_header or xargs.get("session_id")
    return Sampling(
        max_tokens=max_tokens,
        max_tokens_param=param,
        min_tokens=max(_integer(body, "min_tokens") or 0, 0),
        n=_choices(1 if n is None else n),
        seed=_integer(body, "seed"),
        stop=_stops(body),
        stop_token_ids=frozenset(_integers(body, "stop_token_ids")),
        ignore_eos=_flag(body, "ignore_eos"),
        stream=stream,
        include_usage=_flag(stream_options, "include_usage"),
        continuous_usage=_flag(stream_options, "include_usage") and _flag(stream_options, "continuous_usage_stats"),
        return_token_ids=_flag(body, "return_token_ids"),
        return_prompt_text=_flag(body, "return_prompt_text"),
        cache_salt=_cache_salt(body.get("cache_salt")),
        session_id=session_id if isinstance(session_id, str) and session_id else None,
        full_report=xargs.get("kv_cache_report_mode") == "full",
        prompt_logprobs=prompt_logprobs is not None,
        request_id=_text(body, "request_id"),
    )


def parse_conversation(body: Body) -> Conversation:
    """`messages` and what stands beside them. Raises ApiError; an empty list is the template's to refuse."""
    if "messages" not in body:
        raise _validation("missing", "messages", "Field required", body)
    messages = body["messages"]
    if not isinstance(messages, list):
        raise _validation("list_type", "messages", "Input should be a valid list", messages)
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise _validation("dict_type", f"messages.{index}", "Input should be a valid dictionary", message)
        if not isinstance(message.get("role"), str):
            raise _validation("missing", f"messages.{index}.role", "Field required", message)
    tools = body.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        raise _validation("list_type", "tools", "Input should be a valid list", tools)
    continued = _flag(body, "continue_final_message")
    if continued and body.get("add_generation_prompt"):
        raise ApiError("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
    generation_prompt = body.get("add_generation_prompt") is None or _flag(body, "add_generation_prompt")
    return Conversation(messages, tools or None, generation_prompt and not continued, continued)


def parse_prompts(body: Body) -> list[Prompt]:
    """The prompts of a completion: text, texts, token ids, or lists of token ids. Raises ApiError."""
    prompt = body.get("prompt")
    if prompt is None or prompt == "" or prompt == []:
        raise invalid("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, list):
        if all(_is_token(item) for item in prompt):
            return [prompt]
        if len(prompt) > MAX_PROMPTS:
            raise invalid("prompt", f"At most {MAX_PROMPTS} prompts may be sent at once.")
        if all(isinstance(item, str) and item for item in prompt):
            return prompt
        if all(isinstance(item, list) and item and all(map(_is_token, item)) for item in prompt):
            return prompt
    raise _validation("string_type", "prompt", "Input should be a valid string or a list of token ids", prompt)


def parse_token_ids(body: Body, name: str) -> list[int]:
    """A required list of token ids. Raises ApiError."""
    if name not in body:
        raise _validation("missing", name, "Field required", body)
    tokens = body[name]
    if not isinstance(tokens, list) or not all(map(_is_token, tokens)):
        raise _validation("list_type", name, "Input should be a valid list of token ids", tokens)
    return tokens


def text_of(body: Body, name: str) -> str | None:
    """A text field that may be missing. Raises ApiError."""
    return _text(body, name)


def check_flag(body: Body, name: str) -> bool:
    """A boolean field that may be missing. Raises ApiError."""
    return _flag(body, name)


def _validation(kind: str, where: str, message: str, value: object, context: str | None = None) -> ApiError:
    location = f"body.{where}" if where else "body"
    entry: Body = {"type": kind, "loc": location, "msg": message, "input": _shown(value)}
    if context is not None:
        entry["ctx"] = {"error": context}
    return ApiError(f"1 validation error:\n  {entry}", kind=HTTPStatus(400).phrase, param=location)


def _shown(value: object) -> object:
    if isinstance(value, (list, dict)):
        return f"<{type(value).__name__} of {len(value)} items>"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _INPUT_CHARS else text[:_INPUT_CHARS] + "...[truncated]"


def _is_token(value: object) -> bool:
    return type(value) is int and value >= 0


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _validation("bool_type", name, "Input should be a valid boolean", value)


def _integer(body: Body, name: str) -> int | None:
    value = body.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (type(value) is int and -(2**63) <= value < 2**63):
        return value
    raise _validation("int_type", name, "Input should be a valid integer", value)


def _integers(body: Body, name: str) -> list[int]:
    value = body.get(name) or []
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise _validation("list_type", name, "Input should be a valid list of integers", value)
    return value


def _text(body: Body, name: str) -> str | None:
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _validation("string_type", name, "Input should be a valid string", value)


def _mapping(body: Body, name: str) -> Body | None:
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise _validation("dict_type", name, "Input should be a valid dictionary", value)


def _options(body: Body, stream: bool) -> Body:
    options = _mapping(body, "stream_options")
    if options and not stream:
        raise invalid("stream_options", "Stream options can only be defined when `stream=True`.")
    return options or {}


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
        raise _validation("string_type", "stop", "Input should be a valid string or a list of strings", stop)
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
