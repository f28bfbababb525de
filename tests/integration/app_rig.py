"""The dashboard in the test's own event loop, listening on a free port, and the embedded engine as a process."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect

from app.factory import App, create_app
from app.serving import listen, make_server, rules_of, url_of
from app.settings import load_settings
from tests.processes import Process, app_process, free_ports

WAIT_S = 20.0
Value = TypeVar("Value")


class Engine:
    """`python -m app engine` on free ports."""

    def __init__(self, log: Path, *flags: str) -> None:
        self.port, self.events_port, self.replay_port = free_ports(3)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: Process = app_process(
            log, "engine", "--port", str(self.port), "--events-port", str(self.events_port),
            "--replay-port", str(self.replay_port), *flags,
        )  # fmt: skip

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a dashboard in front of it."""
        return {
            "vllm": self.url,
            "kv_events": f"tcp://127.0.0.1:{self.events_port}",
            "kv_replay": f"tcp://127.0.0.1:{self.replay_port}",
        }

    def start(self) -> None:
        """Starts it and waits until it answers."""
        self.process.start()
        self.process.wait_for(f"{self.url}/health", 60)


@contextmanager
def running_engine(log: Path, *flags: str) -> Iterator[Engine]:
    """A started engine, ended at the end of the block."""
    engine = Engine(log, *flags)
    try:
        engine.start()
        yield engine
    finally:
        engine.process.stop()


@dataclass
class Dashboard:
    """A running dashboard and a client for it."""

    app: App
    url: str
    http: httpx.AsyncClient

    @property
    def page_headers(self) -> dict[str, str]:
        """What the page's own requests say of themselves."""
        return {"X-PrefixScope-Origin": "page", "Origin": self.url}

    async def json(self, path: str, status: int = 200) -> Any:
        """The JSON at `path`."""
        response = await self.http.get(path)
        assert response.status_code == status, response.text
        return response.json()

    def live(self, query: str = "", **options: Any) -> connect:
        """A websocket client for the live stream."""
        # The library stops reading above 16 messages that nobody asked for, and would then miss the close frame.
        url = f"{self.url.replace('http', 'ws')}/live{query}"
        return connect(url, max_size=None, compression=None, close_timeout=0.2, **options)

    async def until_ready(self) -> None:
        """Waits until its server is seen."""

        async def ready() -> bool:
            return (await self.http.get("/readyz")).status_code == 200

        await eventually(ready)

    async def send(self, body: dict[str, Any]) -> dict[str, Any]:
        """Sends a chat as the page does; its record and block table once they are final."""
        response = await self.http.post("/v1/chat/completions", json=body, headers=self.page_headers)
        assert response.status_code == 200, response.text
        path = f"/api/requests/{response.headers['X-PrefixScope-Request']}"

        async def finished() -> dict[str, Any] | None:
            record: dict[str, Any] = await self.json(path)
            return record if record["outcome"] and record["block_table"] else None

        return await eventually(finished)


@asynccontextmanager
async def dashboard(settings: dict[str, str], *, demo: bool = False) -> AsyncIterator[Dashboard]:
    """A dashboard with `settings` (by the names of the table) on a free port."""
    parsed = load_settings({}, {"host": "127.0.0.1", "port": "0", "shutdown_grace_s": "1", **settings})
    app = create_app(parsed, demo=demo)
    bound = listen(parsed.host, parsed.port)
    started = asyncio.Event()
    server = make_server(app, parsed.shutdown_grace_s, started.set, rules_of(parsed))
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    url = url_of(bound)
    try:
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait([serving, asyncio.create_task(started.wait())], return_when=asyncio.FIRST_COMPLETED)
        async with httpx.AsyncClient(base_url=url, timeout=WAIT_S, trust_env=False) as http:
            yield Dashboard(app, url, http)
    finally:
        server.should_exit = True
        await serving


async def connected(to: Dashboard) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A bare connection."""
    host, port = to.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends."""
    async with asyncio.timeout(WAIT_S):
        return await reader.read()


async def eventually(look: Callable[[], Awaitable[Value | None]], timeout_s: float = WAIT_S) -> Value:
    """What `look` gives, once that is something true."""
    async with asyncio.timeout(timeout_s):
        while True:
            found = await look()
            if found:
                return found
            await asyncio.sleep(0.01)


async def messages_until(live: ClientConnection, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """Messages of the live stream up to the `count`-th of type `kind`, heartbeats left out."""
    messages: list[dict[str, Any]] = []
    async with asyncio.timeout(WAIT_S):
        while [message["type"] for message in messages].count(kind) < count:
            message = json.loads(await live.recv())
            if message["type"] != "heartbeat":
                messages.append(message)
    return messages


def chat_body(model: str, question: str = "Where is my parcel?", system: str | None = None) -> dict[str, Any]:
    """A chat request as the page sends it; without `system`, with a prompt that no other test has."""
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": system or f"{uuid.uuid4()}: " + "Answer briefly and kindly. " * 40},
            {"role": "user", "content": question},
        ],
        "max_tokens": 8,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "vllm_xargs": {"kv_cache_report_mode": "full"},
    }
