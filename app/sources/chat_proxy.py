"""The proxy in front of one server: its connections, its limits, and the ids of its requests."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import Overloaded
from ..events import ServerRecord
from ..ids import RequestId, ServerId
from ..settings import Settings
from ..wire.salt import KEY_BYTES
from .body_reader import BodyReader
from .clock import Clock
from .exchange import Exchange
from .prompt_tokens import PromptTokens, Tokenizer
from .proxied_request import ProxyParts
from .proxy_call import Call
from .response_tap import Emit
from .upstream import Upstream
from .upstream_pool import HttpUpstream


class ChatProxy:
    """The proxy in front of one server: its connections, its limits, and the ids of its requests."""

    def __init__(
        self,
        server: ServerId,
        settings: Settings,
        emit: Emit,
        clock: Clock,
        server_record: Callable[[], ServerRecord | None],
        tokenizer: Tokenizer,
        *,
        salt_key: bytes | None = None,
        upstream: Upstream | None = None,
    ) -> None:
        """`salt_key` keys the digests of cache salts; to compare them with KV events', both need the same."""
        self.settings = settings
        self.clock = clock
        self.upstream = upstream or HttpUpstream(server, clock, settings.connect_timeout_s, settings.read_timeout_s)
        self.body_reader = BodyReader(settings.max_waiting_bodies)
        self.prompt_tokens = PromptTokens(
            server, tokenizer, emit, clock, settings.max_tokenize_bytes, settings.max_tokenize_per_s
        )
        self._parts = ProxyParts(
            server, settings, emit, clock, server_record, self.upstream, self.prompt_tokens, self.body_reader,
            salt_key or secrets.token_bytes(KEY_BYTES), self._later,
        )  # fmt: skip
        self.active = 0
        self._run = secrets.token_hex(4)
        self._requests = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def enter(self) -> float:
        """Takes one of `max_streams` places; `leave` gives it back. Raises Overloaded where all are taken.

        Returns the moment, by the clock's monotonic seconds.
        """
        if self.active >= self.settings.max_streams:
            raise Overloaded(
                f"{self.active} requests are being proxied, which is the most that is allowed",
                hint="Try again in a second, or raise max_streams.",
            )
        self.active += 1
        return self.clock.monotonic()

    def leave(self) -> None:
        """The end of what `enter` began."""
        self.active -= 1

    def open(self, call: Call) -> Exchange:
        """An exchange for `call`, not yet sent."""
        self._requests += 1
        return Exchange(self._parts, call, RequestId(f"r-{self._run}-{self._requests}"))

    async def close(self) -> None:
        """Ends background work and closes idle connections."""
        await self.prompt_tokens.close()
        await self.body_reader.close()
        await asyncio.gather(*self._tasks)
        await self.upstream.close()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="end of an exchange")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


__all__ = ["Call", "ChatProxy", "Exchange"]
