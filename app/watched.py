"""One server that is watched: its own HTTP client, its sources and the tasks that they run in.

Each server has its own, so that one that is dead or slow never delays another.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

import httpx

from .ids import Rank
from .observations import CacheReset, KvStreamState, MetricsFailed, MetricsSampled, Observation, RequestEnded
from .settings import Settings
from .sources.block_texts import BlockTexts
from .sources.cache_reset import reset_prefix_cache
from .sources.clock import Clock
from .sources.kv_ranks import KvRankSubscribers
from .sources.kv_subscriber import KvSubscriber
from .sources.metrics_scraper import MetricsScraper
from .sources.server_probe import ServerProbe
from .sources.tokenizer import TokenizerClient
from .targets import Target

FIRST_RESTART_S = 1.0
LAST_RESTART_S = 60.0
Run = Callable[[], Awaitable[None]]
"""A source's own `run`: until cancelled."""
Emit = Callable[[Observation], None]
logger = logging.getLogger(__name__)


class WatchedServer:
    """The sources of one server. `salt_key` is the proxy's, so that salts can be compared."""

    def __init__(self, target: Target, settings: Settings, emit: Emit, clock: Clock, salt_key: bytes) -> None:
        self.target = target
        self.server = target.server
        self.http = httpx.AsyncClient(
            trust_env=False,
            timeout=httpx.Timeout(settings.scrape_timeout_s, connect=settings.connect_timeout_s),
            limits=httpx.Limits(max_connections=16, max_keepalive_connections=8),
        )
        self.tokenizer = TokenizerClient(
            self.server,
            self.http,
            settings.vllm_api_key,
            settings.max_tokenize_bytes,
            clock=clock,
            timeout_s=settings.tokenize_timeout_s,
        )
        self.block_texts = BlockTexts(self.tokenizer.detokenize)
        self._settings = settings
        self._emit_on = emit
        self._clock = clock
        self._salt_key = salt_key
        self._ranks: KvRankSubscribers | None = None
        self._probe = ServerProbe(self.server, self.http, emit, clock, settings.vllm_api_key)

    def emit(self, observation: Observation) -> None:
        """Hands an observation of this server on; one that tells of its loss has it asked at once how it is."""
        self._emit_on(observation)
        if _tells_of_a_lost_server(observation):
            self._probe.wake()
        if isinstance(observation, MetricsSampled) and self._ranks is not None:
            self._ranks.heard_engines(observation.engines)

    def start(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Starts every source as a task of `tasks`, to be cancelled by whoever started them."""
        return [
            tasks.create_task(keep_running(f"{name} of {self.server}", run, tell_failed), name=f"{name} {self.server}")
            for name, (run, tell_failed) in self._sources().items()
        ]

    async def reset_prefix_cache(self) -> bool:
        """Has the server empty its prefix cache; whether it did. Raises PrefixScopeError where it can't be told to."""
        done = await reset_prefix_cache(self.http, self.server, self._settings.vllm_api_key)
        if done:
            self._emit_on(CacheReset(self.server, self._clock.monotonic()))
        return done

    async def close(self) -> None:
        """Closes its connections; its tasks have ended."""
        await self.http.aclose()

    def _sources(self) -> dict[str, tuple[Run, Callable[[str], object] | None]]:
        """Each source by name, and how its failure is shown; the probe's isn't: what it last found still stands."""
        settings, target = self._settings, self.target
        scraper = MetricsScraper(
            self.server, self.http, self.emit, self._clock, settings.scrape_interval_s, settings.scrape_timeout_s,
            settings.vllm_api_key, settings.max_metrics_bytes,
        )  # fmt: skip
        sources: dict[str, tuple[Run, Callable[[str], object] | None]] = {
            "metrics": (scraper.run, scraper.tell_failed),
            "probe": (self._probe.run, None),
        }
        if target.unguessable is not None:
            now = self._clock.monotonic()
            message = target.unguessable
            self.emit(KvStreamState(self.server, Rank(0), "off", None, message, now, fault="unusable_address"))
            return sources
        self._ranks = KvRankSubscribers(self.server, self._subscriber, self.emit, self._clock, settings.kv_ranks)
        return {"KV events": (self._ranks.run, self._ranks.tell_failed), **sources}

    def _subscriber(self, rank: Rank) -> KvSubscriber:
        settings, target = self._settings, self.target
        return KvSubscriber(
            self.server, rank, target.kv_events, target.kv_replay, settings.kv_topic, self.emit, self._clock,
            salt_key=self._salt_key, max_message_bytes=settings.max_kv_message_bytes,
            receive_hwm=settings.kv_receive_hwm,
        )  # fmt: skip


def _tells_of_a_lost_server(observation: Observation) -> bool:
    """Whether it is worth asking the server at once how it is."""
    if isinstance(observation, MetricsFailed):
        return observation.status is None
    return isinstance(observation, RequestEnded) and observation.outcome == "server_gone"


async def keep_running(name: str, run: Run, tell_failed: Callable[[str], object] | None) -> None:
    """Runs a source. One that fails in a way that it doesn't know itself is logged, shown and started again."""
    pause_s = FIRST_RESTART_S
    while True:
        try:
            await run()
            logger.error("the source of %s ended by itself; it starts again in %.0f s", name, pause_s)
        except Exception:
            logger.exception("the source of %s failed; it starts again in %.0f s", name, pause_s)
        if tell_failed is not None:
            tell_failed(f"Reading {name} failed, and is started again by itself. The dashboard's log says why.")
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
        pause_s = min(pause_s * 2, LAST_RESTART_S)
