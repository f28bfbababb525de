"""Awaitables driven by hand: as a task would, and without one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.web.steps import Departure, Message, Sender, Waiting, first_step


async def at_once(result: int) -> int:
    return result


async def later(future: "asyncio.Future[int]") -> int:
    return await future + 1


async def test_what_needn_t_wait_is_there_at_once() -> None:
    assert first_step(at_once(3)) == 3

    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        first_step(fails())


async def test_what_waits_goes_on_where_it_is_awaited() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    step = first_step(later(future))
    assert isinstance(step, Waiting)
    asyncio.get_running_loop().call_soon(future.set_result, 4)
    assert await step == 5


async def test_an_error_and_a_cancellation_reach_what_waits() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    step = first_step(later(future))
    assert isinstance(step, Waiting)
    loop.call_soon(future.set_exception, ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        await step

    ended: list[str] = []

    async def cleans_up() -> None:
        try:
            await loop.create_future()
        finally:
            ended.append("cleaned")

    waiting = first_step(cleans_up())
    assert isinstance(waiting, Waiting)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await waiting
    assert ended == ["cleaned"]


async def test_what_catches_an_error_may_go_on() -> None:
    first: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def tries_twice() -> int:
        try:
            return await first
        except ConnectionError:
            return await at_once(7)

    step = first_step(tries_twice())
    assert isinstance(step, Waiting)
    first.set_exception(ConnectionError())
    assert await step == 7


class SlowClient:
    """Takes messages; while it is slow, `send` waits."""

    def __init__(self) -> None:
        self.got: list[Message] = []
        self.slow: asyncio.Future[None] | None = None

    async def send(self, message: Message) -> None:
        self.got.append(message)
        if self.slow is not None:
            await self.slow


async def test_a_sender_says_when_its_client_is_slow_and_waits_for_it() -> None:
    client = SlowClient()
    sender = Sender(client.send)
    assert sender.send_now(b"a", False)
    await sender.drain()
    client.slow = asyncio.get_running_loop().create_future()
    assert not sender.send_now(b"b", True)
    draining = asyncio.create_task(sender.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    client.slow.set_result(None)
    await draining
    await sender.drain()
    assert [(message["body"], message["more_body"]) for message in client.got] == [(b"a", True), (b"b", False)]


def receiver(queue: "asyncio.Queue[Message]") -> Callable[[], Awaitable[Message]]:
    return queue.get


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_departure_is_told_once_and_what_comes_before_is_passed_over() -> None:
    queue: asyncio.Queue[Message] = asyncio.Queue()
    left: list[str] = []
    Departure(receiver(queue), lambda: left.append("left"))
    queue.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    await turns()
    assert left == []
    queue.put_nowait({"type": "http.disconnect"})
    queue.put_nowait({"type": "http.disconnect"})
    await turns()
    assert left == ["left"]


async def test_a_client_that_had_left_before_is_told_at_once() -> None:
    queue: asyncio.Queue[Message] = asyncio.Queue()
    queue.put_nowait({"type": "http.disconnect"})
    left: list[str] = []
    Departure(receiver(queue), lambda: left.append("left"))
    assert left == ["left"]


async def test_a_closed_departure_tells_nothing_and_ends_what_it_waits_in() -> None:
    queue: asyncio.Queue[Message] = asyncio.Queue()
    ended: list[str] = []

    async def receive() -> Message:
        try:
            return await queue.get()
        finally:
            ended.append("ended")

    departure = Departure(receive, lambda: ended.append("left"))
    departure.close()
    departure.close()
    assert ended == ["ended"]
    queue.put_nowait({"type": "http.disconnect"})
    await turns()
    assert ended == ["ended"]


async def test_a_receive_that_only_gives_up_its_turn_goes_on_in_the_next() -> None:
    left: list[Any] = []

    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    Departure(receive, lambda: left.append(True))
    assert left == []
    await turns()
    assert left == [True]
