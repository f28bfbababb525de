"""How long to wait before the next try, and the wait itself. Imports nothing of the project."""

import random


class Backoff:
    """Doubling pauses with jitter, from `first_s` up to `cap_s`."""

    def __init__(self, first_s: float, cap_s: float) -> None:
        self._first_s = first_s
        self._cap_s = cap_s
        self._failures = 0

    def pause_s(self) -> float:
        """The pause after one more failure, in seconds: never above `cap_s`, and up to a quarter below the doubling."""
        pause = min(self._cap_s, self._first_s * 2 ** min(self._failures, 16))
        self._failures += 1
        return float(pause * (1 - 0.25 * random.random()))

    def reset(self) -> None:
        """After a success: the next pause is the first again."""
        self._failures = 0
