"""Timing profiles: how long a step of the embedded engine takes on the machine that it imitates. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimingProfile:
    """A machine and model. `num_gpu_blocks`, `block_size` and `max_num_batched_tokens` are its defaults."""

    name: str
    num_gpu_blocks: int
    block_size: int
    max_num_batched_tokens: int


INSTANT = TimingProfile("instant", 1024, 16, 8192)
"""Takes no time: for tests."""

PROFILES: dict[str, TimingProfile] = {INSTANT.name: INSTANT}
