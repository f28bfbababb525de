"""Looks at one server from outside, as the dashboard would, for a few seconds: the shell around the findings.

The dashboard's own sources and ledger do the looking, so that the doctor and the page can't disagree.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import httpx
import msgspec

from ..errors import PrefixScopeError
from ..events import ServerRecord, StreamHealth
from ..ids import Rank, ServerId
from ..model.details import LedgerLimits
from ..model.ledger import Ledger
from ..observations import MetricsSampled, Observation
from ..settings import Settings
from ..sources.clock import SystemClock
from ..sources.http_reading import read_http
from ..sources.kv_ranks import KvRankSubscribers
from ..sources.kv_subscriber import KvSubscriber
from ..sources.metrics_scraper import MetricsScraper
from ..sources.server_probe import ServerProbe
from ..targets import Target
from .ask import Answer, ask
from .exposure import exposed_addresses, read_tables
from .facts import Facts, facts_of
from .findings import Diagnosis, diagnose

LISTEN_S = 6.0
"""How long events are waited for: a connection and a replay take well under a second; what isn't ZeroMQ, five."""
EVENTS_AFTER_ASKING_S = 3.0
TOKENIZE_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1024 * 1024
LIMITS = LedgerLimits(
    max_requests=10, max_snapshot_requests=10, max_blocks=2_000_000, max_removed_blocks=1, max_metrics_points=10
)
LOOK_S = 0.05
SILENT = "Connected, but a prompt of more than a block was computed and no event came."


async def examine(target: Target, settings: Settings, *, ask_it: bool) -> Diagnosis:
    """One server's diagnosis. With `ask_it`, it is sent a request of one output token, to see what its answer says.

    Raises SettingsError where its address of events can't be used.
    """
    async with httpx.AsyncClient(trust_env=False, timeout=settings.scrape_timeout_s) as http:
        return diagnose(await _Examination(target, settings, http).facts(ask_it=ask_it))


async def tokenize_works(http: httpx.AsyncClient, server: ServerId, api_key: str | None, model: str) -> bool:
    """Whether `/tokenize` answers for `model`."""
    call = msgspec.json.encode({"model": model, "prompt": "a"})
    try:
        reading = await read_http(
            http, server, "/tokenize", api_key=api_key, timeout_s=TOKENIZE_TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES,
            json_body=call,
        )  # fmt: skip
    except PrefixScopeError:
        return False
    return reading.status == 200


def exposed_streams(streams: tuple[StreamHealth, ...]) -> tuple[str, ...]:
    """Addresses of connected event streams that can be reached from beyond the server's machine."""
    connected = [stream.endpoint for stream in streams if stream.state in ("connected", "silent")]
    return exposed_addresses(connected, read_tables()) if connected else ()


class _Examination:
    """The sources of one server for a few seconds, and a ledger that takes in what they see."""

    def __init__(self, target: Target, settings: Settings, http: httpx.AsyncClient) -> None:
        self._target = target
        self._server = target.server
        self._settings = settings
        self._http = http
        self._clock = SystemClock()
        self._ranks: KvRankSubscribers | None = None
        self._ledger = Ledger(LIMITS, self._clock.wall_ms() - self._clock.monotonic() * 1000)

    async def facts(self, *, ask_it: bool) -> Facts:
        """Everything that could be found out."""
        key = self._settings.vllm_api_key
        probe = ServerProbe(self._server, self._http, self._emit, self._clock, key)
        self._emit(await probe.probe())
        if self._record.state != "up":
            return facts_of(self._record)
        model = next(iter(self._record.models), "")
        scraper = MetricsScraper(
            self._server, self._http, self._emit, self._clock, self._settings.scrape_interval_s,
            self._settings.scrape_timeout_s, key,
        )  # fmt: skip
        answer = Answer()
        async with self._listening():
            # First the metrics: they name the ranks, whose streams are listened to then.
            await scraper.scrape()
            tokenizes, _ = await asyncio.gather(
                tokenize_works(self._http, self._server, key, model), self._until(self._is_settled, LISTEN_S)
            )
            if ask_it:
                answer = await self._ask(model)
                # Some releases export a figure only once there is one.
                await scraper.scrape()
        return self._gathered(answer, tokenizes)

    @property
    def _record(self) -> ServerRecord:
        return self._ledger.server(self._server) or ServerRecord(self._server)

    def _emit(self, observation: Observation) -> None:
        self._ledger.apply(observation)
        if isinstance(observation, MetricsSampled) and self._ranks is not None:
            self._ranks.heard_engines(observation.engines)

    def _gathered(self, answer: Answer, tokenizes: bool) -> Facts:
        record = self._record
        if answer.usage_details is not None:
            record = replace(record, usage_details=answer.usage_details)
        # One rank computed the prompt: the others may well be silent.
        unheard = not any(stream.batches for stream in record.streams)
        if answer.filled_a_block and record.prefix_caching is not False and unheard:
            record = replace(record, streams=tuple(_silent_if_connected(stream) for stream in record.streams))
        return facts_of(
            record,
            request_metrics=answer.request_metrics,
            tokenize=tokenizes,
            exposed=exposed_streams(record.streams),
        )

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        """Subscribed to the server's events for as long as the block lasts."""
        self._ranks = KvRankSubscribers(
            self._server, self._subscriber, self._emit, self._clock, self._settings.kv_ranks
        )
        task = asyncio.create_task(self._ranks.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _subscriber(self, rank: Rank) -> KvSubscriber:
        target, settings = self._target, self._settings
        return KvSubscriber(
            self._server, rank, target.kv_events, target.kv_replay, settings.kv_topic, self._emit, self._clock,
            max_message_bytes=settings.max_kv_message_bytes, receive_hwm=settings.kv_receive_hwm,
        )  # fmt: skip

    def _is_settled(self) -> bool:
        """Whether each stream has said what there is to say: it is connected and was replayed, or there is none."""
        record = self._record
        return len(record.streams) >= (record.ranks_expected or 1) and all(
            stream.state in ("off", "disconnected")
            or (stream.state == "connected" and stream.replay_available is not None)
            for stream in record.streams
        )

    async def _ask(self, model: str) -> Answer:
        before = self._batches()
        answer = await ask(self._http, self._server, self._settings.vllm_api_key, model, self._record.block_size)
        if answer.filled_a_block:
            await self._until(lambda: self._batches() > before, EVENTS_AFTER_ASKING_S)
        return answer

    def _batches(self) -> int:
        return sum(stream.batches for stream in self._record.streams)

    async def _until(self, condition: Callable[[], bool], at_most_s: float) -> None:
        # The sources tell nobody when they are through; what the ledger made of them is looked at now and then.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                while not condition():  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)


def _silent_if_connected(stream: StreamHealth) -> StreamHealth:
    if stream.state != "connected":
        return stream
    return replace(stream, state="silent", message=SILENT)
