"""What a context can hold, and what is said when it is too much, in vLLM's words. Pure."""

from .fields import invalid
from .sampling import Sampling
from .tokenizer import MAX_CHARS_PER_TOKEN


def check_chars(chars: int, max_model_len: int) -> None:
    """Raises ApiError for a text that is too long for any tokenizer, before one is asked."""
    most = max_model_len * MAX_CHARS_PER_TOKEN
    if chars > most:
        raise invalid(
            "input_text",
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"{chars} characters (more than {most} characters, which is the upper bound for {max_model_len} "
            "input tokens). Please reduce the length of the input prompt.",
            chars,
            show_value=True,
        )


def check_length(tokens: int, max_model_len: int) -> None:
    """Raises ApiError for a prompt that is longer than the context."""
    if tokens > max_model_len:
        # vLLM stops counting one token past the limit, and says so.
        counted = max_model_len + 1
        raise invalid(
            "input_tokens",
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"at least {counted} input tokens, which exceeds this limit even without any output "
            "tokens. Please reduce the length of the input prompt.",
            counted,
            show_value=True,
        )


def max_tokens_of(sampling: Sampling, prompt_tokens: int, max_model_len: int) -> int:
    """How long the answer may get: what was asked for, and no more than the context has room for.

    Raises ApiError where that is less than one token, and for a wish beyond the whole context.
    """
    asked, param = sampling.max_tokens, sampling.max_tokens_param
    if asked is not None and asked > max_model_len:
        message = (
            f"{param}={asked} cannot be greater than max_model_len={max_model_len}. Please request fewer output tokens."
        )
        raise invalid(param, message, asked, show_value=True)
    room = max_model_len - prompt_tokens
    max_tokens = room if asked is None else min(asked, room)
    if max_tokens < 1:
        raise invalid("max_tokens", f"max_tokens must be at least 1, got {max_tokens}.", max_tokens, show_value=True)
    return max_tokens
