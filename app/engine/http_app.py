"""The embedded engine's HTTP side: a bare ASGI application with vLLM's paths.

Bare, because an answer is a stream of small writes and every layer in between would be paid for with each token.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

from . import messages_api, responses_api
from .bodies import parse_conversation, parse_json, parse_token_ids
from .fields import ApiError, Body, flag
from .generate import Generator
from .imitation import Imitation
from .jobs import Job, Renderer
from .models import Models
from .openai_answers import ChatAnswer, CompletionAnswer
from .outputs import OutputStream
from .profiles import TimingProfile
from .ranks import EngineRanks
from .responses import Json, encode

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = Mapping[str, str]

MAX_BODY_BYTES = 100 * 1024 * 1024
_JSON = "application/json"
_EVENT_STREAM = "text/event-stream; charset=utf-8"


class Gone(Exception):
    """The client left before its request was read."""


class HttpApp:
    """Routes requests to the handlers of one engine."""

    def __init__(
        self, ranks: EngineRanks, generator: Generator, models: Models, *, profile: TimingProfile, imitation: Imitation
    ) -> None:
        self._ranks = ranks
        self._tokenizer = generator.tokenizer
        self._generator = generator
        self._models = models
        self._profile = profile
        self._as = imitation
        routes: dict[str, tuple[str, Callable[[Scope, Receive, Send], Awaitable[None]]]] = {
            "/v1/chat/completions": ("POST", self._chat),
            "/v1/completions": ("POST", self._completions),
            "/v1/responses": ("POST", self._responses),
            "/v1/messages": ("POST", self._messages),
            "/v1/messages/count_tokens": ("POST", self._count_tokens),
            "/v1/models": ("GET", self._list_models),
            "/version": ("GET", self._version),
            "/health": ("GET", self._health),
            "/ping": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            "/tokenize": ("POST", self._tokenize),
            "/detokenize": ("POST", self._detokenize),
            "/reset_prefix_cache": ("POST", self._reset),
        }
        self._routes = {path: route for path, route in routes.items() if path not in imitation.absent_paths}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface; only `http` is spoken."""
        if scope["type"] != "http":
            return
        method, handler = self._routes.get(scope["path"], ("", None))
        if handler is None:
            await _answer(send, 404, encode({"detail": "Not Found"}))
        elif scope["method"] != method:
            await _answer(send, 405, encode({"detail": "Method Not Allowed"}), extra=[(b"allow", method.encode())])
        else:
            try:
                await handler(scope, receive, send)
            except ApiError as error:
                await _answer(send, error.status, encode(error.body()))
            except Gone:
                return

    async def _chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, headers, arrived_s = await self._read(scope, receive)
        job = await self._generator.chat(body, headers, arrived_s)
        await self._generate(job, ChatAnswer(job, self._tokenizer), receive, send)

    async def _completions(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, headers, arrived_s = await self._read(scope, receive)
        job = await self._generator.completion(body, headers, arrived_s)
        await self._generate(job, CompletionAnswer(job, self._tokenizer), receive, send)

    async def _responses(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, headers, arrived_s = await self._read(scope, receive)
        job = await self._generator.chat(responses_api.chat_body_of(body), headers, arrived_s, "resp_")
        await self._generate(job, responses_api.ResponseAnswer(job, self._tokenizer, body), receive, send)

    async def _messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, headers, arrived_s = await self._read(scope, receive)
        chat = messages_api.chat_body_of(body)
        try:
            job = await self._generator.chat(chat, headers, arrived_s)
            await self._generate(job, messages_api.MessageAnswer(job), receive, send)
        except ApiError as error:
            await _answer(send, error.status, encode(messages_api.error_body(error)))

    async def _count_tokens(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, _, _ = await self._read(scope, receive)
        chat = messages_api.chat_body_of(body, counting=True)
        try:
            self._models.chosen_by(chat)
            token_ids, _ = await self._generator.prompts.of_chat(parse_conversation(chat))
        except ApiError as error:
            await _answer(send, error.status, encode(messages_api.error_body(error)))
            return
        count = len(token_ids)
        told: Json = {"input_tokens": count, "context_management": {"original_input_tokens": count}}
        await _answer(send, 200, encode(told))

    async def _read(self, scope: Scope, receive: Receive) -> tuple[Body, Headers, float]:
        headers = _headers(scope)
        raw = await _read_body(headers, receive)
        # Before the tokenizing: a profile's first step has that time in it.
        arrived_s = self._ranks.now_s()
        return parse_json(raw), headers, arrived_s

    async def _generate(self, job: Job, renderer: Renderer, receive: Receive, send: Send) -> None:
        stream = await self._generator.submit(job)
        watcher = asyncio.create_task(_abort_when_gone(receive, stream))
        try:
            if job.sampling.stream:
                await send(_start(200, _EVENT_STREAM))
                async for frame in self._generator.frames(job, renderer, stream):
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            elif (body := await self._generator.whole(job, renderer, stream)) is not None:
                await _answer(send, 200, encode(body))
            else:
                error = ApiError("The request was aborted", status=500, kind="InternalServerError")
                await _answer(send, error.status, encode(error.body()))
        finally:
            watcher.cancel()
            stream.abort()

    async def _list_models(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _answer(send, 200, encode(self._models.listed(self._generator.max_model_len)))

    async def _version(self, scope: Scope, receive: Receive, send: Send) -> None:
        told: Json = {"embedded_engine": True, "profile": self._profile.name, "timing": "modelled"}
        if self._profile.assumed:
            told["assumed"] = self._profile.assumed
        await _answer(send, 200, encode({"version": self._as.version, "prefixscope": told}))

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _answer(send, 200, b"", content_type=None)

    async def _metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        page, content_type = self._ranks.page.render()
        await _answer(send, 200, page, content_type=content_type)

    async def _tokenize(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = parse_json(await _read_body(_headers(scope), receive))
        self._models.chosen_by(body)
        flag(body, "add_special_tokens")  # Accepted: Qwen2.5 adds none.
        prompt = body.get("prompt")
        if isinstance(prompt, str) and "messages" not in body:
            tokens = await self._generator.prompts.of_prompt(prompt)
        else:
            tokens, _ = await self._generator.prompts.of_chat(parse_conversation(body))
        told: Json = {"count": len(tokens), "max_model_len": self._generator.max_model_len, "tokens": tokens}
        if self._as.token_strings:
            asked = flag(body, "return_token_strs")
            told["token_strs"] = self._tokenizer.token_strings(tokens) if asked else None
        await _answer(send, 200, encode(told))

    async def _detokenize(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = parse_json(await _read_body(_headers(scope), receive))
        self._models.chosen_by(body)
        tokens = await self._generator.prompts.of_prompt(parse_token_ids(body, "tokens"))
        await _answer(send, 200, encode({"prompt": self._tokenizer.decode(tokens)}))

    async def _reset(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _answer(send, 200, encode({"success": self._ranks.reset_prefix_cache()}))


async def _abort_when_gone(receive: Receive, stream: OutputStream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.abort()


async def _read_body(headers: Headers, receive: Receive) -> bytes:
    if headers.get("content-type", "").lower().split(";", 1)[0].strip() != _JSON:
        raise ApiError(
            "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", kind="Bad Request"
        )
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        piece = message.get("body", b"")
        size += len(piece)
        if size > MAX_BODY_BYTES:
            raise ApiError(f"A body has at most {MAX_BODY_BYTES} bytes.", status=413, kind="Request Entity Too Large")
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _headers(scope: Scope) -> Headers:
    pairs: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def _start(
    status: int, content_type: str | None, length: int | None = None, extra: Iterable[tuple[bytes, bytes]] = ()
) -> MutableMapping[str, Any]:
    headers = [(b"vary", b"Origin"), *extra]
    if content_type is not None:
        headers.insert(0, (b"content-type", content_type.encode()))
    if length is not None:
        headers.insert(0, (b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _answer(
    send: Send,
    status: int,
    body: bytes,
    content_type: str | None = _JSON,
    extra: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    await send(_start(status, content_type, len(body), extra))
    await send({"type": "http.response.body", "body": body})
