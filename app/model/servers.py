"""What is known of each server and of each of its ranks. Imports only `ids`, `observations`, `events`, its package."""

from dataclasses import replace

from ..events import CacheGroup, MetricsPoint, RateReading, ReadingsDifference, ServerRecord
from ..ids import Rank, RequestId, ServerId, SessionId
from ..observations import MetricsFailed, MetricsSampled, ServerProbed
from .adapters import AdapterBook
from .block_cache import GPU
from .details import LedgerLimits
from .differences import Circumstances
from .habits import Habits
from .metrics_points import MetricsBook
from .rank_book import RankBook
from .rates import ServerRates
from .requests import Request
from .server_notices import ALTERNATING, NoticeFacts, ServerSigns, find_notices
from .ttft import TtftBook

__all__ = ["RankBook", "ServerBook"]

SILENT_AFTER_S = 5.0
RESTART_SLACK_S = 60.0
"""A restart that the event stream told so long before counters show it is the same one."""
SILENT_COMPUTED_TOKENS = 2_000
"""Prompt tokens computed by the counters' account, after which a stream that never spoke is called silent."""


class ServerBook:
    """One server: its record, ranks, rates and recent metrics."""

    def __init__(self, server: ServerId, limits: LedgerLimits, wall_offset_ms: float) -> None:
        self.id = server
        self.ranks: dict[Rank, RankBook] = {}
        self.rates = ServerRates()
        self.habits = Habits()
        self.ttft = TtftBook()
        self.metrics = MetricsBook(limits.max_metrics_points)
        self.signs = ServerSigns()
        self.adapters = AdapterBook()
        self.sessions: dict[SessionId, Request] = {}
        self.skipping: dict[RequestId, Request] = {}
        """Running requests that don't look their prompt up."""
        self.shown: ServerRecord | None = None
        self.shown_rates: tuple[RateReading, ...] = ()
        self.read_rates_s = -1e9
        """When it was last looked whether they changed."""
        self.shown_differences: tuple[ReadingsDifference, ...] = ()
        self.sampled_s: float | None = None
        self.computed_since_events = 0.0
        """Prompt tokens that the counters say were computed, since the last KV-event batch."""
        self.owed_since_s: float | None = None
        """When a request ended that must have stored blocks; None once a batch came."""
        self.saved_tokens: int | None = None
        """Prompt tokens that requests took from the cache, by their usage; None before the first that said."""
        self.expected_ranks: tuple[Rank, ...] | None = None
        self._record = ServerRecord(server)
        self._limits = limits
        self._wall_offset_ms = wall_offset_ms
        self._marked_point: MetricsPoint | None = None
        """The reading at the mark."""

    # --- asking ---

    @property
    def embedded(self) -> bool:
        """Whether its times are modelled."""
        return self._record.embedded

    @property
    def is_router(self) -> bool:
        """Whether what answers has a version and metrics as vLLM does, but no cache of its own."""
        record = self._record
        answers = record.version is not None and record.state != "not_vllm" and record.metrics_state == "ok"
        return answers and record.num_gpu_blocks is None and self.block_size is None

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it serves, as it last said."""
        return self._record.models

    @property
    def caching(self) -> bool | None:
        """Whether prefix caching is on."""
        return self._record.prefix_caching

    @property
    def usage_details(self) -> bool | None:
        """Whether responses say their cached tokens."""
        return self._record.usage_details

    @property
    def asleep(self) -> bool | None:
        """Whether it sleeps; None where it doesn't say."""
        return self._record.asleep

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
        return Circumstances(
            block_size=self.block_size,
            version=self._record.version,
            preempted=bool(self.counted_since_mark("preemptions")),
            complete=all(book.stream.coverage == "complete" for book in self.ranks.values()),
            settled=quiet and self.rates.settled,
            prompt_tokens=self.counted_since_mark("prompt_tokens"),
            external_hits=bool(self.counted_since_mark("external_hit_tokens")),
            skipped_tokens=self.rates.skipped_tokens,
            uncertain=any(book.cache.uncertain for book in self.ranks.values()),
        )

    def counted_since_mark(self, name: str) -> float | None:
        """By how much a counter of MetricsPoint rose since the mark; None where it isn't exported, or fell."""
        points = self.metrics.points
        if not points or self._marked_point is None:
            return None
        now, before = getattr(points[-1], name), getattr(self._marked_point, name)
        return None if now is None or before is None or now < before else float(now - before)

    def mark(self, at_s: float) -> None:
        """Starts the window since the mark anew."""
        self.rates.mark(at_s)
        self.signs.marked()
        self._marked_point = self.metrics.points[-1] if self.metrics.points else None

    def rank(self, rank: Rank) -> RankBook:
        """The rank's book, opened where there is none."""
        book = self.ranks.get(rank)
        if book is None:
            book = self.ranks[rank] = RankBook(self.id, rank, self._limits, self._wall_offset_ms)
        return book

    def described(self) -> ServerRecord:
        """What the server says of itself, without what is counted here: cheap enough for every request."""
        size = self.block_size
        return self._record if size == self._record.block_size else replace(self._record, block_size=size)

    def record(self) -> ServerRecord:
        """As it goes out."""
        expected, known = self.expected_ranks, sorted(self.ranks.items())
        streams = tuple(
            book.stream.health(self._wall_offset_ms, book.cache.orphans, book.cache.unknown_removes, _groups(book))
            for rank, book in known
            if expected is None or rank in expected or book.stream.batches
        )
        shared, block_bytes = self._shared_blocks(), self._record.block_bytes
        alternates = ALTERNATING if self.signs.alternated_s is not None else None
        return replace(
            self._record,
            block_size=self.block_size,
            metrics_message=self._record.metrics_message or alternates,
            streams=streams,
            forecasts=self.habits.score(),
            shared_blocks=shared,
            shared_bytes=None if shared is None or block_bytes is None else shared * block_bytes,
            saved_tokens=self.saved_tokens,
            ranks_expected=None if expected is None else len(expected),
            ranks_heard=sum(stream.state == "connected" and stream.batches > 0 for stream in streams),
            not_exported=self.metrics.not_exported,
            notices=(
                *find_notices(self.signs, self._notice_facts()),
                *self.adapters.notices(self._emptied_s(), self._wall_offset_ms),
            ),
        )

    def _emptied_s(self) -> float:
        """When the cache of every rank had last been emptied, or begun anew."""
        streams = [book.stream for book in self.ranks.values()]
        return min((max(stream.cleared_s, stream.restarted_s or -1e9) for stream in streams), default=-1e9)

    def _shared_blocks(self) -> int | None:
        tables = [book.cache.walked for book in self.ranks.values() if book.stream.coverage != "none"]
        return sum(table.shared for table in tables if table is not None) if tables else None

    def _notice_facts(self) -> NoticeFacts:
        books = self.ranks.values()
        points = self.metrics.points
        return NoticeFacts(
            rates=self.shown_rates,
            differences=self.shown_differences,
            block_size=self.block_size,
            scheduler_unit=self._record.block_size,
            recent_clears=sum(book.stream.flow.recent_clears for book in books),
            external_hit_tokens=points[-1].external_hit_tokens if points else None,
            other_tiers=any(medium != GPU for book in books for _, medium in book.cache.tables),
            events_known=any(book.stream.coverage != "none" for book in books),
            caching=self.caching,
        )

    # --- changing ---

    def probed(self, probe: ServerProbed) -> None:
        """Takes in what the server says of itself. A None doesn't unlearn."""
        record = self._record
        if probe.state == "down":
            self.adapters.restarted()
        elif probe.models:
            roots = probe.adapter_roots or (None,) * len(probe.adapters)
            self.adapters.listed(tuple(zip(probe.adapters, roots, strict=True)), probe.at_s)
        self._record = replace(
            record,
            state=probe.state,
            message=probe.message,
            version=probe.version or record.version,
            models=probe.models or record.models,
            adapters=probe.adapters if probe.models else record.adapters,
            max_model_len=probe.max_model_len or record.max_model_len,
            embedded=probe.embedded if probe.state == "up" else record.embedded,
            profile=probe.profile or record.profile,
        )

    def metrics_ok(self, observed: MetricsSampled, findings: set[str]) -> tuple[MetricsPoint, dict[str, MetricsPoint]]:
        """Takes a scrape in. Returns it pooled over the engines, and by engine."""
        if findings & {"restarted", "reset"}:
            self.metrics.restarted()
            self._marked_point = None
        at_ms = self._wall_offset_ms + observed.at_s * 1000
        point, each = self.metrics.take(observed.engines, at_ms, self.ranks)
        if self._marked_point is None:
            self._marked_point = point
        self.sampled_s = observed.at_s
        self._note_computed(findings)
        self.signs.note_alternation(observed.at_s, found="inconsistent" in findings)
        engines, record = observed.engines, self._record
        described = [engine for engine in engines if engine.block_size is not None]
        cached = [engine.prefix_caching for engine in engines if engine.prefix_caching is not None]
        pools = [engine.num_gpu_blocks for engine in engines if engine.num_gpu_blocks is not None]
        sizes = [engine.block_bytes for engine in engines if engine.block_bytes is not None]
        asleep = [engine.asleep for engine in engines if engine.asleep is not None]
        self._record = replace(
            record,
            block_size=described[0].block_size if described else record.block_size,
            num_gpu_blocks=max(pools) if pools else record.num_gpu_blocks,
            block_bytes=max(sizes) if sizes else None if pools else record.block_bytes,
            prefix_caching=all(cached) if cached else record.prefix_caching,
            asleep=all(asleep) if asleep else None,
            metrics_state="ok",
            metrics_message=None,
            metrics_at_ms=at_ms,
            malformed_metrics=record.malformed_metrics + observed.malformed_lines,
        )
        return point, each

    def _note_computed(self, findings: set[str]) -> None:
        points = self.metrics.points
        if len(points) < 2 or findings:
            return
        (query, hit), (query_before, hit_before) = ((p.query_tokens, p.hit_tokens) for p in (points[-1], points[-2]))
        if query is not None and hit is not None and query_before is not None and hit_before is not None:
            self.computed_since_events += max((query - hit) - (query_before - hit_before), 0.0)

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

    def learn_usage_details(self, said: bool) -> bool:
        """A usage came, with cached tokens or without. One that says them outweighs any that don't.

        Returns whether that was news: nearly never, and a server's record is dear to make.
        """
        known = self._record.usage_details
        if known is said or (known and not said):
            return False
        self._record = replace(self._record, usage_details=said)
        return True

    def heard(self) -> None:
        """A KV-event batch came."""
        self.computed_since_events = 0.0
        self.owed_since_s = None

    def measure(self, at_s: float) -> None:
        """Once a second: how much comes over each stream."""
        for book in self.ranks.values():
            stream = book.stream
            stream.flow.measure(at_s, stream.batches, stream.blocks_stored + stream.blocks_removed)
        if not any(book.stream.flow.recent_clears for book in self.ranks.values()):
            self.signs.storm_cached_tokens = None

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


def _groups(book: RankBook) -> tuple[CacheGroup, ...]:
    cache = book.cache
    return tuple(
        CacheGroup(group, medium, table.kind, table.block_size, table.resident, table.copies_resident,
                   table is cache.walked)
        for (group, medium), table in sorted(cache.tables.items())
    )  # fmt: skip
