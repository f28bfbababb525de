"""Has large bodies read by a process of its own, which starts with the first of them.

The JSON decoder holds the interpreter while it works, so that reading in a thread would hold the event loop as well.
"""

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..settings import ENVIRONMENT_PREFIX
from ..wire.request_reading import RequestReading, Wanted
from ..wire.said import Said
from .body_questions import HEAD, LENGTH, AboutRequest, AboutResponse, Question

OFF_LOOP_BYTES = 256 * 1024
"""Smaller bodies are read where they are, in less than a millisecond."""
MAX_WAITING = 16
"""Bodies that wait for their turn; further ones stay unread."""
TIMEOUT_S = 20.0
SLICE_BYTES = 128 * 1024

logger = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_reading = msgspec.msgpack.Decoder(RequestReading).decode
_said = msgspec.msgpack.Decoder(Said).decode


class BodyUnread(Exception):
    """The body wasn't read; why is its text."""


class BodyReader:
    """The process, and the queue before it. One body at a time."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._turn = asyncio.Lock()
        self._jobs: set[asyncio.Task[bytes | None]] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._closed = False

    async def read_request(
        self, body: Sequence[bytes], salt_key: bytes, wanted: Wanted | None, *, with_label: bool
    ) -> RequestReading:
        """See `wire.request_reading.read_request`; the body is in pieces. Raises BodyUnread."""
        return _reading(await self._ask(AboutRequest(salt_key, wanted, with_label), body))

    async def read_response(self, body: bytes | bytearray) -> Said:
        """See `wire.chat_chunks.read_body`. Raises BodyUnread."""
        return _said(await self._ask(AboutResponse(), (body,)))

    async def close(self) -> None:
        """Ends the process; what is still to be read stays unread."""
        self._closed = True
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        await self._stop()

    async def _ask(self, question: Question, body: Sequence[bytes | bytearray]) -> bytes:
        if self._closed or len(self._jobs) > self._max_waiting:
            raise BodyUnread("the dashboard is stopping" if self._closed else "other large bodies are being read")
        # A task of its own: where who asks gives up, the answer is taken all the same, lest the next question gets it.
        job = asyncio.get_running_loop().create_task(self._answer(question, body), name="large body")
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        try:
            told = await asyncio.shield(job)
        except asyncio.CancelledError:
            if not job.cancelled():
                raise
            told = None
        if not told:
            raise BodyUnread("it couldn't be read in time")
        return told

    async def _answer(self, question: Question, body: Sequence[bytes | bytearray]) -> bytes | None:
        async with self._turn:
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    return await self._exchange(_encode(question), body)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                logger.warning("the process that reads large bodies failed: %s", type(error).__name__)
                await self._stop()
                return None
            except asyncio.CancelledError:
                await self._stop()
                raise

    async def _exchange(self, encoded: bytes, body: Sequence[bytes | bytearray]) -> bytes:
        if self._reader is None or self._writer is None:
            self._process, channel = await asyncio.to_thread(_start)
            self._reader, self._writer = await asyncio.open_unix_connection(sock=channel)
        self._writer.write(HEAD.pack(len(encoded), sum(map(len, body))) + encoded)
        for piece in body:
            view = memoryview(piece)
            for start in range(0, len(view), SLICE_BYTES):
                self._writer.write(view[start : start + SLICE_BYTES])
                await self._writer.drain()
                await asyncio.sleep(0)
        (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
        return await self._reader.readexactly(length)

    async def _stop(self) -> None:
        process, writer = self._process, self._writer
        self._process = self._reader = self._writer = None
        if writer is not None:
            writer.transport.abort()
        if process is not None:
            process.kill()
            await asyncio.to_thread(process.wait)


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process, and this end of the socket to it."""
    ours, theirs = socket.socketpair()
    with theirs, contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        package = __package__ or ""
        root = Path(__file__).parents[package.count(".") + 1]
        command = [sys.executable, "-P", "-m", f"{package}.body_process"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
        process = subprocess.Popen(command, stdin=theirs.fileno(), env={**environment, "PYTHONPATH": str(root)})
        stack.pop_all()
    ours.setblocking(False)
    return process, ours
