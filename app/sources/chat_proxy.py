"""The chat path: one exchange with a server, byte for byte, and a tap that listens.

The response's bytes go on as they come; what the tap makes of them becomes observations. No failure of the tap reaches
the stream. What each mode adds (README, "What the proxy adds") is decided here and nowhere else.
"""

import secrets
from collections.abc import Callable
from typing import NamedTuple

from ..errors import Overloaded, PrefixScopeError, UpstreamTimeout
from ..events import ServerRecord
from ..ids import RequestId, ServerId, SessionId
from ..observations import Malformed, Origin, Outcome, RequestEnded, RequestPromptTokens, RequestStarted
from ..settings import Mode, Settings
from ..wire.body_facts import NO_FACTS, BodyFacts, read_body_facts
from ..wire.frame_cutter import UsageFrameCutter
from ..wire.splice import TOKEN_IDS_FIELD, USAGE_FIELD, enrich_body
from .clock import Clock
from .prompt_tokens import PromptTokens, Tokenizer
from .response_tap import Emit, ResponseTap
from .upstream import HttpUpstream, RawHeaders, Sink, Upstream, UpstreamResponse

OBSERVED = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"})
"""Paths whose POST requests are recorded. Others pass unseen."""
ENRICHED = frozenset({"/v1/chat/completions", "/v1/completions"})
"""Paths whose bodies take `stream_options` and `return_token_ids`, and whose prompts `/tokenize` understands."""
TOKEN_IDS_SINCE = (0, 10, 2)
"""The first vLLM release that knows `return_token_ids`."""

OWN_PREFIX = b"x-prefixscope-"
HOP_BY_HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
_NOT_TO_SERVER = HOP_BY_HOP | {b"host", b"content-length", b"expect"}
_MODES: dict[bytes, Mode] = {b"off": "off", b"observe": "observe", b"enrich": "enrich"}
_ORIGINS: dict[bytes, Origin] = {b"page": "page", b"scenario": "scenario"}


class Call(NamedTuple):
    """A client's request. `target` is the path with its query, as the client wrote it; header names are lower case.

    from_own_page: a page of this dashboard sent it, so what its headers say of its origin counts.
    """

    method: str
    path: str
    target: bytes
    headers: RawHeaders
    body: bytes
    from_own_page: bool = False


class ChatProxy:
    """The proxy in front of one server: its connections, its limits, and the ids of its requests."""

    def __init__(
        self,
        server: ServerId,
        settings: Settings,
        emit: Emit,
        clock: Clock,
        server_record: Callable[[], ServerRecord | None],
        tokenizer: Tokenizer,
        *,
        salt_key: bytes | None = None,
        upstream: Upstream | None = None,
    ) -> None:
        """`salt_key` keys the digests of cache salts; to compare them with KV events', both need the same."""
        self.server = server
        self.settings = settings
        self.emit = emit
        self.clock = clock
        self.server_record = server_record
        self.salt_key = salt_key or secrets.token_bytes(32)
        self.upstream = upstream or HttpUpstream(server, clock, settings.connect_timeout_s, settings.read_timeout_s)
        self.prompt_tokens = PromptTokens(tokenizer, emit, clock, settings.max_tokenize_bytes)
        self.active = 0
        self._run = secrets.token_hex(4)
        self._requests = 0

    def enter(self) -> None:
        """Takes one of `max_streams` places; `leave` gives it back. Raises Overloaded where all are taken."""
        if self.active >= self.settings.max_streams:
            raise Overloaded(
                f"{self.active} requests are being proxied, which is the most that is allowed",
                hint="Try again in a second, or raise max_streams.",
            )
        self.active += 1

    def leave(self) -> None:
        """The end of what `enter` began."""
        self.active -= 1

    def open(self, call: Call) -> "Exchange":
        """An exchange for `call`, not yet sent."""
        self._requests += 1
        return Exchange(self, call, RequestId(f"r-{self._run}-{self._requests}"))

    async def close(self) -> None:
        """Ends background work and closes idle connections."""
        await self.prompt_tokens.close()
        await self.upstream.close()


class Exchange:
    """One request and its response: `send`, then `pump` until it is `complete`; `close` in any case.

    `status` and `headers` are those to answer the client with, once `send` is through.
    """

    def __init__(self, proxy: ChatProxy, call: Call, request: RequestId) -> None:
        self.status = 0
        self.headers: RawHeaders = []
        self.complete = False
        self.client_gone = False
        """Set by whoever serves the client, before it cancels or closes the exchange."""
        self._proxy = proxy
        self._call = call
        self._request = request
        self._response: UpstreamResponse | None = None
        self._write: Sink | None = None
        self._tap: ResponseTap | None = None
        self._cutter: UsageFrameCutter | None = None
        self._facts: BodyFacts = NO_FACTS
        self._added: tuple[str, ...] = ()
        self._session: SessionId | None = None
        self._observed = call.method == "POST" and call.path in OBSERVED
        self._started = self._ended = self._tokens_asked = False
        own = {name: value.lower() for name, value in call.headers if name.startswith(OWN_PREFIX)}
        claimed = own.get(OWN_PREFIX + b"origin", b"") if call.from_own_page else b""
        self._origin: Origin = _ORIGINS.get(claimed, "client")
        self._shows_text = self._origin != "client" or proxy.settings.show_prompts
        self._mode = _MODES.get(own.get(OWN_PREFIX + b"mode", b""), proxy.settings.mode)
        self._cold = self._origin != "client" and own.get(OWN_PREFIX + b"cold") == b"1"

    async def send(self) -> None:
        """Sends the request and waits for the response's head. Raises Unreachable, UpstreamTimeout."""
        proxy, call = self._proxy, self._call
        body = call.body
        if self._observed:
            self._facts = read_body_facts(body, proxy.salt_key, with_label=self._shows_text)
            body = self._enriched(body)
        headers = self._server_headers(body)
        try:
            response = await proxy.upstream.send(call.method.encode("ascii"), call.target, headers, body, self._on_sent)
        except PrefixScopeError as error:
            self._on_sent()
            self._end("timed_out" if isinstance(error, UpstreamTimeout) else "server_gone", error.message)
            raise
        self._response = response
        self._answer_head(response)

    async def pump(self, write: Sink) -> None:
        """Hands what may go to the client to `write`, until the last piece or until it returns False; then call again.

        Raises Unreachable, UpstreamTimeout: the response broke off.
        """
        response = self._response
        assert response is not None
        self._write = write
        try:
            await response.pipe(self._pass_on)
        except PrefixScopeError as error:
            self._broke_off(error)
            raise

    def close(self) -> None:
        """The end of the exchange, wherever it is: the server's connection is closed unless everything was read."""
        if self._response is not None:
            self._response.abort()
        if self._started and not self._ended:
            self._end("client_gone", None if self.client_gone else "the dashboard was stopped")

    def _pass_on(self, data: bytes, last: bool) -> bool:
        tap, response = self._tap, self._response
        if tap is not None and response is not None:
            try:
                tap.feed(data, response.received_s)
                if not self._tokens_asked and tap.saw_first_token and not tap.knows_prompt:
                    self._ask_for_tokens()
            except Exception as error:  # The tap's outer edge: it may fail, the chat must not.
                self._tap_failed(error)
        if self._cutter is not None:
            data = self._cutter.feed(data)
            if last:
                data += self._cutter.flush()
        if last:
            self.complete = True
            self._response = None
            self._finish()
        assert self._write is not None
        return self._write(data, last) if data or last else True

    # --- before the send ---

    def _enriched(self, body: bytes) -> bytes:
        if self._mode != "enrich" or self._call.path not in ENRICHED:
            return body
        version = self._vllm_version()
        if version is None or not self._facts.is_object:
            return body
        spliced = enrich_body(body, usage=self._facts.stream, token_ids=version >= TOKEN_IDS_SINCE)
        self._added = spliced.added
        return spliced.body

    def _server_headers(self, body: bytes) -> RawHeaders:
        call = self._call
        dropped, named = _NOT_TO_SERVER, named_by_connection(call.headers)
        if named:
            dropped = dropped | named
        headers = [pair for pair in call.headers if pair[0] not in dropped and not pair[0].startswith(OWN_PREFIX)]
        names = {name for name, _ in call.headers}
        if body or b"content-length" in names or call.method in ("POST", "PUT", "PATCH"):
            headers.append((b"content-length", b"%d" % len(body)))
        if b"x-session-id" not in names and self._may_name_session():
            self._session = SessionId(self._request)
            headers.append((b"x-session-id", self._request.encode("ascii")))
        key = self._proxy.settings.vllm_api_key
        if key and self._origin != "client" and b"authorization" not in names:
            headers.append((b"authorization", b"Bearer " + key.encode("latin-1", "replace")))
        return headers

    def _may_name_session(self) -> bool:
        """Routers place conversations by a session id: one of ours goes to what says that it is a vLLM server only."""
        unnamed = self._observed and self._facts.is_object and not self._facts.names_session
        return unnamed and self._mode != "off" and self._vllm_version() is not None

    def _vllm_version(self) -> tuple[int, ...] | None:
        """The version that the server says it has; None where it isn't known to be a vLLM server."""
        record = self._proxy.server_record()
        if record is None or record.version is None or record.state == "not_vllm":
            return None
        numbers = []
        for part in record.version.split(".")[:3]:
            digits = part[: len(part) - len(part.lstrip("0123456789"))]
            if not digits:
                break
            numbers.append(int(digits))
        return tuple(numbers)

    # --- what happens to it ---

    def _on_sent(self) -> None:
        """The last byte of the request left, or never will."""
        if not self._observed or self._started:
            return
        self._started = True
        proxy, facts, call = self._proxy, self._facts, self._call
        at_s = proxy.clock.monotonic()
        proxy.emit(
            RequestStarted(
                server=proxy.server,
                request=self._request,
                endpoint=call.path,
                origin=self._origin,
                at_s=at_s,
                model=facts.model,
                streamed=facts.stream,
                max_tokens=facts.max_tokens,
                sequences=facts.sequences,
                session_id=self._session,
                salt=facts.salt,
                salted_by_page=self._cold and facts.salt is not None,
                skips_cache_read=facts.skips_cache_read,
                has_images=facts.has_images,
                label=facts.label,
                show_text=self._shows_text,
            )
        )
        if facts.prompt_token_ids is not None:
            self._tokens_asked = True
            proxy.emit(RequestPromptTokens(self._request, facts.prompt_token_ids, "request", at_s))
        elif not facts.wants_token_ids and TOKEN_IDS_FIELD not in self._added:
            self._ask_for_tokens()

    def _ask_for_tokens(self) -> None:
        self._tokens_asked = True
        one_prompt = self._facts.sequences == 1 or self._call.path == "/v1/chat/completions"
        if self._mode != "off" and self._call.path in ENRICHED and self._facts.is_object and one_prompt:
            self._proxy.prompt_tokens.ask(self._request, self._call.path, self._call.body)

    def _answer_head(self, response: UpstreamResponse) -> None:
        self.status = response.status
        fields: dict[bytes, bytes] = {}
        named = named_by_connection(response.headers)
        for pair in response.headers:
            name = pair[0].lower()
            if name not in HOP_BY_HOP and name not in named:
                self.headers.append(pair)
                fields[name] = pair[1]
        content_type = fields.get(b"content-type", b"").strip().lower()
        encoding = fields.get(b"content-encoding", b"").strip().lower()
        if response.status in (204, 304):
            self.headers = [pair for pair in self.headers if pair[0].lower() != b"content-length"]
        if content_type.startswith(b"text/event-stream"):
            if self._mode != "off":
                self.headers += [pair for pair in _STREAM_HEADERS if pair[0] not in fields]
            if USAGE_FIELD in self._added and not encoding and b"content-length" not in fields:
                self._cutter = UsageFrameCutter()
        if self._origin != "client":
            self.headers.append((b"x-prefixscope-request", self._request.encode("ascii")))
        if self._observed:
            self._tap = ResponseTap(
                self._proxy.server,
                self._request,
                self._proxy.emit,
                tells_output=self._facts.sequences == 1,
                max_held_bytes=self._proxy.settings.max_sse_line_bytes,
            )
            try:
                self._tap.head(response.status, content_type, encoding, response.received_s)
            except Exception as error:  # The tap's outer edge.
                self._tap_failed(error)

    def _tap_failed(self, error: Exception) -> None:
        self._tap = None
        proxy = self._proxy
        told = f"{type(error).__name__}: {error}" if self._shows_text else type(error).__name__
        detail = f"reading the response failed, it is passed on unread: {told}"
        proxy.emit(Malformed(proxy.server, "sse", detail, proxy.clock.monotonic(), request=self._request))

    def _finish(self) -> None:
        """All bytes of the response arrived."""
        outcome: Outcome = "http_error" if self.status >= 400 else "ok"
        self._end(outcome, None)

    def _broke_off(self, error: PrefixScopeError) -> None:
        """The server's connection failed in the middle of the response."""
        if self.client_gone:
            self._end("client_gone", None)
        elif isinstance(error, UpstreamTimeout):
            self._end("timed_out", error.message)
        else:
            self._end("server_gone", error.message)

    def _end(self, outcome: Outcome, error: str | None) -> None:
        """Says once what became of the request, after all else that is known of it."""
        if not self._observed or self._ended:
            return
        self._ended = True
        proxy, tap = self._proxy, self._tap
        at_s = proxy.clock.monotonic()
        if tap is not None:
            try:
                tap.end(at_s)
                if outcome in ("ok", "http_error") or (outcome == "server_gone" and tap.complete):
                    outcome, error = tap.outcome(), tap.error
            except Exception as failure:  # The tap's outer edge.
                self._tap_failed(failure)
        proxy.emit(
            RequestEnded(
                request=self._request,
                outcome=outcome,
                at_s=at_s,
                status=self.status or None,
                error=error,
                finish_reason=tap.finish_reason if tap else None,
                content_chunks=tap.content_chunks if tap else 0,
            )
        )


_STREAM_HEADERS = ((b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache"))
"""Keep proxies that stand before this one from collecting a stream."""
_NO_NAMES: frozenset[bytes] = frozenset()


def named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    """Headers that the `Connection` header declares to concern this connection only."""
    named = [value for name, value in headers if len(name) == 10 and name.lower() == b"connection"]
    if not named:
        return _NO_NAMES
    return frozenset(token.strip().lower() for value in named for token in value.split(b","))
