"""The doctor of a running dashboard: what it knows of its servers anyway, and whether each still tokenises."""

import asyncio
from collections.abc import Mapping

import httpx

from ..events import ServerRecord
from ..ids import ServerId
from ..model.ledger import Ledger
from ..sources.clock import Clock
from .examine import exposed_streams, tokenize_works
from .facts import facts_of, request_metrics_of
from .findings import Diagnosis, diagnose

REQUESTS = 200
"""The newest requests that are looked at for the server's own times."""
TOKENIZE_KNOWN_FOR_S = 10.0


class LiveDoctor:
    """`clients`: the HTTP client of each server that is watched, in the order in which they are shown."""

    def __init__(
        self, clients: Mapping[ServerId, httpx.AsyncClient], ledger: Ledger, api_key: str | None, clock: Clock
    ) -> None:
        self._clients = clients
        self._ledger = ledger
        self._api_key = api_key
        self._clock = clock
        self._tokenizes: dict[ServerId, tuple[float, bool]] = {}
        self._turn = asyncio.Lock()

    async def diagnoses(self) -> list[Diagnosis]:
        """One a server. A server is asked to tokenise a letter, at most every `TOKENIZE_KNOWN_FOR_S`."""
        async with self._turn:
            return list(await asyncio.gather(*map(self._diagnosis, self._clients)))

    async def _diagnosis(self, server: ServerId) -> Diagnosis:
        record = self._ledger.server(server) or ServerRecord(server)
        tokenize = await self._tokenize(record) if record.state == "up" else None
        newest, _ = self._ledger.requests(REQUESTS, None)
        told = request_metrics_of(summary.record for summary in newest if summary.record.server == server)
        return diagnose(
            facts_of(record, request_metrics=told, tokenize=tokenize, exposed=exposed_streams(record.streams))
        )

    async def _tokenize(self, record: ServerRecord) -> bool:
        known_s, known = self._tokenizes.get(record.id, (float("-inf"), False))
        now_s = self._clock.monotonic()
        if now_s - known_s < TOKENIZE_KNOWN_FOR_S:
            return known
        model = next(iter(record.models), "")
        works = await tokenize_works(self._clients[record.id], record.id, self._api_key, model)
        self._tokenizes[record.id] = (self._clock.monotonic(), works)
        return works
