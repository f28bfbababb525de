"""Reads a server's `/metrics` once per interval: at most one reading in flight, missed ticks are gaps.

A failure is an observation that says what to do; the last good values are the ledger's business.
"""

import asyncio
import logging
from collections.abc import Callable

import httpx

from ..errors import PrefixScopeError
from ..ids import ServerId
from ..observations import MetricsFailed, MetricsSampled, Observation
from ..wire.exposition import Exposition, KnownLabels, page_steps
from .backoff import Backoff
from .clock import Clock
from .http_reading import HttpReading, read_http

PATH = "/metrics"
ACCEPT = "text/plain; version=0.0.4, application/openmetrics-text; version=1.0.0; q=0.5"
MAX_PAGE_BYTES = 64 * 1024 * 1024
MAX_PAUSE_S = 1.5
"""Cap of the pauses after failures: a server that is back is read again within two seconds."""

logger = logging.getLogger(__name__)


class MetricsScraper:
    """Emits MetricsSampled or MetricsFailed for each reading. `timeout_s` bounds one reading, connecting included."""

    def __init__(
        self,
        server: ServerId,
        http: httpx.AsyncClient,
        emit: Callable[[Observation], None],
        clock: Clock,
        interval_s: float,
        timeout_s: float,
        api_key: str | None,
        max_page_bytes: int = MAX_PAGE_BYTES,
    ) -> None:
        self._max_page_bytes = max_page_bytes
        self._server = server
        self._http = http
        self._emit = emit
        self._clock = clock
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._api_key = api_key
        self._backoff = Backoff(min(interval_s, MAX_PAUSE_S), max(interval_s, MAX_PAUSE_S))
        self._known: KnownLabels = {}
        self._last_reason: str | None = None
        """Why the last reading failed; None after a good one and before the first."""

    async def run(self) -> None:
        """Reads until cancelled."""
        due = self._clock.monotonic()
        while True:
            if await self.scrape():
                self._backoff.reset()
                # On the grid of ticks: those that passed while the reading took its time are left out.
                late = self._clock.monotonic() - due
                due += self._interval_s * max(1, int(late // self._interval_s) + 1)
                await asyncio.sleep(max(0.0, due - self._clock.monotonic()))
            else:
                await asyncio.sleep(self._backoff.pause_s())
                due = self._clock.monotonic()

    def tell_failed(self, message: str) -> None:
        """For whoever runs this: `run` ended by a fault, and `message` says so to people."""
        self._failed(message, None)

    async def scrape(self) -> bool:
        """One reading, emitted; whether it was good."""
        status: int | None = None
        try:
            reading = await read_http(
                self._http, self._server, PATH, api_key=self._api_key, timeout_s=self._timeout_s,
                max_bytes=self._max_page_bytes, accept=ACCEPT,
            )  # fmt: skip
            status = reading.status
            exposition = await self._read(reading) if status == 200 else None
        except PrefixScopeError as error:
            return self._failed(error.message, None)
        if exposition is None or not exposition.engines:
            return self._failed(self._reason(status), status)
        self._note(None)
        self._emit(
            MetricsSampled(self._server, exposition.engines, self._clock.monotonic(), exposition.malformed_lines)
        )
        return True

    async def _read(self, reading: HttpReading) -> Exposition:
        """In short steps, so that a large page doesn't hold the event loop."""
        steps = page_steps(reading.body, reading.content_type, self._known)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                exposition: Exposition = done.value
                return exposition
            await asyncio.sleep(0)

    def _failed(self, reason: str, status: int | None) -> bool:
        self._note(reason)
        self._emit(MetricsFailed(self._server, reason, status, self._clock.monotonic()))
        return False

    def _reason(self, status: int) -> str:
        where = f"{self._server}{PATH}"
        if status in (401, 403):
            return f"{where} needs the API key (HTTP {status}). Set PREFIXSCOPE_VLLM_API_KEY to the server's key."
        if status == 404:
            return f"{where} doesn't exist. Is this a vLLM server? If so, start it without --disable-log-stats."
        if status == 200:
            return f"{where} has no metrics of vLLM. Is this a vLLM server, started without --disable-log-stats?"
        if status >= 500:
            return f"{where} answers with HTTP {status}. See the server's log; chat may work all the same."
        return f"{where} answers with HTTP {status} instead of a page of metrics."

    def _note(self, reason: str | None) -> None:
        """One log line a change."""
        if reason == self._last_reason:
            return
        if reason is not None:
            logger.warning("metrics: %s", reason)
        else:
            logger.info("metrics: %s%s is read again", self._server, PATH)
        self._last_reason = reason
