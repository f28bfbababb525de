"""The command line of the embedded engine: its flags, and the configuration that they make. Imports nothing heavy."""

import argparse
from typing import Any

from .block_hash import ALGORITHMS, DEFAULT_ALGORITHM
from .config import DEFAULT_MODEL_NAME, EngineConfig
from .imitation import SWITCHES, VERSIONS
from .profiles import DEFAULT_PROFILE, PROFILES

FLAGS: dict[str, tuple[type, str]] = {
    "host": (str, "address to listen on (127.0.0.1)"),
    "port": (int, "port of the HTTP API (8000)"),
    "events_port": (int, "port of KV events, of the first rank where there are several (5557)"),
    "replay_port": (int, "port of KV-event replay (the first after those of events: 5558)"),
    "num_gpu_blocks": (int, "blocks in the pool, the null block included (the profile's)"),
    "block_size": (int, "tokens a block (the profile's)"),
    "profile": (str, f"timing profile, one of {', '.join(PROFILES)} ({DEFAULT_PROFILE})"),
    "model_name": (str, f"name of the model that it serves ({DEFAULT_MODEL_NAME})"),
    "max_num_batched_tokens": (int, "token budget of one step (the profile's)"),
    "max_num_seqs": (int, "requests that run at once (256)"),
    "max_model_len": (int, "longest prompt with its answer, in tokens (32768, or what the pool holds)"),
    "data_parallel_size": (int, "ranks, each with a pool of its own; rank r's events are on port + r (1)"),
    "prefix_caching_hash_algo": (str, f"one of {', '.join(ALGORITHMS)} ({DEFAULT_ALGORITHM})"),
    "hash_seed": (str, "what the chain of block hashes starts from: vLLM's PYTHONHASHSEED"),
}
"""Flags with one value: a field of EngineConfig, its type, its help."""

EPILOG = f"""\
what --imitate takes, several times or with commas: a release, and single differences from it

{chr(10).join(f"  {name:<20}as that release of vLLM behaves and answers" for name in VERSIONS)}

{chr(10).join(f"  {name:<20}{text}" for name, (_, text) in SWITCHES.items())}
"""


def add_flags(parser: argparse.ArgumentParser, names: tuple[str, ...] | None = None) -> None:
    """Adds flags to a parser: those of `names`, or all of them."""
    for name in FLAGS if names is None else names:
        kind, text = FLAGS[name]
        metavar = name.rpartition("_")[2].upper()
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar=metavar, help=text)
    if names is None:
        _add_others(parser)


def _add_others(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-enable-prefix-caching",
        dest="enable_prefix_caching",
        action="store_const",
        const=False,
        help="turn the prefix cache off",
    )
    parser.add_argument(
        "--lora", metavar="NAME[=PATH]", action="append", help="serve an adapter under this name too; several times"
    )
    parser.add_argument(
        "--imitate", metavar="NAME", action="append", help="behave as an older vLLM, or leave something out: see below"
    )
    parser.add_argument(
        "--imitate-images",
        action="store_const",
        const=True,
        help="take pictures in messages, each as a fixed number of placeholder tokens",
    )


def config_from(options: argparse.Namespace) -> EngineConfig:
    """The configuration of parsed flags; what wasn't given keeps its default."""
    given: dict[str, Any] = {
        name: value
        for name in (*FLAGS, "enable_prefix_caching", "imitate_images")
        if (value := getattr(options, name)) is not None
    }
    imitated = tuple(name.strip() for each in options.imitate or () for name in each.split(","))
    return EngineConfig(lora=tuple(options.lora or ()), imitate=imitated, **given)
