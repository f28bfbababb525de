"""The step loop in virtual time: modelled durations, no drift, events before tokens, aborts between steps."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from app.engine.core import CoreConfig, CoreRequest
from app.engine.loop import MAX_LAG_S, EngineLoop
from app.engine.outputs import Output, OutputStream, Submission
from app.engine.profiles import RTX3090_QWEN25_7B_BF16
from app.engine.reply import write_reply

from .qwen import tokenizer


class VirtualTime:
    """A clock that moves when the loop sleeps, by `late_s` more than it asked for."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.late_s = late_s

    def monotonic(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.late_s
        await asyncio.sleep(0)


class Driven:
    """A loop, and all that came out of it in order: payloads of events, outputs."""

    def __init__(self, clock: VirtualTime, blocks: int) -> None:
        config = CoreConfig(num_gpu_blocks=blocks, block_size=16, profile=RTX3090_QWEN25_7B_BF16)
        self.seen: list[object] = []
        self.told = asyncio.Event()
        self.clock = clock
        self.loop = EngineLoop(
            config, self._publish, "m", monotonic=clock.monotonic, wall=lambda: 5.0, sleep=clock.sleep
        )

    def _publish(self, payload: bytes) -> None:
        self.seen.append(payload)
        self.told.set()

    def submit(self, name: str, prompt_tokens: int, max_tokens: int, answers: int = 1) -> OutputStream:
        prompt = tuple(range(prompt_tokens))
        return self.loop.submit(
            [
                Submission(
                    CoreRequest(f"{name}-{choice}", prompt, max_tokens), write_reply(tokenizer(), prompt), answers
                )
                for choice in range(answers)
            ]
        )

    async def take(self, stream: OutputStream) -> Output:
        output = await stream.get()
        assert output is not None
        self.seen.append(output)
        return output


@asynccontextmanager
async def driven(late_s: float = 0.0, blocks: int = 128) -> AsyncIterator[Driven]:
    found = Driven(VirtualTime(late_s), blocks)
    running = asyncio.create_task(found.loop.run())
    try:
        yield found
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.mark.parametrize("late_s", [0.0, 0.001, 0.019])
async def test_late_timers_do_not_make_modelled_time_drift(late_s: float) -> None:
    async with driven(late_s) as engine:
        stream = engine.submit("a", prompt_tokens=353, max_tokens=101)
        for _ in range(101):
            await engine.take(stream)
        timing = stream.records[0].timing()
        assert timing is not None
        assert timing.first_token_s - timing.scheduled_s == pytest.approx(0.033 + 353 * 0.00020715)
        assert timing.last_token_s - timing.first_token_s == pytest.approx(100 * 0.0197)
        assert engine.clock.now_s - timing.last_token_s <= late_s + 1e-9


async def test_a_machine_that_falls_far_behind_sets_its_clock_again() -> None:
    async with driven(late_s=0.5) as engine:
        stream = engine.submit("a", prompt_tokens=20, max_tokens=10)
        for _ in range(10):
            await engine.take(stream)
        timing = stream.records[0].timing()
        assert timing is not None
        assert engine.clock.now_s - timing.last_token_s <= 0.5 + MAX_LAG_S


async def test_events_come_before_their_steps_tokens() -> None:
    async with driven() as engine:
        stream = engine.submit("a", prompt_tokens=20, max_tokens=1)
        await engine.take(stream)
        payload, output = engine.seen
        assert isinstance(payload, bytes) and msgspec.msgpack.decode(payload)[0] == 5.0
        assert output == Output(0, output.token_id if isinstance(output, Output) else -1, "length")


async def test_the_clock_rests_between_requests() -> None:
    async with driven() as engine:
        await engine.take(engine.submit("a", prompt_tokens=20, max_tokens=1))
        engine.clock.now_s += 60.0
        stream = engine.submit("b", prompt_tokens=20, max_tokens=1)
        await engine.take(stream)
        timing = stream.records[0].timing()
        assert timing is not None
        assert timing.metrics()["queue_time_ms"] == 0.0
        assert timing.scheduled_s == pytest.approx(timing.queued_s)


async def test_the_first_step_begins_with_the_arrival() -> None:
    async with driven() as engine:
        arrived_s, engine.clock.now_s = engine.clock.now_s, engine.clock.now_s + 0.02
        prompt = tuple(range(20))
        submission = Submission(CoreRequest("a", prompt, 1), write_reply(tokenizer(), prompt))
        stream = engine.loop.submit([submission], arrived_s)
        await engine.take(stream)
        timing = stream.records[0].timing()
        assert timing is not None and timing.scheduled_s == arrived_s
        assert engine.clock.now_s == pytest.approx(arrived_s + 0.033 + 20 * 0.00020715)


async def test_an_abort_ends_a_stream_and_frees_its_blocks() -> None:
    async with driven() as engine:
        stream, other = engine.submit("a", 40, 1000), engine.submit("b", 40, 3)
        await engine.take(stream)
        stream.abort()
        stream.abort()
        for _ in range(3):
            await engine.take(other)
        while await stream.get() is not None:
            pass
        assert engine.loop.core.gauges().kv_cache_usage_ratio == 0.0
        assert count(engine.loop.metrics.page.registry, "abort") == 1
        assert count(engine.loop.metrics.page.registry, "length") == 1


async def test_a_reset_is_told_after_an_abort_without_another_request() -> None:
    async with driven() as engine:
        assert engine.loop.reset_prefix_cache()
        engine.submit("a", 40, 1000).abort()
        await asyncio.wait_for(engine.told.wait(), 5)
        (payload,) = engine.seen
        assert isinstance(payload, bytes)
        assert msgspec.msgpack.decode(payload)[1] == [{"type": "AllBlocksCleared"}]


async def test_an_abort_between_steps_shows_in_the_gauges_at_once() -> None:
    async with driven() as engine:
        first, second = engine.submit("a", 40, 1500), engine.submit("b", 40, 1500)
        for stream in (first, second):
            await engine.take(stream)
        first.abort()
        gauges = engine.loop.core.gauges()
        assert (gauges.running, gauges.waiting) == (1, 0)
        labels = {"model_name": "m", "engine": "0"}
        value = engine.loop.metrics.page.registry.get_sample_value("vllm:num_requests_running", labels)
        assert value == 1.0
        for _ in range(20):
            await engine.take(second)


async def test_a_preempted_request_is_told_of_once_and_loses_no_token() -> None:
    async with driven(blocks=8) as engine:
        streams = [engine.submit("a", 40, 40), engine.submit("b", 40, 40)]
        outputs = [[await engine.take(stream) for _ in range(40)] for stream in streams]
        assert [output[-1].finish_reason for output in outputs] == ["length", "length"]
        records = [stream.records[0] for stream in streams]
        assert [record.preemptions for record in records] == [0, 1]
        assert [record.output_tokens for record in records] == [40, 40]
        # What it read at its first admission stays its figure: the prefix that the first request had just stored.
        assert [record.cached_tokens for record in records] == [0, 32]
        registry, labels = engine.loop.metrics.page.registry, {"model_name": "m", "engine": "0"}
        for name, told in (("prefix_cache_queries", 80), ("prefix_cache_hits", 32), ("num_preemptions", 1)):
            assert registry.get_sample_value(f"vllm:{name}_total", labels) == told
        assert registry.get_sample_value("vllm:prompt_tokens_total", labels) == 80


async def test_what_the_core_refuses_leaves_nothing_behind() -> None:
    async with driven() as engine:
        engine.submit("a", 20, 1)
        with pytest.raises(ValueError, match="in use"):
            engine.submit("a", 20, 1)
        with pytest.raises(ValueError):
            engine.submit("long", 99_999, 1)
        await engine.take(engine.submit("b", 20, 1))


async def test_answers_of_one_request_share_a_stream() -> None:
    async with driven() as engine:
        stream = engine.submit("a", 40, 2, answers=3)
        outputs = [await engine.take(stream) for _ in range(6)]
        assert sorted(output.choice for output in outputs) == [0, 0, 1, 1, 2, 2]
        assert [record.cached_tokens for record in stream.records] == [0, 32, 32]


def count(registry: CollectorRegistry, reason: str) -> float | None:
    labels = {"finished_reason": reason, "model_name": "m", "engine": "0"}
    return registry.get_sample_value("vllm:request_success_total", labels)
