"""How often one client may ask: an allowance a client at the setting's rate, asked before anything else.

The bare ASGI layer stands before the guard, so that guessing tokens costs as much as asking with the right one.
"""

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import PrefixScopeError
from ..sources.allowance import Allowance
from ..sources.clock import Clock
from .client_address import ClientAddresses
from .guard import SAFE_METHODS

BURST_S = 5.0
"""A client that was silent may ask at once what it may in so many seconds."""
MAX_CLIENTS_WATCHED = 10_000
"""Of more, those seen longest ago are forgotten."""
Answer = Callable[[Send, PrefixScopeError], Awaitable[None]]


class TooManyRequests(PrefixScopeError):
    """One client asks more often than the settings allow."""

    status = 429
    code = "rate_limited"


class Rate:
    """`per_s` requests a second a client. Pure; times are monotonic seconds."""

    def __init__(self, per_s: float, max_clients: int = MAX_CLIENTS_WATCHED) -> None:
        self._per_s = per_s
        self._burst = max(per_s * BURST_S, 1.0)
        self._max_clients = max_clients
        self._clients: OrderedDict[str, Allowance] = OrderedDict()
        """The client seen last is last."""

    def __len__(self) -> int:
        """Clients that are watched."""
        return len(self._clients)

    def take(self, client: str, at_s: float) -> float:
        """Takes one request of the client's; 0 where it may be made now, else the seconds to wait."""
        allowance = self._clients.pop(client, None) or Allowance(self._per_s, self._burst, at_s)
        self._clients[client] = allowance
        if len(self._clients) > self._max_clients:
            self._clients.popitem(last=False)
        return allowance.take(at_s)


class LimitedRate:
    """Answers with 429 whoever asks `app` too often. `only_changes`: what only reads is not counted."""

    def __init__(
        self,
        app: ASGIApp,
        per_s: float,
        setting: str,
        addresses: ClientAddresses,
        clock: Clock,
        answer: Answer,
        *,
        only_changes: bool,
    ) -> None:
        self._app = app
        self._rate = Rate(per_s)
        self._per_s = per_s
        self._setting = setting
        self._addresses = addresses
        self._clock = clock
        self._answer = answer
        self._only_changes = only_changes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, or the lifespan."""
        if scope["type"] == "http" and not (self._only_changes and scope["method"] in SAFE_METHODS):
            wait_s = self._rate.take(self._addresses.of(scope), self._clock.monotonic())
            if wait_s:
                error = TooManyRequests(
                    f"More than {self._per_s:g} requests a second came from this address",
                    hint=f"Wait {math.ceil(wait_s)} s, or raise {self._setting}.",
                )
                error.retry_after_s = wait_s
                await self._answer(send, error)
                return
        await self._app(scope, receive, send)
