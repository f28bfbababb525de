"""One tiny request straight to the server, and what its answer says of what the server tells.

It costs the server a prefill of about two blocks, which stay in its cache until they are evicted; --no-ask avoids it.
"""

import secrets
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from ..errors import PrefixScopeError
from ..ids import ServerId
from ..sources.http_reading import read_http

PATH = "/v1/completions"
TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 1024 * 1024
MAX_WORDS = 2048


@dataclass(frozen=True, slots=True)
class Answer:
    """A None is "can't be told". filled_a_block: at least one full block must have been stored."""

    usage_details: bool | None = None
    request_metrics: bool | None = None
    filled_a_block: bool = False


async def ask(
    http: httpx.AsyncClient, server: ServerId, api_key: str | None, model: str, block_size: int | None
) -> Answer:
    """Asks for one token after a prompt that nobody else has, and again where the first answer isn't clear.

    Some releases leave the cached tokens out while they are 0, so a second, warm answer tells.
    """
    words = min(2 * (block_size or 16) + 2, MAX_WORDS)
    prompt = " ".join(secrets.token_hex(1) for _ in range(words))
    call = msgspec.json.encode({"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0})
    answer = await _once(http, server, api_key, call, block_size)
    if answer.usage_details is False and answer.filled_a_block:
        answer = await _once(http, server, api_key, call, block_size)
    return answer


async def _once(
    http: httpx.AsyncClient, server: ServerId, api_key: str | None, call: bytes, block_size: int | None
) -> Answer:
    try:
        reading = await read_http(
            http, server, PATH, api_key=api_key, timeout_s=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES, json_body=call
        )
        body = msgspec.json.decode(reading.body) if reading.status == 200 else None
    except (PrefixScopeError, msgspec.DecodeError):
        return Answer()
    return read_answer(body, block_size)


def read_answer(body: Any, block_size: int | None) -> Answer:
    """What a completion's body, decoded, says."""
    if not isinstance(body, dict) or not isinstance(usage := body.get("usage"), dict):
        return Answer()
    details = usage.get("prompt_tokens_details")
    said = isinstance(details, dict) and details.get("cached_tokens") is not None
    length = usage.get("prompt_tokens")
    filled = isinstance(length, int) and block_size is not None and length > block_size
    return Answer(said, isinstance(body.get("metrics"), dict), filled)
