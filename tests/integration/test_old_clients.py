"""Clients of HTTP/1.0, which know no chunk markers, and those that want one answer a connection."""

import json

import pytest

from .app_rig import Dashboard, Engine, all_of, chat_body, connected, dashboard


async def raw(board: Dashboard, request: bytes) -> tuple[bytes, bytes]:
    """Head and body of what comes until the connection ends."""
    reader, writer = await connected(board)
    writer.write(request)
    head, _, body = (await all_of(reader)).partition(b"\r\n\r\n")
    writer.close()
    return head, body


def chat(version: str, more: str = "") -> bytes:
    body = json.dumps(chat_body("Qwen2.5-7B-Instruct")).encode()
    head = f"POST /v1/chat/completions HTTP/{version}\r\nhost: localhost\r\n{more}content-type: application/json\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("more", ["", "connection: keep-alive\r\n"])
async def test_a_stream_has_no_chunk_markers_for_http_1_0(engine: Engine, more: str) -> None:
    async with dashboard(engine.settings) as board:
        await board.until_ready()
        head, body = await raw(board, chat("1.0", more))

    assert head.startswith(b"HTTP/1.1 200 "), body
    assert b"transfer-encoding" not in head.lower()
    assert b"connection: close" in head.lower()
    assert body.startswith(b"data: {") and body.endswith(b"data: [DONE]\n\n")
    assert all(line.startswith(b"data: ") or not line for line in body.split(b"\n"))


@pytest.mark.parametrize("path", ["/", "/api/state", "/healthz", "/metrics", "/static/js/main.js"])
async def test_answers_to_http_1_0_are_whole(engine: Engine, path: str) -> None:
    async with dashboard(engine.settings) as board:
        head, body = await raw(board, f"GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n".encode())
        modern = await board.http.get(path)
        only_head, nothing = await raw(board, f"HEAD {path} HTTP/1.0\r\nhost: localhost\r\n\r\n".encode())

    assert head.startswith(b"HTTP/1.1 200 ") and b"transfer-encoding" not in head.lower()
    assert body and body[:1] == modern.content[:1] and body[-1:] == modern.content[-1:]
    if path != "/healthz" and not path.startswith(("/api", "/metrics")):
        assert body == modern.content
        assert only_head.startswith(b"HTTP/1.1 200 ") and nothing == b""


async def test_connection_close_keeps_the_markers_and_ends_the_connection(engine: Engine) -> None:
    async with dashboard(engine.settings) as board:
        await board.until_ready()
        head, body = await raw(board, chat("1.1", "connection: close\r\n"))

    assert b"transfer-encoding: chunked" in head.lower() and b"connection: close" in head.lower()
    assert body.endswith(b"\r\n0\r\n\r\n")
