import asyncio
import logging

import pytest

from app import watched
from app.ids import RequestId, ServerId
from app.observations import MetricsFailed, Observation, RequestEnded, ScenarioStepped
from app.runtime import Runtime
from app.settings import Settings, load_settings
from app.sources.kv_subscriber import KvSubscriber
from app.sources.metrics_scraper import MetricsScraper


def settings(**given: str) -> Settings:
    return load_settings({}, given)


@pytest.mark.parametrize(
    ("observation", "tells"),
    [
        (MetricsFailed(ServerId("s"), "refused", None, 0.0), True),
        (MetricsFailed(ServerId("s"), "not found", 404, 0.0), False),
        (RequestEnded(RequestId("r"), "server_gone", 0.0), True),
        (RequestEnded(RequestId("r"), "client_gone", 0.0), False),
        (ScenarioStepped(1, 1, "", True, 0.0), False),
    ],
)
def test_signs_of_a_lost_server_wake_the_probe(observation: Observation, tells: bool) -> None:
    assert watched._tells_of_a_lost_server(observation) is tells


async def test_a_source_that_fails_is_logged_shown_and_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watched, "FIRST_RESTART_S", 0.0)
    started = asyncio.Queue[int]()
    starts = 0

    async def source() -> None:
        nonlocal starts
        starts += 1
        started.put_nowait(starts)
        if starts == 1:
            raise ZeroDivisionError("a fault")
        if starts == 3:
            await asyncio.Event().wait()

    told: list[str] = []
    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(watched.keep_running("things", source, told.append))
        async with asyncio.timeout(5):
            assert [await started.get() for _ in range(3)] == [1, 2, 3]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert ["failed" in record.getMessage() for record in caplog.records] == [True, False]
    assert told == ["Reading things failed, and is started again by itself. The dashboard's log says why."] * 2


async def test_a_source_that_failed_is_told_of_in_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_source: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(KvSubscriber, "run", fail)
    monkeypatch.setattr(MetricsScraper, "run", fail)
    run = Runtime(settings(vllm="http://127.0.0.1:9"))

    def told() -> list[bool]:
        record = run.server_record()
        messages = [] if record is None else [*(stream.message for stream in record.streams), record.metrics_message]
        return ["log says why" in (message or "") for message in messages]

    async with run.running(), asyncio.timeout(10):
        while told() != [True, True]:  # noqa: ASYNC110
            await asyncio.sleep(0)
