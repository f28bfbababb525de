"""What the commands' parsers share: the program's name, and flags for rows of the table of settings."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..engine.profiles import DEFAULT_PROFILE, PROFILES
from ..settings import SETTINGS

PACKAGE = (__package__ or "app.commands").partition(".")[0]
PROGRAM = f"python -m {PACKAGE}"
Command: TypeAlias = Callable[[argparse.Namespace, Mapping[str, str]], int]
"""Takes the parsed flags and the environment; returns the exit status."""
Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"

REPEATED = ("vllm", "kv_events", "kv_replay")
"""Settings that may be given several times, one a server."""
_METAVARS = {"vllm": "URL", "kv_events": "ADDRESS", "kv_replay": "ADDRESS"}
_SWITCHES = ("show_prompts", "redact", "allow_cache_reset", "insecure")
ENGINE_FLAGS: dict[str, tuple[type, str]] = {
    "host": (str, "address to listen on (127.0.0.1)"),
    "port": (int, "port of the HTTP API (8000)"),
    "events_port": (int, "port of KV events (5557)"),
    "replay_port": (int, "port of KV-event replay (5558)"),
    "num_gpu_blocks": (int, "blocks in the pool, the null block included (the profile's)"),
    "block_size": (int, "tokens a block (the profile's)"),
    "profile": (str, f"timing profile, one of {', '.join(PROFILES)} ({DEFAULT_PROFILE})"),
    "model_name": (str, "name of the model that it serves (Qwen2.5-7B-Instruct)"),
    "max_num_batched_tokens": (int, "token budget of one step (the profile's)"),
    "max_num_seqs": (int, "requests that run at once (256)"),
}


class Parser(argparse.ArgumentParser):
    """A parser that leaves the lines of its texts as they are."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)


def add_settings(
    parser: argparse.ArgumentParser, names: Sequence[str], defaults: Mapping[str, str] | None = None
) -> None:
    """Flags for rows of the table. `defaults`: those that the command has instead of the table's."""
    rows = {setting.name: setting for setting in SETTINGS}
    for name in names:
        row = rows[name]
        flag = f"--{name.replace('_', '-')}"
        text = row.help.partition(" (demo: ")[0]
        if name in _SWITCHES:
            parser.add_argument(flag, action="store_const", const="true", help=text)
            continue
        default = (defaults or {}).get(name, row.default)
        metavar = _METAVARS.get(name) or name.rpartition("_")[2].upper()
        shown = f"{text} ({default})" if default else text
        if name in REPEATED:
            parser.add_argument(flag, metavar=metavar, action="append", help=shown)
        else:
            parser.add_argument(flag, metavar=metavar, help=shown)


def given_settings(options: argparse.Namespace, names: Sequence[str]) -> dict[str, str | None]:
    """The settings among the parsed flags, as `load_settings` takes them; a repeated one is joined by commas."""
    return {name: ",".join(value) if isinstance(value := getattr(options, name), list) else value for name in names}


def add_engine_flags(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Flags of the embedded engine."""
    for name in names:
        kind, text = ENGINE_FLAGS[name]
        metavar = name.rpartition("_")[2].upper()
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar=metavar, help=text)
