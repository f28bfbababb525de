"""The embedded engine as a process: its configuration, its start, its end."""

import asyncio
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType

import uvicorn
import uvloop

from .core import CoreConfig
from .generate import Generator
from .http_app import HttpApp
from .listening import PortTaken, bracketed, listen
from .loop import EngineLoop
from .profiles import DEFAULT_PROFILE, PROFILES
from .publisher import EventPublisher
from .tokenizer import Tokenizer

DEFAULT_MODEL_NAME = "Qwen2.5-7B-Instruct"
SHUTDOWN_GRACE_S = 3


class ConfigError(ValueError):
    """A configuration that can't run; the text is one clear line."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The flags of `python -m app engine`. None: what the profile says. Port 0 takes a free one.

    `max_model_len` is bounded by what the pool holds; a pool of N blocks serves N-1.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    events_port: int = 5557
    replay_port: int = 5558
    num_gpu_blocks: int | None = None
    block_size: int | None = None
    profile: str = DEFAULT_PROFILE
    model_name: str = DEFAULT_MODEL_NAME
    max_num_batched_tokens: int | None = None
    max_num_seqs: int = 256
    max_model_len: int = 32768
    enable_prefix_caching: bool = True
    events_topic: str = "kv-events"


def core_config(config: EngineConfig) -> CoreConfig:
    """What the core needs of it. Raises ConfigError."""
    profile = PROFILES.get(config.profile)
    if profile is None:
        raise ConfigError(f"there is no profile {config.profile!r}; there are: {', '.join(PROFILES)}")
    core = CoreConfig(
        num_gpu_blocks=profile.num_gpu_blocks if config.num_gpu_blocks is None else config.num_gpu_blocks,
        block_size=profile.block_size if config.block_size is None else config.block_size,
        max_num_batched_tokens=profile.max_num_batched_tokens
        if config.max_num_batched_tokens is None
        else config.max_num_batched_tokens,
        max_num_seqs=config.max_num_seqs,
        max_model_len=config.max_model_len,
        enable_prefix_caching=config.enable_prefix_caching,
        profile=profile,
    )
    if core.num_gpu_blocks < 2:
        raise ConfigError("a pool has at least 2 blocks: one of them is the null block")
    smallest = min(core.block_size, core.max_num_batched_tokens, core.max_num_seqs, core.max_model_len - 1)
    if smallest < 1:
        raise ConfigError("block size, tokens a step and sequences are at least 1, the context at least 2")
    if not config.model_name:
        raise ConfigError("a model has a name")
    return core


class EmbeddedEngine:
    """A running engine: an asynchronous context manager. The addresses are the real ones once it is entered.

    A tokenizer takes half a second to make; engines in one process may share theirs.
    """

    def __init__(self, config: EngineConfig, tokenizer: Tokenizer | None = None) -> None:
        self.config = config
        self._tokenizer = tokenizer
        self._core = core_config(config)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.base_url = self.events_endpoint = self.replay_endpoint = ""

    async def __aenter__(self) -> "EmbeddedEngine":
        """Starts. Raises PortTaken."""
        config = self.config
        try:
            listener = listen(config.host, config.port)
            self._stack.callback(listener.close)
            self.base_url = f"http://{bracketed(config.host)}:{listener.getsockname()[1]}"
            publisher = EventPublisher(config.events_topic)
            self.events_endpoint, self.replay_endpoint = publisher.open(
                config.host, config.events_port, config.replay_port
            )
            self._stack.callback(publisher.close)
            self.loop = EngineLoop(self._core, publisher.publish, config.model_name)
            self.server = self._http_server()
            self._tasks = [
                asyncio.create_task(self.loop.run()),
                asyncio.create_task(publisher.serve_replay()),
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
        self.loop.abort_all()
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
        """The one line that tells where everything is."""
        return (
            f"embedded engine ready on {self.base_url} (events {self.events_endpoint}, replay {self.replay_endpoint})"
        )

    async def wait(self) -> None:
        """Until the server was told to exit, or a part of the engine failed: then raises what it raised."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    def _http_server(self) -> "_HttpServer":
        config, core = self.config, self._core
        told = f"{core}{config.model_name}".encode()
        fingerprint = f"prefixscope-embedded-{sha256(told).hexdigest()[:8]}"
        tokenizer = self._tokenizer or Tokenizer()
        generator = Generator(self.loop, tokenizer, config.model_name, fingerprint)
        app = HttpApp(self.loop, tokenizer, generator, model_name=config.model_name, profile=config.profile)
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
        return _HttpServer(settings, self.loop)


class _HttpServer(uvicorn.Server):
    """Leaves signals to the process, and lets no request outlive the wish to exit."""

    def __init__(self, config: uvicorn.Config, loop: EngineLoop) -> None:
        super().__init__(config)
        self._engine_loop = loop
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._engine_loop.abort_all()
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
