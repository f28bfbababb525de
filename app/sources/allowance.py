"""How often something may be done: so many a second, and a burst at once after a silence. Pure; imports nothing."""


class Allowance:
    """`per_s` a second, `burst` of them at once at most. Times are monotonic seconds."""

    __slots__ = ("_burst", "_left", "_per_s", "_reckoned_s")

    def __init__(self, per_s: float, burst: float, at_s: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._reckoned_s = at_s

    def take(self, at_s: float) -> float:
        """Takes one; 0 where it may be done now, else the seconds until it may."""
        self._left = min(self._left + (at_s - self._reckoned_s) * self._per_s, self._burst)
        self._reckoned_s = at_s
        if self._left < 1.0:
            return (1.0 - self._left) / self._per_s
        self._left -= 1.0
        return 0.0
