"""`WS /live`: hands a browser's subscription to its socket. Carries messages; knows nothing of what is in them."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnected, WebSocketState

from ..errors import Overloaded, PrefixScopeError, error_body
from ..hub.fanout import Subscription
from ..runtime import Runtime
from .answers import json_answer
from .origin import ForeignOrigin, is_same_origin
from .state import runtime_of

router = APIRouter()
MAX_SEQ_DIGITS = 18


@router.websocket("/live")
async def live(websocket: WebSocket, after: str | None = None, instance: str | None = None) -> None:
    """The event stream: hello, then a snapshot or the events after `after` of run `instance`, then events.

    An `after` that is no event's number is as good as none.
    """
    runtime = runtime_of(websocket)
    refusal = _refusal(websocket, runtime)
    if refusal is not None:
        await websocket.send_denial_response(refusal)
        return
    await websocket.accept()
    runtime.hub.clients += 1
    try:
        subscription = runtime.hub.subscribe(_seq(after), instance)
        await _until_either_ends(_send(websocket, subscription), _drain(websocket))
    finally:
        runtime.hub.clients -= 1


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


async def _send(websocket: WebSocket, subscription: Subscription) -> None:
    try:
        async for messages in subscription:
            for message in messages:
                await websocket.send_text(message)
            # A socket that takes everything at once never waits, so the other streams are given their turn here.
            await asyncio.sleep(0)
    except (WebSocketDisconnect, WebSocketDisconnected):
        return


async def _drain(websocket: WebSocket) -> None:
    # Whatever a browser says is read and dropped, so that its going away is noticed at once.
    while websocket.client_state is WebSocketState.CONNECTED:
        if (await websocket.receive())["type"] == "websocket.disconnect":
            return


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
