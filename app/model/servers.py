"""What is known of each server and of each of its ranks. Imports only `ids`, `observations`, `events`, its package."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..events import MetricsPoint, RateReading, ReadingsDifference, ServerRecord
from ..ids import BlockHash, Rank, RequestId, ServerId, SessionId
from ..observations import EngineSample, MetricsFailed, MetricsSampled, ServerProbed
from .block_cache import BlockCache
from .block_slots import BlockSlots
from .details import LedgerLimits
from .differences import Circumstances
from .habits import Habits
from .rates import ServerRates
from .requests import ExpectKey, Request
from .sharing import Sharing
from .stream_health import StreamBook

SILENT_AFTER_S = 5.0
RESTART_SLACK_S = 60.0
"""A restart that the event stream told so long before counters show it is the same one."""
SILENT_COMPUTED_TOKENS = 2_000
"""Prompt tokens computed by the counters' account, after which a stream that never spoke is called silent."""


class RankBook:
    """One data-parallel engine of a server."""

    def __init__(self, server: ServerId, rank: Rank, limits: LedgerLimits, wall_offset_ms: float) -> None:
        self.server = server
        self.rank = rank
        self.cache = BlockCache(limits.max_blocks, limits.max_removed_blocks, wall_offset_ms)
        self.sharing = Sharing()
        self.stream = StreamBook(rank)
        self.expected: dict[ExpectKey, list[Request]] = {}
        """Requests by the block that they would store next."""
        self.open: dict[RequestId, Request] = {}
        """Running requests whose `as_of` may still move: nothing came that happened after they were sent."""
        self.row_numbers: list[int] = []
        """0, 1, 2, ...: snapshots take theirs from here, since making them anew is what they'd spend most on."""
        self._counted: BlockSlots | None = None

    def hold(self, serial: int, hashes: Sequence[BlockHash]) -> None:
        """A request's block table now holds these blocks, which it didn't before."""
        self.sharing.add(serial, hashes)
        self.count_holders(hashes)

    def let_go(self, serial: int, hashes: Sequence[BlockHash]) -> None:
        """The request is forgotten, or its block table no longer holds these blocks."""
        self.sharing.leave(serial, hashes)
        self.count_holders(hashes)

    def count_holders(self, hashes: Iterable[BlockHash]) -> None:
        """Brings the counts of the walked table up to date, of these blocks, or of all where it is another table."""
        table = self.cache.walked
        if table is None:
            return
        if table is not self._counted:
            self._counted = table
            hashes = table.hashes()
        for block_hash in hashes:
            slot = table.find(block_hash)
            if slot is not None:
                table.hold(slot, len(self.sharing.holders(block_hash)))

    def reused(self, hashes: Iterable[BlockHash]) -> None:
        """A request took these blocks from the cache."""
        table = self.cache.walked
        if table is None:
            return
        for block_hash in hashes:
            slot = table.find(block_hash)
            if slot is not None and table.copies[slot]:
                table.reuses[slot] += 1


class ServerBook:
    """One server: its record, ranks, rates and recent metrics."""

    def __init__(self, server: ServerId, limits: LedgerLimits, wall_offset_ms: float) -> None:
        self.id = server
        self.ranks: dict[Rank, RankBook] = {}
        self.rates = ServerRates()
        self.habits = Habits()
        self.points: deque[MetricsPoint] = deque(maxlen=limits.max_metrics_points)
        self.sessions: dict[SessionId, Request] = {}
        self.skipping: dict[RequestId, Request] = {}
        """Running requests that don't look their prompt up."""
        self.shown: ServerRecord | None = None
        self.shown_rates: tuple[RateReading, ...] = ()
        self.shown_differences: tuple[ReadingsDifference, ...] = ()
        self.sampled_s: float | None = None
        self.computed_since_events = 0.0
        """Prompt tokens that the counters say were computed, since the last KV-event batch."""
        self.owed_since_s: float | None = None
        """When a request ended that must have stored blocks; None once a batch came."""
        self._record = ServerRecord(server)
        self._limits = limits
        self._wall_offset_ms = wall_offset_ms
        self._counters_message: str | None = None
        self._preemptions_from: float | None = None
        """Preemptions that the counters said at the mark."""

    # --- asking ---

    @property
    def embedded(self) -> bool:
        """Whether its times are modelled."""
        return self._record.embedded

    @property
    def caching(self) -> bool | None:
        """Whether prefix caching is on."""
        return self._record.prefix_caching

    @property
    def usage_details(self) -> bool | None:
        """Whether responses say their cached tokens."""
        return self._record.usage_details

    @property
    def down(self) -> bool:
        """Whether it was last found down."""
        return self._record.state == "down"

    @property
    def block_size(self) -> int | None:
        """Tokens a block: as events say, else as metrics say."""
        for rank in self.ranks.values():
            if rank.cache.block_size is not None:
                return rank.cache.block_size
        return self._record.block_size

    def circumstances(self, *, quiet: bool) -> Circumstances:
        """What else is known where readings are compared. `quiet`: no request of it runs."""
        now = self.points[-1].preemptions if self.points else None
        return Circumstances(
            block_size=self.block_size,
            version=self._record.version,
            preempted=now is not None and self._preemptions_from is not None and now > self._preemptions_from,
            complete=all(book.stream.coverage == "complete" for book in self.ranks.values()),
            settled=quiet and self.rates.settled,
        )

    def mark(self, at_s: float) -> None:
        """Starts the window since the mark anew."""
        self.rates.mark(at_s)
        self._preemptions_from = self.points[-1].preemptions if self.points else None

    def rank(self, rank: Rank) -> RankBook:
        """The rank's book, opened where there is none."""
        book = self.ranks.get(rank)
        if book is None:
            book = self.ranks[rank] = RankBook(self.id, rank, self._limits, self._wall_offset_ms)
        return book

    def record(self) -> ServerRecord:
        """As it goes out."""
        streams = tuple(
            book.stream.health(self._wall_offset_ms, book.cache.orphans, book.cache.unknown_removes)
            for _, book in sorted(self.ranks.items())
        )
        return replace(
            self._record,
            block_size=self.block_size,
            metrics_message=self._record.metrics_message or self._counters_message,
            streams=streams,
            forecasts=self.habits.score(),
            shared_blocks=self._shared_blocks(),
        )

    def _shared_blocks(self) -> int | None:
        tables = [book.cache.walked for book in self.ranks.values() if book.stream.coverage != "none"]
        return sum(table.shared for table in tables if table is not None) if tables else None

    # --- changing ---

    def probed(self, probe: ServerProbed) -> None:
        """Takes in what the server says of itself. A None doesn't unlearn."""
        record = self._record
        self._record = replace(
            record,
            state=probe.state,
            message=probe.message,
            version=probe.version or record.version,
            models=probe.models or record.models,
            max_model_len=probe.max_model_len or record.max_model_len,
            embedded=probe.embedded if probe.state == "up" else record.embedded,
            profile=probe.profile or record.profile,
        )

    def metrics_ok(self, observed: MetricsSampled, findings: set[str]) -> MetricsPoint:
        """Takes a scrape in. Returns it pooled over the engines."""
        point = pooled(observed.engines, self._wall_offset_ms + observed.at_s * 1000)
        self.points.append(point)
        if self._preemptions_from is None:
            self._preemptions_from = point.preemptions
        self.sampled_s = observed.at_s
        described = [engine for engine in observed.engines if engine.block_size is not None]
        cached = [engine.prefix_caching for engine in observed.engines if engine.prefix_caching is not None]
        pools = [engine.num_gpu_blocks for engine in observed.engines if engine.num_gpu_blocks is not None]
        record = self._record
        if "inconsistent" in findings:
            self._counters_message = (
                "Counters jump back and forth: several API-server processes answer in turn. Intervals are skipped; "
                "set PROMETHEUS_MULTIPROC_DIR for them, or scrape one process."
            )
        self._record = replace(
            record,
            block_size=described[0].block_size if described else record.block_size,
            num_gpu_blocks=max(pools) if pools else record.num_gpu_blocks,
            prefix_caching=all(cached) if cached else record.prefix_caching,
            metrics_state="ok",
            metrics_message=None,
            metrics_at_ms=point.at_ms,
            malformed_metrics=record.malformed_metrics + observed.malformed_lines,
        )
        return point

    def metrics_failed(self, failed: MetricsFailed) -> None:
        """A scrape gave nothing; the last good values stay."""
        self._record = replace(self._record, metrics_state="failed", metrics_message=failed.reason)

    def malformed(self, source: str) -> None:
        """Counts bytes that couldn't be read."""
        record = self._record
        if source == "metrics":
            self._record = replace(record, malformed_metrics=record.malformed_metrics + 1)
        else:
            self._record = replace(record, malformed_sse=record.malformed_sse + 1)

    def learn_usage_details(self, said: bool) -> None:
        """A usage came, with cached tokens or without. One that says them outweighs any that don't."""
        if said or self._record.usage_details is None:
            self._record = replace(self._record, usage_details=said)

    def heard(self) -> None:
        """A KV-event batch came."""
        self.computed_since_events = 0.0
        self.owed_since_s = None

    def look_for_silence(self, at_s: float) -> None:
        """Marks streams as silent that say nothing although blocks must have been stored."""
        if self.caching is False:
            return
        owed = self.owed_since_s is not None and at_s - self.owed_since_s >= SILENT_AFTER_S
        for book in self.ranks.values():
            stream = book.stream
            never = stream.batches == 0 and self.computed_since_events >= SILENT_COMPUTED_TOKENS
            settled = stream.connected_s is not None and at_s - stream.connected_s >= SILENT_AFTER_S
            if stream.state == "connected" and settled and (owed or never):
                stream.silent = SILENCE


SILENCE = (
    "Connected, but no KV events came although prompts were computed. Start vLLM with --kv-events-config "
    '\'{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557"}\'; check that the publisher binds, '
    "the port (data-parallel rank r publishes on port + r) and the topic."
)


@dataclass(slots=True)
class _Pool:
    total: float | None = None

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total = value if self.total is None else self.total + value


def pooled(engines: tuple[EngineSample, ...], at_ms: float) -> MetricsPoint:
    """Readings of all engines in one: sums, and for the share of the pool in use the mean weighted by pool size."""
    names = ("running", "waiting", "query_tokens", "hit_tokens", "prompt_tokens", "generation_tokens", "preemptions")
    sums = {name: _Pool() for name in names}
    used = [engine for engine in engines if engine.kv_usage_ratio is not None]
    sized = all(engine.num_gpu_blocks for engine in used)
    weight = share = 0.0
    for engine in engines:
        for name in names:
            sums[name].add(getattr(engine, name))
        if engine.kv_usage_ratio is not None:
            size = float(engine.num_gpu_blocks or 1) if sized else 1.0
            weight += size
            share += size * engine.kv_usage_ratio
    totals = {name: pool.total for name, pool in sums.items()}
    return MetricsPoint(at_ms=at_ms, kv_usage_ratio=share / weight if weight else None, **totals)
