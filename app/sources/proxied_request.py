"""A client's request on its way to the server: what is read from it, what is added to it, and what is told of it."""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from ..events import ServerRecord
from ..ids import RequestId, ServerId, SessionId
from ..observations import AdapterLoaded, Malformed, RequestPromptTokens, RequestStarted
from ..settings import Settings
from ..wire.adapter_loads import LOAD_ADAPTER, adapter_named_in
from ..wire.body_facts import NO_FACTS, BodyFacts
from ..wire.request_reading import read_request
from ..wire.splice import TOKEN_IDS_FIELD, spliced
from .additions import ENRICHED, OBSERVED, may_name_session, wanted
from .body_reader import BodyReader, BodyUnread
from .clock import Clock
from .prompt_tokens import PromptTokens
from .proxy_call import Call, read_wishes
from .proxy_headers import headers_for_server, names_session
from .response_tap import Emit
from .upstream import Body, RawHeaders, Upstream

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """What the exchanges of one proxy share. `salt_key` keys the digests of cache salts."""

    server: ServerId
    settings: Settings
    emit: Emit
    clock: Clock
    server_record: Callable[[], ServerRecord | None]
    upstream: Upstream
    prompt_tokens: PromptTokens
    body_reader: BodyReader
    salt_key: bytes
    later: Callable[[Coroutine[Any, Any, None]], None]
    """Runs what outlasts an exchange."""


class ProxiedRequest:
    """One request: `prepare` it, take `headers` and then its body for the server, and say when it was `sent`.

    A mistake in reading it costs what is told of it, never the request: then it goes on as the client sent it.
    """

    def __init__(self, parts: ProxyParts, call: Call, request: RequestId) -> None:
        self.id = request
        self.call = call._replace(body=b"")
        self.wishes = read_wishes(call, parts.settings.mode)
        self.observed = call.method == "POST" and call.path in OBSERVED
        self.facts: BodyFacts = NO_FACTS
        self._body = call.body
        self._to_send: Body = (call.body,) if isinstance(call.body, bytes) else call.body
        self.added: tuple[str, ...] = ()
        self.shows_text = parts.settings.shows_text_of(self.wishes.origin)
        self.uncompressed = False
        """Something may be put into the response: the server isn't told which compressions the client reads."""
        self.started = False
        """The ledger was told of it."""
        self.tokens_asked = False
        self._parts = parts
        self._received_s = parts.clock.monotonic()
        self._session: SessionId | None = None
        self._packed_prompt: bytes | None = None
        self._prepared = False

    async def prepare(self) -> None:
        """Reads the request and adds what its mode adds, once."""
        if self._prepared:
            return
        self._prepared = True
        if self.observed:
            try:
                await self._read()
            except BodyUnread as unread:
                self._mark(f"the request is passed on unread: {unread}")
            except Exception as error:  # The tap's outer edge: it may fail, the chat must not.
                self.mark_failure("reading the request", error)

    def headers(self) -> RawHeaders:
        """The headers for the server."""
        session = self._session.encode("ascii") if self._session else None
        key = self._parts.settings.vllm_api_key if self.wishes.origin != "client" else None
        headers = headers_for_server(self.call, sum(map(len, self._to_send)), session, key)
        return [pair for pair in headers if pair[0] != b"accept-encoding"] if self.uncompressed else headers

    def take_body(self) -> Body:
        """The body for the server. It isn't kept here: it may be large, and a stream may be long."""
        body, self._to_send = self._to_send, ()
        if sum(map(len, body)) > self._parts.settings.max_tokenize_bytes:
            self._body = b""
        return body

    def sent(self) -> None:
        """The last byte of the request left, or never will."""
        if not self.observed or self.started:
            return
        self.started = True
        parts, facts, call = self._parts, self.facts, self.call
        at_s = parts.clock.monotonic()
        record = parts.server_record()
        parts.emit(
            RequestStarted(
                server=parts.server,
                request=self.id,
                endpoint=call.path,
                origin=self.wishes.origin,
                at_s=at_s,
                model=facts.model,
                streamed=facts.stream,
                max_tokens=facts.max_tokens,
                sequences=facts.sequences,
                session_id=self._session,
                salt=facts.salt,
                salted_by_page=self.wishes.cold and facts.salt is not None,
                skips_cache_read=facts.skips_cache_read,
                has_images=facts.has_images,
                lora_name=facts.model if record is not None and facts.model in record.adapters else None,
                label=facts.label,
                show_text=self.shows_text,
                began_s=call.began_s,
                received_s=self._received_s,
                transfers_kv=facts.transfers_kv,
            )
        )
        if facts.prompt_token_ids is not None or self._packed_prompt is not None:
            self.tokens_asked = True
            token_ids = facts.prompt_token_ids or ()
            parts.emit(RequestPromptTokens(self.id, token_ids, "request", at_s, self._packed_prompt))
        elif not facts.wants_token_ids and TOKEN_IDS_FIELD not in self.added:
            self.ask_for_tokens()

    def answered(self, status: int) -> None:
        """The server's status. An adapter that was loaded, perhaps under a name in use, changes what its blocks are."""
        if self.call.path == LOAD_ADAPTER and status // 100 == 2 and isinstance(self._body, bytes):
            name = adapter_named_in(self._body)
            if name is not None:
                self._parts.emit(AdapterLoaded(self._parts.server, name, self._parts.clock.monotonic()))

    def ask_for_tokens(self) -> None:
        """Has the prompt tokenised by the server, where it is one prompt of a kind that `/tokenize` understands."""
        self.tokens_asked = True
        one_prompt = self.facts.sequences == 1 or self.call.path == "/v1/chat/completions"
        body, self._body = self._body, b""
        if body and self.wishes.mode != "off" and self.call.path in ENRICHED and self.facts.is_object and one_prompt:
            whole = body if isinstance(body, bytes) else b"".join(body)
            self._parts.prompt_tokens.ask(self.id, self.call.path, whole)

    def mark_failure(self, doing: str, error: Exception) -> None:
        """A mistake of the dashboard's own becomes a mark on the request; its words may have the prompt in them."""
        told = f"{type(error).__name__}: {error}" if self.shows_text else type(error).__name__
        logger.error("proxy: %s failed, it is passed on unread: %s", doing, type(error).__name__)
        self._mark(f"{doing} failed, it is passed on unread: {told}")

    def _mark(self, detail: str) -> None:
        parts = self._parts
        parts.emit(Malformed(parts.server, "sse", detail, parts.clock.monotonic(), request=self.id))

    async def _read(self) -> None:
        parts, call, mode, with_label = self._parts, self.call, self.wishes.mode, self.shows_text
        record = parts.server_record()
        fields = wanted(call.path, mode, record, reports=parts.settings.report_all_reuse)
        body = self._body
        if isinstance(body, bytes):
            reading = read_request(body, parts.salt_key, fields, with_label=with_label)
        else:
            reading = await parts.body_reader.read_request(body, parts.salt_key, fields, with_label=with_label)
        self.facts, self.added, self._packed_prompt = reading.facts, reading.added, reading.packed_prompt
        self._to_send = spliced(self._to_send, reading.inserts)
        if not names_session(call.headers) and may_name_session(mode, self.facts, record):
            self._session = SessionId(self.id)
