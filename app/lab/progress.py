"""A line on a terminal that says how far a run is, and how long it still takes."""

import time
from typing import TextIO

from .runner import Run
from .sample import Sample

WIDTH = 24


class Progress:
    """Writes to a terminal alone: a file gets nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = stream.isatty()
        self._total = 0
        self._done = 0
        self._began_s = 0.0

    def began(self, run: Run, total: int) -> None:
        """The run starts, with about so many requests."""
        self._total, self._began_s = total, time.monotonic()

    def sample(self, run: Run, sample: Sample) -> None:
        """A request came back."""
        self._done += 1
        if not self._shown:
            return
        total = max(self._total, self._done)
        full = WIDTH * self._done // total
        left_s = (time.monotonic() - self._began_s) / self._done * (total - self._done)
        self._stream.write(f"\r[{'#' * full:<{WIDTH}}] {self._done} of about {total}, {left_s:.0f} s left  ")
        self._stream.flush()

    def over(self) -> None:
        """Ends the line."""
        if self._shown and self._done:
            self._stream.write("\n")
