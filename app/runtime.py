"""The composition root: builds clients, sources, ledger and hub from the settings, and owns the tasks that they run in.

Everything that the web edge needs hangs on one `Runtime`; nothing here is global, and nothing runs before `running()`.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from . import __version__
from .demo_words import in_demo_words
from .doctor.live import LiveDoctor
from .events import Hello, Outgoing, ServerRecord
from .fits import FitKeeper
from .fleet_watch import FleetWatch
from .garbage import collect_when_idle
from .hub.fanout import Hub
from .ids import ServerId
from .metering import Metering
from .model.details import LedgerLimits
from .model.ledger import Ledger
from .scenario import Scenario
from .settings import Settings
from .sources.chat_proxy import ChatProxy
from .sources.clock import Clock, SystemClock
from .targets import targets_of
from .watched import WatchedServer, keep_running
from .wire.salt import KEY_BYTES
from .writer import Writer

LAG_INTERVAL_S = 0.1


class Runtime:
    """One run of the dashboard. `server` is the first of the servers: the one that clients' requests go to."""

    def __init__(self, settings: Settings, *, demo: bool = False, clock: Clock | None = None) -> None:
        self.settings = settings
        self.targets = targets_of(settings)
        self.server = self.targets[0].server
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
                show_prompts=settings.show_prompts and not settings.redact,
                redact=settings.redact,
            ),
            settings.max_client_queue_events,
            settings.heartbeat_s,
            self.ledger.snapshot,
            self.clock,
        )
        self.writer = Writer(self.ledger, self._publish, self.clock, settings.kv_receive_hwm)
        self.scenario: Scenario | None = None
        self.lint_turn = asyncio.Lock()
        """Lists of requests are examined one at a time: each is large, and takes a thread for a long while."""
        self.what_if_turn = asyncio.Lock()
        """As `lint_turn`, for what-if questions."""
        self.residency = FleetWatch(self.ledger, self.clock)
        self._fits = FitKeeper(self.ledger, self.writer.emit, self.clock)
        self.salt_key = salt_key = secrets.token_bytes(KEY_BYTES)
        emit = in_demo_words(self.writer.emit) if demo else self.writer.emit
        self.watched: dict[ServerId, WatchedServer] = {
            target.server: WatchedServer(target, settings, emit, self.clock, salt_key) for target in self.targets
        }
        first = self.watched[self.server]
        self.doctor = LiveDoctor(
            {server: watched.http for server, watched in self.watched.items()},
            self.ledger,
            settings.vllm_api_key,
            self.clock,
        )
        self.chat_proxy = ChatProxy(
            self.server,
            settings,
            first.emit,
            self.clock,
            lambda: self.ledger.described(self.server),
            first.tokenizer,
            salt_key=salt_key,
        )

        self.metering = Metering(
            (
                ("clients", "Browsers connected", lambda: self.hub.clients),
                ("streams", "Requests being proxied", lambda: self.chat_proxy.active),
                ("observations_waiting", "Facts not applied yet", lambda: self.writer.waiting),
                ("observations_left_out", "Facts that could not be applied", lambda: self.writer.poisoned),
                ("batches_dropped", "KV-event batches dropped in a flood", lambda: self.writer.dropped_batches),
            ),
            lambda: filter(None, map(self.ledger.server, self.watched)),
        )

    def _publish(self, outgoing: list[Outgoing]) -> None:
        self.hub.publish(outgoing)
        self.metering.observe(outgoing)

    def server_record(self) -> ServerRecord | None:
        """What is known of the first server; None before anything is."""
        return self.ledger.server(self.server)

    def model_name(self) -> str | None:
        """The first model that the first server serves; None while it isn't up."""
        record = self.server_record()
        return record.models[0] if record and record.state == "up" and record.models else None

    def mark(self) -> float:
        """Moves the window `since_mark` of every server to this moment: milliseconds of the Unix epoch, returned."""
        now = self.clock.monotonic()
        for server in self.watched:
            self.ledger.mark(server, now)
        self.hub.publish(self.ledger.tick(now))
        return self.clock.wall_ms()

    async def _measure_lag(self) -> None:
        while True:
            due_s = self.clock.monotonic() + LAG_INTERVAL_S
            await asyncio.sleep(LAG_INTERVAL_S)
            self.metering.loop_lag.observe(max(self.clock.monotonic() - due_s, 0.0))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the writer, the sources and the demo's scenario until the block is left."""
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(self.writer.run(), name="writer"),
                    tasks.create_task(self._measure_lag(), name="loop lag"),
                    tasks.create_task(
                        collect_when_idle(lambda: self.chat_proxy.active > 0, self.clock.monotonic), name="garbage"
                    ),
                ]
                running.append(tasks.create_task(keep_running("fits", self._fits.run, None), name="fits"))
                for watched in self.watched.values():
                    running += watched.start(tasks)
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
            for watched in self.watched.values():
                await watched.close()
