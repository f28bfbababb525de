"""Carries out an experiment's plan against a server: sends, measures, proves what is cold, notices strangers.

However a run ends, what was measured until then is kept: `Run.state` says how it ended.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from ..errors import PrefixScopeError
from .accounting import Accounting
from .definition import FRESH, Batch, Experiment, Request
from .errors import LabError, ServerLost
from .inquiry import options
from .sample import Sample
from .server import CHAT_PATH, COMPLETIONS_PATH, Answer, Counters, LabServer, fresh_salt
from .setting import Setting

State = Literal["running", "complete", "cancelled", "failed", "disconnected"]
COLD_TRIES = 3


@dataclass(slots=True)
class Run:
    """A run so far. `notes`: what a reader must know, each once."""

    experiment: Experiment
    setting: Setting
    state: State = "running"
    detail: str | None = None
    samples: list[Sample] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    own_query_tokens: float = 0.0
    counted_query_tokens: float | None = None
    counted_hit_tokens: float | None = None

    def note(self, text: str) -> None:
        """Adds it once."""
        if text not in self.notes:
            self.notes.append(text)


OnSample = Callable[[Run, Sample], None]


class Runner:
    """One run. `off_server`: a second server for the side "off"; None: that side is made by fresh salts."""

    def __init__(self, run: Run, server: LabServer, off_server: LabServer | None, on_sample: OnSample) -> None:
        self._run = run
        self._server = server
        self._off_server = off_server
        self._on_sample = on_sample
        self._accounting = Accounting(run.setting.block_size)
        self._salts: dict[str, str] = {}
        self._began_s = time.perf_counter()
        self._batches = 0
        self._counters = Counters()

    async def carry_out(self) -> Run:
        """To the end, or as far as it goes. Raises nothing but what cancels the task twice."""
        with _ends(self._run):
            self._counters = first = await self._server.counters()
            self._look_for_others(first)
            plan = self._run.experiment.plan(self._run.setting)
            samples: tuple[Sample, ...] | None = None
            while True:
                try:
                    batch = plan.send(samples) if samples is not None else next(plan)
                except StopIteration:
                    break
                samples = await self._batch(batch)
            self._run.counted_query_tokens = _moved(first.query_tokens, self._counters.query_tokens)
            self._run.counted_hit_tokens = _moved(first.hit_tokens, self._counters.hit_tokens)
        return self._run

    async def _batch(self, batch: Batch) -> tuple[Sample, ...]:
        samples = await self._sent(batch)
        for attempt in range(COLD_TRIES):
            warm = [s for s, r in zip(samples, batch.requests, strict=True) if r.role == "cold" and s.cached_tokens]
            if not warm:
                break
            self._run.note(
                f"{len(warm)} request(s) that should have been cold found {warm[0].cached_tokens} cached tokens: "
                "kept, marked, left out of the figures, and sent again in another part of the cache."
            )
            if attempt == COLD_TRIES - 1:
                raise LabError("No cold start can be had here: each one found cached tokens.")
            for request in batch.requests:
                self._salts.pop(request.space, None)
            samples = await self._sent(batch)
        return samples

    async def _sent(self, batch: Batch) -> tuple[Sample, ...]:
        gate = asyncio.Semaphore(batch.at_once or len(batch.requests) or 1)
        alone = len(batch.requests) == 1
        before = self._counters
        tasks: list[asyncio.Task[Sample]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for request in batch.requests:
                    tasks.append(group.create_task(self._one(request, gate, alone=alone)))
        except BaseException:
            done = [task.result() for task in tasks if not task.cancelled() and task.exception() is None]
            self._keep([replace(sample, index=len(self._run.samples) + n) for n, sample in enumerate(done)])
            raise
        self._counters = after = await self._server.counters()
        samples = self._counted(tuple(task.result() for task in tasks), batch, before, after)
        self._batches += 1
        self._keep(samples)
        return samples

    def _keep(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            self._run.samples.append(sample)
            self._on_sample(self._run, sample)

    async def _one(self, request: Request, gate: asyncio.Semaphore, *, alone: bool) -> Sample:
        elsewhere = request.side == "off" and self._off_server is not None
        server = self._off_server if elsewhere and self._off_server is not None else self._server
        facts = self._run.setting.off_server if elsewhere else self._run.setting.server
        assert facts is not None
        salt = self._salt(request, elsewhere=elsewhere)
        path = CHAT_PATH if request.prompt.messages else COMPLETIONS_PATH
        body = {"model": facts.model, **_prompt_fields(request), **options(request.max_tokens, salt)}
        async with gate:
            answer = await server.send(path, body)
        return self._sample(request, answer, elsewhere=elsewhere, alone=alone)

    def _salt(self, request: Request, *, elsewhere: bool) -> str | None:
        if elsewhere:
            return None
        if request.side == "off" or request.space == FRESH:
            return fresh_salt()
        return self._salts.setdefault(request.space, fresh_salt())

    def _sample(self, request: Request, answer: Answer, *, elsewhere: bool, alone: bool) -> Sample:
        ids = answer.prompt_ids or request.prompt.token_ids
        cold = request.side == "off" or request.space == FRESH
        expected = None
        if ids and alone:
            expected = 0 if cold else self._accounting.expect(self._salts[request.space], ids)
        if ids and not cold:
            self._accounting.store(self._salts[request.space], ids, answer.answer_ids)
        times, usage = answer.times, answer.usage
        return Sample(
            index=len(self._run.samples),
            batch=self._batches,
            arm=request.arm,
            role=request.role,
            side=request.side,
            x=request.x,
            repeat=request.repeat,
            label=request.label,
            space=request.space,
            at_s=answer.began_s - self._began_s,
            prompt_tokens=usage.prompt_tokens if usage.prompt_tokens is not None else len(ids) or None,
            cached_tokens=0 if elsewhere and usage.cached_tokens is None else usage.cached_tokens,
            cached_basis="usage" if usage.cached_tokens is not None else None,
            expected_cached=expected,
            completion_tokens=usage.completion_tokens,
            ttft_ms=answer.ttft_ms,
            total_ms=answer.total_ms,
            server_ttft_ms=times.ttft_ms if times else None,
            server_queue_ms=times.queue_ms if times else None,
            prompt_ids=ids,
            answer_ids=answer.answer_ids,
            answer_text=answer.text,
            prompt_text="\n".join(f"{m['role']}: {m['content']}" for m in request.prompt.messages),
        )

    def _counted(
        self, samples: tuple[Sample, ...], batch: Batch, before: Counters, after: Counters
    ) -> tuple[Sample, ...]:
        """The samples with what the counters say of their batch, and their places in the run."""
        queries = _moved(before.query_tokens, after.query_tokens)
        hits = _moved(before.hit_tokens, after.hit_tokens)
        here = [s for s in samples if s.side == "on" or self._off_server is None]
        own = sum(sample.prompt_tokens or 0 for sample in here)
        self._run.own_query_tokens += own
        foreign = None if queries is None else queries - own
        if foreign:
            self._run.note(
                "The server's counters moved by other tokens than this run's own in at least one step: it has other "
                "clients, or counts otherwise. The samples concerned have `foreign_tokens`."
            )
        self._look_for_others(after)
        first = len(self._run.samples)
        counted = len(samples) == 1 and bool(here) and not foreign
        changed: list[Sample] = []
        for place, sample in enumerate(samples):
            sample = replace(sample, index=first + place, foreign_tokens=foreign)
            if counted:
                sample = replace(sample, counter_query_tokens=queries, counter_hit_tokens=hits)
                if sample.cached_tokens is None and hits is not None:
                    sample = replace(sample, cached_tokens=int(hits), cached_basis="counter")
            if batch.requests[place].role == "cold" and sample.cached_tokens:
                sample = replace(sample, rejected="not cold")
            changed.append(sample)
        return tuple(changed)

    def _look_for_others(self, counters: Counters) -> None:
        busy = (counters.running or 0) + (counters.waiting or 0)
        if busy:
            self._run.note(
                f"The server was busy with requests of others ({busy:.0f} running or waiting) while this run had none "
                "open: times may be longer for that."
            )


def _prompt_fields(request: Request) -> dict[str, object]:
    prompt = request.prompt
    if not prompt.messages:
        return {"prompt": prompt.token_ids}
    tools = {"tools": prompt.tools, "tool_choice": "none"} if prompt.tools else {}
    return {"messages": prompt.messages, **tools}


def cancelled(run: Run) -> None:
    """The task was cancelled: it takes note, and goes on to write its report."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    run.state, run.detail = "cancelled", "Stopped before its end; what was measured until then is below."


@contextmanager
def _ends(run: Run) -> Iterator[None]:
    """Whatever ends the block becomes the run's state; a cancelled task goes on, to write its report."""
    try:
        yield
        run.state = "complete"
    except asyncio.CancelledError:
        cancelled(run)
    except BaseExceptionGroup as group:
        _failed(run, _project_errors(group))
    except PrefixScopeError as error:
        _failed(run, [error])


def _project_errors(group: BaseExceptionGroup[BaseException]) -> Sequence[PrefixScopeError]:
    ours, others = group.split(PrefixScopeError)
    if others is not None:
        raise others
    assert ours is not None
    return [error for error in _leaves(ours) if isinstance(error, PrefixScopeError)]


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _failed(run: Run, errors: Sequence[PrefixScopeError]) -> None:
    error = errors[0]
    run.state = "disconnected" if isinstance(error, ServerLost) else "failed"
    run.detail = error.message


def _moved(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
