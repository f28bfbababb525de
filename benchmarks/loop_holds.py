"""How long one turn of an event loop holds it: by the thread's CPU time, so that a busy machine doesn't count."""

import asyncio
import time

LOOK_S = 0.0005


class LoopHolds:
    """Looks at the loop as often as it lets itself be looked at. `start` it on the loop; `worst_ms` is what it saw."""

    def __init__(self) -> None:
        self.worst_ms = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before_s = 0.0

    def start(self) -> None:
        """From now on."""
        self._loop = asyncio.get_running_loop()
        self.reset()
        self._look()

    def reset(self) -> None:
        """Forgets what it saw."""
        self.worst_ms = 0.0
        self._before_s = time.thread_time()

    def _look(self) -> None:
        now_s = time.thread_time()
        self.worst_ms = max(self.worst_ms, (now_s - self._before_s) * 1000)
        self._before_s = now_s
        assert self._loop is not None
        self._loop.call_later(LOOK_S, self._look)
