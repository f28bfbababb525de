"""Full collections wait until no stream runs."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from app import garbage

WAIT_S = 10.0


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(garbage, "EVERY_S", 0.001)
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_python_starts_no_full_collection_by_itself() -> None:
    garbage.settle()
    assert gc.get_threshold()[2] == garbage.NEVER
    assert gc.get_freeze_count() > 0


async def collects_while(busy: bool, hours: float) -> list[bool]:
    """Whether each of the first rounds collected in full, where every round takes `hours`."""
    collected: list[bool] = []
    full = 0
    rounds = asyncio.Event()
    now_s = 0.0

    def note(phase: str, info: dict[str, int]) -> None:
        nonlocal full
        full += phase == "start" and info["generation"] == 2

    def is_busy() -> bool:
        nonlocal full, now_s
        collected.append(full > 0)
        full, now_s = 0, now_s + hours * 3600
        if len(collected) > 4:
            rounds.set()
        return busy

    gc.callbacks.append(note)
    task = asyncio.create_task(garbage.collect_when_idle(is_busy, lambda: now_s))
    try:
        async with asyncio.timeout(WAIT_S):
            await rounds.wait()
    finally:
        task.cancel()
        gc.callbacks.remove(note)
    return collected[1:5]


async def test_an_idle_proxy_is_collected() -> None:
    assert await collects_while(busy=False, hours=0.01) == [True] * 4


async def test_a_busy_one_is_left_alone_for_an_hour() -> None:
    assert await collects_while(busy=True, hours=0.01) == [False] * 4
    assert await collects_while(busy=True, hours=0.6) == [False, True, False, True]
