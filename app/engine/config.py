"""The embedded engine's configuration: its fields, and what the core makes of them. Opens nothing."""

import os
from dataclasses import dataclass

from .block_hash import DEFAULT_ALGORITHM, BlockHasher
from .core import CoreConfig
from .imitation import Imitation, imitation_of
from .profiles import DEFAULT_PROFILE, PROFILES

DEFAULT_MODEL_NAME = "Qwen2.5-7B-Instruct"
MAX_RANKS = 64


class ConfigError(ValueError):
    """A configuration that can't run; the text is one clear line."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The flags of `python -m app engine`. None: what the profile says. Port 0 takes a free one.

    `max_model_len` is bounded by what the pool holds; a pool of N blocks serves N-1. With several data-parallel ranks
    each has a pool of its own, and rank r has its events and replay on port + r. `replay_port` None: the first after
    those of events.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    events_port: int = 5557
    replay_port: int | None = None
    num_gpu_blocks: int | None = None
    block_size: int | None = None
    profile: str = DEFAULT_PROFILE
    model_name: str = DEFAULT_MODEL_NAME
    max_num_batched_tokens: int | None = None
    max_num_seqs: int = 256
    max_model_len: int = 32768
    enable_prefix_caching: bool = True
    events_topic: str = "kv-events"
    data_parallel_size: int = 1
    prefix_caching_hash_algo: str = DEFAULT_ALGORITHM
    hash_seed: str | None = None
    """What the chain of hashes starts from: vLLM's PYTHONHASHSEED."""
    lora: tuple[str, ...] = ()
    """Adapters, `name` or `name=path`."""
    imitate: tuple[str, ...] = ()
    """Names of `imitation.VERSIONS` and `imitation.SWITCHES`."""
    imitate_images: bool = False
    """Whether pictures in messages are taken, each as a fixed number of placeholder tokens."""

    @property
    def first_replay_port(self) -> int:
        """Of rank 0."""
        if self.replay_port is not None:
            return self.replay_port
        return self.events_port + self.data_parallel_size if self.events_port else 0


def imitation_in(config: EngineConfig) -> Imitation:
    """What is imitated. Raises ConfigError."""
    try:
        return imitation_of(config.imitate)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def core_config(config: EngineConfig) -> CoreConfig:
    """What each core needs of it. Raises ConfigError."""
    profile = PROFILES.get(config.profile)
    if profile is None:
        raise ConfigError(f"there is no profile {config.profile!r}; there are: {', '.join(PROFILES)}")
    imitation = imitation_in(config)
    core = CoreConfig(
        num_gpu_blocks=profile.num_gpu_blocks if config.num_gpu_blocks is None else config.num_gpu_blocks,
        block_size=profile.block_size if config.block_size is None else config.block_size,
        max_num_batched_tokens=profile.max_num_batched_tokens
        if config.max_num_batched_tokens is None
        else config.max_num_batched_tokens,
        max_num_seqs=config.max_num_seqs,
        max_model_len=config.max_model_len,
        enable_prefix_caching=config.enable_prefix_caching,
        profile=profile,
        hasher=_hasher(config, imitation),
        counting=imitation.counting,
        unhashed_first=imitation.unhashed_first,
    )
    _check(config, core)
    return core


def _hasher(config: EngineConfig, imitation: Imitation) -> BlockHasher:
    seed = config.hash_seed
    if seed is None and imitation.random_hash_seed:
        seed = os.urandom(32).hex()
    try:
        return BlockHasher(config.prefix_caching_hash_algo, seed)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _check(config: EngineConfig, core: CoreConfig) -> None:
    if core.num_gpu_blocks < 2:
        raise ConfigError("a pool has at least 2 blocks: one of them is the null block")
    smallest = min(core.block_size, core.max_num_batched_tokens, core.max_num_seqs, core.max_model_len - 1)
    if smallest < 1:
        raise ConfigError("block size, tokens a step and sequences are at least 1, the context at least 2")
    if not 1 <= config.data_parallel_size <= MAX_RANKS:
        raise ConfigError(f"there are 1 to {MAX_RANKS} data-parallel ranks, not {config.data_parallel_size}")
    names = [config.model_name, *(name.partition("=")[0] for name in config.lora)]
    if not all(names):
        raise ConfigError("a model has a name")
    if len(set(names)) < len(names):
        raise ConfigError("the model and its adapters have different names")
