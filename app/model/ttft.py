"""First-token times against computed tokens: the samples of one server, and what a fit of them says.

The fit itself is made elsewhere, by a library of statistics; here is what it gives and how it is used. Imports only
`observations` and its own package.
"""

from collections import deque
from typing import NamedTuple

from ..observations import TtftFitted
from .requests import Request

MAX_SAMPLES = 512
QUEUED_MS = 5.0
"""A request that waited longer in the server's queue says nothing about computing."""
QUEUED_RATIO = 0.05


class TtftSample(NamedTuple):
    """One unqueued request: prompt tokens computed (all but those reused), and its time to first token."""

    computed_tokens: int
    ttft_ms: float


class TtftFit(NamedTuple):
    """A line through a server's samples: ttft = fixed_ms + token_ms * computed tokens. Intervals are of 95 %.

    `early_ms` and `late_ms` are how far single requests lie under and over the line (the 10th and 90th percentile);
    `fewest_tokens` and `most_tokens` the range that the line was drawn in: it says nothing far outside of it.
    """

    fixed_ms: float
    token_ms: float
    token_low_ms: float
    token_high_ms: float
    early_ms: float
    late_ms: float
    fewest_tokens: int
    most_tokens: int
    samples: int

    def covers(self, computed_tokens: int) -> bool:
        """Whether so many computed tokens lie within what was measured, give or take a quarter."""
        return computed_tokens <= self.most_tokens * 1.25

    def cost_ms(self, tokens: int) -> tuple[float, float, float]:
        """(about, at least, at most) the time that computing so many tokens takes."""
        return self.token_ms * tokens, self.token_low_ms * tokens, self.token_high_ms * tokens

    def ttft_ms(self, computed_tokens: int) -> tuple[float, float, float]:
        """(about, early, late): when the first token comes of a request that isn't queued."""
        about = self.fixed_ms + self.token_ms * computed_tokens
        return about, max(about + self.early_ms, 0.0), about + self.late_ms


class TtftBook:
    """The samples of one server, the newest kept, and the last fit of them."""

    def __init__(self) -> None:
        self.samples: deque[TtftSample] = deque(maxlen=MAX_SAMPLES)
        self.taken = 0
        """Samples ever taken: whether a fit is behind."""
        self.fit: TtftFit | None = None

    def take(self, request: Request, *, alone: bool) -> None:
        """Takes an ended request in, where its time is that of computing alone. `alone`: no other ran meanwhile."""
        cached, prompt, ttft_ms = request.cached(), request.prompt_tokens, request.ttft_ms
        if cached is None or prompt is None or ttft_ms is None or not request.consistent:
            return
        if request.ended is None or request.ended.outcome != "ok" or request.sent.sequences != 1:
            return
        queue_ms = request.times.queue_ms if request.times else None
        if not alone or (queue_ms is not None and queue_ms > max(QUEUED_MS, QUEUED_RATIO * ttft_ms)):
            return
        self.samples.append(TtftSample(prompt - cached[0], ttft_ms))
        self.taken += 1

    def take_fit(self, fitted: TtftFitted) -> None:
        """A line was fitted through the samples."""
        self.fit = TtftFit(*(getattr(fitted, name) for name in TtftFit._fields))
