import asyncio
import logging

import pytest

from app import runtime
from app.errors import SettingsError
from app.ids import RequestId, ServerId
from app.observations import MetricsFailed, Observation, RequestEnded, ScenarioStepped
from app.runtime import Runtime, kv_line, server_id
from app.settings import Settings, load_settings
from app.sources.kv_subscriber import KvSubscriber
from app.sources.metrics_scraper import MetricsScraper


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
    "given",
    [
        "",
        "gpu-box:8000",
        "gpu-box",
        "ftp://gpu-box",
        "http://",
        "http://x:y",
        "http://[::1",
        "http://x?a=b",
        "http://x#a",
    ],
)
def test_what_is_no_url_of_a_server_is_refused_in_words(given: str) -> None:
    with pytest.raises(SettingsError) as refused:
        server_id(settings(vllm=given))

    assert "http://" in (refused.value.hint or "")


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError) as refused:
        server_id(settings(vllm="http://operator:hunter2@gpu-box:8000"))

    assert "hunter2" not in refused.value.message
    assert "PREFIXSCOPE_VLLM_API_KEY" in (refused.value.hint or "")


def test_the_addresses_of_events_are_guessed_and_said_to_be() -> None:
    line = kv_line(settings(vllm="http://[::1]:8000"))

    assert line.startswith("tcp://[::1]:5557, replay tcp://[::1]:5558 (not given")


@pytest.mark.parametrize(
    ("events", "replay", "line"),
    [
        ("tcp://y:100", "tcp://y:200", "tcp://y:100, replay tcp://y:200"),
        ("tcp://y:5557", None, "tcp://y:5557, replay tcp://y:5558"),
        ("tcp://*:5557", None, "tcp://x:5557, replay tcp://x:5558"),
        ("tcp://y:100", None, "tcp://y:100, no replay (see --kv-replay)"),
    ],
)
def test_the_line_names_the_addresses_that_are_used(events: str, replay: str | None, line: str) -> None:
    given = {"vllm": "http://x", "kv_events": events} | ({"kv_replay": replay} if replay else {})

    assert kv_line(settings(**given)) == line


def test_an_address_of_events_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(SettingsError, match="tcp://HOST:PORT"):
        kv_line(settings(vllm="http://x", kv_events="y:5557"))


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


async def test_a_source_that_fails_is_logged_shown_and_started_again(
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

    told: list[str] = []
    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(runtime._keep_running("things", source, told.append))
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
