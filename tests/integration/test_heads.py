"""Requests whose head never ends, or never begins: bounded in size and time, and nobody else notices."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from .app_rig import WAIT_S, Dashboard, all_of, connected, dashboard

NOWHERE = {"vllm": "http://127.0.0.1:9"}
MAX_HEAD_BYTES, HEAD_TIMEOUT_S = 32 * 1024, 0.5


@pytest.fixture
async def board() -> AsyncIterator[Dashboard]:
    bounds = {"max_head_bytes": str(MAX_HEAD_BYTES), "head_timeout_s": str(HEAD_TIMEOUT_S)}
    async with dashboard({**NOWHERE, **bounds}) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/v1/chat/completions"])
async def test_a_head_that_never_ends_is_cut_off(board: Dashboard, path: str) -> None:
    reader, writer = await connected(board)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n".encode())
    for number in range(2 * MAX_HEAD_BYTES // 1000):
        writer.write(b"x-%d: %b\r\n" % (number, b"a" * 1000))
    # What was still being sent when the server closed resets the connection, and may take the answer along.
    with contextlib.suppress(ConnectionResetError):
        assert (await all_of(reader)).startswith(b"HTTP/1.1 431 ")
    writer.close()


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: localhost\r\nx: "])
async def test_a_head_that_does_not_come_is_not_waited_for(board: Dashboard, begun: bytes) -> None:
    reader, writer = await connected(board)
    writer.write(begun)
    assert (await all_of(reader)).startswith(b"HTTP/1.1 408 ")
    writer.close()


async def test_a_second_head_is_bounded_too_and_a_body_is_not(board: Dashboard) -> None:
    reader, writer = await connected(board)
    body = b"x" * (3 * MAX_HEAD_BYTES)
    writer.write(b"POST /api/nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body))
    writer.write(body)
    async with asyncio.timeout(WAIT_S):
        assert b" 404 " in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"GET / HTTP/1.1\r\nx: ")
    assert b"HTTP/1.1 408 " in await all_of(reader)
    writer.close()


async def test_idle_sockets_leave_room_for_others(board: Dashboard) -> None:
    waiting = [await connected(board) for _ in range(200)]
    assert (await board.http.get("/healthz")).status_code == 200
    for reader, writer in waiting:
        assert (await all_of(reader)).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_connection_that_rests_between_requests_is_left_alone(board: Dashboard) -> None:
    reader, writer = await connected(board)
    for _ in range(2):
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        async with asyncio.timeout(WAIT_S):
            head = await reader.readuntil(b"\r\n\r\n")
            [length] = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            await reader.readexactly(int(length.split(b":")[1]))
        assert head.startswith(b"HTTP/1.1 200 ")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3 * HEAD_TIMEOUT_S):
                await reader.read(1)
    writer.close()
