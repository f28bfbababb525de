"""uvicorn's websocket protocol with one thing more: frames that were made once are written to any number of clients.

uvicorn makes a frame anew for each client. Here an application may send `{"type": "websocket.send", FRAMES: bytes}`
where the scope's extensions have FRAMES: whole text frames, written as they are.
"""

from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

FRAMES = "prefixscope.frames"


class SharedFramesProtocol(WebSocketsSansIOProtocol):
    """Offers FRAMES. Only for connections without compression: see `serving.make_server`."""

    async def run_asgi(self) -> None:
        """Runs the application."""
        # Only this extension is used here, and the scope's own type knows just its own.
        scope = cast(dict[str, Any], self.scope)
        scope["extensions"] = {**(scope.get("extensions") or {}), FRAMES: {}}
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        """Sends frames, or what uvicorn sends. Waits while the client is slow.

        Raises ClientDisconnected, an OSError, once the client is gone.
        """
        frames = message.get(FRAMES)
        if frames is None:
            await super().send(message)
            return
        if not self.writable.is_set():
            await self.writable.wait()
        if self.disconnected or self.close_sent or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(frames)
