"""`WS /live`: hands a browser's subscription to its socket. Carries messages; knows nothing of what is in them.

A bare ASGI callable: between it and the socket stands nothing that costs something for every message.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter, WebSocket
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from ..errors import Overloaded, PrefixScopeError, error_body
from ..hub.fanout import MESSAGES_AT_ONCE, Subscription
from ..runtime import Runtime
from ..wire.ws_frames import text_frames
from .answers import json_answer
from .origin import ForeignOrigin, is_same_origin
from .state import runtime_of
from .ws_protocol import FRAMES

MAX_SEQ_DIGITS = 18


class Live:
    """The event stream: hello, then a snapshot or the events after `after` of run `instance`, then events.

    `after` and `instance` stand in the query. An `after` that is no event's number is as good as none.
    """

    def __init__(self) -> None:
        self._framed: tuple[list[bytes], bytes] = ([], b"")
        """The last messages and their frames: browsers that keep up share them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One browser."""
        websocket = WebSocket(scope, receive, send)
        runtime = runtime_of(websocket)
        refusal = _refusal(websocket, runtime)
        if refusal is not None:
            await websocket.send_denial_response(refusal)
            return
        await websocket.accept()
        runtime.hub.clients += 1
        try:
            query = websocket.query_params
            subscription = runtime.hub.subscribe(_seq(query.get("after")), query.get("instance"))
            shares_frames = FRAMES in (scope.get("extensions") or {})
            sending = self._send_frames(send, subscription) if shares_frames else _send_texts(send, subscription)
            await _until_either_ends(_until_closed(sending), _drain(receive))
        finally:
            runtime.hub.clients -= 1

    async def _send_frames(self, send: Send, subscription: Subscription) -> None:
        async for messages in subscription:
            await send({"type": "websocket.send", FRAMES: self._frames(messages)})
            if len(messages) == MESSAGES_AT_ONCE:
                # A socket that takes everything at once never waits, so the other streams are given their turn here.
                await asyncio.sleep(0)

    def _frames(self, messages: list[bytes]) -> bytes:
        if messages is not self._framed[0]:
            self._framed = (messages, text_frames(messages))
        return self._framed[1]


router = APIRouter()
router.routes.append(WebSocketRoute("/live", Live()))


async def _send_texts(send: Send, subscription: Subscription) -> None:
    """For a server that makes its frames itself."""
    async for messages in subscription:
        for message in messages:
            await send({"type": "websocket.send", "text": message.decode()})
        await asyncio.sleep(0)


async def _until_closed(sending: Coroutine[Any, Any, None]) -> None:
    try:
        await sending
    except OSError:
        # How a server says that the browser is gone.
        return


def _seq(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) <= MAX_SEQ_DIGITS else None


def _refusal(websocket: WebSocket, runtime: Runtime) -> Response | None:
    error: PrefixScopeError
    if not is_same_origin(websocket.headers.get("origin"), websocket.headers.get("host")):
        error = ForeignOrigin("Only this dashboard's own pages may open its live stream.")
    elif runtime.hub.clients >= runtime.settings.max_clients:
        error = Overloaded(
            f"{runtime.settings.max_clients} browsers are connected already.", hint="Raise max_clients, or close some."
        )
    else:
        return None
    return json_answer(error_body(error), error.status)


async def _drain(receive: Receive) -> None:
    # Whatever a browser says is read and dropped, so that its going away is noticed at once.
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def _until_either_ends(*parts: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
