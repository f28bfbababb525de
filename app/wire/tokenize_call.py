"""The body for a server's `/tokenize` from the body of a request, with the request's own JSON text field by field.

Nothing of what decides the prompt is re-serialised, so that key order, numbers and escapes are those that the server
saw in the request itself. Imports only `errors`.
"""

from typing import NamedTuple

import msgspec

from ..errors import DecodeError

CHAT_PATH = "/v1/chat/completions"
COMPLETIONS_PATH = "/v1/completions"
_CHAT_FIELDS = (
    "model", "messages", "tools", "chat_template", "add_generation_prompt", "continue_final_message",
    "add_special_tokens", "media_io_kwargs", "mm_processor_kwargs",
)  # fmt: skip
_COMPLETION_FIELDS = ("model", "prompt", "add_special_tokens")
_TEMPLATE_FIELDS = ("documents", "reasoning_effort")
"""Fields of a chat that reach the template as if they were in `chat_template_kwargs`."""

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_prompt = msgspec.json.Decoder(str | list[int | str | list[int]])
_encoder = msgspec.json.Encoder()


class TokenStrings(NamedTuple):
    """Token ids, and the vocabulary's own string of each; None from servers that don't tell (before 0.10)."""

    token_ids: tuple[int, ...]
    strings: tuple[str, ...] | None


def tokenize_call(path: str, body: bytes) -> bytes | tuple[int, ...] | None:
    """What to post to `/tokenize`; the token ids themselves where the request gives them; None where neither fits.

    One prompt only: of several, each has its own blocks. Raises DecodeError where `body` isn't a JSON object.
    """
    try:
        fields = _object.decode(body)
        if path == COMPLETIONS_PATH:
            return _completion_call(fields)
        return _chat_call(fields) if path == CHAT_PATH and "messages" in fields else None
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise DecodeError(f"A request body that can't be tokenised: {str(error)[:200]}") from None


def with_strings(call: bytes) -> bytes:
    """A call for `/tokenize` that asks for the vocabulary's own strings, too."""
    return call[:-1] + b',"return_token_strs":true}'


def text_call(text: str) -> bytes:
    """A call that tokenises a rendered text as it stands, its special tokens included, and asks for the strings."""
    return _encoder.encode({"prompt": text, "add_special_tokens": False, "return_token_strs": True})


def strings_answer(body: bytes) -> TokenStrings:
    """Token ids and their strings in an answer of `/tokenize`. Raises DecodeError where there are none."""
    try:
        answer = _strings_answer.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise DecodeError(f"An answer of /tokenize that can't be read: {str(error)[:200]}") from None
    strings = answer.token_strs
    if strings is None or len(strings) != len(answer.tokens):
        return TokenStrings(tuple(answer.tokens), None)
    return TokenStrings(tuple(answer.tokens), tuple(strings))


def tokenize_answer(body: bytes) -> tuple[int, ...]:
    """The token ids in an answer of `/tokenize`. Raises DecodeError where there are none."""
    try:
        return tuple(_token_answer.decode(body).tokens)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise DecodeError(f"An answer of /tokenize that can't be read: {str(error)[:200]}") from None


def detokenize_answer(body: bytes) -> str:
    """The text in an answer of `/detokenize`. Raises DecodeError where there is none."""
    try:
        return _text_answer.decode(body).prompt
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise DecodeError(f"An answer of /detokenize that can't be read: {str(error)[:200]}") from None


def _chat_call(fields: dict[str, msgspec.Raw]) -> bytes:
    call = {name: fields[name] for name in _CHAT_FIELDS if name in fields}
    template = {name: fields[name] for name in _TEMPLATE_FIELDS if name in fields and bytes(fields[name]) != b"null"}
    kwargs = fields.get("chat_template_kwargs")
    if template:
        own = {} if kwargs is None or bytes(kwargs) == b"null" else _object.decode(kwargs)
        if "reasoning_effort" in template and "enable_thinking" not in own:
            thinks = bytes(template["reasoning_effort"]) != b'"none"'
            template["enable_thinking"] = msgspec.Raw(b"true" if thinks else b"false")
        kwargs = msgspec.Raw(_encoder.encode(own | template))
    if kwargs is not None:
        call["chat_template_kwargs"] = kwargs
    return _encoder.encode(call)


def _completion_call(fields: dict[str, msgspec.Raw]) -> bytes | tuple[int, ...] | None:
    if "prompt" not in fields:
        return None
    prompt = _prompt.decode(fields["prompt"])
    if isinstance(prompt, list):
        token_ids = tuple(item for item in prompt if isinstance(item, int))
        if token_ids:
            return token_ids if len(token_ids) == len(prompt) else None
        if len(prompt) != 1:
            return None
        (only,) = prompt
        if isinstance(only, list):
            return tuple(only)
        fields["prompt"] = msgspec.Raw(_encoder.encode(only))
    return _encoder.encode({name: fields[name] for name in _COMPLETION_FIELDS if name in fields})


class _StringsAnswer(msgspec.Struct):
    tokens: list[int]
    token_strs: list[str] | None = None


class _TokenAnswer(msgspec.Struct):
    tokens: list[int]


class _TextAnswer(msgspec.Struct):
    prompt: str


_strings_answer = msgspec.json.Decoder(_StringsAnswer)
_token_answer = msgspec.json.Decoder(_TokenAnswer)
_text_answer = msgspec.json.Decoder(_TextAnswer)
