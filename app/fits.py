"""Keeps the fit of each server's first-token times up to date, off the event loop, and only where samples came."""

import asyncio
from collections.abc import Callable

from .ids import ServerId
from .model.ledger import Ledger
from .observations import Observation, TtftFitted
from .sources.clock import Clock
from .why.fit import fit_line

INTERVAL_S = 2.0


class FitKeeper:
    """One task a dashboard."""

    def __init__(self, ledger: Ledger, emit: Callable[[Observation], None], clock: Clock) -> None:
        self._ledger = ledger
        self._emit = emit
        self._clock = clock
        self._fitted: dict[ServerId, int] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.refit()
            await asyncio.sleep(INTERVAL_S)

    async def refit(self) -> None:
        """Fits the servers that have new samples."""
        for server in list(self._ledger.state.servers.values()):
            if server.ttft.taken == self._fitted.get(server.id, 0):
                continue
            self._fitted[server.id] = server.ttft.taken
            fit = await asyncio.to_thread(fit_line, tuple(server.ttft.samples))
            if fit is not None:
                self._emit(TtftFitted(server.id, *fit, at_s=self._clock.monotonic()))
