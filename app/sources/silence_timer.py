"""A deadline that moves with every byte, at the price of none: one timer, armed anew for what is left of it."""

import asyncio
from collections.abc import Callable


class SilenceTimer:
    """Calls `on_silence` when the other side has said nothing for `limit_s`.

    `silent_s` is asked how long it has been silent, only when the timer has run out.
    """

    def __init__(self, limit_s: float, silent_s: Callable[[], float], on_silence: Callable[[], None]) -> None:
        self._limit_s = limit_s
        self._silent_s = silent_s
        self._on_silence = on_silence
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Runs, if it doesn't already. One left over from the last request does for the next."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._limit_s, self._check)

    def stop(self) -> None:
        """Doesn't call any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        left_s = self._limit_s - self._silent_s()
        if left_s <= 0:
            self._on_silence()
        else:
            self._timer = self._loop.call_later(max(left_s, 0.001), self._check)
