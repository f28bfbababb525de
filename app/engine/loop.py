"""The step loop: lets the core's steps take their modelled time, and hands out what they gave.

One task owns the core. Steps that follow each other begin where the one before ended, whatever the timers did, so that
modelled time doesn't drift; only a machine that falls behind by more than `MAX_LAG_S` gets its clock set again. At the
end of a step its events are published first, then its tokens are handed out: vLLM's order.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .core import CoreConfig, CoreRequest, EngineCore, Progress, StepResult
from .kv_wire import encode_batch
from .metrics import EngineMetrics, FinishedRequest
from .reply import Reply
from .responses import Timing

MAX_LAG_S = 0.05

EndReason = Literal["stop", "length", "abort"]
Publish = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Submission:
    """One request for the core with the words to sample; `n` is how many answers its client asked for."""

    request: CoreRequest
    reply: Reply
    n: int = 1


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
        "output_tokens",
        "preemptions",
        "scheduled_s",
        "stream",
        "submission",
    )

    def __init__(self, submission: Submission, choice: int, stream: "OutputStream", arrived_s: float) -> None:
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

    def __init__(self, loop: "EngineLoop") -> None:
        self.records: list[RequestRecord] = []
        self._loop = loop
        self._outputs: asyncio.Queue[Output | None] = asyncio.Queue()

    async def get(self) -> Output | None:
        """The next output; None once the requests were aborted. Not to be asked after the last answer's end."""
        return await self._outputs.get()

    def put(self, output: Output | None) -> None:
        """The loop's side of `get`."""
        self._outputs.put_nowait(output)

    def stop(self, choice: int) -> None:
        """Ends one answer early, as a stop string does."""
        self._loop.end(self.records[choice], "stop")

    def abort(self) -> None:
        """Ends what still runs, and whoever waits in `get`. Harmless after the end."""
        for record in self.records:
            self._loop.end(record, "abort")
        self.put(None)


class EngineLoop:
    """Drives one core. `run` is its task; everything else is called on the same event loop."""

    def __init__(
        self,
        config: CoreConfig,
        publish: Publish,
        model_name: str,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.core = EngineCore(config, self._next_token)
        self.metrics = EngineMetrics(config, self.core.max_model_len, model_name)
        self._publish = publish
        self._monotonic = monotonic
        self._wall = wall
        self._sleep = sleep
        self._live: dict[str, RequestRecord] = {}
        self._woken = asyncio.Event()

    def now_s(self) -> float:
        """The clock of all times here."""
        return self._monotonic()

    def submit(self, submissions: Sequence[Submission], arrived_s: float | None = None) -> OutputStream:
        """Queues requests, all or none. Raises ValueError for one that the core can't take.

        `arrived_s` is when the client's request was here, if that was earlier than now.
        """
        stream = OutputStream(self)
        arrived_s = self._monotonic() if arrived_s is None else arrived_s
        for choice, submission in enumerate(submissions):
            record = RequestRecord(submission, choice, stream, arrived_s)
            try:
                self.core.add_request(submission.request, arrived_s)
            except ValueError:
                stream.abort()
                raise
            self._live[submission.request.request_id] = record
            stream.records.append(record)
        self._woken.set()
        return stream

    def end(self, record: RequestRecord, reason: EndReason) -> None:
        """Ends a request from outside: its client left, or its text came to a stop string."""
        request_id = record.submission.request.request_id
        if self._live.pop(request_id, None) is None:
            return
        now_s = self._monotonic()
        self.core.abort_request(request_id, now_s)
        self.metrics.observe_finished(record.figures(reason, now_s))
        self.metrics.observe_core(self.core.gauges())

    def abort_all(self) -> None:
        """Ends every request; their streams give None."""
        for stream in {record.stream for record in self._live.values()}:
            stream.abort()

    def reset_prefix_cache(self) -> bool:
        """Empties the cache unless blocks are in use; the event comes with the next step."""
        return self.core.reset_prefix_cache()

    async def run(self) -> None:
        """Steps for as long as there are requests, then waits for the next. Ends only when cancelled."""
        ready_s, rested = float("-inf"), True
        while True:
            if not self._live:
                self._woken.clear()
                await self._woken.wait()
                rested = True
            if rested:
                # A profile's first step has the time for reading and tokenizing in it: it begins with the arrival.
                ready_s = max(ready_s, min((record.arrived_s for record in self._live.values()), default=ready_s))
                rested = False
            result = self.core.step(max(ready_s, self._monotonic() - MAX_LAG_S))
            if result is None:
                await self._sleep(0.0)
                continue
            ready_s = result.started_s + result.duration_ms / 1000
            await self._sleep(max(0.0, ready_s - self._monotonic()))
            if result.duration_ms <= 0:
                ready_s = self._monotonic()
            self._finish_step(result)

    def _finish_step(self, result: StepResult) -> None:
        ended_s = result.started_s + result.duration_ms / 1000
        self.core.settle()
        if result.events:
            self._publish(encode_batch(result.events, self._wall()))
        self._note_preempted(result.preempted)
        step_tokens = 0
        for progress in result.progress:
            record = self._live.get(progress.request_id)
            if record is not None:
                step_tokens += self._advance(record, progress, result.started_s, ended_s)
        if step_tokens:
            self.metrics.observe_step(step_tokens)
        self.metrics.observe_core(self.core.gauges())

    def _note_preempted(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            if (record := self._live.get(request_id)) is not None:
                record.preemptions += 1

    def _advance(self, record: RequestRecord, progress: Progress, started_s: float, ended_s: float) -> int:
        """Takes in one request's progress; gives the tokens that count for the step."""
        if record.scheduled_s is None:
            record.scheduled_s = started_s
        record.cached_tokens = progress.cached_tokens
        record.created_cache_tokens = progress.created_cache_tokens
        if progress.token_id is None:
            return 0
        counted = 1
        if record.last_token_s is None:
            record.first_token_s = ended_s
            counted += len(record.submission.request.prompt_token_ids) - progress.cached_tokens
            self.metrics.observe_first_token(max(0.0, ended_s - record.arrived_s))
        else:
            self.metrics.observe_next_token(ended_s - record.last_token_s)
        record.last_token_s = ended_s
        record.output_tokens = progress.output_tokens
        if progress.finish_reason is not None:
            del self._live[progress.request_id]
            self.metrics.observe_finished(record.figures(progress.finish_reason, ended_s))
        record.stream.put(Output(record.choice, progress.token_id, progress.finish_reason))
        return counted

    def _next_token(self, request: CoreRequest, position: int) -> int:
        return self._live[request.request_id].submission.reply.token(position)
