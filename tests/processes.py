"""Starts the product's and vLLM's processes for tests, waits until they are ready, and ends what it started."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent


def free_ports(count: int) -> list[int]:
    """TCP ports of 127.0.0.1 that are free now, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


class Process:
    """A process of a test's own, with its output in a file. Ended by its process id, its children with it."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, folder: Path = ROOT
    ) -> None:
        self.command = list(command)
        self.log = log
        self._folder = folder
        self._environment = dict(environment if environment is not None else os.environ)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it in a process group of its own."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                cwd=self._folder, env=self._environment, start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Its process id. Raises AssertionError where it wasn't started."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and hasn't ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self, with_signal: signal.Signals = signal.SIGTERM, timeout_s: float = 20.0) -> int:
        """Ends it and what it started; returns its exit status (negative: the signal that ended it)."""
        if self._process is None:
            return 0
        group = self._process.pid
        if self._process.poll() is None:
            self._process.send_signal(with_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        return self._process.wait(10)

    def output(self) -> str:
        """What it printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for(self, url: str, timeout_s: float) -> None:
        """Waits until `url` answers 200; AssertionError, with the end of its output, if it ends or is late."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not self.running:
                break
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(url, timeout=2.0).status_code == 200:
                    return
            time.sleep(0.1)
        raise AssertionError(f"{' '.join(self.command)}\nis not ready at {url}:\n{self.output()[-4000:]}")


def app_process(log: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Process:
    """`python -m app ARGUMENTS`, not started yet."""
    return Process([sys.executable, "-m", "app", *arguments], log, environment)
