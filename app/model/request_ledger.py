"""The ledger's side of proxied requests: records, block tables, forecasts, verdicts.

Imports only `ids`, `observations`, `events` and its own package.
"""

from collections import deque

from ..events import (
    BlocksReused,
    RequestFailed,
    RequestFinished,
    RequestFirstTokenEvent,
    RequestJoined,
    RequestStartedEvent,
)
from ..ids import RequestId
from ..observations import (
    RequestEnded,
    RequestEngineTimes,
    RequestFirstToken,
    RequestHead,
    RequestOutputTokens,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from .block_keys import TOKEN_BYTES, hash_texts, pack_tokens
from .causes import find_cause
from .copy_settling import settle_copies
from .forecasts import forecast
from .ledger_state import LedgerState
from .outcomes import count, count_forecast, owe
from .owners import LATE_S
from .rank_book import RankBook
from .request_records import block_table
from .requests import IllegalStep, Request, Step
from .routing import find_routing, positions
from .servers import ServerBook
from .verdict import word

JOINED_INTERVAL_S = 0.25
"""Least time between two block tables of a running request, once the first was sent."""


class RequestLedger:
    """Takes the observations of the proxy."""

    def __init__(self, state: LedgerState) -> None:
        self.illegal_steps = 0
        """Steps that a request's state doesn't allow, left out; and observations of requests that aren't kept."""
        self._state = state
        self._late: deque[tuple[float, Request]] = deque()
        self._held: dict[RequestId, Request] = {}
        """Running requests whose block table changed since it was last sent."""

    def started(self, sent: RequestStarted) -> None:
        """The last byte of a request's body was sent."""
        state = self._state
        try:
            request, forgotten = state.requests.start(sent)
        except IllegalStep:
            self.illegal_steps += 1
            return
        self._forget(forgotten)
        server = state.server_of(request)
        state.joiner.sent(request, server)
        request.elsewhere = positions(state.servers.values(), server)
        state.emit(RequestStartedEvent(state.record(request)), sent.at_s, sent.server)

    def head(self, head: RequestHead) -> None:
        """Status and headers arrived."""
        request = self._step(head.request, "head")
        if request is not None:
            request.head_s, request.status = head.at_s, head.status

    def first_token(self, first: RequestFirstToken) -> None:
        """The first token, of reasoning or of the answer; the answer's own first one comes as a second."""
        request = self._step(first.request, "first_token")
        if request is None:
            return
        request.choice_first_s.setdefault(first.choice, first.at_s)
        if first.answer and request.answer_s is None:
            request.answer_s = first.at_s
        if request.first_s is not None:
            return
        request.first_s = first.at_s
        self._state.requests.answered(request)
        self._forecast(request)
        state = self._state
        sent = request.sent
        state.emit(RequestFirstTokenEvent(state.record(request)), first.at_s, sent.server, request.rank)
        self._show_table(request, first.at_s, hurry=True)

    def prompt_tokens(self, observed: RequestPromptTokens) -> None:
        """The prompt's token ids. Those of the response itself outweigh the tokenizer's."""
        request = self._step(observed.request, "detail")
        if request is None or (request.prompt is not None and observed.source != "response"):
            return
        server = self._state.server_of(request)
        packed = pack_tokens(observed.token_ids) if observed.packed is None else observed.packed
        if request.prompt is not None and request.prompt.packed != packed:
            self._state.joiner.drop_prompt(request, server)
        length = len(observed.token_ids) if observed.packed is None else len(observed.packed) // TOKEN_BYTES
        if not self._state.joiner.learn_prompt(request, server, packed, length):
            return
        self._check_tokens(request)
        if request.running:
            self._forecast(request)
            self._show_table(request, observed.at_s, hurry=True)
            return
        self._conclude_late(request, server, observed.at_s)
        self._show_table(request, observed.at_s, hurry=True)
        self._state.joiner.stop_waiting(request, server)

    def output_tokens(self, observed: RequestOutputTokens) -> None:
        """Token ids of the answer so far: the blocks that they fill are walked, too."""
        request = self._step(observed.request, "detail")
        if request is None:
            return
        size, prompt = request.block_size, request.tokens_length
        before = len(request.output) // TOKEN_BYTES if request.output else 0
        request.add_output(observed.start, pack_tokens(observed.token_ids))
        after = len(request.output) // TOKEN_BYTES if request.output else 0
        if not size or prompt is None or request.sent.sequences != 1:
            return
        # Only a block that becomes full can be found.
        if (prompt + max(after - 1, 0)) // size == (prompt + max(before - 1, 0)) // size:
            return
        if self._state.joiner.follow(request, self._state.server_of(request)):
            self._show_table(request, observed.at_s)

    def usage(self, usage: RequestUsage) -> None:
        """The response's usage. A later one wins, but for what it leaves out."""
        request = self._step(usage.request, "detail")
        if request is None:
            return
        request.has_usage = True
        if usage.prompt_tokens is not None:
            request.usage_prompt = usage.prompt_tokens
        if usage.completion_tokens is not None:
            request.usage_completion = usage.completion_tokens
        if usage.cached_tokens is not None:
            request.usage_cached = usage.cached_tokens
        if usage.prompt_tokens is not None:
            server = self._state.server_of(request)
            if server.learn_usage_details(usage.cached_tokens is not None):
                self._state.show_server(server, usage.at_s, counters=False)
        self._check_tokens(request)
        self._show_table(request, usage.at_s)

    def engine_times(self, times: RequestEngineTimes) -> None:
        """The server's own clock for this request."""
        request = self._step(times.request, "detail")
        if request is not None:
            request.times = times

    def ended(self, ended: RequestEnded) -> None:
        """Nothing more comes of this request."""
        request = self._step(ended.request, "end")
        if request is None:
            return
        state, at_s = self._state, ended.at_s
        server = state.server_of(request)
        request.ended = ended
        if ended.status is not None:
            request.status = ended.status
        state.requests.end(request)
        self._held.pop(request.id, None)
        state.joiner.follow(request, server)
        self._forecast(request)
        state.joiner.ended(request, server)
        book = self._book(request, server)
        explained = book is not None and settle_copies(state, book, request, at_s)
        self._conclude(request, server, at_s)
        table = block_table(request)
        request.shown, request.shown_s = table, at_s
        record = state.record(request)
        finished = RequestFinished(record, table) if ended.outcome == "ok" else RequestFailed(record, table)
        self._announce_reuse(request, server, at_s)
        state.emit(finished, at_s, request.sent.server, request.rank)
        count(state, request, server, at_s, explained=explained)
        if not request.sent.skips_cache_read:
            server.ttft.take(request, alone=request.alone)
        self._late.append((at_s, request))
        owe(request, server, at_s)

    def blocks_changed(self, request: Request, at_s: float) -> None:
        """Events named blocks of this request."""
        if request.running:
            self._show_table(request, at_s)
            return
        # Its last blocks may be announced after its end, and with them which of several ranks served it.
        concluded = request.predicted is None and request.rank_sure
        if concluded:
            self._conclude_late(request, self._state.server_of(request), at_s)
        table = block_table(request)
        if table is not None and (concluded or table != request.shown):
            request.shown = table
            self._joined(request, at_s)

    def tick(self, at_s: float) -> None:
        """Once a second: block tables that were held back, and requests whose events have had their time."""
        held, self._held = self._held, {}
        for request in held.values():
            if request.running:
                self._show_table(request, at_s)
        while self._late and self._late[0][0] <= at_s - LATE_S:
            _, request = self._late.popleft()
            self._state.joiner.stop_waiting(request, self._state.server_of(request))
            request.elsewhere = {}
        self._forget(self._state.requests.shrink())

    # --- inside ---

    def _forget(self, requests: list[Request]) -> None:
        for request in requests:
            self._state.joiner.forget(request, self._state.server_of(request))

    def _step(self, request_id: RequestId, step: Step) -> Request | None:
        request = self._state.requests.get(request_id)
        try:
            if request is None:
                raise IllegalStep(f"request {request_id} isn't kept")
            request.take(step)
        except IllegalStep:
            self.illegal_steps += 1
            return None
        return request

    def _forecast(self, request: Request) -> None:
        found = forecast(request, self._state.server_of(request))
        request.predicted = found.cached_tokens if found else None
        request.predicted_sure = found is not None and found.sure
        request.matched_blocks = found.matched_blocks if found else 0

    def _check_tokens(self, request: Request) -> None:
        """Token ids of another length than the server's own count aren't its tokens: nothing is drawn from them."""
        length, said = request.tokens_length, request.usage_prompt
        if length is not None and said is not None and length != said and request.sent.sequences == 1:
            request.mismatched_length = length
            self._state.joiner.drop_prompt(request, self._state.server_of(request))

    def _show_table(self, request: Request, at_s: float, *, hurry: bool = False) -> None:
        if not hurry and request.shown is not None and at_s - request.shown_s < JOINED_INTERVAL_S:
            self._held[request.id] = request
            return
        table = block_table(request)
        if table is None or table == request.shown:
            return
        request.shown, request.shown_s = table, at_s
        self._joined(request, at_s)

    def _joined(self, request: Request, at_s: float) -> None:
        if request.shown is not None:
            joined = RequestJoined(self._state.record(request), request.shown)
            self._state.emit(joined, at_s, request.sent.server, request.rank, request.shown.basis)

    def _conclude(self, request: Request, server: ServerBook, at_s: float) -> None:
        cause = find_cause(request, server, self._state.requests, self._state.servers.values())
        request.verdict = word(cause.code, cause.params, cause.others)
        request.routing = find_routing(request, server, self._state.servers.values()) or request.routing

    def _conclude_late(self, request: Request, server: ServerBook, at_s: float) -> None:
        """What its forecast needs came after its end: its prompt, or which rank served it. It is still as of the send,
        and counts as if it had been there at the end."""
        was_known = request.predicted is not None
        self._forecast(request)
        if not was_known:
            count_forecast(self._state, request, server, at_s)
        self._conclude(request, server, at_s)

    def _book(self, request: Request, server: ServerBook) -> RankBook | None:
        return server.ranks.get(request.rank) if request.rank is not None else None

    def _announce_reuse(self, request: Request, server: ServerBook, at_s: float) -> None:
        book, size, cached = self._book(request, server), request.block_size, request.cached()
        if book is None or not size or cached is None or not request.consistent:
            return
        hit = min(cached[0] // size, len(request.hashes))
        fresh = request.hashes[request.announced_blocks : hit]
        if not fresh:
            return
        request.announced_blocks = hit
        book.reused(fresh)
        self._state.emit(
            BlocksReused(request.id, hash_texts(fresh)), at_s, request.sent.server, request.rank, cached[1]
        )
