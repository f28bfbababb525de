"""Settings of runs that have no server."""

from typing import Any

from app.lab.definition import Experiment
from app.lab.registry import parameters_of
from app.lab.setting import ServerFacts, Setting


def server(**facts: Any) -> ServerFacts:
    """One with vLLM's own block size, a middle-sized pool and 300 words."""
    known: dict[str, Any] = {
        "url": "http://127.0.0.1:8000", "model": "m", "version": "0.32.0", "block_size": 16, "num_gpu_blocks": 1024,
        "max_model_len": 8192, "cached_basis": "usage", "salts": True, "alphabet": tuple(range(1000, 1300)),
    }  # fmt: skip
    return ServerFacts(**(known | facts))


def setting(experiment: Experiment, *sets: str, repeats: int = 2, seed: int = 1, **facts: Any) -> Setting:
    """Its defaults, with `name=value` texts."""
    return Setting(server=server(**facts), parameters=parameters_of(experiment, sets), seed=seed, repeats=repeats)
