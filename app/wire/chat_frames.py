"""One JSON object of a response, decoded as far as any of the proxied protocols needs it, and nothing concluded yet.

Imports nothing of the project.
"""

import json
from typing import Any

import msgspec

MAX_REASON_CHARS = 100


class Delta(msgspec.Struct, gc=False):
    """What a choice says: a streamed choice's `delta`, or a whole one's `message`."""

    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class Choice(msgspec.Struct, gc=False):
    """One of the answers that a request asked for."""

    index: Any = None
    delta: Delta | None = None
    message: Delta | None = None
    text: Any = None
    finish_reason: Any = None
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids: tuple[int, ...] | None = None


class Frame(msgspec.Struct, gc=False):
    """Fields of every proxied protocol side by side; what an object doesn't have is None."""

    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    metrics: Any = None
    error: Any = None
    detail: Any = None
    object: Any = None
    type: Any = None
    status: Any = None
    stop_reason: Any = None
    delta: Any = None
    message: Any = None
    content: Any = None
    output: Any = None
    response: Any = None


_decode = msgspec.json.Decoder(Frame).decode


def read_frame(data: bytes) -> Frame | str:
    """The object, or what is wrong with it."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _leniently(data) or shortened(str(error)) or "not JSON"


def _leniently(data: bytes) -> Frame | None:
    """JSON that only Python's own reader takes: half a surrogate pair, where a character is split over two deltas.

    The half becomes "?": no text that goes on may have one, it could not be encoded again.
    """
    if len(data) > 64 * 1024 or b"\\u" not in data:
        return None
    try:
        return _decode(json.dumps(json.loads(data), ensure_ascii=False).encode("utf-8", "replace"))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def error_text(frame: Frame) -> str | None:
    """The message of `{"error": {"message"}}`, `{"error": "text"}`, or `{"object": "error", "message"}`."""
    if frame.error is not None:
        return message_of(frame.error) or "the server reported an error"
    if frame.object == "error" or frame.type == "error":
        return message_of(frame.message) or "the server reported an error"
    return None


def message_of(error: object) -> str | None:
    """The text of an error object or of a plain error, shortened."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("type") or error.get("code")
    return shortened(str(error)) if isinstance(error, str | int) and error else None


def shortened(text: str, length: int = 500) -> str:
    """At most `length` characters of `text`."""
    return text if len(text) <= length else text[: length - 1] + "…"


def is_text(value: object) -> bool:
    """Whether it is text, and not the empty one."""
    return isinstance(value, str) and value != ""


def text_of(value: object) -> str | None:
    """Non-empty text, else None."""
    return value if isinstance(value, str) and value else None


def reason_of(value: object) -> str | None:
    """A finish reason, shortened: a server may say anything there."""
    text = text_of(value)
    return text and shortened(text, MAX_REASON_CHARS)
