"""Requests as the step loop sees them: what is submitted, what is remembered, what comes out."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .core import CoreRequest
from .metrics import FinishedRequest
from .reply import Reply
from .request import RequestState
from .responses import Timing

EndReason = Literal["stop", "length", "abort"]


class Loop(Protocol):
    """What a record needs of the loop that runs it."""

    def add(self, record: "RequestRecord") -> None:
        """Queues it. Raises ValueError for one that the core can't take."""

    def end(self, record: "RequestRecord", reason: EndReason) -> None:
        """Ends it from outside."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One request for the core with the words to sample; `n` is how many answers its client asked for.

    `prepared` is the request's state, where its blocks were hashed before.
    """

    request: CoreRequest
    reply: Reply
    n: int = 1
    prepared: RequestState | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """One token of one answer; `choice` is its place in the submitted sequence."""

    choice: int
    token_id: int
    finish_reason: str | None


class RequestRecord:
    """What the loop remembers of a request. Times are seconds of the monotonic clock, None until they come."""

    __slots__ = (
        "arrived_s",
        "cached_tokens",
        "choice",
        "created_cache_tokens",
        "first_token_s",
        "last_token_s",
        "loop",
        "output_tokens",
        "preemptions",
        "scheduled_s",
        "stream",
        "submission",
    )

    def __init__(
        self, loop: Loop, submission: Submission, choice: int, stream: "OutputStream", arrived_s: float
    ) -> None:
        self.loop = loop
        self.submission = submission
        self.choice = choice
        self.stream = stream
        self.arrived_s = arrived_s
        self.scheduled_s: float | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None
        self.cached_tokens = 0
        self.created_cache_tokens = 0
        self.output_tokens = 0
        self.preemptions = 0

    def timing(self) -> Timing | None:
        """Its times; None before the first token."""
        if self.scheduled_s is None or self.first_token_s is None or self.last_token_s is None:
            return None
        return Timing(self.arrived_s, self.scheduled_s, self.first_token_s, self.last_token_s, self.output_tokens)

    def figures(self, reason: EndReason, now_s: float) -> FinishedRequest:
        """What the metrics page takes in at its end."""
        timing, request = self.timing(), self.submission.request
        return FinishedRequest(
            finish_reason=reason,
            e2e_s=max(0.0, now_s - self.arrived_s),
            queue_s=None if self.scheduled_s is None else max(0.0, self.scheduled_s - self.arrived_s),
            prefill_s=None if timing is None else timing.first_token_s - timing.scheduled_s,
            decode_s=None if timing is None else timing.last_token_s - timing.first_token_s,
            prompt_tokens=len(request.prompt_token_ids),
            cached_tokens=self.cached_tokens,
            output_tokens=self.output_tokens,
            max_tokens=request.max_tokens,
            preemptions=self.preemptions,
            n=self.submission.n,
        )


class OutputStream:
    """The outputs of requests that were submitted together, in the order in which the steps gave them."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self._outputs: asyncio.Queue[Output | None] = asyncio.Queue()

    async def get(self) -> Output | None:
        """The next output; None once the requests were aborted. Not to be asked after the last answer's end."""
        return await self._outputs.get()

    def put(self, output: Output | None) -> None:
        """The loop's side of `get`."""
        self._outputs.put_nowait(output)

    def stop(self, choice: int) -> None:
        """Ends one answer early, as a stop string does."""
        record = self.records[choice]
        record.loop.end(record, "stop")

    def abort(self) -> None:
        """Ends what still runs, and whoever waits in `get`. Harmless after the end."""
        for record in self.records:
            record.loop.end(record, "abort")
        self.put(None)


def submit(submissions: Sequence[Submission], loop_for: Callable[[Submission], Loop], arrived_s: float) -> OutputStream:
    """Queues requests, each with the loop that is chosen for it, all or none. Raises ValueError as `add` does."""
    stream = OutputStream()
    try:
        for choice, submission in enumerate(submissions):
            record = RequestRecord(loop_for(submission), submission, choice, stream, arrived_s)
            record.loop.add(record)
            stream.records.append(record)
    except ValueError:
        stream.abort()
        raise
    return stream
