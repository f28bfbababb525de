"""What a response says: one parsed event of a stream, or a whole body, of any of the proxied protocols.

Chat completions, completions, responses and the Anthropic messages form are told apart by what is in them, not by
the path. Reading is tolerant: what isn't as expected says nothing and is marked `malformed`; nothing raises.
Imports only its own package.
"""

import msgspec

from .chat_frames import Choice, Frame, error_text, is_text, read_frame, reason_of, shortened, text_of
from .said import ANSWER, DONE, NOTHING, REASONING, Said
from .typed_events import read_response_object, read_typed_event
from .usage import read_times, read_usage


def read_event(data: bytes, name: bytes = b"") -> Said:
    """What an event with this `data` says. `name` is its `event` field, which only decides where `data` has no type."""
    if data[:1] != b"{":
        stripped = data.strip()
        if not stripped or stripped == b"[DONE]":
            return DONE if stripped else NOTHING
    frame = read_frame(data)
    if isinstance(frame, str):
        return Said(malformed=frame)
    if _is_plain_token(frame):
        return ANSWER
    if isinstance(frame.type, str) and frame.object != "error" and (frame.choices is None or frame.error is not None):
        return read_typed_event(frame, frame.type)
    error = error_text(frame)
    if error is None and name == b"error":
        error = "the server reported an error"
    return _choices(frame, error)


def read_body(data: bytes) -> Said:
    """What a whole body says: an answer that wasn't streamed, or an error."""
    if not data.strip():
        return NOTHING
    frame = read_frame(data)
    if isinstance(frame, str):
        return Said(malformed=frame)
    error = error_text(frame)
    if error is None and frame.object == "response":
        return read_response_object(msgspec.to_builtins(frame), answer=bool(frame.output))
    if error is None and frame.type == "message":
        usage = read_usage(frame.usage)
        return Said(answer=bool(frame.content), finish_reason=reason_of(frame.stop_reason), usage=usage, done=True)
    return _choices(frame, error)


def read_error(data: bytes) -> str | None:
    """The message in the body of an error response: its JSON's error object, or `detail` (a web framework's own word);
    else the start of its text. None where the body is empty.
    """
    frame = read_frame(data)
    error = error_text(frame) or text_of(frame.detail) if isinstance(frame, Frame) else None
    return shortened(error or data.decode("utf-8", "replace").strip()) or None


def _is_plain_token(frame: Frame) -> bool:
    """What nearly every event of a chat is: one choice with text and nothing else. Told first, to be cheap."""
    choices = frame.choices
    if choices is None or len(choices) != 1 or frame.usage is not None or frame.type is not None:
        return False
    choice = choices[0]
    delta = choice.delta
    return (
        delta is not None
        and type(delta.content) is str
        and delta.content != ""
        and choice.finish_reason is None
        and choice.token_ids is None
        and choice.prompt_token_ids is None
        and not choice.index
        and delta.reasoning is None
        and delta.reasoning_content is None
        and frame.prompt_token_ids is None
        and frame.error is None
        and frame.metrics is None
    )


def _choices(frame: Frame, error: str | None) -> Said:
    """Chat completions and completions, streamed or whole."""
    answer = reasoning = False
    finish_reason: str | None = None
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids = frame.prompt_token_ids
    spoke: list[int] = []
    for choice in frame.choices or []:
        answers, reasons = _speaks(choice)
        answer, reasoning = answer or answers, reasoning or reasons
        if (answers or reasons) and type(choice.index) is int:
            spoke.append(choice.index)
        finish_reason = finish_reason or reason_of(choice.finish_reason)
        token_ids = token_ids or choice.token_ids
        prompt_token_ids = prompt_token_ids or choice.prompt_token_ids
    only_first = not any(spoke)
    nothing_else = finish_reason is None and token_ids is None and prompt_token_ids is None and error is None
    nothing_else = nothing_else and frame.usage is None and frame.metrics is None and only_first
    if nothing_else and not (answer and reasoning):
        return ANSWER if answer else REASONING if reasoning else NOTHING
    return Said(
        answer=answer,
        reasoning=reasoning,
        finish_reason=finish_reason,
        usage=read_usage(frame.usage),
        token_ids=token_ids,
        prompt_token_ids=prompt_token_ids,
        times=read_times(frame.metrics),
        error=error,
        choices=() if only_first else tuple(spoke),
    )


def _speaks(choice: Choice) -> tuple[bool, bool]:
    """Whether a choice has text of the answer (or a refusal, or a piece of a tool call), and text of reasoning."""
    said = choice.delta or choice.message
    if said is None:
        return is_text(choice.text), False
    answers = _has_text(said.content) or bool(said.tool_calls) or is_text(said.refusal) or bool(said.function_call)
    return answers, is_text(said.reasoning) or is_text(said.reasoning_content)


def _has_text(content: object) -> bool:
    """Text, or a list of parts of which one has text."""
    if isinstance(content, list):
        return any(isinstance(part, dict) and is_text(part.get("text")) for part in content)
    return is_text(content)
