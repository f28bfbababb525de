"""A scripted server, the proxy in front of it, and a client that sees every byte: on loopback, in one event loop."""

import asyncio
import inspect
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
import uvicorn
import uvloop

from app.events import ServerRecord
from app.ids import ServerId
from app.observations import Observation, RequestEnded
from app.settings import load_settings
from app.sources.chat_proxy import ChatProxy
from app.sources.clock import SystemClock
from app.web.proxy import ProxyApp

WAIT_S = 10.0
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
Kind = TypeVar("Kind", bound=Observation)


def chunk(data: bytes) -> bytes:
    """One piece of a body in chunked framing."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def sized(body: bytes, status: bytes = b"200 OK", headers: bytes = b"content-type: application/json\r\n") -> bytes:
    """A whole response with a length."""
    return b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (status, headers, len(body), body)


def sse(*events: bytes) -> list[bytes]:
    """A streamed response, one write an event."""
    return [SSE_HEAD, *(chunk(event) for event in events), LAST_CHUNK]


@dataclass
class Asked:
    """A request as the server received it, and the connection that it came on."""

    head: bytes
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    connection: int

    @property
    def line(self) -> bytes:
        """The request line."""
        return self.head.split(b"\r\n", 1)[0]

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Header pairs, names in lower case."""
        return pairs(self.head)

    async def send(self, *pieces: bytes) -> None:
        """Writes the pieces one by one, each in a packet of its own where the system plays along."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def closed(self) -> float:
        """Waits until the other side closed the connection. Returns the loop's time."""
        async with asyncio.timeout(WAIT_S):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass
        return asyncio.get_running_loop().time()


Script = Callable[[Asked], Awaitable[None]]


class ScriptedServer:
    """Answers each request with `script`; keeps connections open until the script closes them."""

    def __init__(self, script: Script | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self._tls = tls
        self.asked: list[Asked] = []
        self.connections = 0
        self.url = ""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listens on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26, ssl=self._tls)
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Closes the listener and every connection."""
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = dict(pairs(head)).get(b"content-length", b"0")
                asked = Asked(head, await reader.readexactly(int(length)), reader, writer, number)
                self.asked.append(asked)
                assert self.script is not None
                await self.script(asked)
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


@dataclass
class Answer:
    """A response as the client received it: its body without the framing, and whether it came to its end."""

    status: int
    head: bytes
    body: bytes
    complete: bool

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Header pairs, names in lower case."""
        return pairs(self.head)

    def header(self, name: bytes) -> bytes | None:
        """The one value of a header."""
        return dict(self.headers).get(name)


def pairs(head: bytes) -> list[tuple[bytes, bytes]]:
    """Header pairs of a head, names in lower case."""
    lines = head.rstrip(b"\r\n").split(b"\r\n")[1:]
    return [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]


class Client:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, url: str, buffer_bytes: int = 1 << 26) -> "Client":
        """Connects. Reads ahead at most twice `buffer_bytes`."""
        host, _, port = url.removeprefix("http://").partition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=buffer_bytes))

    async def ask(
        self,
        body: bytes = b"{}",
        path: bytes = b"/v1/chat/completions",
        headers: bytes = b"",
        method: bytes = b"POST",
        host: bytes = b"localhost",
    ) -> None:
        """Sends a request."""
        length = b"content-length: %d\r\n" % len(body) if body or method == b"POST" else b""
        head = b"%b %b HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\n%b%b\r\n" % (
            method,
            path,
            host,
            length,
            headers,
        )
        self.writer.write(head + body)
        await self.writer.drain()

    async def answer(self, *, without_body: bool = False) -> Answer:
        """Reads a response to its end, or to where it breaks off."""
        async with asyncio.timeout(WAIT_S):
            head = await self.head()
            fields = dict(pairs(head))
            status = int(head.split(b" ", 2)[1])
            if without_body or status in (204, 304):
                return Answer(status, head, b"", True)
            body = bytearray()
            try:
                if fields.get(b"transfer-encoding") == b"chunked":
                    while size := int(await self.reader.readuntil(b"\r\n"), 16):
                        body += (await self.reader.readexactly(size + 2))[:-2]
                    await self.reader.readexactly(2)
                elif b"content-length" in fields:
                    body += await self.reader.readexactly(int(fields[b"content-length"]))
                else:
                    body += await self.reader.read()
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                body += getattr(error, "partial", b"")
                return Answer(status, head, bytes(body), False)
            return Answer(status, head, bytes(body), True)

    async def head(self) -> bytes:
        """Reads a response's head."""
        async with asyncio.timeout(WAIT_S):
            return await self.reader.readuntil(b"\r\n\r\n")

    async def read_until(self, text: bytes) -> bytes:
        """Reads raw bytes until `text` has come."""
        async with asyncio.timeout(WAIT_S):
            return await self.reader.readuntil(text)

    def close(self) -> None:
        """Hangs up."""
        self.writer.close()


class FakeTokenizer:
    """Answers with the same tokens each time, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.tokens: tuple[int, ...] | None = (1, 2, 3)

    async def tokenize(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """See TokenizerClient."""
        self.asked.append((path, body))
        return self.tokens


@dataclass
class Rig:
    """Everything a test needs."""

    server: ScriptedServer
    proxy: ChatProxy
    url: str
    tokenizer: FakeTokenizer
    seen: list[Observation] = field(default_factory=list)

    def all(self, kind: type[Kind]) -> list[Kind]:
        """The observations of a kind, so far."""
        return [observation for observation in self.seen if isinstance(observation, kind)]

    async def ended(self, number: int = 1) -> RequestEnded:
        """Waits until `number` requests ended; the last of them."""
        await until(lambda: len(self.all(RequestEnded)) >= number)
        await asyncio.sleep(0)
        assert len(self.all(RequestEnded)) == number
        return self.all(RequestEnded)[-1]

    async def fetch(self, *arguments: Any, **options: Any) -> Answer:
        """One request on a connection of its own."""
        client = await Client.to(self.url)
        await client.ask(*arguments, **options)
        answer = await client.answer()
        client.close()
        return answer


def on_both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs an async test on asyncio's own loop and on uvloop, whose transports differ in what they buffer."""

    def run(loop: str, **arguments: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
            runner.run(_awaited(test(**arguments)))

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    run.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
    signature = inspect.signature(test)
    loop_parameter = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), loop_parameter]
    )
    marked: Callable[..., None] = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])(run)
    return marked


async def _awaited(result: Awaitable[None]) -> None:
    await result


async def until(condition: Callable[[], bool]) -> None:
    """Waits until `condition` holds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


@asynccontextmanager
async def rig(
    script: Script | None = None, *, version: str | None = "0.32.0", tls: ssl.SSLContext | None = None, **settings: str
) -> AsyncIterator[Rig]:
    """A scripted server with the proxy in front of it, served as the product serves it."""
    server = ScriptedServer(script, tls)
    await server.start()
    seen: list[Observation] = []
    tokenizer = FakeTokenizer()
    record = ServerRecord(ServerId(server.url), state="up", version=version)
    proxy = ChatProxy(
        ServerId(server.url),
        load_settings({}, {"vllm": server.url, **settings}),
        seen.append,
        SystemClock(),
        lambda: record,
        tokenizer,
        salt_key=b"k" * 32,
    )
    try:
        async with serving(proxy) as url:
            yield Rig(server, proxy, url, tokenizer, seen)
    finally:
        await server.stop()


@asynccontextmanager
async def serving(proxy: ChatProxy) -> AsyncIterator[str]:
    """`proxy` on a free port; its URL."""
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        ProxyApp(proxy),
        http="httptools",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    web = uvicorn.Server(config)
    web.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(web.serve(sockets=[bound]))
    try:
        await until(lambda: web.started)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        web.should_exit = True
        await task
        await proxy.close()
        bound.close()
