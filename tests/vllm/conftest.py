"""Fixtures that bring up a real vLLM server on the CPU. `make vllm-test` prepares it; without it these tests fail."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts import real_vllm
from tests.processes import Process, app_process, free_ports

START_S = 600.0
"""A server is ready after 25 to 80 seconds on an idle machine with 2 cores."""


class RealVllm:
    """A real vLLM server on the loopback interface."""

    model = real_vllm.MODEL_NAME
    block_size = real_vllm.BLOCK_SIZE

    def __init__(self, log: Path, num_gpu_blocks: int | None) -> None:
        self.port, events_port, replay_port = free_ports(3)
        self.num_gpu_blocks = num_gpu_blocks
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.events_endpoint = f"tcp://127.0.0.1:{events_port}"
        self.replay_endpoint = f"tcp://127.0.0.1:{replay_port}"
        command = real_vllm.serve_command(self.port, events_port, replay_port, num_gpu_blocks)
        self._process = Process(command, log, real_vllm.serve_environment())

    def start(self) -> None:
        """Starts it and waits until it is ready."""
        self._process.start()
        self._process.wait_for(f"{self.base_url}/health", START_S)

    def kill(self) -> None:
        """Ends it without a word, as a crash does."""
        self._process.stop(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it."""
        self._process.stop(signal.SIGINT, timeout_s=30.0)


class Dashboard:
    """`python -m app serve` in front of a server."""

    def __init__(self, log: Path, server: RealVllm, *arguments: str) -> None:
        (self.port,) = free_ports(1)
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.process = app_process(
            log, "serve", "--vllm", server.base_url, "--kv-events", server.events_endpoint,
            "--kv-replay", server.replay_endpoint, "--port", str(self.port), *arguments,
        )  # fmt: skip

    def start(self) -> None:
        """Starts it and waits until its server is seen."""
        self.process.start()
        self.process.wait_for(f"{self.base_url}/readyz", 30.0)


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the output of processes."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def small_pool_vllm(logs: Path, request: pytest.FixtureRequest) -> Iterator[RealVllm]:
    """A fresh server with a pool of 64 blocks of 32 tokens, one a test module."""
    server = RealVllm(logs / f"vllm-{request.module.__name__}.log", num_gpu_blocks=64)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def dashboard_for(logs: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Dashboard]]:
    """Starts dashboards in front of servers, and ends them."""
    started: list[Dashboard] = []

    def start(server: RealVllm, *arguments: str) -> Dashboard:
        dashboard = Dashboard(logs / f"dashboard-{request.node.name}-{len(started)}.log", server, *arguments)
        started.append(dashboard)
        dashboard.start()
        return dashboard

    yield start
    for dashboard in started:
        dashboard.process.stop()
