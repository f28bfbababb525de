"""A client of the server's own tokenizer: `/tokenize` and `/detokenize`. No other tokenizer is ever used.

One call at a time, so that looking costs the server little; what is too large, too slow or refused is None.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import httpx
import msgspec

from ..errors import PrefixScopeError
from ..ids import ServerId
from ..wire.tokenize_call import (
    TokenStrings,
    detokenize_answer,
    strings_answer,
    text_call,
    tokenize_answer,
    tokenize_call,
    with_strings,
)
from .clock import Clock, SystemClock
from .http_reading import read_http

TIMEOUT_S = 10.0
MAX_WAITING = 64
"""Calls that wait for their turn; further ones are None at once."""
MISSING_S = 30.0
"""How long a server that has no tokenizer isn't asked again."""
OFF_LOOP_BYTES = 128 * 1024
MAX_ANSWER_FACTOR = 16
"""A token id takes more text than the characters it stands for; an answer beyond this is refused."""

Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class TokenizerClient:
    """Asks `server`. `max_bytes` bounds the request bodies whose prompts are tokenised."""

    def __init__(
        self,
        server: ServerId,
        http: httpx.AsyncClient,
        api_key: str | None,
        max_bytes: int,
        *,
        clock: Clock | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._server = server
        self._http = http
        self._api_key = api_key
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._missing_until_s: dict[str, float] = {}

    async def tokenize(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """Token ids of the prompt of a request to `path`; None where the server has no tokenizer, or no answer."""
        if len(body) > self._max_bytes:
            return None
        try:
            call = await _sized(tokenize_call, path, body)
        except PrefixScopeError:
            return None
        if call is None or isinstance(call, tuple):
            return call
        return await self._ask("/tokenize", call, tokenize_answer)

    async def tokenize_with_strings(self, path: str, body: bytes) -> TokenStrings | None:
        """As `tokenize`, with the vocabulary's own string of each token; None where the request gives token ids."""
        if len(body) > self._max_bytes:
            return None
        try:
            call = await _sized(tokenize_call, path, body)
        except PrefixScopeError:
            return None
        if call is None or isinstance(call, tuple):
            return None
        return await self._ask("/tokenize", with_strings(call), strings_answer)

    async def strings_of(self, token_ids: Sequence[int]) -> tuple[str, ...] | None:
        """The vocabulary's own strings of tokens; None where the server doesn't tell, or where the text of the tokens
        would be cut into other ones, as between two halves of a glyph."""
        text = await self.detokenize(token_ids)
        if text is None:
            return None
        told = await self._ask("/tokenize", text_call(text), strings_answer)
        return told.strings if told is not None and told.token_ids == tuple(token_ids) else None

    async def detokenize(self, token_ids: Sequence[int]) -> str | None:
        """The text of `token_ids`; None where the server has no tokenizer, or no answer."""
        call = msgspec.json.encode({"tokens": token_ids})
        return await self._ask("/detokenize", call, detokenize_answer) if len(call) <= self._max_bytes else None

    async def _ask(self, path: str, call: bytes, read: Callable[[bytes], Result]) -> Result | None:
        if self._waiting >= MAX_WAITING or self._clock.monotonic() < self._missing_until_s.get(path, 0.0):
            return None
        self._waiting += 1
        try:
            async with self._turn:
                reading = await read_http(
                    self._http, self._server, path, api_key=self._api_key, timeout_s=self._timeout_s,
                    max_bytes=self._max_bytes * MAX_ANSWER_FACTOR, json_body=call,
                )  # fmt: skip
            # An unknown model is a 404 too, with an error object; it says nothing about the next call.
            if reading.status in (404, 405, 501) and b'"error"' not in reading.body:
                self._missing_until_s[path] = self._clock.monotonic() + MISSING_S
                logger.info("tokenizer: %s has no %s", self._server, path)
            return await _sized(read, reading.body) if reading.status == 200 else None
        except PrefixScopeError as error:
            logger.debug("tokenizer: %s", error.message)
            return None
        finally:
            self._waiting -= 1


async def _sized(work: Callable[..., Result], *arguments: str | bytes) -> Result:
    """Runs `work` in a thread where its last argument is large."""
    if len(arguments[-1]) <= OFF_LOOP_BYTES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
