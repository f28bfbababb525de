import asyncio
import logging

import pytest

from app import runtime
from app.errors import SettingsError
from app.ids import RequestId, ServerId
from app.observations import MetricsFailed, Observation, RequestEnded, ScenarioStepped
from app.runtime import kv_line, server_id
from app.settings import Settings, load_settings


def settings(**given: str) -> Settings:
    return load_settings({}, given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("https://gpu.example/models/qwen/", "https://gpu.example/models/qwen"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("  http://gpu-box  ", "http://gpu-box"),
    ],
)
def test_a_server_has_one_name_however_its_url_is_written(given: str, expected: str) -> None:
    assert server_id(settings(vllm=given)) == expected


@pytest.mark.parametrize(
    "given", ["", "gpu-box:8000", "gpu-box", "ftp://gpu-box", "http://", "http://x:y", "http://[::1"]
)
def test_what_is_no_url_of_a_server_is_refused_in_words(given: str) -> None:
    with pytest.raises(SettingsError) as refused:
        server_id(settings(vllm=given))

    assert "http://" in (refused.value.hint or "")


def test_the_addresses_of_events_are_guessed_and_said_to_be() -> None:
    line = kv_line(settings(vllm="http://[::1]:8000"))

    assert line.startswith("tcp://[::1]:5557, replay tcp://[::1]:5558 (not given")


def test_given_addresses_of_events_are_shown_as_they_are() -> None:
    assert (
        kv_line(settings(vllm="http://x", kv_events="tcp://y:1", kv_replay="tcp://y:2"))
        == "tcp://y:1, replay tcp://y:2"
    )
    assert "no replay" in kv_line(settings(vllm="http://x", kv_events="tcp://y:1"))


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
    assert runtime._tells_of_a_lost_server(observation) is tells


async def test_a_source_that_fails_is_logged_and_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runtime, "FIRST_RESTART_S", 0.0)
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

    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(runtime._keep_running("things", source))
        async with asyncio.timeout(5):
            assert [await started.get() for _ in range(3)] == [1, 2, 3]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert ["failed" in record.getMessage() for record in caplog.records] == [True, False]
