"""Facts of a request body that decide how it is counted and joined. The body itself is never changed here.

Every field is read on its own and tolerantly: what isn't as expected is as if it weren't there, and a body that isn't
a JSON object gives `NO_FACTS`; the server says what is wrong with it. A cache salt leaves only as a keyed digest, and
text only as a short label, where the caller asks for it. Rules on when vLLM skips its cache lookup are those of
`SamplingParams` in vLLM 0.32. Imports only `ids` and `salt`.
"""

from typing import Any

import msgspec

from ..ids import SaltDigest
from .salt import salt_digest

LABEL_CHARS = 120
MODEL_CHARS = 200
"""Of a model's name, the start is kept: a request may say anything there."""
MEDIA_PARTS = frozenset(
    {"image_url", "input_image", "image", "image_pil", "image_embeds", "video_url", "audio_url", "input_audio"}
)


class BodyFacts(msgspec.Struct, frozen=True):
    """What a request body says of itself. A None is "didn't say".

    sequences: `n` times the number of prompts. has_images: it carries images, video or sound, whose tokens are all the
    same placeholder. names_session: it carries a session id of the client's own.
    prompt_token_ids: the prompt, where it was given as the token ids of one sequence.
    wants_usage: a stream's usage frame was asked for. wants_token_ids: `return_token_ids` is on.
    wants_full_report: reused blocks are to be announced in KV events too.
    transfers_kv: its KV cache is to be fetched from a prefill node; a request that is to fill one fetches nothing.
    """

    is_object: bool = False
    model: str | None = None
    stream: bool = False
    max_tokens: int | None = None
    sequences: int = 1
    salt: SaltDigest | None = None
    skips_cache_read: bool = False
    has_images: bool = False
    names_session: bool = False
    prompt_token_ids: tuple[int, ...] | None = None
    wants_usage: bool = False
    wants_token_ids: bool = False
    wants_full_report: bool = False
    transfers_kv: bool = False
    label: str | None = None


NO_FACTS = BodyFacts()


class _Body(msgspec.Struct):
    model: Any = None
    stream: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None
    n: Any = None
    cache_salt: Any = None
    echo: Any = None
    logprobs: Any = None
    prompt_logprobs: Any = None
    prompt_logprob_token_ids: Any = None
    session_id: Any = None
    return_token_ids: Any = None
    stream_options: Any = None
    vllm_xargs: Any = None
    kv_transfer_params: Any = None
    messages: msgspec.Raw = msgspec.Raw()
    prompt: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()


class _Part(msgspec.Struct):
    type: Any = None
    text: Any = None


class _Message(msgspec.Struct):
    role: Any = None
    content: str | list[_Part | str] | None = None


_decode_body = msgspec.json.Decoder(_Body).decode
_decode_messages = msgspec.json.Decoder(list[_Message]).decode
_decode_ids = msgspec.json.Decoder(tuple[int, ...]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_body_facts(body: bytes, salt_key: bytes, *, with_label: bool = False) -> BodyFacts:
    """The facts of `body`. `salt_key` keys the digest of its salt; `label` is read only where `with_label` says so."""
    try:
        fields = _decode_body(body)
    except _UNREADABLE:
        return NO_FACTS
    prompts, token_ids = _prompts(memoryview(fields.prompt))
    messages = _messages(memoryview(fields.messages)) or _messages(memoryview(fields.input))
    xargs = _dict(fields.vllm_xargs)
    return BodyFacts(
        is_object=True,
        model=(_text(fields.model) or "")[:MODEL_CHARS] or None,
        stream=fields.stream is True,
        max_tokens=_count(fields.max_completion_tokens, fields.max_tokens, fields.max_output_tokens),
        sequences=(_count(fields.n) or 1) * prompts,
        salt=salt_digest(salt_key, fields.cache_salt) if _text(fields.cache_salt) else None,
        skips_cache_read=_skips_cache_read(fields),
        has_images=any(part.type in MEDIA_PARTS for part in _parts(messages) if isinstance(part.type, str)),
        names_session=_text(fields.session_id) is not None or _text(xargs.get("session_id")) is not None,
        prompt_token_ids=token_ids,
        wants_usage=_dict(fields.stream_options).get("include_usage") is True,
        wants_token_ids=fields.return_token_ids is True,
        transfers_kv=_transfers_kv(_dict(fields.kv_transfer_params)),
        wants_full_report=xargs.get("kv_cache_report_mode") == "full",
        label=_label(fields, messages) if with_label else None,
    )


def _skips_cache_read(fields: _Body) -> bool:
    """Logits of the prompt itself are wanted, so none of it may come from the cache: any `prompt_logprobs`, 0 too.

    With `echo` it takes the value of `logprobs` (completions) or `top_logprobs` (chat, there 0 where it isn't given).
    """
    if fields.prompt_logprobs is not None or fields.prompt_logprob_token_ids is not None:
        return True
    return fields.echo is True and (fields.logprobs is not None or len(memoryview(fields.messages)) > 0)


def _transfers_kv(params: dict[str, Any]) -> bool:
    """A prefill node is told `do_remote_decode`; what else has transfer parameters is told where its cache lies."""
    return bool(params) and params.get("do_remote_decode") is not True


def _prompts(raw: memoryview) -> tuple[int, tuple[int, ...] | None]:
    """How many prompts a `prompt` field holds, and its token ids where it is one prompt of ids."""
    inner = bytes(raw[1:64]).lstrip() if bytes(raw[:1]) == b"[" else b""
    try:
        if not inner or inner[:1] == b"]":
            return 1, None
        if inner[:1] in b"0123456789":
            return 1, _decode_ids(raw)
        items = _decode_items(raw)
        return len(items), _decode_ids(items[0]) if len(items) == 1 and inner[:1] == b"[" else None
    except _UNREADABLE:
        return 1, None


def _messages(raw: memoryview) -> list[_Message]:
    try:
        return _decode_messages(raw) if bytes(raw[:1]) == b"[" else []
    except _UNREADABLE:
        return []


def _parts(messages: list[_Message]) -> list[_Part]:
    return [
        part
        for message in messages
        if isinstance(message.content, list)
        for part in message.content
        if isinstance(part, _Part)
    ]


def _label(fields: _Body, messages: list[_Message]) -> str | None:
    """The start of the last user message, or of the prompt; one line of at most `LABEL_CHARS` characters."""
    for message in reversed(messages):
        if message.role == "user":
            content = message.content
            if isinstance(content, list):
                texts = [part if isinstance(part, str) else _text(part.text) for part in content]
                content = " ".join(text for text in texts if text)
            return _one_line(content)
    for raw in (memoryview(fields.prompt), memoryview(fields.input)):
        try:
            if bytes(raw[:1]) == b'"':
                return _one_line(_decode_text(raw))
        except _UNREADABLE:
            return None
    return None


def _one_line(text: str | None) -> str | None:
    line = " ".join((text or "")[: 8 * LABEL_CHARS].split())
    return (line if len(line) <= LABEL_CHARS else line[: LABEL_CHARS - 1] + "…") or None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(*values: object) -> int | None:
    return next((value for value in values if type(value) is int and value >= 0), None)
