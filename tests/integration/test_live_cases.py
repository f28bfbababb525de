"""The browser link under slow clients, lost connections and proxies on the way, over real sockets."""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect

from app.events import Outgoing, ScenarioAdvanced, ScenarioState
from app.ids import BlockHash, GroupIdx, Rank
from app.observations import BlockRemoved, BlockStored, KvBatch
from app.settings import load_settings
from tests.processes import free_ports

from .app_rig import Dashboard, dashboard, eventually, messages_until

LONGEST_SILENCE_S = 25.0
"""What the browser link must stay below: load balancers cut connections that are silent for 60 s, some for 30."""
SIZE = 4
Message = dict[str, Any]


@asynccontextmanager
async def alone(**settings: str) -> AsyncIterator[Dashboard]:
    """A dashboard whose server doesn't exist: only what a test does happens on its link."""
    http, events = free_ports(2)
    with_nobody = {"vllm": f"http://127.0.0.1:{http}", "kv_events": f"tcp://127.0.0.1:{events}"}
    async with dashboard(with_nobody | settings) as board:
        yield board


def advance(board: Dashboard, first: int, count: int, caption: str = "") -> None:
    """Events `first`, `first` + 1, ..."""
    at_ms = board.app.runtime.clock.wall_ms()
    states = (ScenarioState(number, 0, caption, running=True) for number in range(first, first + count))
    board.app.runtime.hub.publish([Outgoing(ScenarioAdvanced(state), at_ms) for state in states])


def steps(messages: list[Message]) -> list[int]:
    return [m["data"]["scenario"]["step"] for m in messages if m["type"] == "scenario.advanced"]


def assert_strictly_increasing(messages: list[Message]) -> None:
    numbers = [message["seq"] for message in messages]
    assert all(before < after for before, after in itertools.pairwise(numbers)), numbers


class Mirror:
    """Blocks stored and removed by hand, through the dashboard's own writer."""

    def __init__(self, board: Dashboard) -> None:
        self._runtime = board.app.runtime
        self._seq = -1

    async def apply(self, *events: Any) -> None:
        self._seq += 1
        runtime = self._runtime
        now = runtime.clock.monotonic()
        runtime.writer.emit(KvBatch(runtime.server, Rank(0), self._seq, events, now, wire_form="map"))

        async def applied() -> bool:
            record = runtime.server_record()
            return bool(record and record.streams and record.streams[0].last_seq == self._seq)

        await eventually(applied)

    async def store(self, hashes: tuple[BlockHash, ...], parent: BlockHash | None = None) -> None:
        tokens = tuple(int(each) for each in hashes for _ in range(SIZE))
        group = GroupIdx(0)
        await self.apply(BlockStored(hashes, parent, tokens, SIZE, None, "GPU", None, group, "full_attention", None))

    async def remove(self, hashes: tuple[BlockHash, ...]) -> None:
        await self.apply(BlockRemoved(hashes, "GPU", GroupIdx(0)))

    @property
    def resident(self) -> set[str]:
        return {text for columns in self._runtime.ledger.block_columns() for text in columns.hash}


def shown(messages: list[Message], before: set[str] | None = None) -> set[str]:
    """The blocks that a page shows after these messages."""
    blocks = set(before or ())
    for message in messages:
        data = message["data"]
        if message["type"] == "snapshot":
            blocks = {text for columns in data["blocks"] for text in columns["hash"]}
        elif message["type"] == "blocks.stored":
            blocks |= set(data["hash"])
        elif message["type"] == "blocks.removed":
            blocks -= {text for text, left in zip(data["hash"], data["copies"], strict=True) if not left}
        elif message["type"] == "blocks.cleared":
            blocks = set()
    return blocks


async def until_seq(live: ClientConnection, seq: int) -> list[Message]:
    messages: list[Message] = []
    async with asyncio.timeout(20):
        while not messages or messages[-1]["seq"] < seq:
            message = json.loads(await live.recv())
            if message["type"] != "heartbeat":
                messages.append(message)
    return messages


async def test_a_paused_socket_gets_its_frames_in_order() -> None:
    async with alone() as board, board.live() as live:
        messages = await messages_until(live, "snapshot")
        live.transport.pause_reading()
        for number in range(100):
            advance(board, number, 1)
            await asyncio.sleep(0)
        live.transport.resume_reading()
        messages += await messages_until(live, "scenario.advanced", 100)

    assert steps(messages) == list(range(100))
    assert_strictly_increasing(messages)


async def test_a_slow_client_is_stable_after_one_fresh_snapshot() -> None:
    """A snapshot of megabytes through a small buffer, and more events meanwhile than may wait for a client."""
    async with alone(max_client_queue_events="50") as board:
        mirror, hub = Mirror(board), board.app.runtime.hub
        await mirror.store(tuple(range(1, 40_001)))
        async with slow_client(board) as client:
            messages = await client.take_until(lambda message: message["type"] == "hello")
            advance(board, 0, 300)
            messages += await client.take_until(lambda message: message["seq"] == hub.seq)
            advance(board, 300, 30)
            last = await client.take_until(lambda message: message["seq"] == hub.seq)

    assert [message["type"] for message in messages].count("snapshot") <= 2
    assert steps(last) == list(range(300, 330))
    assert_strictly_increasing(messages + last)


class SlowClient:
    """A browser's end of the link on a socket with a small buffer, read piece by piece; it answers pings when told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.pings: list[bytes] = []
        self._ready: list[Message] = []

    async def frame(self) -> tuple[int, bytes]:
        """The next frame: opcode and payload."""
        head = await self._reader.readexactly(2)
        size = head[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
        return head[0] & 0x0F, await self._reader.readexactly(size)

    async def message(self) -> Message | None:
        """The next message; None once the server has closed."""
        while True:
            opcode, payload = await self.frame()
            if opcode == 8:
                return None
            if opcode == 9:
                self.pings.append(payload)
                return {"type": "ping", "seq": -1, "data": {}}
            found: Message = json.loads(payload)
            return found

    def pong(self) -> None:
        """Answers every ping so far, the last of them last."""
        for payload in self.pings:
            self._writer.write(bytes((0x8A, 0x80 | len(payload), 0, 0, 0, 0)) + payload)
        self.pings.clear()

    async def take_until(self, is_last: Callable[[Message], bool]) -> list[Message]:
        """Messages up to one that fits, pings and heartbeats left out."""
        found: list[Message] = []
        async with asyncio.timeout(60):
            while not found or not is_last(found[-1]):
                message = await self.message()
                assert message is not None
                if message["type"] not in ("heartbeat", "ping"):
                    found.append(message)
        return found


@asynccontextmanager
async def slow_client(board: Dashboard) -> AsyncIterator[SlowClient]:
    address = urlsplit(board.url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (address.hostname, address.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=8192)
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET /live HTTP/1.1\r\nHost: {address.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    writer.write(head.encode())
    try:
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        yield SlowClient(reader, writer)
    finally:
        writer.close()


async def test_a_pong_that_comes_late_keeps_the_connection() -> None:
    async with alone(browser_ping_interval_s="0.2", browser_ping_timeout_s="30") as board, slow_client(board) as client:
        hub = board.app.runtime.hub
        await client.take_until(lambda message: message["type"] == "snapshot")
        for number in range(3):
            message = await client.message()
            assert message is not None
            while message["type"] != "ping":
                message = await client.message()
                assert message is not None
            # As if a proxy had held it back: events go on meanwhile.
            advance(board, number, 1)
            await client.take_until(lambda message: message["seq"] == hub.seq)
            client.pong()
        advance(board, 3, 1)
        assert steps(await client.take_until(lambda message: message["seq"] == hub.seq)) == [3]


async def test_one_that_never_answers_a_ping_is_let_go() -> None:
    async with alone(browser_ping_interval_s="0.05", browser_ping_timeout_s="0.2") as board:
        async with slow_client(board) as client:
            async with asyncio.timeout(20):
                with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                    while await client.message() is not None:
                        pass

        async def gone() -> bool:
            return board.app.runtime.hub.clients == 0

        await eventually(gone)


def test_silence_and_late_pongs_are_bounded_as_proxies_need_it() -> None:
    settings = load_settings({}, {})

    assert settings.heartbeat_s <= LONGEST_SILENCE_S
    assert settings.browser_ping_interval_s <= LONGEST_SILENCE_S
    assert settings.browser_ping_timeout_s > 45


@pytest.mark.parametrize("backlog", [20_000, 3])
async def test_what_went_while_a_client_was_away_is_gone_from_its_picture(backlog: int) -> None:
    async with alone(max_backlog_events=str(backlog)) as board:
        mirror = Mirror(board)
        hashes = tuple(range(1, 301))
        await mirror.store(hashes)
        async with board.live() as live:
            hello, snapshot = await messages_until(live, "snapshot")
        assert len(shown([snapshot])) == 300

        for number in range(100, 300):
            await mirror.remove((hashes[number],))

        query = f"?after={snapshot['seq']}&instance={hello['data']['instance']}"
        async with board.live(query) as live, asyncio.timeout(5):
            messages = await until_seq(live, board.app.runtime.hub.seq)

    kinds = [message["type"] for message in messages]
    assert ("snapshot" in kinds) == (backlog == 3)
    assert shown(messages, shown([snapshot])) == mirror.resident
    assert len(mirror.resident) == 100


async def test_what_happens_while_a_snapshot_is_made_comes_after_it() -> None:
    async with alone() as board:
        mirror = Mirror(board)
        await mirror.store(tuple(range(1, 20_001)))
        async with board.live() as live:
            for number in range(50):
                await mirror.remove((20_000 - number,))
            messages = await until_seq(live, board.app.runtime.hub.seq)

    assert [message["type"] for message in messages].count("snapshot") == 1
    assert_strictly_increasing(messages)
    assert shown(messages) == mirror.resident


async def test_compression_is_not_used_although_it_is_offered() -> None:
    async with alone() as board:
        url = f"{board.url.replace('http', 'ws')}/live"
        async with connect(url, max_size=None, compression="deflate") as live:
            assert live.response is not None
            assert "Sec-WebSocket-Extensions" not in live.response.headers
            await messages_until(live, "snapshot")
