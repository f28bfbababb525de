"""`engine`: the embedded engine alone."""

import argparse
from collections.abc import Mapping

from .flags import ENGINE_FLAGS, Subparsers, add_engine_flags

DESCRIPTION = """\
The embedded engine alone: a server that speaks vLLM's HTTP API, metrics and KV events, with vLLM's rules for blocks
and a timing profile of a published measurement. It says what it is by a `prefixscope` object in /version.
"""
EPILOG = """\
example:
  engine --port 8000 --events-port 5557 --replay-port 5558
  serve --vllm http://127.0.0.1:8000

A port of 0 takes a free one; the line that says "ready" names it.
"""


def add(commands: Subparsers) -> None:
    """Adds the command."""
    parser = commands.add_parser("engine", help="the embedded engine alone", description=DESCRIPTION, epilog=EPILOG)
    parser.set_defaults(command=run)
    add_engine_flags(parser, tuple(ENGINE_FLAGS))
    parser.add_argument(
        "--no-enable-prefix-caching", dest="enable_prefix_caching", action="store_const", const=False,
        help="turn the prefix cache off",
    )  # fmt: skip
    parser.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Until SIGINT or SIGTERM."""
    from ..engine.server import EngineConfig, serve_engine

    if options.stop_with_parent:
        from ..demo_engine import stop_with_parent

        stop_with_parent()
    names = (*ENGINE_FLAGS, "enable_prefix_caching")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    serve_engine(EngineConfig(**given))
    return 0
