"""Events that name their type: those of the responses protocol (`response.*`) and of the Anthropic messages form.

Imports only its own package.
"""

from .chat_frames import Frame, error_text, is_text, message_of, reason_of
from .said import ANSWER, DONE, NOTHING, REASONING, Said
from .usage import read_times, read_usage


def read_typed_event(frame: Frame, kind: str) -> Said:
    """What an event of type `kind` says. A type that isn't known says nothing."""
    if kind.startswith("response."):
        if kind.endswith(".delta"):
            if not is_text(frame.delta):
                return NOTHING
            return REASONING if kind.startswith("response.reasoning") else ANSWER
        if kind in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
            return read_response_object(frame.response, answer=False)
        return NOTHING
    if kind == "content_block_delta":
        delta = frame.delta if isinstance(frame.delta, dict) else {}
        if is_text(delta.get("thinking")):
            return REASONING
        return ANSWER if is_text(delta.get("text")) or is_text(delta.get("partial_json")) else NOTHING
    if kind == "message_start":
        message = frame.message if isinstance(frame.message, dict) else {}
        return Said(usage=read_usage(message.get("usage")))
    if kind == "message_delta":
        delta = frame.delta if isinstance(frame.delta, dict) else {}
        return Said(finish_reason=reason_of(delta.get("stop_reason")), usage=read_usage(frame.usage))
    if kind == "message_stop":
        return DONE
    if kind == "error" or frame.error is not None:
        return Said(error=error_text(frame) or "the server reported an error")
    return NOTHING


def read_response_object(response: object, *, answer: bool) -> Said:
    """The `response` of the responses protocol's last event, and the whole body of a call that wasn't streamed."""
    if not isinstance(response, dict):
        return Said(malformed="the response isn't an object")
    error = response.get("error")
    message = message_of(error)
    if message is None and response.get("status") == "failed":
        message = "the server reported a failure"
    return Said(
        answer=answer,
        finish_reason=reason_of(response.get("status")),
        usage=read_usage(response.get("usage")),
        times=read_times(response.get("metrics")),
        error=message,
        done=True,
    )
