"""A client behind the proxy receives what a client without it receives: 300 exchanges, each in every mode."""

import base64
import gzip
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from app.observations import Malformed, RequestEnded, RequestStarted
from app.sources.proxy_headers import HOP_BY_HOP

from .proxy_rig import LAST_CHUNK, Answer, Asked, Client, chunk, on_both_loops, rig, until

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
STREAM_HEADERS = {(b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache")}
"""What observe and enrich declare to add to event streams."""
USAGE = b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}'


class Case(NamedTuple):
    """A request, and the response's bytes as they leave the server, in these pieces."""

    path: bytes
    body: bytes
    pieces: list[bytes]


def head(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)
    return b"HTTP/1.1 %d X\r\n%b\r\n" % (status, lines)


def recorded() -> Iterator[Case]:
    """What a real server said to each recorded request, in the pieces in which it came."""
    for file in sorted(RECORDINGS.glob("*.jsonl")):
        entries = [json.loads(line) for line in file.read_text().splitlines()]
        for request in (entry for entry in entries if entry["kind"] == "request"):
            own = [entry for entry in entries if entry.get("id") == request["id"]]
            answer = next(entry for entry in own if entry["kind"] == "head")
            headers = [(name.encode(), value.encode()) for name, value in answer["headers"]]
            pieces = [base64.b64decode(entry["b64"]) for entry in own if entry["kind"] == "bytes"]
            if not request["path"].startswith("/v1/") or request["path"] == "/v1/nope":
                continue
            if (b"transfer-encoding", b"chunked") in headers:
                pieces = [*map(chunk, pieces), LAST_CHUNK]
            yield Case(request["path"].encode(), request["body"].encode(), [head(answer["status"], headers), *pieces])


FIELD = [
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n',
    b'data: {"choices":[{"delta":{"content":"a\xe2\x80\xa8b\xe2\x80\xa9c\xc2\x85d\x0be\x0cf"}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"깰😀"}}]}\n\n'.encode(),
    b'data: {"choices":[]}\r\n\r\ndata: {"choices":[{"delta":{"content":"x"}}]}\r\n\r\n',
    b'data:{"choices":[{"delta":{"content":"x"}}]}\r\rdata:[DONE]\r\r',
    b'data: {"choices":[],"prompt_filter_results":[]}\n\n',
    b": ping\n\n: \n\n",
    b'data: {"choices":[{"delta":{"content":null,"reasoning_content":"x"}}]}\n\n',
    USAGE + b"\n\ndata: [DONE]\n\n",
    b'data: {"a":\ndata: 1}\n\n',
    b"data: {nonsense\n\n",
    b'event: error\ndata: {"error":{"message":"x"}}\n\n',
    b"\xef\xbb\xbfdata: x\n\n\x00\xff\xfe",
    b"data: " + b"9," * 40_000 + b"\n\n",
    b"data: [DONE]",
]
"""Streams and parts of streams that people reported trouble with."""


def made(seed: int) -> Case:
    """A stream of random parts with random cuts, or a whole body of some kind."""
    rng = random.Random(seed)
    body = json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": rng.choice(["é", "x", "字"])}], "stream": True}
    ).encode()
    if rng.random() < 0.2:
        plain = json.dumps({"choices": [{"message": {"content": "x" * rng.randrange(5000)}}]}).encode()
        encoding = rng.choice([b"", b"gzip"])
        sent = gzip.compress(plain) if encoding else plain
        headers = [
            (b"Content-Type", b"application/json"),
            (b"X-Odd", b"caf\xe9"),
            (b"Set-Cookie", b"a"),
            (b"Set-Cookie", b"b"),
        ]
        headers += [(b"Content-Encoding", encoding)] if encoding else []
        pieces = cut(sent, rng)
        return Case(
            b"/v1/chat/completions", body, [head(200, [*headers, (b"Content-Length", b"%d" % len(sent))]), *pieces]
        )
    end = rng.choice([b"\n", b"\r\n", b"\r"])
    stream = b"".join(rng.choice(FIELD).replace(b"\n", end) for _ in range(rng.randrange(12)))
    headers = [(b"Content-Type", b"text/event-stream; charset=utf-8"), (b"Date", b"today"), (b"Server", b"uvicorn")]
    framing = rng.choice(["chunked", "sized", "closed"])
    if framing == "sized":
        return Case(
            b"/v1/completions",
            body,
            [head(200, [*headers, (b"Content-Length", b"%d" % len(stream))]), *cut(stream, rng)],
        )
    if framing == "closed":
        return Case(b"/v1/completions", body, [head(200, [*headers, (b"Connection", b"close")]), *cut(stream, rng)])
    pieces = [*(chunk(piece) for piece in cut(stream, rng)), LAST_CHUNK]
    wire = b"".join(pieces) if rng.random() < 0.3 else None
    return Case(
        b"/v1/chat/completions", body,
        [head(200, [*headers, (b"Transfer-Encoding", b"chunked")]), *(cut(wire, rng) if wire else pieces)],
    )  # fmt: skip


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    """`data` in pieces: single bytes at times, a few pieces mostly."""
    if not data:
        return []
    if len(data) < 400 and rng.random() < 0.3:
        return [data[i : i + 1] for i in range(len(data))]
    edges = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(rng.randrange(8)))})
    return [data[a:b] for a, b in itertools.pairwise(edges) if a < b]


CASES = [*recorded(), *(made(seed) for seed in range(260))]


def seen_by_client(answer: Answer) -> tuple[int, bytes, bool, list[tuple[bytes, bytes]]]:
    headers = sorted(pair for pair in answer.headers if pair[0] not in HOP_BY_HOP)
    return answer.status, answer.body, answer.complete, headers


async def play(asked: Asked) -> None:
    """Sends the response of the case whose number stands in the query."""
    pieces = CASES[int(asked.line.split(b"case=")[1].split(b" ")[0])].pieces
    await asked.send(*pieces)
    if b"content-length" not in pieces[0].lower() and b"chunked" not in pieces[0].lower():
        asked.writer.close()


async def fetch(url: str, number: int, headers: bytes = b"") -> Answer:
    case = CASES[number]
    client = await Client.to(url)
    await client.ask(case.body, case.path + b"?case=%d" % number, headers)
    try:
        return await client.answer()
    finally:
        client.close()


@on_both_loops
async def test_off_and_observe_are_not_noticed() -> None:
    assert len(CASES) >= 300
    async with rig(play) as r:
        for number in range(len(CASES)):
            direct = await fetch(r.server.url, number)
            off = await fetch(r.url, number, b"X-PrefixScope-Mode: off\r\n")
            observe = await fetch(r.url, number)
            assert seen_by_client(off) == seen_by_client(direct), number
            status, body, complete, headers = seen_by_client(observe)
            streamed = (direct.header(b"content-type") or b"").startswith(b"text/event-stream")
            assert (status, body, complete) == (direct.status, direct.body, direct.complete), number
            assert set(headers) - set(direct.headers) == (STREAM_HEADERS if streamed else set()), number
            assert sorted(set(headers) - STREAM_HEADERS) == sorted(set(seen_by_client(direct)[3])), number
            sent = [asked.body for asked in r.server.asked[-3:]]
            assert sent == [CASES[number].body] * 3
            r.server.asked.clear()
        await until(lambda: len(r.all(RequestEnded)) == 2 * len(CASES))
        assert len({ended.request for ended in r.all(RequestEnded)}) == len(r.all(RequestStarted)) == 2 * len(CASES)
        assert not [mark for mark in r.all(Malformed) if "reading the response failed" in mark.detail]
        assert r.proxy.active == 0


@on_both_loops
async def test_enrich_adds_and_takes_away_what_it_declares() -> None:
    async with rig(play, mode="enrich") as r:
        for number, case in enumerate(CASES):
            direct = await fetch(r.server.url, number)
            enriched = await fetch(r.url, number)
            sent = r.server.asked[-1].body
            expected = direct.body
            streamed = (direct.header(b"content-type") or b"").startswith(b"text/event-stream")
            if (
                streamed
                and b'"include_usage":true' in sent
                and b'"include_usage":true' not in case.body.replace(b" ", b"")
            ):
                expected = without_usage(direct)
            assert enriched.body == expected, number
            assert enriched.complete == direct.complete
            assert sent.replace(b',"stream_options":{"include_usage":true}', b"").replace(
                b',"return_token_ids":true', b""
            ) == case.body.replace(b',"return_token_ids":true', b"")


def without_usage(answer: Answer) -> bytes:
    """The body without its usage frames: whole events of one such data line."""
    if answer.header(b"content-length") is not None:
        return answer.body  # Lengths must agree: nothing is cut.
    kept = b""
    event: list[bytes] = []
    for line in answer.body.splitlines(keepends=True):
        event.append(line)
        if not line.strip(b"\r\n"):
            texts = [text.strip(b"\r\n") for text in event]
            is_usage = len(texts) == 2 and texts[0].startswith(b"data: {") and b'"choices":[],"usage":{' in texts[0]
            kept += b"" if is_usage else b"".join(event)
            event = []
    return kept + b"".join(event)
