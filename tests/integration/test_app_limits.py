"""Slow bodies, large bodies, too many connections, guessed tokens behind a proxy: hit, told, and survived."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.processes import free_ports

from .app_rig import WAIT_S, Dashboard, all_of, connected, dashboard, eventually

TOKEN = "operator-token-0123456789"
MEGABYTE = 1024 * 1024


@asynccontextmanager
async def board(**settings: str) -> AsyncIterator[Dashboard]:
    """A dashboard in front of nothing."""
    async with dashboard({"vllm": f"http://127.0.0.1:{free_ports(1)[0]}", **settings}) as running:
        yield running


@pytest.mark.parametrize("spoofed", [True, False])
async def test_logins_are_throttled_by_the_address_that_the_proxy_saw(spoofed: bool) -> None:
    async with board(tokens=TOKEN, trusted_proxies="127.0.0.0/8", max_failed_logins="2") as b:

        async def log_in(token: str, number: int) -> int:
            seen = f"10.9.9.{number}, 203.0.113.7" if spoofed else f"203.0.113.{number}"
            answer = await b.http.post("/login", data={"token": token}, headers={"X-Forwarded-For": seen})
            assert ("retry-after" in answer.headers) == (answer.status_code == 429)
            return answer.status_code

        wrong = [await log_in("wrong", number) for number in range(4)]
        right = await log_in(TOKEN, 9)
    assert (wrong, right) == (([401, 401, 429, 429], 429) if spoofed else ([401] * 4, 303))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/lint", "/api/forecast", "/login"])
async def test_a_body_that_comes_too_slowly_is_given_up(path: str) -> None:
    async with board(body_timeout_s="0.3") as b:
        reader, writer = await connected(b)
        writer.write(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000\r\n\r\n".encode())

        async def drip() -> None:
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        try:
            answer = await all_of(reader)
        except ConnectionResetError:
            # What was still being sent when the server closed resets the connection, and takes the answer along.
            answer = b""
        dripping.cancel()
        writer.close()
        assert not answer or (answer.startswith(b"HTTP/1.1 408 ") and b"body_timeout" in answer), answer[:200]
        assert (await b.http.get("/healthz")).status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/forecast"])
async def test_bodies_together_hold_no_more_than_allowed(path: str) -> None:
    async with board(max_held_bytes="100000") as b:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 90000\r\n\r\n".encode()
        reader, writer = await connected(b)
        writer.write(head + b"x" * 80_000)

        async def full() -> bool:
            answer = await b.http.post(path, content=b"x" * 60_000)
            assert (answer.status_code == 503) == ("retry-after" in answer.headers)
            return answer.status_code == 503 and "max_held_bytes" in answer.text

        await eventually(full)
        assert (await b.http.post(path, content=b"x" * 1000)).status_code != 503
        writer.write(b"x" * 10_000)
        async with asyncio.timeout(WAIT_S):
            assert b" 503 " not in await reader.readuntil(b"\r\n")
        writer.close()

        async def room_again() -> bool:
            return (await b.http.post(path, content=b"x" * 60_000)).status_code != 503

        await eventually(room_again)


async def test_a_body_of_a_hundred_megabytes_passes_or_is_refused_and_nobody_notices() -> None:
    async with board() as b:

        async def status(path: str, content: bytes | AsyncIterator[bytes]) -> int | None:
            """None where the refusal came while the body was still being sent, and the reset took it along."""
            try:
                return (await b.http.post(path, content=content)).status_code
            except (httpx.ReadError, httpx.WriteError):
                return None

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(101):
                yield b"x" * MEGABYTE

        assert await status("/v1/chat/completions", b"x" * (100 * MEGABYTE)) == 502
        for path in ("/v1/chat/completions", "/api/forecast", "/api/lint"):
            assert await status(path, b"x" * (100 * MEGABYTE + 1)) in (413, None)
            assert await status(path, pieces()) in (413, None)
        assert (await b.http.get("/healthz")).status_code == 200
        assert not (await b.json("/api/requests"))["requests"][1:]


async def test_above_the_bound_the_connection_that_rested_longest_gives_way() -> None:
    async with board(max_connections="50") as b:
        idle = [await connected(b) for _ in range(200)]
        assert (await b.http.get("/healthz")).status_code == 200
        first, last = idle[0], idle[-1]
        assert await all_of(first[0]) == b""
        last[1].write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert (await all_of(last[0])).startswith(b"HTTP/1.1 200 ")
        for _, writer in idle:
            writer.close()


async def test_a_connection_at_work_does_not_give_way() -> None:
    async with board(max_connections="20", body_timeout_s="30") as b:
        reader, writer = await connected(b)
        writer.write(b"POST /api/forecast HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n12")
        async with b.live() as live:
            await live.recv()
            idle = [await connected(b) for _ in range(60)]
            assert await all_of(idle[0][0]) == b""
            writer.write(b"34")
            async with asyncio.timeout(WAIT_S):
                assert b" 400 " in await reader.readuntil(b"\r\n")
                await live.recv()
        for _, each in [(reader, writer), *idle]:
            each.close()
