"""What came of one request, as the report has it. Imports nothing of the project."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request with its answer. A None is "not known", never 0. Times in milliseconds.

    ttft_ms: from the last byte of preparation to the first generated token, by this machine's clock; total_ms: to the
    end of the answer. server_*: the server's own clock. cached_basis: `usage`, or `counter` where the answer doesn't
    say and the counters moved by this request alone. expected_cached: by block accounting, from token ids, with a pool
    that never evicts; None where ids aren't known or requests ran at once. foreign_tokens: prompt tokens that others
    sent meanwhile. values: what an experiment without a server measured.
    """

    index: int
    batch: int
    arm: str
    role: str
    side: str = "on"
    x: float | None = None
    repeat: int = 0
    label: str = ""
    space: str = ""
    at_s: float = 0.0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    cached_basis: str | None = None
    expected_cached: int | None = None
    completion_tokens: int | None = None
    ttft_ms: float | None = None
    total_ms: float | None = None
    server_ttft_ms: float | None = None
    server_queue_ms: float | None = None
    counter_query_tokens: float | None = None
    counter_hit_tokens: float | None = None
    foreign_tokens: float | None = None
    rejected: str | None = None
    error: str | None = None
    values: dict[str, float] = field(default_factory=dict)
    prompt_ids: tuple[int, ...] = field(default=(), repr=False)
    answer_ids: tuple[int, ...] = field(default=(), repr=False)
    answer_text: str = field(default="", repr=False)
    prompt_text: str = field(default="", repr=False)

    @property
    def counts(self) -> bool:
        """Whether it may enter a figure."""
        return self.rejected is None and self.error is None and self.role != "warm-up"

    @property
    def computed_tokens(self) -> int | None:
        """Prompt tokens that were not reused."""
        if self.prompt_tokens is None or self.cached_tokens is None:
            return None
        return self.prompt_tokens - self.cached_tokens


PRIVATE = frozenset({"prompt_ids", "answer_ids", "answer_text", "prompt_text"})
"""Fields that only a report with text has."""


def sample_record(sample: Sample, *, text: bool = False) -> dict[str, Any]:
    """A sample as JSON."""
    names = Sample.__dataclass_fields__
    record = {name: getattr(sample, name) for name in names if text or name not in PRIVATE}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in record.items()}
