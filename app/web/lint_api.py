"""The prompt doctor over HTTP: JSON lines of requests in, progress and at last the report out, one JSON object a line.

The work runs in a thread; it ends with the stream, at the next step of its progress.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict
from typing import Any

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response, StreamingResponse

from ..errors import BadRequest, Overloaded, PrefixScopeError, error_body
from ..runtime import Runtime
from ..why.lint import Tokens, assumed, lint
from ..why.request_lines import NO_REQUESTS, read_requests
from ..why.request_text import Body
from ..wire.tokenize_call import CHAT_PATH, COMPLETIONS_PATH
from .callers import own_page
from .openapi import answers, takes
from .state import runtime_of
from .why_api import read_bounded

router = APIRouter(prefix="/api")
NDJSON = "application/x-ndjson"
MAX_BODY_FACTOR = 16
"""A file may be so many times as large as a single request whose prompt is tokenised (`max_tokenize_bytes`)."""
REPORT_EVERY = 20
DEFAULT_BLOCK_SIZE = 16
DEFAULT_NUM_GPU_BLOCKS = 5306
"""Where the server doesn't tell its own: those of the embedded engine's default profile, as for the command `lint`."""
logger = logging.getLogger(__name__)


class _Stopped(Exception):
    """Nobody waits for the report any more."""


@router.post(
    "/lint",
    responses=answers(text=NDJSON),
    openapi_extra=takes({"type": "string"}, "text/plain"),
    dependencies=[Depends(own_page)],
)
async def lint_requests(request: Request) -> Response:
    """Lines `{"stage", "done", "total"}`, then `{"report": ...}`, or `{"error": ...}`. Tokens are the server's own."""
    runtime = runtime_of(request)
    if runtime.lint_turn.locked():
        raise Overloaded("Another list of requests is being examined.", hint="Try again when it is done.")
    body = await read_bounded(request, runtime.settings.max_tokenize_bytes * MAX_BODY_FACTOR)
    requests, unreadable = await asyncio.to_thread(read_requests, body)
    if not requests:
        raise BadRequest(f"{NO_REQUESTS}.", hint='One chat request a line, or objects with a "body".')
    return StreamingResponse(
        _lines(runtime, requests, unreadable), media_type=NDJSON, headers={"cache-control": "no-store"}
    )


async def _lines(runtime: Runtime, requests: list[Body], unreadable: list[tuple[int, str]]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    stopped = False

    def tell(stage: str, done: int, total: int) -> None:
        if stopped:
            raise _Stopped
        loop.call_soon_threadsafe(told.put_nowait, {"stage": stage, "done": done, "total": total})

    async def tokens_of(body: Body) -> Tokens | None:
        path = CHAT_PATH if "messages" in body else COMPLETIONS_PATH
        return await runtime.watched[runtime.server].tokenizer.tokenize(path, json.dumps(body).encode())

    def tokenise(bodies: Sequence[Body]) -> list[Tokens | None]:
        found = []
        for number, body in enumerate(bodies):
            if number % REPORT_EVERY == 0:
                tell("tokenise", number, len(bodies))
            found.append(asyncio.run_coroutine_threadsafe(tokens_of(body), loop).result())
        return found

    def work() -> None:
        record = runtime.server_record()
        size, blocks = (record.block_size, record.num_gpu_blocks) if record else (None, None)
        try:
            report = lint(
                requests,
                tokenise,
                num_gpu_blocks=blocks or DEFAULT_NUM_GPU_BLOCKS,
                block_size=size or DEFAULT_BLOCK_SIZE,
                tell=tell,
            )
            found = asdict(report) | {"unreadable_lines": unreadable[:20], "assumed": assumed(size, blocks)}
            last: dict[str, Any] = {"report": found}
        except (_Stopped, CancelledError):
            return
        except Exception as error:  # The outer edge of a thread: whoever waits must be told.
            if not isinstance(error, PrefixScopeError):
                # Its own words may have prompts in them.
                logger.error("the report on a list of requests failed: %s", type(error).__name__)
                error = PrefixScopeError("The report failed.")
            last = error_body(error)
        loop.call_soon_threadsafe(told.put_nowait, last)

    async with runtime.lint_turn:
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            while True:
                line = await told.get()
                yield msgspec.json.encode(line) + b"\n"
                if "stage" not in line:
                    return
        finally:
            stopped = True
            await asyncio.shield(working)
