"""The requests that went through the proxy: the table of steps that one may take, and what is known of each.

The hard figures are kept as they came; records are made from them when somebody asks. Imports only `ids`,
`observations`, `events`, `errors` and its own package.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ..errors import PrefixScopeError
from ..events import Basis, BlockTable, CellState, RequestRecord, Verdict
from ..ids import BlockHash, Rank, RequestId
from ..observations import ExtraKeys, RequestEnded, RequestEngineTimes, RequestStarted
from .block_cache import hash_texts
from .prefix_match import PromptKeys, cacheable_tokens

State = Literal["started", "head", "first_token", "ended"]
Step = Literal["head", "first_token", "detail", "end"]

ExpectKey = tuple[BlockHash | None, bytes, ExtraKeys | None]
"""(parent hash, packed tokens, extra keys) of a block that isn't known yet."""

STEPS: dict[tuple[State, Step], State] = {
    ("started", "head"): "head",
    ("started", "detail"): "started",
    ("started", "end"): "ended",
    ("head", "first_token"): "first_token",
    ("head", "detail"): "head",
    ("head", "end"): "ended",
    ("first_token", "first_token"): "first_token",
    ("first_token", "detail"): "first_token",
    ("first_token", "end"): "ended",
    ("ended", "detail"): "ended",
}
"""Every legal step. `detail` is prompt tokens, usage and the like; the server's tokenizer may answer after the end."""


SERVERS_WORDS = ("http_error", "stream_error")
"""Outcomes whose error text is the server's; of all others it is the dashboard's own."""


class IllegalStep(PrefixScopeError):
    """A request took a step that its state doesn't allow: a source has a fault."""

    code = "illegal_step"


@dataclass(slots=True, eq=False)
class Request:
    """One request. `serial` counts requests from 0; `sent` is what was known when it was sent."""

    serial: int
    sent: RequestStarted
    state: State = "started"
    as_of: dict[Rank, int] = field(default_factory=dict)
    """Per rank: the number of the last event that the server had made when this request reached it."""
    rank: Rank | None = None
    rank_sure: bool = False
    """The rank was read from its own blocks, not only taken because there was no other."""
    prompt: PromptKeys | None = None
    output: bytes | None = None
    block_size: int | None = None
    head_s: float | None = None
    first_s: float | None = None
    answer_s: float | None = None
    ended: RequestEnded | None = None
    status: int | None = None
    times: RequestEngineTimes | None = None
    has_usage: bool = False
    usage_prompt: int | None = None
    usage_completion: int | None = None
    usage_cached: int | None = None
    tokens_length: int | None = None
    """Length of the prompt by its token ids."""
    mismatched_length: int | None = None
    """Length of token ids that turned out not to be the server's."""
    reported_blocks: int | None = None
    """Blocks that the server's reuse report named for this request."""
    first_own_depth: int | None = None
    """Depth of the first block that this request itself stored: all before it were there."""
    predicted: int | None = None
    predicted_sure: bool = False
    """Nothing is missing from the history that the forecast was made from."""
    hashes: list[BlockHash] = field(default_factory=list)
    """Hashes of its full blocks from the first on, as far as they are known; generated tokens' blocks follow."""
    expecting: dict[Rank, ExpectKey] = field(default_factory=dict)
    """The block that it would store next, as each rank's book has it."""
    announced_blocks: int = 0
    """Blocks that `blocks.reused` named for it already."""
    doubtful: tuple[tuple[BlockHash, ...], bool] | None = None
    """Resident blocks that it stored again from the root, and whether they were counted as copies."""
    table: BlockTable | None = None
    """The block table as it was last asked for."""
    table_key: object = None
    """What `table` was made from."""
    shown: BlockTable | None = None
    shown_s: float = 0.0
    verdict: Verdict | None = None
    reference_ttft_ms: float | None = None
    reference_id: RequestId | None = None

    @property
    def id(self) -> RequestId:
        """The request's id."""
        return self.sent.request

    @property
    def running(self) -> bool:
        """Whether it hasn't ended."""
        return self.state != "ended"

    @property
    def served(self) -> bool:
        """Whether its prompt was computed, as far as can be told."""
        return self.first_s is not None or (self.ended is not None and self.ended.outcome == "ok")

    @property
    def prompt_tokens(self) -> int | None:
        """The server's count, else the number of token ids."""
        return self.usage_prompt if self.usage_prompt is not None else self.tokens_length

    @property
    def consistent(self) -> bool:
        """Whether the reported cached tokens can be true: 0 <= cached <= prompt."""
        if self.usage_cached is None:
            return True
        prompt = self.prompt_tokens
        return self.usage_cached >= 0 and (prompt is None or self.usage_cached <= prompt)

    @property
    def ttft_ms(self) -> float | None:
        """By the dashboard's clock; None for calls that aren't streamed."""
        if self.first_s is None or not self.sent.streamed:
            return None
        return (self.first_s - self.sent.at_s) * 1000

    @property
    def error(self) -> str | None:
        """What went wrong. A server's own words may repeat the prompt: they are told only where its text may be."""
        ended = self.ended
        if ended is None or not self.hides_error:
            return None if ended is None else ended.error
        if ended.outcome == "http_error":
            status = "HTTP" if self.status is None else f"HTTP {self.status}"
            return f"{status}: the server refused the request"
        return "The server reported an error within the stream"

    @property
    def hides_error(self) -> bool:
        """Whether the server's own words on what went wrong are kept back."""
        ended = self.ended
        said = ended is not None and ended.error is not None and ended.outcome in SERVERS_WORDS
        return said and not self.sent.show_text

    def take(self, step: Step) -> None:
        """Moves on by the table of steps. Raises IllegalStep."""
        following = STEPS.get((self.state, step))
        if following is None:
            expected = ", ".join(allowed for state, allowed in STEPS if state == self.state)
            raise IllegalStep(f"request {self.id}: expected {expected} after {self.state}, got {step}")
        self.state = following

    def cached(self) -> tuple[int, Basis] | None:
        """Prompt tokens taken from the cache and who says so: usage, else the engine's report, else what follows
        from events. None where nothing tells."""
        if self.usage_cached is not None:
            return self.usage_cached, "usage"
        size = self.block_size
        if size is not None and self.reported_blocks is not None:
            return self.reported_blocks * size, "engine"
        if size is not None and self.first_own_depth is not None and self._own_store_in_prompt(size):
            return self.first_own_depth * size, "inferred"
        if self.predicted is not None and self.predicted_sure and self.served and self.sent.sequences == 1:
            return self.predicted, "inferred"
        return None

    def _own_store_in_prompt(self, size: int) -> bool:
        prompt = self.prompt_tokens
        return prompt is not None and self.first_own_depth is not None and self.first_own_depth < prompt // size

    def blocks(self) -> tuple[int, int] | None:
        """(blocks of the prompt with its partial tail, blocks that can be reused at most)."""
        prompt, size = self.prompt_tokens, self.block_size
        if prompt is None or not size:
            return None
        return -(-prompt // size), cacheable_tokens(prompt, size) // size

    def record(self, wall_offset_ms: float, embedded: bool) -> RequestRecord:
        """The record as it stands now. `embedded`: the server's own times are modelled, not measured."""
        sent = self.sent
        basis: dict[str, Basis] = {}
        own_clock: Basis = "modelled" if embedded else "engine"
        cached = self.cached()
        if cached:
            basis["cached_tokens"] = cached[1]
        blocks = self.blocks()
        if self.prompt_tokens is not None:
            basis["prompt_tokens"] = "usage" if self.usage_prompt is not None else "engine"
        if self.predicted is not None:
            basis["predicted_cached_tokens"] = "inferred"
        if self.usage_completion is not None:
            basis["completion_tokens"] = "usage"
        times = self.times
        engine_ttft_ms = times.ttft_ms if times else None
        queue_ms = times.queue_ms if times else None
        e2e_ms = None if self.ended is None else (self.ended.at_s - sent.at_s) * 1000
        answer_ms = None if self.answer_s is None or not sent.streamed else (self.answer_s - sent.at_s) * 1000
        if answer_ms is not None and self.answer_s == self.first_s:
            answer_ms = None
        timed: tuple[tuple[str, float | None, Basis], ...] = (
            ("ttft_ms", self.ttft_ms, "clock"),
            ("answer_ttft_ms", answer_ms, "clock"),
            ("engine_ttft_ms", engine_ttft_ms, own_clock),
            ("queue_ms", queue_ms, own_clock),
            ("e2e_ms", e2e_ms, "clock"),
        )
        basis.update((name, source) for name, value, source in timed if value is not None)
        size = self.block_size
        return RequestRecord(
            id=self.id,
            server=sent.server,
            rank=self.rank,
            model=sent.model,
            at_ms=wall_offset_ms + sent.at_s * 1000,
            origin=sent.origin,
            endpoint=sent.endpoint,
            streamed=sent.streamed,
            label=sent.label,
            outcome=self.ended.outcome if self.ended else None,
            status=self.status,
            error=self.error,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=cached[0] if cached else None,
            predicted_cached_tokens=self.predicted,
            completion_tokens=self.usage_completion,
            block_size=size,
            prompt_blocks=blocks[0] if blocks else None,
            reusable_blocks=blocks[1] if blocks else None,
            reused_blocks=cached[0] // size if cached and size and self.consistent else None,
            ttft_ms=self.ttft_ms,
            answer_ttft_ms=answer_ms,
            engine_ttft_ms=engine_ttft_ms,
            queue_ms=queue_ms,
            e2e_ms=e2e_ms,
            salted=sent.salt is not None,
            cold=sent.salted_by_page,
            reference_id=self.reference_id,
            reference_ttft_ms=self.reference_ttft_ms,
            verdict=self.verdict,
            basis=basis,
        )


def block_table(request: Request) -> BlockTable | None:
    """The request's block table as it stands now; None while the prompt's length or the block size isn't known, and
    for calls of several sequences, whose blocks can't be told apart, and after the end where nothing told what was
    reused."""
    size, prompt = request.block_size, request.prompt_tokens
    if not size or prompt is None or request.sent.sequences != 1:
        return None
    hashes, cached = request.hashes, request.cached() if request.consistent else None
    # The last hash stands for all before it.
    key = (
        size, prompt, cached, request.running, request.first_s is None, request.first_own_depth is None, len(hashes),
        hashes[-1] if hashes else None, request.usage_completion,
    )  # fmt: skip
    if request.table_key != key:
        request.table_key, request.table = key, _block_table(request, size, prompt, cached)
    return request.table


def _block_table(request: Request, size: int, prompt: int, cached: tuple[int, Basis] | None) -> BlockTable | None:
    full, tail = divmod(prompt, size)
    if not request.running and cached is None:
        return None
    reused = min(cached[0] // size, full) if cached else 0
    prefilled = request.first_s is not None or not request.running
    later: CellState = "computed" if prefilled and cached else "pending"
    own = len(request.hashes) if request.first_own_depth is not None else 0
    states: list[CellState] = ["reused"] * reused
    states.extend("computed" if index < own else later for index in range(reused, full))
    texts: list[str | None] = list(hash_texts(request.hashes))
    generated = _generated_blocks(request, prompt, size, full)
    texts = texts[: full + generated]
    texts.extend([None] * (full + generated - len(texts)))
    tokens = [size] * (full + generated)
    states.extend(["decode"] * generated)
    if tail and not generated:
        texts.append(None)
        tokens.append(tail)
        states.append("partial")
    return BlockTable(size, tuple(texts), tuple(tokens), tuple(states), cached[1] if cached else "inferred")


def _generated_blocks(request: Request, prompt: int, size: int, full: int) -> int:
    """Blocks that generated tokens filled. The last token sampled is in no block: nothing was computed from it."""
    completed = request.usage_completion
    known = max(len(request.hashes) - full, 0)
    if completed is None:
        return known
    return max((prompt + max(completed - 1, 0)) // size - full, known, 0)


class RequestBook:
    """The requests kept, in order of arrival. Above `capacity` the oldest finished go; running ones never do."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._kept: dict[RequestId, Request] = {}
        self._by_serial: dict[int, Request] = {}
        self._next_serial = 0
        self._running: dict[RequestId, Request] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def start(self, sent: RequestStarted) -> tuple[Request, list[Request]]:
        """A new request, and those that are forgotten for it. Raises IllegalStep for an id that is kept already."""
        if sent.request in self._kept:
            raise IllegalStep(f"request {sent.request}: started twice")
        request = Request(self._next_serial, sent)
        self._next_serial += 1
        self._kept[request.id] = self._by_serial[request.serial] = self._running[request.id] = request
        return request, self._overflow()

    def get(self, request_id: RequestId) -> Request | None:
        """The request, where it is kept."""
        return self._kept.get(request_id)

    def by_serial(self, serial: int) -> Request | None:
        """The request, where it is kept."""
        return self._by_serial.get(serial)

    def end(self, request: Request) -> None:
        """Takes a request out of the running ones."""
        self._running.pop(request.id, None)

    def running(self) -> list[Request]:
        """Requests that haven't ended, in order of arrival."""
        return list(self._running.values())

    def newest_first(self) -> Iterator[Request]:
        """Every request kept."""
        return reversed(self._kept.values())

    def page(self, limit: int, after: RequestId | None) -> tuple[list[Request], RequestId | None]:
        """At most `limit` requests, newest first, older than `after`; and the id to go on after, None at the end.

        An `after` that is no longer kept gives nothing: all older ones are forgotten, too.
        """
        start = self._kept.get(after) if after is not None else None
        if after is not None and start is None:
            return [], None
        found: list[Request] = []
        for request in self.newest_first():
            if start is not None and request.serial >= start.serial:
                continue
            if len(found) == limit:
                return found, found[-1].id
            found.append(request)
        return found, None

    def _overflow(self) -> list[Request]:
        excess = len(self._kept) - self._capacity
        if excess <= 0:
            return []
        forgotten: list[Request] = []
        for request in self._kept.values():
            if len(forgotten) == excess:
                break
            if not request.running:
                forgotten.append(request)
        for request in forgotten:
            del self._kept[request.id]
            del self._by_serial[request.serial]
        return forgotten
