"""A subscriber for each rank that metrics name, and none for others."""

import asyncio

import pytest

from app.ids import Rank, ServerId
from app.observations import EngineSample, KvRanks, KvStreamState
from app.sources.clock import SystemClock
from app.sources.kv_ranks import KvRankSubscribers
from tests.integration.observed import Observed, in_background

SERVER = ServerId("http://127.0.0.1:8000")


class Fake:
    """Runs until cancelled, or fails once when told to."""

    def __init__(self, rank: Rank, running: set[Rank], changed: asyncio.Event) -> None:
        self.rank = rank
        self.changed = changed
        self.running = running
        self.told: list[str] = []
        self.fail = asyncio.Event()

    async def run(self) -> None:
        self.running.add(self.rank)
        self.changed.set()
        try:
            await self.fail.wait()
            self.fail.clear()
            raise RuntimeError("a fault")
        finally:
            self.running.discard(self.rank)
            self.changed.set()

    def tell_failed(self, message: str) -> None:
        self.told.append(message)


class Rig:
    def __init__(self, ranks: int | None = None) -> None:
        self.observed = Observed()
        self.running: set[Rank] = set()
        self.changed = asyncio.Event()
        self.made: list[Fake] = []
        self.ranks = KvRankSubscribers(SERVER, self.make, self.observed.emit, SystemClock(), ranks)

    def make(self, rank: Rank) -> Fake:
        self.made.append(Fake(rank, self.running, self.changed))
        return self.made[-1]

    def hear(self, *engines: str) -> None:
        self.ranks.heard_engines([EngineSample(engine) for engine in engines])

    async def until_running(self, *ranks: int) -> None:
        async with asyncio.timeout(5):
            while self.running != set(ranks):
                self.changed.clear()
                await self.changed.wait()

    def told(self) -> list[tuple[int, ...]]:
        return [observed.ranks for observed in self.observed.of(KvRanks)]


async def test_rank_0_until_metrics_name_more() -> None:
    rig = Rig()
    async with in_background(rig.ranks.run):
        await rig.until_running(0)
        rig.hear("0", "1", "2")
        await rig.until_running(0, 1, 2)
        rig.hear("0", "2")
        rig.hear("0", "1", "3")
        await rig.until_running(0, 1, 2, 3)
        assert rig.told() == [(0,), (0, 1, 2), (0, 1, 2, 3)]
        assert [fake.rank for fake in rig.made] == [0, 1, 2, 3]
    assert rig.running == set()


@pytest.mark.parametrize("engines", [("3",), ("0",), ('0{pod="a"}', '0{pod="b"}'), ("x", "y"), ()])
async def test_one_engine_alone_has_one_stream(engines: tuple[str, ...]) -> None:
    rig = Rig()
    async with in_background(rig.ranks.run):
        rig.hear(*engines)
        await rig.until_running(0)
        assert rig.told() == [(0,)]


async def test_a_node_with_other_ranks_has_no_rank_0() -> None:
    rig = Rig()
    async with in_background(rig.ranks.run):
        await rig.until_running(0)
        rig.hear("2", "3")
        await rig.until_running(2, 3)
        assert [(state.rank, state.state) for state in rig.observed.of(KvStreamState)] == [(0, "off")]


async def test_what_a_person_says_stands() -> None:
    rig = Rig(2)
    async with in_background(rig.ranks.run):
        rig.hear("0", "1", "2", "3")
        await rig.until_running(0, 1)


async def test_a_fault_ends_all_and_they_start_again() -> None:
    rig = Rig(2)
    task = asyncio.ensure_future(rig.ranks.run())
    await rig.until_running(0, 1)
    rig.made[1].fail.set()
    with pytest.raises(ExceptionGroup):
        await task
    rig.ranks.tell_failed("It failed.")
    assert [fake.told for fake in rig.made] == [["It failed."], ["It failed."]]
    async with in_background(rig.ranks.run):
        await rig.until_running(0, 1)
