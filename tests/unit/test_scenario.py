import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.observations import Observation, ScenarioStepped
from app.scenario import PRESETS, Pace, Preset, Scenario, steps_of
from app.sources.clock import SystemClock

NO_PAUSE = Pace(step_s=0, round_s=0, poll_s=0)
ROUNDS = len(PRESETS)


class Server:
    """An ASGI application in /v1's place. Notes each request; waits before it answers where told to."""

    def __init__(self, wait: Callable[[], Awaitable[object]] | None = None) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.wait = wait
        self.cancelled = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message: Message = await receive()
        self.bodies.append(json.loads(message["body"]))
        self.headers.append(dict(scope["headers"]))
        try:
            if self.wait is not None:
                await self.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


class Rig:
    def __init__(self, server: Server, model: str | None = "a-model") -> None:
        self.model = model
        self.said: list[ScenarioStepped] = []
        self.scenario = Scenario(server, lambda: self.model, self.note, SystemClock(), pace=NO_PAUSE)

    def note(self, observation: Observation) -> None:
        assert isinstance(observation, ScenarioStepped)
        self.said.append(observation)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0)


async def test_it_plays_every_round_and_then_ends_by_itself() -> None:
    server = Server()
    rig = Rig(server)

    rig.scenario.start()
    await rig.until(lambda: not rig.scenario.running)

    assert len(server.bodies) == 4 * ROUNDS
    assert [stepped.step for stepped in rig.said] == [1, 2, 3, 4] * ROUNDS + [4]
    assert [stepped.running for stepped in rig.said] == [True] * 4 * ROUNDS + [False]
    assert {stepped.steps for stepped in rig.said} == {4}
    assert all(stepped.caption for stepped in rig.said)
    assert all(stepped.translations and stepped.translations["zh"] != stepped.caption for stepped in rig.said)
    assert "over" in rig.said[-1].caption


async def test_its_requests_ask_for_all_that_can_be_shown() -> None:
    server = Server()
    rig = Rig(server)
    rig.scenario.start()
    await rig.until(lambda: bool(server.bodies))
    await rig.scenario.close()

    body = server.bodies[0]
    assert body["model"] == "a-model"
    assert body["stream"] is body["stream_options"]["include_usage"] is body["return_token_ids"] is True
    assert body["vllm_xargs"] == {"kv_cache_report_mode": "full"}
    assert server.headers[0][b"x-prefixscope-origin"] == b"scenario"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_the_four_steps_differ_where_their_captions_say(preset: Preset) -> None:
    cold, warm, front, end = steps_of(preset)

    assert (warm.system, warm.question) == (cold.system, cold.question)
    assert front.question == cold.question
    assert front.system != cold.system
    assert front.system.startswith(preset.front[1])
    assert front.system[len(preset.front[1]) :] == cold.system[len(preset.front[0]) :]
    assert end.system == cold.system
    assert end.question != cold.question
    assert end.question.endswith(preset.end[1])


async def test_it_waits_for_a_server() -> None:
    server = Server()
    rig = Rig(server, model=None)
    rig.scenario.start()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not server.bodies
    assert rig.scenario.running

    rig.model = "late"
    await rig.until(lambda: bool(server.bodies))
    await rig.scenario.close()

    assert server.bodies[0]["model"] == "late"


async def test_a_click_ends_it_with_its_request_and_it_can_be_played_again() -> None:
    never = asyncio.Event()
    server = Server(wait=never.wait)
    rig = Rig(server)
    rig.scenario.start()
    await rig.until(lambda: len(server.bodies) == 1)

    rig.scenario.stop()
    rig.scenario.stop()

    assert not rig.scenario.running
    await rig.until(lambda: server.cancelled == 1)
    assert [stepped.running for stepped in rig.said] == [True, False]

    server.wait = None
    rig.scenario.start()
    await rig.until(lambda: not rig.scenario.running)
    assert len(server.bodies) == 1 + 4 * ROUNDS


async def test_played_again_it_is_cold_again_under_a_salt() -> None:
    server = Server()
    rig = Rig(server)
    for _ in range(3):
        rig.scenario.start()
        await rig.until(lambda: not rig.scenario.running)

    plays = [server.bodies[start : start + 4 * ROUNDS] for start in range(0, 12 * ROUNDS, 4 * ROUNDS)]
    salts = [{body.get("cache_salt") for body in play} for play in plays]
    assert salts == [{None}, {"scenario-2"}, {"scenario-3"}]
    assert "salt" in steps_of(PRESETS[0], 2)[0].caption.en


async def test_a_server_that_breaks_ends_it_and_nothing_else() -> None:
    async def fail() -> None:
        raise ConnectionError("gone")

    rig = Rig(Server(wait=fail))
    rig.scenario.start()

    await rig.until(lambda: not rig.scenario.running)

    assert rig.said[-1].running is False
    assert "failed" in rig.said[-1].caption
