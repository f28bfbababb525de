"""The ledger: takes one observation after another and says what follows, as events for the dashboard.

No IO, no clock, no logging: time comes with the observations. Imports only `ids`, `observations`, `events` and its own
package.
"""

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from ..events import (
    BlockColumns,
    MetricsSampledEvent,
    Outgoing,
    RateReading,
    RequestSummary,
    Routing,
    ScenarioAdvanced,
    ScenarioState,
    ServerRecord,
    Snapshot,
)
from ..ids import Rank, RequestId, ServerId
from ..observations import (
    AdapterLoaded,
    CacheReset,
    KvBatch,
    KvDuplicate,
    KvGap,
    KvRanks,
    KvRestarted,
    KvStreamState,
    Malformed,
    MetricsFailed,
    MetricsSampled,
    Observation,
    RequestEnded,
    RequestEngineTimes,
    RequestFirstToken,
    RequestHead,
    RequestOutputTokens,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
    ScenarioStepped,
    ServerProbed,
    TtftFitted,
)
from .block_columns import columns_of
from .block_lookup import block_by_hash, block_of_request
from .details import BlockDetail, LedgerLimits
from .kv_ledger import KvLedger
from .ledger_state import LedgerState
from .prefix_survey import look_for_shared_prefix
from .recorded import RecordedPrompt, recorded_prompts
from .request_ledger import RequestLedger
from .resident_view import ReplicaView, replica_view
from .servers import RESTART_SLACK_S

__all__ = ["BlockDetail", "Ledger", "LedgerLimits"]


class Ledger:
    """What the dashboard believes. One writer; answers are values that don't change afterwards.

    `wall_offset_ms`: milliseconds of the epoch at second 0 of the clock that `at_s` is read from.
    """

    def __init__(self, limits: LedgerLimits, wall_offset_ms: float) -> None:
        self._state = LedgerState(limits, wall_offset_ms)
        self._requests = RequestLedger(self._state)
        self._kv = KvLedger(self._state, self._requests)
        self._scenario: ScenarioState | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            KvBatch: self._kv.batch,
            KvStreamState: self._kv.stream_state,
            KvGap: self._kv.gap,
            KvDuplicate: self._kv.duplicate,
            KvRanks: self._kv.ranks,
            CacheReset: self._kv.told_to_empty,
            KvRestarted: self._kv.restarted,
            ServerProbed: self._probed,
            AdapterLoaded: self._adapter_loaded,
            MetricsSampled: self._metrics,
            MetricsFailed: self._metrics_failed,
            Malformed: self._malformed,
            RequestStarted: self._requests.started,
            RequestHead: self._requests.head,
            RequestFirstToken: self._requests.first_token,
            RequestPromptTokens: self._requests.prompt_tokens,
            RequestOutputTokens: self._requests.output_tokens,
            RequestUsage: self._requests.usage,
            RequestEngineTimes: self._requests.engine_times,
            RequestEnded: self._requests.ended,
            ScenarioStepped: self._scenario_stepped,
            TtftFitted: self._ttft_fitted,
        }

    # --- changing ---

    def apply(self, observation: Observation) -> list[Outgoing]:
        """Takes a fact in. Returns what follows, in order."""
        self._handlers[type(observation)](observation)
        return self._state.take()

    def tick(self, at_s: float) -> list[Outgoing]:
        """Once a second: windows that move with time, silence, and what was held back."""
        self._requests.tick(at_s)
        for server in self._state.servers.values():
            server.look_for_silence(at_s)
            server.measure(at_s)
            look_for_shared_prefix(server, self._state.requests, at_s)
            self._state.show_server(server, at_s, counters=True)
            self._state.show_rates(server, at_s, at_once=True)
        return self._state.take()

    def mark(self, server: ServerId, at_s: float) -> None:
        """Starts the window since the mark anew; the next `tick` says so."""
        self._state.server(server).mark(at_s)

    # --- asking ---

    @property
    def illegal_steps(self) -> int:
        """Observations of requests that came out of order, and were left out."""
        return self._requests.illegal_steps

    @property
    def state(self) -> LedgerState:
        """The books, for `invariants` and measurements. Not to be changed."""
        return self._state

    def snapshot(self) -> Snapshot:
        """Everything that a browser starts from."""
        state = self._state
        newest, _ = state.requests.page(state.limits.max_snapshot_requests, None)
        return Snapshot(
            servers=tuple(server.record() for server in state.servers.values()),
            requests=tuple(state.summary(request) for request in newest),
            blocks=self.block_columns(),
            rates={server.id: server.shown_rates for server in state.servers.values()},
            metrics={server.id: tuple(server.metrics.points) for server in state.servers.values()},
            scenario=self._scenario,
            differences={server.id: server.shown_differences for server in state.servers.values()},
        )

    def requests(self, limit: int, after: RequestId | None) -> tuple[list[RequestSummary], RequestId | None]:
        """At most `limit` requests, newest first, older than `after`; and what to go on after, None at the end."""
        found, following = self._state.requests.page(limit, after)
        return [self._state.summary(request) for request in found], following

    def request(self, request_id: RequestId) -> RequestSummary | None:
        """One request, where it is kept."""
        request = self._state.requests.get(request_id)
        return None if request is None else self._state.summary(request)

    def recorded_prompts(self) -> tuple[tuple[RecordedPrompt, ...], int]:
        """The prompts of kept requests that were served, oldest first; and how many's isn't known."""
        return recorded_prompts(self._state.requests)

    def rates(self) -> dict[ServerId, tuple[RateReading, ...]]:
        """Each server's hit rates, as they were last told."""
        return {server.id: server.shown_rates for server in self._state.servers.values()}

    def routings(self, since_s: float) -> list[Routing]:
        """The routing accounts of kept requests that were sent at second `since_s` or later."""
        recent = takewhile(lambda request: request.sent.at_s >= since_s, self._state.requests.newest_first())
        return [request.routing for request in recent if request.routing is not None]

    def replicas(self) -> tuple[tuple[ServerId, Rank], ...]:
        """Every rank of every server that is known, in the order in which servers were heard of."""
        return tuple((server.id, rank) for server in self._state.servers.values() for rank in sorted(server.ranks))

    def replica_view(self, server: ServerId, rank: Rank) -> ReplicaView | None:
        """What one replica holds, copied out; None where it isn't known."""
        book = self._state.servers.get(server)
        if book is None or rank not in book.ranks:
            return None
        return replica_view(book.ranks[rank], book.models)

    def block_columns(self) -> tuple[BlockColumns, ...]:
        """Resident blocks, an entry a server and rank."""
        return tuple(
            columns_of(book) for server in self._state.servers.values() for _, book in sorted(server.ranks.items())
        )

    def server(self, server: ServerId) -> ServerRecord | None:
        """One server, where it is known."""
        book = self._state.servers.get(server)
        return None if book is None else book.record()

    def described(self, server: ServerId) -> ServerRecord | None:
        """What one server says of itself, without what is counted; where it is known."""
        book = self._state.servers.get(server)
        return None if book is None else book.described()

    def block_detail(self, server: ServerId, rank: Rank, hash_text: str) -> BlockDetail | None:
        """One block by its hash, resident or remembered. Raises ValueError where `hash_text` is no hash."""
        return block_by_hash(self._state, server, rank, hash_text)

    def request_block(self, request_id: RequestId, index: int) -> BlockDetail | None:
        """Block `index` (from 0) of a request, its partial tail included."""
        return block_of_request(self._state, request_id, index)

    # --- the server itself ---

    def _probed(self, probe: ServerProbed) -> None:
        server = self._state.server(probe.server)
        if probe.state == "down":
            server.rates.interrupted()
        server.probed(probe)
        self._state.show_server(server, probe.at_s, counters=False)

    def _adapter_loaded(self, loaded: AdapterLoaded) -> None:
        server = self._state.server(loaded.server)
        server.adapters.loaded(loaded.name, loaded.at_s)
        self._state.show_server(server, loaded.at_s, counters=False)

    def _metrics(self, sampled: MetricsSampled) -> None:
        state = self._state
        server = state.server(sampled.server)
        before_s = server.sampled_s
        findings = server.rates.sampled(sampled.at_s, sampled.engines, state.wall_offset_ms)
        was_asleep = server.asleep
        # A fall alone clears nothing: another exporter may have answered, and the event stream tells restarts itself.
        if "restarted" in findings:
            for book in server.ranks.values():
                told_s = book.stream.restarted_s
                if told_s is None or before_s is None or told_s < before_s - RESTART_SLACK_S:
                    book.stream.restarted(sampled.at_s, sequence=False)
                    self._kv.empty(server, book, sampled.at_s)
        point, engines = server.metrics_ok(sampled, findings)
        if server.asleep and was_asleep is False:
            # Sleep empties the cache, and the event that says so comes after the next one that it computes.
            self._kv.told_to_empty(CacheReset(server.id, sampled.at_s))
        state.emit(MetricsSampledEvent(point, engines), sampled.at_s, server.id, basis="counter")
        state.show_rates(server, sampled.at_s, at_once=True)
        state.show_server(server, sampled.at_s, counters=False)

    def _metrics_failed(self, failed: MetricsFailed) -> None:
        server = self._state.server(failed.server)
        server.metrics_failed(failed)
        server.rates.interrupted()
        self._state.show_server(server, failed.at_s, counters=False)

    def _malformed(self, malformed: Malformed) -> None:
        server = self._state.server(malformed.server)
        if malformed.source == "kv":
            server.rank(malformed.rank if malformed.rank is not None else Rank(0)).stream.malformed += 1
        else:
            server.malformed(malformed.source)
        self._state.show_server(server, malformed.at_s, counters=False)

    def _scenario_stepped(self, stepped: ScenarioStepped) -> None:
        self._scenario = ScenarioState(
            stepped.step, stepped.steps, stepped.caption, stepped.running, stepped.translations
        )
        self._state.emit(ScenarioAdvanced(self._scenario), stepped.at_s)

    def _ttft_fitted(self, fitted: TtftFitted) -> None:
        self._state.server(fitted.server).ttft.take_fit(fitted)
