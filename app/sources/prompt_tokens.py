"""Asks a server for the tokens of prompts whose responses don't carry them: after the send, one at a time, in bounds.

Tokenising costs the server time too. Under load, requests beyond the budget go without exact tokens rather than slow
anyone down: a burst is served at once, then so many a second; the oldest that still wait are dropped.
"""

import asyncio
import logging
from collections import deque
from typing import NamedTuple, Protocol

from ..ids import RequestId, ServerId
from ..observations import Malformed, RequestPromptTokens
from .allowance import Allowance
from .clock import Clock
from .response_tap import Emit

BURST = 32
RATE_PER_S = 20.0
MAX_WAITING = 64
TIMEOUT_S = 30.0

logger = logging.getLogger(__name__)


class Tokenizer(Protocol):
    """The server's own tokenizer: `TokenizerClient`."""

    async def tokenize(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """The token ids of the prompt of a request to `path`; None where the server gave no answer."""
        ...


class _Waiting(NamedTuple):
    request: RequestId
    path: str
    body: bytes


class PromptTokens:
    """The queue of prompts to tokenise, and the task that works it off while there is work."""

    def __init__(
        self,
        server: ServerId,
        tokenizer: Tokenizer,
        emit: Emit,
        clock: Clock,
        max_body_bytes: int,
        rate_per_s: float = RATE_PER_S,
    ) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self._emit = emit
        self._clock = clock
        self._max_body_bytes = max_body_bytes
        self._waiting: deque[_Waiting] = deque(maxlen=MAX_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._allowance = Allowance(rate_per_s, BURST, clock.monotonic())

    def ask(self, request: RequestId, path: str, body: bytes) -> None:
        """Queues a prompt; its tokens follow as an observation, if at all. Larger bodies than allowed are left out."""
        if len(body) > self._max_body_bytes:
            return
        self._waiting.append(_Waiting(request, path, body))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="prompt tokens")

    async def close(self) -> None:
        """Ends the task."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        try:
            while self._waiting:
                wait_s = self._allowance.take(self._clock.monotonic())
                if wait_s:
                    # A timer may fire a little early.
                    await asyncio.sleep(wait_s + 0.001)
                    continue
                waiting = self._waiting.popleft()
                token_ids = await self._tokens_of(waiting)
                if token_ids:
                    self._emit(RequestPromptTokens(waiting.request, token_ids, "tokenize", self._clock.monotonic()))
        finally:
            self._task = None

    async def _tokens_of(self, waiting: _Waiting) -> tuple[int, ...] | None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._tokenizer.tokenize(waiting.path, waiting.body)
        except TimeoutError:
            logger.info("prompt tokens: the server's tokenizer took longer than %g s for one prompt", TIMEOUT_S)
        except Exception as error:  # The outer edge of a task. The error's own words may have the prompt in them.
            name = type(error).__name__
            logger.error("prompt tokens: asking for them failed: %s", name)
            at_s = self._clock.monotonic()
            detail = f"asking for the prompt's tokens failed: {name}"
            self._emit(Malformed(self._server, "tokenize", detail, at_s, request=waiting.request))
        return None
