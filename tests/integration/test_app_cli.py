"""The command line as a person meets it: processes, exit codes, one clear line where something is wrong."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import ROOT, Process, app_process, free_ports


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """`python -m app ARGUMENTS` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def assert_one_clear_line(result: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert result.returncode == 2, result
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("prefixscope: ")
    for word in words:
        assert word in line


def wait_until(condition: Callable[[], Any], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


@pytest.mark.parametrize("command", [("demo",), ("serve", "--vllm", "http://127.0.0.1:9")])
def test_a_taken_port_is_one_clear_line(command: tuple[str, ...], taken_port: int) -> None:
    result = run(*command, "--port", str(taken_port))

    assert_one_clear_line(result, str(taken_port), "taken", "--port")


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        pytest.param(("serve",), {}, ("--vllm",), id="no server"),
        pytest.param(("serve", "--vllm", "gpu-box:8000"), {}, ("gpu-box:8000",), id="no URL"),
        pytest.param(("serve", "--vllm", "http://gpu-box:port"), {}, ("http://gpu-box:port",), id="no port"),
        pytest.param(
            ("serve", "--vllm", "http://x", "--kv-events", "x:5557"), {}, ("tcp://HOST:PORT",), id="no events"
        ),
        pytest.param(("serve", "--vllm", "http://x", "--mode", "loud"), {}, ("mode", "observe"), id="no mode"),
        pytest.param(("serve", "--vllm", "http://x", "--port", "x"), {}, ("port", "'x'"), id="no number"),
        pytest.param(("serve", "--vllm", "http://x", "--port", "70000"), {}, ("70000",), id="beyond ports"),
        pytest.param(("demo", "--host", "203.0.113.7"), {}, ("203.0.113.7",), id="another machine's address"),
        pytest.param(("demo", "--host", "no such host"), {}, ("no such host",), id="no host"),
        pytest.param(("demo",), {"PREFIXSCOPE_MAX_BLOCKS": "many"}, ("max_blocks", "many"), id="environment"),
        pytest.param(
            ("demo",), {"PREFIXSCOPE_COLOUR": "red"}, ("PREFIXSCOPE_COLOUR is not a setting. See",), id="not a setting"
        ),
    ],
)
def test_a_bad_setting_is_one_clear_line(
    arguments: tuple[str, ...], environment: dict[str, str], words: tuple[str, ...]
) -> None:
    assert_one_clear_line(run(*arguments, **environment), *words)


@pytest.mark.parametrize("command", [(), ("demo",), ("serve",), ("engine",)])
def test_help_is_given(command: tuple[str, ...]) -> None:
    result = run(*command, "--help")

    assert result.returncode == 0
    assert len(result.stdout.splitlines()) > 10


class Demo:
    """A running demo, and the engine that it started."""

    def __init__(self, log: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.process: Process = app_process(log, "demo", "--port", str(port))
        self.process.start()
        self.process.wait_for(f"{self.url}/readyz", 60)
        self.engine_url: str = httpx.get(f"{self.url}/readyz").json()["server"]

    def engine_answers(self) -> bool:
        """Whether the embedded engine still listens."""
        try:
            return httpx.get(f"{self.engine_url}/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False


def children_of(pid: int) -> list[int]:
    """The processes that `pid` started and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(int(stat.parent.name))
    return found


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    started = Demo(tmp_path / "demo.log")
    yield started
    started.process.stop()


def test_the_demo_moves_by_itself_and_ends_with_its_engine(demo: Demo) -> None:
    def records() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = httpx.get(f"{demo.url}/api/requests").json()["requests"]
        return [record for record in listed if record["outcome"]]

    wait_until(lambda: len(records()) >= 2)
    second, first = records()[-2:]
    assert (first["origin"], first["cached_tokens"], second["cached_tokens"] > 0) == ("scenario", 0, True)
    assert second["reused_blocks"] == second["reusable_blocks"] >= 12
    scenario = httpx.get(f"{demo.url}/api/state").json()["data"]["scenario"]
    assert (scenario["running"], scenario["steps"]) == (True, 4)

    assert httpx.post(f"{demo.url}/api/scenario/stop").json() == {"running": False}
    wait_until(lambda: httpx.get(f"{demo.url}/api/state").json()["data"]["scenario"]["running"] is False)

    assert demo.url in demo.process.output()
    assert demo.process.stop(signal.SIGTERM) == 0
    wait_until(lambda: not demo.engine_answers())
    assert "Traceback" not in demo.process.output()


def test_a_demo_that_is_killed_takes_its_engine_with_it(demo: Demo) -> None:
    assert demo.engine_answers()

    demo.process.stop(signal.SIGKILL)

    wait_until(lambda: not demo.engine_answers())


def test_an_engine_that_dies_is_started_again_and_its_blocks_are_gone(demo: Demo) -> None:
    wait_until(lambda: httpx.get(f"{demo.url}/api/blocks").json()["blocks"])
    httpx.post(f"{demo.url}/api/scenario/stop")
    (engine,) = children_of(demo.process.pid)

    os.kill(engine, signal.SIGKILL)

    wait_until(lambda: children_of(demo.process.pid) not in ([], [engine]))
    wait_until(lambda: httpx.get(f"{demo.url}/readyz").status_code == 200)
    wait_until(lambda: not any(cache["hash"] for cache in httpx.get(f"{demo.url}/api/blocks").json()["blocks"]))
    assert "is started again" in demo.process.output()
    assert demo.process.stop(signal.SIGTERM) == 0
    wait_until(lambda: not demo.engine_answers())


def test_ctrl_c_ends_serve_cleanly(tmp_path: Path) -> None:
    port, nowhere = free_ports(2)
    process = app_process(
        tmp_path / "serve.log", "serve", "--vllm", f"http://127.0.0.1:{nowhere}/v1", "--port", str(port)
    )
    process.start()
    process.wait_for(f"http://127.0.0.1:{port}/healthz", 60)

    assert process.stop(signal.SIGINT) == 0

    output = process.output()
    assert f"http://127.0.0.1:{nowhere}, mode observe" in output
    assert "tcp://127.0.0.1:5557, replay tcp://127.0.0.1:5558 (not given" in output
    assert "Traceback" not in output
