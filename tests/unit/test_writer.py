import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from app.events import Outgoing, ScenarioAdvanced, ScenarioState
from app.ids import Rank, ServerId
from app.observations import KvBatch, KvGap, Observation, ScenarioStepped
from app.sources.clock import SystemClock
from app.writer import Writer

SERVER = ServerId("http://server")


class NotingLedger:
    """Notes what it is given, and fails on a step whose caption says so."""

    def __init__(self) -> None:
        self.applied: list[Observation] = []
        self.ticks = 0

    def apply(self, observation: Observation) -> list[Outgoing]:
        if isinstance(observation, ScenarioStepped) and observation.caption == "poison":
            raise ZeroDivisionError("poison")
        self.applied.append(observation)
        if isinstance(observation, ScenarioStepped):
            return [Outgoing(ScenarioAdvanced(ScenarioState(observation.step, 0, "", True)), 0.0)]
        return []

    def tick(self, at_s: float) -> list[Outgoing]:
        self.ticks += 1
        return []


def step(number: int, caption: str = "") -> ScenarioStepped:
    return ScenarioStepped(number, 0, caption, True, 0.0)


def batch(seq: int) -> KvBatch:
    return KvBatch(SERVER, Rank(0), seq, (), 0.0)


@asynccontextmanager
async def running(writer: Writer) -> AsyncIterator[None]:
    task = asyncio.create_task(writer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_observations_are_applied_in_order_and_what_follows_is_published() -> None:
    ledger, published = NotingLedger(), list[Outgoing]()
    writer = Writer(ledger, published.extend, SystemClock(), 10)
    for number in range(500):
        writer.emit(step(number))

    async with running(writer):
        await until(lambda: len(published) == 500)

    assert [seen.step for seen in ledger.applied if isinstance(seen, ScenarioStepped)] == list(range(500))
    assert writer.waiting == 0


async def test_a_poison_observation_is_left_out_and_the_writer_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    ledger, published = NotingLedger(), list[Outgoing]()
    writer = Writer(ledger, published.extend, SystemClock(), 10)

    with caplog.at_level(logging.ERROR):
        async with running(writer):
            for number, caption in enumerate(["", "poison", "", "poison", ""]):
                writer.emit(step(number, caption))
            await until(lambda: len(published) == 3)

    assert writer.poisoned == 2
    assert [record.getMessage().split(" left out")[0] for record in caplog.records] == [
        "ScenarioStepped no. 1", "ScenarioStepped no. 2",
    ]  # fmt: skip


async def test_a_flood_of_poison_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    writer = Writer(NotingLedger(), lambda _: None, SystemClock(), 10)

    with caplog.at_level(logging.ERROR):
        async with running(writer):
            for number in range(1000):
                writer.emit(step(number, "poison"))
            await until(lambda: writer.poisoned == 1000)

    assert len(caplog.records) == 21


async def test_above_the_bound_batches_become_a_gap_that_the_ledger_sees() -> None:
    ledger = NotingLedger()
    writer = Writer(ledger, lambda _: None, SystemClock(), max_kv_batches=2)
    for seq in range(5):
        writer.emit(batch(seq))
    writer.emit(step(1))

    async with running(writer):
        await until(lambda: writer.waiting == 0)
        writer.emit(batch(5))
        await until(lambda: writer.waiting == 0)

    assert ledger.applied == [batch(0), batch(1), KvGap(SERVER, Rank(0), 2, 4, 0, 0.0), step(1), batch(5)]
    assert writer.dropped_batches == 3


async def test_a_flood_leaves_turns_of_the_loop_to_others() -> None:
    writer = Writer(NotingLedger(), lambda _: None, SystemClock(), 1_000_000)
    for seq in range(50_000):
        writer.emit(batch(seq))
    turns = 0

    async with running(writer):
        while writer.waiting:
            await asyncio.sleep(0)
            turns += 1

    assert turns > 5


async def test_the_ledger_ticks_in_silence() -> None:
    ledger = NotingLedger()
    writer = Writer(ledger, lambda _: None, SystemClock(), 10, tick_s=0.01)

    async with running(writer):
        await until(lambda: ledger.ticks >= 2)
