"""Tells how one event stream stands: an observation and a log line a change, none without one."""

import logging
from collections.abc import Callable
from typing import Literal

from ..ids import Rank, ServerId
from ..observations import KvStreamState, Observation, StreamFault
from .clock import Clock

StreamState = Literal["connecting", "connected", "disconnected", "off"]
logger = logging.getLogger(__name__)


class KvStates:
    """The state that was told last, as `current`; None before the first."""

    def __init__(self, server: ServerId, rank: Rank, emit: Callable[[Observation], None], clock: Clock) -> None:
        self._server = server
        self._rank = rank
        self._emit = emit
        self._clock = clock
        self._told: tuple[object, ...] = ()
        self.current: StreamState | None = None

    def tell(
        self,
        state: StreamState,
        endpoint: str | None,
        message: str | None,
        replay: bool | None,
        fault: StreamFault | None = None,
    ) -> None:
        """`message` says what is wrong and what to do, `fault` which of the known faults it is; `replay` whether there
        is a replay, None while that is open."""
        told = (state, message, replay)
        if told == self._told:
            return
        self._told, self.current = told, state
        if message is not None:
            logger.warning("kv events, rank %d: %s", self._rank, message)
        now = self._clock.monotonic()
        self._emit(KvStreamState(self._server, self._rank, state, endpoint, message, now, replay, fault))
