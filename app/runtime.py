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
from .model.ledger import Ledger, LedgerLimits
from .scenario import Scenario
from .settings import Settings
from .sources.block_texts import BlockTexts
from .sources.chat_proxy import ChatProxy
from .sources.clock import Clock, SystemClock
from .sources.kv_subscriber import KvSubscriber
from .sources.metrics_scraper import MetricsScraper
from .sources.server_probe import ServerProbe
from .sources.tokenizer import TokenizerClient
from .writer import Writer

FIRST_RESTART_S = 1.0
LAST_RESTART_S = 60.0
KV_EVENTS_PORT = 5557
KV_REPLAY_PORT = 5558
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
        self.tokenizer = TokenizerClient(self.server, self.http, settings.vllm_api_key, settings.max_tokenize_bytes)
        self.block_texts = BlockTexts(self.tokenizer.detokenize)
        self.chat_proxy = self._chat_proxy()

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
                for name, run in self._sources().items():
                    running.append(tasks.create_task(_keep_running(name, run), name=name))
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

    def _sources(self) -> dict[str, Callable[[], Awaitable[None]]]:
        settings = self.settings
        key = settings.vllm_api_key
        events, replay = kv_addresses(settings)
        subscriber = KvSubscriber(
            self.server, Rank(0), events, replay, settings.kv_topic, self.writer.emit, self.clock,
            max_message_bytes=settings.max_kv_message_bytes, receive_hwm=settings.kv_receive_hwm,
        )  # fmt: skip
        scraper = MetricsScraper(
            self.server, self.http, self.writer.emit, self.clock, settings.scrape_interval_s,
            settings.scrape_timeout_s, key,
        )  # fmt: skip
        probe = ServerProbe(self.server, self.http, self.writer.emit, self.clock, key)
        return {"kv events": subscriber.run, "metrics": scraper.run, "probe": probe.run}

    def _chat_proxy(self) -> ChatProxy:
        return ChatProxy(self.server, self.settings, self.writer.emit, self.clock, self.server_record, self.tokenizer)


async def _keep_running(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Runs a source. One that fails in a way that it doesn't know itself is logged and started again."""
    pause_s = FIRST_RESTART_S
    while True:
        try:
            await run()
            logger.error("the source of %s ended by itself; it starts again in %.0f s", name, pause_s)
        except Exception:
            logger.exception("the source of %s failed; it starts again in %.0f s", name, pause_s)
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
        pause_s = min(pause_s * 2, LAST_RESTART_S)


def server_id(settings: Settings) -> ServerId:
    """The server's base URL in its one form: no trailing slash, and without the `/v1` that clients put behind it.

    Raises SettingsError where there is none or it isn't an http URL.
    """
    if settings.vllm is None:
        raise SettingsError(
            "which vLLM server? None is given", hint="Pass --vllm http://HOST:8000, or set PREFIXSCOPE_VLLM."
        )
    text = settings.vllm.rstrip("/").removesuffix("/v1").rstrip("/")
    if _host(text) is None or urlsplit(text).scheme not in ("http", "https"):
        raise SettingsError(
            f"vllm: {settings.vllm!r} is not the base URL of a server", hint="For example http://127.0.0.1:8000."
        )
    return ServerId(text)


def kv_addresses(settings: Settings) -> tuple[str, str]:
    """Where KV events and their replay are: as set, else the server's host on vLLM's documented ports."""
    host = _host(server_id(settings)) or ""
    named = f"[{host}]" if ":" in host else host
    return (
        settings.kv_events or f"tcp://{named}:{KV_EVENTS_PORT}",
        settings.kv_replay or f"tcp://{named}:{KV_REPLAY_PORT}",
    )


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname
