"""Listens to a copy of a response while it passes, and says what it learned as observations.

The tap never touches the bytes and may fail: whoever feeds it catches that, and the stream goes on. What it holds is
bounded; above the bound it gives up with a visible mark. Times are arguments: when the bytes arrived.
"""

import zlib
from collections.abc import Callable

from ..ids import RequestId, ServerId
from ..observations import (
    Malformed,
    Observation,
    Outcome,
    RequestEngineTimes,
    RequestFirstToken,
    RequestHead,
    RequestOutputTokens,
    RequestPromptTokens,
    RequestUsage,
)
from ..wire.chat_chunks import read_body, read_error, read_event
from ..wire.gap_counts import GapCounts
from ..wire.packed_ids import ID_BYTES, MAX_LISTED_IDS, pack_ids, unpack_ids
from ..wire.plain_tokens import PlainTokens
from ..wire.prompt_ids import PromptIds
from ..wire.said import ANSWER, Said
from ..wire.sse import SseDecoder
from ..wire.usage import EngineTimes, Usage
from .body_reader import OFF_LOOP_BYTES

OUTPUT_TOKENS_EVERY_S = 0.1
MAX_MARKS = 10
"""Malformed events of one response that are reported one by one."""
MAX_CHOICES = 128
"""Answers of one request whose first tokens are told apart."""
MAX_ERROR_BYTES = 64 * 1024
"""Of an error's body, the start is read."""
MAX_INFLATED_BYTES = 4 * 1024 * 1024
"""What one piece of a compressed body may become."""


Emit = Callable[[Observation], None]
"""Hands an observation to the writer. Never blocks, never raises."""


class ResponseTap:
    """One response. `head`, then `feed` each piece, then `end`; afterwards `outcome` says what became of it."""

    def __init__(
        self, server: ServerId, request: RequestId, emit: Emit, *, tells_output: bool, max_held_bytes: int
    ) -> None:
        self.content_chunks = 0
        self.finish_reason: str | None = None
        self.error: str | None = None
        self.complete = False
        """The protocol's own end mark was seen, or a whole body was read."""
        self.knows_prompt = False
        self.saw_first_token = False
        self.gaps = GapCounts()
        self._server = server
        self._request = request
        self._emit = emit
        self._tells_output = tells_output
        self._max_held_bytes = max_held_bytes
        self._decoder: SseDecoder | None = None
        self._plain = PlainTokens()
        self._prompt_ids = PromptIds(max_held_bytes)
        self._body: bytearray | None = None
        self._had_body = False
        self._inflate: zlib._Decompress | None = None
        self._status = 0
        self._events = 0
        self._saw_answer = False
        self._choices: set[int] = set()
        self._usage: Usage | None = None
        self._times: EngineTimes | None = None
        self._output: list[int] = []
        """Ids of the answer that weren't told yet."""
        self._told_output = 0
        self._next_output_s = 0.0
        self._marks = 0
        self._given_up = False

    def head(self, status: int, content_type: bytes, content_encoding: bytes, at_s: float) -> None:
        """The response's status, and the two headers that say how to read it ("" where absent), lower-cased."""
        self._emit(RequestHead(self._request, status, at_s))
        self._status = status
        if content_encoding in (b"gzip", b"x-gzip", b"deflate"):
            self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        elif content_encoding not in (b"", b"identity"):
            self._give_up(f"compressed with {content_encoding.decode('latin-1')}: passed on unread", at_s)
            return
        if content_type.startswith(b"text/event-stream") and status < 400:
            self._decoder = SseDecoder(self._max_held_bytes)
        else:
            self._body = bytearray()

    def feed(self, data: bytes, at_s: float) -> None:
        """A piece of the body that arrived at `at_s`."""
        before = self.content_chunks
        self._read(data, at_s)
        if self.content_chunks != before:
            self.gaps.arrived(at_s)

    def _read(self, data: bytes, at_s: float) -> None:
        decoder, start = self._decoder, 0
        if decoder is not None and decoder.between_events and self._inflate is None:
            # Nearly every piece is a plain token, or some, that are like the ones before.
            tokens, start = self._plain.skip(data)
            self._events += tokens
            self.content_chunks += tokens
            if start == len(data):
                return
        if self._given_up:
            return
        if self._inflate is not None:
            try:
                data = self._inflated(self._inflate, data)
            except zlib.error as error:
                self._give_up(f"its compression can't be undone: {error}", at_s)
                return
            if len(data) > MAX_INFLATED_BYTES:
                self._give_up("it unpacks to too much", at_s)
                return
        if decoder is not None:
            if not self._saw_answer:
                data, start = self._prompt_ids.feed(data[start:] if start else data), 0
                self._tell_long_prompt(at_s)
            self._feed_stream(decoder, data, start, at_s)
            if decoder.gave_up:
                self._give_up(f"a line is longer than {self._max_held_bytes} bytes", at_s)
        elif self._body is not None:
            data = self._prompt_ids.feed(data)
            self._tell_long_prompt(at_s)
            room = MAX_ERROR_BYTES - len(self._body) if self._status >= 400 else len(data)
            self._body += data[: max(room, 0)]
            if len(self._body) > self._max_held_bytes:
                self._give_up(f"the body is longer than {self._max_held_bytes} bytes", at_s)

    def _inflated(self, inflate: "zlib._Decompress", data: bytes) -> bytes:
        """What a piece of a compressed body says; above MAX_INFLATED_BYTES perhaps not all of it."""
        said = inflate.decompress(data, MAX_INFLATED_BYTES + 1)
        while inflate.unused_data and len(said) <= MAX_INFLATED_BYTES:
            # A gzip body may be several in a row, as one that was flushed by closing and opening anew.
            data, self._inflate = inflate.unused_data, zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
            inflate = self._inflate
            said += inflate.decompress(data, MAX_INFLATED_BYTES + 1)
        return said

    def end(self, at_s: float) -> None:
        """The body's end, or where it broke off: says what is said once."""
        rest = self._prompt_ids.flush()
        if self._decoder is not None and not self._given_up:
            for event in [*self._decoder.feed(rest), *self._decoder.flush()]:
                said = read_event(event.data, event.name)
                if said.malformed is None:  # What a broken stream ends in isn't the server's mistake.
                    self._hear(said, at_s)
        elif self._body and not self._given_up:
            self._read_whole(bytes(self._body + rest), at_s)
        self._tell_output(at_s)
        usage, times = self._usage, self._times
        if usage is not None:
            self._emit(
                RequestUsage(
                    self._request, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, at_s,
                    created_cache_tokens=usage.created_cache_tokens,
                )
            )  # fmt: skip
        if times is not None:
            self._emit(
                RequestEngineTimes(
                    self._request, at_s, times.ttft_ms, times.queue_ms, times.generation_ms, times.mean_itl_ms
                )
            )

    def take_long_body(self) -> bytearray | None:
        """At the end, before `end`: a whole body that is too long to be read here. `hear_long_body` takes what it
        says."""
        if self._body is None or self._given_up or len(self._body) <= OFF_LOOP_BYTES:
            return None
        body, self._body = self._body, None
        body += self._prompt_ids.flush()
        return body

    def hear_long_body(self, said: Said | None, at_s: float) -> None:
        """What the body says; None where it couldn't be read."""
        if said is None:
            self._give_up("nobody had the time to read it", at_s)
        else:
            self._had_body = True
            self._hear_whole(said, at_s)

    def outcome(self) -> Outcome:
        """What became of a response whose bytes all arrived. A stream that can't be read counts as ok."""
        if self._status >= 400:
            return "http_error"
        if self.error is not None:
            return "stream_error"
        if self._given_up:
            return "ok"
        if self._decoder is None:
            return "ok" if self._body or self._had_body else "empty"
        if self.finish_reason is not None or (self.complete and self.content_chunks):
            return "ok"
        return "empty" if self.complete or not self._events else "truncated"

    def _feed_stream(self, decoder: SseDecoder, data: bytes, start: int, at_s: float) -> None:
        """What isn't a plain token goes through the decoder, event by event as long as the next may be one again."""
        while start < len(data):
            end = data.find(b"\n\n", start) + 2 if self._plain.useful else 0
            piece = data[start : end if end > 1 else len(data)]
            start += len(piece)
            for event in decoder.feed(piece):
                said = read_event(event.data, event.name)
                self._hear(said, at_s)
                if said is ANSWER and not event.name:
                    self._plain.learn(event.data)
            if decoder.between_events:
                tokens, start = self._plain.skip(data, start)
                self._events += tokens
                self.content_chunks += tokens

    def _hear(self, said: Said, at_s: float) -> None:
        self._events += 1
        if said.answer or said.reasoning:
            self.content_chunks += 1
            self._hear_text(said, at_s)
        self._note(said, at_s)
        if said.token_ids is not None and self._tells_output:
            self._output += said.token_ids
            if at_s >= self._next_output_s:
                self._next_output_s = at_s + OUTPUT_TOKENS_EVERY_S
                self._tell_output(at_s)

    def _hear_text(self, said: Said, at_s: float) -> None:
        spoke = said.choices or (0,)
        if said.reasoning and not self.saw_first_token:
            self.saw_first_token = True
            self._choices.add(spoke[0])
            self._emit(RequestFirstToken(self._request, at_s, answer=False, choice=spoke[0]))
        if said.answer and not self._saw_answer:
            self.saw_first_token = self._saw_answer = True
            self._choices.add(spoke[0])
            self._emit(RequestFirstToken(self._request, at_s, choice=spoke[0]))
        if not self._tells_output:
            for choice in spoke:
                if choice not in self._choices and 0 <= choice < MAX_CHOICES:
                    self._choices.add(choice)
                    self._emit(RequestFirstToken(self._request, at_s, answer=said.answer, choice=choice))

    def _note(self, said: Said, at_s: float) -> None:
        if said.malformed is not None:
            self._mark(said.malformed, at_s)
        if said.done:
            self.complete = True
        if said.finish_reason is not None:
            self.finish_reason = said.finish_reason
        if said.error is not None and self.error is None:
            self.error = said.error
        if said.usage is not None:
            self._usage = said.usage if self._usage is None else self._usage.updated(said.usage)
        if said.times is not None:
            self._times = said.times
        if said.prompt_token_ids and not self.knows_prompt:
            self._tell_prompt(said.prompt_token_ids, at_s)

    def _tell_prompt(self, token_ids: tuple[int, ...], at_s: float) -> None:
        self.knows_prompt = True
        packed = pack_ids(token_ids) if len(token_ids) > MAX_LISTED_IDS else None
        token_ids = token_ids if packed is None else ()
        self._emit(RequestPromptTokens(self._request, token_ids, "response", at_s, packed))

    def _tell_long_prompt(self, at_s: float) -> None:
        packed = self._prompt_ids.packed
        if packed is None or self.knows_prompt:
            return
        if len(packed) <= MAX_LISTED_IDS * ID_BYTES:
            self._tell_prompt(unpack_ids(packed), at_s)
        else:
            self.knows_prompt = True
            self._emit(RequestPromptTokens(self._request, (), "response", at_s, packed))

    def _read_whole(self, body: bytes, at_s: float) -> None:
        if self._status >= 400:
            self.error = read_error(body)
            return
        self._hear_whole(read_body(body), at_s)

    def _hear_whole(self, said: Said, at_s: float) -> None:
        self.complete = said.malformed is None
        self.content_chunks = int(said.answer or said.reasoning)
        self._note(said, at_s)
        if said.token_ids is not None and self._tells_output:
            self._output += said.token_ids

    def _tell_output(self, at_s: float) -> None:
        if self._output:
            self._emit(RequestOutputTokens(self._request, tuple(self._output), at_s, self._told_output))
            self._told_output += len(self._output)
            self._output.clear()

    def _give_up(self, why: str, at_s: float) -> None:
        self._given_up = True
        self._body = None
        self._mark(f"the response is passed on unread from here: {why}", at_s)

    def _mark(self, detail: str, at_s: float) -> None:
        self._marks += 1
        if self._marks <= MAX_MARKS:
            self._emit(Malformed(self._server, "sse", detail, at_s, request=self._request))
