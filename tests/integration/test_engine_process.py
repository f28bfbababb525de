"""The embedded engine as a process of its own: its ready line, its end, what it says when it can't start."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import zmq

from app.engine.loop import EngineLoop
from app.engine.server import ConfigError, EngineConfig, core_config

from .engines import running

ROOT = Path(__file__).parents[2]
START = "from app.engine.server import EngineConfig, serve_engine; serve_engine(EngineConfig({}))"
FREE = "port=0, events_port=0, replay_port=0"


@contextmanager
def start(arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The process, ended for certain at the end of the block."""
    command = [sys.executable, "-c", START.format(arguments)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def replayed(endpoint: str) -> list[list[bytes]]:
    """The batches that the replay socket gives."""
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    try:
        dealer.setsockopt(zmq.RCVTIMEO, 10_000)
        dealer.connect(endpoint)
        dealer.send_multipart([b"", bytes(8)])
        found: list[list[bytes]] = []
        while (frames := dealer.recv_multipart())[3]:
            found.append(frames)
        return found
    finally:
        dealer.close(linger=0)
        context.term()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_ready_line_and_a_clean_end(number: signal.Signals) -> None:
    with start(FREE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("embedded engine ready on http://127.0.0.1:")
        assert "(events tcp://127.0.0.1:" in line and ", replay tcp://127.0.0.1:" in line
        base_url = line.split()[4]
        assert httpx.get(f"{base_url}/health", trust_env=False).status_code == 200
        httpx.post(
            f"{base_url}/v1/completions", json={"prompt": [7] * 20, "max_tokens": 1}, trust_env=False
        ).raise_for_status()
        assert len(replayed(line.split()[-1].rstrip(")"))) == 1
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
        assert (process.returncode, output, errors) == (0, "", "")


def test_a_stream_does_not_hold_up_the_end() -> None:
    with start(FREE) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().split()[4]
        body = {"prompt": "a", "stream": True, "ignore_eos": True, "max_tokens": 30_000}
        with httpx.stream("POST", f"{base_url}/v1/completions", json=body, trust_env=False) as response:
            lines = response.iter_lines()
            next(lines)
            process.terminate()
            assert "data: [DONE]" not in list(lines)
        assert process.communicate(timeout=20)[1] == ""
        assert process.returncode == 0


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_number_that_is_no_port_is_one_clear_line(port: int) -> None:
    with start(FREE.replace("port=0", f"port={port}", 1)) as process:
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (1, "")
    assert errors.startswith(f"embedded engine: cannot listen on 127.0.0.1:{port} for HTTP: ports are 0 to 65535")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("name", ["port", "events_port", "replay_port"])
def test_a_taken_port_is_one_clear_line(name: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with start(FREE.replace(f"{name}=0", f"{name}={port}").replace(f"_{name}={port}", f"_{name}=0")) as process:
            output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (1, "")
    assert errors.startswith(f"embedded engine: cannot listen on 127.0.0.1:{port} for ")
    assert errors.count("\n") == 1 and "in use" in errors


def test_an_unknown_profile_is_one_clear_line() -> None:
    with start("profile='h100'") as process:
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (2, "")
    assert errors == (
        "embedded engine: there is no profile 'h100'; there are: instant, rtx3090-qwen2.5-7b-bf16, "
        "rtx3090-qwen2.5-7b-awq-int4\n"
    )


@pytest.mark.parametrize(
    "config",
    [
        EngineConfig(num_gpu_blocks=1),
        EngineConfig(block_size=0),
        EngineConfig(max_num_seqs=0),
        EngineConfig(max_num_batched_tokens=0),
        EngineConfig(model_name=""),
    ],
)
def test_configurations_that_cannot_run(config: EngineConfig) -> None:
    with pytest.raises(ConfigError):
        core_config(config)


def test_flags_that_are_not_given_come_from_the_profile() -> None:
    core = core_config(EngineConfig())
    assert (core.num_gpu_blocks, core.block_size, core.max_model_len) == (5306, 16, 32768)
    assert core_config(EngineConfig(num_gpu_blocks=64)).num_gpu_blocks == 64


async def test_a_part_that_failed_is_not_passed_over_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_loop: EngineLoop) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(EngineLoop, "run", fail)

    with pytest.raises(ZeroDivisionError):
        async with running():
            pass
