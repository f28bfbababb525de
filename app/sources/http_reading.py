"""One small HTTP reading of a server, bounded in time and size, with every failure mapped to the project's errors.

The scraper, the probe and the tokenizer share it. A key is sent, and never becomes part of a message.
"""

import asyncio
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx

from ..errors import DecodeError, PrefixScopeError, Unreachable, UpstreamTimeout
from ..ids import ServerId

START_ADVICE = "Start vLLM there, or correct the address."


class HttpReading(NamedTuple):
    """A complete response; `content_type` is "" where there is none."""

    status: int
    content_type: str
    body: bytes


async def read_http(
    http: httpx.AsyncClient,
    server: ServerId,
    path: str,
    *,
    api_key: str | None,
    timeout_s: float,
    max_bytes: int,
    json_body: bytes | None = None,
    accept: str = "application/json",
) -> HttpReading:
    """GET, or POST where `json_body` is given. Any status is an answer.

    Raises UpstreamTimeout where the whole takes longer than `timeout_s`, Unreachable where there is no answer, and
    DecodeError where the answer is longer than `max_bytes` or isn't HTTP.
    """
    # Compressing costs the server more than the bytes cost a network that is this near.
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    if json_body is not None:
        headers["Content-Type"] = "application/json"
    method = "GET" if json_body is None else "POST"
    _check_port(server)
    try:
        async with (
            asyncio.timeout(timeout_s),
            http.stream(method, f"{server}{path}", headers=headers, content=json_body) as response,
        ):
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > max_bytes:
                    raise DecodeError(f"{path} answers with more than {max_bytes} bytes.")
            return HttpReading(response.status_code, response.headers.get("content-type", ""), bytes(body))
    except (TimeoutError, httpx.TimeoutException, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise _mapped(error, server, path, timeout_s) from None


def _check_port(server: ServerId) -> None:
    """The transport raises a group of overflow errors for a port beyond 65535."""
    try:
        _ = urlsplit(server).port
    except ValueError:
        raise _unusable(server) from None


def _unusable(server: ServerId) -> Unreachable:
    return Unreachable(f"{server} is no usable address. Give it as http://HOST:PORT.")


def _mapped(error: Exception, server: ServerId, path: str, timeout_s: float) -> PrefixScopeError:
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        if isinstance(error, httpx.ConnectTimeout):
            return UpstreamTimeout(f"{server} can't be reached: no connection in time. Check address and firewall.")
        return UpstreamTimeout(f"{server}{path} didn't answer within {timeout_s:g} s.")
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return _unusable(server)
    if isinstance(error, httpx.DecodingError | httpx.RemoteProtocolError | httpx.LocalProtocolError):
        return DecodeError(f"{server}{path} broke off or isn't HTTP.")
    if isinstance(error, httpx.ConnectError | ConnectionRefusedError):
        return Unreachable(f"Nothing answers at {server}. {START_ADVICE}")
    return Unreachable(f"The connection to {server} broke ({type(error).__name__}).")
