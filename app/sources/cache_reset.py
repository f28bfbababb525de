"""Has a server empty its prefix cache: `POST /reset_prefix_cache`, which vLLM has only in its development mode."""

import httpx
import msgspec

from ..errors import PrefixScopeError
from ..ids import ServerId
from .http_reading import read_http

PATH = "/reset_prefix_cache"
TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 64 * 1024


class ResetRefused(PrefixScopeError):
    """The server has no such endpoint, or answered with an error."""

    status = 502
    code = "reset_refused"


async def reset_prefix_cache(http: httpx.AsyncClient, server: ServerId, api_key: str | None) -> bool:
    """Whether the cache is empty now: while blocks are in use a server refuses, with status 200 and `success` false.

    Raises ResetRefused where the server doesn't offer it, and what `read_http` raises where it can't be reached.
    """
    reading = await read_http(
        http, server, PATH, api_key=api_key, timeout_s=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES, json_body=b""
    )
    if reading.status in (404, 405):
        raise ResetRefused(
            f"{server} doesn't offer {PATH}.", hint="Start vLLM with VLLM_SERVER_DEV_MODE=1 in its environment."
        )
    if reading.status in (401, 403):
        raise ResetRefused(f"{server}{PATH} needs the API key.", hint="Set PREFIXSCOPE_VLLM_API_KEY to the server's.")
    if reading.status != 200:
        raise ResetRefused(f"{server}{PATH} answers with HTTP {reading.status}.", hint="The server's log says why.")
    return _success(reading.body)


def _success(body: bytes) -> bool:
    """Older servers answer 200 without a body once it is done."""
    try:
        answer = msgspec.json.decode(body) if body.strip() else {}
    except msgspec.DecodeError:
        return True
    return not isinstance(answer, dict) or answer.get("success") is not False
