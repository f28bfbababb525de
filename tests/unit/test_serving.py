"""What the HTTP server logs of streams that break off."""

import logging
import socket
import threading
import time

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from app.serving import _WithoutBrokenStreams, listen, make_server, url_of

WAIT_S = 10


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    """Starts an answer and doesn't end it."""
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x", "more_body": True})


def answered(bound: socket.socket, server: uvicorn.Server) -> None:
    """Asks once, and sees the answer break off."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        deadline = time.monotonic() + WAIT_S
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(url_of(bound), trust_env=False, timeout=WAIT_S)
    finally:
        server.should_exit = True
        thread.join()


def test_a_stream_broken_off_on_purpose_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with listen("127.0.0.1", 0) as bound:
        left_out = _WithoutBrokenStreams()
        logger = logging.getLogger("uvicorn.error")
        logger.addFilter(left_out)
        try:
            answered(bound, make_server(broken, 1))
        finally:
            logger.removeFilter(left_out)

    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
