"""The demo's embedded engine as a process of its own, which never outlives the dashboard.

The child holds the read end of a pipe whose write end only the parent has. However the parent ends, kill -9 included,
the pipe closes, and the child stops. A child that ends by itself while the demo runs is started again on its ports.
"""

import http.client
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .errors import PrefixScopeError

HOST = "127.0.0.1"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
RESTART_AFTER_S = 1.0
LONGEST_PAUSE_S = 30.0
STOP_WITH_PARENT_FLAG = "--stop-with-parent"

_logger = logging.getLogger(__name__)


class EngineFailed(PrefixScopeError):
    """The embedded engine didn't start."""

    code = "engine_failed"


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Where the child listens."""

    port: int
    events_port: int
    replay_port: int

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://{HOST}:{self.port}"

    @property
    def kv_events(self) -> str:
        """Its KV events."""
        return f"tcp://{HOST}:{self.events_port}"

    @property
    def kv_replay(self) -> str:
        """Their replay."""
        return f"tcp://{HOST}:{self.replay_port}"


class EngineProcess:
    """A running child. `wait_until_ready` is apart from the start, so that the parent can do its own in between."""

    def __init__(self, address: EngineAddress, command: Sequence[str]) -> None:
        self.address = address
        self._command = command
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep_running, name="engine-keeper", daemon=True)
        self._child = _start(command)

    def wait_until_ready(self) -> None:
        """Returns once it answers. Raises EngineFailed where it ends or takes too long."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            code = self._child.poll()
            if code is not None:
                raise EngineFailed(
                    f"The embedded engine ended at its start, with exit code {code}.", hint="Its own message is above."
                )
            if _answers(self.address.port):
                self._keeper.start()
                return
            time.sleep(0.03)
        raise EngineFailed(
            f"The embedded engine did not answer within {START_TIMEOUT_S:.0f} s.",
            hint="Is the machine busy? Start it alone to see why: the command `engine`.",
        )

    def stop(self) -> None:
        """Closes the pipe and waits; insists where the child doesn't listen."""
        self._stopping.set()
        _end(self._child)
        if self._keeper.is_alive():
            self._keeper.join()
            # The keeper may have started another one just as it was told.
            _end(self._child)

    def _keep_running(self) -> None:
        pause_s = RESTART_AFTER_S
        while not self._stopping.is_set():
            started_s = time.monotonic()
            code = self._child.wait()
            if time.monotonic() - started_s > LONGEST_PAUSE_S:
                pause_s = RESTART_AFTER_S
            if self._stopping.is_set():
                return
            _logger.warning(
                "The embedded engine ended by itself (exit code %d). It is started again in %g s.", code, pause_s
            )
            if self._stopping.wait(pause_s):
                return
            self._child = _start(self._command)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@contextmanager
def engine_process(flags: Sequence[str]) -> Iterator[EngineProcess]:
    """Starts `engine` with `flags` on free ports; stops it at the end of the block."""
    address = EngineAddress(*_free_ports(3))
    command = [
        sys.executable, "-m", __package__ or "app", "engine", "--host", HOST, "--port", str(address.port),
        "--events-port", str(address.events_port), "--replay-port", str(address.replay_port),
        STOP_WITH_PARENT_FLAG, *flags,
    ]  # fmt: skip
    process = EngineProcess(address, command)
    try:
        yield process
    finally:
        process.stop()


def _start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    # Its own session: Ctrl-C reaches the dashboard alone, which then ends the engine last.
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)


def _end(child: "subprocess.Popen[bytes]") -> None:
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def stop_with_parent() -> None:
    """To be called in the child: ends it when its standard input does."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_TIMEOUT_S / 2)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    try:
        return [bound.getsockname()[1] for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()
