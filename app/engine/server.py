"""The embedded engine as a process: its configuration, its start, its end."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from hashlib import sha256
from types import TracebackType

import uvicorn
import uvloop

from .config import ConfigError, EngineConfig, core_config, imitation_in
from .generate import Generator
from .http_app import HttpApp
from .kv_wire import EventEncoder
from .listening import PortTaken, bracketed, listen
from .loop import EngineLoop
from .metrics_page import MetricsPage
from .models import Models
from .publisher import EventPublisher
from .ranks import EngineRanks
from .tokenizer import Tokenizer

__all__ = ["ConfigError", "EmbeddedEngine", "EngineConfig", "core_config", "serve_engine"]

SHUTDOWN_GRACE_S = 3
_ATTEMPTS_AT_FREE_PORTS = 20


class EmbeddedEngine:
    """A running engine: an asynchronous context manager. The addresses are the real ones once it is entered.

    A tokenizer takes half a second to make; engines in one process may share theirs.
    """

    def __init__(self, config: EngineConfig, tokenizer: Tokenizer | None = None) -> None:
        """Raises ConfigError."""
        self.config = config
        self._tokenizer = tokenizer
        self._core = core_config(config)
        self._imitation = imitation_in(config)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.base_url = ""
        self.events_endpoints: tuple[str, ...] = ()
        """One a rank; none where events are off."""
        self.replay_endpoints: tuple[str, ...] = ()

    @property
    def events_endpoint(self) -> str:
        """Of rank 0; "" where events are off."""
        return self.events_endpoints[0] if self.events_endpoints else ""

    @property
    def replay_endpoint(self) -> str:
        """Of rank 0; "" where there is none."""
        return self.replay_endpoints[0] if self.replay_endpoints else ""

    async def __aenter__(self) -> "EmbeddedEngine":
        """Starts. Raises PortTaken."""
        config = self.config
        try:
            listener = listen(config.host, config.port)
            self._stack.callback(listener.close)
            self.base_url = f"http://{bracketed(config.host)}:{listener.getsockname()[1]}"
            publishers = self._open_publishers() if self._imitation.events else []
            self.ranks = self._make_ranks(publishers)
            self.server = self._http_server()
            self._tasks = [
                *(asyncio.create_task(loop.run()) for loop in self.ranks.loops),
                *(asyncio.create_task(each.serve_replay()) for each in publishers if self._imitation.replay),
                asyncio.create_task(self.server.serve(sockets=[listener])),
            ]
            await self.server.listening.wait()
        except BaseException:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends running requests, then everything else. Raises what a part of the engine failed with meanwhile."""
        *background, serving = self._tasks
        self.server.should_exit = True
        self.ranks.abort_all()
        try:
            ends: list[object] = [*await asyncio.gather(serving, return_exceptions=True)]
            for task in background:
                task.cancel()
            ends += await asyncio.gather(*background, return_exceptions=True)
        finally:
            await self._stack.aclose()
        for end in ends:
            if error is None and isinstance(end, Exception):
                raise end

    @property
    def ready_line(self) -> str:
        """The one line that tells where everything is. Of several ranks it names the first one's ports."""
        told = [f"events {self.events_endpoint}" if self.events_endpoint else "no events"]
        if self.events_endpoint:
            told.append(f"replay {self.replay_endpoint}" if self.replay_endpoint else "no replay")
        ranks = self.config.data_parallel_size
        if ranks > 1:
            told.insert(0, f"{ranks} ranks")
        return f"embedded engine ready on {self.base_url} ({', '.join(told)})"

    async def wait(self) -> None:
        """Until the server was told to exit, or a part of the engine failed: then raises what it raised."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    def _open_publishers(self) -> list[EventPublisher]:
        """One a rank. Free ports are looked for until there are enough in a row, since clients count on port + rank."""
        config = self.config
        for attempt in range(_ATTEMPTS_AT_FREE_PORTS):
            with contextlib.ExitStack() as opened:
                try:
                    publishers = [self._open_publisher(opened, rank) for rank in range(config.data_parallel_size)]
                except PortTaken:
                    self.events_endpoints = self.replay_endpoints = ()
                    if attempt + 1 == _ATTEMPTS_AT_FREE_PORTS or (config.events_port and config.first_replay_port):
                        raise
                    continue
                self._stack.push(opened.pop_all().__exit__)
                return publishers
        raise AssertionError("the last attempt returns or raises")

    def _open_publisher(self, opened: contextlib.ExitStack, rank: int) -> EventPublisher:
        config, imitation = self.config, self._imitation
        publisher = EventPublisher(config.events_topic, replay_topic=imitation.replay_topic)
        events_port = _port_of(config.events_port, self.events_endpoint, rank)
        replay_port = _port_of(config.first_replay_port, self.replay_endpoint, rank) if imitation.replay else None
        events, replay = publisher.open(config.host, events_port, replay_port)
        opened.callback(publisher.close)
        self.events_endpoints += (events,)
        if replay is not None:
            self.replay_endpoints += (replay,)
        return publisher

    def _make_ranks(self, publishers: list[EventPublisher]) -> EngineRanks:
        page = MetricsPage(self._imitation.metrics_of)
        loops = [
            EngineLoop(
                self._core,
                publishers[rank].publish if publishers else None,
                self.config.model_name,
                rank=rank,
                page=page,
                encoder=EventEncoder(rank, self._imitation),
            )
            for rank in range(self.config.data_parallel_size)
        ]
        return EngineRanks(loops, page)

    def _http_server(self) -> "_HttpServer":
        config, core = self.config, self._core
        told = f"{core.num_gpu_blocks} {core.block_size} {core.profile} {config.model_name}".encode()
        models = Models(config.model_name, config.lora)
        generator = Generator(
            self.ranks,
            self._tokenizer or Tokenizer(),
            models,
            f"prefixscope-embedded-{sha256(told).hexdigest()[:8]}",
            imitation=self._imitation,
            images=config.imitate_images,
        )
        app = HttpApp(self.ranks, generator, models, profile=core.profile, imitation=self._imitation)
        settings = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_level="warning",
            timeout_keep_alive=75,
            timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
            proxy_headers=False,
        )
        return _HttpServer(settings, self.ranks)


def _port_of(first: int, first_endpoint: str, rank: int) -> int:
    """A rank's port: counted from the first one's, which is known once that is bound."""
    return first + rank if first or not rank else int(first_endpoint.rpartition(":")[2]) + rank


class _HttpServer(uvicorn.Server):
    """Leaves signals to the process, and lets no request outlive the wish to exit."""

    def __init__(self, config: uvicorn.Config, ranks: EngineRanks) -> None:
        super().__init__(config)
        self._ranks = ranks
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ranks.abort_all()
        await super().shutdown(sockets)


async def _serve(config: EngineConfig) -> None:
    async with EmbeddedEngine(config) as engine:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, setattr, engine.server, "should_exit", True)
        print(engine.ready_line, flush=True)
        await engine.wait()


def serve_engine(config: EngineConfig) -> None:
    """Serves until SIGINT or SIGTERM; prints one line when ready.

    What can't start says so in one line on stderr and raises SystemExit: 2 for a configuration, 1 for a taken port.
    """
    try:
        core_config(config)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(config))
    except ConfigError as error:
        print(f"embedded engine: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except PortTaken as error:
        print(f"embedded engine: {error}", file=sys.stderr)
        raise SystemExit(1) from None
