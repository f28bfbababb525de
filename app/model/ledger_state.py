"""What the ledger's parts share: servers, requests, and the events on their way out.

Imports only `ids`, `events` and its own package.
"""

from dataclasses import replace

from ..events import (
    Basis,
    Event,
    HitRateUpdated,
    Outgoing,
    RequestRecord,
    RequestSummary,
    ServerChanged,
    ServerRecord,
    StreamHealth,
)
from ..ids import Rank, ServerId
from .details import LedgerLimits
from .differences import find_differences
from .joining import Joiner
from .request_book import RequestBook
from .request_records import block_table, request_record
from .requests import Request
from .servers import ServerBook

RATES_EVERY_S = 0.1


class LedgerState:
    """One instance a ledger. `wall_offset_ms` turns `at_s` of the dashboard's clock into milliseconds of the epoch."""

    def __init__(self, limits: LedgerLimits, wall_offset_ms: float) -> None:
        self.limits = limits
        self.wall_offset_ms = wall_offset_ms
        self.servers: dict[ServerId, ServerBook] = {}
        self.requests = RequestBook(limits.max_requests)
        self.joiner = Joiner(self.requests)
        self.out: list[Outgoing] = []
        """Events to go out next."""

    def server(self, server: ServerId) -> ServerBook:
        """The server's book, opened where there is none."""
        book = self.servers.get(server)
        if book is None:
            book = self.servers[server] = ServerBook(server, self.limits, self.wall_offset_ms)
        return book

    def server_of(self, request: Request) -> ServerBook:
        """The book of the server that a request went to."""
        return self.server(request.sent.server)

    def emit(
        self,
        event: Event,
        at_s: float,
        server: ServerId | None = None,
        rank: Rank | None = None,
        basis: Basis | None = None,
    ) -> None:
        """Puts an event among those that go out next."""
        self.out.append(Outgoing(event, self.wall_offset_ms + at_s * 1000, server, rank, basis))

    def take(self) -> list[Outgoing]:
        """The events to go out, in order; there are none afterwards."""
        out, self.out = self.out, []
        return out

    def record(self, request: Request) -> RequestRecord:
        """The request's record as it stands."""
        server = self.server_of(request)
        return request_record(request, self.wall_offset_ms, server.embedded, router=server.is_router)

    def summary(self, request: Request) -> RequestSummary:
        """The request's record and block table as they stand."""
        return RequestSummary(self.record(request), block_table(request))

    def show_server(self, server: ServerBook, at_s: float, *, counters: bool) -> None:
        """Emits `server.changed` where something changed; with `counters`, also where only counts did.

        Times of the last batch and scrape change always, and count for nothing.
        """
        record = server.record()
        if server.shown is None or _essence(record, counters) != _essence(server.shown, counters):
            server.shown = record
            self.emit(ServerChanged(record), at_s, server.id)

    def show_rates(self, server: ServerBook, at_s: float, *, at_once: bool = False) -> None:
        """Emits `hit_rate.updated` where a reading changed; without `at_once`, not before `RATES_EVERY_S` are over:
        requests end by the hundred, and `tick` comes."""
        if not at_once and 0 <= at_s - server.read_rates_s < RATES_EVERY_S:
            return
        server.read_rates_s = at_s
        rates = server.rates.readings(at_s, self.wall_offset_ms)
        differences = find_differences(rates, server.circumstances(quiet=not self.requests.is_busy(server.id)))
        if rates != server.shown_rates or differences != server.shown_differences:
            server.shown_rates, server.shown_differences = rates, differences
            self.emit(HitRateUpdated(rates, differences), at_s, server.id)


def _essence(record: ServerRecord, counters: bool) -> ServerRecord:
    streams = tuple(replace(stream, last_batch_ms=None) for stream in record.streams)
    if not counters:
        streams = tuple(_without_counts(stream) for stream in streams)
        warned = record.forecasts is not None and record.forecasts.message is not None
        forecasts = (
            replace(record.forecasts, scored=0, right=0, drift_tokens=0) if record.forecasts and warned else None
        )
        record = replace(record, forecasts=forecasts, shared_blocks=None, shared_bytes=None, saved_tokens=None)
    return replace(record, metrics_at_ms=None, streams=streams)


def _without_counts(stream: StreamHealth) -> StreamHealth:
    return replace(
        stream,
        last_seq=None,
        batches=0,
        blocks_stored=0,
        blocks_removed=0,
        orphans=0,
        replayed=0,
        duplicates=0,
        batches_per_s=None,
        blocks_per_s=None,
        groups=tuple(replace(group, blocks=0, copies=0) for group in stream.groups),
    )
