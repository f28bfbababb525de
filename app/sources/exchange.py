"""One request and its response: bytes through, and a tap that listens.

The response's bytes go on as they come; what the tap makes of them becomes observations. No failure of the tap, nor of
reading the request, reaches the client.
"""

from ..errors import PrefixScopeError, UpstreamTimeout
from ..ids import RequestId
from ..observations import Outcome, RequestEnded
from ..wire.frame_cutter import UsageFrameCutter
from ..wire.splice import USAGE_FIELD
from .body_reader import BodyUnread
from .proxied_request import ProxiedRequest, ProxyParts
from .proxy_call import Call
from .proxy_headers import ResponseHead
from .response_tap import ResponseTap
from .upstream import RawHeaders, Sink, UpstreamResponse


class Exchange:
    """One request and its response: `send`, then `pump` until it is `complete`; `close` in any case.

    `status` and `headers` are those to answer the client with, once `send` is through.
    """

    def __init__(self, parts: ProxyParts, call: Call, request: RequestId) -> None:
        self.status = 0
        self.headers: RawHeaders = []
        self.complete = False
        self.streamed = False
        """The response is an event stream."""
        self.takes_comments = False
        """Further events may be put into it: it is not compressed, and no length is given."""
        self.client_gone = False
        """Set by whoever serves the client, before it cancels or closes the exchange."""
        self._parts = parts
        self._request = ProxiedRequest(parts, call, request)
        self._response: UpstreamResponse | None = None
        self._write: Sink | None = None
        self._tap: ResponseTap | None = None
        self._cutter: UsageFrameCutter | None = None
        self._ended = False
        self._stalled_s: float | None = None
        self._client_wait_s = 0.0

    @property
    def path(self) -> str:
        """The path that was asked for."""
        return self._request.call.path

    async def takes_pings(self) -> bool:
        """Whether comments may be put into the response while it is silent: the client asked for a stream, and for some
        addition. Then the server is asked for a stream that isn't compressed."""
        request = self._request
        await request.prepare()
        request.uncompressed = request.facts.stream and request.wishes.mode != "off"
        return request.uncompressed

    async def send(self) -> None:
        """Sends the request and waits for the response's head. Raises Unreachable, UpstreamTimeout."""
        request = self._request
        await request.prepare()
        method, target = request.call.method.encode("ascii"), request.call.target
        try:
            headers = request.headers()
            response = await self._parts.upstream.send(method, target, headers, request.take_body(), request.sent)
        except PrefixScopeError as error:
            request.sent()
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
        if self._stalled_s is not None:
            self._client_wait_s += self._parts.clock.monotonic() - self._stalled_s
            self._stalled_s = None
        try:
            await response.pipe(self._pass_on)
        except PrefixScopeError as error:
            self._broke_off(error)
            raise

    def close(self) -> None:
        """The end of the exchange, wherever it is: the server's connection is closed unless everything was read."""
        if self._response is not None:
            self._response.abort()
        if self._request.started and not self._ended:
            self._end("client_gone", None if self.client_gone else "the dashboard was stopped")

    def _pass_on(self, data: bytes, last: bool) -> bool:
        tap, response = self._tap, self._response
        if tap is not None and response is not None:
            try:
                tap.feed(data, response.received_s)
                if tap.saw_first_token and not self._request.tokens_asked and not tap.knows_prompt:
                    self._request.ask_for_tokens()
            except Exception as error:  # The tap's outer edge: it may fail, the chat must not.
                self._tap_failed(error)
        if self._cutter is not None:
            data = self._cut(self._cutter, data, last)
        if last:
            self.complete = True
            self._response = None
            self._end("http_error" if self.status >= 400 else "ok", None)
        assert self._write is not None
        taken = self._write(data, last) if data or last else True
        if not taken:
            self._stalled_s = self._parts.clock.monotonic()
        return taken

    def _cut(self, cutter: UsageFrameCutter, data: bytes, last: bool) -> bytes:
        try:
            forward = cutter.feed(data)
        except Exception as error:  # As the tap: what was held back goes on uncut.
            self._cutter = None
            self._request.mark_failure("taking a frame out", error)
            return cutter.flush() + data
        return forward + cutter.flush() if last else forward

    def _answer_head(self, response: UpstreamResponse) -> None:
        self.status = response.status
        self._request.answered(response.status)
        head = ResponseHead(response.status, response.headers)
        self.headers, self.streamed = head.headers, head.streamed
        self.takes_comments = head.streamed and not head.encoding and not head.sized
        if head.streamed and self._request.wishes.mode != "off":
            head.add_stream_headers()
            if USAGE_FIELD in self._request.added and self.takes_comments:
                self._cutter = UsageFrameCutter()
        if self._request.wishes.origin != "client":
            self.headers.append((b"x-prefixscope-request", self._request.id.encode("ascii")))
        if self._request.observed:
            parts = self._parts
            tap = self._tap = ResponseTap(
                parts.server,
                self._request.id,
                parts.emit,
                tells_output=self._request.facts.sequences == 1,
                max_held_bytes=parts.settings.max_sse_line_bytes,
            )
            try:
                tap.head(response.status, head.content_type, head.encoding, response.received_s)
            except Exception as error:  # The tap's outer edge.
                self._tap_failed(error)

    def _tap_failed(self, error: Exception) -> None:
        self._tap = None
        self._request.mark_failure("reading the response", error)

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
        if not self._request.observed or self._ended:
            return
        self._ended = True
        at_s = self._parts.clock.monotonic()
        if self._stalled_s is not None:
            self._client_wait_s += at_s - self._stalled_s
        body = self._tap.take_long_body() if self._tap is not None and outcome == "ok" else None
        if body is not None:
            self._parts.later(self._read_and_tell(body, at_s))
        else:
            self._tell_end(outcome, error, at_s)

    async def _read_and_tell(self, body: bytearray, at_s: float) -> None:
        try:
            said = await self._parts.body_reader.read_response(body)
        except BodyUnread:
            said = None
        if self._tap is not None:
            try:
                self._tap.hear_long_body(said, at_s)
            except Exception as error:  # The tap's outer edge.
                self._tap_failed(error)
        self._tell_end("ok", None, at_s)

    def _tell_end(self, outcome: Outcome, error: str | None, at_s: float) -> None:
        parts, tap = self._parts, self._tap
        if tap is not None:
            try:
                tap.end(at_s)
                if outcome in ("ok", "http_error") or (outcome == "server_gone" and tap.complete):
                    outcome, error = tap.outcome(), tap.error
            except Exception as failure:  # The tap's outer edge.
                self._tap_failed(failure)
        parts.emit(
            RequestEnded(
                request=self._request.id,
                outcome=outcome,
                at_s=at_s,
                status=self.status or None,
                error=error,
                finish_reason=tap.finish_reason if tap else None,
                content_chunks=tap.content_chunks if tap else 0,
                gap_counts=tap.gaps.counts() if tap else (),
                client_wait_s=self._client_wait_s,
            )
        )
