"""The doctor, by command and by API: what is on, what is missing with its flag, and what can't be reached."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.processes import ROOT, free_ports

from .app_rig import Dashboard, Engine, chat_body, dashboard, eventually


def doctor(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """`python -m app doctor ARGUMENTS` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "app", "doctor", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def addresses(engine: Engine) -> list[str]:
    return ["--kv-events", engine.settings["kv_events"], "--kv-replay", engine.settings["kv_replay"]]


def by_code(diagnosis: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["code"]: finding for finding in diagnosis["findings"]}


def test_a_server_with_everything_is_all_on(engine: Engine) -> None:
    result = doctor(engine.url, *addresses(engine), "--json")

    assert (result.returncode, result.stderr) == (0, "")
    diagnosis = json.loads(result.stdout)
    assert (diagnosis["status"], diagnosis["server"]) == ("ok", engine.url)
    assert {finding["status"] for finding in diagnosis["findings"]} == {"on"}


def test_what_is_missing_is_said_with_its_flag(engine: Engine) -> None:
    nowhere = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    result = doctor(engine.url, "--no-ask", "--kv-events", nowhere)

    assert (result.returncode, result.stderr) == (1, "")
    assert "MISSING" in result.stdout
    assert "--kv-events-config '{" in result.stdout
    assert nowhere in result.stdout
    assert "--no-ask" in result.stdout


def test_out_of_reach_is_two() -> None:
    result = doctor(f"http://127.0.0.1:{free_ports(1)[0]}")

    assert (result.returncode, result.stderr) == (2, "")
    assert "Nothing answers" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "word"), [(("gpu:8000",), "gpu:8000"), (("http://x", "--kv-events", "x:1"), "tcp://HOST:PORT")]
)
def test_a_call_that_cannot_be_carried_out_is_one_line(arguments: tuple[str, ...], word: str) -> None:
    result = doctor(*arguments)

    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.strip().splitlines()
    assert word in line


async def until_finding(board: Dashboard, code: str, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first server's diagnosis, once its finding `code` fits."""

    async def look() -> dict[str, Any] | None:
        diagnosis: dict[str, Any] = (await board.json("/api/doctor"))["servers"][0]
        finding = by_code(diagnosis).get(code)
        return diagnosis if finding is not None and fits(finding) else None

    return await eventually(look)


async def test_the_page_learns_the_rest_from_its_requests(engine: Engine) -> None:
    async with dashboard(engine.settings) as board:
        await board.until_ready()
        diagnosis = await until_finding(board, "kv_replay", lambda finding: finding["status"] == "on")
        before = by_code(diagnosis)
        assert before["usage_details"]["status"] == before["request_metrics"]["status"] == "unknown"
        assert before["usage_details"]["flag"] == "--enable-prompt-tokens-details"
        model = board.app.runtime.model_name()
        assert model

        await board.send(chat_body(model))

        diagnosis = await until_finding(board, "usage_details", lambda finding: finding["status"] == "on")
        assert {finding["status"] for finding in diagnosis["findings"]} == {"on"}
        assert diagnosis["status"] == "ok"


async def test_a_dead_server_is_told_beside_one_that_lives(engine: Engine) -> None:
    dead = f"http://127.0.0.1:{free_ports(1)[0]}"
    settings = {
        "vllm": f"{engine.url},{dead}", "kv_events": engine.settings["kv_events"],
        "kv_replay": engine.settings["kv_replay"],
    }  # fmt: skip
    async with dashboard(settings) as board:
        await board.until_ready()
        await until_finding(board, "server", lambda finding: finding["status"] == "on")
        async with asyncio.timeout(10):
            answer = await board.json("/api/doctor")

    first, second = answer["servers"]
    assert (answer["status"], first["server"], second["server"]) == ("unreachable", engine.url, dead)
    assert second["status"] == "unreachable"
    assert first["status"] != "unreachable"
