"""ASGI's `receive` and `send` driven by hand, without a task or a turn of the event loop where they needn't wait.

With an ASGI server, `send` waits only while the client is slow, and `receive` has the request's body most often. A
task, a timeout or a turn of the loop for each would be a large part of what the proxy costs. Imports nothing of the
project.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import Any, Generic, TypeVar

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Result = TypeVar("Result")


class Waiting(Generic[Result]):
    """What is left of an awaitable after its first step, which asked to wait for something. Await it once."""

    def __init__(self, steps: Generator[Any, Any, Result], waits_for: Any) -> None:
        self._steps = steps
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Result]:
        waits_for = self._waits_for
        try:
            while True:
                try:
                    value = yield waits_for
                except BaseException as error:
                    waits_for = self._steps.throw(error)
                else:
                    waits_for = self._steps.send(value)
        except StopIteration as end:
            result: Result = end.value
            return result


def first_step(awaitable: Awaitable[Result]) -> Result | Waiting[Result]:
    """Runs it up to where it would wait. Returns its result where it doesn't; raises what it raises."""
    steps = awaitable.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as end:
        result: Result = end.value
        return result
    return Waiting(steps, waits_for)


class Sender:
    """Sends pieces from where they arrive, as long as the client keeps up."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: Waiting[None] | None = None

    def send_now(self, data: bytes, last: bool) -> bool:
        """Whether the piece was taken at once. If not, `drain`, in a task, before the next."""
        self._waiting = first_step(self._send({"type": "http.response.body", "body": data, "more_body": not last}))
        return self._waiting is None

    async def drain(self) -> None:
        """Waits until the last piece was taken."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            await waiting


class Departure:
    """Calls `left` when the client goes, unless it is closed before."""

    def __init__(self, receive: Receive, left: Callable[[], None]) -> None:
        self._receive = receive
        self._left = left
        self._loop = asyncio.get_running_loop()
        self._steps: Generator[Any, Any, Message] | None = receive().__await__()
        self._step()

    def close(self) -> None:
        """Listens no more."""
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()

    def _step(self, _: object = None) -> None:
        """As a task does: runs it on, and comes back when what it waits for is there."""
        while self._steps is not None:
            try:
                waits_for = next(self._steps)
            except StopIteration as end:
                if end.value["type"] == "http.disconnect":
                    self._steps = None
                    self._left()
                else:
                    self._steps = self._receive().__await__()
                continue
            if waits_for is None:
                self._loop.call_soon(self._step)
            else:
                waits_for._asyncio_future_blocking = False
                waits_for.add_done_callback(self._step)
            return
