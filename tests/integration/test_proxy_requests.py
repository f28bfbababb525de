"""What the proxy does with a request: what it adds, what it strips, what it refuses, and how it connects."""

import asyncio
import json
import re
from typing import Any

import openai
import pytest

from app.observations import AdapterLoaded, RequestEnded, RequestPromptTokens, RequestStarted
from app.wire.salt import salt_digest

from .proxy_rig import (
    LAST_CHUNK,
    SSE_HEAD,
    Answer,
    Asked,
    Client,
    Rig,
    chunk,
    on_both_loops,
    pairs,
    rig,
    sized,
    sse,
    until,
)

HI = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\n'  # noqa: E501
STOP = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'  # noqa: E501
USAGE = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}\n\n'  # noqa: E501
DONE = b"data: [DONE]\n\n"
BODY = b'{ "model":"m", "messages" : [{"role":"user","content":"caf\\u00e9 1.0e0"}],"stream":true,"xyz":1 }\r\n'
WHOLE = sized(
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}'
)


async def stream(asked: Asked) -> None:
    await asked.send(*sse(HI, STOP, USAGE, DONE))


async def whole(asked: Asked) -> None:
    await asked.send(WHOLE)


def error_of(answer: Answer) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(answer.body)["error"]
    assert error["message"] and error["type"] and error["code"]
    return error


# --- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["off", "observe"])
@on_both_loops
async def test_off_and_observe_leave_the_body_and_the_stream_alone(mode: str) -> None:
    async with rig(stream, mode=mode) as r:
        answer = await r.fetch(BODY, headers=b"X-Custom: 1\r\naccept-encoding: gzip\r\ncookie: a=b\r\n")
        assert answer.body == HI + STOP + USAGE + DONE
        (asked,) = r.server.asked
        assert asked.body == BODY
        session = [value for name, value in asked.headers if name == b"x-session-id"]
        await r.ended()
        assert session == ([] if mode == "off" else [r.all(RequestStarted)[0].request.encode()])
        assert {b"x-custom", b"accept-encoding", b"cookie"} <= {name for name, _ in asked.headers}
        assert (answer.header(b"x-accel-buffering") is None) is (mode == "off")


@on_both_loops
async def test_enrich_splices_the_body_and_cuts_the_usage_frame_again() -> None:
    async with rig(stream, mode="enrich") as r:
        answer = await r.fetch(BODY)
        assert answer.complete and answer.body == HI + STOP + DONE
        spliced = b',"stream_options":{"include_usage":true},"return_token_ids":true}\r\n'
        assert r.server.asked[0].body == BODY[:-3] + spliced
        await r.ended()
        assert r.tokenizer.asked == [("/v1/chat/completions", BODY)]  # The server gave no ids although asked to.


@on_both_loops
async def test_enrich_leaves_alone_what_the_client_asked_for() -> None:
    body = b'{"model":"m","stream":true,"stream_options":{"include_usage":true},"return_token_ids":false}'
    async with rig(stream, mode="enrich") as r:
        assert (await r.fetch(body)).body == HI + STOP + USAGE + DONE
        assert r.server.asked[0].body == body
        assert (await r.fetch(body, path=b"/v1/responses")).complete
        assert (await r.fetch(b'{"a":1,"a":2}')).complete
        assert [asked.body for asked in r.server.asked] == [body, body, b'{"a":1,"a":2}']


@pytest.mark.parametrize(
    ("version", "ids"), [(None, None), ("0.8.5", False), ("0.10.2", True), ("0.11.0rc1.dev3", True)]
)
@on_both_loops
async def test_only_what_the_server_is_known_to_take_is_added(version: str | None, ids: bool | None) -> None:
    async with rig(stream, version=version, mode="enrich") as r:
        await r.fetch(BODY)
        sent = r.server.asked[0]
        assert (b"return_token_ids" in sent.body) is bool(ids)
        assert (b"include_usage" in sent.body) is (ids is not None)
        assert (b"x-session-id" in dict(sent.headers)) is (ids is not None)


@on_both_loops
async def test_the_mode_of_one_request() -> None:
    async with rig(stream, mode="enrich") as r:
        await r.fetch(BODY, headers=b"X-PrefixScope-Mode: off\r\n")
        await r.fetch(BODY, headers=b"X-PrefixScope-Mode: nonsense\r\n")
        assert r.server.asked[0].body == BODY
        assert r.server.asked[1].body != BODY
        assert not [name for asked in r.server.asked for name, _ in asked.headers if name.startswith(b"x-prefixscope")]


@pytest.mark.parametrize(
    ("headers", "body"),
    [(b"X-Session-ID: mine\r\n", BODY), (b"", b'{"session_id":"mine"}'), (b"", b'{"vllm_xargs":{"session_id":"x"}}')],
)
@on_both_loops
async def test_a_session_of_the_clients_own_stays(headers: bytes, body: bytes) -> None:
    async with rig(stream) as r:
        await r.fetch(body, headers=headers)
        sent = [value for name, value in r.server.asked[0].headers if name == b"x-session-id"]
        assert sent == ([b"mine"] if headers else [])
        await r.ended()
        assert r.all(RequestStarted)[0].session_id is None


# --- the page's own requests -----------------------------------------------------------------------------------------


@on_both_loops
async def test_the_pages_own_requests() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"What is it?"}],"cache_salt":"secret"}'
    async with rig(whole, vllm_api_key="K") as r:
        answer = await r.fetch(
            body,
            headers=b"X-PrefixScope-Origin: page\r\nX-PrefixScope-Cold: 1\r\nOrigin: http://localhost\r\n",
        )
        await r.ended()
        (started,) = r.all(RequestStarted)
        assert answer.header(b"x-prefixscope-request") == started.request.encode()
        assert (started.origin, started.label, started.show_text) == ("page", "What is it?", True)
        assert started.salted_by_page and started.salt == salt_digest(b"k" * 32, "secret")
        assert dict(r.server.asked[0].headers)[b"authorization"] == b"Bearer K"
        assert "secret" not in repr(r.seen) and "Bearer" not in repr(r.seen)


@on_both_loops
async def test_other_clients_text_and_key_stay_theirs() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"private"}],"cache_salt":"secret"}'
    async with rig(whole, vllm_api_key="K") as r:
        answer = await r.fetch(body, headers=b"X-PrefixScope-Cold: 1\r\nauthorization: Bearer mine\r\n")
        await r.fetch(body)
        await r.ended(2)
        assert answer.header(b"x-prefixscope-request") is None
        assert "private" not in repr(r.seen) and "secret" not in repr(r.seen)
        assert not r.all(RequestStarted)[0].salted_by_page
        assert [dict(asked.headers).get(b"authorization") for asked in r.server.asked] == [b"Bearer mine", None]


@pytest.mark.parametrize("origin", [b"", b"Origin: null\r\n", b"Origin: https://other.example\r\n"])
@on_both_loops
async def test_only_a_page_of_the_dashboards_own_counts_as_one(origin: bytes) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"private"}]}'
    async with rig(whole, vllm_api_key="K") as r:
        answer = await r.fetch(body, headers=b"X-PrefixScope-Origin: page\r\n" + origin)
        await r.ended()
        assert b"authorization" not in dict(r.server.asked[0].headers)
        assert answer.header(b"x-prefixscope-request") is None
        assert r.all(RequestStarted)[0].origin == "client" and "private" not in repr(r.seen)


@on_both_loops
async def test_a_page_that_gave_its_own_name_to_this_machine_is_refused() -> None:
    headers = b"X-PrefixScope-Origin: page\r\nOrigin: http://rebound.example\r\n"
    async with rig(whole, vllm_api_key="K") as r:
        answer = await r.fetch(b"{}", headers=headers, host=b"rebound.example")
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (403, "unknown_host")
        assert not r.server.asked


@on_both_loops
async def test_show_prompts_gives_every_request_a_label() -> None:
    async with rig(whole, show_prompts="true") as r:
        await r.fetch(b'{"prompt":"Once upon a time"}', path=b"/v1/completions")
        await r.ended()
        assert r.all(RequestStarted)[0].label == "Once upon a time"


# --- what passes -----------------------------------------------------------------------------------------------------


@on_both_loops
async def test_hop_by_hop_headers_stay_and_everything_else_passes() -> None:
    async def script(asked: Asked) -> None:
        head = (
            b"HTTP/1.1 299 Odd\r\nContent-Type: application/json\r\nServer: uvicorn\r\nDate: today\r\n"
            b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: keep-alive, X-Gone\r\nX-Gone: 1\r\n"
            b"Keep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nTrailer: y\r\nX-Latin: caf\xe9\r\n"
            b"Content-Length: 2\r\n\r\n{}"
        )
        await asked.send(head)

    async with rig(script) as r:
        answer = await r.fetch(
            b"{}",
            headers=b"Connection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nProxy-Authorization: x\r\nX-L: \xe9\r\n",
        )
        sent = dict(r.server.asked[0].headers)
        assert not sent.keys() & {b"connection", b"x-hop", b"te", b"proxy-authorization", b"transfer-encoding"}
        assert sent[b"x-l"] == b"\xe9" and sent[b"host"] == r.server.url.removeprefix("http://").encode()
        assert answer.status == 299
        assert sorted(h for h in answer.headers if h[0] != b"connection") == sorted(
            [
                (b"content-type", b"application/json"), (b"server", b"uvicorn"), (b"date", b"today"),
                (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"x-latin", b"caf\xe9"), (b"content-length", b"2"),
            ]
        )  # fmt: skip


@on_both_loops
async def test_a_chunked_request_body_reaches_the_server_whole() -> None:
    async with rig(whole) as r:
        client = await Client.to(r.url)
        head = b"POST /v1/chat/completions?a=b%2F%20c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        client.writer.write(head + chunk(BODY[:10]) + chunk(BODY[10:]) + LAST_CHUNK)
        assert (await client.answer()).status == 200
        (asked,) = r.server.asked
        assert asked.body == BODY and asked.line == b"POST /v1/chat/completions?a=b%2F%20c HTTP/1.1"
        client.close()


@pytest.mark.parametrize(
    ("method", "path", "passes"),
    [
        (b"GET", b"/v1/models", True),
        (b"HEAD", b"/v1/models", True),
        (b"GET", b"/v1/models/m", True),
        (b"GET", b"/v1/responses/resp_1", True),
        (b"POST", b"/v1/responses/resp_1/cancel", True),
        (b"POST", b"/v1/embeddings", True),
        (b"POST", b"/v1/rerank", True),
        (b"POST", b"/v1/score", True),
        (b"POST", b"/v1/messages", True),
        (b"POST", b"/v1/messages/count_tokens", True),
        (b"POST", b"/v1/audio/transcriptions", True),
        (b"OPTIONS", b"/v1/chat/completions", True),
        (b"POST", b"/v1/tokenize", False),
        (b"POST", b"/v1/load_lora_adapter", False),
        (b"POST", b"/v1/models/../../reset_prefix_cache", False),
        (b"POST", b"/v1/models/%2e%2e/%2e%2e/reset_prefix_cache", False),
        (b"POST", b"/v1/models/..%2freset_prefix_cache", False),
        (b"POST", b"/v1/audio/../tokenize", False),
        (b"POST", b"/v1/chat/completions/", False),
        (b"POST", b"/v1/chat%2fcompletions", False),
        (b"POST", b"/v1//chat/completions", False),
        (b"POST", b"/v1/", False),
    ],
)
@on_both_loops
async def test_which_paths_are_proxied(method: bytes, path: bytes, passes: bool) -> None:
    async def script(asked: Asked) -> None:
        await asked.send(sized(b"{}")[: -2 if method == b"HEAD" else None])

    async with rig(script) as r:
        client = await Client.to(r.url)
        await client.ask(b"" if method in (b"GET", b"HEAD") else b"{}", path, method=method)
        answer = await client.answer(without_body=method == b"HEAD")
        client.close()
        assert answer.status == (200 if passes else 404)
        assert len(r.server.asked) == passes
        if passes:
            assert r.server.asked[0].line.startswith(method + b" " + path + b" ")
            assert answer.header(b"content-length") == b"2"
        else:
            assert error_of(answer)["code"] == "not_found"
        assert len(r.all(RequestEnded)) == (path == b"/v1/messages")


@on_both_loops
async def test_interim_responses_are_left_out() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + WHOLE)

    async with rig(script) as r:
        for _ in range(2):
            answer = await r.fetch(b"{}")
            assert answer.status == 200 and answer.header(b"link") is None
        assert r.server.connections == 1


# --- limits ----------------------------------------------------------------------------------------------------------


@on_both_loops
async def test_a_body_that_stops_coming_gives_its_place_up() -> None:
    async with rig(whole, body_timeout_s="0.2") as r:
        client = await Client.to(r.url)
        client.writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf")
        answer = await client.answer()
        assert (answer.status, error_of(answer)["code"]) == (408, "body_timeout")
        assert await client.reader.read() == b""
        client.close()
        assert r.proxy.active == 0 and not r.server.asked


@on_both_loops
async def test_bodies_above_the_limit() -> None:
    async with rig(whole, max_body_bytes="1000") as r:
        answer = await r.fetch(b"x" * 1001)
        assert answer.status == 413 and error_of(answer)["code"] == "body_too_large"
        client = await Client.to(r.url)
        client.writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        client.writer.write(chunk(b"x" * 600) * 2)
        assert (await client.answer()).status == 413
        client.close()
        assert (await r.fetch(b" " * 998 + b"{}")).status == 200
        assert len(r.server.asked) == 1 and r.proxy.active == 0


@on_both_loops
async def test_above_max_streams_there_is_503_with_retry_after() -> None:
    go = asyncio.Event()

    async def script(asked: Asked) -> None:
        await go.wait()
        await whole(asked)

    async with rig(script, max_streams="2") as r:
        clients = [await Client.to(r.url) for _ in range(2)]
        for client in clients:
            await client.ask(BODY)
        await until(lambda: r.proxy.active == 2)
        answer = await r.fetch(BODY)
        assert answer.status == 503 and answer.header(b"retry-after") == b"1"
        assert error_of(answer)["code"] == "overloaded"
        go.set()
        for client in clients:
            assert (await client.answer()).status == 200
            client.close()
        assert (await r.fetch(BODY)).status == 200


@on_both_loops
async def test_a_client_that_leaves_before_its_body_is_complete() -> None:
    async with rig(whole) as r:
        client = await Client.to(r.url)
        client.writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        await until(lambda: r.proxy.active == 1)
        client.close()
        await until(lambda: r.proxy.active == 0)
        assert r.seen == [] and r.server.asked == []


@on_both_loops
async def test_the_clock_starts_when_the_last_byte_has_left() -> None:
    go = asyncio.Event()
    size = 30 << 20

    async def slow(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(HI), chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(slow) as r:
        # The server reads nothing until it is told to: the send can't complete.
        held: list[asyncio.StreamReader] = []

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.append(reader)
            await go.wait()
            head = await reader.readuntil(b"\r\n\r\n")
            await slow(Asked(head, await reader.readexactly(size), reader, writer, 1))
            writer.close()

        holding = await asyncio.start_server(hold, "127.0.0.1", 0, limit=65536)
        port = holding.sockets[0].getsockname()[1]
        r.proxy.upstream._port = port  # type: ignore[attr-defined]
        client = await Client.to(r.url)
        await client.ask(b'{"model":"m","stream":true}'.ljust(size))
        await until(lambda: bool(held))
        await asyncio.sleep(0.05)
        assert r.all(RequestStarted) == []
        released = r.proxy.clock.monotonic()
        go.set()
        assert (await client.answer()).complete
        await r.ended()
        assert r.all(RequestStarted)[0].at_s >= released
        client.close()
        holding.close()


# --- connections -----------------------------------------------------------------------------------------------------


@on_both_loops
async def test_connections_are_kept_and_used_again() -> None:
    async with rig(stream) as r:
        for number in range(1, 6):
            assert (await r.fetch(BODY)).complete
            await r.ended(number)
        assert r.server.connections == 1


@on_both_loops
async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(WHOLE)
        asked.writer.close()

    async with rig(script) as r:
        for _ in range(5):
            assert (await r.fetch(BODY)).status == 200
        assert r.server.connections == 5 and len(r.server.asked) == 5


@on_both_loops
async def test_connection_close_is_obeyed() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(sized(b"{}", headers=b"connection: close\r\n"))

    async with rig(script) as r:
        for _ in range(3):
            assert (await r.fetch(BODY)).status == 200
        assert r.server.connections == 3


@on_both_loops
async def test_nothing_is_sent_twice() -> None:
    async def script(asked: Asked) -> None:
        if len(r.server.asked) == 1:
            await asked.send(WHOLE)
        else:
            asked.writer.transport.abort()

    async with rig(script) as r:
        assert (await r.fetch(BODY)).status == 200
        assert (await r.fetch(BODY)).status == 502  # On the connection that was kept.
        assert len(r.server.asked) == 2


@on_both_loops
async def test_unasked_bytes_spoil_a_connection() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(WHOLE + WHOLE)

    async with rig(script) as r:
        for _ in range(3):
            assert (await r.fetch(BODY)).status == 200
        assert r.server.connections == 3


@on_both_loops
async def test_a_server_that_speaks_something_else() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async with rig(script) as r:
        answer = await r.fetch(BODY)
        assert answer.status == 502 and "isn't HTTP" in error_of(answer)["message"]
        assert (await r.ended()).outcome == "server_gone"


@on_both_loops
async def test_one_dead_server_delays_no_other() -> None:
    async def dead(asked: Asked) -> None:
        await asked.closed()

    async with rig(dead, read_timeout_s="0.5") as a, rig(whole) as b:
        waiting = [asyncio.create_task(a.fetch(BODY)) for _ in range(20)]
        await until(lambda: len(a.server.asked) == 20)
        began = asyncio.get_running_loop().time()
        assert (await b.fetch(BODY)).status == 200
        assert asyncio.get_running_loop().time() - began < 0.3
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {504}


@on_both_loops
async def test_many_slow_streams_at_once() -> None:
    go = asyncio.Event()

    async def script(asked: Asked) -> None:
        await asked.send(SSE_HEAD, chunk(HI))
        await go.wait()
        await asked.send(chunk(STOP), chunk(DONE), LAST_CHUNK)

    async with rig(script) as r:
        answers = [asyncio.create_task(r.fetch(BODY)) for _ in range(100)]
        await until(lambda: r.proxy.active == 100)
        go.set()
        assert {answer.body for answer in await asyncio.gather(*answers)} == {HI + STOP + DONE}
        assert (await r.ended(100)).outcome == "ok"


# --- tokens ----------------------------------------------------------------------------------------------------------


async def tokens_of(r: Rig, body: bytes, path: bytes = b"/v1/chat/completions") -> list[tuple[tuple[int, ...], str]]:
    await r.fetch(body, path)
    await r.ended(len(r.server.asked))
    await asyncio.sleep(0.01)
    return [(tokens.token_ids, tokens.source) for tokens in r.all(RequestPromptTokens)]


@on_both_loops
async def test_prompts_are_tokenised_after_the_send() -> None:
    async with rig(stream) as r:
        assert await tokens_of(r, BODY) == [((1, 2, 3), "tokenize")]
        assert r.tokenizer.asked == [("/v1/chat/completions", BODY)]


@pytest.mark.parametrize(
    ("body", "path", "settings", "expected"),
    [
        (b'{"prompt":[5,6,7]}', b"/v1/completions", {}, [((5, 6, 7), "request")]),
        (b'{"prompt":["a","b"]}', b"/v1/completions", {}, []),
        (b'{"input":"a"}', b"/v1/responses", {}, []),
        (BODY, b"/v1/chat/completions", {"mode": "off"}, []),
        (BODY, b"/v1/chat/completions", {"max_tokenize_bytes": "10"}, []),
        (b"{broken", b"/v1/chat/completions", {}, []),
    ],
)
@on_both_loops
async def test_which_prompts_are_tokenised(
    body: bytes, path: bytes, settings: dict[str, str], expected: list[tuple[tuple[int, ...], str]]
) -> None:
    async with rig(stream, tls=None, **settings) as r:
        assert await tokens_of(r, body, path) == expected


@on_both_loops
async def test_a_failing_tokenizer_harms_nobody() -> None:
    async with rig(stream) as r:

        async def fail(path: str, body: bytes) -> tuple[int, ...] | None:
            raise RuntimeError("no")

        r.tokenizer.tokenize = fail  # type: ignore[method-assign]
        assert await tokens_of(r, BODY) == []
        assert await tokens_of(r, BODY) == []


# --- clients ---------------------------------------------------------------------------------------------------------


@on_both_loops
async def test_the_openai_client_streams_and_reads_errors() -> None:
    async def script(asked: Asked) -> None:
        await asked.send(*(sse(HI, HI, STOP, DONE) if b'"stream":true' in asked.body.replace(b" ", b"") else [WHOLE]))

    async with rig(script) as r, openai.AsyncOpenAI(base_url=f"{r.url}/v1", api_key="x", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Hi"}]
        pieces = await client.chat.completions.create(model="m", messages=messages, stream=True)
        assert [piece.choices[0].delta.content async for piece in pieces] == ["Hi", "Hi", None]
        answer = await client.chat.completions.create(model="m", messages=messages)
        assert answer.choices[0].message.content == "x"
        await r.server.stop()
        with pytest.raises(openai.InternalServerError) as raised:
            await client.chat.completions.create(model="m", messages=messages)
        assert raised.value.status_code == 502 and raised.value.code == "server_unreachable"
        assert re.search("can't be reached|closed the connection", str(raised.value))
        await r.server.start()


def test_heads_are_read_as_bytes() -> None:
    assert pairs(b"HTTP/1.1 200 OK\r\nA: 1\r\nB: \xe9\r\n\r\n") == [(b"a", b"1"), (b"b", b"\xe9")]


@pytest.mark.parametrize(("status", "told"), [(b"200 OK", 1), (b"400 Bad Request", 0)])
async def test_an_adapter_that_is_loaded_through_the_proxy_is_told(status: bytes, told: int) -> None:
    async def script(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")

    async with rig(script, extra_paths="/v1/load_lora_adapter") as r:
        client = await Client.to(r.url)
        for body in (b'{"lora_name": "a", "lora_path": "/a", "load_inplace": true}', b'{"lora_name": 1}', b"[]", b"{"):
            await client.ask(body, b"/v1/load_lora_adapter")
            await client.answer()
        client.close()
        assert [(loaded.server, loaded.name) for loaded in r.all(AdapterLoaded)] == [(r.server.url, "a")] * told
