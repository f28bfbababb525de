"""The step loop: lets the core's steps take their modelled time, and hands out what they gave.

One task owns the core. Steps that follow each other begin where the one before ended, whatever the timers did, so that
modelled time doesn't drift; only a machine that falls behind by more than `MAX_LAG_S` gets its clock set again. At the
end of a step its events are published first, then its tokens are handed out: vLLM's order.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from .core import CoreConfig, CoreRequest, EngineCore, Progress, StepResult
from .kv_wire import EventEncoder
from .metrics import EngineMetrics
from .metrics_page import MetricsPage
from .outputs import EndReason, Output, OutputStream, RequestRecord, Submission, submit

MAX_LAG_S = 0.05

Publish = Callable[[bytes], None]


class EngineLoop:
    """Drives one core, that of one rank. `run` is its task; all else is called on the same event loop.

    `publish` None: nobody hears of events.
    """

    def __init__(
        self,
        config: CoreConfig,
        publish: Publish | None,
        model_name: str,
        *,
        rank: int = 0,
        page: MetricsPage | None = None,
        encoder: EventEncoder | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.core = EngineCore(config, self._next_token)
        self.metrics = EngineMetrics(config, self.core.max_model_len, model_name, page, rank)
        self._publish = publish
        self._encoder = encoder or EventEncoder(rank)
        self._monotonic = monotonic
        self._wall = wall
        self._sleep = sleep
        self._live: dict[str, RequestRecord] = {}
        self._woken = asyncio.Event()

    @property
    def unfinished(self) -> int:
        """Requests that wait or run."""
        return len(self._live)

    def now_s(self) -> float:
        """The clock of all times here."""
        return self._monotonic()

    def submit(self, submissions: Sequence[Submission], arrived_s: float | None = None) -> OutputStream:
        """Queues requests, all or none. Raises ValueError for one that the core can't take.

        `arrived_s` is when the client's request was here, if that was earlier than now.
        """
        return submit(submissions, lambda _submission: self, self._monotonic() if arrived_s is None else arrived_s)

    def add(self, record: RequestRecord) -> None:
        """Queues one request. Raises ValueError for one that the core can't take."""
        submission = record.submission
        prepared = submission.prepared or self.core.prepare(submission.request)
        self.core.add_prepared(prepared, record.arrived_s)
        self._live[submission.request.request_id] = record
        self._woken.set()

    def end(self, record: RequestRecord, reason: EndReason) -> None:
        """Ends a request from outside: its client left, or its text came to a stop string."""
        request_id = record.submission.request.request_id
        if self._live.pop(request_id, None) is None:
            return
        now_s = self._monotonic()
        self.core.abort_request(request_id, now_s)
        self.metrics.observe_finished(record.figures(reason, now_s))
        self.metrics.observe_core(self.core.gauges())
        # After an abort an empty step may follow, which tells of a reset.
        self._woken.set()

    def abort_all(self) -> None:
        """Ends every request; their streams give None."""
        for stream in {record.stream for record in self._live.values()}:
            stream.abort()

    def reset_prefix_cache(self) -> bool:
        """Empties the cache unless blocks are in use; the event comes with the next step."""
        return self.core.reset_prefix_cache()

    async def run(self) -> None:
        """Steps for as long as there is work, then waits for more. Ends only when cancelled."""
        ready_s, rested = float("-inf"), True
        while True:
            if not self.core.has_work():
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
        if result.events and self._publish is not None:
            self._publish(self._encoder.batch(result.events, self._wall()))
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
