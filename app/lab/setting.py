"""In which setting a run is made: the server as it describes itself, parameters, seed. Values only."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server says of itself; a None is "doesn't say".

    salts: whether a cache salt keeps requests apart, tried out. cached_basis: where cached tokens of one request
    are known from. flags: of its cache, from the metrics page.
    """

    url: str
    version: str | None = None
    model: str = ""
    max_model_len: int | None = None
    embedded: bool = False
    profile: str | None = None
    assumed: tuple[str, ...] = ()
    block_size: int | None = None
    num_gpu_blocks: int | None = None
    prefix_caching: bool | None = None
    cached_basis: str | None = None
    salts: bool | None = None
    returns_ids: bool | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    alphabet: tuple[int, ...] = field(default=(), repr=False)
    """Ids of plain words of its vocabulary, to make prompts of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a plan may know."""

    server: ServerFacts
    parameters: Mapping[str, Any]
    seed: int
    off_server: ServerFacts | None = None
    repeats: int = 5

    @property
    def block_size(self) -> int:
        """In tokens; 16, vLLM's default, where the server doesn't say."""
        return self.server.block_size or 16

    @property
    def longest_prompt(self) -> int:
        """Tokens of a prompt that leave room for an answer, and for two more prompts like it in the pool.

        Sides take turns in random order: two cold prompts may follow each other, and a pool without room for both would
        give up the warm one's blocks.
        """
        longest = (self.server.max_model_len or 4096) - 16
        if self.server.num_gpu_blocks:
            longest = min(longest, (self.server.num_gpu_blocks - 1) * self.block_size // 3 - self.block_size)
        return longest

    def draw(self, purpose: str) -> random.Random:
        """Random numbers that are the same for the same seed and purpose."""
        return random.Random(f"{self.seed}-{purpose}")

    def token_ids(self, count: int, name: str) -> tuple[int, ...]:
        """Plain words as token ids; another name gives others."""
        return tuple(self.draw(f"tokens-{name}").choices(self.server.alphabet, k=count))

    def whole(self, name: str) -> int:
        """A parameter that is a whole number."""
        return int(self.parameters[name])

    def numbers(self, name: str) -> Sequence[int]:
        """A parameter that is a list."""
        return tuple(self.parameters[name])
