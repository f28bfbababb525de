"""Time as an argument: what every source asks instead of the `time` module, so that tests decide what time it is.

Imports nothing of the project.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for durations and for the `at_s` of observations, one for the time of day."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...

    def wall_ms(self) -> float:
        """Milliseconds since 1970 (UTC); may jump when the machine's clock is set."""
        ...


class SystemClock:
    """The machine's own clocks."""

    monotonic = staticmethod(time.monotonic)  # As it is: a busy proxy asks it with every read.

    def wall_ms(self) -> float:
        """Milliseconds since 1970 (UTC); may jump when the machine's clock is set."""
        return time.time() * 1000
