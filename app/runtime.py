"""The composition root: builds clients, sources, ledger and hub from the settings, and owns the tasks that they run in.

Everything that the web edge needs hangs on one `Runtime`; nothing here is global, and nothing runs before `running()`.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx

from . import __version__
from .errors import SettingsError
from .events import Hello, ServerRecord
from .hub.fanout import Hub
from .ids import Rank, ServerId
from .model.details import LedgerLimits
from .model.ledger import Ledger
from .observations import MetricsFailed, Observation, RequestEnded
from .scenario import Scenario
from .settings import Settings
from .sources.block_texts import BlockTexts
from .sources.chat_proxy import ChatProxy
from .sources.clock import Clock, SystemClock
from .sources.kv_endpoints import resolved_endpoints
from .sources.kv_subscriber import KvSubscriber
from .sources.metrics_scraper import MetricsScraper
from .sources.server_probe import ServerProbe
from .sources.tokenizer import TokenizerClient
from .wire.salt import KEY_BYTES
from .writer import Writer

FIRST_RESTART_S = 1.0
LAST_RESTART_S = 60.0
Run = Callable[[], Awaitable[None]]
"""A source's own `run`: until cancelled."""
logger = logging.getLogger(__name__)


class Runtime:
    """One run of the dashboard, in front of one server."""

    def __init__(self, settings: Settings, *, demo: bool = False, clock: Clock | None = None) -> None:
        self.settings = settings
        self.server = server_id(settings)
        self.clock: Clock = clock or SystemClock()
        self.ledger = Ledger(
            LedgerLimits(
                max_requests=settings.max_requests,
                max_snapshot_requests=settings.max_snapshot_requests,
                max_blocks=settings.max_blocks,
                max_removed_blocks=settings.max_removed_blocks,
                max_metrics_points=settings.max_metrics_points,
            ),
            self.clock.wall_ms() - self.clock.monotonic() * 1000,
        )
        self.hub = Hub(
            Hello(
                product="prefixscope",
                version=__version__,
                instance=secrets.token_hex(8),
                backlog_events=settings.max_backlog_events,
                demo=demo,
                show_prompts=settings.show_prompts,
            ),
            settings.max_client_queue_events,
            settings.heartbeat_s,
            self.ledger.snapshot,
            self.clock,
        )
        self.writer = Writer(self.ledger, self.hub.publish, self.clock, settings.kv_receive_hwm)
        self.scenario: Scenario | None = None
        self.http = httpx.AsyncClient(
            trust_env=False,
            timeout=httpx.Timeout(settings.scrape_timeout_s, connect=settings.connect_timeout_s),
            limits=httpx.Limits(max_connections=16, max_keepalive_connections=8),
        )
        self._salt_key = secrets.token_bytes(KEY_BYTES)
        self._probe = ServerProbe(self.server, self.http, self.writer.emit, self.clock, settings.vllm_api_key)
        tokenizer = TokenizerClient(
            self.server, self.http, settings.vllm_api_key, settings.max_tokenize_bytes, clock=self.clock
        )
        self.block_texts = BlockTexts(tokenizer.detokenize)
        self.chat_proxy = ChatProxy(
            self.server, settings, self._emit, self.clock, self.server_record, tokenizer, salt_key=self._salt_key
        )

    def server_record(self) -> ServerRecord | None:
        """What is known of the server; None before anything is."""
        return self.ledger.server(self.server)

    def model_name(self) -> str | None:
        """The first model that the server serves; None while it isn't up."""
        record = self.server_record()
        return record.models[0] if record and record.state == "up" and record.models else None

    def mark(self) -> float:
        """Moves the window `since_mark` to this moment. Returns it, in milliseconds of the Unix epoch."""
        now = self.clock.monotonic()
        self.ledger.mark(self.server, now)
        self.hub.publish(self.ledger.tick(now))
        return self.clock.wall_ms()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the writer, the sources and the demo's scenario until the block is left."""
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(self.writer.run(), name="writer")]
                for name, (run, tell_failed) in self._sources().items():
                    running.append(tasks.create_task(_keep_running(name, run, tell_failed), name=name))
                if self.scenario is not None:
                    self.scenario.start()
                try:
                    yield
                finally:
                    if self.scenario is not None:
                        await self.scenario.close()
                    for task in running:
                        task.cancel()
        finally:
            await self.chat_proxy.close()
            await self.http.aclose()

    def _emit(self, observation: Observation) -> None:
        self.writer.emit(observation)
        if _tells_of_a_lost_server(observation):
            self._probe.wake()

    def _sources(self) -> dict[str, tuple[Run, Callable[[str], object] | None]]:
        """Each source by name, and how its failure is shown; the probe's isn't: what it last found still stands."""
        settings = self.settings
        subscriber = KvSubscriber(
            self.server, Rank(0), settings.kv_events, settings.kv_replay, settings.kv_topic, self._emit, self.clock,
            salt_key=self._salt_key, max_message_bytes=settings.max_kv_message_bytes,
            receive_hwm=settings.kv_receive_hwm,
        )  # fmt: skip
        scraper = MetricsScraper(
            self.server, self.http, self._emit, self.clock, settings.scrape_interval_s, settings.scrape_timeout_s,
            settings.vllm_api_key,
        )  # fmt: skip
        return {
            "KV events": (subscriber.run, subscriber.tell_failed),
            "metrics": (scraper.run, scraper.tell_failed),
            "probe": (self._probe.run, None),
        }


def _tells_of_a_lost_server(observation: Observation) -> bool:
    """Whether it is worth asking the server at once how it is."""
    if isinstance(observation, MetricsFailed):
        return observation.status is None
    return isinstance(observation, RequestEnded) and observation.outcome == "server_gone"


async def _keep_running(name: str, run: Run, tell_failed: Callable[[str], object] | None) -> None:
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


def server_id(settings: Settings) -> ServerId:
    """The server's base URL in its one form: no trailing slash, and without the `/v1` that clients put behind it.

    Raises SettingsError where there is none, it isn't an http URL, or it carries a password.
    """
    if settings.vllm is None:
        raise SettingsError(
            "which vLLM server? None is given", hint="Pass --vllm http://HOST:8000, or set PREFIXSCOPE_VLLM."
        )
    text = settings.vllm.rstrip("/").removesuffix("/v1").rstrip("/")
    if "@" in text:
        # The URL names the server in the API, on the page and in the log, so it isn't repeated here either.
        raise SettingsError(
            "vllm: a URL with a user or password in it can't be used",
            hint="Give http://HOST:PORT, and the server's key as PREFIXSCOPE_VLLM_API_KEY.",
        )
    if _host(text) is None or urlsplit(text).scheme not in ("http", "https") or "?" in text or "#" in text:
        raise SettingsError(
            f"vllm: {settings.vllm!r} is not the base URL of a server", hint="For example http://127.0.0.1:8000."
        )
    return ServerId(text)


def kv_line(settings: Settings) -> str:
    """Where KV events are looked for, for the command line to say. Raises SettingsError for an unusable address."""
    events, replay = resolved_endpoints(settings.kv_events, settings.kv_replay, server_id(settings), Rank(0))
    guess = "" if settings.kv_events else " (not given: the server's host on vLLM's documented ports)"
    return f"{events}, {f'replay {replay}' if replay else 'no replay (see --kv-replay)'}{guess}"


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname
